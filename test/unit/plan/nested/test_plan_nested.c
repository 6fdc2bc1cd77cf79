/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nested planner: chains whose best plans are known, Revolve's counts, gradients on both
 * sides of a stage, stages that must not run twice, options, windows, limits, every failed
 * allocation.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/plan.h>

#include "support/failing_memory.h"

#define INFEASIBLE UINT64_MAX

static struct dry_chain *
make_chain(uint64_t input_gradient, const struct dry_stage *stages, size_t count)
{
    struct dry_chain_frame frame = {.input_gradient_bytes = input_gradient};
    struct dry_chain *chain;
    struct dry_error err;
    assert_int_equal(dry_chain_create(&frame, NULL, &chain, &err), DRY_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(dry_chain_add(chain, &stages[i], 1, &err), DRY_OK);
    return chain;
}

static struct dry_plan_options
make_options(uint64_t budget)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.method = DRY_METHOD_NESTED;
    options.budget_bytes = budget;
    return options;
}

/* The time; INFEASIBLE. On a grid as fine as bytes the bound is met. */
static uint64_t
plan_time(const struct dry_chain *chain, const struct dry_plan_options *options)
{
    struct dry_plan *plan;
    struct dry_error err;
    enum dry_status status = dry_plan_create(chain, options, &plan, &err);
    if (status == DRY_ERR_NO_SPACE)
        return INFEASIBLE;
    assert_int_equal(status, DRY_OK);
    const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
    uint64_t time = summary->cost.time_ns;
    assert_true(summary->cost.peak_bytes <= options->budget_bytes);
    assert_true(summary->bound_ns <= time);
    assert_true(summary->floor_bytes <= options->budget_bytes);
    dry_plan_destroy(plan);
    return time;
}

static uint64_t
time_within(const struct dry_chain *chain, uint64_t budget)
{
    struct dry_plan_options options = make_options(budget);
    return plan_time(chain, &options);
}

static uint64_t
bound_within(const struct dry_chain *chain, uint64_t budget)
{
    struct dry_plan_options options = make_options(budget);
    struct dry_plan *plan;
    struct dry_error err;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_OK);
    uint64_t bound = dry_plan_get_summary(plan)->bound_ns;
    dry_plan_destroy(plan);
    return bound;
}

/* --- chains whose best plans are known ----------------------------------------------------- */

/* Times by budget, from `first` on; the last holds for all above. */
static void
assert_times(const struct dry_chain *chain, uint64_t first, const uint64_t *times,
             size_t count)
{
    for (uint64_t budget = 0; budget < first; budget++)
        assert_int_equal(time_within(chain, budget), INFEASIBLE);
    for (uint64_t budget = first; budget < first + count + 5; budget++) {
        uint64_t at = budget - first < count ? budget - first : count - 1;
        assert_int_equal(time_within(chain, budget), times[at]);
        assert_int_equal(bound_within(chain, budget), times[at]);
    }
}

static void
four_equal_stages_take_what_is_proved(void **state)
{
    (void)state;
    struct dry_stage stage = {.forward_ns = 1,
                              .backward_ns = 2,
                              .output_bytes = 1,
                              .gradient_bytes = 1,
                              .saved_bytes = 3};
    struct dry_stage stages[] = {stage, stage, stage, stage};
    static const uint64_t times[] = {18, 16, 15, 14, 14, 14, 13, 13, 12};
    struct dry_chain *chain = make_chain(1, stages, 4);
    assert_times(chain, 6, times, 9);
    dry_chain_destroy(chain);
}

static void
six_equal_stages_take_what_is_proved(void **state)
{
    (void)state;
    struct dry_stage stage = {.forward_ns = 1,
                              .backward_ns = 2,
                              .output_bytes = 1,
                              .gradient_bytes = 1,
                              .saved_bytes = 4};
    struct dry_stage stages[] = {stage, stage, stage, stage, stage, stage};
    static const uint64_t times[] = {33, 26, 25, 23, 23, 22, 22, 22, 21, 21,
                                     21, 21, 20, 20, 20, 20, 19, 19, 19, 18};
    struct dry_chain *chain = make_chain(1, stages, 6);
    assert_times(chain, 7, times, 20);
    dry_chain_destroy(chain);
}

