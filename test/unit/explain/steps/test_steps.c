/* SPDX-License-Identifier: Apache-2.0 */

/*
 * steps: loops with and without marks, nested, noisy, cut short, and texts that only look
 * like loops; leaks found to the byte and caches that are none; hostile windows; memory that
 * runs out.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "support/allocation_builder.h"
#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)
#define LAYERS 4u

static struct dry_steps *
steps_of(const struct allocation_builder *s)
{
    struct dry_steps *steps;
    struct dry_error err;
    if (dry_steps_create(s->timeline, NULL, &steps, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return steps;
}

/* What holds of any steps: they cover the window, in order, and dry_steps_find() agrees. */
static void
check_steps(const struct dry_steps *steps, const struct dry_timeline *timeline)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    uint32_t count;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    uint64_t allocs = 0;
    assert_true(count > 0);
    assert_int_equal(rows[0].begin, 0);
    assert_int_equal(rows[count - 1].end, v->dump_moment);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(rows[i].begin < rows[i].end);
        if (i > 0)
            assert_int_equal(rows[i].begin, rows[i - 1].end);
        assert_int_equal(dry_steps_find(steps, rows[i].begin), i);
        assert_int_equal(dry_steps_find(steps, rows[i].end - 1), i);
        assert_int_equal(
            dry_timeline_height(timeline, DRY_CURVE_ACTIVE, rows[i].peak.moment),
            rows[i].peak.bytes);
        assert_true(rows[i].peak.bytes <= v->peaks[DRY_CURVE_ACTIVE].bytes);
        assert_true(rows[i].active_end <= rows[i].peak.bytes);
        assert_true(rows[i].temporary_count <= rows[i].alloc_count);
        allocs += rows[i].alloc_count;
    }
    assert_int_equal(dry_steps_find(steps, v->dump_moment), DRY_NONE);
    assert_int_equal(allocs, v->allocation_count - v->carried_over_count);
}

/* --- a training loop ---------------------------------------------------------------------- */

struct training {
    uint32_t optimizer[LAYERS];
    bool has_optimizer;
    uint64_t scale; /* of the activations */
    bool has_stacks, has_noise;
    struct random random;
};

static uint32_t
take(struct allocation_builder *s, const struct training *t, const char *code,
     uint64_t size)
{
    return allocation_builder_alloc(s, t->has_stacks ? code : NULL, size);
}

static void
make_noise(struct allocation_builder *s, struct training *t)
{
    char code[64];
    for (uint64_t n = t->has_noise ? random_below(&t->random, 3) : 0; n > 0; n--) {
        snprintf(code, sizeof code, "other.py:%d thread",
                 (int)random_below(&t->random, 40));
        allocation_builder_free(
            s, allocation_builder_alloc(s, t->has_stacks ? code : NULL,
                                        512 * (1 + random_below(&t->random, 100))));
    }
}

/* A batch, layers forward, layers backward, an update whose state is made once. */
static void
train(struct allocation_builder *s, struct training *t)
{
    uint32_t kept[LAYERS], grads[LAYERS];
    uint32_t batch = take(s, t, "data.py:5 load < train.py:10 main", t->scale * MIB);
    for (unsigned i = 0; i < LAYERS; i++) {
        kept[i] = take(s, t, "model.py:31 layer < train.py:12 main", t->scale * 8 * MIB);
        allocation_builder_free(s,
                                take(s, t, "model.py:32 layer < train.py:12 main", MIB));
        make_noise(s, t);
    }
    uint32_t loss = take(s, t, "model.py:40 loss < train.py:12 main", 512);
    for (unsigned i = LAYERS; i-- > 0;) {
        grads[i] = take(s, t, "model.py:50 grad < train.py:14 main", 2 * MIB);
        allocation_builder_free(s, kept[i]);
    }
    for (unsigned i = 0; i < LAYERS; i++) {
        if (!t->has_optimizer)
            t->optimizer[i] = take(s, t, "adam.py:8 make < train.py:15 main", 4 * MIB);
        allocation_builder_free(
            s, take(s, t, "adam.py:9 update < train.py:15 main", 2 * MIB));
        allocation_builder_free(s, grads[i]);
    }
    t->has_optimizer = true;
    allocation_builder_free(s, loss);
    allocation_builder_free(s, batch);
}

