/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plan/chain: peaks worked out by hand, the naive evaluation on random plans, what the observer
 * sees, which items are refused.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include <drystone/plan.h>

#include "support/chains.h"
#include "support/failing_memory.h"

#define SAVE DRY_PLAN_SAVE
#define CHECKPOINT DRY_PLAN_CHECKPOINT

static struct dry_plan_cost
evaluate(const struct dry_chain *chain, const struct dry_plan_item *items, size_t count)
{
    struct dry_plan_cost cost;
    struct dry_error err = {.text = ""};
    enum dry_status status = dry_plan_evaluate(chain, items, count, NULL, &cost, &err);
    if (status != DRY_OK)
        print_error("%s\n", err.text);
    assert_int_equal(status, DRY_OK);
    return cost;
}

static void
require_cost(const struct dry_chain *chain, const struct dry_plan_item *items,
             size_t count, uint64_t peak, uint64_t time)
{
    struct dry_plan_cost cost = evaluate(chain, items, count);
    assert_int_equal(cost.peak_bytes, peak);
    assert_int_equal(cost.time_ns, time);
    assert_int_equal(cost.extra_ns, time - dry_chain_get_time(chain));
}

/* --- by hand ------------------------------------------------------------------------------ */

/* Four stages: f = 1, b = 2, output and gradient 1, saved 3; nothing else in the budget. */
static struct dry_chain *
four_stages(void)
{
    static const uint64_t ones[] = {1, 1, 1, 1}, twos[] = {2, 2, 2, 2},
                          threes[] = {3, 3, 3, 3};
    return chains_of_rows(&(struct chains_rows){.count = 4,
                                                .forward = ones,
                                                .backward = twos,
                                                .output = ones,
                                                .saved = threes,
                                                .frame.input_gradient_bytes = 1});
}

static void
peaks_of_four_stages_are_those_by_hand(void **state)
{
    (void)state;
    struct dry_chain *chain = four_stages();
    const struct dry_plan_item all[] = {{SAVE, 0, 3, 0, 0}};
    require_cost(chain, all, 1, 14, 12);
    const struct dry_plan_item twelve[] = {{CHECKPOINT, 0, 0, 0, 0}, {SAVE, 1, 3, 0, 0}};
    require_cost(chain, twelve, 2, 12, 13);
    const struct dry_plan_item nine[] = {{CHECKPOINT, 0, 1, 0, 0}, {SAVE, 2, 3, 0, 0}};
    require_cost(chain, nine, 2, 9, 14);
    const struct dry_plan_item eight[] = {
        {CHECKPOINT, 0, 1, 0, 0}, {CHECKPOINT, 2, 2, 0, 0}, {SAVE, 3, 3, 0, 0}};
    require_cost(chain, eight, 3, 8, 15);
    dry_chain_destroy(chain);
}

/* Seven and six bytes are only to be had by ranges in ranges. */
static void
nested_ranges_need_less(void **state)
{
    (void)state;
    struct dry_chain *chain = four_stages();
    const struct dry_plan_item seven[] = {{CHECKPOINT, 0, 1, 0, 2},
                                          {CHECKPOINT, 0, 0, 0, 0},
                                          {SAVE, 1, 1, 0, 0},
                                          {CHECKPOINT, 2, 2, 0, 0},
                                          {SAVE, 3, 3, 0, 0}};
    require_cost(chain, seven, 5, 7, 16);
    const struct dry_plan_item six[] = {
        {CHECKPOINT, 0, 2, 0, 4}, {CHECKPOINT, 0, 1, 0, 2}, {CHECKPOINT, 0, 0, 0, 0},
        {SAVE, 1, 1, 0, 0},       {SAVE, 2, 2, 0, 0},       {SAVE, 3, 3, 0, 0}};
    require_cost(chain, six, 6, 6, 18);
    dry_chain_destroy(chain);
}

