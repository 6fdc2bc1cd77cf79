/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_CACHE_H
#define DRYI_PLACE_CACHE_H

/*
 * A stream cache (short: a cache) holds free whole blocks of one stream of the default pool, by
 * size. A cached block serves the next request of its size without a search. All requests use the
 * caches of their place. A thread can also use a cache without holding the place:
 *
 * Threads    While caches are shared (share), take and put need only the cache. Cut and merge need
 *            the cache or, with `has_place`, the cache and the place. All other functions need the
 *            place and all its caches. A cache counts its own takes, puts, cuts and merges until
 *            balance; statistics are exact after balance. While caches are not shared, put needs
 *            the place, as all other functions do.
 */
#include "place/place_info.h"

struct dryi_cache;

/*
 * Called from inside all other functions when a cached block's address loses its registration: the
 * block was split or merged, or alloc handed the block out.
 */
struct dryi_cache_watcher {
    void (*lost)(void *self, uint64_t stream, uint64_t addr);
    void *self;
};

/* The functions of a place that has stream caches. */
struct dryi_cache_ops {
    /*
     * Return the cache of a stream; create the cache on first use. NULL: out of memory. The place
     * owns the cache, which lives until give_back or the end of the place.
     */
    struct dryi_cache *(*ask)(void *self, uint64_t stream);
    /* Empty the cache. Its blocks become ordinary free memory. */
    void (*flush)(struct dryi_cache *cache);
    /*
     * Destroy a cache. Requires that no block of the cache is registered. The next ask creates
     * another cache.
     */
    void (*give_back)(struct dryi_cache *cache);
    /*
     * Turn sharing on or off. Shared caches can be used by several threads at once, and hold large
     * blocks too. The forecast is off meanwhile, because threads interleave requests in an order
     * that the program does not repeat.
     */
    void (*share)(void *self, bool is_shared);
    /*
     * Allocate a registered block and return its address. 0: no such block, or a balance is needed;
     * the caller then calls alloc. Requires shared caches and no observer, scope or capture.
     */
    uint64_t (*take)(struct dryi_cache *cache, uint64_t size);
    /*
     * Free a registered block into its cache. False: the cache has no slot for the size, other
     * streams used the block, or the block is already free. The caller then calls free, which
     * handles each case.
     */
    bool (*put)(struct dryi_cache *cache, dryi_block block);
    /*
     * Cut a block from free memory of the stream, or take a cached block. With `has_place` memory
     * shared by all streams can be cut, too. The result is registered. False: no such memory, or a
     * neighbour belongs to another cache; the caller then holds the place or calls alloc. Requires
     * shared caches.
     */
    bool (*cut)(struct dryi_cache *cache, uint64_t size, bool has_place,
                dryi_block *block);
    /*
     * Free a registered block and merge the block with its neighbours; its registration ends.
     * False: as for put, or the place must be held, as for cut. Requires shared caches.
     */
    bool (*merge)(struct dryi_cache *cache, dryi_block block, bool has_place);
    /*
     * Register the address of a block in use in the caller's table. The registration lasts while
     * the block is used or cached. The registration ends when the watcher is called, or when free
     * puts the block elsewhere. False: the block cannot be cached.
     */
    bool (*register_address)(struct dryi_cache *cache, dryi_block block);
    /* Is this registered block free in a cache? */
    bool (*holds)(const void *self, dryi_block block);
    /*
     * Add the counts of these caches, 64 at most, to the statistics. Bit i of the result: the i-th
     * cache was used since the last balance.
     *
     * A peak between two balances is exact if only one cache was used. Otherwise the peak is the
     * sum of the caches' peaks: never too low, never above the reserved bytes. A cache asks for a
     * balance before its takes exceed its allowance. Byte peaks are therefore overstated by at most
     * 1/64 of the reserved bytes or 2 MiB, whichever is larger. The bound matters because budgets
     * are derived from the peaks.
     */
    uint64_t (*balance)(void *self, struct dryi_cache *const *caches, size_t count);
    void (*watch)(void *self, struct dryi_cache_watcher watcher);
};

#endif
