/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_SELF_CHECK_H
#define DRYI_REPLAY_SELF_CHECK_H

/* Prove the replay: under the recorded settings the program must reproduce every address and
   segment event of the record, and end in the recorded layout. */

#include <drystone/replay.h>

#include "replay/execution.h"

struct dryi_self_check_subject {
    const struct dryi_initial_layout *initial_layout;
    const struct dryi_torch_conf *conf; /* the recorded settings */
    const struct dryi_torch_rules *rules;
    const struct dryi_listener *listener; /* observes the window; may be NULL */
    bool (*progress)(void *self,
                     uint64_t event_count); /* see dry_replay_options; may be NULL */
    void *progress_self;
    bool is_trial; /* do not change the program, and stop at the first mismatch */
};

struct dryi_self_check_outcome {
    struct dry_replay_check check; /* counts, `exact` and the first mismatch only */
    struct dry_stats stats;        /* statistics at the end of the run */
    uint64_t driver_time_ns, driver_calls;
};

/*
 * Run the self-check. Presumed retries that cannot have been retries become empty_cache() in the
 * program. Errors: CANCELLED (by `progress`), FORMAT (PyTorch could not have made the initial
 * layout), or the listener's status.
 */
DRY_CHECK_RESULT enum dry_status dryi_self_check_run(
    struct dryi_program *program, const struct dryi_self_check_subject *subject,
    struct dryi_self_check_outcome *outcome, struct dry_error *err);

#endif
