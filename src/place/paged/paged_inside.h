/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_INSIDE_H
#define DRYI_PLACE_PAGED_INSIDE_H

/*
 * What the files of place/paged do for each other: paged.c (requests and frees),
 * paged_ladder.c (what a miss does), paged_spot.c (where pages would go), paged_page.c
 * (pages and segments), paged_block.c (records, split, merge), paged_list.c (bins and best
 * fit), paged_cache.c (whole blocks at hand), paged_divider.c (whose the links between blocks
 * are), paged_stream.c (epochs, events), paged_order.c (what streams know of each other),
 * paged_recycle.c (streams of which nothing is left),
 * paged_reclaim.c (giving back), paged_expect.c
 * (periods), paged_park.c (what waits for the request that the layout has there next),
 * paged_job.c (how a layout is made), paged_index.c (blocks by their addresses), paged_stats.c,
 * paged_layout.c (walk), paged_check.c.
 */

#include "base/ablate.h"
#include "base/bits.h"
#include "base/inline.h"
#include "place/paged/paged_pool.h"
#include "place/paged/paged_state.h"

/* --- paged_stats.c ------------------------------------------------------------------------ */

static inline void
stat_raise(struct paged_stat *t, bool small, uint64_t amount)
{
    int64_t now = t->current[small] += (int64_t)amount;
    if (now > t->peak[small])
        t->peak[small] = now;
    int64_t all = t->current[0] + t->current[1];
    if (all > t->all_peak)
        t->all_peak = all;
}

static inline void
stat_lower(struct paged_stat *t, bool small, uint64_t amount)
{
    t->current[small] -= (int64_t)amount;
    t->freed[small] += (int64_t)amount;
}

/* A block of so many bytes is in use for a request, or no more: the first three statistics. */
static inline void
stat_taken(struct paged_stat *t, bool small, uint64_t bytes, uint64_t requested)
{
    stat_raise(&t[STAT_ALLOCATION], small, 1);
    stat_raise(&t[STAT_ALLOCATED_BYTES], small, bytes);
    stat_raise(&t[STAT_REQUESTED_BYTES], small, requested);
}

static inline void
stat_given(struct paged_stat *t, bool small, uint64_t bytes, uint64_t requested)
{
    stat_lower(&t[STAT_ALLOCATION], small, 1);
    stat_lower(&t[STAT_ALLOCATED_BYTES], small, bytes);
    stat_lower(&t[STAT_REQUESTED_BYTES], small, requested);
}

static inline void
stat_add(struct dryi_paged *p, enum stat_name name, bool small, uint64_t amount)
{
    stat_raise(&p->stats[name], small, amount);
}

static inline void
stat_sub(struct dryi_paged *p, enum stat_name name, bool small, uint64_t amount)
{
    stat_lower(&p->stats[name], small, amount);
}

static inline uint64_t
stat_all(const struct dryi_paged *p, enum stat_name name)
{
    return (uint64_t)(p->stats[name].current[0] + p->stats[name].current[1]);
}

/* An alloc while blocks are pending: the peaks of both together. */
DRYI_NOINLINE void dryi_paged_note_active(struct dryi_paged *p);
/* The highest that allocated and pending bytes have been. */
uint64_t dryi_paged_active_peak(const struct dryi_paged *p);
DRYI_NOINLINE void dryi_paged_tell_observer(struct dryi_paged *p, enum dry_action action,
                                            uint32_t block, uint64_t addr, uint64_t size);

static inline void
dryi_paged_tell(struct dryi_paged *p, enum dry_action action, uint32_t block,
                uint64_t addr, uint64_t size)
{
    if (p->observer.event)
        dryi_paged_tell_observer(p, action, block, addr, size);
}

void dryi_paged_reset_stats(void *self, bool peaks, bool accumulated);
void dryi_paged_get_stats(const void *self, struct dry_stats *stats);
void dryi_paged_get_counters(const void *self, struct dryi_place_counters *counters);

/* --- paged_block.c ------------------------------------------------------------------------ */

DRYI_NOINLINE bool dryi_paged_block_grow(struct dryi_paged *p, uint32_t count);

/* Made for one cut, two of them dividers, or dropped by one merge, at most. */
#define RECORDS_ONCE 4u

/* A cut can be made, and no record moves. */
static inline bool
dryi_paged_block_has_once(const struct dryi_paged *p)
{
    return p->dead.count >= RECORDS_ONCE ||
           p->block_capacity - p->block_count >= RECORDS_ONCE;
}

