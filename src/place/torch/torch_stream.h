/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_STREAM_H
#define DRYI_TORCH_STREAM_H

/* Frees that wait for the events of streams. */

#include "place/torch/torch_state.h"

/*
 * Record the events of frees that captures deferred, unless a capture is active. A failed one is
 * retried at the next call.
 */
void dryi_torch_settle_deferred(struct dryi_torch *t);
/* Wait until all pending frees are complete, or those of one owner's blocks. */
void dryi_torch_wait_for_streams(struct dryi_torch *t);
void dryi_torch_wait_for_pool(struct dryi_torch *t, uint32_t owner);

#endif
