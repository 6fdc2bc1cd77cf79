/* SPDX-License-Identifier: Apache-2.0 */

/*
 * categories: the demo's training run, of which the truth is known; the rules one by one, with
 * names and without; marks; inference; memory that runs out.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "replay/demo_step.h"
#include "support/allocation_builder.h"
#include "support/failing_memory.h"

#define MIB (UINT64_C(1) << 20)

struct subject {
    struct dry_steps *steps;
    struct dry_categories *categories;
    const struct dry_category_guess *guesses;
};

static struct subject
judge(const struct dry_timeline *timeline)
{
    struct subject j;
    struct dry_error err;
    if (dry_steps_create(timeline, NULL, &j.steps, &err) != DRY_OK ||
        dry_categories_create(timeline, j.steps, NULL, &j.categories, &err) != DRY_OK)
        fail_msg("%s", err.text);
    j.guesses = dry_categories_get(j.categories);
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    for (uint32_t a = 0; a < v->allocation_count; a++) {
        const struct dry_category_guess *g = &j.guesses[a];
        assert_true(g->category < DRY_CATEGORY_COUNT);
        assert_true(g->confidence <= 95);
        assert_int_equal(g->category == DRY_CATEGORY_UNKNOWN, g->confidence == 0);
        assert_int_equal(g->category == DRY_CATEGORY_UNKNOWN,
                         g->evidence == DRY_EVIDENCE_NONE);
    }
    return j;
}

static void
finish(struct subject *j)
{
    dry_categories_destroy(j->categories);
    dry_steps_destroy(j->steps);
}

static void
expect(const struct subject *j, uint32_t allocation, enum dry_category category)
{
    const struct dry_category_guess *g = &j->guesses[allocation];
    if (g->category != category)
        fail_msg("allocation %u: %s, expected %s", allocation,
                 dry_category_name((enum dry_category)g->category),
                 dry_category_name(category));
}

/* --- the demo ----------------------------------------------------------------------------- */

static const struct demo_model demo = {.layers = 4,
                                       .hidden = 192,
                                       .heads = 3,
                                       .sequence = 96,
                                       .batch = 5,
                                       .vocabulary = 1000,
                                       .steps = 6};

struct demo_run {
    struct dry_trace *requests, *trace;
    struct dry_replay *first, *replay;
    struct dry_timeline *timeline;
};

