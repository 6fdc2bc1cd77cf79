/* SPDX-License-Identifier: Apache-2.0 */
/* A GPT's tensors as requests, see demo_step.h. Cost: O(steps * layers). */
#include "replay/demo_step.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define BYTES_PER_NUMBER                                                                 \
    4u /* float32 throughout, as the first run of a model usually is */
#define LAYERS_MAX 256u

/* Activations that a layer keeps for its backward pass. */
enum kept {
    KEPT_NORM_1,
    KEPT_QKV,
    KEPT_SCORES,
    KEPT_SOFTMAX,
    KEPT_MIX,
    KEPT_NORM_2,
    KEPT_UP,
    KEPT_GELU,
    KEPT_OUT,
    KEPT_COUNT,
};

enum weight {
    WEIGHT_QKV,
    WEIGHT_PROJECTION,
    WEIGHT_UP,
    WEIGHT_DOWN,
    WEIGHT_NORM,
    WEIGHT_COUNT
};

#define NO_TENSOR UINT64_MAX

struct layer {
    uint64_t weights[WEIGHT_COUNT], grads[WEIGHT_COUNT];
    uint64_t kept[KEPT_COUNT];
};

struct writer {
    struct dry_trace_builder *b;
    struct demo_model model;
    uint64_t sequence; /* number of the current step */
    uint64_t next_id;
    int64_t time_us;
    uint32_t lane;
    uint32_t stack; /* stack of the code that allocates now */
    uint32_t model_file, train_file;
    struct layer layers[LAYERS_MAX];
    uint64_t embedding, embedding_grad;
};

/* --- tensors ------------------------------------------------------------------------------ */

/* Set the stack of the next requests: a model function, called by the training loop. */
static void
enter(struct writer *w, const char *function, uint32_t line, const char *caller,
      uint32_t caller_line)
{
    uint32_t frames[2];
    struct dry_frame inner = {
        .name = dry_trace_add_string(w->b, function, strlen(function)),
        .file = w->model_file,
        .extra = DRY_NONE,
        .line = line,
    };
    struct dry_frame outer = {
        .name = dry_trace_add_string(w->b, caller, strlen(caller)),
        .file = w->train_file,
        .extra = DRY_NONE,
        .line = caller_line,
    };
    frames[0] = dry_trace_add_frame(w->b, &inner);
    frames[1] = dry_trace_add_frame(w->b, &outer);
    w->stack = dry_trace_add_stack(w->b, frames, 2);
}

static void
add_event(struct writer *w, enum dry_action action, uint64_t id, uint64_t size)
{
    struct dry_event event = {
        .action = action,
        .addr = id,
        .size = size,
        .time_us = w->time_us += 3,
        .lane = w->lane,
        .stack = w->stack,
        .note = DRY_NONE,
    };
    dry_trace_add_event(w->b, &event);
}

static uint64_t
make_tensor(struct writer *w, uint64_t numbers)
{
    add_event(w, DRY_ACTION_ALLOC, w->next_id, numbers * BYTES_PER_NUMBER);
    return w->next_id++;
}

static void
drop_tensor(struct writer *w, uint64_t *tensor)
{
    if (*tensor != NO_TENSOR)
        add_event(w, DRY_ACTION_FREE_REQUESTED, *tensor, 0);
    *tensor = NO_TENSOR;
}

/* Make the result of an operation, which needs a temporary workspace. */
static uint64_t
compute(struct writer *w, uint64_t numbers, uint64_t workspace_numbers)
{
    uint64_t workspace = make_tensor(w, workspace_numbers);
    uint64_t result = make_tensor(w, numbers);
    drop_tensor(w, &workspace);
    return result;
}

/* --- sizes -------------------------------------------------------------------------------- */

static uint64_t
token_count(const struct writer *w)
{
    return w->model.batch * w->sequence;
}

