/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/model.h"
#include "cases/scripts.h"

#define SERVE                                                                            \
    "serve@server/engine.py:210; run@server/engine.py:145; <module>@server/main.py:31"
#define LOAD "load_checkpoint@model/loader.py:88; main@train.py:99; <module>@train.py:168"

/* --- lengths that differ from step to step ------------------------------------------------ */

/*
 * Each step's activations are of another size than those cached by the last: they are put
 * into larger blocks, whose rests fit nothing, and new segments are taken for what is left.
 */
static struct model
varying_model(void)
{
    return (struct model){
        .layers = 12, .heads = 16, .hidden = 2048, .vocab = 32000, .batch = 8};
}

static uint64_t
next_length(struct program *p)
{
    return 256 + 8 * random_below(program_random(p), 288); /* to 2,552 */
}

void
script_varying_lengths(struct program *p)
{
    struct model m = varying_model();
    model_load(p, &m);
    for (unsigned step = 0; step < 40 && !program_is_over(p); step++) {
        m.length = next_length(p);
        model_step(p, &m);
        program_end_step(p);
    }
    program_unwind(p, false);
}

void
script_long_varying(struct program *p)
{
    struct model m = varying_model();
    model_load(p, &m);
    for (unsigned step = 0; step < 24 && !program_is_over(p); step++) {
        m.length = next_length(p);
        model_step(p, &m);
        program_end_step(p);
    }
}

/* The same, and a list of outputs that grows. */
void
script_varying_leak(struct program *p)
{
    struct model m = varying_model();
    model_load(p, &m);
    for (unsigned step = 0; step < 60 && !program_is_over(p); step++) {
        m.length = next_length(p);
        model_step(p, &m);
        program_at(p, "append@train.py:74; log_metrics@train.py:69");
        for (unsigned i = 0; i < 4; i++)
            program_keep(p, program_take(p, 40 * MIB));
        program_end_step(p);
    }
    program_unwind(p, false);
}

/* --- small things that outlive large ones ------------------------------------------------- */

#define REQUESTS_AT_ONCE 6

/*
 * A server: each request has a workspace of its own size, and leaves a small entry in the
 * prefix cache, which is put where a workspace was and holds that segment for ever.
 */
static void
serve(struct program *p, unsigned request_count)
{
    uint32_t workspaces[REQUESTS_AT_ONCE];
    struct random *random = program_random(p);
    program_in(p, SERVE);
    for (unsigned i = 0; i < REQUESTS_AT_ONCE; i++)
        workspaces[i] = NO_TENSOR;
    for (unsigned i = 0; i < request_count && !program_is_over(p); i++) {
        uint32_t *workspace = &workspaces[random_below(random, REQUESTS_AT_ONCE)];
        program_at(p, "prefill@server/worker.py:71; execute@server/worker.py:52");
        program_give(p, *workspace);
        program_at(p, "insert@server/prefix_cache.py:44; finish@server/worker.py:96");
        program_keep(p, program_take(p, 2 * MIB + 512 * KIB * random_below(random, 8)));
        program_at(p, "prefill@server/worker.py:71; execute@server/worker.py:52");
        *workspace = program_take(p, 300 * MIB + 2 * MIB * random_below(random, 300));
        program_wait(p, 900);
    }
}

static void
load_weights(struct program *p, unsigned count, uint64_t bytes)
{
    program_in(p, LOAD);
    program_at(p, "to@torch/nn/modules/module.py:1371; convert@torch/nn/modules/"
                  "module.py:1357");
    for (unsigned i = 0; i < count; i++)
        program_keep(p, program_take(p, bytes));
}

void
script_pinned(struct program *p)
{
    load_weights(p, 32, 200 * MIB);
    serve(p, 400);
    program_unwind(p, false);
}

/* So large a device that it survives. */
void
script_long_serving(struct program *p)
{
    load_weights(p, 32, 200 * MIB);
    serve(p, 160);
}

/* The same program; but nobody recorded its history (see the case's has_no_events). */
void
script_end_state(struct program *p)
{
    load_weights(p, 32, 200 * MIB);
    serve(p, 400);
    program_unwind(p, false);
}

#define SHARDS 100
#define PARTS_OF_A_SHARD 4

/*
 * Shards are staged and given back; in their place come pairs of an adapter, which stays,
 * and its master copy, which does not. Every 18 MiB something small is left over, so that
 * no page of 20 MiB is free: expandable segments suffer as much. With a limit on what may
 * be split, the shards' segments are given back whole.
 */
