/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto's trace: packets of track events. Each GPU is a process with counters,
 * instants, and tracks for annotations and allocations. Field numbers are from
 * protos/perfetto/trace/ of https://github.com/google/perfetto, where they never change.
 *
 * Names and stacks are interned: written once, and numbered from 1 in order of first use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/export_steps.h"
#include "export/export_time.h"
#include "export/proto.h"

enum {
    TRACE_PACKET = 1,

    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK_DESCRIPTOR = 60,
    PACKET_FIRST_ON_SEQUENCE = 87,

    FLAG_STATE_CLEARED = 1,
    FLAG_NEEDS_STATE = 2,

    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT_UUID = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    COUNTER_UNIT = 3,
    UNIT_BYTES = 3,

    EVENT_DEBUG_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK_UUID = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    TYPE_BEGIN = 1,
    TYPE_END = 2,
    TYPE_INSTANT = 3,
    TYPE_COUNTER = 4,

    DEBUG_NAME_IID = 1,
    DEBUG_UINT = 3,
    DEBUG_STRING = 6,
    DEBUG_POINTER = 7,
    DEBUG_STRING_IID = 17,

    INTERNED_EVENT_NAMES = 2,
    INTERNED_DEBUG_NAMES = 3,
    INTERNED_STRINGS = 29,
    INTERNED_IID = 1,
    INTERNED_NAME = 2,
};

/* Argument names and their interning ids, which begin at 1. */
enum argument {
    ARG_SIZE = 1,
    ARG_REQUESTED,
    ARG_ADDRESS,
    ARG_STREAM,
    ARG_POOL,
    ARG_STACK,
    ARG_STACK_OF_FREE,
    ARG_EVENT,
    ARG_LIVES_ON,
    ARG_DEVICE_FREE,
    ARG_METADATA,
    ARG_PEAK,
    ARG_KEPT,
    ARG_CHURN,
    ARG_IS_PARTIAL,
    ARG_END,
};
static const char *const argument_names[ARG_END] = {
    [ARG_SIZE] = "size",
    [ARG_REQUESTED] = "requested",
    [ARG_ADDRESS] = "address",
    [ARG_STREAM] = "stream",
    [ARG_POOL] = "pool",
    [ARG_STACK] = "stack",
    [ARG_STACK_OF_FREE] = "stack_of_free",
    [ARG_EVENT] = "event",
    [ARG_LIVES_ON] = "alive_at_end",
    [ARG_DEVICE_FREE] = "device_free",
    [ARG_METADATA] = "user_metadata",
    [ARG_PEAK] = "peak_active",
    [ARG_KEPT] = "kept",
    [ARG_CHURN] = "allocated_in_it",
    [ARG_IS_PARTIAL] = "is_partial",
};

/* Tracks are numbered within their device and kind. */
enum track_kind {
    TRACKS_DEVICE,
    TRACKS_CURVE,
    TRACKS_LANE_CLASS,
    TRACKS_STEP,
    TRACKS_SCOPE,
    TRACKS_SLICE,
};

#define STACK_BYTES ((size_t)64 << 10)
#define NOTHING_SAID 0u

struct perfetto {
    const struct export_job *job;
    struct writer *w;
    struct proto packet, interned;
    size_t packet_mark, event_mark;
    uint32_t *frame_iids;  /* id of each frame's event name, or NOTHING_SAID */
    uint32_t *string_iids; /* the same by string of the trace */
    uint32_t carried_iid, no_stack_iid;
    uint32_t name_count;    /* ids of event names used so far */
    uint8_t *stack_is_said; /* the stack is interned; its id is the stack + 1 */
    char *stack_text;
    uint32_t cut_stacks;
    /* The device that is being written. */
    const struct dry_timeline_view *view;
    size_t device;
    struct export_clock clock;
    uint64_t *heights;
};

/* --- packets ------------------------------------------------------------------------------ */

static uint64_t
make_uuid(const struct perfetto *p, enum track_kind kind, uint32_t index)
{
    return (uint64_t)(p->device + 1) << 40 | (uint64_t)kind << 32 | index;
}

static void
begin_packet(struct perfetto *p, uint64_t flags)
{
    proto_clear(&p->packet);
    proto_clear(&p->interned);
    p->packet_mark = proto_begin(&p->packet, TRACE_PACKET);
    proto_number(&p->packet, PACKET_SEQUENCE_ID, 1);
    proto_number(&p->packet, PACKET_SEQUENCE_FLAGS, flags);
}

