/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/scripts.h"

#define LOAD "load_checkpoint@model/loader.py:88; main@train.py:99; <module>@train.py:168"
#define MAIN "main@train.py:131; <module>@train.py:168"
#define FORWARD "forward@model/block.py:48; _call_impl@torch/nn/modules/module.py:1786"
#define TENSORS_MAX 64

static void
load(struct program *p, unsigned count, uint64_t bytes)
{
    program_in(p, LOAD);
    program_at(p, "to@torch/nn/modules/module.py:1371; convert@torch/nn/modules/"
                  "module.py:1357");
    for (unsigned i = 0; i < count; i++)
        program_keep(p, program_take(p, bytes));
    program_in(p, MAIN);
}

/* Take `count` tensors and give them back. */
static void
use(struct program *p, const char *frames, unsigned count, uint64_t bytes)
{
    uint32_t made[TENSORS_MAX];
    program_at(p, frames);
    for (unsigned i = 0; i < count; i++)
        made[i] = program_take(p, bytes);
    program_give_all(p, made, count);
    program_wait(p, 9000);
}

/* Training and evaluation in turn: the blocks of one are too small for the other. */
void
script_two_phases(struct program *p)
{
    load(p, 50, 200 * MIB);
    for (unsigned epoch = 0; epoch < 6; epoch++) {
        use(p, FORWARD, 16, 300 * MIB);
        use(p, "evaluate@train.py:82; forward@model/block.py:52", 10, 482 * MIB);
        program_end_step(p);
    }
}

/*
 * All of the device is in use at the peak of each round, and the last piece is larger than
 * what was cached: expandable segments or not, there is nothing to spare but the retries.
 */
void
script_full_house(struct program *p)
{
    load(p, 60, 240 * MIB);
    for (unsigned round = 0; round < 4; round++) {
        use(p, FORWARD, 1, 200 * MIB + 20 * round * MIB);
        program_end_step(p);
    }
}

/* With expandable segments: pages go from one stream's segments to the other's. */
void
script_phases_of_pages(struct program *p)
{
    load(p, 40, 200 * MIB);
    for (unsigned epoch = 0; epoch < 5; epoch++) {
        program_on(p, 0);
        use(p, FORWARD, 20, 300 * MIB);
        program_on(p, UINT64_C(0x55e01a40));
        use(p, "evaluate@train.py:82; forward@model/block.py:52", 20, 300 * MIB);
        program_end_step(p);
    }
}

/* empty_cache() after every step, as many do: no limit is met. */
void
script_cache_emptied(struct program *p)
{
    load(p, 20, 200 * MIB);
    for (unsigned step = 0; step < 6; step++) {
        use(p, FORWARD, 12, 300 * MIB);
        program_at(p, "empty_cache@torch/cuda/memory.py:222; train@train.py:77");
        program_empty_cache(p);
        program_end_step(p);
    }
}

/* Before each evaluation, which asks for more in one piece than training ever cached. */
void
script_cache_emptied_for_more(struct program *p)
{
    load(p, 20, 200 * MIB);
    for (unsigned epoch = 0; epoch < 2; epoch++) {
        use(p, FORWARD, 24, 300 * MIB);
        program_at(p, "empty_cache@torch/cuda/memory.py:222; evaluate@train.py:80");
        program_empty_cache(p);
        use(p, "cat@train.py:86; gather_predictions@train.py:84", 1, 3 * GIB);
        program_at(p, "empty_cache@torch/cuda/memory.py:222; train@train.py:77");
        program_empty_cache(p);
    }
}

/* A list of outputs grows until only retries make room; the run ends just in time. */
void
script_leak_to_the_limit(struct program *p)
{
    load(p, 20, 200 * MIB);
    program_on(p, UINT64_C(0x55e01a40));
    use(p, "prefetch@data/prefetch.py:57", 1, 800 * MIB);
    program_on(p, 0);
    for (unsigned step = 0; step < 16 && !program_is_over(p); step++) {
        use(p, FORWARD, 10, 300 * MIB);
        use(p, "loss@train.py:61", 4, 402 * MIB);
        program_at(p, "append@train.py:74; log_metrics@train.py:69");
        program_keep(p, program_take(p, 299 * MIB));
        program_end_step(p);
    }
}
