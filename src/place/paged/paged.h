/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_H
#define DRYI_PLACE_PAGED_H

/*
 * Our own placement: addresses are cheap, pages are not.
 *
 * A pool (the default one, each private one) has two arenas: small, for requests up to
 * 64 KiB, and large. An arena is a growing set of segments, reservations of addresses. Under
 * it lie pages of the device's size (2 MiB), created once and kept; which page lies under
 * which address may change, so that free memory anywhere can serve a request everywhere.
 *
 * Nouns: segment, a reservation; block, a part of a segment, gapless in address order: used, free
 * (its pages are mapped) or a hole (they are not; holes begin and end at pages); free list, the
 * free blocks of one arena that one stream, or everybody, may take at once; page, memory
 * apart from addresses; epoch, a stream's count of events: what was freed in an epoch is
 * done when an event of that epoch has passed.
 *
 * A request is rounded to 512 bytes and served
 *   1  small: from the stream cache, exact-size stacks of the arena and stream (last in, first out;
 *      at most 1024 blocks of a free list); large too, of sizes that repeat, while threads share
 *      the stream caches (place.h)
 *   2  from the stream's own free list: bins of 32 octaves by 32, the first that fits among 16 blocks
 *      of the own bin, else of the lowest bin above
 *   3  from the shared free list, once more after the stream caches were flushed: the own ones until it is
 *      enough, then all
 *   4  from another stream's free list, where the order is known, then where an event has passed
 *   5  by mapping pages under a hole, chosen to need the fewest: free pages of ours first, then
 *      new ones while reserved bytes stay under budget x peak of live bytes, then pages from
 *      under free blocks whose uses are complete, the largest first
 *   6  where more is pending than ever was allocated (and than 256 MiB), the host waits for the
 *      oldest events; where reserved is 1.75 times what ever was active, now and then all that
 *      streams hold is gathered. From another stream with a wait put in; then pages from under
 *      blocks whose uses can be waited for; then new ones beyond the budget
 *   7  when the device or the limit says no: events waited for, oldest first and only until
 *      it is enough, everything free given to everybody and merged, pages taken from every
 *      free block; then the free blocks of USE_ON_OOM pools; else NO_SPACE.
 * On a full device with less than a quarter of it free, large requests go straight to the spot
 * that needs the fewest pages, mapped or not: a few microseconds for the last percents.
 *
 * Large requests of the default pool are told to the forecast (place/forecast/forecast.h). Once their period
 * is known it is packed, in one segment, around what is alive: it is packed, at once or by whoever
 * takes such jobs; the streams are waited for, once; the layout's pages are brought there from
 * under free blocks, and what neither it nor anything alive needs is released. From then on each
 * request of the period goes where the layout has it if it may, before anything else is tried: the
 * blocks there must be free, and of its stream, or over, or such that it can wait for them. A
 * layout that would need more pages than there are is not taken. A wrong hint is refused, and can
 * cost memory or time, nothing else.
 *
 * Where the layout gives a place to another stream next, that stream may be made to wait for it: so
 * many waits are put in a period as places change streams in it, and a few more.
 *
 * Pages of the default pool move, and those of pools without users. A private pool keeps its
 * own until then, for a graph may replay what it recorded, but for USE_ON_OOM pools without
 * NO_REMAP, whose free pages may go to prevent an OOM. While only one stream is ever seen there
 * are no events until pages have to be moved; then one event serves all that was freed before.
 * A block of another free list is merged with a neighbour once its uses are complete; while threads share
 * the stream caches, only where all of them are held, now and then before pages are asked for. Between two
 * streams' blocks a divider comes to lie then, so that each can cut and merge up to there without
 * the others (paged_divider.c). The record of a stream of which nothing is left is the next new
 * one's (paged_recycle.c): what is kept is for as many streams as there are with something. A free list of
 * a stream in a private pool goes when nothing is of it and others are made (paged_list.c): there
 * are hardly more than hold something, but for those of the stream that asks.
 *
 * Invariants (dryi_paged_check walks them all)
 *   P1  the blocks of a segment lie gapless in address order and fill it; it is on its arena's list
 *   P2  no two neighbours are both holes, or both free on the same free list
 *   P3  a free block is on its free list's bin exactly once, and a bin's bit is set exactly when
 *       the bin is not empty
 *   P4  every page lies under exactly one place, or in the stock; a page lies under every
 *       address that no hole covers, and under no other
 *   P5  statistics and counters are what a walk gives
 *   P6  a used block lies on no free list and overlaps no other; what waits for streams is not
 *       given to others before they are done
 *   P7  pages of a NO_REMAP pool stay where they are while the pool has users
 *   P8  of a layout's segment, the last block that begins in each page is known; a block waits for
 *       the step that the layout has in its place, and is known by it
 *   P9  dividers lie between blocks of two streams that share the place, and every record is a
 *       block's, or on one list
 *   P10 only what is in use, on a stream cache or waiting for its successor is known by its address, and
 *       the address of what is said to be found leads to it
 *   P11 a pool is found by its id; those that nobody uses are on one list, those that are gone
 *       on another
 *   P12 a free list of a stream is on the list of that and on its arena's, or is gone and leaves its
 *       place
 * Where the device has no pages (traits.page_bytes 0) segments are ranges from alloc, without
 * holes, given back whole.
 *
 * Cost       O(1) a request and a free that hit: no loop but the scan of 16; a miss costs a
 *            bounded scan and the driver's calls for its pages; the way to an OOM looks at every
 *            block. While blocks wait, a request asks 4 streams about 8 events each, in turns. For
 *            a new stream 256 others are looked at, at most, twice where many are gone, and 4096 of
 *            their free blocks and free lists; for a stream that is new to a private pool 4 free lists of
 *            others for each of its own. The first request
 *            that a layout does not expect merges what waits for its steps, 1024 blocks at most. No
 *            memory is taken on a hit; a record is 64 bytes a block, and where large ones lie in
 *            the first segment, 4 bytes for 64 KiB lead to them.
 *            A layout is packed by whoever takes its job (wants_job), else in the calling thread:
 *            mostly in some milliseconds, in about a second for the 8192 requests and runs of
 *            live blocks it may have; periods are learnt from records that grow to 4 MiB while
 *            there is none.
 * Bounds     4 TiB of pages in all, also where the device knows no limit; pages are a power of
 *            two.
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
 * What a pool calls most, by name and not by ops: linked as one, the library has both inside the
 * pool's own two calls (a fiftieth of a pair's time).
 */

struct dryi_cache_block {
    uint64_t address;
    dryi_block block;
    bool is_registered; /* by its stream cache, as cache_register says */
    bool
        was_registered; /* and was before: the caller has its address; or it is found by it */
};

/*
 * While not shared, with no pool or capture begun: alloc for the stream cache's stream, of at least one
 * byte, and what could be kept of what it found. Without room for it with the caller: a small
 * block that is known already, or DRY_ERR_MEMORY.
 */
enum dry_status dryi_paged_cache_alloc(struct dryi_cache *cache, uint64_t size,
                                       bool has_room, struct dryi_cache_block *got);
/* As free of the block that begins there. ARGUMENT: none of those that cache_alloc says are found. */
enum dry_status dryi_paged_free_found(void *self, uint64_t address);

#endif