static void
end_packet(struct perfetto *p)
{
    if (p->interned.used > 0)
        proto_bytes(&p->packet, PACKET_INTERNED_DATA, p->interned.bytes,
                    p->interned.used);
    proto_end(&p->packet, p->packet_mark);
    if (p->packet.failed || p->interned.failed)
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory for a packet");
    else
        writer_bytes(p->w, p->packet.bytes, p->packet.used);
}

static void
begin_event(struct perfetto *p, uint64_t type, uint64_t track, int64_t time_us)
{
    begin_packet(p, FLAG_NEEDS_STATE);
    proto_number(&p->packet, PACKET_TIMESTAMP, (uint64_t)time_us * 1000);
    p->event_mark = proto_begin(&p->packet, PACKET_TRACK_EVENT);
    proto_number(&p->packet, EVENT_TYPE, type);
    proto_number(&p->packet, EVENT_TRACK_UUID, track);
}

static void
end_event(struct perfetto *p)
{
    proto_end(&p->packet, p->event_mark);
    end_packet(p);
}

static void
intern(struct perfetto *p, uint32_t field, uint64_t iid, const char *text)
{
    size_t mark = proto_begin(&p->interned, field);
    proto_number(&p->interned, INTERNED_IID, iid);
    proto_text(&p->interned, INTERNED_NAME, text);
    proto_end(&p->interned, mark);
}

static void
intern_name(struct perfetto *p, uint32_t *iid, const char *name)
{
    if (*iid == NOTHING_SAID) {
        *iid = ++p->name_count;
        intern(p, INTERNED_EVENT_NAMES, *iid, name);
    }
    proto_number(&p->packet, EVENT_NAME_IID, *iid);
}

static void
add_argument(struct perfetto *p, enum argument argument, uint32_t kind, uint64_t value)
{
    size_t mark = proto_begin(&p->packet, EVENT_DEBUG_ANNOTATIONS);
    proto_number(&p->packet, DEBUG_NAME_IID, (uint64_t)argument);
    proto_number(&p->packet, kind, value);
    proto_end(&p->packet, mark);
}

static void
add_text_argument(struct perfetto *p, enum argument argument, const char *text)
{
    size_t mark = proto_begin(&p->packet, EVENT_DEBUG_ANNOTATIONS);
    proto_number(&p->packet, DEBUG_NAME_IID, (uint64_t)argument);
    proto_text(&p->packet, DEBUG_STRING, text);
    proto_end(&p->packet, mark);
}

/* --- tracks ------------------------------------------------------------------------------- */

static void
begin_track(struct perfetto *p, enum track_kind kind, uint32_t index, const char *name)
{
    begin_packet(p, FLAG_NEEDS_STATE);
    p->event_mark = proto_begin(&p->packet, PACKET_TRACK_DESCRIPTOR);
    proto_number(&p->packet, TRACK_UUID, make_uuid(p, kind, index));
    proto_text(&p->packet, TRACK_NAME, name);
    if (kind != TRACKS_DEVICE)
        proto_number(&p->packet, TRACK_PARENT_UUID, make_uuid(p, TRACKS_DEVICE, 0));
}

static void
say_track(struct perfetto *p, enum track_kind kind, uint32_t index, const char *name)
{
    begin_track(p, kind, index, name);
    end_event(p);
}

/* Write the process of a GPU. Viewers take process 0 as idle, so numbers begin at 1. */
static void
say_process(struct perfetto *p)
{
    char name[32];
    snprintf(name, sizeof name, "GPU %d", (int)p->view->device);
    begin_track(p, TRACKS_DEVICE, 0, name);
    size_t mark = proto_begin(&p->packet, TRACK_PROCESS);
    proto_number(&p->packet, PROCESS_PID, (uint64_t)p->view->device + 1);
    proto_text(&p->packet, PROCESS_NAME, name);
    proto_end(&p->packet, mark);
    end_event(p);
}

static void
say_counter(struct perfetto *p, enum track_kind kind, uint32_t index, const char *name)
{
    begin_track(p, kind, index, name);
    size_t mark = proto_begin(&p->packet, TRACK_COUNTER);
    proto_number(&p->packet, COUNTER_UNIT, UNIT_BYTES);
    proto_end(&p->packet, mark);
    end_event(p);
}

/* --- counters ----------------------------------------------------------------------------- */

