/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/model.h"
#include "cases/scripts.h"

#include <stdio.h>

/* Steps until the end of memory or of patience. */
static void
train(struct program *p, struct model *m, unsigned step_count)
{
    model_load(p, m);
    for (unsigned step = 0; step < step_count && !program_is_over(p); step++) {
        char name[32];
        snprintf(name, sizeof name, "step %u", step);
        program_tag(p, name);
        model_step(p, m);
        program_end_step(p);
    }
    program_tag(p, "");
}

/* The first step fits; Adam's state comes with its end, and the second does not. */
void
script_training(struct program *p)
{
    struct model m = {.layers = 24,
                      .heads = 32,
                      .hidden = 4096,
                      .vocab = 256000,
                      .batch = 5,
                      .length = 1792,
                      .has_optimizer = true};
    train(p, &m, 3);
    program_unwind(p, false);
}

/* A batch of which a single activation is larger than the card. */
void
script_huge_batch(struct program *p)
{
    struct model m = {.layers = 6,
                      .heads = 16,
                      .hidden = 1024,
                      .vocab = 32000,
                      .batch = 4,
                      .length = 1024,
                      .has_optimizer = true};
    train(p, &m, 2);
    m.batch = 16384; /* 16 was meant */
    model_step(p, &m);
    program_unwind(p, false);
}

/* Tries batches until one fits, as people do; the last record is of a program that runs. */
void
script_batch_finder(struct program *p)
{
    struct model m = {.layers = 12,
                      .heads = 16,
                      .hidden = 2048,
                      .vocab = 50304,
                      .length = 2048,
                      .has_optimizer = true};
    model_load(p, &m);
    for (m.batch = 16; m.batch > 2; m.batch -= 4) {
        model_forward(p, &m);
        model_backward(p, &m);
        if (!program_is_over(p))
            break;
        program_unwind(p, false);
        program_catch(p);
        program_at(p, "empty_cache@torch/cuda/memory.py:222; find_batch@train.py:147");
        program_empty_cache(p);
        program_in(p,
                   "find_batch@train.py:151; main@train.py:128; <module>@train.py:168");
    }
    model_optimize(p, &m);
    model_step(p, &m);
}

/*
 * What a step leaves behind: its logits, kept for a metric that is computed never, and the
 * last hidden state, by way of the graph that hangs on the kept loss.
 */
static void
leak_some(struct program *p, const struct model *m)
{
    program_at(p, "append@train.py:74; log_metrics@train.py:69");
    program_keep(p, program_take(p, m->batch * m->length * m->vocab * 4));
    program_keep(p, program_take(p, model_unit(m)));
    program_at(p, "detach@train.py:75; log_metrics@train.py:69");
    program_keep(p, program_take(p, m->batch * m->length * 4));
}

void
script_leak(struct program *p)
{
    struct model m = {.layers = 12,
                      .heads = 16,
                      .hidden = 2048,
                      .vocab = 50304,
                      .batch = 4,
                      .length = 1024,
                      .has_optimizer = true};
    model_load(p, &m);
    for (unsigned step = 0; step < 60 && !program_is_over(p); step++) {
        model_step(p, &m);
        leak_some(p, &m);
        program_end_step(p);
    }
    program_unwind(p, false);
}

/* Attention without a fused kernel: scores of length x length, once and in float32. */
static void
attend_naively(struct program *p, const struct model *m)
{
    uint64_t scores = m->batch * m->heads * m->length * m->length * 2;
    program_at(p, "matmul@model/attention.py:91; eager_attention@model/attention.py:88; "
                  "forward@model/attention.py:66; forward@model/transformer.py:118");
    uint32_t raw = program_take(p, scores);
    program_at(p, "softmax@model/attention.py:93; eager_attention@model/attention.py:88; "
                  "forward@model/attention.py:66; forward@model/transformer.py:118");
    uint32_t wide = program_take(p, 2 * scores);
    uint32_t weights = program_take(p, scores);
    program_at(p, "matmul@model/attention.py:95; eager_attention@model/attention.py:88; "
                  "forward@model/attention.py:66; forward@model/transformer.py:118");
    uint32_t out = program_take(p, model_unit(m));
    program_give(p, raw);
    program_give(p, wide);
    program_give(p, weights);
    program_give(p, out);
}

/* Eight steps like one another, then one document of fourteen times the length. */
void
script_spike(struct program *p)
{
    struct model m = {.layers = 12,
                      .heads = 16,
                      .hidden = 2048,
                      .vocab = 32000,
                      .batch = 4,
                      .length = 1024,
                      .has_optimizer = true};
    model_load(p, &m);
    for (unsigned step = 0; step < 8; step++) {
        attend_naively(p, &m);
        model_step(p, &m);
        program_end_step(p);
    }
    m.batch = 1;
    m.length = 14336;
    attend_naively(p, &m);
    program_unwind(p, false);
}