static void
both_gradients_are_charged(void **state)
{
    (void)state;
    static const uint64_t f[] = {1, 1}, b[] = {2, 2}, a[] = {1, 1}, saved[] = {2, 2};
    static const uint64_t last_is_large[] = {1, 5}, none_is[] = {1, 1};
    const struct dry_plan_item all[] = {{SAVE, 0, 1, 0, 0}};
    const struct dry_plan_item one[] = {{CHECKPOINT, 0, 0, 0, 0}, {SAVE, 1, 1, 0, 0}};
    struct chains_rows rows = {.count = 2,
                               .forward = f,
                               .backward = b,
                               .output = a,
                               .saved = saved,
                               .gradient = none_is,
                               .frame.input_gradient_bytes = 5};
    struct dry_chain *chain = chains_of_rows(&rows);
    require_cost(chain, all, 1, 8, 6);
    dry_chain_destroy(chain);
    rows.gradient = last_is_large;
    rows.frame.input_gradient_bytes = 1;
    chain = chains_of_rows(&rows);
    require_cost(chain, all, 1, 10, 6);
    require_cost(chain, one, 2, 9, 7);
    dry_chain_destroy(chain);
}

/* One stage, every field by itself: where it counts. */
static void
each_phase_counts_what_it_needs(void **state)
{
    (void)state;
    struct dry_chain_frame frame = {1000, 100, 7, 0};
    struct dry_stage stage = {.forward_ns = 3,
                              .backward_ns = 5,
                              .output_bytes = 10,
                              .gradient_bytes = 9,
                              .saved_bytes = 20,
                              .grads_bytes = 4};
    const struct dry_plan_item all[] = {{SAVE, 0, 0, 0, 0}};
    for (unsigned phase = 0; phase < 3; phase++) {
        struct dry_chain *chain;
        stage.forward_tmp_bytes = phase == 0 ? 50 : 0;
        stage.backward_tmp_bytes = phase == 1 ? 50 : 0;
        frame.step_bytes = phase == 2 ? 500 : 0;
        assert_int_equal(dry_chain_create(&frame, NULL, &chain, NULL), DRY_OK);
        assert_int_equal(dry_chain_add(chain, &stage, 1, NULL), DRY_OK);
        struct dry_plan_cost cost = evaluate(chain, all, 1);
        static const uint64_t peaks[] = {1100 + 9 + 20 + 50, 1100 + 20 + 9 + 7 + 50 + 4,
                                         1000 + 4 + 500};
        static const enum dry_plan_phase phases[] = {DRY_PHASE_FORWARD,
                                                     DRY_PHASE_BACKWARD, DRY_PHASE_STEP};
        assert_int_equal(cost.peak_bytes, peaks[phase]);
        assert_int_equal(cost.peak_phase, phases[phase]);
        assert_int_equal(cost.peak_stage, phase == 2 ? 1 : 0);
        assert_int_equal(cost.held_bytes, 1100 + 20 + 9);
        dry_chain_destroy(chain);
    }
}

/* What stage 1 needed, by phase, the last time. */
struct moments {
    uint64_t needed[DRY_PHASE_COUNT];
};

static void
note_stage_one(void *self, const struct dry_plan_step *step)
{
    struct moments *moments = self;
    if (step->stage == 1)
        moments->needed[step->phase] = step->needed_bytes;
}

/* What is sent to the host counts while the next stage runs, and not between. */
static void
offloaded_bytes_are_away_between_the_passes(void **state)
{
    (void)state;
    struct dry_stage_option option = {
        .name = "host", .saved_bytes = 100, .recompute_ns = 1, .offload_bytes = 90};
    struct dry_stage stage = {
        .output_bytes = 10, .saved_bytes = 100, .options = &option, .option_count = 1};
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &stage, 4, NULL), DRY_OK);
    const struct dry_plan_item all[] = {{SAVE, 0, 3, 1, 0}};
    struct dry_plan_cost cost = evaluate(chain, all, 1);
    assert_int_equal(cost.held_bytes, 3 * 10 + 100);
    assert_int_equal(cost.peak_bytes, 2 * 10 + 100 + 100);
    assert_int_equal(cost.time_ns, 4);
    const struct dry_plan_item range[] = {{SAVE, 0, 0, 1, 0},
                                          {CHECKPOINT, 1, 3, 0, 2},
                                          {CHECKPOINT, 1, 2, 0, 0},
                                          {SAVE, 3, 3, 0, 0}};
    struct moments moments = {{0}};
    struct dry_plan_observer observer = {note_stage_one, &moments};
    assert_int_equal(dry_plan_evaluate(chain, range, 4, &observer, &cost, NULL), DRY_OK);
    assert_int_equal(cost.held_bytes, 10 + 10);
    assert_int_equal(moments.needed[DRY_PHASE_FORWARD], 100 + 10);
    assert_int_equal(moments.needed[DRY_PHASE_RECOMPUTE], 10 + 100);
    assert_int_equal(moments.needed[DRY_PHASE_BACKWARD], 100 + 100);
    dry_chain_destroy(chain);
}

