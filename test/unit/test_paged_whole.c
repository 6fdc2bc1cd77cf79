/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When large blocks stay whole for the next request of their size: after a quiet while, far from
 * the device's end, without a plan, and as long as it pays.
 */
#include "support/cmocka.h"
#include "support/random.h"

#include <stdbool.h>
#include <string.h>

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged.h"

struct rig {
    struct dry_sim *sim;
    struct dryi_place place;
};

static void
begin_with(struct rig *rig, const char *conf, uint64_t capacity, bool has_pages)
{
    struct dry_sim_options so;
    struct dryi_paged_options options = {0};
    dry_sim_options_init(&so);
    so.capacity_bytes = capacity;
    if (!has_pages)
        so.page_bytes = 0;
    assert_int_equal(dry_sim_create(&so, &rig->sim, NULL), DRY_OK);
    options.device = dry_sim_get_device(rig->sim);
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_conf_parse(conf, strlen(conf), &options.conf, NULL),
                     DRY_OK);
    assert_int_equal(dryi_paged_create(&options, &rig->place, NULL), DRY_OK);
}

static void
begin(struct rig *rig, const char *conf, uint64_t capacity)
{
    begin_with(rig, conf, capacity, true);
}

static void
end(struct rig *rig)
{
    struct dry_error err = {.text = ""};
    if (rig->place.ops->check(rig->place.self, &err) != DRY_OK)
        fail_msg("%s", err.text);
    rig->place.ops->destroy(rig->place.self);
    dry_sim_destroy(rig->sim);
}

static dryi_block
get(struct rig *rig, uint64_t size)
{
    dryi_block block;
    assert_int_equal(rig->place.ops->alloc(rig->place.self, size, 0, &block), DRY_OK);
    return block;
}

/* Does it lie whole then? */
static bool
put(struct rig *rig, dryi_block block)
{
    assert_int_equal(rig->place.ops->free(rig->place.self, block), DRY_OK);
    return rig->place.ops->front_holds(rig->place.self, block);
}

/* A block of this size, and back: does it lie whole then? */
static bool
lies_whole(struct rig *rig, uint64_t size)
{
    return put(rig, get(rig, size));
}

/* So many requests that need no pages. */
static void
be_quiet(struct rig *rig, unsigned requests)
{
    for (unsigned i = 0; i < requests; i++)
        (void)lies_whole(rig, 1000);
}

static struct dryi_place_counters
counters_of(const struct rig *rig)
{
    struct dryi_place_counters counters;
    rig->place.ops->get_counters(rig->place.self, &counters);
    return counters;
}

/* --- when --------------------------------------------------------------------------------- */

static void
only_after_a_quiet_while(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig, "whole_after:20,plan:False", UINT64_C(8) << 30);
    assert_false(lies_whole(&rig, 16 * DRYI_MIB));
    be_quiet(&rig, 10);
    for (int i = 0; i < 4; i++)
        assert_false(lies_whole(&rig, 3 * DRYI_MIB));
    be_quiet(&rig, 20);
    assert_false(lies_whole(&rig, 3 * DRYI_MIB));
    assert_true(lies_whole(&rig, 3 * DRYI_MIB)); /* of a size that came twice */
    dryi_block block = get(&rig, 3 * DRYI_MIB);
    assert_false(rig.place.ops->front_holds(rig.place.self, block));
    assert_true(put(&rig, block));
    assert_false(lies_whole(&rig, 2 * DRYI_MIB)); /* that one came once */
    put(&rig, get(&rig, 20 * DRYI_MIB));          /* which needs pages */
    assert_false(lies_whole(&rig, 3 * DRYI_MIB));
    assert_false(lies_whole(&rig, 3 * DRYI_MIB));
    be_quiet(&rig, 20);
    (void)lies_whole(&rig, 3 * DRYI_MIB);
    assert_true(lies_whole(&rig, 3 * DRYI_MIB));
    end(&rig);
}

