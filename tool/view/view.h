/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_VIEW_H
#define TOOL_VIEW_H

/*
 * The files behind the page of the views, and the answers to its questions;
 * doc/design/viewer.md has the questions and the answers.
 *
 * One thread at a time. A tile costs O(columns log + cells drawn), a map O(alive), whatever
 * the number of events.
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
#include "view/pack.h"
#include "view/small.h"

#define VIEW_TILE_COLUMNS 1024
#define VIEW_EVENTS_A_PAGE 1024
#define VIEW_PLACES_MAX 3
#define VIEW_FILES_MAX 64

/* The commands whose JSON is an answer, the one that takes many replays last. */
#define VIEW_COMMANDS 4
extern const struct command *const view_commands[VIEW_COMMANDS];

/* A moment that a reader wants to see: the failure, the peak, the end. */
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
    struct small small; /* bytes by category at any moment */
    uint32_t *row_of;   /* by allocation: its row in the pack being made, or DRY_NONE */
    uint32_t moments;   /* of the timeline, with the dump's */
    uint32_t levels;    /* of tiles; at the last one a column is a moment */
    uint64_t min_bytes; /* smaller allocations are summed up in tiles */
    struct view_place places[VIEW_PLACES_MAX];
    unsigned place_count;
};

struct view_file {
    const char *path;
    struct study study;
    struct export_names names;
    bool has_names;
    struct view_device *devices; /* study.device_count of them */
};

struct view {
    const char *command;
    struct view_file *files;
    size_t file_count;
    bool is_report;              /* of a fixed set of answers */
    uint32_t depth_max;          /* frames of a stack that are told; 0: all */
    const char *const *left_out; /* sentences about what a report lacks */
    size_t left_out_count;
};

/*
 * Check the operands of a command that shows files: some, at most VIEW_FILES_MAX, and not standard input,
 * which cannot be read `why_not`. An exit_code.
 */
int view_expect_files(const struct command *command, const struct option_list *operands,
                      const char *why_not);

/*
 * Open the files at `paths`, which outlive the view. An exit_code; what failed is on standard
 * error. view_close() is due in any case.
 */
int view_open(struct view *view, const char *command, const char *const *paths,
              size_t count);
void view_close(struct view *view);

enum view_status {
    VIEW_FOUND,
    VIEW_NO_SUCH, /* no question, or about what is not there */
    VIEW_FAILED,  /* no memory, or a command that ended badly */
};

/*
 * Tell whether the answer to `key` takes a replay, or many: such a one is asked for in a child
 * process where others wait, base/child.h.
 */
bool view_is_slow(const struct view *view, const char *key);

/*
 * Answer the question `key`, which may be anything; the result is *answer, whose bytes the
 * caller frees.
 */
enum view_status view_answer(struct view *view, const char *key, struct answer *answer);

#endif
