/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as PyTorch writes it. For a trace without addresses, it is the snapshot that
 * PyTorch would have recorded according to the replay.
 */
#include "export/export.h"

static enum dry_status
write_sink(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    struct writer *w = self;
    writer_bytes(w, bytes, count);
    if (w->status != DRY_OK && err)
        *err = w->err;
    return w->status;
}

static void
write_pickle(const struct export_job *job, struct writer *w)
{
    struct dry_sink sink = {.write = write_sink, .self = w};
    struct dry_error err;
    enum dry_status status = dry_trace_write(job->study->subject, &sink, &err);
    if (status != DRY_OK)
        writer_fail(w, status, "%s", err.text);
}

const struct export_format export_pickle = {
    .name = "pickle",
    .endings = {".pickle", ".pkl"},
    .write = write_pickle,
};
