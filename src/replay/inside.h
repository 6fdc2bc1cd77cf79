/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_INSIDE_H
#define DRYI_REPLAY_INSIDE_H

/* The parts of a replay that higher modules may read. Pointers live as long as the replay. */

#include <drystone/replay.h>

#include "replay/execution.h"

const struct dry_trace *dryi_replay_trace(const struct dry_replay *replay);
const struct dry_trace_device *dryi_replay_device(const struct dry_replay *replay);
const struct dryi_program *dryi_replay_program(const struct dry_replay *replay);
const struct dryi_initial_layout *dryi_replay_initial_layout(
    const struct dry_replay *replay);
/* Return the recorded settings. */
const struct dryi_torch_conf *dryi_replay_conf(const struct dry_replay *replay);

/* Return the release rules that the self-check used. */
const struct dryi_torch_rules *dryi_replay_rules(const struct dry_replay *replay);

/* Run the self-check again with a listener. Requires that a self-check is possible. */
DRY_CHECK_RESULT enum dry_status dryi_replay_watch(struct dry_replay *replay,
                                                   const struct dryi_listener *listener,
                                                   struct dry_error *err);

#endif