static void
write_points(struct perfetto *p, enum track_kind kind, uint32_t index)
{
    struct export_points points;
    uint32_t moment;
    export_points_init(&points, p->heights, p->view->dump_moment + 1,
                       p->job->is_every_point);
    export_clock_rewind(&p->clock);
    while (export_points_next(&points, &moment)) {
        uint64_t height = p->heights[moment];
        begin_event(p, TYPE_COUNTER, make_uuid(p, kind, index),
                    export_clock_at(&p->clock, moment));
        proto_number(&p->packet, EVENT_COUNTER_VALUE,
                     height < INT64_MAX ? height : INT64_MAX);
        end_event(p);
    }
}

static void
write_counters(struct perfetto *p)
{
    for (uint32_t i = 0; i < DRY_CURVE_COUNT; i++) {
        say_counter(p, TRACKS_CURVE, i, dry_curve_name((enum dry_curve)i));
        export_heights_of_curve(p->view, (enum dry_curve)i, p->heights);
        write_points(p, TRACKS_CURVE, i);
    }
    struct export_lane_class classes[EXPORT_LANE_CLASSES_MAX];
    size_t count, left_out;
    if (!export_find_lane_classes(p->view, classes, &count, &left_out)) {
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        char class_name[EXPORT_NAME_BYTES], name[EXPORT_NAME_BYTES + 16];
        const struct dry_lane *lane = p->clock.trace->lanes + classes[i].lane;
        snprintf(name, sizeof name, "reserved %s",
                 export_lane_class_name(lane, classes[i].is_large, class_name));
        say_counter(p, TRACKS_LANE_CLASS, i, name);
        export_heights_of_lane_class(p->view, classes[i].lane, classes[i].is_large,
                                     p->heights);
        write_points(p, TRACKS_LANE_CLASS, i);
    }
    if (left_out > 0)
        export_note(p->job, "device %d: %zu small pool%s no counter of %s own",
                    (int)p->view->device, left_out, left_out == 1 ? " has" : "s have",
                    left_out == 1 ? "its" : "their");
}

/* --- instants ----------------------------------------------------------------------------- */

static void
write_instant(struct perfetto *p, uint32_t event, enum dry_action action)
{
    const struct dry_trace_view *v = p->clock.trace;
    size_t i = p->view->first_event + event;
    begin_event(p, TYPE_INSTANT, make_uuid(p, TRACKS_DEVICE, 0),
                export_clock_at(&p->clock, event + 1));
    proto_text(&p->packet, EVENT_NAME, dry_action_name(action));
    add_argument(p, ARG_EVENT, DEBUG_UINT, i);
    if (action != DRY_ACTION_SNAPSHOT)
        add_argument(p, ARG_SIZE, DEBUG_UINT, v->size[i]);
    if (action == DRY_ACTION_OOM)
        add_argument(p, ARG_DEVICE_FREE, DEBUG_UINT, v->addr[i]);
    size_t length;
    const struct dry_note *note = dry_trace_note(p->view->trace, v->note[i]);
    const char *text = dry_trace_string(p->view->trace, note->user_metadata, &length);
    if (text && length > 0) {
        char name[EXPORT_NAME_BYTES];
        add_text_argument(p, ARG_METADATA, export_short_text(text, length, name));
    }
    end_event(p);
}

static void
write_instants(struct perfetto *p)
{
    export_clock_rewind(&p->clock);
    for (uint32_t e = 0; e < p->view->event_count; e++) {
        enum dry_action action =
            (enum dry_action)p->clock.trace->action[p->view->first_event + e];
        if (action == DRY_ACTION_OOM || action == DRY_ACTION_SNAPSHOT ||
            action == DRY_ACTION_ANNOTATE)
            write_instant(p, e, action);
    }
}

/* --- steps -------------------------------------------------------------------------------- */

static void
write_step(struct perfetto *p, const struct dry_step *step, uint32_t number)
{
    uint64_t track = make_uuid(p, TRACKS_STEP, 0);
    char name[32];
    snprintf(name, sizeof name, "step %u", number);
    begin_event(p, TYPE_BEGIN, track, export_clock_at(&p->clock, step->begin));
    proto_text(&p->packet, EVENT_NAME, name);
    add_argument(p, ARG_PEAK, DEBUG_UINT, step->peak.bytes);
    add_argument(p, ARG_KEPT, DEBUG_UINT, step->kept_bytes);
    add_argument(p, ARG_CHURN, DEBUG_UINT, step->alloc_bytes);
    add_argument(p, ARG_IS_PARTIAL, DEBUG_UINT, step->is_partial);
    end_event(p);
    begin_event(p, TYPE_END, track, export_clock_at(&p->clock, step->end));
    end_event(p);
}

