/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_LIFE_H
#define TOOL_EXPORT_LIFE_H

/* Moments as events of the file, for tables: what stands in a row about an allocation. */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/timeline.h>

/* The event that leads to a moment. */
struct export_point {
    bool has_event; /* not before the window, nor after its last event */
    bool has_time;
    uint64_t event; /* counted in the file */
    int64_t time_us;
};
struct export_point export_point_at(const struct dry_timeline_view *view,
                                    uint32_t moment);

/*
 * "freed"; "pending": given back, but a stream still uses it at the end; "lost": its end is
 * not in the record, but must have been; "alive".
 */
const char *export_fate(const struct dry_timeline_view *view,
                        const struct dry_allocation *allocation);

/* "active", "pending", "free". */
const char *export_block_state_name(enum dry_block_state state);

#endif
