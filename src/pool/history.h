/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_HISTORY_H
#define DRYI_POOL_HISTORY_H

#include "pool/pool_state.h"

/* A context that the program gave for a request, before the request takes the lock. */
struct dryi_asked {
    uint32_t context;
    uint64_t turn; /* pool->history_turn of the history that it belongs to */
    void (*release)(void *self, uint32_t context);
    void *release_self;
};

/*
 * Ask the program's callback for a context; DRY_NONE if there is no callback. Requires asks_alloc
 * or asks_free, and an unlocked pool. The caller passes the result to dryi_history_begin() and
 * dryi_history_end().
 */
struct dryi_asked dryi_history_ask(struct dry_pool *pool);
/*
 * Hold the context during its request. If the history was replaced, or memory ran out, the context
 * is released and becomes DRY_NONE. Requires the lock.
 */
void dryi_history_begin(struct dry_pool *pool, struct dryi_asked *asked);
/* End the request's hold. Requires the lock. */
void dryi_history_end(struct dry_pool *pool, const struct dryi_asked *asked);
/* Return the context of the block, in use or pending, that begins here; DRY_NONE: unknown. */
uint32_t dryi_history_context(const struct dry_pool *pool, uint64_t block_address);
/* Return the context of the segment, or mapped run, that begins here; DRY_NONE: unknown. */
uint32_t dryi_history_segment(const struct dry_pool *pool, uint64_t segment_address);
/*
 * Hold a context for a copy, and drop it later; `turn` is pool->history_turn at the hold. Requires
 * the lock and, for the hold, that the pool already holds the context.
 */
void dryi_history_hold(struct dry_pool *pool, uint32_t context);
void dryi_history_drop(struct dry_pool *pool, uint32_t context, uint64_t turn);
/* Destroy the history, if there is one, and release all contexts. */
void dryi_history_destroy(struct dry_pool *pool);

/* Do as dry_pool_walk_history(). Requires the lock. */
DRY_CHECK_RESULT enum dry_status dryi_history_walk(
    const struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_event *event), void *self);

/* Set the place's observer after a change of history or observer. Requires the lock. */
void dryi_pool_listen(struct dry_pool *pool);
/* Deliver an event of the place to history and observer. Requires the lock. */
void dryi_pool_tell(struct dry_pool *pool, const struct dryi_place_event *event);

#endif
