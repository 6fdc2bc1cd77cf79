/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_COPY_H
#define DRYI_POOL_COPY_H

/*
 * A copy of a pool at one moment: history, segments and settings. They are read under one lock, so
 * the last event and the layout are consistent. Slow work, such as asking the program for its
 * stacks, is done on the copy without the lock.
 */

#include <stdbool.h>

#include <drystone/pool.h>
#include <drystone/trace.h>

struct dryi_pool_copy {
    struct dry_memory memory;
    struct dry_pool *pool; /* NULL: no context is held */
    uint64_t history_turn; /* turn of the history whose contexts are held */
    int32_t device_index;
    struct dry_pool_event *events; /* oldest first */
    size_t event_count, event_capacity;
    struct dry_pool_segment *segments; /* sorted by address */
    size_t *part_counts; /* per segment; its parts are contiguous in `parts` */
    size_t segment_count, segment_capacity, part_count_capacity;
    struct dry_pool_part *parts;
    size_t part_count, part_capacity;

    bool is_torch; /* placement torch */
    char *conf;    /* option string, conf_length bytes and a zero */
    size_t conf_length;
    struct dry_trace_settings settings; /* all but `conf` and `extra` */
};

/* Copy a pool. Requires a call of finish, also after a failure, while the pool exists. */
DRY_CHECK_RESULT enum dry_status dryi_pool_copy_init(struct dryi_pool_copy *copy,
                                                     struct dry_pool *pool,
                                                     const struct dry_memory *memory);
void dryi_pool_copy_finish(struct dryi_pool_copy *copy);

#endif
