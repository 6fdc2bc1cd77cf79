/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plan: the frame that all methods share, and the rules: their items, their floors, what they
 * refuse, every failed allocation.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/plan.h>

#include "support/chains.h"
#include "support/failing_memory.h"

#define SAVE DRY_PLAN_SAVE
#define CHECKPOINT DRY_PLAN_CHECKPOINT
#define MIB (UINT64_C(1) << 20)

static const enum dry_plan_method rules[] = {DRY_METHOD_NONE,   DRY_METHOD_BLOCK,
                                             DRY_METHOD_EVERY,  DRY_METHOD_SQRT,
                                             DRY_METHOD_GREEDY, DRY_METHOD_REVOLVE};
#define RULE_COUNT (sizeof rules / sizeof *rules)

static struct dry_plan_options
options_of(enum dry_plan_method method, uint64_t budget)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.method = method;
    options.budget_bytes = budget;
    return options;
}

static struct dry_plan *
plan_by(const struct dry_chain *chain, enum dry_plan_method method, uint64_t budget)
{
    struct dry_plan_options options = options_of(method, budget);
    struct dry_plan *plan = NULL;
    struct dry_error err = {.text = ""};
    if (dry_plan_create(chain, &options, &plan, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return plan;
}

/* The summary of a plan that is not kept. */
static struct dry_plan_summary
summary_by(const struct dry_chain *chain, enum dry_plan_method method, uint64_t budget)
{
    struct dry_plan *plan = plan_by(chain, method, budget);
    struct dry_plan_summary summary = *dry_plan_get_summary(plan);
    dry_plan_destroy(plan);
    return summary;
}

static enum dry_status
status_of(const struct dry_chain *chain, const struct dry_plan_options *options,
          struct dry_error *err)
{
    struct dry_plan *plan = NULL;
    enum dry_status status = dry_plan_create(chain, options, &plan, err);
    assert_true((status == DRY_OK) == (plan != NULL));
    dry_plan_destroy(plan);
    return status;
}

static void
require_items(const struct dry_plan *plan, const struct dry_plan_item *items,
              size_t count)
{
    size_t got_count;
    const struct dry_plan_item *got = dry_plan_get_items(plan, &got_count);
    assert_int_equal(got_count, count);
    assert_memory_equal(got, items, count * sizeof *items);
}

/* `count` equal stages, then one without output. */
static struct dry_chain *
equal_stages(const struct dry_stage *stage, size_t count,
             const struct dry_chain_frame *frame)
{
    struct dry_chain *chain;
    struct dry_stage loss = {
        .name = "loss", .forward_ns = 1, .backward_ns = 1, .saved_bytes = 1};
    assert_int_equal(dry_chain_create(frame, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, stage, count, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &loss, 1, NULL), DRY_OK);
    return chain;
}

static const struct dry_stage block = {.name = "block",
                                       .forward_ns = 5,
                                       .backward_ns = 10,
                                       .output_bytes = 10,
                                       .gradient_bytes = 10,
                                       .saved_bytes = 60,
                                       .grads_bytes = 2};

/* --- the frame ---------------------------------------------------------------------------- */

static void
every_number_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(dry_method_name(DRY_METHOD_ONE_LEVEL), "one-level");
    assert_string_equal(dry_method_name(DRY_METHOD_REVOLVE), "revolve");
    assert_string_equal(dry_method_name((enum dry_plan_method)8), "unknown method");
    assert_string_equal(dry_phase_name(DRY_PHASE_STEP), "step");
    assert_string_equal(dry_phase_name((enum dry_plan_phase)4), "unknown phase");
    assert_string_equal(dry_plan_class_name(DRY_CLASS_NESTED), "nested-optimal");
    assert_string_equal(dry_plan_class_name((enum dry_plan_class)4), "unknown class");
}

static void
options_out_of_range_are_refused(void **state)
{
    (void)state;
    struct dry_chain *chain = equal_stages(&block, 3, NULL), *empty;
    struct dry_plan_options options = options_of((enum dry_plan_method)8, UINT64_MAX);
    struct dry_error err;
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "method is 8"));
    options = options_of(DRY_METHOD_EVERY, UINT64_MAX);
    options.every = 0;
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "every is 0"));
    options.every = 1;
    options.slots = 0;
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_ARGUMENT);
    options.slots = UINT32_MAX;
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_LIMIT);
    options = (struct dry_plan_options){.method = DRY_METHOD_NONE};
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_chain_create(NULL, NULL, &empty, NULL), DRY_OK);
    options = options_of(DRY_METHOD_NONE, UINT64_MAX);
    assert_int_equal(status_of(empty, &options, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "no stages"));
    dry_chain_destroy(empty);
    dry_chain_destroy(chain);
}