/*
 * So many records can be made without taking memory, and when they are, there is still what the
 * request under way needs to be cut in the end.
 */
static inline bool
dryi_paged_block_reserve(struct dryi_paged *p, uint32_t count)
{
    count += RECORDS_ONCE;
    return p->dead.count >= count || dryi_paged_block_grow(p, count);
}

/*
 * A record behind `after` (NONE: the first of its segment), of this free list but not on it: one of
 * those that the free list has, if it has any.
 */
uint32_t dryi_paged_block_make(struct dryi_paged *p, uint32_t list, uint32_t segment,
                               uint32_t after, uint64_t addr, uint64_t size);
/* What is behind the first `size` bytes becomes a block of its own, on no free list. */
uint32_t dryi_paged_block_split(struct dryi_paged *p, uint32_t block, uint64_t size);
/* The first `size` bytes of a free block, which stays on its free list; the new block is on none. */
uint32_t dryi_paged_block_cut(struct dryi_paged *p, uint32_t block, uint64_t size);
/* `block` takes in the one behind it, which is on no free list. */
void dryi_paged_block_merge(struct dryi_paged *p, uint32_t block);
void dryi_paged_block_drop(struct dryi_paged *p, uint32_t block);
/* One that is on no list and of no block; records for one are reserved. */
uint32_t dryi_paged_record_take(struct dryi_paged *p);
/* The opposite. */
void dryi_paged_record_drop(struct dryi_paged *p, uint32_t block);
/* So many are the free list's own, or as many as there are. */
void dryi_paged_records_refill(struct dryi_paged *p, struct free_list *s,
                               uint32_t wanted);
/* A free block or a hole, on no free list: merge with what may be merged, and list. */
uint32_t dryi_paged_block_coalesce(struct dryi_paged *p, uint32_t block);
/* The free block lies elsewhere from now on. */
void dryi_paged_block_move(struct dryi_paged *p, uint32_t block, uint32_t list,
                           uint64_t epoch);

/* --- paged_divider.c ------------------------------------------------------------------------ */

/* Whatever a cut of this block changes, or its merge with its neighbours, is its stream cache's own. */
bool dryi_paged_is_enclosed(const struct dryi_paged *p, uint32_t block);
/*
 * With the place: dividers between a block of a stream and those of others; records for two are
 * there.
 */
void dryi_paged_divide(struct dryi_paged *p, uint32_t block);
/* Alone at the place: there is no divider any more, if it is one; NONE is none. */
void dryi_paged_divider_drop(struct dryi_paged *p, uint32_t divider);
/* Not often, O(1) a request: free memory that lies on both sides of one is merged, if it may be. */
void dryi_paged_dividers_merge(struct dryi_paged *p);
/* None at all. */
void dryi_paged_dividers_drop(struct dryi_paged *p);
/* The block is of another free list. */
DRYI_NOINLINE void dryi_paged_block_relist(struct dryi_paged *p, uint32_t block,
                                           uint32_t list);

/* The block, which is on no free list, is of this one. */
static inline void
dryi_paged_block_assign(struct dryi_paged *p, uint32_t block, uint32_t list)
{
    if (p->blocks[block].list != list)
        dryi_paged_block_relist(p, block, list);
}

/* --- paged_list.c ------------------------------------------------------------------------ */

static inline uint32_t
bin_of(uint64_t size)
{
    uint64_t grains = size >> GRAIN_SHIFT;
    unsigned above = dryi_log2_floor(grains | 32) - 5; /* the first 64 bins are exact */
    return above * 32 + (uint32_t)(grains >> above);
}

/* The first bin with blocks at or above `bin`, NONE if there is none. */
static inline uint32_t
bin_at_least(const struct free_list *s, uint32_t bin)
{
    uint32_t octave = bin / 32;
    if (octave >= OCTAVE_COUNT) /* of a request that no free list could hold */
        return NONE;
    uint32_t bits = s->bins[octave] >> (bin % 32) << (bin % 32);
    uint32_t above = s->octaves & ~((UINT32_C(2) << octave) - 1);
    if ((bits | above) == 0)
        return NONE;
    /* Which of them it is cannot be foretold: both are looked up. */
    uint32_t next = (uint32_t)__builtin_ctz(above | UINT32_C(1) << 31);
    uint32_t next_bits = s->bins[next];
    octave = bits == 0 ? next : octave;
    bits = bits == 0 ? next_bits : bits;
    return octave * 32 + (uint32_t)__builtin_ctz(bits);
}