static struct training
begin_training(struct allocation_builder *s, bool has_stacks)
{
    struct training t = {.scale = 1, .has_stacks = has_stacks};
    allocation_builder_begin(s);
    random_init(&t.random, 7);
    for (unsigned i = 0; i < LAYERS; i++)
        take(s, &t, "model.py:3 build < train.py:2 main", 2 * MIB);
    return t;
}

/* Whole steps and their source; the first of them begins `before` rows in. */
static const struct dry_step *
expect_steps(const struct dry_steps *steps, enum dry_steps_source source, uint32_t before,
             uint32_t whole)
{
    uint32_t count;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    assert_string_equal(dry_steps_source_name(dry_steps_get_source(steps)),
                        dry_steps_source_name(source));
    assert_true(count >= before + whole);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rows[i].is_partial, i < before || i >= before + whole);
    return rows + before;
}

static void
training_without_marks_is_told_by_its_rhythm(void **state)
{
    (void)state;
    for (int has_stacks = 0; has_stacks < 2; has_stacks++) {
        struct allocation_builder s;
        struct training t = begin_training(&s, has_stacks);
        for (int i = 0; i < 6; i++)
            train(&s, &t);
        allocation_builder_end(&s);
        struct dry_steps *steps = steps_of(&s);
        check_steps(steps, s.timeline);
        const struct dry_step *rows = expect_steps(steps, DRY_STEPS_PERIODICITY, 1, 6);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(rows[i].alloc_count, i == 0 ? 22 : 18);
            assert_int_equal(rows[i].temporary_count >= 8, 1);
            assert_int_equal(rows[i].kept_bytes, i == 0 ? 16 * MIB : 0);
            assert_int_equal(rows[i].active_end, 24 * MIB);
            assert_int_equal(rows[i].peak.bytes,
                             (i == 0 ? 8 : 24) * MIB + 35 * MIB + 512);
        }
        assert_true(dry_steps_get_confidence(steps) > 0.95);
        assert_int_equal(dry_steps_growth_per_step(steps), 0);
        size_t growth;
        dry_steps_get_growth(steps, &growth);
        assert_int_equal(growth, 0);
        assert_true(dry_steps_get_anchor(steps) != DRY_NONE);
        assert_string_equal(dry_steps_get_marker(steps, NULL), "");
        assert_string_equal(dry_steps_get_reason(steps), "");
        dry_steps_destroy(steps);
        allocation_builder_finish(&s);
    }
}