static void
five_unequal_stages_take_what_is_proved(void **state)
{
    (void)state;
    static const uint64_t forward[] = {3, 1, 4, 1, 5}, backward[] = {6, 2, 8, 2, 10};
    static const uint64_t output[] = {2, 1, 3, 1, 1}, saved[] = {5, 3, 6, 2, 4};
    static const uint64_t times[] = {51, 50, 50, 47, 46, 46, 46, 46, 44, 43, 43, 42};
    struct dry_stage stages[5];
    for (size_t i = 0; i < 5; i++)
        stages[i] = (struct dry_stage){.forward_ns = forward[i],
                                       .backward_ns = backward[i],
                                       .output_bytes = output[i],
                                       .gradient_bytes = output[i],
                                       .saved_bytes = saved[i]};
    struct dry_chain *chain = make_chain(2, stages, 5);
    assert_times(chain, 11, times, 12);
    dry_chain_destroy(chain);
}

static void
gradients_of_output_and_of_input_are_charged(void **state)
{
    (void)state;
    struct dry_stage stage = {.forward_ns = 1,
                              .backward_ns = 2,
                              .output_bytes = 1,
                              .gradient_bytes = 1,
                              .saved_bytes = 2};
    struct dry_stage last = stage;
    last.gradient_bytes = 5;
    static const uint64_t of_input[] = {6}, of_output[] = {7, 6};
    struct dry_stage low[] = {stage, stage}, high[] = {stage, last};
    struct dry_chain *chain = make_chain(5, low, 2);
    assert_times(chain, 8, of_input, 1);
    dry_chain_destroy(chain);
    chain = make_chain(1, high, 2);
    assert_times(chain, 9, of_output, 2);
    dry_chain_destroy(chain);
}

/* Griewank and Walther: r steps - binomial(c + r, r - 1). */
static uint64_t
count_revolve(uint64_t steps, uint64_t snapshots)
{
    uint64_t reach = 1, r = 0, below = 0; /* binomial(c + r, r), binomial(c + r, r - 1) */
    while (reach < steps) {
        r++;
        reach = reach * (snapshots + r) / r;
        below = reach * r / (snapshots + 1);
    }
    return r * steps - (r ? below : 0);
}

static void
equal_steps_without_tapes_are_turned_back_as_revolve_does(void **state)
{
    (void)state;
    struct dry_stage step = {.forward_ns = 1, .output_bytes = 1, .saved_bytes = 12};
    size_t met = 0;
    assert_int_equal(count_revolve(10, 3), 15);
    assert_int_equal(count_revolve(100, 5), 316);
    for (size_t steps = 2; steps <= 40; steps += steps < 12 ? 1 : 7) {
        struct dry_chain *chain = make_chain(0, NULL, 0);
        struct dry_error err;
        assert_int_equal(dry_chain_add(chain, &step, steps, &err), DRY_OK);
        for (uint64_t snapshots = 1; snapshots <= 10; snapshots++) {
            struct dry_plan_options options = make_options(12 + snapshots);
            options.window = (uint32_t)steps;
            assert_int_equal(plan_time(chain, &options),
                             steps + count_revolve(steps, snapshots));
            met++;
        }
        dry_chain_destroy(chain);
    }
    assert_true(met > 65);
}

/* --- rules --------------------------------------------------------------------------------- */

static const struct dry_stage plain_stage = {.forward_ns = 10,
                                             .backward_ns = 20,
                                             .output_bytes = 10,
                                             .gradient_bytes = 10,
                                             .saved_bytes = 80};