/* The share of rows each replica gets: one has ten times what the others have. */
void
script_imbalance(struct program *p)
{
    static const uint64_t batches[] = {2, 20, 2, 2};
    for (unsigned device = 0; device < 4; device++) {
        if (device > 0)
            program_next_device(p);
        struct model m = {.layers = 16,
                          .heads = 16,
                          .hidden = 1024,
                          .vocab = 32000,
                          .batch = batches[device],
                          .length = 2048};
        model_load(p, &m);
        program_in(p, "_worker@torch/nn/parallel/parallel_apply.py:97");
        for (unsigned step = 0; step < 2 && !program_is_over(p); step++) {
            model_step(p, &m);
            program_end_step(p);
        }
        program_unwind(p, false);
    }
}

void
script_healthy(struct program *p)
{
    struct model m = {.layers = 12,
                      .heads = 16,
                      .hidden = 2048,
                      .vocab = 32000,
                      .batch = 4,
                      .length = 1024,
                      .has_optimizer = true};
    train(p, &m, 6);
}

/* Everything is local to a function: when it has unwound, next to nothing is left. */
void
script_expandable_training(struct program *p)
{
    struct model m = {.layers = 16,
                      .heads = 32,
                      .hidden = 4096,
                      .vocab = 50304,
                      .batch = 18,
                      .length = 2048};
    train(p, &m, 2);
    program_unwind(p, true);
}

/* Many steps, of which the ring remembers the last part of one. */
void
script_late_recording(struct program *p)
{
    struct model m = {.layers = 24,
                      .heads = 32,
                      .hidden = 4096,
                      .vocab = 50304,
                      .batch = 3,
                      .length = 2048,
                      .has_optimizer = true};
    train(p, &m, 4);
    m.batch = 12; /* longer rows at the end of the epoch */
    model_step(p, &m);
    program_unwind(p, false);
}

/* Would fit on the card, but not in the part the program is allowed. */
void
script_small_card(struct program *p)
{
    struct model m = {.layers = 24,
                      .heads = 32,
                      .hidden = 4096,
                      .vocab = 50304,
                      .batch = 8,
                      .length = 2048};
    train(p, &m, 2);
    program_unwind(p, false);
}

/* Another process has most of the card. */
void
script_shared_card(struct program *p)
{
    struct model m = {.layers = 16,
                      .heads = 32,
                      .hidden = 4096,
                      .vocab = 50304,
                      .batch = 4,
                      .length = 2048};
    train(p, &m, 2);
    program_unwind(p, false);
}

/* --- loops that give nothing back --------------------------------------------------------- */

#define CALLED                                                                           \
    "_call_impl@torch/nn/modules/module.py:1786; "                                       \
    "_wrapped_call_impl@torch/nn/modules/module.py:1775"
#define MOVED                                                                            \
    "_apply@torch/nn/modules/module.py:966; cuda@torch/nn/modules/module.py:1098"

static void
move_blocks(struct program *p, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        program_at(p, "<lambda>@torch/nn/modules/module.py:1098; " MOVED);
        program_keep(p, program_take(p, 24 * MIB));
        program_keep(p, program_take(p, 48 * MIB));
    }
}

/* The layers are called one by one in the script, which was not written with a forward(). */
void
script_first_pass(struct program *p)
{
    program_in(p, "main@run.py:14; <module>@run.py:30");
    move_blocks(p, 120);
    for (unsigned layer = 0; layer < 120 && !program_is_over(p); layer++) {
        program_in(p, "main@run.py:17; <module>@run.py:30");
        program_at(p, "forward@blocks.py:7; " CALLED);
        program_take(p, 121 * MIB / 2);
        program_in(p, "main@run.py:18; <module>@run.py:30");
        program_at(p, "forward@blocks.py:15; " CALLED);
        program_take(p, 249 * MIB / 2);
    }
    program_unwind(p, false);
}

void
script_rollouts(struct program *p)
{
    uint32_t kept[3];
    program_in(p, "main@run.py:14; <module>@run.py:30");
    move_blocks(p, 40);
    for (unsigned call = 0; call < 200 && !program_is_over(p); call++) {
        program_in(p, "gather@run.py:21; main@run.py:26; <module>@run.py:30");
        program_at(p, "");
        kept[0] = program_keep(p, program_take(p, 32 * MIB));
        program_at(p, "forward@net.py:9; " CALLED);
        kept[1] = program_keep(p, program_take(p, 32 * MIB));
        program_at(p, "relu@net.py:10; forward@net.py:9; " CALLED);
        kept[2] = program_keep(p, program_take(p, 64 * MIB));
        if (program_is_without(p, DRY_CAUSE_LEAK))
            program_give_all(p, kept, 3);
        program_end_step(p);
    }
    program_unwind(p, false);
}