/* It saves less, and takes more for that while it runs; a range takes what the stage does. */
static void
an_option_s_forward_may_take_its_own(void **state)
{
    (void)state;
    struct dry_stage_option options[2] = {
        {.saved_bytes = 20, .has_forward_tmp = true, .forward_tmp_bytes = 500},
        {.saved_bytes = 20, .forward_tmp_bytes = 500}};
    struct dry_stage stage = {.forward_ns = 1,
                              .output_bytes = 10,
                              .saved_bytes = 100,
                              .forward_tmp_bytes = 3,
                              .options = options,
                              .option_count = 2};
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &stage, 2, NULL), DRY_OK);
    const struct dry_plan_item own[] = {{SAVE, 0, 1, 1, 0}},
                               stages[] = {{SAVE, 0, 1, 2, 0}},
                               range[] = {{CHECKPOINT, 0, 0, 0, 0}, {SAVE, 1, 1, 2, 0}};
    require_cost(chain, own, 1, 20 + 20 + 500, 2);
    require_cost(chain, stages, 1, 20 + 20 + 3, 2);
    require_cost(chain, range, 2, 100 + 3, 3);
    dry_chain_destroy(chain);
}

/* --- uniform chains ----------------------------------------------------------------------- */

#define MIB (UINT64_C(1) << 20)

/*
 * 24 blocks that save `saved` bytes with their input of `boundary` bytes, whose outputs are the
 * next one's input; nobody keeps the last output. The chain's input is counted.
 */
static struct dry_chain *
uniform_chain(uint64_t boundary, uint64_t saved)
{
    struct dry_chain_frame frame = {.input_bytes = boundary};
    struct dry_saved inside = {saved, boundary, boundary, true, false};
    struct dry_saved last = {saved, boundary, 0, true, false};
    struct dry_stage stage = {.name = "block",
                              .forward_ns = 1,
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

/* Ranges of the stages' sizes, the last one saved. */
static struct dry_plan_cost
cost_of_ranges(const struct dry_chain *chain, const uint32_t *sizes, size_t count)
{
    struct dry_plan_item items[24];
    uint32_t first = 0;
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct dry_plan_item){i + 1 < count ? CHECKPOINT : SAVE, first,
                                          first + sizes[i] - 1, 0, 0};
        first += sizes[i];
    }
    return evaluate(chain, items, count);
}

/* checkpoint_sequential(24 blocks, 5): four ranges of 4, and the last 8 blocks are saved. */
static void
checkpoint_sequential_leaves_a_long_tail(void **state)
{
    (void)state;
    const uint64_t a = 32 * MIB, all = UINT64_C(537919488);
    struct dry_chain *chain = uniform_chain(a, all);
    static const uint32_t torch[] = {4, 4, 4, 4, 8}, even[] = {5, 5, 5, 5, 4};
    struct dry_plan_cost cost = cost_of_ranges(chain, torch, 5);
    assert_int_equal(cost.peak_bytes, 4 * a + 8 * all);
    assert_int_equal(cost.recomputed_count, 16);
    assert_int_equal(cost.extra_ns, 16);
    assert_int_equal(cost_of_ranges(chain, even, 5).peak_bytes, 4 * a + 5 * all);
    dry_chain_destroy(chain);
    chain = uniform_chain(64 * MIB, 64 * MIB);
    assert_int_equal(cost_of_ranges(chain, even, 5).peak_bytes, 576 * MIB);
    dry_chain_destroy(chain);
}

static void
equal_ranges_need_the_closed_form(void **state)
{
    (void)state;
    const uint64_t cases[][2] = {{64 * MIB, 64 * MIB}, {32 * MIB, 571473920}};
    for (size_t c = 0; c < 2; c++) {
        uint64_t a = cases[c][0], all = cases[c][1];
        struct dry_chain *chain = uniform_chain(a, all);
        for (uint32_t k = 1; k <= 24; k++) {
            uint32_t sizes[24];
            for (uint32_t i = 0; i < k; i++)
                sizes[i] = 24 / k + (i < 24 % k);
            uint64_t peak = (k - 1) * a + (24 + k - 1) / k * all;
            struct dry_plan_cost cost = cost_of_ranges(chain, sizes, k);
            assert_true(cost.peak_bytes <= peak); /* short ranges may come last */
            if (24 % k == 0)
                assert_int_equal(cost.peak_bytes, peak);
        }
        dry_chain_destroy(chain);
    }
}

