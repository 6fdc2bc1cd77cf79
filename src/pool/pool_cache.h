/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_CACHE_H
#define DRYI_POOL_CACHE_H

/*
 * Threads on streams of their own do not wait for each other.
 *
 * One lock is enough, and the cheapest, for a program that calls the pool from one thread at
 * a time. When two threads ask on two streams, the pool is shared from then on, and each stream's
 * stream cache (place/place.h) is opened by its next request. An open stream cache
 * serves with its lock alone: the alloc of a block it holds or can cut, and the free of a block
 * that goes back to it or merges. If a
 * cut or a merge touches what is not the stream's own, the pool's lock is taken before: others go
 * on at their stream caches. Whoever needs more takes the pool's lock and that of every open stream cache
 * (dryi_pool_lock). The sharing ends when one stream alone has asked for long. Requests that its
 * stream cache serves do not count for that: they cost nobody anything.
 *
 * The addresses of a stream are in a table of its own. A free is told an address alone. The table
 * is guessed, by the stream cache that the thread asked last and by where the address lies; if both are
 * wrong, all tables are looked at.
 *
 * All stream caches are closed while something must see each request: a history or an observer,
 * a private pool's scope, a capture.
 */

#include "pool/pool_address.h"
#include "pool/pool_state.h"

/*
 * Alloc, or free, while shared and without the pool's lock. False: the lock is needed. `size` is
 * at least 1.
 */
bool dryi_pool_cache_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                           uint64_t *address);
bool dryi_pool_cache_free(struct dry_pool *pool, uint64_t address);
/* The same, with the pool's lock taken. False: ask the place. */
bool dryi_pool_cache_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                         uint64_t *address);
bool dryi_pool_cache_merge(struct dry_pool *pool, uint64_t address);
/* The same with the pool locked, while it is not shared. False: ask the place. */
bool dryi_pool_cache_free_alone(struct dry_pool *pool,
                                const struct dryi_pool_found *found);

/* Everything below: with the pool locked. */

/* The stream cache of a request's stream, while shared open from now on; number 0: it has none. */
struct dryi_pool_cache *dryi_pool_cache_find(struct dry_pool *pool, uint64_t number,
                                             uint64_t handle);
/* Forget an address: the stream cache of this stream keeps the block no more. */
void dryi_pool_cache_forget(struct dry_pool *pool, uint64_t stream, uint64_t address);
void dryi_pool_caches_init(struct dry_pool *pool);
void dryi_pool_caches_finish(struct dry_pool *pool);

#endif