static void
a_plan_that_recomputes_nothing_is_optimal(void **state)
{
    (void)state;
    const struct dry_chain_frame frame = {1000, 10, 10, 0};
    struct dry_chain *chain = equal_stages(&block, 3, &frame);
    struct dry_plan *plan = plan_by(chain, DRY_METHOD_NONE, UINT64_MAX);
    const struct dry_plan_summary *s = dry_plan_get_summary(plan);
    require_items(plan, &(struct dry_plan_item){SAVE, 0, 3, 0, 0}, 1);
    assert_int_equal(s->plan_class, DRY_CLASS_OPTIMAL);
    assert_int_equal(s->method, DRY_METHOD_NONE);
    assert_int_equal(s->cost.extra_ns, 0);
    assert_int_equal(s->bound_ns, 47);
    assert_int_equal(s->cost.peak_bytes, 1010 + 3 * 60 + 20 + 2);
    assert_int_equal(s->floor_bytes, s->cost.peak_bytes);
    assert_int_equal(s->floor_stage, 2);
    assert_int_equal(s->floor_phase, DRY_PHASE_BACKWARD);
    dry_plan_destroy(plan);
    dry_plan_destroy(NULL);
    dry_chain_destroy(chain);
}

static void
a_budget_that_nothing_fits_is_refused_with_the_least(void **state)
{
    (void)state;
    const struct dry_chain_frame frame = {1000, 10, 10, 0};
    struct dry_chain *chain = equal_stages(&block, 3, &frame);
    struct dry_plan_options options = options_of(DRY_METHOD_NONE, 1211);
    struct dry_error err;
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_NO_SPACE);
    assert_string_equal(err.text, "no plan (none) fits 1211 bytes: the least budget is "
                                  "1212 bytes, for the backward of stage 2 (block)");
    options.budget_bytes = 0;
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_NO_SPACE);
    options.budget_bytes = 1212;
    assert_int_equal(status_of(chain, &options, &err), DRY_OK);
    dry_chain_destroy(chain);
}

static void
the_optimizers_step_may_be_what_binds(void **state)
{
    (void)state;
    const struct dry_chain_frame frame = {1000, 10, 10, 500};
    struct dry_chain *chain = equal_stages(&block, 3, &frame);
    struct dry_error err;
    for (size_t i = 0; i < RULE_COUNT; i++) {
        struct dry_plan_options options = options_of(rules[i], 1505);
        assert_int_equal(status_of(chain, &options, &err), DRY_ERR_NO_SPACE);
        assert_non_null(strstr(err.text, "1506 bytes, for the optimizer's step"));
        struct dry_plan_summary s = summary_by(chain, rules[i], 1506);
        assert_int_equal(s.floor_bytes, 1506);
        assert_int_equal(s.floor_stage, 4);
        assert_int_equal(s.floor_phase, DRY_PHASE_STEP);
    }
    dry_chain_destroy(chain);
}

