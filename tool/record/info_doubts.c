/* SPDX-License-Identifier: Apache-2.0 */
/* A table of texts, and a count for each, see info_doubts.h. Cost: O(devices). */
#include "record/info_doubts.h"

#include <stdbool.h>
#include <string.h>

/* Sum a counter over all devices. `member` is its offset in struct info_device. */
static size_t
sum_devices(const struct info *info, size_t member)
{
    size_t sum = 0;
    for (size_t i = 0; i < info->device_count; i++) {
        size_t count;
        memcpy(&count, (const char *)&info->devices[i] + member, sizeof count);
        sum += count;
    }
    return sum;
}

/* The texts of each doubt, in the order in which info_doubts_find() counts. */
static const struct info_doubt texts[INFO_DOUBTS_MAX] = {
    {.code = "no_events",
     .text = "no alloc and no free: history was not recorded, only the end is known"},
    {.code = "window_begins_warm",
     .one = "free without its alloc: the window begins with memory in use",
     .text = "frees without their alloc: the window begins with memory in use"},
    {.code = "older_blocks",
     .one = "block in use at the end that was allocated before the window",
     .text = "blocks in use at the end that were allocated before the window"},
    {.code = "history_disagrees",
     .one = "block in use by the events, but not by the segments at the end",
     .text = "blocks in use by the events, but not by the segments at the end"},
    {.code = "no_segments", .text = "no segments: the layout at the end is not known"},
    {.code = "no_stacks",
     .text = "no stacks: nobody can say which line asked for the memory"},
    {.code = "some_stacks_missing",
     .one = "event without a stack",
     .text = "events without a stack"},
    {.code = "time_goes_back",
     .one = "event earlier than the one before: clocks were mixed",
     .text = "events earlier than the one before: clocks were mixed"},
    {.code = "blocks_do_not_fill",
     .one = "segment whose blocks do not add up to its size",
     .text = "segments whose blocks do not add up to their size"},
    {.code = "sums_disagree",
     .one = "segment whose allocated or active size is not that of its blocks",
     .text = "segments whose allocated or active size is not that of their blocks"},
    {.code = "unknown_actions",
     .one = "event of an unknown action: a later PyTorch wrote this",
     .text = "events of an unknown action: a later PyTorch wrote this"},
    {.code = "unknown_keys",
     .one = "value under an unknown key: kept, but not understood",
     .text = "values under unknown keys: kept, but not understood"},
};

size_t
info_doubts_find(const struct info *in, const struct dry_trace_view *v,
                 struct info_doubt doubts[INFO_DOUBTS_MAX])
{
    bool is_snapshot = v->kind == DRY_TRACE_SNAPSHOT;
    size_t stacked = in->stack_events + in->stack_blocks;
    size_t old_blocks = sum_devices(in, offsetof(struct info_device, old_blocks));
    const size_t counts[INFO_DOUBTS_MAX] = {
        in->request_events == 0,
        sum_devices(in, offsetof(struct info_device, warm_frees)),
        in->request_events ? old_blocks : 0,
        sum_devices(in, offsetof(struct info_device, lost_blocks)),
        is_snapshot && v->event_count > 0 && v->segment_count == 0,
        in->stackable_events + in->live_blocks > 0 && stacked == 0,
        stacked > 0 ? in->stackable_events - in->stack_events : 0,
        sum_devices(in, offsetof(struct info_device, time_reversals)),
        in->gap_segments,
        in->sum_segments,
        in->unknown_actions,
        in->unknown_keys,
    };
    size_t used = 0;
    for (size_t i = 0; i < INFO_DOUBTS_MAX; i++) {
        if (counts[i] == 0)
            continue;
        doubts[used] = texts[i];
        doubts[used++].count = counts[i];
    }
    return used;
}
