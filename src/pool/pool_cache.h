/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_CACHE_H
#define DRYI_POOL_CACHE_H

/*
 * Threads on streams of their own do not wait for each other.
 *
 * One lock is enough, and the cheapest, for a program that calls the pool from one thread at a
 * time. When two threads ask on two streams, the pool is shared from then on. Each stream's cache
 * (place/place_cache.h) is opened by its next request. An open cache serves requests with the cache
 * alone: the alloc of a block that it holds or can cut. A block that goes back or merges is freed
 * so, too. If a cut or a merge touches what is not the stream's own, the pool's lock is taken
 * first, while others use their caches. A call that needs more takes the pool's lock and that of
 * every open cache (dryi_pool_lock). The sharing ends when one stream alone has asked for long.
 * Requests that its cache serves do not count for that: no other thread waits for them.
 *
 * The addresses of a stream are in a table of its own. A free is told an address alone. The table
 * is guessed twice: by the cache that the thread asked last, and by where the address lies. If both
 * guesses are wrong, all tables are looked at.
 *
 * All caches are closed while something must see each request: a history or an observer, a private
 * pool's scope, a capture.
 */

#include "pool/pool_address.h"
#include "pool/pool_state.h"

/*
 * Alloc, or free, while the pool is shared, with the cache alone. False: the pool's lock is needed.
 * `size` is at least 1.
 */
bool dryi_pool_cache_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                           uint64_t *address);
bool dryi_pool_cache_free(struct dry_pool *pool, uint64_t address);
/* Cut, or merge: the same with the pool's lock, which the call takes. False: ask the place. */
bool dryi_pool_cache_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                         uint64_t *address);
bool dryi_pool_cache_merge(struct dry_pool *pool, uint64_t address);
/* Free with the pool locked, while it is not shared. False: ask the place. */
bool dryi_pool_cache_free_alone(struct dry_pool *pool,
                                const struct dryi_pool_found *found);

/* Everything below: with the pool locked. */

/*
 * Find or make the cache of a request's stream; while the pool is shared, the cache is open from
 * now on. Number 0: the stream has none.
 */
struct dryi_pool_cache *dryi_pool_cache_find(struct dry_pool *pool, uint64_t number,
                                             uint64_t handle);
/* Forget an address: it is no longer registered with the cache of this stream. */
void dryi_pool_cache_forget(struct dry_pool *pool, uint64_t stream, uint64_t address);
void dryi_pool_caches_init(struct dry_pool *pool);
void dryi_pool_caches_finish(struct dry_pool *pool);

#endif
