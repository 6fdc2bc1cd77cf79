/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_HISTORY_H
#define DRYI_POOL_HISTORY_H

#include "pool/pool_state.h"

/*
 * Ask the program's callback who asks; DRY_NONE if there is no callback. Requires asks_alloc or
 * asks_free, and that the pool is not locked.
 */
uint32_t dryi_history_ask(struct dry_pool *pool);
/*
 * Add an entry. The event comes with the context of the request under way: of the alloc, or
 * DRY_NONE for a free nobody was asked about. The context may be replaced: what happens to a
 * block that is given back goes by who asked for the block. Requires the lock and a history.
 */
void dryi_history_keep(struct dry_pool *pool, struct dry_pool_event *event);
/* Tell who asked for the block, in use or pending, that begins here; DRY_NONE: not known. */
uint32_t dryi_history_context(const struct dry_pool *pool, uint64_t block_address);
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