/* Write the steps, one after another, on one track. */
static void
write_steps(struct perfetto *p)
{
    struct export_steps steps;
    export_steps_init(&steps, p->job->study->devices[p->device].timeline, p->w);
    export_clock_rewind(&p->clock);
    if (steps.count > 0)
        say_track(p, TRACKS_STEP, 0, "steps");
    for (uint32_t i = 0; i < steps.count; i++)
        write_step(p, steps.all + i, i);
    export_steps_finish(&steps);
}

/* --- annotations -------------------------------------------------------------------------- */

static void
write_scope(struct perfetto *p, const struct export_scope *scope)
{
    char name[EXPORT_NAME_BYTES];
    size_t length;
    const char *text = dry_trace_string(p->view->trace, scope->name, &length);
    export_short_text(text, length, name);
    uint64_t track = make_uuid(p, TRACKS_SCOPE, scope->lane);
    begin_event(p, TYPE_BEGIN, track, scope->begin_us);
    intern_name(p, p->string_iids + scope->name, name);
    end_event(p);
    begin_event(p, TYPE_END, track, scope->end_us);
    end_event(p);
}

static void
write_scopes(struct perfetto *p)
{
    struct export_lanes lanes;
    struct export_scopes scopes;
    size_t left_out = 0;
    if (!export_scopes_pair(&scopes, &p->clock, &lanes))
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
    for (uint32_t i = 0; i < lanes.count; i++)
        say_track(p, TRACKS_SCOPE, i, "annotations");
    for (size_t i = 0; i < scopes.count; i++) {
        if (scopes.scopes[i].lane != DRY_NONE)
            write_scope(p, scopes.scopes + i);
        else
            left_out++;
    }
    if (scopes.unmatched + left_out > 0)
        export_note(p->job,
                    "device %d: annotations left out: %zu end%s without a beginning, %zu "
                    "for which the tracks were full",
                    (int)p->view->device, scopes.unmatched,
                    scopes.unmatched == 1 ? "" : "s", left_out);
    export_scopes_finish(&scopes);
}

/* --- allocations -------------------------------------------------------------------------- */

/* Add the whole stack, interned at its first use. */
static void
add_stack(struct perfetto *p, const struct dry_allocation *a)
{
    size_t count;
    dry_trace_stack(p->view->trace, a->stack, &count);
    if (count == 0)
        return;
    if (!p->stack_is_said[a->stack]) {
        p->cut_stacks +=
            export_stack_text(p->job->names, a->stack, p->stack_text, STACK_BYTES);
        intern(p, INTERNED_STRINGS, (uint64_t)a->stack + 1, p->stack_text);
        p->stack_is_said[a->stack] = 1;
    }
    bool is_of_free = a->flags & DRY_ALLOCATION_STACK_OF_FREE;
    add_argument(p, is_of_free ? ARG_STACK_OF_FREE : ARG_STACK, DEBUG_STRING_IID,
                 (uint64_t)a->stack + 1);
}

static void
add_name(struct perfetto *p, const struct dry_allocation *a)
{
    char buffer[EXPORT_NAME_BYTES];
    const char *name = export_allocation_name(p->job->names, a, buffer);
    uint32_t *iid = &p->no_stack_iid;
    if (name == buffer)
        iid = p->frame_iids + export_names_site(p->job->names, a->stack);
    else if (a->flags & DRY_ALLOCATION_CARRIED_OVER)
        iid = &p->carried_iid;
    intern_name(p, iid, name);
}

