/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_COUNT_H
#define DRYI_HOST_PINNED_COUNT_H

/* Counters of the cache's statistics, of which pinned_stats.c reports. */

#include <stdint.h>

#include <drystone/pinned.h>

#include "host/pinned/pinned_state.h"

void dryi_pinned_stat_add(struct dry_stat *stat, int64_t change);
/* Of a call that began at `begin_us`, by dry_pinned's clock, and is over. */
void dryi_pinned_time_add(struct dry_pinned_time *time, uint64_t begin_us);
/* What another had gathered. */
void dryi_pinned_time_join(struct dry_pinned_time *time,
                           const struct dry_pinned_time *other);
uint64_t dryi_pinned_clock_us(void);
/* A block is handed out, or reusable: in the sums at once. Lock held. */
void dryi_pinned_count_alloc(struct dry_pinned *p, uint64_t bytes, uint64_t requested);
void dryi_pinned_count_free(struct dry_pinned *p, uint64_t bytes, uint64_t requested);

#endif
