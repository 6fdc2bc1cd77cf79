/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_COUNT_H
#define DRYI_HOST_PINNED_COUNT_H

/* The counters of the cache's statistics; pinned_stats.c reports them. */

#include <stdint.h>

#include <drystone/pinned.h>

#include "host/pinned/pinned_state.h"

void dryi_pinned_stat_add(struct dry_stat *stat, int64_t change);
/* Add the duration of a call that began at `begin_us` (dryi_pinned_clock_us()) and ends
   now. */
void dryi_pinned_time_add(struct dry_pinned_time *time, uint64_t begin_us);
/* Merge another counter into this one: total, count and extremes. */
void dryi_pinned_time_join(struct dry_pinned_time *time,
                           const struct dry_pinned_time *other);
uint64_t dryi_pinned_clock_us(void);
/* Count a block that becomes allocated, or that becomes reusable without waiting. Require
   the lock. */
void dryi_pinned_count_alloc(struct dry_pinned *p, uint64_t bytes, uint64_t requested);
void dryi_pinned_count_free(struct dry_pinned *p, uint64_t bytes, uint64_t requested);

#endif