static void
the_hash_is_of_chain_and_items_alone(void **state)
{
    (void)state;
    struct dry_chain *chain = equal_stages(&block, 3, NULL);
    struct dry_chain *longer = equal_stages(&block, 4, NULL);
    uint64_t hash = summary_by(chain, DRY_METHOD_BLOCK, UINT64_MAX).hash;
    /* Written to plan files: this number never changes. */
    assert_int_equal(hash, UINT64_C(0xcf526d83e9cc8896));
    struct dry_plan_options options = options_of(DRY_METHOD_EVERY, 5000);
    options.every = 1;
    struct dry_plan *plan;
    assert_int_equal(dry_plan_create(chain, &options, &plan, NULL), DRY_OK);
    assert_true(dry_plan_get_summary(plan)->hash == hash);
    dry_plan_destroy(plan);
    assert_true(summary_by(chain, DRY_METHOD_NONE, UINT64_MAX).hash != hash);
    assert_true(summary_by(longer, DRY_METHOD_BLOCK, UINT64_MAX).hash != hash);
    dry_chain_destroy(chain);
    dry_chain_destroy(longer);
}

/* --- rules without a choice --------------------------------------------------------------- */

static void
every_nth_stage_is_a_range_but_the_last_and_the_fixed(void **state)
{
    (void)state;
    struct dry_stage stage = block;
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    for (size_t i = 0; i < 6; i++) {
        stage.is_fixed = i == 3;
        assert_int_equal(dry_chain_add(chain, &stage, 1, NULL), DRY_OK);
    }
    const struct dry_plan_item blocks[] = {
        {CHECKPOINT, 0, 0, 0, 0}, {CHECKPOINT, 1, 1, 0, 0}, {CHECKPOINT, 2, 2, 0, 0},
        {SAVE, 3, 3, 0, 0},       {CHECKPOINT, 4, 4, 0, 0}, {SAVE, 5, 5, 0, 0}};
    struct dry_plan *plan = plan_by(chain, DRY_METHOD_BLOCK, UINT64_MAX);
    require_items(plan, blocks, 6);
    assert_int_equal(dry_plan_get_summary(plan)->plan_class, DRY_CLASS_RULE);
    assert_int_equal(dry_plan_get_summary(plan)->cost.recomputed_count, 4);
    dry_plan_destroy(plan);
    const struct dry_plan_item seconds[] = {
        {SAVE, 0, 0, 0, 0}, {CHECKPOINT, 1, 1, 0, 0}, {SAVE, 2, 5, 0, 0}};
    plan = plan_by(chain, DRY_METHOD_EVERY, UINT64_MAX);
    require_items(plan, seconds, 3);
    dry_plan_destroy(plan);
    dry_chain_destroy(chain);
}

/* --- sqrt --------------------------------------------------------------------------------- */

/* As in test_plan_evaluate.c: 24 blocks with the last output not kept. */
static struct dry_chain *
uniform_chain(uint64_t boundary, uint64_t saved)
{
    struct dry_chain_frame frame = {.input_bytes = boundary};
    struct dry_saved inside = {saved, boundary, boundary, true, false};
    struct dry_saved last = {saved, boundary, 0, true, false};
    struct dry_stage stage = {.forward_ns = 1,
                              .backward_ns = 2,
                              .output_bytes = boundary,
                              .saved_bytes = dry_stage_saved(&inside)};
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(&frame, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &stage, 23, NULL), DRY_OK);
    stage.output_bytes = 0;
    stage.saved_bytes = dry_stage_saved(&last);
    assert_int_equal(dry_chain_add(chain, &stage, 1, NULL), DRY_OK);
    return chain;
}

/*
 * Layers that save no more than their input: the root of their number. Transformer blocks save
 * many times that, and then every block a range is best, or nearly: three pairs in front, where
 * little is held, save three boundaries. sbh = 8 * 2048 * 1024, 16 heads.
 */
