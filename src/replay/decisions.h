/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_DECISIONS_H
#define DRYI_REPLAY_DECISIONS_H

/* The decisions of a run, told to a sink of the caller. */

#include <drystone/replay.h>

#include "replay/execution.h"

struct dryi_decisions {
    const struct dryi_program *program;
    const struct dryi_execution *execution;
    const struct dry_decision_sink *sink;
    struct dry_error *err;
    enum dry_status status;
};

void dryi_decisions_init(struct dryi_decisions *decisions,
                         const struct dryi_program *program,
                         const struct dry_decision_sink *sink, struct dry_error *err);

/* Tell one decision, for callers without an execution. Nothing after the sink has failed. */
void dryi_decisions_tell(struct dryi_decisions *decisions, struct dry_decision decision);
/* Return the request's id, see struct dry_decision. */
uint64_t dryi_decisions_id(const struct dryi_program *program, uint32_t request);

/* Return a listener that tells all. If the sink fails, the run ends with its status. */
struct dryi_listener dryi_decisions_listener(struct dryi_decisions *decisions);

#endif