/* Sizes change from step to step, one step is far longer, other threads come between. */
static void
varying_training_is_told_by_its_stacks(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    t.has_noise = true;
    for (int i = 0; i < 10; i++) {
        t.scale = 1 + random_below(&t.random, 5);
        train(&s, &t);
        for (int k = 0; i == 5 && k < 60; k++)
            allocation_builder_free(
                &s,
                allocation_builder_alloc(&s, "valid.py:7 valid < train.py:20 main", MIB));
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    expect_steps(steps, DRY_STEPS_PERIODICITY, 1, 10);
    assert_int_equal(dry_steps_growth_per_step(steps), 0);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

static void
window_that_begins_and_ends_anywhere_has_partial_steps(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 5; i++)
        train(&s, &t);
    take(&s, &t, "data.py:5 load < train.py:10 main", MIB);
    for (unsigned i = 0; i < 3; i++)
        take(&s, &t, "model.py:31 layer < train.py:12 main", 8 * MIB);
    allocation_builder_oom(&s, 8 * MIB);
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    const struct dry_step *rows = expect_steps(steps, DRY_STEPS_PERIODICITY, 1, 5);
    assert_int_equal(rows[5].alloc_count, 4);
    assert_true(rows[5].is_partial);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

static void
step_with_an_oom_is_partial(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 5; i++) {
        train(&s, &t);
        if (i == 2)
            allocation_builder_oom(&s, 8 * MIB);
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    uint32_t count;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    assert_int_equal(count, 6);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rows[i].is_partial, i == 0 || i == 3);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* Layers run forward only: they are nine of ten allocations, and still no steps. */
static void
outer_loop_is_preferred(void **state)
{
    (void)state;
    struct allocation_builder s;
    allocation_builder_begin(&s);
    for (int step = 0; step < 5; step++) {
        uint32_t x =
            allocation_builder_alloc(&s, "serve.py:3 embed < serve.py:9 main", MIB);
        for (int layer = 0; layer < 8; layer++) {
            uint32_t y =
                allocation_builder_alloc(&s, "net.py:1 norm < serve.py:9 main", MIB);
            uint32_t z =
                allocation_builder_alloc(&s, "net.py:2 mix < serve.py:9 main", MIB);
            allocation_builder_free(&s, y);
            allocation_builder_free(&s, x);
            x = z;
        }
        uint32_t y =
            allocation_builder_alloc(&s, "serve.py:4 head < serve.py:9 main", 2 * MIB);
        allocation_builder_free(&s, x);
        allocation_builder_free(&s, y);
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    expect_steps(steps, DRY_STEPS_PERIODICITY, 0, 5);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

#define CALL " < /x/torch/nn/modules/module.py:1779 _call_impl < serve.py:9 main"

static void
layers_of_one_call_are_no_steps(void **state)
{
    (void)state;
    struct allocation_builder s;
    allocation_builder_begin(&s);
    allocation_builder_alloc(&s, "serve.py:3 tokens < serve.py:8 main", MIB);
    for (int layer = 0; layer < 24; layer++) {
        allocation_builder_free(
            &s,
            allocation_builder_alloc(&s, "net.py:1 norm < net.py:9 forward" CALL, MIB));
        allocation_builder_free(&s, allocation_builder_alloc(
                                        &s, "net.py:2 mix < net.py:9 forward" CALL, MIB));
        allocation_builder_free(&s, allocation_builder_alloc(
                                        &s, "net.py:3 mlp < net.py:9 forward" CALL, MIB));
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    expect_steps(steps, DRY_STEPS_NONE, 1, 0);
    assert_non_null(strstr(dry_steps_get_reason(steps), "layers"));
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

#define MODEL " < /x/torch/nn/modules/module.py:1779 _call_impl < serve.py:9 main"

/* All of a step's code may run under one call of a model, but not under one of its lines. */
static void
steps_of_inference_are_told_from_layers(void **state)
{
    (void)state;
    struct variant {
        const char *first;
        bool is_kept;
        enum dry_steps_source source;
    } variants[] = {
        {"net.py:5 forward" MODEL, false, DRY_STEPS_PERIODICITY}, /* the line before */
        {"net.py:1 norm < net.py:9 forward" MODEL, false, DRY_STEPS_NONE},
        {"net.py:5 norm" MODEL, true, DRY_STEPS_NONE}, /* kept for the backward pass */
    };
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const char *rest = v == 2 ? "net.py:7 mix" MODEL : "net.py:9 forward" MODEL;
        struct allocation_builder s;
        allocation_builder_begin(&s);
        for (int i = 0; i < 12; i++) {
            uint32_t x = allocation_builder_alloc(&s, variants[v].first, MIB);
            uint32_t y = allocation_builder_alloc(&s, rest, 2 * MIB);
            allocation_builder_free(&s, allocation_builder_alloc(&s, rest, MIB));
            if (!variants[v].is_kept) {
                allocation_builder_free(&s, x);
                allocation_builder_free(&s, y);
            }
        }
        allocation_builder_end(&s);
        struct dry_steps *steps = steps_of(&s);
        check_steps(steps, s.timeline);
        assert_int_equal(dry_steps_get_source(steps), variants[v].source);
        dry_steps_destroy(steps);
        allocation_builder_finish(&s);
    }
}

/* One step of a training run: its layers repeat, and so do its parameters' updates. */
static void
parameters_of_one_update_are_no_steps(void **state)
{
    (void)state;
    struct allocation_builder s;
    allocation_builder_begin(&s);
    for (int layer = 0; layer < 6; layer++)
        allocation_builder_alloc(&s, "net.py:1 forward < main.py:1 main", MIB);
    allocation_builder_annotate(&s, "Optimizer.step#AdamW.step", "START");
    for (int p = 0; p < 60; p++) {
        allocation_builder_free(
            &s, allocation_builder_alloc(&s, "opt.py:4 root < main.py:2 main", MIB));
        allocation_builder_free(
            &s, allocation_builder_alloc(&s, "opt.py:5 scale < main.py:2 main", MIB));
    }
    allocation_builder_annotate(&s, "Optimizer.step#AdamW.step", "END");
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    expect_steps(steps, DRY_STEPS_NONE, 1, 0);
    assert_non_null(strstr(dry_steps_get_reason(steps), "optimizer"));
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* A line that logs now and then keeps time too, but is no loop. */
static void
logging_every_fourth_step_makes_no_steps_of_its_own(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 24; i++) {
        for (int k = 0; k < 12; k++) {
            char code[40];
            snprintf(code, sizeof code, "model.py:%d part < train.py:12 main", 100 + k);
            allocation_builder_free(&s, allocation_builder_alloc(&s, code, MIB));
        }
        train(&s, &t);
        if (i % 4 == 3)
            allocation_builder_free(
                &s, allocation_builder_alloc(&s, "log.py:9 log < train.py:30 main", MIB));
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    expect_steps(steps, DRY_STEPS_PERIODICITY, 1, 24);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* --- no loops ----------------------------------------------------------------------------- */

static void
expect_none(struct allocation_builder *s)
{
    allocation_builder_end(s);
    struct dry_steps *steps = steps_of(s);
    check_steps(steps, s->timeline);
    expect_steps(steps, DRY_STEPS_NONE, 1, 0);
    assert_true(strlen(dry_steps_get_reason(steps)) > 0);
    assert_true(dry_steps_get_confidence(steps) == 0.0);
    dry_steps_destroy(steps);
    allocation_builder_finish(s);
}

static void
fewer_than_three_steps_are_none(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    train(&s, &t);
    train(&s, &t);
    expect_none(&s);
    allocation_builder_begin(&s);
    expect_none(&s);
}

static void
equal_allocations_are_no_loop(void **state)
{
    (void)state;
    struct allocation_builder s;
    allocation_builder_begin(&s);
    for (int i = 0; i < 3000; i++)
        allocation_builder_alloc(&s, "a.py:1 f", MIB);
    expect_none(&s);
}

static void
random_allocations_are_no_loop(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct allocation_builder s;
        struct random r;
        random_init(&r, seed);
        allocation_builder_begin(&s);
        uint64_t kinds = 3 + seed * seed;
        for (int i = 0; i < 2000; i++) {
            char code[40];
            snprintf(code, sizeof code, "a.py:%d f", (int)random_below(&r, kinds));
            allocation_builder_free(&s, allocation_builder_alloc(&s, code, 512));
        }
        expect_none(&s);
    }
}

static void
a_million_different_stacks_take_no_long_time(void **state)
{
    (void)state;
    struct allocation_builder s;
    allocation_builder_begin(&s);
    for (int i = 0; i < 1000000; i++) {
        char code[40];
        snprintf(code, sizeof code, "a.py:%d f", i / 3);
        allocation_builder_alloc(&s, code, 512);
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

static void
time_that_goes_back_does_no_harm(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    s.time_us = INT64_MAX;
    s.tick_us = -1000000;
    for (int i = 0; i < 4; i++) {
        allocation_builder_annotate(&s, "step 3", i % 2 ? "END" : "START");
        train(&s, &t);
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* --- marks -------------------------------------------------------------------------------- */

static void
profiler_steps_are_taken_as_they_are(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 3; i++) {
        char name[40];
        snprintf(name, sizeof name, "ProfilerStep#%d", i + 9);
        allocation_builder_annotate(&s, name, "START");
        train(&s, &t);
        allocation_builder_annotate(&s, name, "END");
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    const struct dry_step *rows = expect_steps(steps, DRY_STEPS_ANNOTATIONS, 1, 3);
    assert_int_equal(rows[0].begin, 4);
    assert_int_equal(rows[0].alloc_count, 22);
    assert_int_equal(rows[0].begin_us, 40);
    assert_non_null(strstr(dry_steps_get_marker(steps, NULL), "ProfilerStep#"));
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* An inner count that begins anew, and scopes that come oftener, mark no steps. */
static void
outer_marks_win(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 3; i++) {
        char name[40];
        snprintf(name, sizeof name, "iteration_%d", i);
        allocation_builder_annotate(&s, name, "START");
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "micro_batch_%d", k);
            allocation_builder_annotate(&s, name, "START");
            train(&s, &t);
            allocation_builder_annotate(&s, name, "END");
            allocation_builder_annotate(&s, "Optimizer.step#SGD.step", "END");
        }
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    expect_steps(steps, DRY_STEPS_ANNOTATIONS, 1, 3);
    assert_non_null(strstr(dry_steps_get_marker(steps, NULL), "iteration_"));
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* However often another one came before: the scopes that cover most are the steps. */
static void
late_marks_win_if_they_cover_more(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 70; i++) {
        allocation_builder_annotate(&s, "warm-up step", "START");
        allocation_builder_free(&s,
                                allocation_builder_alloc(&s, "setup.py:3 warm_up", 512));
        allocation_builder_annotate(&s, "warm-up step", "END");
    }
    for (int i = 0; i < 12; i++) {
        allocation_builder_annotate(&s, "train step", "START");
        train(&s, &t);
        allocation_builder_annotate(&s, "train step", "END");
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    assert_int_equal(dry_steps_get_source(steps), DRY_STEPS_ANNOTATIONS);
    assert_string_equal(dry_steps_get_marker(steps, NULL), "train step");
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

static void
optimizer_steps_end_steps(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 3; i++) {
        train(&s, &t);
        allocation_builder_annotate(&s, "Optimizer.step#AdamW.step", "START");
        allocation_builder_annotate(&s, "Optimizer.step#AdamW.step", "END");
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    check_steps(steps, s.timeline);
    uint32_t count;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    assert_int_equal(dry_steps_get_source(steps), DRY_STEPS_ANNOTATIONS);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].alloc_count, 26);
    assert_int_equal(rows[2].alloc_count, 18);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

static void
metadata_that_counts_marks_steps(void **state)
{
    (void)state;
    static const char *const forms[] = {"step %d", "iteration=%d", "%d", "{'step': %d}"};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        struct allocation_builder s;
        struct training t = begin_training(&s, true);
        for (int i = 0; i < 3; i++) {
            char text[40];
            if (f == 0)
                snprintf(text, sizeof text, "step %d", i);
            else if (f == 1)
                snprintf(text, sizeof text, "iteration=%d", i);
            else if (f == 2)
                snprintf(text, sizeof text, "%d", i);
            else
                snprintf(text, sizeof text, "{'step': %d}", i);
            allocation_builder_set_metadata(&s, text);
            train(&s, &t);
        }
        allocation_builder_end(&s);
        struct dry_steps *steps = steps_of(&s);
        check_steps(steps, s.timeline);
        expect_steps(steps, DRY_STEPS_METADATA, 1, 3);
        dry_steps_destroy(steps);
        allocation_builder_finish(&s);
    }
}

static void
metadata_that_begins_anew_counts_no_steps(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 6; i++) {
        allocation_builder_set_metadata(&s, i % 2 ? "step 1" : "step 0");
        train(&s, &t);
    }
    allocation_builder_end(&s);
    struct dry_steps *steps = steps_of(&s);
    expect_steps(steps, DRY_STEPS_PERIODICITY, 1, 6);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* --- growth ------------------------------------------------------------------------------- */

enum hoard { HOARD_LEAK, HOARD_CACHE, HOARD_WINDOW, HOARD_NOW_AND_THEN };

static struct dry_steps *
train_and_hoard(struct allocation_builder *s, enum hoard hoard, bool has_stacks)
{
    struct training t = begin_training(s, has_stacks);
    uint32_t held[40];
    for (uint32_t i = 0; i < 40; i++) {
        train(s, &t);
        if ((hoard == HOARD_CACHE && i >= 24) || (hoard == HOARD_NOW_AND_THEN && i % 4))
            continue;
        held[i] = take(s, &t, "log.py:3 keep < train.py:16 main", 3 * MIB + 512);
        if (hoard == HOARD_WINDOW && i >= 5)
            allocation_builder_free(s, held[i - 5]);
    }
    allocation_builder_end(s);
    return steps_of(s);
}

static void
leak_is_found_to_the_byte(void **state)
{
    (void)state;
    for (int has_stacks = 0; has_stacks < 2; has_stacks++) {
        struct allocation_builder s;
        struct dry_steps *steps = train_and_hoard(&s, HOARD_LEAK, has_stacks);
        size_t count;
        const struct dry_growth *g = dry_steps_get_growth(steps, &count);
        assert_int_equal(count, 1);
        assert_int_equal(g->bytes_per_step, 3 * MIB + 512);
        assert_int_equal(g->count_per_step, 1);
        /* Steps begin with what is kept: memory never is lower. The last is cut off. */
        assert_int_equal(g->step_count, 39);
        assert_int_equal(g->bytes, 39 * (3 * MIB + 512));
        assert_true(g->confidence > 0.99);
        assert_int_equal(dry_steps_growth_per_step(steps), 3 * MIB + 512);
        dry_steps_destroy(steps);
        allocation_builder_finish(&s);
    }
}

static void
cache_that_fills_up_is_no_leak(void **state)
{
    (void)state;
    static const enum hoard none[] = {HOARD_CACHE, HOARD_WINDOW};
    for (size_t i = 0; i < 2; i++) {
        struct allocation_builder s;
        struct dry_steps *steps = train_and_hoard(&s, none[i], true);
        size_t count;
        dry_steps_get_growth(steps, &count);
        assert_int_equal(count, 0);
        assert_int_equal(dry_steps_growth_per_step(steps), 0);
        dry_steps_destroy(steps);
        allocation_builder_finish(&s);
    }
}

static void
leak_now_and_then_is_a_suspect_by_its_mean(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct dry_steps *steps = train_and_hoard(&s, HOARD_NOW_AND_THEN, true);
    size_t count;
    const struct dry_growth *g = dry_steps_get_growth(steps, &count);
    assert_int_equal(count, 1);
    assert_int_equal(g->count_per_step, 0);
    assert_true(g->bytes_per_step > MIB / 2 && g->bytes_per_step < MIB);
    assert_true(g->confidence < 0.5);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

/* --- options, memory, recordings ---------------------------------------------------------- */

static void
window_can_be_cut(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct training t = begin_training(&s, true);
    for (int i = 0; i < 5; i++)
        train(&s, &t);
    uint32_t until = s.event_count;
    for (int i = 0; i < 100; i++)
        allocation_builder_alloc(&s, "a.py:1 f", MIB);
    allocation_builder_end(&s);
    struct dry_steps_options options;
    struct dry_steps *steps;
    struct dry_error err;
    dry_steps_options_init(&options);
    options.until = until;
    assert_int_equal(dry_steps_create(s.timeline, &options, &steps, &err), DRY_OK);
    uint32_t count;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    assert_int_equal(count, 6);
    assert_int_equal(rows[5].end, until);
    assert_int_equal(dry_steps_find(steps, until), DRY_NONE);
    dry_steps_destroy(steps);
    options.until = 0;
    assert_int_equal(dry_steps_create(s.timeline, &options, &steps, &err),
                     DRY_ERR_ARGUMENT);
    options.until = 1;
    assert_int_equal(dry_steps_create(s.timeline, &options, &steps, &err), DRY_OK);
    dry_steps_destroy(steps);
    allocation_builder_finish(&s);
}

static void
without_memory_nothing_is_lost(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct allocation_builder s;
        struct training t = begin_training(&s, variant != 1);
        for (int i = 0; i < 8; i++) {
            if (variant == 2)
                allocation_builder_annotate(&s, "Optimizer.step#AdamW.step", "START");
            if (variant == 2)
                allocation_builder_annotate(&s, "Optimizer.step#AdamW.step", "END");
            if (variant == 3)
                allocation_builder_set_metadata(&s, i < 4 ? "step 1" : "step 2");
            train(&s, &t);
            take(&s, &t, "log.py:3 keep < train.py:16 main", 3 * MIB);
        }
        allocation_builder_end(&s);
        size_t n = 0;
        for (;; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            struct dry_steps_options options;
            dry_steps_options_init(&options);
            options.memory = &memory;
            struct dry_steps *steps = NULL;
            struct dry_error err;
            enum dry_status status = dry_steps_create(s.timeline, &options, &steps, &err);
            dry_steps_destroy(steps);
            failing_memory_finish(&fm);
            assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
            if (!fm.failed)
                break;
            assert_null(steps);
        }
        assert_true(n > 5);
        allocation_builder_finish(&s);
    }
}

/* What is known of the recordings: single steps, whose layers must not be taken for steps. */
static void
recordings_of_single_steps_have_none(void **state)
{
    (void)state;
    static const char *const names[] = {"pytorch/transformer-medium-512-train.pickle",
                                        "pytorch/transformer-medium-128-infer.pickle",
                                        "pytorch/python-stacks-only.pickle",
                                        "pytorch/late-start.pickle",
                                        "pytorch/tiny-cs336.pickle"};
    size_t met = 0;
    for (size_t i = 0; i < sizeof names / sizeof(const char *); i++) {
        size_t count;
        unsigned char *bytes = bytes_of_trace(names[i], &count);
        if (!bytes) {
            print_message("SKIPPED in part: %s is not in $DRY_TEST_TRACES\n", names[i]);
            continue;
        }
        struct bytes_source from;
        struct dry_source source = bytes_source_init(&from, bytes, count);
        struct allocation_builder s = {0};
        struct dry_error err;
        assert_int_equal(dry_trace_read(&source, NULL, &s.trace, &err), DRY_OK);
        assert_int_equal(dry_replay_create(s.trace, NULL, &s.replay, &err), DRY_OK);
        assert_int_equal(dry_timeline_create(s.replay, NULL, &s.timeline, &err), DRY_OK);
        struct dry_steps *steps = steps_of(&s);
        check_steps(steps, s.timeline);
        assert_int_equal(dry_steps_get_source(steps), DRY_STEPS_NONE);
        dry_steps_destroy(steps);
        allocation_builder_finish(&s);
        free(bytes);
        met++;
    }
    if (met == 0)
        skip_because("no recordings in $DRY_TEST_TRACES");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_without_marks_is_told_by_its_rhythm),
        cmocka_unit_test(varying_training_is_told_by_its_stacks),
        cmocka_unit_test(window_that_begins_and_ends_anywhere_has_partial_steps),
        cmocka_unit_test(step_with_an_oom_is_partial),
        cmocka_unit_test(outer_loop_is_preferred),
        cmocka_unit_test(layers_of_one_call_are_no_steps),
        cmocka_unit_test(steps_of_inference_are_told_from_layers),
        cmocka_unit_test(parameters_of_one_update_are_no_steps),
        cmocka_unit_test(logging_every_fourth_step_makes_no_steps_of_its_own),
        cmocka_unit_test(fewer_than_three_steps_are_none),
        cmocka_unit_test(equal_allocations_are_no_loop),
        cmocka_unit_test(random_allocations_are_no_loop),
        cmocka_unit_test(a_million_different_stacks_take_no_long_time),
        cmocka_unit_test(time_that_goes_back_does_no_harm),
        cmocka_unit_test(profiler_steps_are_taken_as_they_are),
        cmocka_unit_test(outer_marks_win),
        cmocka_unit_test(late_marks_win_if_they_cover_more),
        cmocka_unit_test(optimizer_steps_end_steps),
        cmocka_unit_test(metadata_that_counts_marks_steps),
        cmocka_unit_test(metadata_that_begins_anew_counts_no_steps),
        cmocka_unit_test(leak_is_found_to_the_byte),
        cmocka_unit_test(cache_that_fills_up_is_no_leak),
        cmocka_unit_test(leak_now_and_then_is_a_suspect_by_its_mean),
        cmocka_unit_test(window_can_be_cut),
        cmocka_unit_test(without_memory_nothing_is_lost),
        cmocka_unit_test(recordings_of_single_steps_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