static void
blocks_of_transformers_want_a_range_each(void **state)
{
    (void)state;
    const uint64_t sbh = UINT64_C(8) * 2048 * 1024, lse = UINT64_C(4) * 16 * 2048 * 8;
    const uint64_t norms = UINT64_C(16) * 8 * 2048;
    const struct {
        uint64_t boundary, saved, best;
    } cases[] = {
        {64 * MIB, 64 * MIB, 576 * MIB},
        {32 * MIB, 194 * sbh, 23 * 32 * MIB + 194 * sbh},
        {32 * MIB, 32 * sbh + lse + norms, 20 * 32 * MIB + 32 * sbh + lse + norms},
        {64 * MIB, 354 * sbh, 23 * 64 * MIB + 354 * sbh},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_chain *chain = uniform_chain(cases[i].boundary, cases[i].saved);
        struct dry_plan_summary s = summary_by(chain, DRY_METHOD_SQRT, UINT64_MAX);
        assert_int_equal(s.cost.peak_bytes, cases[i].best);
        assert_int_equal(s.floor_bytes, cases[i].best);
        assert_int_equal(s.cost.recomputed_count, i == 0 ? 18 : 23);
        dry_chain_destroy(chain);
    }
}

/* The best of some plans, worked out by the test itself. */
struct best {
    uint64_t floor; /* the least peak of all */
    uint64_t time;  /* the least of those within the budget; UINT64_MAX: none */
};

static void
offer(struct best *best, const struct dry_chain *chain, const struct dry_plan_item *items,
      size_t count, uint64_t budget)
{
    struct dry_plan_cost cost;
    assert_int_equal(dry_plan_evaluate(chain, items, count, NULL, &cost, NULL), DRY_OK);
    best->floor = cost.peak_bytes < best->floor ? cost.peak_bytes : best->floor;
    if (cost.peak_bytes <= budget && cost.time_ns < best->time)
        best->time = cost.time_ns;
}

static struct best
best_of_equal(const struct dry_chain *chain, uint64_t budget)
{
    struct best best = {UINT64_MAX, UINT64_MAX};
    uint32_t stages = (uint32_t)dry_chain_get_count(chain);
    for (uint32_t k = 1; k <= stages; k++) {
        struct dry_plan_item items[CHAINS_STAGES_MAX];
        uint32_t first = 0;
        for (uint32_t i = 0; i < k; i++) {
            uint32_t length = stages / k + (i < stages % k);
            items[i] = (struct dry_plan_item){i + 1 < k ? CHECKPOINT : SAVE, first,
                                              first + length - 1, 0, 0};
            first += length;
        }
        offer(&best, chain, items, k, budget);
    }
    return best;
}

static struct best
best_of_greedy(const struct dry_chain *chain, uint64_t budget)
{
    struct best best = {UINT64_MAX, UINT64_MAX};
    uint32_t stages = (uint32_t)dry_chain_get_count(chain);
    for (uint64_t threshold = 0; threshold <= 8 * CHAINS_STAGES_MAX; threshold++) {
        struct dry_plan_item items[CHAINS_STAGES_MAX];
        size_t count = 0;
        uint64_t sum = 0;
        uint32_t first = 0;
        for (uint32_t i = 0; i < stages; i++) {
            sum += dry_chain_get_stage(chain, i)->output_bytes;
            bool is_end = sum > threshold;
            if (i + 1 < stages && !is_end)
                continue;
            uint32_t kind = i + 1 < stages ? CHECKPOINT : SAVE;
            items[count++] = (struct dry_plan_item){kind, first, i, 0, 0};
            first = i + 1;
            sum = 0;
        }
        offer(&best, chain, items, count, budget);
    }
    return best;
}

static void
require_best(const struct dry_chain *chain, enum dry_plan_method method, uint64_t budget,
             const struct best *best)
{
    struct dry_plan_options options = options_of(method, budget);
    struct dry_plan_summary s = summary_by(chain, method, UINT64_MAX);
    assert_int_equal(s.floor_bytes, best->floor);
    assert_int_equal(s.cost.peak_bytes, best->floor);
    if (best->time == UINT64_MAX) {
        assert_int_equal(status_of(chain, &options, NULL), DRY_ERR_NO_SPACE);
        return;
    }
    s = summary_by(chain, method, budget);
    assert_int_equal(s.cost.time_ns, best->time);
    assert_true(s.cost.peak_bytes <= budget);
    assert_int_equal(s.floor_bytes, best->floor);
}