static void
run_demo(struct demo_run *d)
{
    struct dry_error err = {0};
    if (demo_make_requests(&demo, &d->requests, &err) != DRY_OK ||
        dry_replay_create(d->requests, NULL, &d->first, &err) != DRY_OK ||
        dry_replay_record(d->first, NULL, &d->trace, &err) != DRY_OK ||
        dry_replay_create(d->trace, NULL, &d->replay, &err) != DRY_OK ||
        dry_timeline_create(d->replay, NULL, &d->timeline, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static void
finish_demo(struct demo_run *d)
{
    dry_timeline_destroy(d->timeline);
    dry_replay_destroy(d->replay);
    dry_replay_destroy(d->first);
    dry_trace_destroy(d->trace);
    dry_trace_destroy(d->requests);
}

static const char *
function_of(const struct dry_trace *trace, uint32_t stack)
{
    size_t count;
    const uint32_t *frames = dry_trace_stack(trace, stack, &count);
    assert_true(count == 2);
    return dry_trace_string(trace, dry_trace_get_view(trace)->frames[frames[0]].name,
                            NULL);
}

static bool
is_weight_size(uint64_t bytes)
{
    uint64_t square = 4ull * demo.hidden * demo.hidden;
    return bytes == square || bytes == 3 * square || bytes == 4 * square ||
           bytes == 16ull * demo.hidden || bytes == 4ull * demo.vocabulary * demo.hidden;
}

/* What demo_step.c makes where: the truth. */
static enum dry_category
truth_of(const struct dry_trace *trace, const struct dry_allocation *a)
{
    const char *function = function_of(trace, a->stack);
    uint64_t workspace = 16ull * 4 * demo.batch * demo.sequence;
    if (strstr(function, "__init__"))
        return DRY_CATEGORY_WEIGHTS;
    if (strcmp(function, "Adam._init_group") == 0)
        return DRY_CATEGORY_OPTIMIZER;
    if (strcmp(function, "next_batch") == 0)
        return DRY_CATEGORY_INPUTS;
    if (strcmp(function, "log_samples") == 0 && a->freed == DRY_MOMENT_NEVER)
        return DRY_CATEGORY_UNKNOWN;
    if (strcmp(function, "backward") == 0)
        return is_weight_size(a->requested) ? DRY_CATEGORY_GRADIENTS
                                            : DRY_CATEGORY_TEMPORARIES;
    bool is_forward =
        strstr(function, "forward") || strcmp(function, "cross_entropy") == 0;
    if (is_forward && a->requested != workspace && a->requested != workspace * 3 / 2)
        return DRY_CATEGORY_ACTIVATIONS;
    return DRY_CATEGORY_TEMPORARIES;
}

static void
demo_is_told_apart(void **state)
{
    (void)state;
    struct demo_run d = {0};
    run_demo(&d);
    struct subject j = judge(d.timeline);
    const struct dry_timeline_view *v = dry_timeline_get_view(d.timeline);
    uint64_t table[DRY_CATEGORY_COUNT][DRY_CATEGORY_COUNT] = {0}, right = 0, all = 0;
    for (uint32_t i = 0; i < v->allocation_count; i++) {
        const struct dry_allocation *a = &v->allocations[i];
        enum dry_category truth = truth_of(d.trace, a);
        table[truth][j.guesses[i].category] += a->size;
        all += a->size;
        right += truth == j.guesses[i].category ? a->size : 0;
    }
    for (int t = 0; t < DRY_CATEGORY_COUNT; t++) {
        printf("%-12s", dry_category_name((enum dry_category)t));
        for (int g = 0; g < DRY_CATEGORY_COUNT; g++)
            printf(" %12llu", (unsigned long long)table[t][g]);
        printf("\n");
    }
    printf("right: %.2f %%\n", 100.0 * (double)right / (double)all);
    assert_true(right >= all / 100 * 99);
    for (int t = DRY_CATEGORY_WEIGHTS; t <= DRY_CATEGORY_INPUTS; t++) {
        uint64_t of_truth = 0;
        for (int g = 0; g < DRY_CATEGORY_COUNT; g++)
            of_truth += table[t][g];
        assert_true(of_truth > 0);
        assert_true(table[t][t] >= of_truth / 100 * 95);
    }
    finish(&j);
    finish_demo(&d);
}

/* --- rules -------------------------------------------------------------------------------- */

#define LAYERS 8u

/* What a step made, by allocation. */
struct made {
    uint32_t weights[LAYERS], state[LAYERS];
    uint32_t kept[LAYERS], work[LAYERS], grads[LAYERS], flow[LAYERS], update[LAYERS];
    uint32_t batch, loss;
    bool has_state;
};

enum naming { NAMED, PYTHON_ONLY, HOOKED, NAMELESS };

/* Stacks as they are recorded whole, of Python alone, with frames of a dry run's hook, or none. */
static uint32_t
take(struct allocation_builder *s, enum naming naming, const char *code, uint64_t size)
{
    bool is_backward = strstr(code, "Engine") != NULL;
    if (naming == NAMELESS)
        code = NULL;
    else if (naming == PYTHON_ONLY && is_backward)
        code = "";
    else if (naming == HOOKED && is_backward)
        code = size > 8 * MIB ? "/x/torch/_ops.py:9 redispatch < "
                                "/h/_drystone_masks.py:5 run"
                              : "";
    return allocation_builder_alloc(s, code, size);
}

static void
run_backward(struct allocation_builder *s, struct made *m, enum naming naming)
{
    /* the call is Python's, whatever else is recorded */
    allocation_builder_free(
        s, take(s, naming, "/x/torch/_tensor.py:9 backward < train.py:13 main", 1024));
    for (unsigned i = LAYERS; i-- > 0;) {
        m->flow[i] = take(s, naming, "engine.cpp:1 autograd::Engine::run", 8 * MIB + 512);
        m->grads[i] =
            take(s, naming, "engine.cpp:2 autograd::Engine::run", (2 + i) * MIB);
        allocation_builder_free(s, m->kept[i]);
        if (i + 1 < LAYERS)
            allocation_builder_free(s, m->flow[i + 1]);
    }
    allocation_builder_free(s, m->flow[0]);
}

static void
run_step(struct allocation_builder *s, struct made *m, enum naming naming)
{
    m->batch = take(s, naming, "data.py:5 fetch < train.py:10 main", 4 * MIB);
    for (unsigned i = 0; i < LAYERS; i++) {
        m->kept[i] = take(s, naming, "model.py:31 layer < train.py:12 main", 16 * MIB);
        m->work[i] = take(s, naming, "model.py:32 layer < train.py:12 main", 9 * MIB);
        allocation_builder_free(s, m->work[i]);
    }
    m->loss = take(s, naming, "model.py:40 loss < train.py:12 main", 512);
    run_backward(s, m, naming);
    for (unsigned i = 0; i < LAYERS; i++) {
        if (!m->has_state)
            m->state[i] =
                take(s, naming, "/x/torch/optim/adam.py:8 make < train.py:15 main",
                     (2 + i) * MIB);
        m->update[i] = take(s, naming, "/x/torch/optim/adam.py:9 f < train.py:15 main",
                            (2 + i) * MIB);
        allocation_builder_free(s, m->update[i]);
    }
    m->has_state = true;
    for (unsigned i = 0; i < LAYERS; i++)
        allocation_builder_free(s, m->grads[i]);
    allocation_builder_free(s, m->loss);
    allocation_builder_free(s, m->batch);
}

static void
make_weights(struct allocation_builder *s, struct made *m, enum naming naming)
{
    for (unsigned i = 0; i < LAYERS; i++)
        m->weights[i] =
            take(s, naming, "model.py:3 build < train.py:2 main", (2 + i) * MIB);
}

/* By shape alone the layers around the peak are not sure: their passes touch there. */
static void
expect_step(const struct subject *j, const struct made *m, enum naming naming)
{
    for (unsigned i = 0; i < (naming == NAMELESS ? LAYERS - 2 : LAYERS); i++) {
        expect(j, m->weights[i], DRY_CATEGORY_WEIGHTS);
        expect(j, m->state[i], DRY_CATEGORY_OPTIMIZER);
        expect(j, m->kept[i], DRY_CATEGORY_ACTIVATIONS);
        expect(j, m->work[i], DRY_CATEGORY_TEMPORARIES);
        expect(j, m->grads[i], DRY_CATEGORY_GRADIENTS);
        expect(j, m->flow[i], DRY_CATEGORY_TEMPORARIES);
        expect(j, m->update[i], DRY_CATEGORY_TEMPORARIES);
    }
    expect(j, m->batch, DRY_CATEGORY_INPUTS);
}

static void
lives_tell_with_names_and_without(void **state)
{
    (void)state;
    uint8_t confidence[NAMELESS + 1];
    for (int naming = NAMED; naming <= NAMELESS; naming++) {
        struct allocation_builder s;
        struct made m = {0}, first;
        allocation_builder_begin(&s);
        make_weights(&s, &m, (enum naming)naming);
        run_step(&s, &m, (enum naming)naming);
        first = m;
        for (int i = 0; i < 4; i++)
            run_step(&s, &m, (enum naming)naming);
        allocation_builder_end(&s);
        struct subject j = judge(s.timeline);
        expect_step(&j, &first, (enum naming)naming);
        expect_step(&j, &m, (enum naming)naming);
        for (unsigned i = 0; i < LAYERS; i++)
            assert_int_equal(j.guesses[m.kept[i]].evidence, DRY_EVIDENCE_LIFE);
        assert_int_equal(j.guesses[m.kept[1]].pass, DRY_PASS_FORWARD);
        assert_int_equal(j.guesses[m.flow[1]].pass, DRY_PASS_BACKWARD);
        assert_int_equal(j.guesses[m.grads[1]].pass, DRY_PASS_BACKWARD);
        if (naming != NAMELESS) /* by shape, the update begins late */
            assert_int_equal(j.guesses[m.update[1]].pass, DRY_PASS_UPDATE);
        confidence[naming] = j.guesses[m.kept[0]].confidence;
        finish(&j);
        allocation_builder_finish(&s);
    }
    assert_true(confidence[NAMED] > confidence[NAMELESS]);
}

/* Gradients that zero_grad() keeps, of an optimizer that allocates nothing. */
static void
gradients_that_stay_are_gradients(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct made m = {0};
    allocation_builder_begin(&s);
    make_weights(&s, &m, NAMED);
    for (int step = 0; step < 5; step++) {
        m.batch = take(&s, NAMED, "data.py:5 fetch < train.py:10 main", 4 * MIB);
        for (unsigned i = 0; i < LAYERS; i++)
            m.kept[i] = take(&s, NAMED, "model.py:31 layer < train.py:12 main", 16 * MIB);
        for (unsigned i = LAYERS; i-- > 0;) {
            if (step == 0)
                m.grads[i] =
                    take(&s, NAMED, "e.cpp:1 autograd::Engine::run", (2 + i) * MIB);
            allocation_builder_free(
                &s, take(&s, NAMED, "e.cpp:2 autograd::Engine::run", MIB));
            allocation_builder_free(&s, m.kept[i]);
        }
        allocation_builder_free(&s, m.batch);
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS; i++) {
        expect(&j, m.weights[i], DRY_CATEGORY_WEIGHTS);
        expect(&j, m.grads[i], DRY_CATEGORY_GRADIENTS);
        expect(&j, m.kept[i], DRY_CATEGORY_ACTIVATIONS);
    }
    finish(&j);
    allocation_builder_finish(&s);
}

/* A scope is surer than a life: state made in a single step whose names say nothing. */
static void
annotations_tell_the_update(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct made m = {0};
    uint32_t kept[LAYERS], made[LAYERS];
    allocation_builder_begin(&s);
    for (unsigned i = 0; i < LAYERS; i++)
        kept[i] = allocation_builder_alloc(&s, "model.py:31 layer < train.py:12 main",
                                           16 * MIB);
    run_backward(&s, (memcpy(m.kept, kept, sizeof kept), &m), NAMED);
    allocation_builder_annotate(&s, "Optimizer.step#Lion.step", "START");
    uint32_t work =
        allocation_builder_alloc(&s, "lion.py:7 f < train.py:15 main", 3 * MIB);
    for (unsigned i = 0; i < LAYERS; i++)
        made[i] =
            allocation_builder_alloc(&s, "lion.py:8 f < train.py:15 main", (2 + i) * MIB);
    allocation_builder_free(&s, work);
    allocation_builder_annotate(&s, "Optimizer.step#Lion.step", "END");
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS; i++) {
        expect(&j, made[i], DRY_CATEGORY_OPTIMIZER);
        assert_int_equal(j.guesses[made[i]].evidence, DRY_EVIDENCE_SCOPE);
        expect(&j, kept[i], DRY_CATEGORY_ACTIVATIONS);
    }
    expect(&j, work, DRY_CATEGORY_TEMPORARIES);
    finish(&j);
    allocation_builder_finish(&s);
}

/* No stacks, and more gradients than activations: the peak is the backward pass's end. Two
   optimizers, a step each in turns, so that neither's state nor its gradients are of one step
   alone. */
static void
updates_tell_the_passes_without_names(void **state)
{
    (void)state;
    struct allocation_builder s;
    uint32_t kept[LAYERS], grads[8][LAYERS], moments[2][LAYERS];
    allocation_builder_begin(&s);
    for (unsigned i = 0; i < 2 * LAYERS; i++)
        allocation_builder_alloc(&s, NULL, (20 + i % LAYERS) * MIB);
    for (unsigned turn = 0; turn < 8; turn++) {
        unsigned who = turn % 2;
        for (unsigned i = 0; i < LAYERS; i++) {
            kept[i] = allocation_builder_alloc(&s, NULL, MIB);
            allocation_builder_free(&s, allocation_builder_alloc(&s, NULL, MIB / 2));
        }
        for (unsigned i = LAYERS; i-- > 0;) {
            if (turn > 1)
                allocation_builder_free(&s, grads[turn - 2][i]);
            grads[turn][i] = allocation_builder_alloc(&s, NULL, (20 + i) * MIB);
            allocation_builder_free(&s, allocation_builder_alloc(&s, NULL, MIB / 2));
            allocation_builder_free(&s, kept[i]);
        }
        allocation_builder_annotate(&s, "Optimizer.step#Adam.step", "START");
        for (unsigned i = 0; i < LAYERS && turn < 2; i++)
            moments[who][i] = allocation_builder_alloc(&s, NULL, (20 + i) * MIB);
        allocation_builder_free(&s, allocation_builder_alloc(&s, NULL, 90 * MIB));
        allocation_builder_annotate(&s, "Optimizer.step#Adam.step", "END");
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < 2 * LAYERS; i++) {
        expect(&j, i, DRY_CATEGORY_WEIGHTS);
        expect(&j, moments[i % 2][i / 2], DRY_CATEGORY_OPTIMIZER);
        expect(&j, grads[2 + i % 2][i / 2], DRY_CATEGORY_GRADIENTS);
    }
    for (unsigned i = 0; i < LAYERS - 3; i++) /* it is not sure where the turn is */
        expect(&j, kept[i], DRY_CATEGORY_ACTIVATIONS);
    finish(&j);
    allocation_builder_finish(&s);
}

/* A line makes three tensors of a size, and the last is saved: q @ k / 8 and its softmax. */
static uint32_t
run_line(struct allocation_builder *s, enum naming naming, uint64_t size)
{
    uint32_t made[3];
    for (int i = 0; i < 3; i++) {
        made[i] = take(s, naming, "model.py:31 layer < train.py:12 main", size);
        if (i > 0)
            allocation_builder_free(s, made[i - 1]);
    }
    return made[2];
}

/* At an out-of-memory in the forward pass nothing has been given back yet. The size is new, so
   that only the line's temporaries have whole lives. */
static void
cut_off_softmaxes_are_no_temporaries(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct made m = {0};
    uint32_t kept[LAYERS];
    allocation_builder_begin(&s);
    make_weights(&s, &m, NAMED);
    for (int i = 0; i < 4; i++)
        run_step(&s, &m, NAMED);
    for (unsigned i = 0; i < LAYERS; i++)
        kept[i] = run_line(&s, NAMED, 24 * MIB);
    allocation_builder_oom(&s, 16 * MIB);
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS - 3; i++) /* the others have lived no longer */
        expect(&j, kept[i], DRY_CATEGORY_ACTIVATIONS);
    finish(&j);
    allocation_builder_finish(&s);
}

/* A program that evaluates with autograd on: the next loss drops the graph of the last one. */
static void
graphs_that_are_dropped_were_saved(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct made m = {0};
    uint32_t kept[3][LAYERS];
    allocation_builder_begin(&s);
    make_weights(&s, &m, NAMED);
    for (int i = 0; i < 4; i++)
        run_step(&s, &m, NAMED);
    for (int turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < LAYERS; i++)
            kept[turn][i] = run_line(&s, NAMED, 20 * MIB);
        for (unsigned i = 0; turn > 0 && i < LAYERS; i++)
            allocation_builder_free(&s, kept[turn - 1][i]);
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS; i++) {
        expect(&j, kept[0][i], DRY_CATEGORY_ACTIVATIONS);
        expect(&j, kept[1][i], DRY_CATEGORY_ACTIVATIONS);
    }
    finish(&j);
    allocation_builder_finish(&s);
}

