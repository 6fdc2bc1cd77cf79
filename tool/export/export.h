/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_H
#define TOOL_EXPORT_H

/*
 * `drystone export`: write a study as files of other tools. Each format is a struct,
 * defined in export_NAME.c and listed in cmd_export.c. The other export_*.h serve several
 * formats.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/drystone.h>
#include <drystone/state.h>
#include <drystone/timeline.h>

#include "base/writer.h"
#include "export/export_names.h"
#include "export/export_time.h"
#include "record/study.h"

struct export_job {
    const struct study *study;
    const char *path;            /* path of the input, for titles */
    const char *database_path;   /* the file that a format that is_database writes */
    const struct output *output; /* the same; output_is_interrupted() */
    const uint32_t *moments;     /* one per device of the study; --at */
    const char *at;              /* the text given; NULL: none */
    const struct export_names *names;
    uint64_t slice_max;  /* slices a device at most */
    uint64_t min_bytes;  /* the smallest slice; UINT64_MAX: chosen by their number */
    bool is_every_point; /* counters at every event, however many */
};

struct export_format {
    const char *name;
    const char *endings[3]; /* endings of files in this format */
    bool is_text;           /* may go to a terminal */
    bool is_database;       /* writes a file by its name, not the writer's stream */
    bool cuts_strings;      /* export_cut() */
    bool needs_moment;      /* shows a moment: --at */
    /* Failures go into the writer: writer_fail(). */
    void (*write)(const struct export_job *job, struct writer *w);
};

extern const struct export_format export_csv;
extern const struct export_format export_folded;
extern const struct export_format export_json;
extern const struct export_format export_perfetto;
extern const struct export_format export_pickle;
extern const struct export_format export_sqlite;

static inline const struct dry_timeline_view *
export_view(const struct export_job *job, size_t device)
{
    return dry_timeline_get_view(job->study->devices[device].timeline);
}

/* Name the moment: "the OOM", "the peak of active bytes", "event 12", "the end". */
const char *export_moment_name(const struct export_job *job, size_t device,
                               char name[EXPORT_NAME_BYTES]);

/* Print one line to standard error about data that the export drops or changes. */
__attribute__((format(printf, 2, 3))) void export_note(const struct export_job *job,
                                                       const char *format, ...);
void export_note_slices(const struct export_job *job,
                        const struct dry_timeline_view *view,
                        const struct export_slices *slices);
void export_note_strings(const struct export_job *job);
void export_note_clock(const struct export_job *job, const struct export_clock *clock);

#endif
