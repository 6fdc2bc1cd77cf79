/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, for flamegraph.pl and similar tools: a line "outer;inner;innermost
 * bytes" for each stack. The format has no escapes, so a ';' within a name becomes ','.
 */
#include <string.h>

#include "export/export.h"
#include "export/export_stacks.h"

static void
put_replaced(struct writer *w, const char *text, size_t length)
{
    length = export_cut(text, length);
    for (size_t begin = 0; begin <= length;) {
        const char *found = memchr(text + begin, ';', length - begin);
        size_t end = found ? (size_t)(found - text) : length;
        writer_text(w, text + begin, end - begin);
        if (found)
            writer_char(w, ',');
        begin = end + 1;
    }
}

static void
put_frame(const struct export_job *job, struct writer *w, uint32_t number)
{
    const struct dry_trace *trace = job->study->subject;
    const struct dry_frame *frame = dry_trace_get_view(trace)->frames + number;
    size_t length;
    const char *text = dry_trace_string(trace, frame->name, &length);
    if (text && length > 0)
        put_replaced(w, text, length);
    else
        writer_put(w, "(no name)");
    text = dry_trace_string(trace, frame->file, &length);
    if (!text || length == 0)
        return;
    text = export_base_name(text, &length);
    writer_put(w, " (");
    put_replaced(w, text, length);
    if (frame->line > 0)
        writer_format(w, ":%u", frame->line);
    writer_char(w, ')');
}

static void
write_sum(const struct export_job *job, struct writer *w, const struct export_sum *sum)
{
    const char *root = export_sum_root(sum);
    size_t count;
    const uint32_t *frames = dry_trace_stack(job->study->subject, sum->stack, &count);
    if (root)
        writer_put(w, root);
    for (size_t i = count; i-- > 0;) {
        if (root || i + 1 < count)
            writer_char(w, ';');
        put_frame(job, w, frames[i]);
    }
    writer_char(w, ' ');
    writer_unsigned(w, sum->bytes);
    writer_char(w, '\n');
}

static void
write_folded(const struct export_job *job, struct writer *w)
{
    for (size_t d = job->first_device; d < job->end_device; d++) {
        struct export_sums sums;
        if (job->moments[d] == DRY_NONE)
            continue;
        if (!export_sums_collect(&sums, job, d))
            writer_fail(w, DRY_ERR_MEMORY, "no memory");
        for (size_t i = 0; i < sums.count; i++) {
            if (job->end_device - job->first_device > 1)
                writer_format(w, "GPU %d;", (int)export_view(job, d)->device);
            write_sum(job, w, sums.sums + i);
        }
        export_sums_finish(&sums);
    }
}

const struct export_format export_folded = {
    .name = "folded",
    .endings = {".folded"},
    .what = "the stacks alive at a moment, for flame graphs",
    .is_text = true,
    .cuts_strings = true,
    .needs_moment = true,
    .write = write_folded,
};