static void
a_stage_that_must_not_run_twice_is_saved(void **state)
{
    (void)state;
    struct dry_stage stages[8];
    for (size_t i = 0; i < 8; i++)
        stages[i] = plain_stage;
    stages[3].is_fixed = true;
    struct dry_chain *chain = make_chain(0, stages, 8);
    struct dry_plan_options options = make_options(0);
    struct dry_plan *plan;
    struct dry_error err;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_ERR_NO_SPACE);
    for (options.budget_bytes = 180; options.budget_bytes < 700;
         options.budget_bytes += 10) {
        if (dry_plan_create(chain, &options, &plan, &err) != DRY_OK)
            continue;
        const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
        assert_true(summary->cost.peak_bytes <= options.budget_bytes);
        size_t count;
        const struct dry_plan_item *items = dry_plan_get_items(plan, &count);
        for (size_t i = 0; i < count; i++)
            assert_true(items[i].kind == DRY_PLAN_SAVE || items[i].last < 3 ||
                        items[i].first > 3);
        dry_plan_destroy(plan);
    }
    assert_int_equal(time_within(chain, 8 * 80 + 20), 8 * 30);
    dry_chain_destroy(chain);
}

static void
all_fixed_leaves_one_plan(void **state)
{
    (void)state;
    struct dry_stage stage = plain_stage;
    stage.is_fixed = true;
    struct dry_stage stages[] = {stage, stage, stage};
    static const uint64_t times[] = {90};
    struct dry_chain *chain = make_chain(0, stages, 3);
    assert_times(chain, 3 * 80 + 20, times, 1);
    dry_chain_destroy(chain);
}

static void
an_option_is_taken_where_it_is_cheaper_than_a_range(void **state)
{
    (void)state;
    struct dry_stage_option lighter = {.saved_bytes = 50, .recompute_ns = 1};
    struct dry_stage stage = plain_stage;
    stage.options = &lighter;
    stage.option_count = 1;
    struct dry_stage stages[] = {stage, stage, stage};
    struct dry_chain *chain = make_chain(0, stages, 3);
    assert_int_equal(time_within(chain, 3 * 80 + 20), 90);
    assert_int_equal(time_within(chain, 3 * 80 + 20 - 1), 91);
    assert_int_equal(time_within(chain, 80 + 50 + 50 + 20), 92);
    assert_int_equal(time_within(chain, 50 + 50 + 50 + 20), 93);
    dry_chain_destroy(chain);
}

/* Two stages inside a range, the second's option saves what the first run of all cannot. */
static void
options_are_taken_inside_ranges_too(void **state)
{
    (void)state;
    struct dry_stage_option lighter = {.saved_bytes = 30, .recompute_ns = 1};
    struct dry_stage with = plain_stage;
    with.options = &lighter;
    with.option_count = 1;
    with.is_fixed = false;
    struct dry_stage fixed = {.forward_ns = 1,
                              .backward_ns = 1,
                              .output_bytes = 0,
                              .saved_bytes = 130,
                              .is_fixed = true};
    struct dry_stage stages[] = {with, with, fixed};
    struct dry_chain *chain = make_chain(0, stages, 3);
    /* Held at the last: 150 is 130 and 20 at most, so a range of two or more light ones. */
    uint64_t time = time_within(chain, 150);
    assert_int_equal(time, 2 * 30 + 2 + 2 * 10 + 1);
    dry_chain_destroy(chain);
}

static void
weight_gradients_are_there_when_earlier_stages_run_again(void **state)
{
    (void)state;
    struct dry_stage stages[] = {plain_stage, plain_stage, plain_stage};
    stages[2].grads_bytes = 100;
    struct dry_chain *chain = make_chain(0, stages, 3);
    /* Backward of the last: 2 outputs or more, its 80, 20 of gradients, 100 of weights. */
    assert_int_equal(time_within(chain, 10 + 80 + 20 + 100 - 1), INFEASIBLE);
    assert_int_equal(time_within(chain, 10 + 80 + 20 + 100), 90 + 30);
    assert_int_equal(time_within(chain, 20 + 80 + 20 + 100), 90 + 20);
    dry_chain_destroy(chain);
}

