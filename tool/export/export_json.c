/* SPDX-License-Identifier: Apache-2.0 */
/* All data as one JSON object, schema drystone.export/1, see drystone-export(1). */
#include <string.h>

#include "export/export.h"
#include "export/export_life.h"
#include "export/export_steps.h"

static void
put_key(struct writer *w, const char *key)
{
    writer_char(w, '"');
    writer_put(w, key);
    writer_put(w, "\":");
}

static void
put_number(struct writer *w, const char *key, uint64_t value)
{
    writer_char(w, ',');
    put_key(w, key);
    writer_unsigned(w, value);
}

static void
put_bool(struct writer *w, const char *key, bool value)
{
    writer_char(w, ',');
    put_key(w, key);
    writer_put(w, value ? "true" : "false");
}

/* Write an index, or null for DRY_NONE. */
static void
put_index(struct writer *w, const char *key, uint32_t value)
{
    writer_char(w, ',');
    put_key(w, key);
    if (value == DRY_NONE)
        writer_put(w, "null");
    else
        writer_unsigned(w, value);
}

static void
put_string(struct writer *w, const char *key, const struct dry_trace *trace,
           uint32_t string)
{
    size_t length;
    const char *text = dry_trace_string(trace, string, &length);
    put_key(w, key);
    writer_json(w, text, text ? export_cut(text, length) : 0);
}

/* Write the event before a moment: null before the recording and after its last event. */
static void
put_moment(struct writer *w, const char *name, const struct dry_timeline_view *view,
           uint32_t moment)
{
    struct export_point point = export_point_at(view, moment);
    writer_char(w, ',');
    writer_format(w, "\"%s_event\":", name);
    if (point.has_event)
        writer_unsigned(w, point.event);
    else
        writer_put(w, "null");
    writer_format(w, ",\"%s_us\":", name);
    if (point.has_time)
        writer_signed(w, point.time_us);
    else
        writer_put(w, "null");
}

static void
put_lane(struct writer *w, const struct dry_timeline_view *view, uint32_t number)
{
    const struct dry_lane *lane = dry_trace_get_view(view->trace)->lanes + number;
    put_number(w, "stream", lane->stream);
    if (lane->pool_known)
        writer_format(w, ",\"pool\":[%llu,%llu]", (unsigned long long)lane->pool_a,
                      (unsigned long long)lane->pool_b);
    else
        writer_put(w, ",\"pool\":null");
}

/* --- tables of the file ------------------------------------------------------------------- */

static void
write_frames(struct writer *w, const struct dry_trace *trace)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    writer_put(w, ",\n\"frames\":[");
    for (uint32_t i = 0; i < v->frame_count; i++) {
        writer_put(w, i > 0 ? ",\n{" : "\n{");
        put_string(w, "name", trace, v->frames[i].name);
        writer_char(w, ',');
        put_string(w, "file", trace, v->frames[i].file);
        put_number(w, "line", v->frames[i].line);
        writer_char(w, '}');
    }
    writer_put(w, "],\n\"stacks\":[");
    for (uint32_t i = 0; i < v->stack_count; i++) {
        size_t count;
        const uint32_t *frames = dry_trace_stack(trace, i, &count);
        writer_put(w, i > 0 ? ",\n[" : "\n[");
        for (size_t k = 0; k < count; k++) {
            writer_put(w, k > 0 ? "," : "");
            writer_unsigned(w, frames[k]);
        }
        writer_char(w, ']');
    }
    writer_char(w, ']');
}

static void
write_annotations(struct writer *w, const struct dry_trace *trace)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    writer_put(w, ",\n\"annotations\":[");
    for (size_t i = 0; i < v->annotation_count; i++) {
        const struct dry_trace_annotation *a = v->annotations + i;
        writer_put(w, i > 0 ? ",\n{" : "\n{");
        put_string(w, "name", trace, a->name);
        writer_char(w, ',');
        put_string(w, "stage", trace, a->stage);
        writer_format(w, ",\"device\":%d,\"time_us\":%lld}", (int)a->device,
                      (long long)a->time_us);
    }
    writer_char(w, ']');
}

