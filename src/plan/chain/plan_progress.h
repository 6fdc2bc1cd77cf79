/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_PROGRESS_H
#define DRYI_PLAN_PROGRESS_H

/*
 * Progress: the caller is told how far a planner is, and may end it.
 *
 *     for (each row of a table)
 *         if (!dryi_plan_go_on(progress, 1))
 *             return DRY_ERR_CANCELLED;                      the caller writes the text
 *
 * Nobody knows beforehand how many rows there will be, so they are only counted. One struct is
 * for all planners that a call asks, one after the other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* Rows between two calls, about: a fraction of a second at most. */
#define DRYI_PROGRESS_ROWS 64u

struct dryi_plan_progress {
    bool (*tell)(void *self, uint64_t done, uint64_t total); /* NULL: nobody is told */
    void *self;
    uint64_t done, told;
    bool is_cancelled; /* for good: who said so is not called again */
};

/* Count so many rows more. False: they are the last. `progress` NULL: nobody is told. */
static inline bool
dryi_plan_go_on(struct dryi_plan_progress *progress, uint64_t rows)
{
    if (!progress || !progress->tell)
        return true;
    progress->done += rows;
    if (progress->is_cancelled)
        return false;
    if (progress->done - progress->told < DRYI_PROGRESS_ROWS)
        return true;
    progress->told = progress->done;
    progress->is_cancelled = progress->tell(progress->self, progress->done, 0);
    return !progress->is_cancelled;
}

#endif