static uint64_t
weight_size(const struct demo_model *m, enum weight weight)
{
    static const uint64_t squares[WEIGHT_COUNT] = {
        [WEIGHT_QKV] = 3, [WEIGHT_PROJECTION] = 1, [WEIGHT_UP] = 4, [WEIGHT_DOWN] = 4};
    uint64_t hidden = m->hidden;
    return weight == WEIGHT_NORM ? 4 * hidden : squares[weight] * hidden * hidden;
}

static uint64_t
kept_size(const struct writer *w, enum kept kept)
{
    uint64_t row = token_count(w) * w->model.hidden;
    uint64_t scores =
        (uint64_t)w->model.batch * w->model.heads * w->sequence * w->sequence;
    static const uint64_t rows[KEPT_COUNT] = {
        [KEPT_NORM_1] = 1, [KEPT_QKV] = 3,  [KEPT_MIX] = 1, [KEPT_NORM_2] = 1,
        [KEPT_UP] = 4,     [KEPT_GELU] = 4, [KEPT_OUT] = 1};
    return rows[kept] ? rows[kept] * row : scores;
}

/* --- the training loop -------------------------------------------------------------------- */

static void
make_model(struct writer *w)
{
    enter(w, "GPT.__init__", 21, "main", 12);
    w->embedding = make_tensor(w, (uint64_t)w->model.vocabulary * w->model.hidden);
    w->embedding_grad = NO_TENSOR;
    for (uint32_t l = 0; l < w->model.layers; l++) {
        enter(w, "Block.__init__", 48, "main", 12);
        for (int i = 0; i < WEIGHT_COUNT; i++) {
            w->layers[l].weights[i] =
                make_tensor(w, weight_size(&w->model, (enum weight)i));
            w->layers[l].grads[i] = NO_TENSOR;
        }
    }
}

static void
forward(struct writer *w)
{
    static const char *const functions[KEPT_COUNT] = {
        "LayerNorm.forward", "Attention.forward", "Attention.forward",
        "Attention.forward", "Attention.forward", "LayerNorm.forward",
        "MLP.forward",       "MLP.forward",       "MLP.forward"};
    static const uint32_t lines[KEPT_COUNT] = {31, 60, 63, 64, 66, 31, 81, 82, 83};
    for (uint32_t l = 0; l < w->model.layers; l++) {
        for (int i = 0; i < KEPT_COUNT; i++) {
            enter(w, functions[i], lines[i], "train_step", 34);
            w->layers[l].kept[i] =
                compute(w, kept_size(w, (enum kept)i), token_count(w) * 16);
        }
    }
}

static void
backward_layer(struct writer *w, struct layer *layer, uint64_t *flow)
{
    static const enum weight weight_behind[KEPT_COUNT] = {
        [KEPT_NORM_1] = WEIGHT_NORM,    [KEPT_QKV] = WEIGHT_QKV,
        [KEPT_SCORES] = WEIGHT_COUNT,   [KEPT_SOFTMAX] = WEIGHT_COUNT,
        [KEPT_MIX] = WEIGHT_PROJECTION, [KEPT_NORM_2] = WEIGHT_COUNT,
        [KEPT_UP] = WEIGHT_UP,          [KEPT_GELU] = WEIGHT_COUNT,
        [KEPT_OUT] = WEIGHT_DOWN};
    for (int i = KEPT_COUNT - 1; i >= 0; i--) {
        enter(w, "backward", 0, "train_step", 36);
        uint64_t next = compute(w, kept_size(w, (enum kept)i), token_count(w) * 16);
        enum weight weight = weight_behind[i];
        if (weight != WEIGHT_COUNT && layer->grads[weight] == NO_TENSOR)
            layer->grads[weight] = make_tensor(w, weight_size(&w->model, weight));
        drop_tensor(w, &layer->kept[i]);
        drop_tensor(w, flow);
        *flow = next;
    }
}

