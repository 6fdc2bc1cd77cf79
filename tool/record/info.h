/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_INFO_H
#define TOOL_INFO_H

/* Count the content of a trace: the facts that `drystone info` reports. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

struct info_device {
    int32_t device;
    size_t event_count, segment_count;
    size_t action_count[DRY_ACTION_COUNT];
    size_t timed_count; /* events that have a time */
    int64_t first_us, last_us;
    size_t time_reversals; /* events with an earlier time than the one before */
    size_t warm_frees;     /* frees of blocks allocated before the window */
    size_t old_blocks;     /* in use at the end, allocated before the window */
    size_t lost_blocks;    /* in use by the events, but not by the segments */
    uint64_t reserved_bytes;
};

/* Segments of one device, lane, size class and kind. */
struct info_group {
    int32_t device;
    uint32_t lane;
    bool is_large, is_expandable;
    size_t segment_count;
    uint64_t reserved_bytes, allocated_bytes, active_bytes, requested_bytes;
};

struct info {
    struct info_device *devices;
    size_t device_count;
    struct info_group *groups; /* largest first */
    size_t group_count;
    size_t block_count[3]; /* indexed by enum dry_block_state */
    uint64_t block_bytes[3];
    uint64_t reserved_bytes, allocated_bytes, active_bytes, requested_bytes;
    size_t gap_segments; /* segments whose blocks do not add up to their size */
    size_t sum_segments; /* allocated or active size differs from the blocks' */
    size_t stack_count;  /* distinct stacks that have frames */
    size_t stack_events; /* stackable_events that have a stack */
    size_t stackable_events;
    size_t stack_blocks, live_blocks;        /* live blocks that have a stack, and all */
    size_t stream_count, private_pool_count; /* distinct ones */
    size_t request_events;                   /* allocations, frees, blocks alive before */
    size_t unknown_actions, unknown_keys;    /* occurrences, except in the top dict */
};

/* Count the content. False: memory ran out. Call info_finish() in any case. */
bool info_collect(struct info *info, const struct dry_trace *trace);
void info_finish(struct info *info);

#endif