static void
rules_with_a_number_find_the_best_one(void **state)
{
    (void)state;
    const struct chains_form form = {.stages_min = 1,
                                     .stages_max = 14,
                                     .has_frame = true,
                                     .has_tmp = true,
                                     .has_grads = true};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct random r;
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form);
        struct best best = best_of_equal(chain, 0);
        uint64_t budget = best.floor + random_below(&r, 30);
        best = best_of_equal(chain, budget);
        require_best(chain, DRY_METHOD_SQRT, budget, &best);
        best = best_of_greedy(chain, budget);
        require_best(chain, DRY_METHOD_GREEDY, budget, &best);
        dry_chain_destroy(chain);
    }
}

static void
fixed_stages_cut_ranges(void **state)
{
    (void)state;
    const struct chains_form form = {
        .stages_min = 1, .stages_max = 16, .has_frame = true, .has_fixed = true};
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct random r;
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form);
        /* The evaluation refuses plans that run a fixed stage twice. */
        summary_by(chain, DRY_METHOD_SQRT, UINT64_MAX);
        summary_by(chain, DRY_METHOD_GREEDY, UINT64_MAX);
        dry_chain_destroy(chain);
    }
}

/* Two thousand stages: not every number is tried any more, and the plan is still good. */
static void
long_chains_are_planned_by_the_length_of_ranges(void **state)
{
    (void)state;
    const struct dry_stage stage = {.forward_ns = 1, .output_bytes = 1, .saved_bytes = 1};
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &stage, 2500, NULL), DRY_OK);
    /* 99 are the least, with 50 ranges. */
    assert_in_range(summary_by(chain, DRY_METHOD_SQRT, UINT64_MAX).cost.peak_bytes, 99,
                    101);
    assert_in_range(summary_by(chain, DRY_METHOD_GREEDY, UINT64_MAX).cost.peak_bytes, 99,
                    101);
    dry_chain_destroy(chain);
}

/* --- revolve ------------------------------------------------------------------------------ */

static void
revolve_counts_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        uint64_t steps, counts[10];
    } rows[] = {
        {5, {10, 6, 5, 4, 4, 4, 4, 4, 4, 4}},
        {10, {45, 20, 15, 14, 13, 12, 11, 10, 9, 9}},
        {15, {105, 40, 30, 24, 23, 22, 21, 20, 19, 18}},
        {20, {190, 65, 45, 39, 33, 32, 31, 30, 29, 28}},
        {50, {1225, 285, 180, 144, 122, 114, 105, 95, 89, 88}},
        {100, {4950, 845, 490, 374, 316, 280, 255, 245, 234, 222}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t c = 1; c <= 10; c++)
            assert_int_equal(dry_revolve_count(rows[i].steps, c), rows[i].counts[c - 1]);
    }
    assert_int_equal(dry_revolve_count(0, 3), 0);
    assert_int_equal(dry_revolve_count(1, 1), 0);
    assert_true(dry_revolve_count(5, 0) == UINT64_MAX);
}

#define STEPS_MAX 120u
#define SNAPSHOTS_MAX 12u

/* t(l, c) = min over k of k + t(k, c) + t(l - k, c - 1); with one snapshot k is l - 1. */
static void
the_closed_form_is_the_recurrence(void **state)
{
    (void)state;
    static uint64_t t[STEPS_MAX + 1][SNAPSHOTS_MAX + 1];
    for (uint64_t c = 1; c <= SNAPSHOTS_MAX; c++) {
        for (uint64_t l = 2; l <= STEPS_MAX; l++) {
            t[l][c] = c == 1 ? l * (l - 1) / 2 : UINT64_MAX;
            for (uint64_t k = 1; k < l && c > 1; k++) {
                uint64_t count = k + t[k][c] + t[l - k][c - 1];
                t[l][c] = count < t[l][c] ? count : t[l][c];
            }
            assert_int_equal(dry_revolve_count(l, c), t[l][c]);
        }
    }
}

