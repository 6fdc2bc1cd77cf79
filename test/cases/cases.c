/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/cases.h"

#include <string.h>

#include "cases/scripts.h"

#define EXPANDABLE "expandable_segments:True"

/* Sizes of real cards as the driver states them, and what a context takes of them. */
#define CARD_80 (81050 * MIB)
#define CARD_24 (24210 * MIB)
#define CARD_20 (20470 * MIB)
#define CARD_16 (16376 * MIB)
#define CARD_8 (8192 * MIB)
#define CARD_4 (4096 * MIB)
#define CONTEXT (610 * MIB)

static const struct labelled_case cases[] = {
    {.name = "capacity-training",
     .what = "Adam's state, made by the first step, leaves no room for the second",
     .cause = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_80,
     .other_bytes = CONTEXT,
     .run = script_training},
    {.name = "capacity-batch",
     .what = "one activation of a wrongly set batch is larger than the card",
     .cause = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_huge_batch},
    {.name = "capacity-expandable",
     .what =
         "expandable segments are on and all is used; the dump comes after everything "
         "was given back, and looks fragmented",
     .cause = DRY_CAUSE_CAPACITY,
     .conf = EXPANDABLE,
     .total_bytes = CARD_80,
     .other_bytes = CONTEXT,
     .run = script_expandable_training},
    {.name = "capacity-caught",
     .what = "batches are tried until one fits: two OOMs, and a program that runs on",
     .cause = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_batch_finder},
    {.name = "fragmentation-varlen",
     .what = "sequence lengths differ from step to step and leave holes",
     .cause = DRY_CAUSE_FRAGMENTATION,
     .setting_helps = true,
     .expandable_helps = true,
     .helps = EXPANDABLE,
     .total_bytes = CARD_20,
     .other_bytes = CONTEXT,
     .run = script_varying_lengths},
    {.name = "fragmentation-pinned",
     .what = "small cache entries hold the segments of past workspaces",
     .cause = DRY_CAUSE_FRAGMENTATION,
     .setting_helps = true,
     .expandable_helps = true,
     .helps = "max_split_size_mb:128",
     .total_bytes = CARD_16,
     .other_bytes = CONTEXT,
     .run = script_pinned},
    {.name = "fragmentation-split",
     .what = "adapters lie closer than pages: only a limit on splitting helps",
     .cause = DRY_CAUSE_FRAGMENTATION,
     .setting_helps = true,
     .helps = "max_split_size_mb:32",
     .total_bytes = CARD_8,
     .other_bytes = 430 * MIB,
     .run = script_split},
    {.name = "fragmentation-end-state",
     .what = "the server of fragmentation-pinned, but its history was not recorded",
     .cause = DRY_CAUSE_FRAGMENTATION,
     .setting_helps = true,
     .expandable_helps = true,
     .helps = EXPANDABLE,
     .total_bytes = CARD_16,
     .other_bytes = CONTEXT,
     .has_no_events = true,
     .run = script_end_state},
    {.name = "fragmentation-leak",
     .what = "varying lengths leave holes, and a list of outputs grows",
     .cause = DRY_CAUSE_FRAGMENTATION,
     .second = DRY_CAUSE_LEAK,
     .setting_helps = true,
     .expandable_helps = true,
     .helps = EXPANDABLE,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_varying_leak},
    {.name = "stranded-pool",
     .what = "the pool of CUDA graphs holds what a request without a graph needs",
     .cause = DRY_CAUSE_STRANDED,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_graph_pool},
    {.name = "stranded-stream",
     .what = "a prefetcher's stream caches what the main stream needs",
     .cause = DRY_CAUSE_STRANDED,
     .setting_helps = true,
     .expandable_helps = true,
     .helps = EXPANDABLE,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_side_stream},
    {.name = "stranded-small",
     .what = "small segments cannot serve a large request, and indices hold each of them",
     .cause = DRY_CAUSE_STRANDED,
     .setting_helps = true,
     .helps = "roundup_power2_divisions:4",
     .total_bytes = CARD_4,
     .other_bytes = 430 * MIB,
     .run = script_small_pool},
    {.name = "pending-frees",
     .what = "units of a sharded model wait for a communication stream that lags",
     .cause = DRY_CAUSE_PENDING,
     .setting_helps = true,
     .expandable_helps = true,
     .helps = EXPANDABLE,
     .total_bytes = CARD_16,
     .other_bytes = 700 * MIB,
     .run = script_recorded_streams},
    {.name = "pending-scope",
     .what =
         "the scope of a memory pool is open, so nobody looks whether streams are done",
     .cause = DRY_CAUSE_PENDING,
     .total_bytes = CARD_16,
     .other_bytes = CONTEXT,
     .run = script_open_scope},
    {.name = "limit-conf",
     .what = "per_process_memory_fraction forbids half of an empty card",
     .cause = DRY_CAUSE_LIMIT,
     .setting_helps = true,
     .helps = "per_process_memory_fraction:1.0",
     .conf = "per_process_memory_fraction:0.5",
     .total_bytes = CARD_80,
     .other_bytes = CONTEXT,
     .run = script_small_card},
    {.name = "limit-call",
     .what = "set_per_process_memory_fraction(0.5), which no record mentions",
     .cause = DRY_CAUSE_LIMIT,
     .total_bytes = CARD_80,
     .other_bytes = CONTEXT,
     .fraction = 0.5,
     .run = script_small_card},
    {.name = "other-memory",
     .what = "another process has most of the card",
     .cause = DRY_CAUSE_OTHER_MEMORY,
     .second = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_80,
     .other_bytes = CONTEXT + 56 * GIB,
     .run = script_shared_card},
    {.name = "leak",
     .what = "each step's logits are kept for a metric that nobody computes",
     .cause = DRY_CAUSE_LEAK,
     .second = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_leak},
    {.name = "spike",
     .what = "one document of fourteen times the usual length meets eager attention",
     .cause = DRY_CAUSE_SPIKE,
     .second = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_spike},
    {.name = "imbalance",
     .what = "of four replicas one gets ten times the rows of the others",
     .cause = DRY_CAUSE_IMBALANCE,
     .second = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_16,
     .other_bytes = CONTEXT,
     .run = script_imbalance},
    {.name = "ring-overflow",
     .what =
         "the record begins in the middle of a forward pass: whose the rest is is lost",
     .cause = DRY_CAUSE_OVERFLOW,
     .second = DRY_CAUSE_CAPACITY,
     .total_bytes = CARD_80,
     .other_bytes = CONTEXT,
     .conf = EXPANDABLE,
     .ring_entries = 280,
     .run = script_late_recording},
    {.name = "healthy",
     .what = "steady training",
     .cause = DRY_CAUSE_NONE,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_healthy},
    {.name = "cache-only",
     .what = "after an evaluation nearly all is cache, and could go back at once",
     .cause = DRY_CAUSE_NONE,
     .total_bytes = CARD_24,
     .other_bytes = CONTEXT,
     .run = script_cache},
};

size_t
case_count(void)
{
    return sizeof cases / sizeof *cases;
}

const struct labelled_case *
case_at(size_t index)
{
    return &cases[index];
}

const struct labelled_case *
case_find(const char *name)
{
    for (size_t i = 0; i < case_count(); i++) {
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    }
    return NULL;
}