/* --- the naive evaluation ------------------------------------------------------------------ */

static bool
costs_are_equal(const struct dry_plan_cost *a, const struct dry_plan_cost *b)
{
    return a->peak_bytes == b->peak_bytes && a->peak_stage == b->peak_stage &&
           a->peak_phase == b->peak_phase && a->held_bytes == b->held_bytes &&
           a->time_ns == b->time_ns && a->base_ns == b->base_ns &&
           a->extra_ns == b->extra_ns && a->recomputed_count == b->recomputed_count;
}

static void
an_evaluation_with_single_tensors_says_the_same(void **state)
{
    (void)state;
    const struct chains_form form = {.stages_min = 1,
                                     .stages_max = 9,
                                     .options_max = 3,
                                     .has_frame = true,
                                     .has_tmp = true,
                                     .has_grads = true,
                                     .has_fixed = true,
                                     .has_offload = true,
                                     .has_own_tmp = true};
    size_t nested = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct random r;
        struct dry_plan_item items[512];
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form);
        size_t count = chains_random_plan(&r, chain, items, 512);
        struct dry_plan_cost cost = evaluate(chain, items, count);
        struct dry_plan_cost naive = chains_evaluate(chain, items, count);
        if (!costs_are_equal(&cost, &naive)) {
            print_error("seed %llu\n", (unsigned long long)seed);
            fail();
        }
        nested += items[0].inner_count > 0;
        dry_chain_destroy(chain);
    }
    assert_true(nested > 1000);
}

/* --- the observer ------------------------------------------------------------------------- */

struct watch {
    const struct dry_chain *chain;
    struct dry_plan_cost cost; /* as the steps tell it */
    uint64_t held, steps;
    uint32_t backward_next;
    bool is_over;
};

static void
watch_step(void *self, const struct dry_plan_step *step)
{
    struct watch *w = self;
    assert_false(w->is_over);
    assert_int_equal(step->time_ns, w->cost.time_ns);
    w->cost.time_ns += step->duration_ns;
    if (step->needed_bytes > w->cost.peak_bytes) {
        w->cost.peak_bytes = step->needed_bytes;
        w->cost.peak_stage = step->stage;
        w->cost.peak_phase = step->phase;
    }
    w->cost.recomputed_count += step->phase == DRY_PHASE_RECOMPUTE;
    if (step->phase == DRY_PHASE_FORWARD)
        w->cost.held_bytes = step->held_bytes;
    if (step->phase == DRY_PHASE_BACKWARD)
        assert_int_equal(step->stage, --w->backward_next);
    w->is_over = step->phase == DRY_PHASE_STEP;
    w->held = step->held_bytes;
    w->steps++;
}

static void
the_steps_add_up_to_the_cost(void **state)
{
    (void)state;
    const struct chains_form form = {.stages_min = 1,
                                     .stages_max = 9,
                                     .options_max = 2,
                                     .has_frame = true,
                                     .has_tmp = true,
                                     .has_grads = true,
                                     .has_offload = true,
                                     .has_own_tmp = true};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct random r;
        struct dry_plan_item items[512];
        random_init(&r, seed);
        struct dry_chain *chain = chains_make(&r, &form);
        size_t count = chains_random_plan(&r, chain, items, 512);
        uint32_t stages = (uint32_t)dry_chain_get_count(chain);
        struct watch watch = {.chain = chain, .backward_next = stages};
        struct dry_plan_observer observer = {watch_step, &watch};
        struct dry_plan_cost cost;
        assert_int_equal(dry_plan_evaluate(chain, items, count, &observer, &cost, NULL),
                         DRY_OK);
        watch.cost.base_ns = cost.base_ns;
        watch.cost.extra_ns = cost.extra_ns;
        assert_true(costs_are_equal(&cost, &watch.cost));
        assert_true(watch.is_over && watch.backward_next == 0);
        assert_int_equal(watch.steps, 2 * stages + cost.recomputed_count + 1);
        assert_int_equal(watch.held, dry_chain_get_frame(chain)->persistent_bytes);
        dry_chain_destroy(chain);
    }
}

/* --- what is refused ---------------------------------------------------------------------- */

