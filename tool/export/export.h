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
    const char *path;                /* of the input, for titles */
    const char *database_path;       /* output path, for formats with is_database */
    const struct output *output;     /* for output_is_interrupted() */
    size_t first_device, end_device; /* range of devices to export */
    size_t main;                     /* device of formats that show only one */
    const uint32_t *moments;         /* moment of --at, by device */
    const char *at;                  /* --at as given, or NULL */
    const struct export_names *names;
    uint64_t slice_max;  /* most slices a device */
    uint64_t min_bytes;  /* least bytes of a slice; UINT64_MAX: by count */
    bool is_map;         /* svg: draw the memory map, not the timeline */
    bool is_by_time;     /* svg: the axis is time, not events */
    bool is_every_point; /* put a counter value at every event */
};

struct export_format {
    const char *name;
    const char *endings[3]; /* file endings that select the format */
    const char *what;       /* for --help, without a full stop */
    bool is_text;           /* may be written to a terminal */
    bool is_database;       /* opens database_path itself, ignoring the writer */
    bool cuts_strings;      /* long strings are cut: export_cut() */
    bool needs_moment;      /* shows one moment, so --at applies */
    bool is_for_time_lines; /* has slices and counters: --slices and --min-size apply */
    bool is_of_one_device;
    /* Write the file. Failures are recorded in the writer: writer_fail(). */
    void (*write)(const struct export_job *job, struct writer *w);
};

extern const struct export_format export_csv;
extern const struct export_format export_folded;
extern const struct export_format export_json;
extern const struct export_format export_perfetto;
extern const struct export_format export_pickle;
extern const struct export_format export_sqlite;
extern const struct export_format export_svg;

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
