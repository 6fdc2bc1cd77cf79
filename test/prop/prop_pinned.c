/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random programs on the pinned cache, fit and buddy: see pinned_ops.h.
 *
 * DRY_TEST_SEED=N runs one program; DRY_TEST_ROUNDS=N runs so many.
 */
#include "prop/pinned_ops.h"
#include "support/cmocka.h"

#include <stdlib.h>

static void
run_all(enum dry_pinned_mode mode)
{
    const char *seed = getenv("DRY_TEST_SEED"), *rounds = getenv("DRY_TEST_ROUNDS");
    if (seed) {
        pinned_ops_run_seed(strtoull(seed, NULL, 10), mode);
        return;
    }
    uint64_t count = rounds ? strtoull(rounds, NULL, 10) : 150;
    for (uint64_t i = 0; i < count; i++)
        pinned_ops_run_seed(i, mode);
}

static void
fit_keeps_the_contract(void **state)
{
    (void)state;
    run_all(DRY_PINNED_FIT);
}

static void
buddy_keeps_the_contract(void **state)
{
    (void)state;
    run_all(DRY_PINNED_BUDDY);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_keeps_the_contract),
        cmocka_unit_test(buddy_keeps_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