static void
what_the_frame_holds_is_under_everything(void **state)
{
    (void)state;
    struct dry_chain_frame frame = {.persistent_bytes = 1000, .input_bytes = 7};
    struct dry_chain *chain;
    struct dry_error err;
    assert_int_equal(dry_chain_create(&frame, NULL, &chain, &err), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &plain_stage, 4, &err), DRY_OK);
    assert_int_equal(time_within(chain, 1007 + 4 * 80 + 20), 120);
    assert_true(time_within(chain, 1007 + 4 * 80 + 19) > 120);
    assert_int_equal(time_within(chain, 1000), INFEASIBLE);
    dry_chain_destroy(chain);
}

static void
the_floor_is_the_least_budget_and_names_who_binds(void **state)
{
    (void)state;
    struct dry_stage stages[10];
    for (size_t i = 0; i < 10; i++)
        stages[i] = plain_stage;
    stages[6].backward_tmp_bytes = 333;
    struct dry_chain *chain = make_chain(0, stages, 10);
    struct dry_plan_options options = make_options(0);
    struct dry_plan *plan;
    struct dry_error err;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_ERR_NO_SPACE);
    assert_non_null(strstr(err.text, "backward of stage 6"));
    options.budget_bytes = 10 + 80 + 20 + 333; /* x(5), stage 6 */
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_OK);
    const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
    assert_int_equal(summary->floor_bytes, options.budget_bytes);
    assert_int_equal(summary->floor_stage, 6);
    assert_int_equal(summary->floor_phase, DRY_PHASE_BACKWARD);
    dry_plan_destroy(plan);
    options.budget_bytes--;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_ERR_NO_SPACE);
    dry_chain_destroy(chain);
}

static void
stages_of_no_bytes_and_no_time_are_planned(void **state)
{
    (void)state;
    struct dry_stage nothing = {0};
    struct dry_stage stages[] = {nothing, plain_stage, nothing,     plain_stage,
                                 nothing, nothing,     plain_stage, nothing};
    struct dry_chain *chain = make_chain(0, stages, 8);
    for (uint64_t budget = 90; budget < 270; budget++)
        (void)time_within(chain, budget);
    assert_int_equal(time_within(chain, 260), 90);
    dry_chain_destroy(chain);
    chain = make_chain(0, &nothing, 1);
    assert_int_equal(time_within(chain, 0), 0);
    dry_chain_destroy(chain);
}

/* --- the generated chain ------------------------------------------------------------------- */

static uint32_t
next(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

/* Thousandths of bytes' and of seconds' units; *sum of saved. */
static struct dry_chain *
generate(size_t count, uint64_t *sum)
{
    uint32_t x = 12345;
    uint64_t base = 300 + next(&x) % 1000;
    struct dry_chain *chain = make_chain(base, NULL, 0);
    *sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct dry_stage stage = {0};
        base = 300 + next(&x) % 1000;
        stage.output_bytes = stage.gradient_bytes = base;
        stage.saved_bytes = base * (2 + next(&x) % 16);
        stage.forward_ns = 1000 + 2 * (next(&x) % 1000);
        stage.backward_ns = 2 * stage.forward_ns;
        *sum += stage.saved_bytes;
        struct dry_error err;
        assert_int_equal(dry_chain_add(chain, &stage, 1, &err), DRY_OK);
    }
    return chain;
}

static void
hundred_stages_take_what_is_published_or_less(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(100, &sum);
    assert_int_equal(dry_chain_get_time(chain), 603744);
    struct dry_plan_options options = make_options(sum * 6 / 100);
    options.slots = 2000;
    assert_in_range(plan_time(chain, &options), 603744, 796008);
    options.budget_bytes = sum * 5 / 100;
    assert_in_range(plan_time(chain, &options), 603744, 817014);
    options.budget_bytes = sum * 15 / 100; /* 1.2406 by 16,000 slots rounded up */
    assert_in_range(plan_time(chain, &options), 603744, 749005);
    assert_in_range(bound_within(chain, sum * 15 / 100), 747500, 749005);
    dry_chain_destroy(chain);
}