/* --- a device ----------------------------------------------------------------------------- */

static void
write_allocation(struct writer *w, const struct dry_timeline_view *view, uint32_t number)
{
    const struct dry_allocation *a = view->allocations + number;
    writer_put(w, number > 0 ? ",\n{\"allocation\":" : "\n{\"allocation\":");
    writer_unsigned(w, number);
    put_number(w, "address", a->address);
    put_number(w, "size", a->size);
    put_number(w, "requested", a->requested);
    put_lane(w, view, a->lane);
    put_moment(w, "begin", view, a->begin);
    put_moment(w, "freed", view, a->freed);
    put_moment(w, "end", view, a->end);
    writer_format(w, ",\"fate\":\"%s\"", export_fate(view, a));
    put_bool(w, "is_before_recording", a->flags & DRY_ALLOCATION_CARRIED_OVER);
    put_bool(w, "is_size_guessed", a->flags & DRY_ALLOCATION_SIZE_GUESSED);
    put_bool(w, "is_stack_of_free", a->flags & DRY_ALLOCATION_STACK_OF_FREE);
    put_index(w, "stack", a->stack);
    writer_char(w, '}');
}

static void
write_segments(struct writer *w, const struct dry_timeline_view *view)
{
    writer_put(w, "],\n\"segments\":[");
    for (uint32_t i = 0; i < view->segment_count; i++) {
        const struct dry_timeline_segment *s = view->segments + i;
        writer_put(w, i > 0 ? ",\n{\"address\":" : "\n{\"address\":");
        writer_unsigned(w, s->address);
        put_number(w, "size", s->size);
        put_lane(w, view, s->lane);
        put_bool(w, "is_large", s->is_large);
        put_bool(w, "is_expandable", s->is_expandable);
        put_moment(w, "begin", view, s->begin);
        put_moment(w, "end", view, s->end);
        writer_char(w, '}');
    }
    writer_char(w, ']');
}

static void
write_blocks(struct writer *w, const struct dry_state *state,
             const struct dry_state_segment *segment)
{
    writer_put(w, ",\"blocks\":[");
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dry_state_block *b = state->blocks + segment->first_block + i;
        writer_put(w, i > 0 ? ",{\"address\":" : "{\"address\":");
        writer_unsigned(w, b->address);
        put_number(w, "size", b->size);
        put_number(w, "requested", b->requested);
        writer_format(w, ",\"state\":\"%s\"", export_block_state_name(b->state));
        put_index(w, "allocation", b->allocation);
        writer_char(w, '}');
    }
    writer_put(w, "]}");
}

static void
write_sums(struct writer *w, const struct dry_state *s)
{
    put_number(w, "reserved", s->reserved);
    put_number(w, "active", s->active);
    put_number(w, "allocated", s->allocated);
    put_number(w, "pending", s->pending);
    put_number(w, "requested", s->requested);
    put_number(w, "releasable", s->releasable);
    put_number(w, "stranded", s->stranded);
    put_number(w, "unplaced", s->unplaced_bytes);
}

static void
write_state(const struct export_job *job, struct writer *w, size_t device)
{
    const struct dry_timeline_view *view = export_view(job, device);
    struct dry_state *state;
    struct dry_error err;
    if (dry_state_create(job->study->devices[device].timeline, job->moments[device],
                         &state, &err) != DRY_OK) {
        writer_fail(w, err.status, "%s", err.text);
        return;
    }
    char name[EXPORT_NAME_BYTES];
    writer_put(w, ",\n\"state\":{");
    put_key(w, "at");
    writer_json(w, export_moment_name(job, device, name),
                strlen(export_moment_name(job, device, name)));
    put_moment(w, "last", view, state->moment);
    write_sums(w, state);
    writer_put(w, ",\n\"segments\":[");
    for (size_t i = 0; i < state->segment_count; i++) {
        const struct dry_state_segment *s = state->segments + i;
        writer_put(w, i > 0 ? ",\n{\"address\":" : "\n{\"address\":");
        writer_unsigned(w, s->address);
        put_number(w, "size", s->size);
        put_lane(w, view, s->lane);
        put_bool(w, "is_large", s->is_large);
        put_bool(w, "is_expandable", s->is_expandable);
        write_blocks(w, state, s);
    }
    writer_put(w, "]}");
    dry_state_destroy(state);
}