struct bad {
    struct dry_plan_item items[4];
    size_t count;
    const char *word;
};

/* Seven stages; the fourth (3) is fixed, and the sixth (5) alone has an option. */
static struct dry_chain *
seven_stages(void)
{
    struct dry_stage_option option = {.name = "sac"};
    struct dry_stage plain = {.forward_ns = 1}, fixed = plain, rich = plain;
    struct dry_chain *chain;
    fixed.is_fixed = true;
    rich.options = &option;
    rich.option_count = 1;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &plain, 3, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &fixed, 1, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &plain, 1, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &rich, 1, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &plain, 1, NULL), DRY_OK);
    return chain;
}

static void
items_that_are_no_plan_are_refused(void **state)
{
    (void)state;
    static const struct bad all[] = {
        {{{SAVE, 0, 5, 0, 0}}, 1, "end before stage 6"},
        {{{SAVE, 0, 7, 0, 0}}, 1, "stages 0 to 7"},
        {{{SAVE, 0, UINT32_MAX, 0, 0}}, 1, "stages 0 to"},
        {{{SAVE, 1, 6, 0, 0}}, 1, "begins with stage 1"},
        {{{SAVE, 0, 3, 0, 0}, {SAVE, 3, 6, 0, 0}}, 2, "item 1 begins with stage 3"},
        {{{SAVE, 0, 3, 0, 0}, {SAVE, 4, 3, 0, 0}}, 2, "stages 4 to 3"},
        {{{2, 0, 6, 0, 0}}, 1, "kind is 2"},
        {{{SAVE, 0, 6, 0, 1}, {SAVE, 0, 6, 0, 0}}, 2, "inner_count 1"},
        {{{SAVE, 0, 6, 1, 0}}, 1, "option is 1, stage 0 has 0"},
        {{{SAVE, 0, 4, 0, 0}, {SAVE, 5, 5, 2, 0}, {SAVE, 6, 6, 0, 0}}, 3, "option is 2"},
        {{{CHECKPOINT, 0, 6, 0, 0}}, 1, "stage 3 is in a range"},
        {{{CHECKPOINT, 0, 3, 0, 0}, {SAVE, 4, 6, 0, 0}}, 2, "stage 3 is in a range"},
        {{{CHECKPOINT, 0, 2, 1, 0}, {SAVE, 3, 6, 0, 0}}, 2, "ranges have none"},
        {{{CHECKPOINT, 0, 2, 0, 1},
          {CHECKPOINT, 0, 1, 0, 1},
          {SAVE, 0, 1, 0, 0},
          {SAVE, 2, 6, 0, 0}},
         4,
         "inner_count is 1, 0 items follow"},
        {{{CHECKPOINT, 0, 2, 0, 2}, {SAVE, 3, 6, 0, 0}}, 2, "inner_count is 2"},
        {{{CHECKPOINT, 0, 2, 0, UINT32_MAX}, {SAVE, 3, 6, 0, 0}}, 2, "inner_count is 42"},
        {{{CHECKPOINT, 0, 2, 0, 1}, {SAVE, 0, 1, 0, 0}, {SAVE, 3, 6, 0, 0}},
         3,
         "end before stage 2"},
        {{{CHECKPOINT, 0, 2, 0, 1}, {SAVE, 0, 6, 0, 0}}, 2, "stages 0 to 6"},
        {{{CHECKPOINT, 0, 2, 0, 1}, {SAVE, 3, 6, 0, 0}}, 2, "begins with stage 3"},
        {{{CHECKPOINT, 0, 2, 0, 1}, {CHECKPOINT, 0, 2, 0, 0}, {SAVE, 3, 6, 0, 0}},
         3,
         "over again"},
    };
    struct dry_chain *chain = seven_stages();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct dry_plan_cost cost = {.peak_bytes = 77};
        struct dry_error err = {.text = ""};
        assert_int_equal(
            dry_plan_evaluate(chain, all[i].items, all[i].count, NULL, &cost, &err),
            DRY_ERR_ARGUMENT);
        if (!strstr(err.text, all[i].word))
            fail_msg("\"%s\" lacks \"%s\"", err.text, all[i].word);
        assert_int_equal(cost.peak_bytes, 77);
    }
    assert_int_equal(dry_plan_evaluate(chain, NULL, 0, NULL, NULL, NULL),
                     DRY_ERR_ARGUMENT);
    dry_chain_destroy(chain);
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_plan_evaluate(chain, all[0].items, 1, NULL, NULL, NULL),
                     DRY_ERR_ARGUMENT);
    dry_chain_destroy(chain);
}