/* The last bin with blocks at or below `bin`, NONE if there is none. */
uint32_t dryi_paged_bin_at_most(const struct free_list *s, uint32_t bin);
void dryi_paged_list_insert(struct dryi_paged *p, uint32_t block);
void dryi_paged_list_remove(struct dryi_paged *p, uint32_t block);
/* The best of a few blocks of at least `size` bytes, still on its free list; NONE. */
uint32_t dryi_paged_list_find(const struct dryi_paged *p, const struct free_list *s,
                              uint64_t size);
/* The same among those of an epoch up to `epoch`, a bounded look. */
uint32_t dryi_paged_list_find_old(const struct dryi_paged *p, const struct free_list *s,
                                  uint64_t size, uint64_t epoch);
/* A fresh free list, NONE: no memory. */
uint32_t dryi_paged_list_make(struct dryi_paged *p, uint32_t arena,
                              enum free_list_kind kind, uint32_t stream);
/*
 * The free list of a stream in an arena, made if need be; NONE: no memory. For each that is made in a
 * private pool a few are looked at, and those of other streams go that nothing is of.
 */
DRYI_NOINLINE uint32_t dryi_paged_list_ask(struct dryi_paged *p, uint32_t arena,
                                           uint32_t stream);
/* The same if it is there; NONE. */
uint32_t dryi_paged_list_known(const struct dryi_paged *p, uint32_t arena,
                               uint32_t stream);

static inline uint32_t
dryi_paged_list_index(struct dryi_paged *p, uint32_t arena, uint32_t stream)
{
    const struct arena *a = &p->arenas[arena];
    return a->last_stream == stream ? a->last_list
                                    : dryi_paged_list_ask(p, arena, stream);
}

void dryi_paged_lists_finish(struct dryi_paged *p);

/* May the pool of `free list` take this free block at once, without a word to the device? */
bool dryi_paged_is_usable(const struct dryi_paged *p, uint32_t list,
                          const struct block *b);

/* --- paged_cache.c ------------------------------------------------------------------------ */

/* The stack for blocks of this size; stack_count or more: there is none. */
static inline size_t
stack_slot(const struct free_list *s, uint64_t bytes)
{
    uint64_t grains = bytes >> GRAIN_SHIFT;
    if (!s->is_small && s->stack_count > 0)
        return dryi_mix64(grains) % CACHE_LARGE_SIZES;
    return (size_t)grains;
}

/* What is said of a size that was asked for twice, with none of its stack in between. */
static inline uint32_t
cache_wanted_again(uint64_t bytes)
{
    return (uint32_t)(bytes >> GRAIN_SHIFT) << 1 | 1;
}

/* A large size is asked for. */
static inline void
dryi_paged_cache_want(struct free_list *s, uint64_t bytes)
{
    uint32_t *wanted = &s->wanted[stack_slot(s, bytes)];
    uint32_t again = cache_wanted_again(bytes);
    *wanted = (*wanted | 1) == again ? again : again ^ 1;
}

/* The newest block of exactly this size, still there; NONE. */
static inline uint32_t
dryi_paged_cache_top(const struct dryi_paged *p, const struct free_list *s,
                     uint64_t bytes)
{
    size_t slot = stack_slot(s, bytes);
    uint32_t block = slot < s->stack_count ? s->stacks[slot] : NONE;
    return block != NONE && p->blocks[block].size == bytes ? block : NONE;
}

/* The newest block of a stack, which there is. */
static inline void
dryi_paged_cache_pop(struct dryi_paged *p, struct free_list *s, size_t slot)
{
    uint32_t next = p->blocks[s->stacks[slot]].bin_next;
    s->stacks[slot] = next;
    s->stacked--;
    prefetch_block(p, next);
}

/* The newest block of exactly this size, off its stream cache; NONE. */
static inline uint32_t
dryi_paged_cache_take_top(struct dryi_paged *p, struct free_list *s, uint64_t bytes)
{
    uint32_t top = dryi_paged_cache_top(p, s, bytes);
    if (top != NONE)
        dryi_paged_cache_pop(p, s, stack_slot(s, bytes));
    return top;
}