static void
write_peaks(struct writer *w, const struct dry_timeline_view *view)
{
    writer_put(w, ",\n\"peaks\":{");
    for (int i = 0; i < DRY_CURVE_COUNT; i++) {
        writer_put(w, i > 0 ? "," : "");
        put_key(w, dry_curve_name((enum dry_curve)i));
        writer_put(w, "{\"bytes\":");
        writer_unsigned(w, view->peaks[i].bytes);
        put_moment(w, "last", view, view->peaks[i].moment);
        writer_char(w, '}');
    }
    writer_char(w, '}');
}

static void
write_steps(const struct export_job *job, struct writer *w, size_t device)
{
    const struct dry_timeline_view *view = export_view(job, device);
    struct export_steps steps;
    export_steps_init(&steps, job->study->devices[device].timeline, w);
    writer_put(w, ",\n\"steps\":[");
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct dry_step *s = steps.all + i;
        writer_put(w, i > 0 ? ",\n{\"step\":" : "\n{\"step\":");
        writer_unsigned(w, i);
        put_moment(w, "begin", view, s->begin);
        put_moment(w, "end", view, s->end);
        put_bool(w, "is_partial", s->is_partial);
        put_number(w, "peak_active", s->peak.bytes);
        put_number(w, "active_at_end", s->active_end);
        put_number(w, "reserved_at_end", s->reserved_end);
        put_number(w, "kept", s->kept_bytes);
        put_number(w, "allocated_bytes", s->alloc_bytes);
        put_number(w, "allocated_count", s->alloc_count);
        writer_char(w, '}');
    }
    writer_char(w, ']');
    export_steps_finish(&steps);
}

static void
write_device(const struct export_job *job, struct writer *w, size_t device)
{
    const struct dry_timeline_view *view = export_view(job, device);
    writer_format(w, "{\"device\":%d", (int)view->device);
    put_number(w, "first_event", view->first_event);
    put_number(w, "event_count", view->event_count);
    put_number(w, "oom_count", view->oom_count);
    writer_put(w, ",\n\"damage\":{\"lost_frees\":");
    writer_unsigned(w, view->lost_frees);
    put_number(w, "inferred_frees", view->inferred_frees);
    put_number(w, "unmatched_frees", view->unmatched_frees);
    put_number(w, "guessed_sizes", view->guessed_sizes);
    put_number(w, "segment_conflicts", view->segment_conflicts);
    writer_char(w, '}');
    write_peaks(w, view);
    writer_put(w, ",\n\"allocations\":[");
    for (uint32_t i = 0; i < view->allocation_count && w->status == DRY_OK; i++)
        write_allocation(w, view, i);
    write_segments(w, view);
    write_steps(job, w, device);
    if (job->moments[device] != DRY_NONE)
        write_state(job, w, device);
    else
        writer_put(w, ",\n\"state\":null");
    writer_char(w, '}');
}

static void
write_json(const struct export_job *job, struct writer *w)
{
    const struct dry_trace *trace = job->study->subject;
    writer_put(w, "{\"schema\":\"drystone.export/1\",\n\"file\":");
    writer_json(w, job->path, strlen(job->path));
    put_bool(w, "is_simulated", job->study->is_simulated);
    write_frames(w, trace);
    write_annotations(w, trace);
    writer_put(w, ",\n\"devices\":[");
    for (size_t d = 0; d < job->study->device_count; d++) {
        writer_put(w, d > 0 ? ",\n" : "\n");
        write_device(job, w, d);
    }
    writer_put(w, "]}\n");
}

const struct export_format export_json = {
    .name = "json",
    .endings = {".json"},
    .is_text = true,
    .cuts_strings = true,
    .needs_moment = true,
    .write = write_json,
};
