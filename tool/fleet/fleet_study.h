/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_STUDY_H
#define TOOL_FLEET_STUDY_H

/*
 * Open a rank's file without printing. tool/record/study.h does this for a user; this is
 * for a thread that has many files to read. One device is studied: one that ran out of
 * memory, else the one with most events, then most segments.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/drystone.h>
#include <drystone/explanation.h>

#include "record/input.h"

struct fleet_study {
    struct input_content content;       /* the file's bytes */
    struct dry_trace *trace, *recorded; /* the trace read; simulated from it, or NULL */
    const struct dry_trace *subject;    /* the trace that is studied */
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    bool is_simulated, is_empty; /* is_empty: no device, later fields are not set */
    uint32_t before_count;       /* see struct study */
    struct dry_explanation *explanation;
    const struct dry_explanation_view *view;
};

/*
 * Open `path` with at most `memory_bytes_max` for its trace. The error text tells what is
 * wrong with the file. Call fleet_study_close() in any case.
 */
DRY_CHECK_RESULT enum dry_status fleet_study_open(struct fleet_study *study,
                                                  const char *path,
                                                  uint64_t memory_bytes_max,
                                                  struct dry_error *err);
/* Explain the file's moment without replaying other settings. Skips an empty study. */
DRY_CHECK_RESULT enum dry_status fleet_study_explain(struct fleet_study *study,
                                                     struct dry_error *err);
void fleet_study_close(struct fleet_study *study);

#endif
