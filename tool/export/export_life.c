/* SPDX-License-Identifier: Apache-2.0 */
/* Events and fates are derived from a timeline, see export_life.h. Cost: O(1). */
#include "export/export_life.h"

struct export_point
export_point_at(const struct dry_timeline_view *view, uint32_t moment)
{
    struct export_point point = {0};
    if (moment == 0 || moment > view->event_count)
        return point;
    const struct dry_trace_view *v = dry_trace_get_view(view->trace);
    size_t event = view->first_event + moment - 1;
    const struct dry_note *note = dry_trace_note(view->trace, v->note[event]);
    point.has_event = true;
    point.event = event;
    point.has_time = !(note->flags & DRY_NOTE_NO_TIME);
    point.time_us = v->time_us[event];
    return point;
}

const char *
export_fate(const struct dry_timeline_view *view, const struct dry_allocation *a)
{
    if (a->flags & DRY_ALLOCATION_FREE_LOST)
        return "lost";
    if (a->end <= view->dump_moment)
        return "freed";
    return a->freed <= view->dump_moment ? "pending" : "alive";
}

const char *
export_block_state_name(enum dry_block_state state)
{
    static const char *const names[] = {
        [DRY_BLOCK_INACTIVE] = "free",
        [DRY_BLOCK_ACTIVE] = "active",
        [DRY_BLOCK_PENDING_FREE] = "pending",
    };
    return names[state];
}
