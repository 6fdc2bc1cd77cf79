/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_CACHE_H
#define DRYI_POOL_CACHE_H

/*
 * Stream caches: threads on different streams do not wait for each other.
 *
 * A program that calls the pool from one thread at a time needs only one lock, which is cheapest.
 * Once two threads make requests on two streams, the pool is shared. Each stream's cache
 * (place/place_cache.h) is then opened by its next request. With only its own lock held, an open
 * cache serves allocs of blocks that it holds or can cut. It also serves frees of blocks that it
 * can take back or merge. If a cut or a merge touches another stream's block, the pool's lock is
 * taken first, while others use their caches. Calls that need more take the pool's lock and those
 * of all open caches (dryi_pool_lock()). Sharing ends when only one stream has made requests for
 * long. Requests served by its cache do not count for this, because no other thread waits for them.
 *
 * Each stream has its own table of addresses. A free gets only an address, so its table is guessed
 * twice: by the cache that the thread last used, and by the address. If both guesses are wrong, all
 * tables are searched.
 *
 * All caches are closed while each request must be observed: by a history, an observer, a private
 * pool's scope or a capture.
 */

#include "pool/pool_address.h"
#include "pool/pool_state.h"

/*
 * Allocate or free in a shared pool, with only the cache locked. False: the pool's lock is needed.
 * `size` is at least 1.
 */
bool dryi_pool_cache_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                           uint64_t *address);
bool dryi_pool_cache_free(struct dry_pool *pool, uint64_t address);
/*
 * Cut or merge in a shared pool, with the pool's lock, which the call takes. False: the place must
 * serve the request.
 */
bool dryi_pool_cache_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                         uint64_t *address);
bool dryi_pool_cache_merge(struct dry_pool *pool, uint64_t address);
/* Free a block into its cache; the pool is locked, not shared. False: the place must free it. */
bool dryi_pool_cache_free_alone(struct dry_pool *pool,
                                const struct dryi_pool_found *found);

/* The functions below require the pool to be locked. */

/*
 * Return the cache of a request's stream; create it on first use. In a shared pool it is opened by
 * the next unlock. Number 0: the stream has none.
 */
struct dryi_pool_cache *dryi_pool_cache_find(struct dry_pool *pool, uint64_t number,
                                             uint64_t handle);
/* Remove an address whose registration with this stream's cache has ended. */
void dryi_pool_cache_forget(struct dry_pool *pool, uint64_t stream, uint64_t address);
void dryi_pool_caches_init(struct dry_pool *pool);
void dryi_pool_caches_finish(struct dry_pool *pool);

#endif
