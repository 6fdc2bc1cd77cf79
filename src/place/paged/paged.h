/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_H
#define DRYI_PLACE_PAGED_H

/*
 * Our own placement: addresses are cheap, pages are not.
 *
 * A pool has two arenas, for small requests (up to 64 KiB) and for large ones. An arena is a growing
 * set of segments. Pages of the device's size (2 MiB or more) are created once and kept, and move
 * under the addresses that need them: free memory anywhere can serve a request everywhere.
 *
 * Nouns      segment: a reservation of addresses. block: a part of a segment, used, free (its pages
 *            are mapped) or a hole (they are not). free list: the free blocks of an arena that one
 *            stream may take at once; the shared list is for all. page: memory apart from addresses;
 *            the stock holds pages under none. epoch: a stream's count of events; an event that is
 *            complete completes all that was freed up to its epoch. layout: the packed period of the
 *            forecast (place/forecast/forecast.h).
 *
 * Rungs      A request is rounded to 512 bytes, and served by the first of these that can:
 *            1  the place that the layout has for the request, large ones of the default pool
 *            2  the stream's cache: freed blocks of exactly this size, the newest first
 *            3  the stream's free list, then the shared one
 *            4  another stream's list, where the order is known or an event is complete
 *            5  pages under a hole: from the stock, new within the budget, reclaimed
 *            6  beyond the budget: the host waits while more is pending than ever was allocated (and
 *               than 256 MiB); all is gathered where reserved is 1.75 times what was ever active; a
 *               wait is put into the stream; pages are reclaimed that must be waited for; new ones
 *            7  before an OOM: all waits, all free memory merged and reclaimed, the free blocks of
 *               USE_ON_OOM pools; else NO_SPACE
 *            On a full device with less than a quarter of it free, large requests go straight to the
 *            spot that needs the fewest pages.
 *
 * Pages      Those of the default pool move, and of pools without users. A private pool keeps its own,
 *            for a graph may replay what it recorded; USE_ON_OOM pools without NO_REMAP give free
 *            pages before an OOM. A device without pages (traits.page_bytes 0) gives whole segments.
 *
 * Price      Reserved bytes stay within `budget` times the peak of active bytes, and pages move
 *            instead. A move is rent. The first moves, as many as the peak has pages, are free; each
 *            further one buys a page beyond the budget, as long as the device has one. Say that a
 *            program needs no move with X pages beyond its budget, and has P pages at its peak, and
 *            that no request needs more than N pages. Then it moves at most P + X + N pages ever. It
 *            reserves at most min(X + N, moves - P) pages beyond the budget. So driver time is at
 *            most that of buying all P + X pages at once, and as many moves; bytes are at most those
 *            of never moving. A layout moves its own pages once. Each of the first four forgives the
 *            rent before it: the bound holds anew from then on.
 *
 * Cost       A hit: O(1), no memory, no driver call; 16 blocks of a bin at most, and while blocks
 *            wait 8 events of 4 streams. A miss: a bounded look and the driver's calls for its pages.
 *            Before an OOM: every block. A new stream: 256 records looked at, 4096 blocks. Memory: 64
 *            bytes a block; 4 bytes for each 64 KiB of the first segment. A packing: some
 *            milliseconds, at most about a second, by whoever takes its job (wants_job).
 *
 * Bounds     4 TiB of pages; pages are a power of two.
 *
 * The invariants P1 to P12 stand in paged_check.c, each beside the code that walks it.
 */

#include "place/paged/record/paged_conf.h"
#include "place/place.h"

struct dryi_paged_options {
    struct dryi_paged_conf conf;
    struct dry_device device;
    const struct dry_memory *memory;
    struct dryi_place_observer observer; /* event NULL: none */
    bool progress_is_told;               /* as in struct dryi_torch_options */
    /* From so many streams on records of which nothing is left are taken again; 0: 32. */
    uint32_t streams_kept;
    /*
     * Called from inside an alloc when there is a job to take (ops->take_job). NULL: nobody
     * takes any, and the place packs at once.
     */
    struct dryi_paged_call wants_job;
};

/* The place of these options; ended by its ops->destroy, which returns everything. */
DRY_CHECK_RESULT enum dry_status dryi_paged_create(
    const struct dryi_paged_options *options, struct dryi_place *place,
    struct dry_error *err);

/*
 * The two calls that a pool makes most, by name and not by ops: linked as one, the library has both
 * inside the pool's own two calls (a fiftieth of a pair's time).
 */

struct dryi_cache_block {
    uint64_t address;
    dryi_block block;
    bool is_registered;  /* with the caller, as register_address() does */
    bool was_registered; /* before, too; or the index finds the block */
};

/*
 * Alloc at least one byte for the cache's stream, and register the block if possible. Requires that
 * caches are not shared and that no scope or capture is begun. has_room: the caller can register one
 * more; without room the call gives a small block that is registered already, or DRY_ERR_MEMORY.
 */
enum dry_status dryi_paged_cache_alloc(struct dryi_cache *cache, uint64_t size,
                                       bool has_room, struct dryi_cache_block *got);
/* Free the block that begins there. ARGUMENT: the index finds none. */
enum dry_status dryi_paged_free_found(void *self, uint64_t address);

#endif
