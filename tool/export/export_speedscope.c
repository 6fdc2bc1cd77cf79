/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file for speedscope: a "sampled" profile for each device. Each sample is a stack that
 * is alive at the moment, weighted by its bytes.
 * https://www.speedscope.app/file-format-schema.json
 */
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "export/export.h"
#include "export/export_stacks.h"

/* The first frames are placeholders for allocations without a stack. */
#define ROOTS 3

struct speedscope {
    const struct export_job *job;
    struct writer *w;
    uint32_t *places; /* by frame: its index in the shared list, or DRY_NONE */
    uint32_t place_count;
    size_t profile_count, main_profile;
};

static void
put_frame(struct speedscope *s, uint32_t number)
{
    const struct dry_trace *trace = s->job->study->subject;
    const struct dry_frame *frame = dry_trace_get_view(trace)->frames + number;
    size_t length;
    const char *text = dry_trace_string(trace, frame->name, &length);
    writer_put(s->w, ",\n{\"name\":");
    writer_json(s->w, text && length > 0 ? text : "(no name)",
                text && length > 0 ? export_cut(text, length) : 9);
    text = dry_trace_string(trace, frame->file, &length);
    if (text) {
        writer_put(s->w, ",\"file\":");
        writer_json(s->w, text, export_cut(text, length));
    }
    if (frame->line > 0) {
        writer_put(s->w, ",\"line\":");
        writer_unsigned(s->w, frame->line);
    }
    writer_char(s->w, '}');
}

static void
share_frames(struct speedscope *s, const struct export_sums *sums)
{
    for (size_t i = 0; i < sums->count; i++) {
        size_t count;
        const uint32_t *frames =
            dry_trace_stack(s->job->study->subject, sums->sums[i].stack, &count);
        for (size_t k = 0; k < count; k++) {
            if (s->places[frames[k]] != DRY_NONE)
                continue;
            s->places[frames[k]] = s->place_count++;
            put_frame(s, frames[k]);
        }
    }
}

static void
share_roots(struct speedscope *s)
{
    for (int root = 1; root <= ROOTS; root++) {
        struct export_sum sum = {.root = (enum export_root)root};
        writer_put(s->w, root > 1 ? ",\n{\"name\":\"" : "\n{\"name\":\"");
        writer_put(s->w, export_sum_root(&sum));
        writer_put(s->w, "\"}");
    }
    s->place_count = ROOTS;
}

static void
put_sample(struct speedscope *s, const struct export_sum *sum)
{
    size_t count;
    const uint32_t *frames = dry_trace_stack(s->job->study->subject, sum->stack, &count);
    bool has_root = sum->root != EXPORT_ROOT_NONE;
    writer_char(s->w, '[');
    if (has_root)
        writer_unsigned(s->w, (uint64_t)sum->root - 1);
    for (size_t i = count; i-- > 0;) {
        if (has_root || i + 1 < count)
            writer_char(s->w, ',');
        writer_unsigned(s->w, s->places[frames[i]]);
    }
    writer_char(s->w, ']');
}

static void
write_profile(struct speedscope *s, size_t device, const struct export_sums *sums)
{
    char moment[EXPORT_NAME_BYTES];
    writer_put(s->w, s->profile_count ? ",\n" : "\n");
    writer_format(s->w,
                  "{\"type\":\"sampled\",\"name\":\"GPU %d, %s\",\"unit\":\"bytes\"",
                  (int)export_view(s->job, device)->device,
                  export_moment_name(s->job, device, moment));
    writer_put(s->w, ",\"startValue\":0,\"endValue\":");
    writer_unsigned(s->w, sums->total);
    writer_put(s->w, ",\n\"samples\":[");
    for (size_t i = 0; i < sums->count; i++) {
        writer_put(s->w, i > 0 ? ",\n" : "");
        put_sample(s, sums->sums + i);
    }
    writer_put(s->w, "],\n\"weights\":[");
    for (size_t i = 0; i < sums->count; i++) {
        writer_put(s->w, i > 0 ? "," : "");
        writer_unsigned(s->w, sums->sums[i].bytes);
    }
    writer_put(s->w, "]}");
    if (device == s->job->main)
        s->main_profile = s->profile_count;
    s->profile_count++;
}

/* Write the devices. The first pass collects shared frames, the second profiles. */
static void
write_devices(struct speedscope *s, bool is_for_frames)
{
    const struct export_job *job = s->job;
    for (size_t d = job->first_device; d < job->end_device; d++) {
        struct export_sums sums;
        if (job->moments[d] == DRY_NONE)
            continue;
        if (!export_sums_collect(&sums, job, d)) {
            writer_fail(s->w, DRY_ERR_MEMORY, "no memory");
            return;
        }
        if (is_for_frames)
            share_frames(s, &sums);
        else
            write_profile(s, d, &sums);
        export_sums_finish(&sums);
    }
}

static void
write_speedscope(const struct export_job *job, struct writer *w)
{
    struct speedscope s = {.job = job, .w = w};
    size_t frame_count = dry_trace_get_view(job->study->subject)->frame_count;
    s.places = malloc((frame_count + 1) * sizeof *s.places);
    if (!s.places) {
        writer_fail(w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    memset(s.places, 0xff, (frame_count + 1) * sizeof *s.places);
    writer_put(w, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                  "\"exporter\":\"drystone " DRY_VERSION "\",\"name\":");
    writer_json(w, job->path, strlen(job->path));
    writer_put(w, ",\n\"shared\":{\"frames\":[");
    share_roots(&s);
    write_devices(&s, true);
    writer_put(w, "]},\n\"profiles\":[");
    write_devices(&s, false);
    writer_put(w, "],\n\"activeProfileIndex\":");
    writer_unsigned(w, s.main_profile);
    writer_put(w, "}\n");
    free(s.places);
}

const struct export_format export_speedscope = {
    .name = "speedscope",
    .endings = {".speedscope.json"},
    .what = "the same for speedscope.app",
    .is_text = true,
    .cuts_strings = true,
    .needs_moment = true,
    .write = write_speedscope,
};