/* A large size is asked for again and again: its blocks stay on the stream cache. */
static inline bool
dryi_paged_cache_wants(const struct free_list *s, uint64_t bytes)
{
    return s->stack_count > 0 &&
           s->wanted[stack_slot(s, bytes)] == cache_wanted_again(bytes);
}

/* A free block of so many bytes, on no free list, goes to the stream cache of its size. False: no room. */
static inline bool
dryi_paged_cache_push(struct dryi_paged *p, struct free_list *s, uint32_t block,
                      uint64_t bytes)
{
    size_t slot = stack_slot(s, bytes);
    if (slot >= s->stack_count || s->stacked >= CACHE_MAX)
        return false;
    uint32_t top = s->stacks[slot];
    if (!s->is_small && top != NONE && p->blocks[top].size != bytes)
        return false;
    struct block *b = &p->blocks[block];
    b->state = BLOCK_CACHED;
    b->bin_next = top;
    s->stacks[slot] = block;
    s->stack_bits[slot / 32] |= UINT32_C(1) << (slot % 32);
    s->stacked++;
    return true;
}

/* Stacks for a free list; it goes without where there is no memory. */
void dryi_paged_cache_make(struct dryi_paged *p, struct free_list *s);
/* A free block: nobody keeps its address any more. */
void dryi_paged_cache_forget(struct dryi_paged *p, struct block *b);
/* The free list may have blocks on its stream cache: they are flushed with the others. */
void dryi_paged_cache_note(struct dryi_paged *p, uint32_t list);
/* It has none any more. */
void dryi_paged_cache_unnote(struct dryi_paged *p, struct free_list *s);
/* The end of its stacks, and of all stream caches that were asked for. */
void dryi_paged_cache_finish(struct dryi_paged *p, struct free_list *s);
void dryi_paged_caches_finish(struct dryi_paged *p);
/* What lies on stream caches becomes ordinary free memory; was there any? */
bool dryi_paged_flush(struct dryi_paged *p);
/* The same of one free list; `most` blocks of it. */
void dryi_paged_flush_list(struct dryi_paged *p, struct free_list *s);
void dryi_paged_flush_some(struct dryi_paged *p, struct free_list *s, uint32_t most);
/*
 * The same of one free list, small blocks from `bytes` up first, large ones in no order, until one of
 * `bytes` is there, but `most` blocks at most: is one?
 */
bool dryi_paged_flush_for(struct dryi_paged *p, uint32_t list, uint64_t bytes,
                          uint32_t most);
struct dryi_cache *dryi_paged_cache_ask(void *self, uint64_t stream);
void dryi_paged_cache_flush(struct dryi_cache *cache);
void dryi_paged_cache_give_back(struct dryi_cache *cache);
void dryi_paged_cache_share(void *self, bool is_shared);
uint64_t dryi_paged_cache_take(struct dryi_cache *cache, uint64_t size);

/* The newest block of a stack is in use for a request of so many bytes. NONE: it is not known. */
static inline uint32_t
dryi_paged_cache_take_registered(struct dryi_paged *p, struct free_list *s, size_t slot,
                                 uint64_t size)
{
    uint32_t block = s->stacks[slot];
    if (block == NONE || p->blocks[block].address != ADDRESS_BY_TABLE)
        return NONE;
    dryi_paged_cache_pop(p, s, slot);
    p->blocks[block].state = BLOCK_USED;
    p->blocks[block].requested = size;
    return block;
}

bool dryi_paged_cache_put(struct dryi_cache *cache, dryi_block block);
bool dryi_paged_cache_cut(struct dryi_cache *cache, uint64_t size, bool has_place,
                          dryi_block *block);
bool dryi_paged_cache_merge(struct dryi_cache *cache, dryi_block block, bool has_place);
bool dryi_paged_cache_register(struct dryi_cache *cache, dryi_block block);
bool dryi_paged_cache_holds(const void *self, dryi_block block);
uint64_t dryi_paged_cache_balance(void *self, struct dryi_cache *const *caches,
                                  size_t count);
void dryi_paged_cache_watch(void *self, struct dryi_cache_watcher watcher);

/* --- paged_page.c ------------------------------------------------------------------------- */

/* The whole pages inside [addr, end): *hi >= *lo. */
void dryi_paged_whole_pages(const struct dryi_paged *p, uint64_t addr, uint64_t end,
                            uint64_t *lo, uint64_t *hi);