/* A word a step: each block's keys and values are made anew, one place longer, and have no name. */
static void
caches_that_grow_need_no_name(void **state)
{
    (void)state;
    struct allocation_builder s;
    uint32_t weights[LAYERS], cache[2 * LAYERS] = {0}, first = 0;
    allocation_builder_begin(&s);
    for (unsigned i = 0; i < LAYERS; i++)
        weights[i] =
            allocation_builder_alloc(&s, "model.py:3 build < serve.py:2 main", 8 * MIB);
    for (unsigned word = 0; word < 9; word++) {
        uint32_t x =
            allocation_builder_alloc(&s, "model.py:8 embed < serve.py:9 main", MIB);
        for (unsigned i = 0; i < 2 * LAYERS; i++) {
            const char *code = word == 0 ? "model.py:5 project < serve.py:9 main"
                                         : "model.py:7 extend < serve.py:9 main";
            uint32_t made = allocation_builder_alloc(&s, code, (word + 1) * MIB);
            if (word > 0)
                allocation_builder_free(&s, cache[i]);
            first = word == 0 ? made : first;
            cache[i] = made;
            allocation_builder_free(
                &s, allocation_builder_alloc(&s, "model.py:9 mix < serve.py:9 main",
                                             3 * MIB));
        }
        allocation_builder_free(&s, x);
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    expect(&j, first, DRY_CATEGORY_KV_CACHE);
    for (unsigned i = 0; i < 2 * LAYERS; i++) {
        expect(&j, cache[i], DRY_CATEGORY_KV_CACHE);
        assert_int_not_equal(j.guesses[weights[i / 2]].category, DRY_CATEGORY_KV_CACHE);
    }
    finish(&j);
    allocation_builder_finish(&s);
}

/* Python's stacks are empty in all of the backward pass: that is no code with votes. */
static void
an_empty_stack_has_no_votes(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct made m = {0};
    uint32_t kept[LAYERS], grads[LAYERS];
    allocation_builder_begin(&s);
    for (int step = 0; step < 5; step++) {
        for (unsigned i = 0; i < LAYERS; i++)
            kept[i] =
                take(&s, PYTHON_ONLY, "model.py:31 layer < train.py:12 main", 9 * MIB);
        for (unsigned i = LAYERS; i-- > 0;) {
            for (int work = 0; work < 4; work++)
                allocation_builder_free(
                    &s, take(&s, PYTHON_ONLY, "e.cpp:1 autograd::Engine", 9 * MIB));
            grads[i] = take(&s, PYTHON_ONLY, "e.cpp:1 autograd::Engine", 9 * MIB);
            allocation_builder_free(&s, kept[i]);
        }
        m.update[0] =
            take(&s, PYTHON_ONLY, "/x/torch/optim/sgd.py:9 f < train.py:15 main", MIB);
        for (unsigned i = 0; i < LAYERS; i++)
            allocation_builder_free(&s, grads[i]);
        allocation_builder_free(&s, m.update[0]);
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS; i++)
        expect(&j, grads[i], DRY_CATEGORY_GRADIENTS);
    finish(&j);
    allocation_builder_finish(&s);
}

/* At an out-of-memory in the forward pass nothing has been given back yet. */
static void
cut_off_activations_are_told_by_the_steps_before(void **state)
{
    (void)state;
    struct allocation_builder s;
    struct made m = {0};
    uint32_t kept[LAYERS];
    allocation_builder_begin(&s);
    make_weights(&s, &m, NAMED);
    for (int i = 0; i < 4; i++)
        run_step(&s, &m, NAMED);
    take(&s, NAMED, "data.py:5 fetch < train.py:10 main", 4 * MIB);
    for (unsigned i = 0; i < LAYERS; i++)
        kept[i] = take(&s, NAMED, "model.py:31 layer < train.py:12 main", 16 * MIB);
    allocation_builder_oom(&s, 16 * MIB);
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS; i++)
        expect(&j, kept[i], DRY_CATEGORY_ACTIVATIONS);
    finish(&j);
    allocation_builder_finish(&s);
}