/* Most of the budget is used, and the time is near the bound. */
static void
thousand_stages_use_their_budget(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(1000, &sum);
    assert_int_equal(dry_chain_get_time(chain), 6050478);
    struct dry_plan_options options = make_options(sum * 15 / 100);
    struct dry_plan *plan;
    struct dry_error err;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_OK);
    const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
    assert_true(summary->cost.peak_bytes * 100 >= options.budget_bytes * 99);
    assert_true(summary->cost.time_ns * 10000 <= UINT64_C(6050478) * 12185);
    assert_true(summary->bound_ns * 10000 >= UINT64_C(6050478) * 12170);
    assert_true(summary->table_bytes <= UINT64_C(100) << 20);
    dry_plan_destroy(plan);
    dry_chain_destroy(chain);
}

/* A slot is seven stages' saved bytes, and a hundred outputs. */
static void
sizes_far_below_a_slot_are_planned_near_the_bound(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(5000, &sum);
    struct dry_plan_options options = make_options(sum * 15 / 100);
    struct dry_plan *plan;
    struct dry_error err;
    options.slots = 100;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_OK);
    const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
    assert_true(summary->cost.time_ns * 500 <= summary->bound_ns * 501);
    assert_true(summary->cost.peak_bytes * 100 >= options.budget_bytes * 99);
    dry_plan_destroy(plan);
    dry_chain_destroy(chain);
}

/* --- windows and limits -------------------------------------------------------------------- */

static void
a_wider_window_needs_no_more(void **state)
{
    (void)state;
    uint64_t sum, before = UINT64_MAX, first = 0;
    struct dry_chain *chain = generate(60, &sum);
    for (uint32_t window = 1; window <= 64; window *= 2) {
        struct dry_plan_options options = make_options(sum / 2);
        struct dry_plan *plan;
        struct dry_error err;
        options.window = window;
        assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_OK);
        const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
        assert_int_equal(summary->window, window < 59 ? window : 59);
        assert_true(summary->floor_bytes <= before);
        before = summary->floor_bytes;
        first = first ? first : before;
        dry_plan_destroy(plan);
    }
    assert_true(before < first);
    dry_chain_destroy(chain);
}

static void
tables_beyond_the_limit_are_refused_or_narrower(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(200, &sum);
    struct dry_plan_options options = make_options(sum * 15 / 100);
    struct dry_plan *plan;
    struct dry_error err;
    options.table_bytes_max = 1000;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_ERR_LIMIT);
    size_t made = 0, narrow = 0;
    uint32_t window = 0;
    uint64_t best = UINT64_MAX >> 1;
    for (options.table_bytes_max = 100000; options.table_bytes_max < 8000000;
         options.table_bytes_max += options.table_bytes_max / 16) {
        if (dry_plan_create(chain, &options, &plan, &err) != DRY_OK) {
            assert_int_equal(made, 0); /* more room is never refused where less was not */
            continue;
        }
        const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
        assert_true(summary->table_bytes <= options.table_bytes_max);
        /* What is left out for lack of room is chosen by rules: a little is lost here and there. */
        assert_true(summary->cost.time_ns <= best + best / 500);
        best = summary->cost.time_ns < best ? summary->cost.time_ns : best;
        narrow += window && summary->window > window;
        window = summary->window;
        made++;
        dry_plan_destroy(plan);
    }
    assert_true(made > 2 && narrow > 0);
    dry_chain_destroy(chain);
}

