/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_CACHE_H
#define DRYI_PLACE_CACHE_H

/*
 * A stream cache, short a cache: the free whole blocks of one stream of the default pool, by size.
 * The next request of a size is served from the cache without a look at anything else. Every
 * request uses the caches of its place. A thread can also use a cache without holding the place:
 *
 * Threads    While caches are shared (share), take and put need the cache alone. Cut and merge need
 *            the cache alone or, if they are told so, the cache and the place. Every other function
 *            needs the place and all its caches. The cache counts what take, put, cut and merge did
 *            until balance: statistics are right after balance. While caches are not shared, put is
 *            a call on the place, as all others are.
 */
#include "place/place_info.h"

struct dryi_cache;

/*
 * The watcher is told, from inside every other call, that the address of a block in this stream's
 * cache is registered no more. The block is no longer whole then, or alloc hands it out.
 */
struct dryi_cache_watcher {
    void (*lost)(void *self, uint64_t stream, uint64_t addr);
    void *self;
};

/* The calls of a placement that has stream caches. */
struct dryi_cache_ops {
    /*
     * Return the cache of a stream, made if need be; NULL: no memory. The cache lives until it is
     * given back, or as long as the place.
     */
    struct dryi_cache *(*ask)(void *self, uint64_t stream);
    /* Empty the cache: its blocks are ordinary free memory from now on. */
    void (*flush)(struct dryi_cache *cache);
    /*
     * End a cache of which no block is registered. The stream has no cache until the caller asks
     * for it again.
     */
    void (*give_back)(struct dryi_cache *cache);
    /*
     * Share the caches from now on, so that several are used at once, or share them no more. While
     * they are shared, caches hold large blocks too, and nothing is forecast: the order of requests
     * is the threads', not the program's.
     */
    void (*share)(void *self, bool is_shared);
    /*
     * While shared, without an observer, a scope or a capture: take a registered block for the
     * request, and return where the block begins. 0: there is none, or a balance is due; alloc
     * serves the request then.
     */
    uint64_t (*take)(struct dryi_cache *cache, uint64_t size);
    /*
     * Free a registered block of this cache into the cache. False: the cache has no room for the
     * size, streams were recorded, or the block is free already; free knows what to do.
     */
    bool (*put)(struct dryi_cache *cache, dryi_block block);
    /*
     * While shared: cut a block for the request from free memory of the stream, or take a block of
     * the cache. With the place held, shared memory may be cut, too. The block is registered.
     * False: alloc has more to do, or a neighbour is another cache's and the place must be held.
     */
    bool (*cut)(struct dryi_cache *cache, uint64_t size, bool has_place,
                dryi_block *block);
    /*
     * While shared: free a registered block of this cache and merge it with its neighbours. The
     * block is registered no more. False: for the reasons of put, or the place must be held as for
     * a cut.
     */
    bool (*merge)(struct dryi_cache *cache, dryi_block block, bool has_place);
    /*
     * Register the address of a block in use with the caller. The address stays valid while the
     * block is used or lies in the cache. The registration ends when the watcher is told that it is
     * lost, or when free leaves the block elsewhere. False: the block cannot go to the cache.
     */
    bool (*register_address)(struct dryi_cache *cache, dryi_block block);
    /* Does a registered block lie in a cache? */
    bool (*holds)(const void *self, dryi_block block);
    /*
     * Count what happened at these caches, 64 at most. Bit i of the result: something happened at
     * the i-th. A peak between two calls is exact if one cache was used alone. Otherwise the peak
     * is the sum of the caches' own peaks: never too low, nor above what is reserved. A cache that
     * has taken much asks for a balance. So peaks of bytes are too high by 1/64 of what is
     * reserved, or 2 MiB, at most. The bound matters, for budgets grow by the peaks.
     */
    uint64_t (*balance)(void *self, struct dryi_cache *const *caches, size_t count);
    void (*watch)(void *self, struct dryi_cache_watcher watcher);
};

#endif
