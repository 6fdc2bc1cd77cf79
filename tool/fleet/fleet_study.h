/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_STUDY_H
#define TOOL_FLEET_STUDY_H

/*
 * One rank's file, opened without a word: what tool/record/study.h does for a person, for a
 * thread that has many files to see. One device is looked at: one that ran out of memory,
 * else the one with most events, else with most segments.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/drystone.h>
#include <drystone/explanation.h>

#include "record/input.h"

struct fleet_study {
    struct input_content content;       /* the file's bytes */
    struct dry_trace *trace, *recorded; /* as read; of one without addresses, else NULL */
    const struct dry_trace *subject;    /* the one that is looked at */
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    bool is_simulated, is_empty; /* empty: no device, and nothing below is there */
    uint32_t before_count;       /* as in struct study */
    struct dry_explanation *explanation;
    const struct dry_explanation_view *view;
};

/*
 * Open `path`, taking `memory_bytes_max` at most for its trace. The error's text says what
 * is wrong with the file. fleet_study_close() is due in any case.
 */
DRY_CHECK_RESULT enum dry_status fleet_study_open(struct fleet_study *study,
                                                  const char *path,
                                                  uint64_t memory_bytes_max,
                                                  struct dry_error *err);
/* Explain its moment, without replays under other settings. An empty one is left alone. */
DRY_CHECK_RESULT enum dry_status fleet_study_explain(struct fleet_study *study,
                                                     struct dry_error *err);
void fleet_study_close(struct fleet_study *study);

#endif