/* A page more in stock. NO_SPACE: the limit, or the device. */
enum dry_status dryi_paged_page_create(struct dryi_paged *p);
/* One page of the stock back to the device. */
void dryi_paged_page_release(struct dryi_paged *p);
/* The pages [lo, hi) of a free block, on its free list, go to the stock. */
enum dry_status dryi_paged_unmap(struct dryi_paged *p, uint32_t block, uint64_t lo,
                                 uint64_t hi);
/*
 * Pages of the stock come under [lo, hi) of a hole, which becomes free of `free list`; records
 * for two blocks are reserved. *filled: the free block it is part of.
 */
enum dry_status dryi_paged_map(struct dryi_paged *p, uint32_t hole, uint64_t lo,
                               uint64_t hi, uint32_t list, uint32_t *filled);
/*
 * A segment with room for `size` bytes: one hole. As large as segments of the arena are, or `least`,
 * and it is the largest half, quarter, ... of that for which the device has addresses.
 */
enum dry_status dryi_paged_segment_reserve(struct dryi_paged *p, uint32_t arena,
                                           uint64_t size, bool least);
/* Without pages: a range from the device, one free block of `free list`. */
enum dry_status dryi_paged_segment_alloc(struct dryi_paged *p, uint32_t arena,
                                         uint64_t size, uint32_t list);
/* A segment that is one hole, or one free range, goes back to the device. */
void dryi_paged_segment_return(struct dryi_paged *p, uint32_t segment);
/* Everything back, at the end. */
void dryi_paged_segments_finish(struct dryi_paged *p);

/* --- paged_spot.c ------------------------------------------------------------------------- */

/* What a search looks at, and what it counts first. */
enum search_kind {
    SEARCH_FRESH, /* some spots beside holes; pages to be mapped */
    SEARCH_TOUCH, /* some of all spots; pages that could serve elsewhere, mapped or not */
    SEARCH_JOINED, /* some of free memory alone; without pages, too */
    SEARCH_ALL,    /* all spots; as SEARCH_TOUCH */
    SEARCH_LAST,   /* all spots; and pools that give their pages before an OOM do */
    SEARCH_FREE,   /* all spots; as SEARCH_JOINED */
};

/*
 * The cheapest spot for the request, its block NONE: there is none. Of all spots it is one that
 * has its pages if any has: those that are counted are in stock, new ones, or under other blocks
 * that are complete. MEMORY: of all of them.
 */
enum dry_status dryi_paged_spot_find(struct dryi_paged *p, const struct request *r,
                                     enum search_kind kind, struct spot *spot);
/* Fill and take it: its pages are in stock. *block is out of every free list, of r->bytes. */
enum dry_status dryi_paged_spot_take(struct dryi_paged *p, const struct request *r,
                                     const struct spot *spot, uint32_t *block);
/* Cut `bytes` at addr out of a free block that is on no free list; one or two records. */
DRYI_NOINLINE uint32_t dryi_paged_carve(struct dryi_paged *p, uint32_t block,
                                        uint64_t addr, uint64_t bytes);
/* Make one block, out of every free list, of the free blocks in [addr, end), from `at` on. */
uint32_t dryi_paged_carve_along(struct dryi_paged *p, uint32_t at, uint64_t addr,
                                uint64_t end);

/* --- paged_ladder.c ----------------------------------------------------------------------- */

/* Is memory so short that each page counts? */
static inline bool
dryi_paged_is_tight(const struct dryi_paged *p)
{
    uint64_t reserved = stat_all(p, STAT_RESERVED_BYTES);
    uint64_t live = stat_all(p, STAT_ALLOCATED_BYTES);
    return !DRYI_ABLATED(tight) && p->is_full && p->conf.remap && p->page_bytes > 0 &&
           reserved - live < reserved / TIGHT_SHARE;
}

/* What no free list had: a block of r->bytes out of every free list. */
DRYI_NOINLINE enum dry_status dryi_paged_climb(struct dryi_paged *p,
                                               const struct request *r, uint32_t *block);
/* All of that failed for a small request: `r` becomes the least that large ones ask for. */
enum dry_status dryi_paged_take_larger(struct dryi_paged *p, struct request *r,
                                       uint32_t *block);
/* Make `stream` wait for all that was freed on `on` up to `epoch`, by an event of that one. */
enum dry_status dryi_paged_follow(struct dryi_paged *p, uint32_t stream, uint32_t on,
                                  uint64_t epoch);