/* Whatever the tables may take: what is said to fit does. */
static void
the_floor_is_planned_under_every_limit(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(200, &sum);
    size_t without_table = 0;
    for (uint64_t limit = 100000; limit < 20000000; limit += limit / 2) {
        struct dry_plan_options options = make_options(1);
        struct dry_plan *plan;
        struct dry_error err;
        options.table_bytes_max = limit;
        enum dry_status status = dry_plan_create(chain, &options, &plan, &err);
        if (status == DRY_ERR_LIMIT)
            continue;
        assert_int_equal(status, DRY_ERR_NO_SPACE);
        const char *least = strstr(err.text, "least budget is ");
        assert_non_null(least);
        options.budget_bytes = strtoull(least + strlen("least budget is "), NULL, 10);
        assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_OK);
        const struct dry_plan_summary *summary = dry_plan_get_summary(plan);
        assert_int_equal(summary->cost.peak_bytes, options.budget_bytes);
        without_table += summary->slots == 0;
        dry_plan_destroy(plan);
    }
    assert_true(without_table > 0);
    dry_chain_destroy(chain);
}

/* 3,000 windows of 3,000 stages on 2,000 slots are more than 2^31 cells. */
static void
more_cells_than_31_bits_count_are_refused(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(3000, &sum);
    struct dry_plan_options options = make_options(sum / 20);
    struct dry_plan *plan;
    struct dry_error err;
    options.slots = 2000;
    options.window = 3000;
    options.table_bytes_max = UINT64_C(64) << 20;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_ERR_LIMIT);
    dry_chain_destroy(chain);
}

static bool
fail_if_called_again(void *self, uint64_t done, uint64_t total)
{
    (void)self;
    (void)total;
    assert_int_equal(done, 0);
    return false;
}

/* 5,000 windows of 5,000 stages have 25 million rows, whatever is in them. */
static void
rows_beyond_the_limit_are_refused_before_the_work(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(5000, &sum);
    struct dry_plan_options options = make_options(sum / 20);
    struct dry_plan *plan;
    struct dry_error err;
    options.window = DRY_CHAIN_STAGES_MAX;
    options.progress = fail_if_called_again;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_ERR_LIMIT);
    assert_non_null(strstr(err.text, "tables of 5000 stages, ranges to 4999 of them"));
    dry_chain_destroy(chain);
}

/* Every plan runs so much again that it is the time that does not fit: not the tables. */
static void
times_beyond_63_bits_are_told_as_such(void **state)
{
    (void)state;
    struct dry_stage stage = {.forward_ns = UINT64_C(1) << 61,
                              .output_bytes = 10,
                              .gradient_bytes = 10,
                              .saved_bytes = 100};
    struct dry_stage last = {.backward_ns = 1};
    struct dry_stage stages[] = {stage, stage, stage, last};
    struct dry_chain *chain = make_chain(10, stages, 4);
    struct dry_plan_options options = make_options(130);
    struct dry_plan *plan;
    struct dry_error err;
    assert_int_equal(dry_plan_create(chain, &options, &plan, &err), DRY_ERR_LIMIT);
    assert_string_equal(err.text, "the plan's time is more than 63 bits");
    dry_chain_destroy(chain);
}

static void
bytes_and_times_near_63_bits_are_planned(void **state)
{
    (void)state;
    struct dry_stage stage = {.forward_ns = UINT64_C(1) << 58,
                              .backward_ns = UINT64_C(1) << 58,
                              .output_bytes = UINT64_C(1) << 55,
                              .gradient_bytes = UINT64_C(1) << 55,
                              .saved_bytes = UINT64_C(1) << 58};
    struct dry_stage stages[] = {stage, stage, stage, stage, stage, stage};
    struct dry_chain *chain = make_chain(0, stages, 6);
    struct dry_plan_options options = make_options((UINT64_C(1) << 59) + 12345);
    assert_true(plan_time(chain, &options) < INFEASIBLE);
    dry_chain_destroy(chain);
}

