/* SPDX-License-Identifier: Apache-2.0 */
/* Moments of a timeline as words, text and JSON, see moment.h. Cost: O(1). */
#include "record/moment.h"

#include <stdio.h>
#include <string.h>

#include "base/json_out.h"
#include "base/term.h"

const char *
moment_reason_name(enum moment_reason reason)
{
    static const char *const names[] = {"event", "oom", "peak", "end"};
    return names[reason];
}

enum moment_reason
moment_find_reason(const struct dry_timeline_view *view, const char *at)
{
    if (!at && view->event_count == 0)
        return MOMENT_END;
    if (!at)
        return view->oom_count > 0 ? MOMENT_OOM : MOMENT_PEAK;
    for (enum moment_reason reason = MOMENT_OOM; reason <= MOMENT_END; reason++) {
        if (strcmp(at, moment_reason_name(reason)) == 0)
            return reason;
    }
    return MOMENT_EVENT;
}

struct moment
moment_describe(const struct dry_timeline_view *view, const char *at, uint32_t moment)
{
    return (struct moment){.moment = moment, .reason = moment_find_reason(view, at)};
}

/* An OOM's event is the request that failed; other moments have the event before them. */
size_t
moment_event(const struct dry_timeline_view *view, const struct moment *m)
{
    if (m->reason == MOMENT_OOM)
        return view->first_event + m->moment;
    if (m->moment == 0 || m->moment > view->event_count)
        return SIZE_MAX;
    return view->first_event + m->moment - 1;
}

/* Return the time of the moment. An OOM shows the state before it, but its own time. */
static int64_t
get_time(const struct dry_timeline *timeline, const struct moment *m)
{
    uint32_t own = m->reason == MOMENT_OOM ? 1 : 0;
    return dry_timeline_time(timeline, m->moment + own);
}

/* Return the time since the device's first event; 0 if the clock went backwards. */
static uint64_t
elapsed_us(const struct dry_timeline *timeline, const struct moment *m)
{
    int64_t begin = dry_timeline_time(timeline, 0);
    int64_t now = get_time(timeline, m);
    return now > begin ? (uint64_t)now - (uint64_t)begin : 0;
}

const char *
moment_write(const struct dry_timeline *timeline, const struct moment *m,
             char text[MOMENT_BYTES])
{
    static const char *const words[] = {"after", "out of memory", "peak of active memory",
                                        "end of the file"};
    const struct dry_timeline_view *view = dry_timeline_get_view(timeline);
    size_t event = moment_event(view, m);
    uint64_t time_us = elapsed_us(timeline, m);
    char at[48], time[TERM_NUMBER_BYTES], since[TERM_NUMBER_BYTES + 4] = "";
    if (view->event_count == 0 || m->reason == MOMENT_END) {
        snprintf(text, MOMENT_BYTES, "%s",
                 view->event_count == 0 ? "at its end: it has no events"
                                        : words[m->reason]);
        return text;
    }
    if (event == SIZE_MAX)
        snprintf(at, sizeof at, ", before the first event");
    else
        snprintf(at, sizeof at, "%s event %zu", m->reason == MOMENT_EVENT ? "" : " at",
                 event);
    if (time_us > 0)
        snprintf(since, sizeof since, ", +%s", term_format_time(time_us, time));
    snprintf(text, MOMENT_BYTES, "%s%s%s", words[m->reason], at, since);
    return text;
}

json_t *
moment_make_json(const struct dry_timeline *timeline, const struct moment *m)
{
    const struct dry_timeline_view *view = dry_timeline_get_view(timeline);
    size_t event = moment_event(view, m);
    return json_pack("{s:s, s:o, s:o, s:I}", "reason", moment_reason_name(m->reason),
                     "moment", json_out_number(m->moment), "event",
                     event == SIZE_MAX ? json_null() : json_out_number(event), "time_us",
                     (json_int_t)get_time(timeline, m));
}