static void
large_revolve_counts_are_exact_or_refused(void **state)
{
    (void)state;
    const uint64_t most = UINT64_MAX >> 1;
    assert_int_equal(dry_revolve_count(UINT64_C(4294967296), 1),
                     UINT64_C(9223372034707292160));
    assert_true(dry_revolve_count(UINT64_C(4294967297), 1) == UINT64_MAX);
    assert_true(dry_revolve_count(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(dry_revolve_count(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
    assert_int_equal(dry_revolve_count(most, UINT64_MAX), most - 1);
    assert_int_equal(dry_revolve_count(UINT64_C(1000000000000), 2),
                     UINT64_C(942808041582163645));
    assert_int_equal(dry_revolve_count(UINT64_C(1000000000000000), 5),
                     UINT64_C(2168476360145854312));
    assert_int_equal(dry_revolve_count(UINT64_C(100000000000000000), 33),
                     UINT64_C(2642109031231921790));
}

/* States of one byte, tapes of many: room for a tape and c states is for c snapshots. */
static void
revolve_plans_run_as_often_as_counted(void **state)
{
    (void)state;
    const struct dry_stage stage = {
        .forward_ns = 1, .output_bytes = 1, .saved_bytes = 50};
    for (uint32_t l = 2; l <= 40; l++) {
        struct dry_chain *chain;
        assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
        assert_int_equal(dry_chain_add(chain, &stage, l, NULL), DRY_OK);
        for (uint32_t c = 1; c < l; c++) {
            struct dry_plan_summary s = summary_by(chain, DRY_METHOD_REVOLVE, 50 + c);
            assert_int_equal(s.cost.time_ns, l + dry_revolve_count(l, c));
            assert_int_equal(s.cost.peak_bytes, 50 + c);
            assert_int_equal(s.floor_bytes, 51);
        }
        struct dry_plan_options options = options_of(DRY_METHOD_REVOLVE, 50);
        assert_int_equal(status_of(chain, &options, NULL), DRY_ERR_NO_SPACE);
        assert_int_equal(summary_by(chain, DRY_METHOD_REVOLVE, UINT64_MAX).cost.time_ns,
                         2 * l - 1);
        dry_chain_destroy(chain);
    }
}

static void
revolve_wants_equal_stages(void **state)
{
    (void)state;
    struct dry_chain *chain = equal_stages(&block, 3, NULL);
    struct dry_plan_options options = options_of(DRY_METHOD_REVOLVE, UINT64_MAX);
    struct dry_error err;
    assert_int_equal(status_of(chain, &options, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &block, 1, NULL), DRY_OK);
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "stage 3 is not as stage 0"));
    dry_chain_destroy(chain);
    struct dry_stage fixed = block;
    fixed.is_fixed = true;
    chain = equal_stages(&fixed, 3, NULL);
    assert_int_equal(status_of(chain, &options, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "stage 0 must not"));
    dry_chain_destroy(chain);
}

/* A hundred thousand steps with one snapshot would run five thousand million times. */
static void
revolve_of_a_long_chain_ends(void **state)
{
    (void)state;
    const struct dry_stage stage = {
        .forward_ns = 1, .output_bytes = 1, .saved_bytes = 50};
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &stage, 20000, NULL), DRY_OK);
    struct dry_plan_summary s = summary_by(chain, DRY_METHOD_REVOLVE, 50 + 30);
    assert_int_equal(s.cost.time_ns, 20000 + dry_revolve_count(20000, 30));
    dry_chain_destroy(chain);
}

/* --- properties --------------------------------------------------------------------------- */

static struct dry_chain *
scaled(const struct dry_chain *chain, uint64_t factor)
{
    struct dry_chain_frame frame = *dry_chain_get_frame(chain);
    struct dry_chain *copy;
    frame.persistent_bytes *= factor;
    frame.input_bytes *= factor;
    frame.input_gradient_bytes *= factor;
    frame.step_bytes *= factor;
    assert_int_equal(dry_chain_create(&frame, NULL, &copy, NULL), DRY_OK);
    for (size_t i = 0; i < dry_chain_get_count(chain); i++) {
        struct dry_stage stage = *dry_chain_get_stage(chain, i);
        stage.output_bytes *= factor;
        stage.gradient_bytes *= factor;
        stage.saved_bytes *= factor;
        stage.forward_tmp_bytes *= factor;
        stage.backward_tmp_bytes *= factor;
        stage.grads_bytes *= factor;
        assert_int_equal(dry_chain_add(copy, &stage, 1, NULL), DRY_OK);
    }
    return copy;
}