/* From the stream's own free list or everybody's; NONE. */
uint32_t dryi_paged_take_own(struct dryi_paged *p, const struct request *r);
/* Of a free block that is on its free list, the bytes of the request; NONE of NONE. */
uint32_t dryi_paged_take_found(struct dryi_paged *p, const struct request *r,
                               uint32_t found);
/* Pages in stock for a spot, not beyond the budget. *moved: blocks have changed on the way. */
enum dry_status dryi_paged_fund(struct dryi_paged *p, const struct request *r,
                                const struct spot *spot, bool *moved);

/* --- paged_expect.c ------------------------------------------------------------------------- */

DRYI_NOINLINE void dryi_paged_layout_add(struct dryi_paged *p, uint32_t block);
DRYI_NOINLINE void dryi_paged_layout_take_out(struct dryi_paged *p, uint32_t block);

/* A block begins at its address from now on. */
static inline void
dryi_paged_note_begin(struct dryi_paged *p, uint32_t block)
{
    if (p->blocks[block].segment == p->layout.segment)
        dryi_paged_layout_add(p, block);
}

/* No block will begin there; the one before it is known. */
static inline void
dryi_paged_note_end(struct dryi_paged *p, uint32_t block)
{
    if (p->blocks[block].segment == p->layout.segment)
        dryi_paged_layout_take_out(p, block);
}

/*
 * The forecast are told of the request. NONE: nothing is wished for it, or it cannot lie there.
 * A period that is known now is packed: its streams are waited for, pages move, and what
 * neither the layout nor anybody alive needs goes back to the device.
 */
uint32_t dryi_paged_take_expected(struct dryi_paged *p, struct request *r);
/* All about this segment; false: no memory. */
bool dryi_paged_layout_begin(struct dryi_paged *p, uint32_t segment);
/*
 * If there are enough of them, everything freed is waited for, and the layout's pages come under
 * it, and what is beyond the peak goes to the device. False: it cannot be.
 */
bool dryi_paged_layout_bring_pages(struct dryi_paged *p);
/* The segment goes; what is packed there will be refused. */
void dryi_paged_layout_finish(struct dryi_paged *p);
/* What is wrong with what is known about the segment; NULL: nothing. */
const char *dryi_paged_layout_check(const struct dryi_paged *p);

/* --- paged_park.c ------------------------------------------------------------------------- */

/* The layout has so many steps from now on; none has a block, nor had before. False: no memory. */
bool dryi_paged_parking_begin(struct dryi_paged *p, uint32_t step_count);
/* The layout goes, or the place; nobody asks for what waits. */
void dryi_paged_parking_finish(struct dryi_paged *p);
/* What waits becomes ordinary free memory; was there any? */
DRYI_NOINLINE bool dryi_paged_unpark_all(struct dryi_paged *p);
/* The same of one block. */
DRYI_NOINLINE void dryi_paged_unpark(struct dryi_paged *p, uint32_t block);

/* The block that waits for this step; NONE. */
static inline uint32_t
dryi_paged_parked_find(const struct dryi_paged *p, uint32_t step)
{
    return step < p->layout.step_count ? p->layout.parked[step] : NONE;
}

/* Which there is: it waits no more, and is on no free list. */
static inline void
dryi_paged_parked_pop(struct dryi_paged *p, uint32_t step)
{
    p->layout.parked[step] = NONE;
    p->layout.parked_steps[step / 64] &= ~(UINT64_C(1) << (step % 64));
    p->layout.parked_count--;
}

/* Is the step that a block of the layout's segment names there, by the layout of now? */
static inline bool
dryi_paged_is_successors_place(const struct dryi_paged *p, const struct free_list *s,
                               const struct block *b)
{
    return dryi_forecast_is_step_at(p->forecast, b->bin_next,
                                    b->addr - p->segments[b->segment].addr, b->size,
                                    s->stream);
}

/*
 * A block in use is to wait for its successor when it is free, if the layout there is now has that one
 * there, for it may be of an older one. Where memory is short it is not: what is free is looked
 * at then.
 */
static inline bool
dryi_paged_may_park(const struct dryi_paged *p, const struct free_list *s,
                    const struct block *b)
{
    const struct layout *layout = &p->layout;
    return !DRYI_ABLATED(parking) && b->has_ticket && b->bin_next < layout->step_count &&
           layout->parked[b->bin_next] == NONE && layout->parked_count < PARKED_MAX &&
           b->segment == layout->segment && !p->is_full &&
           dryi_paged_is_successors_place(p, s, b);
}

