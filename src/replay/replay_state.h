/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_STATE_H
#define DRYI_REPLAY_STATE_H

/* The state of a replay, shared by replay.c (creates it) and run.c (runs it). */

#include "replay/inside.h"
#include "replay/self_check.h"

struct dry_replay {
    struct dry_memory memory;
    struct dry_replay_options options;
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    const struct dry_trace_device *device;
    struct dryi_torch_conf recorded_conf;
    struct dryi_paged_conf recorded_paged; /* defaults unless the record was made
                                              by our paged placement */
    char place_conf[256];                  /* option string of
                                              recorded_paged; "" if none */
    char conf_problem[256];                /* why the recorded options could not be
                                              read; "" if they could */
    struct dryi_program program;
    struct dryi_initial_layout initial_layout;
    const struct dryi_torch_rules *rules;
    struct dry_replay_check check;
    struct dryi_self_check_outcome outcome; /* result of the self-check */
    struct dry_replay_recorded recorded;
    struct dry_releases releases; /* valid if release_rows is not 0 */
    uint32_t release_rows;        /* possible rows of rules as bits; 0: not determined */
};

/* Set the bounds of the device's capacity that the record proves. Requires
   a finished self-check. */
DRY_CHECK_RESULT enum dry_status dryi_replay_bound_capacity(struct dry_replay *replay,
                                                            struct dry_error *err);

struct dryi_decisions;

/* Set a run's statistics, and its peaks of reserved, allocated and requested bytes from them. */
void dryi_run_fill(struct dry_run *run, const struct dry_stats *stats);
/* Note that the run ran out of memory. Only the first call has an effect. */
void dryi_run_note_oom(struct dry_run *run, size_t event, uint64_t size);

/* Run with all lifetimes known in advance. `decisions` may be NULL. */
DRY_CHECK_RESULT enum dry_status dryi_run_packed(struct dry_replay *replay,
                                                 uint64_t capacity_bytes,
                                                 struct dryi_decisions *decisions,
                                                 struct dry_run *run,
                                                 struct dry_error *err);

#endif