/* More budget never costs time; a unit of bytes changes nothing; floors are sharp. */
static void
budgets_behave(void **state)
{
    (void)state;
    const struct chains_form form = {.stages_min = 2,
                                     .stages_max = 12,
                                     .has_frame = true,
                                     .has_tmp = true,
                                     .has_grads = true};
    static const enum dry_plan_method methods[] = {DRY_METHOD_SQRT, DRY_METHOD_GREEDY};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random r;
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form), *larger = scaled(chain, 1000);
        for (size_t m = 0; m < 2; m++) {
            uint64_t floor = summary_by(chain, methods[m], UINT64_MAX).floor_bytes;
            uint64_t time = UINT64_MAX;
            struct dry_plan_options below = options_of(methods[m], floor - 1);
            if (floor)
                assert_int_equal(status_of(chain, &below, NULL), DRY_ERR_NO_SPACE);
            for (uint64_t budget = floor; budget < floor + 40; budget += 3) {
                struct dry_plan_summary s = summary_by(chain, methods[m], budget);
                assert_true(s.cost.time_ns <= time && s.cost.peak_bytes <= budget);
                time = s.cost.time_ns;
                struct dry_plan_summary l = summary_by(larger, methods[m], 1000 * budget);
                assert_int_equal(l.cost.time_ns, s.cost.time_ns);
                assert_int_equal(l.cost.peak_bytes, 1000 * s.cost.peak_bytes);
            }
        }
        dry_chain_destroy(chain);
        dry_chain_destroy(larger);
    }
}

static void
no_memory_is_said_by_every_rule(void **state)
{
    (void)state;
    struct dry_chain *chain = equal_stages(&block, 30, NULL);
    for (size_t i = 0; i < RULE_COUNT; i++) {
        for (size_t n = 0;; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            struct dry_plan_options options = options_of(rules[i], 5000);
            struct dry_plan *plan = NULL;
            options.memory = &memory;
            enum dry_status status = dry_plan_create(chain, &options, &plan, NULL);
            dry_plan_destroy(plan);
            failing_memory_finish(&fm);
            assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
            if (!fm.failed)
                break;
        }
    }
    dry_chain_destroy(chain);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_a_name),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(a_plan_that_recomputes_nothing_is_optimal),
        cmocka_unit_test(a_budget_that_nothing_fits_is_refused_with_the_least),
        cmocka_unit_test(the_optimizers_step_may_be_what_binds),
        cmocka_unit_test(the_hash_is_of_chain_and_items_alone),
        cmocka_unit_test(every_nth_stage_is_a_range_but_the_last_and_the_fixed),
        cmocka_unit_test(blocks_of_transformers_want_a_range_each),
        cmocka_unit_test(rules_with_a_number_find_the_best_one),
        cmocka_unit_test(fixed_stages_cut_ranges),
        cmocka_unit_test(long_chains_are_planned_by_the_length_of_ranges),
        cmocka_unit_test(revolve_counts_are_those_of_the_table),
        cmocka_unit_test(the_closed_form_is_the_recurrence),
        cmocka_unit_test(large_revolve_counts_are_exact_or_refused),
        cmocka_unit_test(revolve_plans_run_as_often_as_counted),
        cmocka_unit_test(revolve_wants_equal_stages),
        cmocka_unit_test(revolve_of_a_long_chain_ends),
        cmocka_unit_test(budgets_behave),
        cmocka_unit_test(no_memory_is_said_by_every_rule),
    };
    return cmocka_run_group_tests_name("plan_rules", tests, NULL, NULL);
}
