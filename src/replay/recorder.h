/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_RECORDER_H
#define DRYI_REPLAY_RECORDER_H

/* Record a run as PyTorch would: events with the stacks and times of their requests, and the final
   segments. Strings, frames and stacks are copied from the replayed trace on first use. */

#include "base/map.h"
#include "replay/execution.h"

struct dryi_recorder {
    struct dry_memory memory;
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    const struct dryi_program *program;
    const struct dryi_execution *execution;
    struct dry_trace_builder *builder;
    uint32_t *strings, *stacks, *notes; /* old id -> new id; DRY_NONE: not copied */
    struct dryi_map requests;           /* address -> request, in use
                                           or with a pending free */
    bool failed;                        /* memory ran out */
};

DRY_CHECK_RESULT enum dry_status dryi_recorder_init(struct dryi_recorder *recorder,
                                                    const struct dry_trace *trace,
                                                    const struct dryi_program *program,
                                                    const struct dryi_torch_conf *conf,
                                                    const char *conf_text,
                                                    struct dry_error *err);
struct dryi_listener dryi_recorder_listener(struct dryi_recorder *recorder);
/* Finish the recorder. If the run's `status` is OK, set *recorded to the trace,
   which the caller owns. */
DRY_CHECK_RESULT enum dry_status dryi_recorder_finish(struct dryi_recorder *recorder,
                                                      enum dry_status status,
                                                      struct dry_trace **recorded,
                                                      struct dry_error *err);

#endif
