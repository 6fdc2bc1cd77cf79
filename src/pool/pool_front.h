/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_FRONT_H
#define DRYI_POOL_FRONT_H

/*
 * Threads on streams of their own do not wait for each other.
 *
 * One lock is enough, and the cheapest, for a program that calls the pool from one thread at
 * a time. When two threads ask on two streams, the pool is shared from then on: each stream's
 * front (place/place.h) is opened by its next request, and what an open front can do, the alloc
 * of a block it holds or can cut, the free of one that goes back to it or merges, takes the lock
 * of that front alone. Where that touches what is not the stream's own, the pool's lock is taken
 * before it: others go on at their fronts. Whoever needs more takes the pool's lock and that of
 * every open front (dryi_pool_lock). The sharing ends when one stream alone has asked for long,
 * but for what lay on its front: as long as all it asks for lies there, it costs nobody anything.
 *
 * The addresses of a stream are in a table of its own. A free is told an address alone: which
 * table to look at is guessed, by what the thread asked for last and by where the address lies,
 * and where that is wrong all are looked at.
 *
 * All fronts are closed while something must see each request: a history or an observer,
 * a private pool's scope, a capture.
 */

#include "pool/pool_address.h"
#include "pool/pool_state.h"

/* While shared, without the pool's lock. False: it is needed. size is at least 1. */
bool dryi_pool_front_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                           uint64_t *address);
bool dryi_pool_front_free(struct dry_pool *pool, uint64_t address);
/* The same, with the pool's lock taken. False: ask the place. */
bool dryi_pool_front_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                         uint64_t *address);
bool dryi_pool_front_merge(struct dry_pool *pool, uint64_t address);
/* The same with the pool locked, while it is not shared. False: ask the place. */
bool dryi_pool_front_free_alone(struct dry_pool *pool,
                                const struct dryi_pool_found *found);

/* Everything below: with the pool locked. */

/* The front of a request's stream, while shared open from now on; number 0: it has none. */
struct dryi_pool_front *dryi_pool_front_find(struct dry_pool *pool, uint64_t number,
                                             uint64_t handle);
/* The front of this stream keeps a block no more: its address is forgotten. */
void dryi_pool_front_forget(struct dry_pool *pool, uint64_t stream, uint64_t address);
void dryi_pool_fronts_init(struct dry_pool *pool);
void dryi_pool_fronts_finish(struct dry_pool *pool);

#endif