static void
begin_slice(struct perfetto *p, const struct export_slice *slice)
{
    const struct dry_allocation *a = p->view->allocations + slice->allocation;
    const struct dry_lane *lane = p->clock.trace->lanes + a->lane;
    char text[EXPORT_NAME_BYTES];
    begin_event(p, TYPE_BEGIN, make_uuid(p, TRACKS_SLICE, slice->lane),
                export_clock_at(&p->clock, slice->begin));
    add_name(p, a);
    add_argument(p, ARG_SIZE, DEBUG_UINT, a->size);
    add_argument(p, ARG_REQUESTED, DEBUG_UINT, a->requested);
    add_argument(p, ARG_ADDRESS, DEBUG_POINTER, a->address);
    add_text_argument(p, ARG_STREAM, export_stream_name(lane, text));
    if (lane->pool_known)
        add_text_argument(p, ARG_POOL, export_pool_name(lane, text));
    if (a->begin > 0)
        add_argument(p, ARG_EVENT, DEBUG_UINT, p->view->first_event + a->begin - 1);
    if (a->end >= p->view->dump_moment)
        add_argument(p, ARG_LIVES_ON, DEBUG_UINT, 1);
    add_stack(p, a);
    end_event(p);
}

/* Write slices in order of time, ends first, to free their place on the track. */
static void
write_slices(struct perfetto *p, const struct export_slices *s)
{
    export_clock_rewind(&p->clock);
    uint32_t begun = 0;
    for (uint32_t ended = 0; ended < s->count && p->w->status == DRY_OK; ended++) {
        const struct export_slice *last = s->slices + s->by_end[ended];
        for (; begun < s->count && s->slices[begun].begin < last->end; begun++)
            begin_slice(p, s->slices + begun);
        begin_event(p, TYPE_END, make_uuid(p, TRACKS_SLICE, last->lane),
                    export_clock_at(&p->clock, last->end));
        end_event(p);
    }
}

static void
write_allocations(struct perfetto *p)
{
    struct export_slice_rule rule = {p->job->slice_max, p->job->min_bytes};
    struct export_slices slices;
    struct export_lanes lanes;
    if (!export_slices_choose(&slices, &lanes, p->view, &rule)) {
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
        export_slices_finish(&slices);
        return;
    }
    for (uint32_t i = 0; i < lanes.count; i++)
        say_track(p, TRACKS_SLICE, i, export_class_name(lanes.classes[i]));
    write_slices(p, &slices);
    export_note_slices(p->job, p->view, &slices);
    export_slices_finish(&slices);
}

/* --- the whole trace ---------------------------------------------------------------------- */

static void
write_device(struct perfetto *p)
{
    export_clock_init(&p->clock, p->view);
    p->heights = malloc((p->view->dump_moment + (size_t)1) * sizeof *p->heights);
    if (!p->heights) {
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    say_process(p);
    write_counters(p);
    free(p->heights);
    p->heights = NULL;
    write_instants(p);
    write_steps(p);
    write_scopes(p);
    write_allocations(p);
    export_note_clock(p->job, &p->clock);
}

/* Write the first packet: it clears the interning state and interns argument names. */
static void
write_beginning(struct perfetto *p)
{
    begin_packet(p, FLAG_STATE_CLEARED);
    proto_number(&p->packet, PACKET_FIRST_ON_SEQUENCE, 1);
    for (uint32_t i = 1; i < ARG_END; i++)
        intern(p, INTERNED_DEBUG_NAMES, i, argument_names[i]);
    end_packet(p);
}

static void
write_perfetto(const struct export_job *job, struct writer *w)
{
    const struct dry_trace_view *v = dry_trace_get_view(job->study->subject);
    struct perfetto p = {.job = job, .w = w};
    p.frame_iids = calloc(v->frame_count + (size_t)1, sizeof *p.frame_iids);
    p.string_iids = calloc(v->string_count + (size_t)1, sizeof *p.string_iids);
    p.stack_is_said = calloc(v->stack_count + (size_t)1, 1);
    p.stack_text = malloc(STACK_BYTES);
    if (p.frame_iids && p.string_iids && p.stack_is_said && p.stack_text)
        write_beginning(&p);
    else
        writer_fail(w, DRY_ERR_MEMORY, "no memory");
    for (size_t i = 0; i < job->study->device_count && w->status == DRY_OK; i++) {
        p.device = i;
        p.view = export_view(job, i);
        write_device(&p);
    }
    if (p.cut_stacks > 0)
        export_note(job, "%u stack%s cut after 64 KiB of text", p.cut_stacks,
                    p.cut_stacks == 1 ? " was" : "s were");
    proto_finish(&p.packet);
    proto_finish(&p.interned);
    free(p.frame_iids);
    free(p.string_iids);
    free(p.stack_is_said);
    free(p.stack_text);
}

const struct export_format export_perfetto = {
    .name = "perfetto",
    .endings = {".perfetto-trace", ".pftrace"},
    .write = write_perfetto,
};
