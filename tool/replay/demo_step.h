/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DEMO_STEP_H
#define TOOL_DEMO_STEP_H

/*
 * The requests to the allocator while a transformer trains: weights, forward, backward
 * and Adam of a GPT, tensor by tensor, each with the line that allocates it.
 */

#include <drystone/trace.h>

struct demo_model {
    uint32_t layers, hidden, heads, sequence, batch, vocabulary;
    uint32_t steps;
};

/*
 * Make the requests of a training run as a trace without addresses (kind PLAIN). All
 * steps but one use the model's sequence length. The middle one is longer and leaves
 * small tensors alive: it causes fragmentation.
 */
enum dry_status demo_make_requests(const struct demo_model *model,
                                   struct dry_trace **trace, struct dry_error *err);

#endif
