/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_SELF_CHECK_H
#define DRYI_REPLAY_SELF_CHECK_H

/*
 * The proof: the program under the recorded settings must do what the record says, address
 * by address, segment event by segment event, and end in the recorded layout.
 */

#include <drystone/replay.h>

#include "replay/execution.h"

struct dryi_self_check_subject {
    const struct dryi_initial_layout *initial_layout;
    const struct dryi_torch_conf *conf; /* the recorded one */
    const struct dryi_torch_rules *rules;
    const struct dryi_listener *listener; /* hears the window; or NULL */
    bool (*progress)(void *self,
                     uint64_t event_count); /* as dry_replay_options; or NULL */
    void *progress_self;
    bool is_trial; /* leave the program as it is, and stop at the first mismatch */
};

struct dryi_self_check_outcome {
    struct dry_replay_check check; /* counts, `exact` and the first mismatch only */
    struct dry_stats stats;        /* at the end */
    uint64_t driver_time_ns, driver_calls;
};

/*
 * Run the self-check. Bursts taken for retries that cannot have been any become
 * empty_cache() in the program. CANCELLED: progress said so. FORMAT: the layout before
 * the window is none that PyTorch could have made; or what the listener returned.
 */
DRY_CHECK_RESULT enum dry_status dryi_self_check_run(
    struct dryi_program *program, const struct dryi_self_check_subject *subject,
    struct dryi_self_check_outcome *outcome, struct dry_error *err);

#endif
