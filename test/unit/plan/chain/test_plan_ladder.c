/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The methods beside each other: what a wider class of plans can do is never worse, in time or
 * in the least budget, and nothing is better than the bound of a class it belongs to.
 */
#include "support/cmocka.h"

#include <drystone/plan.h>

#include "support/chains.h"

#define NEVER UINT64_MAX

/* From the widest class to plans of one level made by rules. */
static const enum dry_plan_method ladder[] = {
    DRY_METHOD_NESTED, DRY_METHOD_ONE_LEVEL, DRY_METHOD_SQRT, DRY_METHOD_GREEDY,
    DRY_METHOD_BLOCK,  DRY_METHOD_EVERY,     DRY_METHOD_NONE};
#define RUNGS (sizeof ladder / sizeof *ladder)

struct rung {
    uint64_t time, bound; /* NEVER: nothing fits */
};

static struct rung
climb(const struct dry_chain *chain, enum dry_plan_method method, uint64_t budget)
{
    struct dry_plan_options options;
    struct dry_plan *plan;
    dry_plan_options_init(&options);
    options.method = method;
    options.budget_bytes = budget;
    enum dry_status status = dry_plan_create(chain, &options, &plan, NULL);
    if (status == DRY_ERR_NO_SPACE)
        return (struct rung){NEVER, NEVER};
    assert_int_equal(status, DRY_OK);
    const struct dry_plan_summary *s = dry_plan_get_summary(plan);
    assert_true(s->floor_bytes <= s->cost.peak_bytes && s->cost.peak_bytes <= budget);
    struct rung rung = {s->cost.time_ns, s->bound_ns};
    dry_plan_destroy(plan);
    return rung;
}

static uint64_t
floor_by(const struct dry_chain *chain, enum dry_plan_method method)
{
    struct dry_plan_options options;
    struct dry_plan *plan;
    dry_plan_options_init(&options);
    options.method = method;
    assert_int_equal(dry_plan_create(chain, &options, &plan, NULL), DRY_OK);
    uint64_t floor = dry_plan_get_summary(plan)->floor_bytes;
    dry_plan_destroy(plan);
    return floor;
}

/*
 * On a few hundred bytes 500 slots round nothing, so that both tables are exact. All rules
 * here make plans of one level, and these are nested ones that nest nothing. Nothing is
 * offloaded: the nested table holds such bytes all the time.
 */
static void
wider_classes_are_never_worse(void **state)
{
    (void)state;
    const struct chains_form form = {.stages_min = 1,
                                     .stages_max = 14,
                                     .options_max = 1,
                                     .has_frame = true,
                                     .has_tmp = true,
                                     .has_grads = true,
                                     .has_fixed = true};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct random r;
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form);
        uint64_t floors[RUNGS];
        for (size_t i = 0; i < RUNGS; i++)
            floors[i] = floor_by(chain, ladder[i]);
        assert_true(floors[0] <= floors[1]);
        for (size_t i = 2; i < RUNGS; i++)
            assert_true(floors[1] <= floors[i]);
        uint64_t budget = floors[0] + random_below(&r, 40);
        struct rung nested = climb(chain, ladder[0], budget);
        struct rung one = climb(chain, ladder[1], budget);
        assert_true(nested.time <= one.time && nested.bound <= one.time);
        for (size_t i = 2; i < RUNGS; i++) {
            struct rung rule = climb(chain, ladder[i], budget);
            if (one.time > rule.time || one.bound > rule.time)
                fail_msg("seed %llu: %s is better than one-level",
                         (unsigned long long)seed, dry_method_name(ladder[i]));
        }
        dry_chain_destroy(chain);
    }
}

/* The same chain plans the same, whatever was planned before. */
static void
plans_are_deterministic(void **state)
{
    (void)state;
    const struct chains_form form = {.stages_min = 8,
                                     .stages_max = 16,
                                     .options_max = 2,
                                     .bytes_max = 1000,
                                     .ns_max = 1000,
                                     .has_tmp = true};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct random r;
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form);
        for (size_t i = 0; i < RUNGS; i++) {
            struct dry_plan_options options;
            struct dry_plan *plan, *again;
            dry_plan_options_init(&options);
            options.method = ladder[i];
            options.budget_bytes = floor_by(chain, ladder[i]) + 100;
            assert_int_equal(dry_plan_create(chain, &options, &plan, NULL), DRY_OK);
            assert_int_equal(dry_plan_create(chain, &options, &again, NULL), DRY_OK);
            assert_true(dry_plan_get_summary(plan)->hash ==
                        dry_plan_get_summary(again)->hash);
            dry_plan_destroy(plan);
            dry_plan_destroy(again);
        }
        dry_chain_destroy(chain);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wider_classes_are_never_worse),
        cmocka_unit_test(plans_are_deterministic),
    };
    return cmocka_run_group_tests_name("plan_ladder", tests, NULL, NULL);
}
