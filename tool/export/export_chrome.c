/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace event format, for chrome://tracing and compatible viewers. An allocation
 * is a pair of asynchronous events with an id of its own, because complete events would
 * have to nest. Times are microseconds. The format:
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "export/export.h"
#include "export/export_steps.h"
#include "export/export_time.h"

/* JSON cannot refer to a stack, so each allocation repeats some of its frames. */
#define STACK_FRAMES 8
#define STACK_BYTES 1024

struct chrome {
    const struct export_job *job;
    struct writer *w;
    bool has_event;
    uint64_t id; /* of the last pair of asynchronous events */
    /* Of the device that is being written. */
    const struct dry_timeline_view *view;
    size_t device;
    int64_t pid;
    struct export_clock clock;
};

/* Begin an event, {"ph":"...","pid":N,"tid":0,"ts":N, which the caller must close. */
static void
begin_event(struct chrome *c, const char *phase, int64_t time_us)
{
    writer_put(c->w, c->has_event ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    c->has_event = true;
    writer_put(c->w, phase);
    writer_put(c->w, "\",\"pid\":");
    writer_signed(c->w, c->pid);
    writer_put(c->w, ",\"tid\":0,\"ts\":");
    writer_signed(c->w, time_us);
}

static void
put_member(struct chrome *c, const char *key, uint64_t value)
{
    writer_char(c->w, '"');
    writer_put(c->w, key);
    writer_put(c->w, "\":");
    writer_unsigned(c->w, value);
}

static void
put_name(struct chrome *c, const char *name)
{
    writer_put(c->w, ",\"name\":");
    writer_json(c->w, name, strlen(name));
}

static void
write_process(struct chrome *c)
{
    begin_event(c, "M", 0);
    writer_put(c->w, ",\"name\":\"process_name\",\"args\":{\"name\":\"GPU ");
    writer_signed(c->w, c->view->device);
    writer_put(c->w, "\"}}");
}

/* --- counters ----------------------------------------------------------------------------- */

static void
write_points(struct chrome *c, const char *name, const uint64_t *heights)
{
    struct export_points points;
    uint32_t moment;
    export_points_init(&points, heights, c->view->dump_moment + 1,
                       c->job->is_every_point);
    export_clock_rewind(&c->clock);
    while (export_points_next(&points, &moment)) {
        begin_event(c, "C", export_clock_at(&c->clock, moment));
        put_name(c, name);
        writer_put(c->w, ",\"args\":{");
        put_member(c, "bytes", heights[moment]);
        writer_put(c->w, "}}");
    }
}

static void
write_lane_class_counters(struct chrome *c, uint64_t *heights)
{
    struct export_lane_class classes[EXPORT_LANE_CLASSES_MAX];
    size_t count, left_out;
    if (!export_find_lane_classes(c->view, classes, &count, &left_out)) {
        writer_fail(c->w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char class_name[EXPORT_NAME_BYTES], name[EXPORT_NAME_BYTES + 16];
        const struct dry_lane *lane = c->clock.trace->lanes + classes[i].lane;
        snprintf(name, sizeof name, "reserved %s",
                 export_lane_class_name(lane, classes[i].is_large, class_name));
        export_heights_of_lane_class(c->view, classes[i].lane, classes[i].is_large,
                                     heights);
        write_points(c, name, heights);
    }
    if (left_out > 0)
        export_note(c->job, "device %d: %zu small pool%s no counter of %s own",
                    (int)c->view->device, left_out, left_out == 1 ? " has" : "s have",
                    left_out == 1 ? "its" : "their");
}

static void
write_counters(struct chrome *c)
{
    uint64_t *heights = malloc((c->view->dump_moment + (size_t)1) * sizeof *heights);
    if (!heights) {
        writer_fail(c->w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    for (uint32_t i = 0; i < DRY_CURVE_COUNT; i++) {
        export_heights_of_curve(c->view, (enum dry_curve)i, heights);
        write_points(c, dry_curve_name((enum dry_curve)i), heights);
    }
    write_lane_class_counters(c, heights);
    free(heights);
}

/* --- instants and annotations ------------------------------------------------------------- */

static void
write_instant(struct chrome *c, uint32_t event, enum dry_action action)
{
    const struct dry_trace_view *v = c->clock.trace;
    size_t i = c->view->first_event + event;
    begin_event(c, "i", export_clock_at(&c->clock, event + 1));
    put_name(c, dry_action_name(action));
    writer_put(c->w, ",\"s\":\"p\",\"args\":{");
    put_member(c, "event", i);
    writer_char(c->w, ',');
    put_member(c, "size", v->size[i]);
    if (action == DRY_ACTION_OOM) {
        writer_char(c->w, ',');
        put_member(c, "device_free", v->addr[i]);
    }
    size_t length;
    const struct dry_note *note = dry_trace_note(c->view->trace, v->note[i]);
    const char *text = dry_trace_string(c->view->trace, note->user_metadata, &length);
    if (text) {
        char name[EXPORT_NAME_BYTES];
        export_short_text(text, length, name);
        writer_put(c->w, ",\"user_metadata\":");
        writer_json(c->w, name, strlen(name));
    }
    writer_put(c->w, "}}");
}

static void
write_instants(struct chrome *c)
{
    export_clock_rewind(&c->clock);
    for (uint32_t e = 0; e < c->view->event_count; e++) {
        enum dry_action action =
            (enum dry_action)c->clock.trace->action[c->view->first_event + e];
        if (action == DRY_ACTION_OOM || action == DRY_ACTION_SNAPSHOT ||
            action == DRY_ACTION_ANNOTATE)
            write_instant(c, e, action);
    }
}

static void
begin_async(struct chrome *c, const char *phase, int64_t time_us, uint64_t id)
{
    begin_event(c, phase, time_us);
    writer_format(c->w, ",\"id\":\"0x%llx\"", (unsigned long long)id);
}

static void
write_steps(struct chrome *c)
{
    struct export_steps steps;
    export_steps_init(&steps, c->job->study->devices[c->device].timeline, c->w);
    export_clock_rewind(&c->clock);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct dry_step *step = steps.all + i;
        begin_async(c, "b", export_clock_at(&c->clock, step->begin), ++c->id);
        writer_format(c->w, ",\"cat\":\"step\",\"name\":\"step %u\",\"args\":{", i);
        put_member(c, "peak_active", step->peak.bytes);
        writer_char(c->w, ',');
        put_member(c, "kept", step->kept_bytes);
        writer_char(c->w, ',');
        put_member(c, "allocated_in_it", step->alloc_bytes);
        writer_put(c->w, step->is_partial ? ",\"is_partial\":true}}"
                                          : ",\"is_partial\":false}}");
        begin_async(c, "e", export_clock_at(&c->clock, step->end), c->id);
        writer_format(c->w, ",\"cat\":\"step\",\"name\":\"step %u\"}", i);
    }
    export_steps_finish(&steps);
}

static void
write_scopes(struct chrome *c)
{
    struct export_lanes lanes;
    struct export_scopes scopes;
    if (!export_scopes_pair(&scopes, &c->clock, &lanes))
        writer_fail(c->w, DRY_ERR_MEMORY, "no memory");
    for (size_t i = 0; i < scopes.count; i++) {
        size_t length;
        const char *text =
            dry_trace_string(c->view->trace, scopes.scopes[i].name, &length);
        char name[EXPORT_NAME_BYTES];
        export_short_text(text, length, name);
        c->id++;
        for (int end = 0; end < 2; end++) {
            begin_async(c, end ? "e" : "b",
                        end ? scopes.scopes[i].end_us : scopes.scopes[i].begin_us, c->id);
            writer_put(c->w, ",\"cat\":\"annotation\"");
            put_name(c, name);
            writer_char(c->w, '}');
        }
    }
    if (scopes.unmatched > 0)
        export_note(c->job, "device %d: %zu end%s without a beginning %s left out",
                    (int)c->view->device, scopes.unmatched,
                    scopes.unmatched == 1 ? " of an annotation" : "s of annotations",
                    scopes.unmatched == 1 ? "is" : "are");
    export_scopes_finish(&scopes);
}

/* --- allocations -------------------------------------------------------------------------- */

/* Write the frames of a stack, from its site outwards. */
static void
put_stack(struct chrome *c, const struct dry_allocation *a)
{
    const struct export_names *names = c->job->names;
    struct export_stack_part part = {.stack = a->stack, .frame_max = STACK_FRAMES};
    char text[STACK_BYTES];
    bool is_cut;
    if (export_names_site(names, a->stack) == DRY_NONE)
        return;
    part.from = export_site_position(names, a->stack);
    export_stack_text(names, &part, text, sizeof text, &is_cut);
    bool is_of_free = a->flags & DRY_ALLOCATION_STACK_OF_FREE;
    writer_put(c->w, is_of_free ? ",\"stack_of_free\":[" : ",\"stack\":[");
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        writer_json(c->w, line, end ? (size_t)(end - line) : strlen(line));
        line = end ? end + 1 : NULL;
        if (line)
            writer_char(c->w, ',');
    }
    writer_char(c->w, ']');
}

static void
put_allocation_name(struct chrome *c, const struct dry_allocation *a)
{
    char name[EXPORT_NAME_BYTES];
    writer_put(c->w, ",\"cat\":\"allocation\"");
    put_name(c, export_allocation_name(c->job->names, a, name));
}

static void
begin_slice(struct chrome *c, const struct export_slice *slice, uint64_t id)
{
    const struct dry_allocation *a = c->view->allocations + slice->allocation;
    const struct dry_lane *lane = c->clock.trace->lanes + a->lane;
    char text[EXPORT_NAME_BYTES];
    begin_async(c, "b", export_clock_at(&c->clock, slice->begin), id);
    put_allocation_name(c, a);
    writer_put(c->w, ",\"args\":{");
    put_member(c, "size", a->size);
    writer_char(c->w, ',');
    put_member(c, "requested", a->requested);
    writer_format(c->w, ",\"address\":\"0x%llx\",\"stream\":\"%s\",\"pool\":\"",
                  (unsigned long long)a->address, export_stream_name(lane, text));
    writer_format(c->w, "%s\",\"alive_at_end\":%s", export_pool_name(lane, text),
                  a->end >= c->view->dump_moment ? "true" : "false");
    put_stack(c, a);
    writer_put(c->w, "}}");
}

/* Write begins and ends in order of time. Readers do not require that. */
static void
write_slices(struct chrome *c, const struct export_slices *s)
{
    export_clock_rewind(&c->clock);
    uint32_t begun = 0;
    for (uint32_t ended = 0; ended < s->count && c->w->status == DRY_OK; ended++) {
        uint32_t i = s->by_end[ended];
        for (; begun < s->count && s->slices[begun].begin < s->slices[i].end; begun++)
            begin_slice(c, s->slices + begun, c->id + 1 + begun);
        begin_async(c, "e", export_clock_at(&c->clock, s->slices[i].end), c->id + 1 + i);
        put_allocation_name(c, c->view->allocations + s->slices[i].allocation);
        writer_char(c->w, '}');
    }
    c->id += s->count;
}

static void
write_device(struct chrome *c)
{
    export_clock_init(&c->clock, c->view);
    write_process(c);
    write_counters(c);
    write_instants(c);
    write_steps(c);
    write_scopes(c);
    struct export_slice_rule rule = {c->job->slice_max, c->job->min_bytes};
    struct export_slices slices;
    if (!export_slices_choose(&slices, c->view, &rule))
        writer_fail(c->w, DRY_ERR_MEMORY, "no memory");
    write_slices(c, &slices);
    export_note_slices(c->job, c->view, &slices);
    export_note_clock(c->job, &c->clock);
    export_slices_finish(&slices);
}

static void
write_chrome(const struct export_job *job, struct writer *w)
{
    struct chrome c = {.job = job, .w = w};
    writer_put(w, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"file\":");
    writer_json(w, job->path, strlen(job->path));
    writer_put(w, ",\"generator\":\"drystone " DRY_VERSION "\"},\"traceEvents\":[");
    for (size_t i = job->first_device; i < job->end_device && w->status == DRY_OK; i++) {
        c.device = i;
        c.view = export_view(job, i);
        c.pid = (int64_t)c.view->device + 1;
        write_device(&c);
    }
    writer_put(w, "\n]}\n");
}

const struct export_format export_chrome = {
    .name = "chrome",
    .endings = {".chrome.json", ".trace.json"},
    .what = "the same for chrome://tracing, in JSON",
    .is_text = true,
    .is_for_time_lines = true,
    .write = write_chrome,
};
