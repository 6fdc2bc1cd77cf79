/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_H
#define TOOL_EXPORT_H

/*
 * `drystone export`: a study into the files of other tools. One struct a format, defined in
 * export_NAME.c and listed in cmd_export.c; what several formats need is in the
 * export_*.h beside this.
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
    const char *database_path;       /* where a format that is_database writes */
    const struct output *output;     /* the same; output_is_interrupted() */
    size_t first_device, end_device; /* of the study */
    size_t main;                     /* of formats that show one device */
    const uint32_t *moments;         /* by device of the study; --at */
    const char *at;                  /* as given; NULL */
    const struct export_names *names;
    uint64_t slice_max;  /* slices a device at most */
    uint64_t min_bytes;  /* of an allocation to be a slice; UINT64_MAX: by their number */
    bool is_map;         /* svg: the memory map instead of the timeline */
    bool is_by_time;     /* svg: the axis is time instead of events */
    bool is_every_point; /* counters at every event, however many */
};

struct export_format {
    const char *name;
    const char *endings[3]; /* of a file's name, by which the format is told */
    const char *what;       /* for --help, no full stop */
    bool is_text;           /* may go to a terminal */
    bool is_database;       /* writes a file by its name, not the writer's stream */
    bool cuts_strings;      /* export_cut() */
    bool needs_moment;      /* shows a moment: --at */
    bool is_for_time_lines; /* has slices and counters: --slices, --min-size */
    bool is_of_one_device;
    /* Failures go into the writer: writer_fail(). */
    void (*write)(const struct export_job *job, struct writer *w);
};

extern const struct export_format export_chrome;
extern const struct export_format export_csv;
extern const struct export_format export_folded;
extern const struct export_format export_json;
extern const struct export_format export_perfetto;
extern const struct export_format export_pickle;
extern const struct export_format export_speedscope;
extern const struct export_format export_sqlite;
extern const struct export_format export_svg;

static inline const struct dry_timeline_view *
export_view(const struct export_job *job, size_t device)
{
    return dry_timeline_get_view(job->study->devices[device].timeline);
}

/* "the OOM", "the peak of active bytes", "event 12", "the end"; has no quotes in it. */
const char *export_moment_name(const struct export_job *job, size_t device,
                               char name[EXPORT_NAME_BYTES]);

/* Say on standard error, in one line, what an export leaves out or bends. */
__attribute__((format(printf, 2, 3))) void export_note(const struct export_job *job,
                                                       const char *format, ...);
void export_note_slices(const struct export_job *job,
                        const struct dry_timeline_view *view,
                        const struct export_slices *slices);
void export_note_strings(const struct export_job *job);
void export_note_clock(const struct export_job *job, const struct export_clock *clock);

#endif
