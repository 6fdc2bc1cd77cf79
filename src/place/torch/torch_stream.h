/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_STREAM_H
#define DRYI_TORCH_STREAM_H

/* Frees that wait for the events of streams. */

#include "place/torch/torch_state.h"

/* Outside a capture: events for what was freed in one. A failing one is tried again. */
void dryi_torch_settle_deferred(struct dryi_torch *t);
/* Wait until every pending free is done; or those of one owner's blocks. */
void dryi_torch_wait_for_streams(struct dryi_torch *t);
void dryi_torch_wait_for_pool(struct dryi_torch *t, uint32_t owner);

#endif
