/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_STATS_H
#define DRYI_PLACE_PAGED_STATS_H

/*
 * Statistics and observer events.
 *
 * A statistic has a current value, a peak and a sum of frees, for large and for small requests.
 * Totals are derived from both. Only the peak of the total is stored, because it is not the sum of
 * the two peaks.
 */

#include "base/ablate.h"
#include "place/paged/record/paged_state.h"

/* Add to a statistic, and raise its peaks. */
static inline void
stat_raise(struct paged_stat *t, bool small, uint64_t amount)
{
    int64_t now = t->current[small] += (int64_t)amount;
    if (now > t->peak[small])
        t->peak[small] = now;
    int64_t all = t->current[0] + t->current[1];
    if (all > t->all_peak)
        t->all_peak = all;
}

/* Subtract from a statistic, and count the amount as freed. */
static inline void
stat_lower(struct paged_stat *t, bool small, uint64_t amount)
{
    t->current[small] -= (int64_t)amount;
    t->freed[small] += (int64_t)amount;
}

/* Count the allocation of a block of `bytes` in the first three statistics of `t`. */
static inline void
stat_taken(struct paged_stat *t, bool small, uint64_t bytes, uint64_t requested)
{
    stat_raise(&t[STAT_ALLOCATION], small, 1);
    stat_raise(&t[STAT_ALLOCATED_BYTES], small, bytes);
    stat_raise(&t[STAT_REQUESTED_BYTES], small, requested);
}

/* Count the free of a block of `bytes` in the same three statistics. */
static inline void
stat_given(struct paged_stat *t, bool small, uint64_t bytes, uint64_t requested)
{
    stat_lower(&t[STAT_ALLOCATION], small, 1);
    stat_lower(&t[STAT_ALLOCATED_BYTES], small, bytes);
    stat_lower(&t[STAT_REQUESTED_BYTES], small, requested);
}

static inline void
stat_add(struct dryi_paged *p, enum stat_name name, bool small, uint64_t amount)
{
    stat_raise(&p->stats[name], small, amount);
}

static inline void
stat_sub(struct dryi_paged *p, enum stat_name name, bool small, uint64_t amount)
{
    stat_lower(&p->stats[name], small, amount);
}

/* Return the current total over large and small requests. */
static inline uint64_t
stat_all(const struct dryi_paged *p, enum stat_name name)
{
    return (uint64_t)(p->stats[name].current[0] + p->stats[name].current[1]);
}

/* Raise the peaks of allocated plus pending; called after each alloc while blocks are pending. */
DRYI_NOINLINE void dryi_paged_note_active(struct dryi_paged *p);
/* Return the highest sum of allocated and pending bytes so far. */
uint64_t dryi_paged_active_peak(const struct dryi_paged *p);

DRYI_NOINLINE void dryi_paged_tell_observer(struct dryi_paged *p, enum dry_action action,
                                            uint32_t block, uint64_t addr, uint64_t size);

/* Report an event on [addr, addr + size) of a block, if there is an observer. */
static inline void
dryi_paged_tell(struct dryi_paged *p, enum dry_action action, uint32_t block,
                uint64_t addr, uint64_t size)
{
    if (p->observer.event)
        dryi_paged_tell_observer(p, action, block, addr, size);
}

/* Implement the functions of the same names in place.h. */
void dryi_paged_reset_stats(void *self, bool peaks, bool accumulated);
void dryi_paged_get_stats(const void *self, struct dry_stats *stats);
void dryi_paged_get_counters(const void *self, struct dry_pool_counters *counters);

/*
 * Return how many pages beyond the budget may be created. The rule is that of ski rental: pay rent
 * until it equals the price, then buy. Moves of as many pages as the peak has are not counted: the
 * program may end or get a layout meanwhile. Each further page move permits one page.
 */
static inline uint64_t
dryi_paged_bought(const struct dryi_paged *p)
{
    uint64_t peak = dryi_paged_active_peak(p) >> p->page_shift;
    return !DRYI_ABLATED(rent) && p->rent > peak ? p->rent - peak : 0;
}

#endif
