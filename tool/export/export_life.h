/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_LIFE_H
#define TOOL_EXPORT_LIFE_H

/* Moments and fates of allocations, as tables show them. */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/timeline.h>

/* The event that leads to a moment. */
struct export_point {
    bool has_event; /* false before the recording and after its last event */
    bool has_time;
    uint64_t event; /* counted from the start of the file */
    int64_t time_us;
};
struct export_point export_point_at(const struct dry_timeline_view *view,
                                    uint32_t moment);

/*
 * Return "freed", "pending" (freed, but a stream still uses it at the end), "lost"
 * (freed, but the free is not in the record) or "alive".
 */
const char *export_fate(const struct dry_timeline_view *view,
                        const struct dry_allocation *allocation);

/* Return "active", "pending" or "free". */
const char *export_block_state_name(enum dry_block_state state);

#endif
