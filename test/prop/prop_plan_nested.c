/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nested planner against the shortest way through all states of memory, against all plans
 * of one level, and against itself: more memory, wider windows, coarser grids.
 */
#include "support/cmocka.h"

#include <stdio.h>

#include "support/chains.h"

#define SEED UINT64_C(20261121)
#define INFEASIBLE UINT64_MAX

struct answer {
    uint64_t time, bound, floor, peak;
};

static struct dry_plan_options
make_options(uint64_t budget)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.method = DRY_METHOD_NESTED;
    options.budget_bytes = budget;
    return options;
}

static void
assert_naive_evaluation_agrees(const struct dry_chain *chain, const struct dry_plan *plan)
{
    size_t count;
    const struct dry_plan_item *items = dry_plan_get_items(plan, &count);
    const struct dry_plan_cost *said = &dry_plan_get_summary(plan)->cost;
    struct dry_plan_cost cost = chains_evaluate(chain, items, count);
    assert_int_equal(cost.peak_bytes, said->peak_bytes);
    assert_int_equal(cost.time_ns, said->time_ns);
}

static struct answer
ask(const struct dry_chain *chain, const struct dry_plan_options *options)
{
    struct dry_plan *plan;
    struct dry_error err;
    enum dry_status status = dry_plan_create(chain, options, &plan, &err);
    if (status == DRY_ERR_NO_SPACE)
        return (struct answer){.time = INFEASIBLE};
    assert_int_equal(status, DRY_OK);
    const struct dry_plan_summary *s = dry_plan_get_summary(plan);
    struct answer a = {s->cost.time_ns, s->bound_ns, s->floor_bytes, s->cost.peak_bytes};
    assert_true(a.peak <= options->budget_bytes);
    assert_true(a.bound <= a.time);
    assert_true(a.floor <= options->budget_bytes);
    assert_naive_evaluation_agrees(chain, plan);
    dry_plan_destroy(plan);
    return a;
}

static uint64_t
sum_of(const struct dry_chain *chain)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < dry_chain_get_count(chain); i++) {
        const struct dry_stage *stage = dry_chain_get_stage(chain, i);
        sum += stage->saved_bytes + stage->gradient_bytes + stage->grads_bytes;
        sum += stage->forward_tmp_bytes + stage->backward_tmp_bytes;
    }
    const struct dry_chain_frame *frame = dry_chain_get_frame(chain);
    return sum + frame->persistent_bytes + frame->input_bytes + frame->step_bytes + 1;
}

/* --- the optimum --------------------------------------------------------------------------- */

struct tally {
    uint64_t asked, equal, infeasible;
    uint64_t tight, tight_equal; /* where not all can be saved */
    double worst;
};

/*
 * Plans are persistent: what is kept stays until its backward. Few chains are turned back faster
 * by letting a thing go and making it again, and none may be by the planner.
 */
static void
compare_with_optimum(struct random *r, const struct chains_form *form, uint64_t chains,
                     struct tally *tally)
{
    for (uint64_t n = 0; n < chains; n++) {
        struct dry_chain *chain = chains_make(r, form);
        struct dry_plan_options options = make_options(random_below(r, sum_of(chain)));
        struct answer a = ask(chain, &options);
        uint64_t optimum = chains_optimum(chain, options.budget_bytes);
        assert_true(a.time >= optimum);
        if (optimum == INFEASIBLE) {
            tally->infeasible++;
        } else {
            assert_true(a.time < INFEASIBLE);
            double ratio = optimum ? (double)a.time / (double)optimum : 1;
            tally->worst = ratio > tally->worst ? ratio : tally->worst;
            tally->asked++;
            tally->equal += a.time == optimum;
            if (optimum > dry_chain_get_time(chain)) {
                tally->tight++;
                tally->tight_equal += a.time == optimum;
            }
            assert_int_equal(a.bound, a.time);
        }
        dry_chain_destroy(chain);
    }
}

