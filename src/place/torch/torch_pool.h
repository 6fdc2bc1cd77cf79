/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_POOL_H
#define DRYI_TORCH_POOL_H

/*
 * Streams, owners (the default pool and private pools) and lanes (a pool and a stream): where a
 * request belongs.
 */

#include "place/torch/torch_state.h"

/* Is a scope open that counts as a capture in this release? */
bool dryi_torch_in_capture(const struct dryi_torch *t);
/* Is this stream being captured? */
bool dryi_torch_is_captured(const struct dryi_torch *t, uint32_t stream);
/* Is a scope of this owner open? */
bool dryi_torch_is_in_scope(const struct dryi_torch *t, uint32_t owner);
/* Return the owner that serves requests of this stream. */
uint32_t dryi_torch_find_owner(const struct dryi_torch *t, uint64_t stream);
/* Return the index of a stream; add it on first use. NONE: out of memory. */
uint32_t dryi_torch_stream_index(struct dryi_torch *t, uint64_t value);
/* Return the lane of a pool and a stream; add it on first use. NONE: out of memory. */
uint32_t dryi_torch_lane_index(struct dryi_torch *t, uint32_t pool, uint32_t stream);
/* Return the lane of a pool and a stream; NONE: never used. */
uint32_t dryi_torch_lane_find(const struct dryi_torch *t, uint32_t pool, uint32_t stream);
/* Return the owner with this id, or NONE. */
uint32_t dryi_torch_owner_find(const struct dryi_torch *t, struct dryi_pool_id id);
/* Add a user to an owner. */
void dryi_torch_owner_use(struct dryi_torch *t, uint32_t owner);
/* Make an owner without users; NONE: out of memory. */
uint32_t dryi_torch_owner_make(struct dryi_torch *t, struct dryi_pool_id id);
/* End an owner: its id finds it no more. Its record is freed with its last segment. */
void dryi_torch_owner_end(struct dryi_torch *t, uint32_t owner);
/* Note that an owner lost a segment. */
void dryi_torch_owner_lose(struct dryi_torch *t, uint32_t owner);

#endif
