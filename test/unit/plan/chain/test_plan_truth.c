/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The truth that planners are held against (support/chains.h) against small chains whose best
 * times are known, worked out apart from this library, and against each other.
 */
#include "support/cmocka.h"

#include "support/chains.h"

#define NEVER UINT64_MAX

/* The least time from a budget on, up to the next row. */
struct row {
    uint64_t budget, optimum, one_level;
};

static void
require_rows(const struct chains_rows *chain_rows, const struct row *rows, size_t count)
{
    static struct chains_point points[CHAINS_POINTS_MAX];
    struct dry_chain *chain = chains_of_rows(chain_rows);
    size_t point_count = chains_one_level(chain, points);
    for (size_t i = 0; i + 1 < count; i++) {
        for (uint64_t m = rows[i].budget; m < rows[i + 1].budget; m++) {
            assert_int_equal(chains_optimum(chain, m), rows[i].optimum);
            assert_int_equal(chains_least_time(points, point_count, m),
                             rows[i].one_level);
        }
    }
    dry_chain_destroy(chain);
}

static void
four_equal_stages(void **state)
{
    (void)state;
    static const uint64_t f[] = {1, 1, 1, 1}, b[] = {2, 2, 2, 2}, a[] = {1, 1, 1, 1},
                          saved[] = {3, 3, 3, 3};
    static const struct row rows[] = {{0, NEVER, NEVER}, {6, 18, NEVER}, {7, 16, NEVER},
                                      {8, 15, 15},       {9, 14, 14},    {12, 13, 13},
                                      {14, 12, 12},      {20, 0, 0}};
    require_rows(&(struct chains_rows){.count = 4,
                                       .forward = f,
                                       .backward = b,
                                       .output = a,
                                       .saved = saved,
                                       .frame.input_gradient_bytes = 1},
                 rows, sizeof rows / sizeof *rows);
}

static void
six_equal_stages(void **state)
{
    (void)state;
    static const uint64_t f[] = {1, 1, 1, 1, 1, 1}, b[] = {2, 2, 2, 2, 2, 2},
                          a[] = {1, 1, 1, 1, 1, 1}, saved[] = {4, 4, 4, 4, 4, 4};
    static const struct row rows[] = {{0, NEVER, NEVER}, {7, 33, NEVER}, {8, 26, NEVER},
                                      {9, 25, NEVER},    {10, 23, 23},   {12, 22, 22},
                                      {15, 21, 21},      {19, 20, 20},   {23, 19, 19},
                                      {26, 18, 18},      {30, 0, 0}};
    require_rows(&(struct chains_rows){.count = 6,
                                       .forward = f,
                                       .backward = b,
                                       .output = a,
                                       .saved = saved,
                                       .frame.input_gradient_bytes = 1},
                 rows, sizeof rows / sizeof *rows);
}

/* For nested and true optima; one-level ones are larger below 19 and are not looked at. */
static void
five_unequal_stages(void **state)
{
    (void)state;
    static const uint64_t f[] = {3, 1, 4, 1, 5}, b[] = {6, 2, 8, 2, 10},
                          a[] = {2, 1, 3, 1, 1}, saved[] = {5, 3, 6, 2, 4};
    static const struct {
        uint64_t from, to, time;
    } rows[] = {{0, 10, NEVER}, {11, 11, 51}, {12, 13, 50}, {14, 14, 47},
                {15, 18, 46},   {19, 19, 44}, {20, 21, 43}, {22, 30, 42}};
    struct dry_chain *chain =
        chains_of_rows(&(struct chains_rows){.count = 5,
                                             .forward = f,
                                             .backward = b,
                                             .output = a,
                                             .saved = saved,
                                             .frame.input_gradient_bytes = 2});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t m = rows[i].from; m <= rows[i].to; m++)
            assert_int_equal(chains_optimum(chain, m), rows[i].time);
    }
    dry_chain_destroy(chain);
}

/* One of the gradients alone binds. */
static void
either_gradient_can_bind(void **state)
{
    (void)state;
    static const uint64_t f[] = {1, 1}, b[] = {2, 2}, a[] = {1, 1}, saved[] = {2, 2},
                          last_is_large[] = {1, 5};
    static const struct row first_binds[] = {{0, NEVER, NEVER}, {8, 6, 6}, {12, 0, 0}};
    static const struct row last_binds[] = {
        {0, NEVER, NEVER}, {9, 7, 7}, {10, 6, 6}, {14, 0, 0}};
    struct chains_rows rows = {.count = 2,
                               .forward = f,
                               .backward = b,
                               .output = a,
                               .saved = saved,
                               .frame.input_gradient_bytes = 5};
    require_rows(&rows, first_binds, 3);
    rows.gradient = last_is_large;
    rows.frame.input_gradient_bytes = 1;
    require_rows(&rows, last_binds, 4);
}

/* No plan is better than the optimum, and all plans of one level are among all ways. */
static void
no_plan_beats_the_optimum(void **state)
{
    (void)state;
    const struct chains_form form = {.stages_min = 1,
                                     .stages_max = 5,
                                     .options_max = 1,
                                     .has_frame = true,
                                     .has_tmp = true,
                                     .has_grads = true};
    static struct chains_point points[CHAINS_POINTS_MAX];
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random r;
        struct dry_plan_item items[64];
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form);
        for (unsigned i = 0; i < 5; i++) {
            size_t count = chains_random_plan(&r, chain, items, 64);
            struct dry_plan_cost cost = chains_evaluate(chain, items, count);
            assert_true(chains_optimum(chain, cost.peak_bytes) <= cost.time_ns);
        }
        size_t count = chains_one_level(chain, points);
        assert_true(count > 0);
        assert_int_equal(points[count - 1].time_ns, dry_chain_get_time(chain));
        for (size_t i = 0; i < count; i++)
            assert_true(chains_optimum(chain, points[i].peak_bytes) <= points[i].time_ns);
        dry_chain_destroy(chain);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_equal_stages),
        cmocka_unit_test(six_equal_stages),
        cmocka_unit_test(five_unequal_stages),
        cmocka_unit_test(either_gradient_can_bind),
        cmocka_unit_test(no_plan_beats_the_optimum),
    };
    return cmocka_run_group_tests_name("plan_truth", tests, NULL, NULL);
}
