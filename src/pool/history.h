/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_HISTORY_H
#define DRYI_POOL_HISTORY_H

#include "pool/pool_state.h"

/* A context that the program gave for a request which is about to take the lock. */
struct dryi_asked {
    uint32_t context;
    uint64_t turn; /* the history it belongs to: pool->history_turn */
    void (*release)(void *self, uint32_t context);
    void *release_self;
};

/*
 * Ask the program's callback who asks; its context is DRY_NONE if there is no callback. Requires
 * asks_alloc or asks_free, and that the pool is not locked. Each is to be begun and ended.
 */
struct dryi_asked dryi_history_ask(struct dry_pool *pool);
/*
 * Hold the context while its request goes on. It is released here, and DRY_NONE from now on, if
 * there is another history by now or no memory to count it. Requires the lock.
 */
void dryi_history_begin(struct dry_pool *pool, struct dryi_asked *asked);
/* End the request's hold. Requires the lock. */
void dryi_history_end(struct dry_pool *pool, const struct dryi_asked *asked);
/* Tell who asked for the block, in use or pending, that begins here; DRY_NONE: not known. */
uint32_t dryi_history_context(const struct dry_pool *pool, uint64_t block_address);
/* Tell which request got the segment, or the run of mapped pages, that begins here. */
uint32_t dryi_history_segment(const struct dry_pool *pool, uint64_t segment_address);
/*
 * Hold a context for a copy, and drop it again; `turn` is pool->history_turn at the hold. Requires
 * the lock, and that the pool refers to the context at the hold.
 */
void dryi_history_hold(struct dry_pool *pool, uint32_t context);
void dryi_history_drop(struct dry_pool *pool, uint32_t context, uint64_t turn);
/* End and forget; NULL history is accepted. Also called by destroy. */
void dryi_history_destroy(struct dry_pool *pool);

/* dry_pool_walk_history with the lock held. */
DRY_CHECK_RESULT enum dry_status dryi_history_walk(
    const struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_event *event), void *self);

/*
 * Tell the place whom to tell of events, after somebody began to listen or nobody does any more.
 * Requires the lock.
 */
void dryi_pool_listen(struct dry_pool *pool);
/* Tell whoever listens of an event of the place, now. Requires the lock. */
void dryi_pool_tell(struct dry_pool *pool, const struct dryi_place_event *event);

#endif
