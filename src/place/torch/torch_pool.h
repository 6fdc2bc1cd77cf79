/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_POOL_H
#define DRYI_TORCH_POOL_H

/*
 * Streams, owners (the default pool and the private ones) and lanes (a pool and a stream): they
 * say where a request belongs.
 */

#include "place/torch/torch_state.h"

/* An open scope counts as a capture, by the rules of this release. */
bool dryi_torch_in_capture(const struct dryi_torch *t);
/* Work on this stream is being captured. */
bool dryi_torch_is_captured(const struct dryi_torch *t, uint32_t stream);
/* Is a scope of this owner open? */
bool dryi_torch_is_in_scope(const struct dryi_torch *t, uint32_t owner);
/* The owner that requests of this stream go to. */
uint32_t dryi_torch_owner_of(const struct dryi_torch *t, uint64_t stream);
/* The index of a stream, new or known; NONE when there is no memory. */
uint32_t dryi_torch_stream_index(struct dryi_torch *t, uint64_t value);
/* The lane of a pool and a stream, new or known; NONE when there is no memory. */
uint32_t dryi_torch_lane_index(struct dryi_torch *t, uint32_t pool, uint32_t stream);
/* The same if it is known, else NONE. */
uint32_t dryi_torch_lane_find(const struct dryi_torch *t, uint32_t pool, uint32_t stream);
/* The owner with this id, or NONE. */
uint32_t dryi_torch_owner_find(const struct dryi_torch *t, struct dryi_pool_id id);
/* One user more. */
void dryi_torch_owner_use(struct dryi_torch *t, uint32_t owner);
/* A new owner without users; NONE when there is no memory. */
uint32_t dryi_torch_owner_make(struct dryi_torch *t, struct dryi_pool_id id);
/* It goes by its id no more; its record, when the last of its segments goes. */
void dryi_torch_owner_end(struct dryi_torch *t, uint32_t owner);
/* One of its segments is gone. */
void dryi_torch_owner_lose(struct dryi_torch *t, uint32_t owner);

#endif