static void
small_chains_take_the_least_there_is(void **state)
{
    (void)state;
    struct random r;
    struct tally tally = {.worst = 1};
    struct chains_form bare = {.stages_min = 1, .stages_max = 6};
    struct chains_form all = {.stages_min = 2,
                              .stages_max = 5,
                              .options_max = 2,
                              .has_frame = true,
                              .has_tmp = true,
                              .has_own_tmp = true,
                              .has_grads = true};
    random_init(&r, SEED);
    compare_with_optimum(&r, &bare, 40000, &tally);
    compare_with_optimum(&r, &all, 20000, &tally);
    printf("%llu fit, %llu of them as fast as can be; %llu recompute, %llu as fast as "
           "can be; "
           "worst %.4f; %llu do not fit; seed %llu\n",
           (unsigned long long)tally.asked, (unsigned long long)tally.equal,
           (unsigned long long)tally.tight, (unsigned long long)tally.tight_equal,
           tally.worst, (unsigned long long)tally.infeasible, (unsigned long long)SEED);
    assert_true(tally.asked >= 10000 && tally.tight >= 10000);
    assert_true(tally.tight_equal * 100 >= tally.tight * 99);
    assert_true(tally.worst <= 1.15);
}

/* --- one level ----------------------------------------------------------------------------- */

static void
one_level_is_never_better(void **state)
{
    (void)state;
    struct random r;
    static struct chains_point points[CHAINS_POINTS_MAX];
    struct chains_form form = {.stages_min = 1,
                               .stages_max = 8,
                               .options_max = 1,
                               .has_frame = true,
                               .has_tmp = true,
                               .has_own_tmp = true,
                               .has_grads = true,
                               .has_fixed = true};
    uint64_t better = 0;
    random_init(&r, SEED + 1);
    for (unsigned n = 0; n < 600; n++) {
        struct dry_chain *chain = chains_make(&r, &form);
        size_t count = chains_one_level(chain, points);
        uint64_t most = points[count - 1].peak_bytes;
        for (uint64_t budget = points[0].peak_bytes / 2; budget <= most; budget++) {
            struct dry_plan_options options = make_options(budget);
            uint64_t time = ask(chain, &options).time;
            uint64_t least = chains_least_time(points, count, budget);
            assert_true(time <= least);
            better += time < least;
        }
        dry_chain_destroy(chain);
    }
    printf("better %llu times\n", (unsigned long long)better);
    assert_true(better > 100);
}

/* Whatever the grid, and with what goes to the host. */
static void
the_planner_of_one_level_is_never_better(void **state)
{
    (void)state;
    struct random r;
    struct chains_form form = {.stages_min = 6,
                               .stages_max = 16,
                               .options_max = 2,
                               .bytes_max = 400,
                               .ns_max = 1000,
                               .has_frame = true,
                               .has_tmp = true,
                               .has_own_tmp = true,
                               .has_grads = true,
                               .has_fixed = true,
                               .has_offload = true};
    random_init(&r, SEED + 6);
    for (unsigned n = 0; n < 2000; n++) {
        struct dry_chain *chain = chains_make(&r, &form);
        struct dry_plan_options options = make_options(random_below(&r, sum_of(chain)));
        options.slots = (uint32_t)(1 + random_below(&r, 100));
        uint64_t time = ask(chain, &options).time;
        options.method = DRY_METHOD_ONE_LEVEL;
        assert_true(time <= ask(chain, &options).time);
        dry_chain_destroy(chain);
    }
}

/* --- itself -------------------------------------------------------------------------------- */

static const struct chains_form rich = {.stages_min = 6,
                                        .stages_max = 16,
                                        .options_max = 2,
                                        .bytes_max = 40,
                                        .ns_max = 1000,
                                        .has_frame = true,
                                        .has_tmp = true,
                                        .has_own_tmp = true,
                                        .has_grads = true,
                                        .has_fixed = true};

/* The least budget of all is the one below which nothing fits. */
static void
more_memory_takes_no_more_time(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, SEED + 2);
    for (unsigned n = 0; n < 60; n++) {
        struct dry_chain *chain = chains_make(&r, &rich);
        uint64_t before = INFEASIBLE, floor = 0, sum = sum_of(chain);
        for (uint64_t budget = 0; budget <= sum + 5; budget += 5) {
            struct dry_plan_options options = make_options(budget);
            options.slots = 5000; /* more than there are bytes */
            struct answer a = ask(chain, &options);
            assert_true(a.time <= before);
            assert_true(a.time == INFEASIBLE || a.time == a.bound);
            before = a.time;
            floor = a.time == INFEASIBLE ? 0 : a.floor;
        }
        assert_int_equal(before, dry_chain_get_time(chain));
        struct dry_plan_options options = make_options(floor);
        assert_true(ask(chain, &options).time < INFEASIBLE);
        options.budget_bytes = floor - (floor > 0);
        assert_true(floor == 0 || ask(chain, &options).time == INFEASIBLE);
        dry_chain_destroy(chain);
    }
}