static void
not_near_the_end_of_the_device(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig, "whole_after:0,plan:False", 64 * DRYI_MIB);
    put(&rig, get(&rig, 40 * DRYI_MIB));
    be_quiet(&rig, 1);
    (void)lies_whole(&rig, 3 * DRYI_MIB);
    assert_true(lies_whole(&rig, 3 * DRYI_MIB));
    put(&rig, get(&rig, 50 * DRYI_MIB));
    for (int i = 0; i < 4; i++)
        assert_false(lies_whole(&rig, 3 * DRYI_MIB));
    rig.place.ops->trim(rig.place.self, 16 * DRYI_MIB);
    be_quiet(&rig, 1);
    (void)lies_whole(&rig, 3 * DRYI_MIB);
    assert_true(lies_whole(&rig, 3 * DRYI_MIB));
    rig.place.ops->set_limit(rig.place.self, 16 * DRYI_MIB);
    for (int i = 0; i < 4; i++)
        (void)lies_whole(&rig, 2 * DRYI_MIB);
    assert_false(lies_whole(&rig, 2 * DRYI_MIB));
    end(&rig);
}

/* There nothing makes good what it costs. */
static void
not_where_pages_cannot_move(void **state)
{
    (void)state;
    struct rig rig;
    begin_with(&rig, "whole_after:0", UINT64_C(8) << 30, false);
    be_quiet(&rig, 1);
    for (int i = 0; i < 4; i++)
        assert_false(lies_whole(&rig, 3 * DRYI_MIB));
    end(&rig);
}

/* What is kept whole is had by larger requests before more is reserved. */
static void
larger_requests_have_it_first(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig, "whole_after:0,plan:False", UINT64_C(8) << 30);
    put(&rig, get(&rig, 400 * DRYI_MIB)); /* the budget would have room for more */
    assert_int_equal(rig.place.ops->trim(rig.place.self, 62 * DRYI_MIB), DRY_OK);
    be_quiet(&rig, 1);
    dryi_block blocks[20];
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 20; i++)
            blocks[i] = get(&rig, (i < 19 ? 3 : 5) * DRYI_MIB);
        for (int i = 0; i < 20; i++)
            assert_true(put(&rig, blocks[i]) || turn == 0);
    }
    struct dryi_place_counters before = counters_of(&rig);
    struct dryi_block_info info;
    rig.place.ops->get_block(rig.place.self, blocks[19], &info);
    uint64_t address = info.addr;
    dryi_block block = get(&rig, 4 * DRYI_MIB);
    rig.place.ops->get_block(rig.place.self, block, &info);
    assert_true(info.addr - address < 5 * DRYI_MIB); /* the smallest that is enough */
    put(&rig, block);
    put(&rig, get(&rig, 62 * DRYI_MIB)); /* all of them together */
    struct dryi_place_counters after = counters_of(&rig);
    assert_int_equal(after.pages_created, before.pages_created);
    assert_int_equal(after.pages_remapped, before.pages_remapped);
    end(&rig);
}

/* --- does it pay? ------------------------------------------------------------------------- */

/* Two blocks that must merge for a third one: how many lie whole when they are freed. */
static unsigned
merge_again_and_again(struct rig *rig, unsigned turns)
{
    unsigned whole = 0;
    for (unsigned i = 0; i < turns; i++) {
        dryi_block a = get(rig, 6 * DRYI_MIB), b = get(rig, 6 * DRYI_MIB);
        whole += put(rig, a);
        whole += put(rig, b);
        (void)lies_whole(rig, DRYI_MIB); /* one comes again at least */
        (void)lies_whole(rig, DRYI_MIB);
        put(rig, get(rig, 12 * DRYI_MIB - 512 * (i % 1000)));
    }
    return whole;
}

static void
what_does_not_pay_is_given_up(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig, "whole_after:2,plan:False", UINT64_C(8) << 30);
    put(&rig, get(&rig, 14 * DRYI_MIB));
    be_quiet(&rig, 4);
    assert_true(merge_again_and_again(&rig, 100) > 100);
    (void)merge_again_and_again(&rig, 4000);
    assert_true(merge_again_and_again(&rig, 1000) < 500);
    end(&rig);
}