void
script_split(struct program *p)
{
    uint32_t shards[SHARDS], masters[SHARDS * PARTS_OF_A_SHARD];
    program_in(p, LOAD);
    program_at(p, "read_shard@model/loader.py:41; stage@model/loader.py:63");
    for (unsigned i = 0; i < SHARDS; i++)
        shards[i] = program_take(p, 72 * MIB);
    program_give_all(p, shards, SHARDS);
    for (unsigned i = 0; i < SHARDS * PARTS_OF_A_SHARD; i++) {
        program_at(p, "make_adapter@model/lora.py:29; attach@model/lora.py:55");
        program_keep(p, program_take(p, 2 * MIB));
        program_at(p, "master_copy@model/lora.py:36; attach@model/lora.py:55");
        masters[i] = program_take(p, 16 * MIB);
    }
    program_at(p, "merge@model/lora.py:70");
    program_give_all(p, masters, SHARDS * PARTS_OF_A_SHARD);
    program_in(p, "main@train.py:131; <module>@train.py:168");
    program_at(p, "empty@torch/_refs/__init__.py:4720; allocate_kv_cache@model/"
                  "cache.py:18; __init__@model/cache.py:12");
    program_keep(p, program_take(p, GIB));
    program_unwind(p, false);
}

/* --- memory of other lanes ---------------------------------------------------------------- */

/* One graph for every batch size, in one pool; the largest first, as servers do. */
static void
capture_graphs(struct program *p)
{
    static const unsigned batches[] = {64, 48, 32, 24, 16, 8, 4, 2, 1};
    uint32_t made[16];
    program_in(p, "capture_model@server/graphs.py:120; warm_up@server/engine.py:88");
    for (unsigned b = 0; b < sizeof batches / sizeof *batches; b++) {
        program_begin_pool(p, 1, 0);
        program_at(p, "forward@model/block.py:48; _call_impl@torch/nn/modules/"
                      "module.py:1786; capture@server/graphs.py:97");
        for (unsigned i = 0; i < 16; i++)
            made[i] = program_take(p, batches[b] * 8 * MIB);
        program_at(p, "output_buffer@server/graphs.py:61; capture@server/graphs.py:99");
        program_keep(p, program_take(p, batches[b] * 64 * KIB));
        program_give_all(p, made, 16);
        program_end_pool(p, 1, 0);
    }
}

/* Then a request without a graph needs memory that only the graphs' pool has. */
void
script_graph_pool(struct program *p)
{
    load_weights(p, 60, 220 * MIB);
    capture_graphs(p);
    program_in(p, SERVE);
    program_at(p, "prefill@server/worker.py:71; execute@server/worker.py:52");
    for (unsigned i = 0; i < 12; i++)
        program_give(p, program_take(p, 500 * MIB + i * MIB));
    program_take(p, 3 * GIB);
    program_unwind(p, false);
}

#define SMALL_PAIRS 1500

/*
 * Features of a little under 1 MiB, two to a segment of 2 MiB, and with each an index that
 * stays, in what is left of it. A page is as large as a segment, so expandable segments do
 * not help; rounding the features up to 1 MiB keeps the indices out of their segments.
 */
void
script_small_pool(struct program *p)
{
    uint32_t features[2 * SMALL_PAIRS];
    program_in(
        p, "build_index@data/features.py:77; main@train.py:99; <module>@train.py:168");
    for (unsigned i = 0; i < 2 * SMALL_PAIRS; i += 2) {
        program_at(p, "encode@data/features.py:41");
        features[i] = program_take(p, 1020 * KIB);
        features[i + 1] = program_take(p, 1020 * KIB);
        program_at(p, "row_index@data/features.py:52");
        program_keep(p, program_take(p, 4 * KIB));
        program_keep(p, program_take(p, 4 * KIB));
    }
    program_at(p, "clear@data/features.py:80");
    program_give_all(p, features, 2 * SMALL_PAIRS);
    program_at(p, "stack@data/features.py:83");
    program_take(p, GIB);
    program_unwind(p, false);
}

#define COPY_STREAM UINT64_C(0x5581f0a4c2b0)
#define BATCHES 32

/*
 * A prefetcher on a stream of its own fills a queue of batches once; later it keeps a small
 * piece of each. What it caches is not for the main stream, and cannot go back.
 */
static void
prefetch(struct program *p)
{
    uint32_t queue[BATCHES];
    program_in(p, "fill@data/prefetch.py:57; run@data/prefetch.py:33");
    program_on(p, COPY_STREAM);
    program_at(p, "pin_to_device@data/prefetch.py:64");
    for (unsigned i = 0; i < BATCHES; i++)
        queue[i] = program_take(p, 256 * MIB);
    program_give_all(p, queue, BATCHES);
    for (unsigned i = 0; i < BATCHES; i++) {
        program_at(p, "pin_to_device@data/prefetch.py:64");
        queue[i] = program_take(p, 250 * MIB);
        program_at(p, "index_of@data/prefetch.py:71");
        program_keep(p, program_take(p, 4 * MIB));
    }
    program_give_all(p, queue, BATCHES);
    program_on(p, 0);
}

