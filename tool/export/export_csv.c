/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations as CSV (RFC 4180), a row each: lines end in CRLF and text is quoted. */
#include <string.h>

#include "export/export.h"
#include "export/export_life.h"

static void
put_text(struct writer *w, const char *text)
{
    writer_char(w, ',');
    writer_csv(w, text, strlen(text));
}

static void
put_string(struct writer *w, const struct dry_trace *trace, uint32_t string)
{
    size_t length;
    const char *text = dry_trace_string(trace, string, &length);
    char name[EXPORT_NAME_BYTES];
    if (text)
        put_text(w, export_short_text(text, length, name));
    else
        writer_char(w, ',');
}

static void
put_point(struct writer *w, const struct export_point *point)
{
    writer_char(w, ',');
    if (point->has_event)
        writer_unsigned(w, point->event);
    writer_char(w, ',');
    if (point->has_time)
        writer_signed(w, point->time_us);
}

static void
put_site(const struct export_job *job, struct writer *w, const struct dry_allocation *a)
{
    char name[EXPORT_NAME_BYTES];
    const struct dry_trace *trace = job->study->subject;
    uint32_t site = export_names_site(job->names, a->stack);
    put_text(w, export_allocation_name(job->names, a, name));
    if (site == DRY_NONE) {
        writer_put(w, ",,,,");
        return;
    }
    const struct dry_frame *frame = dry_trace_get_view(trace)->frames + site;
    put_string(w, trace, frame->name);
    put_string(w, trace, frame->file);
    writer_char(w, ',');
    writer_unsigned(w, frame->line);
    writer_char(w, ',');
    writer_unsigned(w, a->stack);
}

static void
write_row(const struct export_job *job, struct writer *w,
          const struct dry_timeline_view *view, uint32_t number)
{
    const struct dry_allocation *a = view->allocations + number;
    const struct dry_lane *lane = dry_trace_get_view(view->trace)->lanes + a->lane;
    char text[EXPORT_NAME_BYTES];
    writer_signed(w, view->device);
    writer_char(w, ',');
    writer_unsigned(w, number);
    writer_format(w, ",0x%llx,", (unsigned long long)a->address);
    writer_unsigned(w, a->size);
    writer_char(w, ',');
    writer_unsigned(w, a->requested);
    put_text(w, export_stream_name(lane, text));
    put_text(w, export_pool_name(lane, text));
    const uint32_t moments[] = {a->begin, a->freed, a->end};
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        struct export_point point = export_point_at(view, moments[i]);
        put_point(w, &point);
    }
    writer_format(w, ",%s,%d,%d,%d", export_fate(view, a),
                  (a->flags & DRY_ALLOCATION_CARRIED_OVER) != 0,
                  (a->flags & DRY_ALLOCATION_SIZE_GUESSED) != 0,
                  (a->flags & DRY_ALLOCATION_STACK_OF_FREE) != 0);
    put_site(job, w, a);
    writer_put(w, "\r\n");
}

static void
write_csv(const struct export_job *job, struct writer *w)
{
    writer_put(w, "device,allocation,address,size,requested,stream,pool,begin_event,"
                  "begin_us,freed_event,freed_us,end_event,end_us,fate,"
                  "is_before_recording,is_size_guessed,is_stack_of_free,owner,function,"
                  "file,line,stack\r\n");
    for (size_t d = 0; d < job->study->device_count; d++) {
        const struct dry_timeline_view *view = export_view(job, d);
        for (uint32_t i = 0; i < view->allocation_count && w->status == DRY_OK; i++)
            write_row(job, w, view, i);
    }
}

const struct export_format export_csv = {
    .name = "csv",
    .endings = {".csv"},
    .is_text = true,
    .write = write_csv,
};
