/* SPDX-License-Identifier: Apache-2.0 */
/* Notes about data that an export drops or changes (export.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "export/export.h"

void
export_note(const struct export_job *job, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fflush(stdout);
    fputs("drystone: export: ", stderr);
    term_print_text(stderr, job->path, strlen(job->path));
    fputs(": note: ", stderr);
    term_print_text(stderr, text, strlen(text));
    fputc('\n', stderr);
}

void
export_note_slices(const struct export_job *job, const struct dry_timeline_view *view,
                   const struct export_slices *slices)
{
    if (slices->left_out == 0)
        return;
    char of[TERM_NUMBER_BYTES], all[TERM_NUMBER_BYTES], bytes[TERM_NUMBER_BYTES];
    export_note(job,
                "device %d: %s of %s allocation%s not drawn (%s, one after the other); "
                "the counters hold them all",
                (int)view->device, term_format_count(slices->left_out, of),
                term_format_count(view->allocation_count, all),
                view->allocation_count == 1 ? " is" : "s are",
                term_format_bytes(slices->left_out_bytes, bytes));
}

void
export_note_strings(const struct export_job *job)
{
    const struct dry_trace *trace = job->study->subject;
    uint32_t count = dry_trace_get_view(trace)->string_count, cut = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t length;
        const char *text = dry_trace_string(trace, i, &length);
        cut += text && export_cut(text, length) < length;
    }
    if (cut > 0)
        export_note(job, "%u string%s cut after %d bytes; sqlite has %s whole", cut,
                    cut == 1 ? " is" : "s are", EXPORT_STRING_BYTES,
                    cut == 1 ? "it" : "them");
}

void
export_note_clock(const struct export_job *job, const struct export_clock *clock)
{
    int device = (int)clock->view->device;
    if (clock->is_counting && clock->view->event_count > 0)
        export_note(job, "device %d: no times: an event counts as a microsecond", device);
    if (clock->reversal_count > 0)
        export_note(job, "device %d: %u event%s: drawn at its time", device,
                    clock->reversal_count,
                    clock->reversal_count == 1 ? " is earlier than one before it"
                                               : "s are earlier than one before them");
    if (clock->out_of_range_count > 0)
        export_note(job, "device %d: %u time%s out of range: drawn at its end", device,
                    clock->out_of_range_count,
                    clock->out_of_range_count == 1 ? " is" : "s are");
}
