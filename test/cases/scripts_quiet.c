/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/model.h"
#include "cases/scripts.h"

#define SERVE                                                                            \
    "serve@server/engine.py:210; run@server/engine.py:145; <module>@server/main.py:31"

/* Steps like one another, and one of half as many rows again in the middle. */
void
script_longer_batch(struct program *p)
{
    struct model m = {.layers = 12,
                      .heads = 16,
                      .hidden = 2048,
                      .vocab = 32000,
                      .batch = 4,
                      .length = 1024,
                      .has_optimizer = true};
    model_load(p, &m);
    for (unsigned step = 0; step < 7; step++) {
        m.length = step == 3 ? 1536 : 1024;
        model_step(p, &m);
        program_end_step(p);
    }
}

#define STREAMS 60

/* A worker a stream, each with a little of its own in a segment of 20 MiB. */
void
script_many_streams(struct program *p)
{
    program_in(p, SERVE);
    program_at(p, "workspace@server/worker.py:33; start@server/worker.py:21");
    for (unsigned i = 0; i < STREAMS; i++) {
        program_on(p, UINT64_C(0x7f0010) + 64 * i);
        program_keep(p, program_take(p, 4 * MIB));
        program_keep(p, program_take(p, 6 * MIB));
    }
    program_on(p, 0);
    program_at(p, "prefill@server/worker.py:71; execute@server/worker.py:52");
    for (unsigned i = 0; i < 20; i++)
        program_give(p, program_take(p, 900 * MIB));
}

/* The same, with requests whose pages are all the same: nothing is wasted. */
void
script_pages_of_streams(struct program *p)
{
    program_in(p, SERVE);
    program_at(p, "workspace@server/worker.py:33; start@server/worker.py:21");
    for (unsigned i = 0; i < STREAMS; i++) {
        program_on(p, UINT64_C(0x7f0010) + 64 * i);
        program_keep(p, program_take(p, 40 * MIB));
    }
    program_on(p, 0);
    program_at(p, "prefill@server/worker.py:71; execute@server/worker.py:52");
    for (unsigned i = 0; i < 20; i++)
        program_give(p, program_take(p, 900 * MIB));
}

/* Sizes just above a power of two, rounded up by a setting somebody copied. */
void
script_needless_rounding(struct program *p)
{
    uint32_t made[24];
    program_in(p, "train_step@train.py:58; main@train.py:131; <module>@train.py:168");
    for (unsigned step = 0; step < 4; step++) {
        program_at(p, "forward@model/block.py:48; _call_impl@torch/nn/modules/"
                      "module.py:1786");
        for (unsigned i = 0; i < 24; i++)
            made[i] = program_take(p, 258 * MIB);
        program_give_all(p, made, 24);
        program_wait(p, 12000);
    }
}

/* A model and its cache of keys and values; a decoder's steps ask for next to nothing. */
void
script_inference(struct program *p)
{
    program_in(p, "load@server/engine.py:40; <module>@server/main.py:31");
    program_at(p, "to@torch/nn/modules/module.py:1371; convert@torch/nn/modules/"
                  "module.py:1357");
    for (unsigned i = 0; i < 64; i++)
        program_keep(p, program_take(p, 208 * MIB));
    program_at(p, "allocate_kv_cache@server/cache.py:18; __init__@server/cache.py:12");
    for (unsigned i = 0; i < 32; i++)
        program_keep(p, program_take(p, 128 * MIB));
    program_in(p, SERVE);
    for (unsigned i = 0; i < 200; i++) {
        program_at(p, "decode@server/worker.py:88; execute@server/worker.py:52");
        uint32_t hidden = program_take(p, 8 * MIB);
        uint32_t logits = program_take(p, 16 * MIB);
        program_give(p, hidden);
        program_give(p, logits);
        program_wait(p, 400);
    }
}

/* Workspaces of any size over entries that stay, on a card with room for all of it. */
void
script_ragged_serving(struct program *p)
{
    uint32_t workspaces[4] = {NO_TENSOR, NO_TENSOR, NO_TENSOR, NO_TENSOR};
    struct random *random = program_random(p);
    program_in(p, SERVE);
    for (unsigned i = 0; i < 200; i++) {
        uint32_t *workspace = &workspaces[random_below(random, 4)];
        program_at(p, "prefill@server/worker.py:71; execute@server/worker.py:52");
        program_give(p, *workspace);
        program_at(p, "insert@server/prefix_cache.py:44; finish@server/worker.py:96");
        program_keep(p, program_take(p, 2 * MIB + 512 * KIB * random_below(random, 8)));
        program_at(p, "prefill@server/worker.py:71; execute@server/worker.py:52");
        *workspace = program_take(p, 400 * MIB + 2 * MIB * random_below(random, 400));
        program_wait(p, 900);
    }
    for (unsigned i = 0; i < 4; i++)
        program_give(p, workspaces[i]);
}