/* Sizes that never come again: there is nothing to look for. */
static void
where_nothing_comes_again_it_is_given_up(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig, "whole_after:4000,plan:False", UINT64_C(8) << 30);
    put(&rig, get(&rig, 64 * DRYI_MIB));
    be_quiet(&rig, 4002);
    assert_true(*rig.place.front_max == UINT64_MAX);
    for (uint64_t i = 1; i <= 4100; i++)
        (void)lies_whole(&rig, DRYI_MIB + 512 * i);
    assert_true(*rig.place.front_max < DRYI_MIB);
    end(&rig);
}

#define WINDOW 60
#define REQUESTS 400000

/* Few sizes, and now and then a large one that comes once: pages that had to move. */
static uint64_t
count_moved(const char *conf)
{
    struct rig rig;
    struct random random;
    random_init(&random, 1);
    begin(&rig, conf, UINT64_C(80) << 30);
    dryi_block blocks[WINDOW];
    for (unsigned i = 0; i < REQUESTS; i++) {
        size_t at = random_below(&random, WINDOW);
        if (i >= WINDOW)
            put(&rig, blocks[at]);
        else
            at = i;
        uint64_t size = DRYI_MIB * (1 + random_below(&random, 6));
        if (random_below(&random, 64) == 0)
            size = 64 * DRYI_MIB + 512 * random_below(&random, 1024);
        blocks[at] = get(&rig, size);
    }
    uint64_t moved = counters_of(&rig).pages_remapped;
    end(&rig);
    return moved;
}

static void
where_more_pages_move_it_is_given_up(void **state)
{
    (void)state;
    uint64_t merged = count_moved("whole_after:999999999999,plan:False");
    uint64_t kept = count_moved("plan:False");
    assert_true(merged > 0 && kept < 2 * merged);
}

/* --- the plan ----------------------------------------------------------------------------- */

#define LAYERS 40

/* A period; how many of its blocks lay whole. */
static unsigned
loop(struct rig *rig)
{
    dryi_block kept[LAYERS];
    unsigned whole = 0;
    for (uint64_t i = 0; i < LAYERS; i++) {
        kept[i] = get(rig, DRYI_MIB * (1 + i * 5 % 7));
        whole += lies_whole(rig, DRYI_MIB * (1 + i % 5));
    }
    for (size_t i = LAYERS; i-- > 0;) {
        dryi_block scratch = get(rig, DRYI_MIB * (1 + i * 3 % 11));
        whole += put(rig, kept[i]);
        whole += put(rig, scratch);
    }
    return whole;
}

static void
a_plan_needs_them_merged(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig, "whole_after:0", UINT64_C(8) << 30);
    unsigned whole = 0;
    for (int i = 0; i < 40 && counters_of(&rig).plans_made == 0; i++)
        whole += loop(&rig);
    assert_true(whole > 0);
    assert_int_equal(counters_of(&rig).plans_made, 1);
    (void)loop(&rig);
    struct dryi_place_counters before = counters_of(&rig);
    for (int i = 0; i < 5; i++)
        assert_int_equal(loop(&rig), 0);
    struct dryi_place_counters after = counters_of(&rig);
    assert_true(after.hints_taken - before.hints_taken >= 5 * (3 * LAYERS - 2));
    end(&rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_after_a_quiet_while),
        cmocka_unit_test(not_near_the_end_of_the_device),
        cmocka_unit_test(not_where_pages_cannot_move),
        cmocka_unit_test(larger_requests_have_it_first),
        cmocka_unit_test(what_does_not_pay_is_given_up),
        cmocka_unit_test(where_nothing_comes_again_it_is_given_up),
        cmocka_unit_test(where_more_pages_move_it_is_given_up),
        cmocka_unit_test(a_plan_needs_them_merged),
    };
    return cmocka_run_group_tests_name("paged_whole", tests, NULL, NULL);
}
