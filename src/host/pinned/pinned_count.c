/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Updates the statistics for each allocated and freed block. This file calls no other
 * file of the cache. Each thread collects sums of its own, which are folded into these;
 * see pinned_thread_cache.c.
 */
#include "host/pinned/pinned_count.h"

#include <time.h>

#include "base/assert.h"

void
dryi_pinned_stat_add(struct dry_stat *stat, int64_t change)
{
    stat->current += change;
    if (change > 0)
        stat->allocated += change;
    else
        stat->freed -= change;
    if (stat->current > stat->peak)
        stat->peak = stat->current;
}

void
dryi_pinned_count_alloc(struct dry_pinned *p, uint64_t bytes, uint64_t requested)
{
    DRYI_ASSERT_SLOW(requested <= bytes);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    dryi_pinned_stat_add(&p->stats.active_requests, 1);
    dryi_pinned_stat_add(&p->stats.active_bytes, (int64_t)bytes);
    dryi_pinned_stat_add(&p->stats.requested_bytes, (int64_t)requested);
    if (p->stats.active_bytes.current > p->used_peak_bytes)
        p->used_peak_bytes = p->stats.active_bytes.current;
}

void
dryi_pinned_count_free(struct dry_pinned *p, uint64_t bytes, uint64_t requested)
{
    DRYI_ASSERT_SLOW(requested <= bytes);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    dryi_pinned_stat_add(&p->stats.active_requests, -1);
    dryi_pinned_stat_add(&p->stats.active_bytes, -(int64_t)bytes);
    dryi_pinned_stat_add(&p->stats.requested_bytes, -(int64_t)requested);
}

uint64_t
dryi_pinned_clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void
dryi_pinned_time_join(struct dry_pinned_time *time, const struct dry_pinned_time *other)
{
    if (other->count == 0)
        return;
    if (time->count == 0 || other->min < time->min)
        time->min = other->min;
    if (other->max > time->max)
        time->max = other->max;
    time->total += other->total;
    time->count += other->count;
}

void
dryi_pinned_time_add(struct dry_pinned_time *time, uint64_t begin_us)
{
    int64_t us = (int64_t)(dryi_pinned_clock_us() - begin_us);
    struct dry_pinned_time one = {.total = us, .max = us, .min = us, .count = 1};
    dryi_pinned_time_join(time, &one);
}
