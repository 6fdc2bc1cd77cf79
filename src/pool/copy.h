/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_COPY_H
#define DRYI_POOL_COPY_H

/*
 * A pool at one moment: its history, its segments and its settings, taken under one holding
 * of the lock, so that the last event and the layout belong together. Slow work, such as
 * asking a program for its stacks, happens afterwards on the copy.
 */

#include <stdbool.h>

#include <drystone/pool.h>
#include <drystone/trace.h>

struct dryi_pool_copy {
    struct dry_memory memory;
    struct dry_pool *pool; /* NULL: nothing of it is held */
    uint64_t history_turn; /* of the contexts, which the copy holds */
    int32_t device_index;
    struct dry_pool_event *events; /* oldest first */
    size_t event_count, event_capacity;
    struct dry_pool_segment *segments; /* by address */
    size_t *part_counts; /* of each segment, one after the other in `parts` */
    size_t segment_count, segment_capacity, part_count_capacity;
    struct dry_pool_part *parts;
    size_t part_count, part_capacity;

    bool is_torch; /* placed as PyTorch places */
    char *conf;    /* the option string, conf_length bytes and a zero */
    size_t conf_length;
    struct dry_trace_settings settings; /* `conf` and `extra` are not set */
};

/* Ended by finish in any case, while the pool lives. */
DRY_CHECK_RESULT enum dry_status dryi_pool_copy_init(struct dryi_pool_copy *copy,
                                                     struct dry_pool *pool,
                                                     const struct dry_memory *memory);
void dryi_pool_copy_finish(struct dryi_pool_copy *copy);

#endif
