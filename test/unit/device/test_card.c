/* SPDX-License-Identifier: Apache-2.0 */
/* The table of cards: what its header promises, and figures that no card can have. */
#include "support/cmocka.h"

#include <drystone/card.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KIB(count) ((uint64_t)(count) << 10)
#define MIB(count) ((uint64_t)(count) << 20)

static size_t
count_cards(void)
{
    size_t count = 0;
    while (dry_card_get(count))
        count++;
    return count;
}

static void
names_lead_to_their_cards(void **state)
{
    (void)state;
    size_t count = count_cards();
    assert_true(count >= 15);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(dry_card_find(dry_card_get(i)->name), dry_card_get(i));
    assert_null(dry_card_find("h100"));
    assert_null(dry_card_find(""));
    assert_null(dry_card_get(count));
    assert_null(dry_card_get(SIZE_MAX));
}

static bool
is_amd(const struct dry_card *card)
{
    return strncmp(card->title, "AMD ", 4) == 0;
}

static void
titles_are_the_drivers_and_one_each(void **state)
{
    (void)state;
    for (size_t i = 0; dry_card_get(i); i++) {
        const char *title = dry_card_get(i)->title;
        assert_true(strncmp(title, "NVIDIA ", 7) == 0 || strcmp(title, "Orin") == 0 ||
                    strncmp(title, "Tesla ", 6) == 0 || is_amd(dry_card_get(i)));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(dry_card_get(k)->title, title);
    }
}

static void
names_end_in_nominal_gb(void **state)
{
    (void)state;
    for (size_t i = 0; dry_card_get(i); i++) {
        const struct dry_card *card = dry_card_get(i);
        const char *dash = strrchr(card->name, '-');
        assert_non_null(dash);
        assert_true(strtoull(dash + 1, NULL, 10) == card->nominal_gb);
    }
}

static void
smallest_comes_first(void **state)
{
    (void)state;
    for (size_t i = 1; dry_card_get(i); i++)
        assert_true(dry_card_get(i - 1)->usable_bytes <= dry_card_get(i)->usable_bytes);
}

static void
usable_is_below_nominal(void **state)
{
    (void)state;
    for (size_t i = 0; dry_card_get(i); i++) {
        const struct dry_card *card = dry_card_get(i);
        assert_true(card->usable_bytes < card->nominal_gb << 30);
        assert_true(card->usable_bytes > card->nominal_gb * 870000000);
        assert_true(card->context_bytes >= MIB(250));
        assert_true(card->context_bytes < card->usable_bytes / 8);
    }
}

static void
sizes_are_plausible(void **state)
{
    (void)state;
    for (size_t i = 0; dry_card_get(i); i++) {
        const struct dry_card *card = dry_card_get(i);
        assert_true(card->sm_count >= 10 && card->sm_count <= (is_amd(card) ? 304 : 200));
        assert_true(card->l2_bytes >= MIB(1) && card->l2_bytes <= MIB(128));
        assert_true(card->l2_bytes % KIB(256) == 0);
    }
}

/* Blocks of 8.0 and above leave 1 KiB of an SM's shared memory to the system. */
static void
limits_are_those_of_a_known_capability(void **state)
{
    (void)state;
    static const struct {
        int major, minor, threads;
        uint64_t shared_kib, context_mib;
    } known[] = {
        {7, 0, 2048, 96, 250},   {7, 5, 1024, 64, 250},   {8, 0, 2048, 164, 400},
        {8, 6, 1536, 100, 400},  {8, 9, 1536, 100, 400},  {9, 0, 2048, 228, 767},
        {10, 0, 2048, 228, 600}, {10, 3, 2048, 228, 600}, {12, 0, 1536, 100, 600},
        {8, 7, 1536, 164, 400},  {12, 1, 1536, 100, 600}, {9, 4, 2048, 64, 600},
        {9, 5, 2048, 160, 600},
    };
    for (size_t i = 0; dry_card_get(i); i++) {
        const struct dry_card *card = dry_card_get(i);
        size_t k = 0;
        while (k < sizeof known / sizeof *known &&
               (known[k].major != card->capability_major ||
                known[k].minor != card->capability_minor))
            k++;
        assert_true(k < sizeof known / sizeof *known);
        assert_int_equal(card->threads_per_sm, known[k].threads);
        assert_true(card->shared_per_sm_bytes == KIB(known[k].shared_kib));
        assert_true(card->shared_per_sm_bytes - card->shared_per_block_max_bytes ==
                    (known[k].major >= 8 && !is_amd(card) ? KIB(1) : 0));
        assert_true(card->context_bytes == MIB(known[k].context_mib));
        assert_true(card->descends);
        bool is_shared =
            strcmp(card->name, "agxorin-64") == 0 || strcmp(card->name, "gb10-128") == 0;
        assert_true((card->caveat != NULL) == (is_shared || is_amd(card)));
    }
}

static void
one_card_member_by_member(void **state)
{
    (void)state;
    const struct dry_card *card = dry_card_find("h100-80");
    assert_non_null(card);
    assert_string_equal(card->title, "NVIDIA H100 80GB HBM3");
    assert_true(card->nominal_gb == 80 && card->usable_bytes == MIB(80988));
    assert_true(card->capability_major == 9 && card->capability_minor == 0);
    assert_true(card->sm_count == 132 && card->l2_bytes == 52428800);
    assert_true(card->threads_per_sm == 2048 && card->descends);
    assert_true(card->shared_per_sm_bytes == 233472);
    assert_true(card->shared_per_block_max_bytes == 232448);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lead_to_their_cards),
        cmocka_unit_test(titles_are_the_drivers_and_one_each),
        cmocka_unit_test(names_end_in_nominal_gb),
        cmocka_unit_test(smallest_comes_first),
        cmocka_unit_test(usable_is_below_nominal),
        cmocka_unit_test(sizes_are_plausible),
        cmocka_unit_test(limits_are_those_of_a_known_capability),
        cmocka_unit_test(one_card_member_by_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