/* The first forward pass fails, and the program's end gives everything back. */
static void
unwinding_tells_nothing(void **state)
{
    (void)state;
    struct allocation_builder s;
    uint32_t weights[LAYERS], kept[LAYERS];
    allocation_builder_begin(&s);
    for (unsigned i = 0; i < LAYERS; i++)
        weights[i] =
            allocation_builder_alloc(&s, "model.py:3 build < train.py:2 main", 8 * MIB);
    for (unsigned i = 0; i < LAYERS; i++)
        kept[i] = allocation_builder_alloc(&s, "model.py:9 forward < train.py:9 main",
                                           (16 + i) * MIB);
    allocation_builder_oom(&s, 16 * MIB);
    for (unsigned i = 0; i < LAYERS; i++)
        allocation_builder_free(&s, kept[i]);
    for (unsigned i = 0; i < LAYERS; i++)
        allocation_builder_free(&s, weights[i]);
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS; i++) {
        expect(&j, weights[i], DRY_CATEGORY_WEIGHTS);
        expect(&j, kept[i], DRY_CATEGORY_ACTIVATIONS);
        assert_int_equal(j.guesses[kept[i]].evidence, DRY_EVIDENCE_NAMES);
    }
    finish(&j);
    allocation_builder_finish(&s);
}