/* Ranges in ranges, each a stage shorter: their second runs would take for ever. */
static void
plans_that_run_too_long_are_refused(void **state)
{
    (void)state;
    enum { STAGES = 60000, ITEMS = 40000 };
    struct dry_stage stage = {.forward_ns = 1};
    struct dry_chain *chain;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &stage, STAGES, NULL), DRY_OK);
    struct dry_plan_item *items = test_calloc(2 * ITEMS, sizeof *items);
    for (uint32_t i = 0; i < ITEMS; i++) {
        items[i] = (struct dry_plan_item){CHECKPOINT, 0, STAGES - 1 - i, 0, 0};
        items[i].inner_count = i + 1 < ITEMS ? 2 * (ITEMS - i) - 2 : 0;
    }
    for (uint32_t i = 0; i + 1 < ITEMS; i++) {
        uint32_t stage_index = STAGES - ITEMS + 1 + i;
        items[ITEMS + i] = (struct dry_plan_item){SAVE, stage_index, stage_index, 0, 0};
    }
    struct dry_plan_cost cost;
    struct dry_error err;
    assert_int_equal(dry_plan_evaluate(chain, items, 2 * ITEMS - 1, NULL, &cost, &err),
                     DRY_ERR_LIMIT);
    assert_non_null(strstr(err.text, "recomputed"));
    test_free(items);
    dry_chain_destroy(chain);
}

static void
times_beyond_63_bits_are_refused(void **state)
{
    (void)state;
    struct dry_stage stage = {.forward_ns = UINT64_MAX / 8};
    const struct dry_plan_item items[] = {
        {CHECKPOINT, 0, 2, 0, 2}, {CHECKPOINT, 0, 1, 0, 0}, {SAVE, 2, 2, 0, 0}};
    struct dry_chain *chain;
    struct dry_plan_cost cost;
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    assert_int_equal(dry_chain_add(chain, &stage, 3, NULL), DRY_OK);
    assert_int_equal(dry_plan_evaluate(chain, items, 3, NULL, &cost, NULL),
                     DRY_ERR_LIMIT);
    dry_chain_destroy(chain);
}

static void
no_memory_is_said(void **state)
{
    (void)state;
    const struct dry_stage stage = {.saved_bytes = 1};
    const struct dry_plan_item all[] = {{SAVE, 0, 3, 0, 0}};
    for (size_t n = 0, evaluated = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_chain *chain = NULL;
        struct dry_plan_cost cost = {.peak_bytes = 77};
        enum dry_status status = dry_chain_create(NULL, &memory, &chain, NULL);
        if (status == DRY_OK)
            status = dry_chain_add(chain, &stage, 4, NULL);
        if (status == DRY_OK) {
            status = dry_plan_evaluate(chain, all, 1, NULL, &cost, NULL);
            evaluated++;
        }
        dry_chain_destroy(chain);
        failing_memory_finish(&fm);
        assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
        assert_int_equal(cost.peak_bytes, fm.failed ? 77 : 4);
        if (fm.failed)
            continue;
        assert_true(evaluated > 2); /* there was something to refuse */
        break;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_of_four_stages_are_those_by_hand),
        cmocka_unit_test(nested_ranges_need_less),
        cmocka_unit_test(both_gradients_are_charged),
        cmocka_unit_test(each_phase_counts_what_it_needs),
        cmocka_unit_test(an_option_s_forward_may_take_its_own),
        cmocka_unit_test(offloaded_bytes_are_away_between_the_passes),
        cmocka_unit_test(checkpoint_sequential_leaves_a_long_tail),
        cmocka_unit_test(equal_ranges_need_the_closed_form),
        cmocka_unit_test(an_evaluation_with_single_tensors_says_the_same),
        cmocka_unit_test(the_steps_add_up_to_the_cost),
        cmocka_unit_test(items_that_are_no_plan_are_refused),
        cmocka_unit_test(plans_that_run_too_long_are_refused),
        cmocka_unit_test(times_beyond_63_bits_are_refused),
        cmocka_unit_test(no_memory_is_said),
    };
    return cmocka_run_group_tests_name("plan_evaluate", tests, NULL, NULL);
}
