/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MOMENT_H
#define TOOL_MOMENT_H

/* The moment that a report is about, and the reason for choosing it. */

#include <jansson.h>

#include <drystone/timeline.h>

enum moment_reason { MOMENT_EVENT, MOMENT_OOM, MOMENT_PEAK, MOMENT_END };

struct moment {
    uint32_t moment;
    enum moment_reason reason;
};

/* Return "event", "oom", "peak" or "end": values of --at, and keys in JSON. */
const char *moment_reason_name(enum moment_reason reason);

/* Return the meaning of --at: NULL is the OOM, else the peak; other words are events. */
enum moment_reason moment_find_reason(const struct dry_timeline_view *view,
                                      const char *at);

/* Describe a moment. `at` is the argument that study_find_moment() received. */
struct moment moment_describe(const struct dry_timeline_view *view, const char *at,
                              uint32_t moment);

/* Write a text such as "out of memory at event 421, +1.45 s". */
#define MOMENT_BYTES 120
const char *moment_write(const struct dry_timeline *timeline, const struct moment *moment,
                         char text[MOMENT_BYTES]);

/* Make {"reason": "oom", "moment": 421, "event": 421, "time_us": 1450000}, or NULL. */
json_t *moment_make_json(const struct dry_timeline *timeline,
                         const struct moment *moment);

/* Return the event of the moment, counted in the file; SIZE_MAX if there is none. */
size_t moment_event(const struct dry_timeline_view *view, const struct moment *moment);

#endif