static void
inference_has_no_gradients_and_its_cache_is_unknown(void **state)
{
    (void)state;
    struct allocation_builder s;
    uint32_t weights[LAYERS], cache = 0;
    allocation_builder_begin(&s);
    for (unsigned i = 0; i < LAYERS; i++)
        weights[i] = allocation_builder_alloc(&s, "model.py:3 __init__ < serve.py:2 main",
                                              8 * MIB);
    for (int step = 0; step < 6; step++) {
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
        uint32_t more =
            allocation_builder_alloc(&s, "serve.py:5 keep < serve.py:9 main", 2 * MIB);
        cache = step == 3 ? more : cache;
        allocation_builder_free(&s, x);
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    const struct dry_timeline_view *v = dry_timeline_get_view(s.timeline);
    for (uint32_t a = 0; a < v->allocation_count; a++) {
        assert_int_not_equal(j.guesses[a].category, DRY_CATEGORY_GRADIENTS);
        assert_int_not_equal(j.guesses[a].category, DRY_CATEGORY_OPTIMIZER);
    }
    for (unsigned i = 0; i < LAYERS; i++)
        expect(&j, weights[i], DRY_CATEGORY_WEIGHTS);
    expect(&j, cache, DRY_CATEGORY_UNKNOWN);
    finish(&j);
    allocation_builder_finish(&s);
}

/* vLLM's and SGLang's allocate it once, before they serve; its stack says so. */
static void
a_cache_of_keys_and_values_is_named(void **state)
{
    (void)state;
    struct allocation_builder s;
    uint32_t cache[LAYERS], weights[LAYERS];
    allocation_builder_begin(&s);
    for (unsigned i = 0; i < LAYERS; i++)
        weights[i] = allocation_builder_alloc(&s, "model.py:3 __init__ < serve.py:2 main",
                                              8 * MIB);
    for (unsigned i = 0; i < LAYERS; i++)
        cache[i] = allocation_builder_alloc(
            &s,
            "runner.py:9 _allocate_kv_cache_tensors < engine.py:4 "
            "__init__ < serve.py:3 main",
            64 * MIB);
    uint32_t work = 0;
    for (int step = 0; step < 6; step++) {
        uint32_t x =
            allocation_builder_alloc(&s, "serve.py:3 embed < serve.py:9 main", MIB);
        for (int layer = 0; layer < 8; layer++) {
            work = allocation_builder_alloc(
                &s, "a.py:1 update_kv_cache < serve.py:9 main", MIB);
            allocation_builder_free(&s, work);
        }
        allocation_builder_free(&s, x);
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (unsigned i = 0; i < LAYERS; i++) {
        expect(&j, weights[i], DRY_CATEGORY_WEIGHTS);
        expect(&j, cache[i], DRY_CATEGORY_KV_CACHE);
        assert_int_equal(j.guesses[cache[i]].evidence, DRY_EVIDENCE_NAMES);
    }
    expect(&j, work, DRY_CATEGORY_TEMPORARIES); /* the name alone is not enough */
    finish(&j);
    allocation_builder_finish(&s);
}

/* --- marks -------------------------------------------------------------------------------- */

static void
marks_win(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum dry_category category;
    } marks[] = {
        {"activations", DRY_CATEGORY_ACTIVATIONS},
        {"category: GRADIENT", DRY_CATEGORY_GRADIENTS},
        {"optimizer state", DRY_CATEGORY_OPTIMIZER},
        {"params", DRY_CATEGORY_WEIGHTS},
        {"{'category': 'input'}", DRY_CATEGORY_INPUTS},
        {"optimizer step 12", DRY_CATEGORY_UNKNOWN},
        {"grad of weights", DRY_CATEGORY_UNKNOWN},
        {"kv_cache", DRY_CATEGORY_KV_CACHE},
        {"KV cache", DRY_CATEGORY_KV_CACHE},
        {"cache", DRY_CATEGORY_UNKNOWN},
        {"forward", DRY_CATEGORY_UNKNOWN},
        {"", DRY_CATEGORY_UNKNOWN},
    };
    size_t count = sizeof marks / sizeof *marks;
    struct allocation_builder s;
    uint32_t born[16], later[16];
    allocation_builder_begin(&s);
    for (size_t i = 0; i < count; i++) {
        allocation_builder_set_metadata(&s, marks[i].text);
        born[i] = allocation_builder_alloc(&s, "a.py:1 f", MIB);
        allocation_builder_set_metadata(&s, NULL);
        later[i] = allocation_builder_alloc(&s, "a.py:1 f", MIB);
        allocation_builder_mark(&s, later[i], marks[i].text);
    }
    allocation_builder_end(&s);
    struct subject j = judge(s.timeline);
    for (size_t i = 0; i < count; i++) {
        expect(&j, born[i], marks[i].category);
        expect(&j, later[i], marks[i].category);
        assert_int_equal(j.guesses[born[i]].evidence,
                         marks[i].category ? DRY_EVIDENCE_MARK : DRY_EVIDENCE_NONE);
    }
    finish(&j);
    allocation_builder_finish(&s);
}

static void
names_are_complete(void **state)
{
    (void)state;
    for (int i = 0; i < DRY_CATEGORY_COUNT; i++)
        assert_true(strlen(dry_category_name((enum dry_category)i)) > 4);
    assert_string_equal(dry_category_name(DRY_CATEGORY_INPUTS), "inputs");
    assert_string_equal(dry_category_evidence_name(DRY_EVIDENCE_NAMES), "words");
    assert_string_equal(dry_pass_name(DRY_PASS_UNKNOWN), "unknown");
    assert_string_equal(dry_pass_name(DRY_PASS_UPDATE), "update");
}

static void
without_memory_nothing_is_lost(void **state)
{
    (void)state;
    for (int naming = NAMED; naming <= NAMELESS; naming++) {
        struct allocation_builder s;
        struct made m = {0};
        allocation_builder_begin(&s);
        make_weights(&s, &m, (enum naming)naming);
        for (int i = 0; i < 4; i++)
            run_step(&s, &m, (enum naming)naming);
        allocation_builder_annotate(&s, "Optimizer.step#Adam.step", "START");
        allocation_builder_mark(&s, m.weights[0], "params");
        allocation_builder_end(&s);
        struct subject j = judge(s.timeline);
        size_t n = 0;
        for (;; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            struct dry_categories_options options;
            dry_categories_options_init(&options);
            options.memory = &memory;
            struct dry_categories *c = NULL;
            struct dry_error err;
            enum dry_status status =
                dry_categories_create(s.timeline, j.steps, &options, &c, &err);
            dry_categories_destroy(c);
            failing_memory_finish(&fm);
            assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
            if (!fm.failed)
                break;
            assert_null(c);
        }
        assert_true(n > 10);
        finish(&j);
        allocation_builder_finish(&s);
    }
}

static void
too_many_layers_are_a_limit_not_a_lack_of_memory(void **state)
{
    (void)state;
    struct demo_model deep = demo;
    struct dry_trace *requests = NULL;
    struct dry_error err;
    deep.layers = 257;
    assert_int_equal(demo_make_requests(&deep, &requests, &err), DRY_ERR_LIMIT);
    assert_string_equal(err.text, "the demo has 256 layers at most, not 257");
    assert_null(requests);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demo_is_told_apart),
        cmocka_unit_test(lives_tell_with_names_and_without),
        cmocka_unit_test(gradients_that_stay_are_gradients),
        cmocka_unit_test(annotations_tell_the_update),
        cmocka_unit_test(cut_off_activations_are_told_by_the_steps_before),
        cmocka_unit_test(updates_tell_the_passes_without_names),
        cmocka_unit_test(cut_off_softmaxes_are_no_temporaries),
        cmocka_unit_test(graphs_that_are_dropped_were_saved),
        cmocka_unit_test(an_empty_stack_has_no_votes),
        cmocka_unit_test(caches_that_grow_need_no_name),
        cmocka_unit_test(unwinding_tells_nothing),
        cmocka_unit_test(inference_has_no_gradients_and_its_cache_is_unknown),
        cmocka_unit_test(a_cache_of_keys_and_values_is_named),
        cmocka_unit_test(marks_win),
        cmocka_unit_test(names_are_complete),
        cmocka_unit_test(without_memory_nothing_is_lost),
        cmocka_unit_test(too_many_layers_are_a_limit_not_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