/*
 * It may, and nobody uses it any more. Whom the layout has it go to is one stream or the other; were
 * it said to go to both, it is its successor's until that one does not come.
 */
static inline void
dryi_paged_park(struct dryi_paged *p, uint32_t block)
{
    struct layout *layout = &p->layout;
    struct block *b = &p->blocks[block];
    uint32_t successor = b->bin_next;
    b->state = BLOCK_PARKED;
    b->has_ticket = false;
    layout->parked[successor] = block;
    layout->parked_steps[successor / 64] |= UINT64_C(1) << (successor % 64);
    layout->parked_count++;
}

/* What is wrong with what waits; NULL: nothing. So many blocks say they do. */
const char *dryi_paged_parking_check(const struct dryi_paged *p, uint32_t count);

/* --- paged_index.c ------------------------------------------------------------------------- */

/* The segment's large blocks are found from now on, if there is memory for that and it pays. */
void dryi_paged_index_begin(struct dryi_paged *p, uint32_t segment);
/* Pages come under [lo, hi) of a segment. */
void dryi_paged_index_extend(struct dryi_paged *p, uint32_t segment, uint64_t lo,
                             uint64_t hi);
/* The segment goes, or the place. */
void dryi_paged_index_finish(struct dryi_paged *p);
dryi_block dryi_paged_find(const void *self, uint64_t address);

/* Where it stands what began in the stretch of this address; NULL: nowhere. */
static inline uint32_t *
dryi_paged_index_at(const struct address_index *f, uint64_t address)
{
    uint64_t offset = address - f->range.addr;
    if (offset >= f->range.size)
        return NULL;
    uint64_t stretch = offset >> f->shift;
    uint32_t *leaf = f->leaves[stretch >> LEAF_SHIFT];
    return leaf ? &leaf[stretch % LEAF_COUNT] : NULL;
}

/* A large block comes into use: is it found by its address from now on? */
static inline bool
dryi_paged_index_note(struct dryi_paged *p, uint32_t block)
{
    struct block *b = &p->blocks[block];
    uint32_t *begun = dryi_paged_index_at(&p->index, b->addr);
    b->address = begun ? ADDRESS_BY_INDEX : ADDRESS_UNKNOWN;
    if (begun)
        *begun = block;
    return begun != NULL;
}

/* --- paged_job.c -------------------------------------------------------------------------- */

/* A period begins that has no layout. */
DRYI_NOINLINE void dryi_paged_layout_make(struct dryi_paged *p);
void dryi_paged_packing_finish(struct dryi_paged *p);
struct dryi_packing_job *dryi_paged_take_job(void *self);
void dryi_paged_return_job(void *self, struct dryi_packing_job *job);

/* --- paged_recycle.c ------------------------------------------------------------------------- */

DRYI_NOINLINE uint32_t dryi_paged_stream_find(struct dryi_paged *p, uint64_t value);
bool dryi_paged_has_stream(const void *self, uint64_t stream);

/* Of the stream of the last request at once; NONE: no memory for a new one. */
static inline uint32_t
dryi_paged_stream_index(struct dryi_paged *p, uint64_t value)
{
    if (p->last_stream < p->stream_count && p->streams[p->last_stream].value == value)
        return p->last_stream;
    return dryi_paged_stream_find(p, value);
}

/* --- paged_order.c ------------------------------------------------------------------------ */

/* The epoch of `on` up to which `stream` comes behind. */
uint64_t dryi_paged_known_epoch(const struct dryi_paged *p, uint32_t stream, uint32_t on);
/* It comes behind this one; false: no memory. */
bool dryi_paged_learn(struct dryi_paged *p, uint32_t stream, uint32_t on, uint64_t epoch);
/* All that a stream knows of others. */
void dryi_paged_orders_forget(struct dryi_paged *p, uint32_t stream);
/* What the program did by itself: it will do so again. */
void dryi_paged_tell_forecast(struct dryi_paged *p, uint32_t from, uint32_t to,
                              uint64_t epoch);
enum dry_status dryi_paged_stream_waits(void *self, uint64_t stream, uint64_t on);

/* --- paged_stream.c ----------------------------------------------------------------------- */