static void
forward_and_backward(struct writer *w)
{
    forward(w);
    enter(w, "GPT.forward", 102, "train_step", 34);
    uint64_t logits = make_tensor(w, token_count(w) * w->model.vocabulary);
    enter(w, "cross_entropy", 110, "train_step", 35);
    uint64_t log_probabilities = make_tensor(w, token_count(w) * w->model.vocabulary);
    uint64_t loss = make_tensor(w, 1);
    enter(w, "backward", 0, "train_step", 36);
    uint64_t flow = make_tensor(w, token_count(w) * w->model.vocabulary);
    drop_tensor(w, &log_probabilities);
    if (w->embedding_grad == NO_TENSOR)
        w->embedding_grad =
            make_tensor(w, (uint64_t)w->model.vocabulary * w->model.hidden);
    drop_tensor(w, &logits);
    for (uint32_t l = w->model.layers; l-- > 0;)
        backward_layer(w, &w->layers[l], &flow);
    drop_tensor(w, &flow);
    drop_tensor(w, &loss);
}

/* Update a weight. Adam creates two moments at the first step, a temporary at each. */
static void
update_weight(struct writer *w, uint64_t numbers, uint64_t *grad, uint32_t step)
{
    if (step == 0) {
        enter(w, "Adam._init_group", 167, "train_step", 37);
        make_tensor(w, numbers);
        make_tensor(w, numbers);
    }
    enter(w, "Adam.step", 213, "train_step", 37);
    uint64_t denominator = make_tensor(w, numbers);
    drop_tensor(w, &denominator);
    enter(w, "zero_grad", 0, "train_step", 38);
    drop_tensor(w, grad);
}

static void
update_weights(struct writer *w, uint32_t step)
{
    update_weight(w, (uint64_t)w->model.vocabulary * w->model.hidden, &w->embedding_grad,
                  step);
    for (uint32_t l = 0; l < w->model.layers; l++) {
        for (int i = 0; i < WEIGHT_COUNT; i++)
            update_weight(w, weight_size(&w->model, (enum weight)i),
                          &w->layers[l].grads[i], step);
    }
}

/*
 * Train one step. The middle step is half as long again, so that cached blocks fit none
 * of its tensors. Samples for a log are allocated within it and stay alive, which causes
 * fragmentation.
 */
static void
train_step(struct writer *w, uint32_t step)
{
    bool is_long = step == w->model.steps / 2;
    w->sequence = is_long ? w->model.sequence * 3ull / 2 : w->model.sequence;
    enter(w, "next_batch", 7, "train_step", 33);
    uint64_t tokens = make_tensor(w, 2 * token_count(w));
    forward_and_backward(w);
    if (is_long) {
        enter(w, "log_samples", 131, "train_step", 41);
        for (uint32_t l = 0; l < w->model.layers; l++) {
            uint64_t big = make_tensor(w, kept_size(w, KEPT_SCORES));
            make_tensor(w, kept_size(w, KEPT_NORM_1) / 8); /* stays alive for the log */
            drop_tensor(w, &big);
        }
    }
    update_weights(w, step);
    enter(w, "next_batch", 7, "train_step", 33);
    drop_tensor(w, &tokens);
}

enum dry_status
demo_make_requests(const struct demo_model *model, struct dry_trace **trace,
                   struct dry_error *err)
{
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_PLAIN;
    if (model->layers > LAYERS_MAX)
        return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                       "the demo has %u layers at most, not %u", LAYERS_MAX,
                       model->layers);
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        return fail_memory(err, "no memory for the demo");
    enum dry_status status = dry_trace_builder_create(&options, &w->b, err);
    if (status == DRY_OK) {
        static const char model_file[] = "model.py", train_file[] = "train.py";
        struct dry_lane lane = {.pool_known = true};
        w->model = *model;
        w->lane = dry_trace_add_lane(w->b, &lane);
        w->model_file = dry_trace_add_string(w->b, model_file, sizeof model_file - 1);
        w->train_file = dry_trace_add_string(w->b, train_file, sizeof train_file - 1);
        dry_trace_begin_device(w->b, 0);
        make_model(w);
        for (uint32_t step = 0; step < model->steps; step++)
            train_step(w, step);
        status = dry_trace_builder_finish(w->b, trace, err);
    }
    free(w);
    return status;
}