static void
wider_windows_take_no_more_time(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, SEED + 3);
    for (unsigned n = 0; n < 300; n++) {
        struct dry_chain *chain = chains_make(&r, &rich);
        struct dry_plan_options options = make_options(random_below(&r, sum_of(chain)));
        uint64_t before = INFEASIBLE;
        options.slots = 5000;
        for (options.window = 1; options.window <= 16; options.window++) {
            uint64_t time = ask(chain, &options).time;
            assert_true(time <= before);
            before = time;
        }
        dry_chain_destroy(chain);
    }
}

/* Whatever the grid: within the budget, not below the bound, there whenever a plan is. */
static void
coarse_grids_plan_within_the_budget(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, SEED + 4);
    for (unsigned n = 0; n < 3000; n++) {
        struct chains_form form = rich;
        form.has_offload = n % 2;
        struct dry_chain *chain = chains_make(&r, &form);
        struct dry_plan_options options = make_options(random_below(&r, sum_of(chain)));
        options.slots = 5000;
        struct answer exact = ask(chain, &options);
        static const uint32_t slots[] = {1, 2, 3, 7, 20, 50};
        for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
            options.slots = slots[i];
            struct answer a = ask(chain, &options);
            assert_int_equal(a.time == INFEASIBLE, exact.time == INFEASIBLE);
            assert_true(a.time == INFEASIBLE || a.bound <= exact.time);
            assert_true(form.has_offload || a.time >= exact.time);
        }
        dry_chain_destroy(chain);
    }
}

static uint64_t
ask_time(const struct dry_chain *chain, const struct dry_plan_options *options)
{
    struct dry_plan *plan;
    enum dry_status status = dry_plan_create(chain, options, &plan, NULL);
    if (status == DRY_ERR_NO_SPACE)
        return INFEASIBLE;
    assert_int_equal(status, DRY_OK);
    uint64_t time = dry_plan_get_summary(plan)->cost.time_ns;
    dry_plan_destroy(plan);
    return time;
}

/* A stage and itself once more, at a place where nothing else changes. */
static struct dry_chain *
repeat_stage(const struct dry_chain *chain, size_t twice)
{
    struct dry_chain *longer;
    struct dry_error err;
    enum dry_status status =
        dry_chain_create(dry_chain_get_frame(chain), NULL, &longer, &err);
    assert_int_equal(status, DRY_OK);
    for (size_t i = 0; i < dry_chain_get_count(chain); i++) {
        status =
            dry_chain_add(longer, dry_chain_get_stage(chain, i), 1 + (i == twice), &err);
        assert_int_equal(status, DRY_OK);
    }
    return longer;
}

/* Any plan of the longer chain is one of the shorter without that stage, and takes more. */
static void
a_stage_twice_takes_no_less(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, SEED + 7);
    for (unsigned n = 0; n < 500; n++) {
        struct dry_chain *chain = chains_make(&r, &rich);
        size_t twice = random_below(&r, dry_chain_get_count(chain));
        struct dry_plan_options options = make_options(random_below(&r, sum_of(chain)));
        options.slots = 5000;
        options.window = 20;
        struct dry_chain *longer = repeat_stage(chain, twice);
        uint64_t time = ask_time(chain, &options), more = ask_time(longer, &options);
        assert_true(time <= more);
        dry_chain_destroy(chain);
        dry_chain_destroy(longer);
    }
}

static void
the_same_twice(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, SEED + 5);
    for (unsigned n = 0; n < 200; n++) {
        struct dry_chain *chain = chains_make(&r, &rich);
        struct dry_plan_options options = make_options(sum_of(chain) / 2);
        struct dry_plan *plans[2];
        struct dry_error err;
        options.slots = 30;
        if (dry_plan_create(chain, &options, &plans[0], &err) == DRY_OK) {
            assert_int_equal(dry_plan_create(chain, &options, &plans[1], &err), DRY_OK);
            assert_int_equal(dry_plan_get_summary(plans[0])->hash,
                             dry_plan_get_summary(plans[1])->hash);
            dry_plan_destroy(plans[0]);
            dry_plan_destroy(plans[1]);
        }
        dry_chain_destroy(chain);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_chains_take_the_least_there_is),
        cmocka_unit_test(one_level_is_never_better),
        cmocka_unit_test(the_planner_of_one_level_is_never_better),
        cmocka_unit_test(more_memory_takes_no_more_time),
        cmocka_unit_test(wider_windows_take_no_more_time),
        cmocka_unit_test(coarse_grids_plan_within_the_budget),
        cmocka_unit_test(a_stage_twice_takes_no_less),
        cmocka_unit_test(the_same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
