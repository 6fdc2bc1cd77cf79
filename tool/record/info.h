/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_INFO_H
#define TOOL_INFO_H

/*
 * The content of a trace, counted: the facts behind `drystone info`, without their words.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

struct info_device {
    int32_t device;
    size_t event_count, segment_count;
    size_t action_count[DRY_ACTION_COUNT];
    size_t timed_count; /* events that carry a time */
    int64_t first_us, last_us;
    size_t time_reversals; /* events earlier than the one before */
    size_t warm_frees;     /* of blocks whose allocation is not in the window */
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
    struct info_group *groups; /* the largest first */
    size_t group_count;
    size_t block_count[3]; /* by enum dry_block_state */
    uint64_t block_bytes[3];
    uint64_t reserved_bytes, allocated_bytes, active_bytes, requested_bytes;
    size_t gap_segments; /* whose blocks do not add up to their size */
    size_t sum_segments; /* whose allocated or active size is not that of their blocks */
    size_t stack_count;  /* distinct ones; a list without frames is none */
    size_t stack_events; /* events with a stack, of those that could have one */
    size_t stackable_events;
    size_t stack_blocks, live_blocks; /* blocks in use with a stack; in use at all */
    size_t stream_count, private_pool_count; /* distinct ones */
    size_t request_events;                   /* allocs, frees, blocks alive before */
    size_t unknown_actions, unknown_keys;    /* occurrences, the file's top apart */
};

/* False: no memory. info_finish() is due in either case. */
bool info_collect(struct info *info, const struct dry_trace *trace);
void info_finish(struct info *info);

#endif