bool dryi_paged_is_captured(const struct dryi_paged *p, uint32_t stream);
/* Is every use of this free block over, as far as we have seen? */
bool dryi_paged_is_complete(const struct dryi_paged *p, const struct block *b);
/* An event behind everything on the stream so far. */
enum dry_status dryi_paged_mark(struct dryi_paged *p, uint32_t stream);
/* Ask the device how far the stream is. */
void dryi_paged_observe(struct dryi_paged *p, uint32_t stream);
/* Wait until `epoch` of the stream is complete; it has an event. SYSTEM: it may not be. */
enum dry_status dryi_paged_wait(struct dryi_paged *p, uint32_t stream, uint64_t epoch);
/*
 * Wait for the oldest event of a stream that is not captured; false: none is under way, or the
 * device refuses.
 * *skipped: NONE at first, then what a former call of the same loop left there.
 */
bool dryi_paged_wait_oldest(struct dryi_paged *p, uint32_t *skipped);
/* Events for everything freed so far; the first failure is returned, the rest is tried. */
enum dry_status dryi_paged_mark_all(struct dryi_paged *p);
/* Ask up to `count` streams with events under way about `most` of those, in turns. */
DRYI_NOINLINE void dryi_paged_process(struct dryi_paged *p, uint32_t count,
                                      uint32_t most);
/* Frees that captures held back. */
void dryi_paged_release_held(struct dryi_paged *p);
enum dry_status dryi_paged_free(void *self, dryi_block block);
/* The same of a block that is in use. */
enum dry_status dryi_paged_free_used(struct dryi_paged *p, uint32_t block);
enum dry_status dryi_paged_record_stream(void *self, dryi_block block, uint64_t stream);
void dryi_paged_stream_progressed(void *self, uint64_t stream);

/* --- paged_reclaim.c ---------------------------------------------------------------------- */

/* Everything freed so far is complete; what has no event stays where it is. */
void dryi_paged_wait_all(struct dryi_paged *p);
/* Free blocks whose uses are complete belong to everybody, and merge. */
void dryi_paged_sweep(struct dryi_paged *p);
/* Whose pages are taken, and how far it is looked for them. */
enum reclaim_effort {
    RECLAIM_COMPLETE, /* from under some of the blocks whose uses are complete */
    RECLAIM_WAIT,     /* or that can be waited for */
    RECLAIM_ALL,      /* from under all of those */
    RECLAIM_ON_OOM,   /* and from pools that give theirs before an OOM */
};

/*
 * Pages to the stock until it holds `want`, from under free blocks, never from
 * [keep_lo, keep_hi).
 */
enum dry_status dryi_paged_reclaim(struct dryi_paged *p, uint64_t want, uint64_t keep_lo,
                                   uint64_t keep_hi, enum reclaim_effort effort);
/*
 * Where far more is reserved than ever was active: all that many streams hold is waited for
 * and given to everybody. Not often: O(1) a request. False: nothing was done.
 */
bool dryi_paged_gather(struct dryi_paged *p);
enum dry_status dryi_paged_empty_cache(void *self, struct dryi_pool_id id);
enum dry_status dryi_paged_trim(void *self, uint64_t target);
/*
 * The device has no addresses left: those go back under which nothing lies, in whatever pool, and
 * before a part of what lies under those of pools that nobody uses; `oom`, and all that is complete is
 * everybody's: all segments without a block in use. false: there are none.
 */
bool dryi_paged_return_addresses(struct dryi_paged *p, bool oom);
/*
 * Without pages: one free segment back, in its place or behind *from, which becomes the next; `oom`:
 * or of a pool that gives its memory then. false: there is none.
 */
bool dryi_paged_return_segment(struct dryi_paged *p, bool oom, uint32_t *from);
/*
 * A few pools that nobody uses, in turns, for each that was opened since, give their pages to the
 * stock; those of them that have neither pages nor blocks then are no more, or they would pile up,
 * each with its addresses. Amid a capture that is put off.
 */
void dryi_paged_forget_idle_pools(struct dryi_paged *p);

/* --- paged_layout.c, paged_check.c -------------------------------------------------------- */

void dryi_paged_get_block(const void *self, dryi_block block,
                          struct dryi_block_info *info);
enum dry_status dryi_paged_walk(
    const void *self,
    enum dry_status (*visit)(void *visitor, const struct dryi_segment_info *segment,
                             const struct dryi_block_info *blocks, size_t count),
    void *visitor);
enum dry_status dryi_paged_check(const void *self, struct dry_error *err);

#endif
