/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lives: the tree of ends against a scan, at every size where it grows a level, with lives in
 * order, lives in none, long ones, short ones, empty ones, and no memory for the tree.
 */
#include "support/cmocka.h"

#include <stdlib.h>

#include "base/memory.h"
#include "explain/timeline/lives.h"
#include "support/failing_memory.h"
#include "support/random.h"

/* A life among other columns, as allocations have it. */
struct life {
    uint32_t before, begin, end, behind;
};
#define STEP (sizeof(struct life) / sizeof(uint32_t))

struct crowd {
    struct life *lives;
    uint32_t count, sorted_count, moment_count;
    struct dryi_lives index;
};

static uint32_t
random_end(struct random *r, uint32_t begin, uint32_t moment_count)
{
    switch (random_below(r, 8)) {
    case 0:
        return UINT32_MAX;
    case 1:
        return begin; /* never there */
    case 2:
        return begin + (uint32_t)random_below(r, moment_count);
    default:
        return begin + 1 + (uint32_t)random_below(r, 6);
    }
}

/* Lives in order begin at 1 and on, several at a moment; the others whenever. */
static void
make_crowd(struct crowd *c, struct random *r, uint32_t sorted_count, uint32_t other_count)
{
    *c =
        (struct crowd){.count = sorted_count + other_count, .sorted_count = sorted_count};
    c->lives = calloc((size_t)c->count + 1, sizeof *c->lives);
    assert_non_null(c->lives);
    c->moment_count = sorted_count + 8;
    uint32_t begin = 1;
    for (uint32_t i = 0; i < c->count; i++) {
        if (i < sorted_count)
            begin += random_below(r, 4) ? 1 : 0;
        else
            begin = (uint32_t)random_below(r, c->moment_count);
        c->lives[i] = (struct life){.before = UINT32_MAX,
                                    .begin = begin,
                                    .end = random_end(r, begin, c->moment_count),
                                    .behind = UINT32_MAX};
    }
    c->index = (struct dryi_lives){.memory = dryi_memory_or_default(NULL),
                                   .begins = &c->lives->begin,
                                   .ends = &c->lives->end,
                                   .step = STEP,
                                   .count = c->count,
                                   .sorted_count = sorted_count};
    assert_true(dryi_lives_index(&c->index));
}

static void
drop_crowd(struct crowd *c)
{
    dryi_lives_finish(&c->index);
    free(c->lives);
}

static uint32_t
scan(const struct crowd *c, uint32_t moment, uint32_t from, uint32_t limit)
{
    for (uint32_t i = from; i < limit; i++) {
        if (c->lives[i].begin <= moment && moment < c->lives[i].end)
            return i;
    }
    return DRYI_LIVES_NONE;
}

static void
check_moment(const struct crowd *c, uint32_t moment)
{
    uint32_t expected = scan(c, moment, 0, c->count);
    uint32_t found = dryi_lives_next(&c->index, moment, 0);
    while (expected != DRYI_LIVES_NONE) {
        assert_int_equal(found, expected);
        expected = scan(c, moment, expected + 1, c->count);
        found = dryi_lives_next(&c->index, moment, found + 1);
    }
    assert_int_equal(found, DRYI_LIVES_NONE);
}

static void
check_sorted(const struct crowd *c, uint32_t moment, uint32_t from)
{
    uint32_t begun = 0;
    while (begun < c->sorted_count && c->lives[begun].begin <= moment)
        begun++;
    assert_int_equal(dryi_lives_begun(&c->index, moment), begun);
    assert_int_equal(dryi_lives_next_sorted(&c->index, moment, from, begun),
                     scan(c, moment, from, c->sorted_count));
}

static void
check_crowd(uint64_t seed, uint32_t sorted_count, uint32_t other_count, uint32_t draws)
{
    struct random r;
    struct crowd c;
    random_init(&r, seed);
    make_crowd(&c, &r, sorted_count, other_count);
    check_moment(&c, 0);
    check_moment(&c, c.moment_count);
    check_moment(&c, UINT32_MAX - 1);
    check_moment(&c, UINT32_MAX);
    for (uint32_t i = 0; i < draws; i++) {
        uint32_t moment = (uint32_t)random_below(&r, c.moment_count);
        uint32_t from = (uint32_t)random_below(&r, (uint64_t)c.count + 1);
        check_moment(&c, moment);
        check_sorted(&c, moment, from);
        assert_int_equal(dryi_lives_next(&c.index, moment, from),
                         scan(&c, moment, from, c.count));
    }
    drop_crowd(&c);
}

static void
lives_are_those_of_a_scan(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0,  1,   2,   15,  16,  17,  31,   32,   33,
                                      47, 255, 256, 257, 271, 272, 4095, 4096, 4097};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint32_t draws = counts[i] < 300 ? 200 : 12;
        check_crowd(i, counts[i], 0, draws);
        check_crowd(i, 0, counts[i], draws);
        check_crowd(i, counts[i], 19, draws);
        check_crowd(i, 19, counts[i], draws);
    }
    for (uint64_t seed = 100; seed < 160; seed++)
        check_crowd(seed, (uint32_t)seed * 7 % 600, (uint32_t)seed * 11 % 90, 40);
}

/* Far beyond one tree: a level more, with lives that the levels below must not hide. */
static void
one_long_life_is_found_among_short_ones(void **state)
{
    (void)state;
    enum { COUNT = 70000 };
    for (uint32_t longest = 0; longest < COUNT; longest += 4369) {
        struct crowd c = {.count = COUNT, .sorted_count = COUNT};
        c.lives = calloc(COUNT, sizeof *c.lives);
        assert_non_null(c.lives);
        for (uint32_t i = 0; i < COUNT; i++)
            c.lives[i] = (struct life){.begin = i + 1, .end = i + 2};
        c.lives[longest].end = UINT32_MAX;
        c.index = (struct dryi_lives){.memory = dryi_memory_or_default(NULL),
                                      .begins = &c.lives->begin,
                                      .ends = &c.lives->end,
                                      .step = STEP,
                                      .count = COUNT,
                                      .sorted_count = COUNT};
        assert_true(dryi_lives_index(&c.index));
        assert_int_equal(c.index.level_count, 5); /* 4375, 274, 18, 2, 1 */
        assert_int_equal(dryi_lives_next(&c.index, COUNT + 1, 0), longest);
        assert_int_equal(dryi_lives_next(&c.index, COUNT + 1, longest + 1),
                         DRYI_LIVES_NONE);
        drop_crowd(&c);
    }
}

static void
without_memory_there_is_no_tree(void **state)
{
    (void)state;
    struct life lives[300];
    for (uint32_t i = 0; i < 300; i++)
        lives[i] = (struct life){.begin = i, .end = i + 3};
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dryi_lives index = {.memory = failing_memory_init(&fm, n),
                                   .begins = &lives->begin,
                                   .ends = &lives->end,
                                   .step = STEP,
                                   .count = 300,
                                   .sorted_count = 300};
        bool is_indexed = dryi_lives_index(&index);
        assert_int_equal(is_indexed, !fm.failed);
        dryi_lives_finish(&index);
        failing_memory_finish(&fm);
        if (!fm.failed)
            return;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lives_are_those_of_a_scan),
        cmocka_unit_test(one_long_life_is_found_among_short_ones),
        cmocka_unit_test(without_memory_there_is_no_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
