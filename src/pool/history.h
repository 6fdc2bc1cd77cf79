/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_HISTORY_H
#define DRYI_POOL_HISTORY_H

#include "pool/pool_state.h"

/* Who asks, by the program's callback; before the lock, only where asks_... is set. */
uint32_t dryi_history_ask(struct dry_pool *pool);
/*
 * One more entry; lock held, history not NULL. Comes with the context of the request under
 * way (of the alloc, or DRY_NONE for a free nobody was asked about) and may replace it: what
 * happens to a block that is given back goes by who asked for the block.
 */
void dryi_history_keep(struct dry_pool *pool, struct dry_pool_event *event);
/* Who asked for the block, in use or pending, that begins here; DRY_NONE if not known. */
uint32_t dryi_history_context(const struct dry_pool *pool, uint64_t block_address);
/* End and forget; NULL history is accepted. Also called by destroy. */
void dryi_history_destroy(struct dry_pool *pool);

/* dry_pool_walk_history with the lock held. */
DRY_CHECK_RESULT enum dry_status dryi_history_walk(
    const struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_event *event), void *self);

/* Somebody listens, or nobody does any more: tell the place whom to tell. Pool locked. */
void dryi_pool_listen(struct dry_pool *pool);
/* Tell whoever listens of an event of the place, now. Pool locked. */
void dryi_pool_tell(struct dry_pool *pool, const struct dryi_place_event *event);

#endif
