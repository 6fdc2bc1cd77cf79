/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_DECISIONS_H
#define DRYI_REPLAY_DECISIONS_H

/*
 * The decisions of a run as text, one action per line, comparable between implementations:
 *
 *     alloc ID SEGMENT OFFSET SIZE       segment_alloc SEGMENT SIZE STREAM
 *     free ID                            segment_free SEGMENT
 *     oom SIZE                           segment_map SEGMENT OFFSET SIZE
 *                                        segment_unmap SEGMENT OFFSET SIZE
 *
 * SEGMENT counts from 0 in order of creation. SIZE is the block's size for alloc, the rounded
 * request for oom. ID is the trace's own id if it has ids, else the request's index. The index
 * counts the blocks from before the window first, by address, then the requests in order.
 */

#include "replay/execution.h"

#define DECISIONS_BUFFER 32768

struct dryi_decisions {
    const struct dryi_program *program;
    const struct dryi_execution *execution;
    const struct dry_sink *sink;
    struct dry_error *err;
    enum dry_status status;
    size_t used;
    char buffer[DECISIONS_BUFFER];
};

void dryi_decisions_init(struct dryi_decisions *decisions,
                         const struct dryi_program *program, const struct dry_sink *sink,
                         struct dry_error *err);

/* Write single lines, for callers without an execution. */
void dryi_decisions_segment(struct dryi_decisions *decisions, uint32_t segment,
                            uint64_t size, uint64_t stream);
void dryi_decisions_alloc(struct dryi_decisions *decisions, uint32_t request,
                          uint32_t segment, uint64_t offset, uint64_t size);
void dryi_decisions_free(struct dryi_decisions *decisions, uint32_t request);
DRY_CHECK_RESULT enum dry_status dryi_decisions_end(struct dryi_decisions *decisions);

/* Return a listener that writes all lines. If the sink fails, the run ends with its status. */
struct dryi_listener dryi_decisions_listener(struct dryi_decisions *decisions);

#endif
