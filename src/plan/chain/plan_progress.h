/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_PROGRESS_H
#define DRYI_PLAN_PROGRESS_H

/*
 * Progress: a planner reports to the caller, who may cancel.
 *
 *     for (each row of a table)
 *         if (!dryi_plan_go_on(progress, 1))
 *             return DRY_ERR_CANCELLED;                      the caller writes the text
 *
 * The total number of rows is not known beforehand, so rows are only counted. All
 * planners of one call share one struct, one after the other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* Rows between two reports, which take a fraction of a second at most. */
#define DRYI_PROGRESS_ROWS 64u

struct dryi_plan_progress {
    bool (*tell)(void *self, uint64_t done, uint64_t total); /* NULL: no reports */
    void *self;
    uint64_t done, told;
    bool is_cancelled; /* stays true; `tell` is not called again */
};

/* Count `rows` more rows. Returns false if the caller cancelled. `progress` may be NULL. */
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
