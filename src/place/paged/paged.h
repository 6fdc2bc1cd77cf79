/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_H
#define DRYI_PLACE_PAGED_H

/*
 * Our own placement. Reserving addresses is cheap; memory is managed in pages that can be remapped.
 *
 * A pool has two arenas, for small requests (up to 64 KiB) and for large ones. An arena is a
 * growing set of segments. Pages of the device's size (2 MiB or more) are created once and kept.
 * They are remapped to the addresses that need them, so free memory anywhere can serve any request.
 *
 * Nouns      segment: a reserved range of addresses. block: a part of a segment: used, free (its
 *            pages are mapped) or a hole (no pages). free list: the free blocks of an arena that
 *            one stream can take immediately; the shared list serves all streams. page: memory,
 *            mapped or not; the stock holds unmapped pages. epoch: a per-stream count of events;
 *            once an event is complete, so is all that was freed up to its epoch. layout: the
 *            packed period of the forecast (place/forecast/forecast.h).
 *
 * Rungs      A request is rounded up to 512 bytes, and served by the first of these that can:
 *            1  the range that the layout has for the request (large requests, default pool)
 *            2  the stream's cache: freed blocks of exactly this size, newest first
 *            3  the stream's free list, then the shared list
 *            4  another stream's list, where an ordering is known or an event is complete
 *            5  a hole, with pages from the stock, new ones within the budget, or reclaimed ones
 *            6  beyond the budget, in this order: the host waits while pending bytes exceed the
 *               peak of allocated bytes and 256 MiB; a gather, if reserved bytes are 1.75 times the
 *               peak of active bytes; a wait inserted into the stream; pages reclaimed after a
 *               wait; new pages
 *            7  before an OOM: all waits, all free memory merged and reclaimed, free blocks of
 *               USE_ON_OOM pools; else NO_SPACE
 *            On a full device with less than a quarter free, a large request takes the spot that
 *            needs the fewest pages before it tries rungs 3 to 7.
 *
 * Pages      Pages of the default pool and of pools without users can be moved. A private pool
 *            keeps its pages, because a graph may replay its addresses. USE_ON_OOM pools without
 *            NO_REMAP give free pages before an OOM. A device without pages (traits.page_bytes 0)
 *            gives whole segments.
 *
 * Price      Reserved bytes stay within `budget` times the peak of active bytes; pages are moved
 *            instead. A move is rent. The first moves, as many as the peak has pages, are free;
 *            each further one buys a page beyond the budget, while the device has one. Suppose a
 *            program needs no moves with X pages beyond its budget, has P pages at its peak, and
 *            needs at most N pages per request. Then it moves at most P + X + N pages in total. It
 *            reserves at most min(X + N, moves - P) pages beyond the budget. So driver time is at
 *            most that of creating all P + X pages at once plus as many moves. Bytes are at most
 *            those of a program that never moves pages. A layout moves its own pages once. Each of
 *            the first four layouts resets the rent: the bound then counts from there.
 *
 * Cost       A hit: O(1), no allocation, no driver call; at most 16 blocks of a bin, and while
 *            blocks are pending 8 events of each of 4 streams. A miss: a bounded search plus the
 *            driver calls for its pages. Before an OOM: every block. A new stream: at most 256
 *            records and 4096 blocks. Memory: 64 bytes per block; 4 bytes per 64 KiB of the first
 *            segment. A packing: some milliseconds, at most about a second, in the thread that
 *            takes its job (wants_job).
 *
 * Bounds     4 TiB of pages; the page size is a power of two.
 *
 * The invariants P1 to P12 are stated in paged_check.c, each next to the code that checks it.
 */

#include "place/paged/record/paged_conf.h"
#include "place/place.h"

struct dryi_paged_options {
    struct dryi_paged_conf conf;
    struct dry_device device;
    const struct dry_memory *memory;
    struct dryi_place_observer observer; /* event NULL: none */
    bool progress_is_told;               /* see struct dryi_torch_options */
    /* Unused stream records are recycled once there are this many streams; 0: 32. */
    uint32_t streams_kept;
    /*
     * Called from inside alloc when a job is ready for ops->take_job. NULL: the place packs at
     * once, inside alloc.
     */
    struct dryi_paged_call wants_job;
};

/* Create a place. The caller ends it with ops->destroy, which returns all memory to the device. */
DRY_CHECK_RESULT enum dry_status dryi_paged_create(
    const struct dryi_paged_options *options, struct dryi_place *place,
    struct dry_error *err);

/*
 * The two functions that a pool calls most, declared here rather than in ops. With link-time
 * optimization they are inlined into the pool's alloc and free, which saves 2 % of a pair's time.
 */

struct dryi_cache_block {
    uint64_t address;
    dryi_block block;
    bool is_registered;  /* now registered with the caller, as register_address() does */
    bool was_registered; /* registered before; or the index finds the block */
};

/*
 * Allocate at least one byte for the cache's stream, and register the block if possible. Requires
 * that caches are not shared, and that no scope or capture is active. has_room: the caller can
 * register another block. Without room, only a small block that is already registered is returned,
 * else MEMORY.
 */
enum dry_status dryi_paged_cache_alloc(struct dryi_cache *cache, uint64_t size,
                                       bool has_room, struct dryi_cache_block *got);
/* Free the block in use that begins at this address. ARGUMENT: the index finds none. */
enum dry_status dryi_paged_free_found(void *self, uint64_t address);

#endif
