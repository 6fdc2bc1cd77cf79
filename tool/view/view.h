/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_VIEW_H
#define TOOL_VIEW_H

/*
 * The files shown by the viewer, and the answers to the page's questions;
 * doc/design/viewer.md lists them.
 *
 * One thread at a time. A tile costs O(columns log + cells drawn), a map O(alive),
 * independent of the number of events.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/categories.h>
#include <drystone/steps.h>
#include <drystone/timeline.h>

#include "base/command.h"
#include "export/export_names.h"
#include "record/study.h"
#include "view/category_sums.h"
#include "view/pack.h"

#define VIEW_TILE_COLUMNS 1024
#define VIEW_EVENTS_PER_ANSWER 1024
#define VIEW_PLACES_MAX 3
#define VIEW_FILES_MAX 64

/* The commands whose JSON is an answer; the last one, `sweep`, takes many replays. */
#define VIEW_COMMANDS 4
extern const struct command *const view_commands[VIEW_COMMANDS];

/* A moment of interest: the failure, the peak, the end. */
struct view_place {
    const char *name;
    uint32_t moment;
};

struct view_device {
    const struct dry_timeline *timeline;
    const struct dry_timeline_view *v;
    struct dry_replay *replay;
    struct dry_steps *steps;
    struct dry_categories *categories;
    struct category_sums category_sums; /* bytes by category at any moment */
    uint32_t *row_of;   /* row of each allocation in the current pack, or DRY_NONE */
    uint32_t moments;   /* moments of the timeline, including the dump's */
    uint32_t levels;    /* levels of tiles; at the last, a column is one moment */
    uint64_t min_bytes; /* smaller allocations are summed up in tiles */
    struct view_place places[VIEW_PLACES_MAX];
    unsigned place_count;
};

struct view_file {
    const char *path;
    struct study study;
    struct export_names names;
    bool has_names;
    struct view_device *devices; /* study.device_count entries */
};

struct view {
    const char *command;
    struct view_file *files;
    size_t file_count;
    struct json_t *series;       /* runs of a dry run (series_in.h); NULL: none */
    bool is_report;              /* written to a file, with a fixed set of answers */
    uint32_t depth_max;          /* maximum frames per stack; 0: all */
    const char *const *left_out; /* sentences about omissions in a report */
    size_t left_out_count;
};

/* Check the operands of a command that shows files: 1 to VIEW_FILES_MAX, none of them
   standard input, for the reason `why_not`. Returns an exit_code. */
int view_expect_files(const struct command *command, const struct option_list *operands,
                      const char *why_not);

/* Open the files at `paths`, which must outlive the view. Returns an exit_code; failures
   are printed. Call view_close() in any case. */
int view_open(struct view *view, const char *command, const char *const *paths,
              size_t count);
void view_close(struct view *view);

enum view_status {
    VIEW_FOUND,
    VIEW_NO_SUCH, /* unknown question, or about a missing object */
    VIEW_FAILED,  /* memory ran out, or a command failed */
};

/* Tell whether the answer to `key` takes replays. Such answers should be computed in a
   child process (base/child.h) if other clients wait. */
bool view_is_slow(const struct view *view, const char *key);

/* Answer the question `key`, an untrusted text. The caller frees the answer's bytes. */
enum view_status view_answer(struct view *view, const char *key, struct answer *answer);

#endif
