/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DEMO_STEP_H
#define TOOL_DEMO_STEP_H

/*
 * Every request of a transformer to its allocator while it trains: weights, forward,
 * backward and Adam of a GPT, tensor by tensor, with the line that asked.
 */

#include <drystone/trace.h>

struct demo_model {
    uint32_t layers, hidden, heads, sequence, batch, vocabulary;
    uint32_t steps;
};

/*
 * The requests of a training run as a trace without addresses (kind PLAIN). Steps use the
 * model's sequence length, but for one in the middle that is longer, and after which small
 * tensors stay alive: the step that fragments.
 */
enum dry_status demo_make_requests(const struct demo_model *model,
                                   struct dry_trace **trace, struct dry_error *err);

#endif