static void
scaled_bytes_give_the_same_plan(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(40, &sum);
    struct dry_chain *scaled = make_chain(0, NULL, 0);
    struct dry_error err;
    dry_chain_destroy(scaled);
    struct dry_chain_frame frame = *dry_chain_get_frame(chain);
    frame.input_gradient_bytes *= 512;
    assert_int_equal(dry_chain_create(&frame, NULL, &scaled, &err), DRY_OK);
    for (size_t i = 0; i < 40; i++) {
        struct dry_stage stage = *dry_chain_get_stage(chain, i);
        stage.output_bytes *= 512;
        stage.gradient_bytes *= 512;
        stage.saved_bytes *= 512;
        assert_int_equal(dry_chain_add(scaled, &stage, 1, &err), DRY_OK);
    }
    for (uint64_t part = 8; part < 40; part += 3) {
        struct dry_plan_options small = make_options(sum * part / 100);
        struct dry_plan_options large = make_options(sum * part / 100 * 512);
        struct dry_plan *one, *other;
        assert_int_equal(dry_plan_create(chain, &small, &one, &err), DRY_OK);
        assert_int_equal(dry_plan_create(scaled, &large, &other, &err), DRY_OK);
        size_t counts[2];
        const struct dry_plan_item *of_one = dry_plan_get_items(one, &counts[0]);
        const struct dry_plan_item *of_other = dry_plan_get_items(other, &counts[1]);
        assert_int_equal(counts[0], counts[1]);
        assert_memory_equal(of_one, of_other, counts[0] * sizeof *of_one);
        dry_plan_destroy(one);
        dry_plan_destroy(other);
    }
    dry_chain_destroy(chain);
    dry_chain_destroy(scaled);
}

static void
every_failed_request_for_memory_is_survived(void **state)
{
    (void)state;
    uint64_t sum;
    struct dry_chain *chain = generate(40, &sum);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_plan_options options = make_options(sum * 8 / 100);
        struct dry_plan *plan;
        struct dry_error err;
        options.memory = &memory;
        options.slots = 100;
        enum dry_status status = dry_plan_create(chain, &options, &plan, &err);
        if (status == DRY_OK)
            dry_plan_destroy(plan);
        bool failed = fm.failed;
        failing_memory_finish(&fm);
        assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
        if (!failed)
            break;
    }
    dry_chain_destroy(chain);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_equal_stages_take_what_is_proved),
        cmocka_unit_test(six_equal_stages_take_what_is_proved),
        cmocka_unit_test(five_unequal_stages_take_what_is_proved),
        cmocka_unit_test(gradients_of_output_and_of_input_are_charged),
        cmocka_unit_test(equal_steps_without_tapes_are_turned_back_as_revolve_does),
        cmocka_unit_test(a_stage_that_must_not_run_twice_is_saved),
        cmocka_unit_test(all_fixed_leaves_one_plan),
        cmocka_unit_test(an_option_is_taken_where_it_is_cheaper_than_a_range),
        cmocka_unit_test(options_are_taken_inside_ranges_too),
        cmocka_unit_test(weight_gradients_are_there_when_earlier_stages_run_again),
        cmocka_unit_test(what_the_frame_holds_is_under_everything),
        cmocka_unit_test(the_floor_is_the_least_budget_and_names_who_binds),
        cmocka_unit_test(stages_of_no_bytes_and_no_time_are_planned),
        cmocka_unit_test(hundred_stages_take_what_is_published_or_less),
        cmocka_unit_test(thousand_stages_use_their_budget),
        cmocka_unit_test(sizes_far_below_a_slot_are_planned_near_the_bound),
        cmocka_unit_test(a_wider_window_needs_no_more),
        cmocka_unit_test(tables_beyond_the_limit_are_refused_or_narrower),
        cmocka_unit_test(the_floor_is_planned_under_every_limit),
        cmocka_unit_test(more_cells_than_31_bits_count_are_refused),
        cmocka_unit_test(rows_beyond_the_limit_are_refused_before_the_work),
        cmocka_unit_test(times_beyond_63_bits_are_told_as_such),
        cmocka_unit_test(bytes_and_times_near_63_bits_are_planned),
        cmocka_unit_test(scaled_bytes_give_the_same_plan),
        cmocka_unit_test(every_failed_request_for_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
