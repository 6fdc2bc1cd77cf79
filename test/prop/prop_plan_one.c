/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-level plans against all plans of one level, on random small chains, at every budget
 * where something changes; and what must be true of plans of larger chains.
 *
 * DRY_TEST_SEED=N replays from one seed, DRY_TEST_ROUNDS=N makes that many chains. The seed
 * of a chain that fails is printed.
 */
#include "support/cmocka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <drystone/plan.h>

#include "support/chains.h"

#define ROUNDS 12000

static uint64_t seed_now;

static uint64_t
number_or(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void
require(bool condition, const char *what)
{
    if (condition)
        return;
    print_error("DRY_TEST_SEED=%" PRIu64 " DRY_TEST_ROUNDS=1: %s\n", seed_now, what);
    fail();
}

struct result {
    enum dry_status status;
    struct dry_plan_summary summary;
};

static struct result
plan_for(const struct dry_chain *chain, uint64_t budget, uint32_t slots)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.budget_bytes = budget;
    options.slots = slots;
    struct dry_plan *plan = NULL;
    struct result result = {dry_plan_create(chain, &options, &plan, NULL), {0}};
    if (result.status == DRY_OK)
        result.summary = *dry_plan_get_summary(plan);
    dry_plan_destroy(plan);
    return result;
}

/* --- small chains ------------------------------------------------------------------------- */

static struct chains_form
random_form(struct random *r)
{
    uint64_t bits = random_next(r);
    struct chains_form form = {.stages_min = 1,
                               .stages_max = bits & 7 ? 7 : 10,
                               .options_max = bits & 8 ? 2 : 0,
                               .has_frame = bits & 16,
                               .has_tmp = bits & 32,
                               .has_grads = bits & 64,
                               .has_fixed = (bits & 384) == 0,
                               .has_offload = bits & 512};
    form.bytes_max = bits & 1024 ? 1000000 : 0;
    form.ns_max = bits & 2048 ? 1000000 : 0;
    return form;
}

static void
check_budget(const struct dry_chain *chain, const struct chains_point *points,
             size_t count, uint64_t budget, uint32_t slots)
{
    uint64_t least = chains_least_time(points, count, budget);
    struct result result = plan_for(chain, budget, slots);
    require(result.status == (least == UINT64_MAX ? DRY_ERR_NO_SPACE : DRY_OK),
            "what fits");
    if (result.status != DRY_OK)
        return;
    const struct dry_plan_summary *s = &result.summary;
    require(s->cost.time_ns == least, "the least time");
    require(s->bound_ns == least, "the bound");
    require(s->floor_bytes == points[0].peak_bytes, "the floor");
    require(s->cost.peak_bytes <= budget, "the budget");
}

static void
every_plan_of_one_level_is_no_better(void **state)
{
    (void)state;
    uint64_t first = number_or("DRY_TEST_SEED", 1),
             rounds = number_or("DRY_TEST_ROUNDS", ROUNDS);
    static struct chains_point points[CHAINS_POINTS_MAX];
    uint64_t budgets = 0;
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        seed_now = seed;
        struct random r;
        random_init(&r, seed);
        struct chains_form form = random_form(&r);
        struct dry_chain *chain = chains_make(&r, &form);
        size_t count = chains_one_level(chain, points);
        uint32_t slots = random_below(&r, 2) ? 500 : 1 + (uint32_t)random_below(&r, 40);
        for (size_t k = 0; k < 4; k++) {
            size_t at = k ? (size_t)random_below(&r, count) : 0;
            check_budget(chain, points, count, points[at].peak_bytes, slots);
            check_budget(chain, points, count, points[at].peak_bytes - 1, slots);
            budgets += 2;
        }
        dry_chain_destroy(chain);
    }
    print_message("%" PRIu64 " chains, %" PRIu64 " budgets\n", rounds, budgets);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_of_one_level_is_no_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
