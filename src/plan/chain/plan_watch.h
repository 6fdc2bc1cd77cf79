/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_WATCH_H
#define DRYI_PLAN_WATCH_H

/*
 * A watch: the caller is told how far a planner is, and may end it.
 *
 *     for (each row of a table)
 *         if (!dryi_plan_go_on(watch, 1))
 *             return DRY_ERR_CANCELLED;                      the caller writes the text
 *
 * Nobody knows beforehand how many rows there will be, so they are only counted. One watch is
 * that of all planners that a call asks, one after the other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#define DRYI_WATCH_ROWS 64u /* between two calls, about: a fraction of a second at most */

struct dryi_plan_watch {
    int (*progress)(void *self, uint64_t done, uint64_t total); /* NULL: nobody */
    void *self;
    uint64_t done, told;
    bool is_cancelled; /* for good: who said so is not called again */
};

/* Count so many rows more. False: they are the last. `watch` NULL: nobody is told. */
static inline bool
dryi_plan_go_on(struct dryi_plan_watch *watch, uint64_t rows)
{
    if (!watch || !watch->progress)
        return true;
    watch->done += rows;
    if (watch->is_cancelled)
        return false;
    if (watch->done - watch->told < DRYI_WATCH_ROWS)
        return true;
    watch->told = watch->done;
    watch->is_cancelled = watch->progress(watch->self, watch->done, 0) != 0;
    return !watch->is_cancelled;
}

#endif