void
script_side_stream(struct program *p)
{
    load_weights(p, 50, 200 * MIB);
    prefetch(p);
    uint32_t activations[20];
    program_in(p, "evaluate@train.py:82; main@train.py:131; <module>@train.py:168");
    program_at(p,
               "forward@model/block.py:48; _call_impl@torch/nn/modules/module.py:1786");
    for (unsigned i = 0; i < 20; i++)
        activations[i] = program_take(p, 180 * MIB);
    program_give_all(p, activations, 4);
    program_at(p, "cat@train.py:86; gather_predictions@train.py:84");
    program_take(p, 3 * GIB);
    program_unwind(p, false);
}

#define COMM_STREAM UINT64_C(0x5581f0b77e40)
#define UNITS 15

/* One unsharded unit, used by the communication stream as well. */
static void
gather_unit(struct program *p)
{
    program_at(p, "_alloc_storage@torch/distributed/utils.py:154; unshard@torch/"
                  "distributed/fsdp/_flat_param.py:1352");
    uint32_t unit = program_take(p, 768 * MIB);
    program_record_stream(p, unit, COMM_STREAM);
    program_at(p,
               "forward@model/block.py:48; _call_impl@torch/nn/modules/module.py:1786");
    program_give(p, program_take(p, 64 * KIB));
    program_at(p, "_free_storage@torch/distributed/utils.py:177; reshard@torch/"
                  "distributed/fsdp/_flat_param.py:1720");
    program_give(p, unit);
}

/*
 * Fully sharded training: shards live in what is left of the segments that held the whole
 * units once. In the first step the communication keeps up, in the second it does not: all
 * units wait for it when the next is gathered. PyTorch's last retry waits for them, but
 * then only asks the device again; it does not look into the cache once more.
 */
void
script_recorded_streams(struct program *p)
{
    uint32_t units[UNITS];
    program_in(p, "wrap@train.py:44; main@train.py:99; <module>@train.py:168");
    program_at(p, "_init_flat_param@torch/distributed/fsdp/_flat_param.py:610");
    for (unsigned i = 0; i < UNITS; i++)
        units[i] = program_take(p, GIB);
    program_give_all(p, units, UNITS);
    for (unsigned i = 0; i < UNITS; i++) {
        units[i] = program_take(p, 768 * MIB);
        program_at(p, "shard@torch/distributed/fsdp/_flat_param.py:905");
        program_keep(p, program_take(p, 254 * MIB));
        program_at(p, "_init_flat_param@torch/distributed/fsdp/_flat_param.py:610");
    }
    program_give_all(p, units, UNITS);
    program_in(p, "train_step@train.py:58; main@train.py:131; <module>@train.py:168");
    for (unsigned i = 0; i < UNITS; i++) {
        gather_unit(p);
        program_finish_stream(p, COMM_STREAM);
        program_wait(p, 3000);
    }
    program_end_step(p);
    for (unsigned i = 0; i <= UNITS; i++)
        gather_unit(p);
    program_unwind(p, false);
}

static void
sample_tokens(struct program *p)
{
    for (unsigned i = 0; i < 8; i++) {
        program_at(p, "softmax@server/sampler.py:22; sample@server/sampler.py:40");
        uint32_t chances = program_take(p, 3 * MIB);
        program_at(p, "multinomial@server/sampler.py:27; sample@server/sampler.py:40");
        uint32_t token = program_take(p, 2 * KIB);
        program_give(p, chances);
        program_give(p, token);
    }
}

/*
 * A pool's scope stays open while a model generates. Before 2.13 an open scope counted as a
 * capture: blocks that another stream used are not looked at again until it is closed, and
 * a full device is not tried a second time (pytorch#159674).
 */
void
script_open_scope(struct program *p)
{
    load_weights(p, 32, 200 * MIB);
    program_in(p, "generate@server/rollout.py:58; <module>@server/main.py:31");
    program_begin_pool(p, 0, 1);
    for (unsigned i = 0; i < 40 && !program_is_over(p); i++) {
        program_at(p, "gather@server/rollout.py:71");
        uint32_t block = program_take(p, 700 * MIB);
        program_record_stream(p, block, COMM_STREAM);
        program_give(p, block);
        sample_tokens(p);
        program_finish_stream(p, COMM_STREAM);
        program_wait(p, 5000);
    }
    program_unwind(p, false);
}

/* --- nothing wrong ------------------------------------------------------------------------ */

/* After an evaluation with large batches all but the model is cache, and free to go. */
void
script_cache(struct program *p)
{
    uint32_t made[24];
    load_weights(p, 24, 90 * MIB);
    program_in(p, "evaluate@train.py:82; main@train.py:131; <module>@train.py:168");
    for (unsigned round = 0; round < 5; round++) {
        program_at(p, "forward@model/block.py:48; _call_impl@torch/nn/modules/"
                      "module.py:1786");
        for (unsigned i = 0; i < 24; i++)
            made[i] = program_take(p, 600 * MIB + i * 10 * MIB);
        program_give_all(p, made, 24);
        program_wait(p, 15000);
    }
}
