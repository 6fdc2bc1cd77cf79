/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Caches used by several threads: which thread may change which link between blocks.
 *
 * A link between two blocks of one list is changed with that list's cache held. A link to a hole,
 * or to no block, is changed with the cache of its block. A link between two streams' blocks would
 * belong to both caches, so only a thread that also holds the place changes it. The first such
 * thread inserts a divider. Each stream then changes its own side of the divider with only its
 * cache.
 *
 * A divider is a block record of 0 bytes. It is dropped when a neighbour is assigned to another
 * list, or when one request takes both neighbours. A thread that holds the place and all caches
 * merges across a divider once one neighbour's uses are complete. When sharing ends, all dividers
 * are dropped.
 */

#include "place/paged/paged_cache_shared.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged_stream.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_list.h"
#include "place/paged/record/paged_park.h"
#include "place/paged/record/paged_stats.h"

/* --- dividers ----------------------------------------------------------------------- */

static bool
is_between_streams(const struct dryi_paged *p, uint32_t block, uint32_t other)
{
    if (other == NONE)
        return false;
    uint32_t its = block_list_beside(&p->blocks[other]);
    return its != p->blocks[block].list && its != DIVIDERS &&
           p->lists[its]->kind == FREE_STREAM;
}

/* Insert a divider after `prev`, at its end `addr`. Uses a spare record of `list`. */
static void
put_divider(struct dryi_paged *p, uint32_t list, uint32_t prev, uint64_t addr)
{
    DRYI_ASSERT_SLOW(p->is_shared);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    uint32_t segment = p->blocks[prev].segment;
    uint32_t divider = dryi_paged_block_make(p, list, segment, prev, addr, 0);
    p->blocks[divider].state = BLOCK_DIVIDER;
    p->blocks[divider].bin_prev = NONE;
    p->blocks[divider].bin_next = p->first_divider;
    if (p->first_divider != NONE)
        p->blocks[p->first_divider].bin_prev = divider;
    p->first_divider = divider;
    p->divider_count++;
    p->lists[list]->block_count--;
    block_set_list(&p->blocks[divider], DIVIDERS);
}

/*
 * Insert dividers between a stream's block and neighbours of other streams. Requires the place, and
 * two spare records of the block's list.
 */
static void
divide(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->lists[p->blocks[block].list]->kind == FREE_STREAM);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    const struct block *b = &p->blocks[block];
    if (is_between_streams(p, block, b->prev))
        put_divider(p, b->list, b->prev, b->addr);
    if (is_between_streams(p, block, b->next))
        put_divider(p, b->list, block, block_end(b));
}

static void
drop_dividers(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(!p->is_shared);
    while (p->first_divider != NONE)
        dryi_paged_divider_drop(p, p->first_divider);
}

/*
 * Merge the neighbours of a divider if both are free and one is complete. The complete one moves to
 * the other's list.
 */
static void
merge_across(struct dryi_paged *p, uint32_t divider)
{
    uint32_t prev = p->blocks[divider].prev, next = p->blocks[divider].next;
    if (p->blocks[prev].state != BLOCK_FREE || p->blocks[next].state != BLOCK_FREE)
        return;
    bool is_next_complete = dryi_paged_is_complete(p, &p->blocks[next]);
    if (!p->conf.reuse_passed ||
        (!is_next_complete && !dryi_paged_is_complete(p, &p->blocks[prev])))
        return;
    uint32_t block = is_next_complete ? prev : next;
    dryi_paged_divider_drop(p, divider);
    dryi_paged_list_remove(p, block);
    dryi_paged_block_coalesce(p, block);
}

void
dryi_paged_dividers_merge(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (p->requests - p->dividers_request < p->divider_count)
        return;
    p->dividers_request = p->requests;
    /* If a merge also dropped the next divider, the walk stops; the next call resumes. */
    for (uint32_t at = p->first_divider, next;
         at != NONE && p->blocks[at].state == BLOCK_DIVIDER; at = next) {
        next = p->blocks[at].bin_next;
        merge_across(p, at);
    }
}

/* --- records ------------------------------------------------------------------------ */

/*
 * Give a list spare records for one cut or merge, and space to take back those of a merge. Requires
 * the place.
 */
static void
refill_records(struct dryi_paged *p, struct free_list *s)
{
    DRYI_ASSERT_SLOW(s->has_records);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    if (s->dead.count < RECORDS_ONCE || s->dead.count > RECORDS_MAX - RECORDS_ONCE)
        dryi_paged_records_refill(p, s, RECORDS_REFILL);
}

/* --- beside the place --------------------------------------------------------------------- */

/* Apply p->is_shared to a cache: a shared one also holds large blocks and spare records. */
static void
share_cache(struct dryi_paged *p, struct dryi_cache *f)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct free_list *s = p->lists[f->list_ids[0]];
    if (p->is_shared && s->stack_count == 0)
        dryi_paged_cache_make(p, s);
    f->lists[0] = p->is_shared && s->stack_count > 0 ? s : NULL;
    if (!p->is_shared)
        dryi_paged_flush_list(p, s);
    for (int i = 0; i < 2; i++) {
        s = p->lists[f->list_ids[i]];
        s->has_records = p->is_shared;
        dryi_paged_records_refill(p, s, p->is_shared ? RECORDS_REFILL : 0);
    }
}

struct dryi_cache *
dryi_paged_cache_ask(void *self, uint64_t stream)
{
    struct dryi_paged *p = self;
    uint32_t index = dryi_paged_stream_index(p, stream);
    for (struct dryi_cache *f = p->caches; f; f = f->next) {
        if (f->stream == index)
            return f;
    }
    uint32_t ids[2] = {NONE, NONE};
    for (uint32_t arena = 0; arena < 2 && index != NONE; arena++)
        ids[arena] = dryi_paged_list_index(p, arena, index);
    if (ids[0] == NONE || ids[1] == NONE)
        return NULL;
    struct dryi_cache *f = dryi_memory_zalloc(&p->memory, 1, sizeof *f);
    if (!f)
        return NULL;
    *f = (struct dryi_cache){.place = p, .stream = index, .next = p->caches};
    memcpy(f->list_ids, ids, sizeof ids);
    for (int i = 0; i < 2; i++) {
        p->lists[ids[i]]->stays_cached = true;
        dryi_paged_cache_note(p, ids[i]);
    }
    f->lists[1] = p->lists[ids[1]];
    share_cache(p, f);
    p->caches = f;
    p->streams[index].has_cache = true;
    return f;
}

void
dryi_paged_cache_flush(struct dryi_cache *cache)
{
    for (int i = 0; i < 2; i++)
        dryi_paged_flush_list(cache->place, cache->place->lists[cache->list_ids[i]]);
}

void
dryi_paged_cache_give_back(struct dryi_cache *cache)
{
    struct dryi_paged *p = cache->place;
    DRYI_ASSERT(!cache->is_used); /* its local statistics were added */
    for (int i = 0; i < 2; i++) {
        struct free_list *s = p->lists[cache->list_ids[i]];
        s->stays_cached = s->has_records = false;
        dryi_paged_records_refill(p, s, 0);
    }
    struct dryi_cache **link = &p->caches;
    while (*link != cache)
        link = &(*link)->next;
    *link = cache->next;
    p->streams[cache->stream].has_cache = false;
    dryi_memory_free(&p->memory, cache, 1, sizeof *cache);
}

void
dryi_paged_cache_share(void *self, bool is_shared)
{
    struct dryi_paged *p = self;
    if (is_shared && !p->is_shared && p->forecast) {
        dryi_forecast_drop(p->forecast);
        dryi_paged_unpark_all(p);
        dryi_paged_layout_finish(p); /* stops indexing the blocks of its segment */
    }
    p->is_shared = is_shared;
    if (!is_shared)
        drop_dividers(p);
    for (struct dryi_cache *f = p->caches; f; f = f->next)
        share_cache(p, f);
}

/* For assertions: mark that a thread uses the cache without holding the place. */
static inline void
set_alone(struct dryi_cache *cache, bool is_alone)
{
#if DRYI_ASSERT_LEVEL >= 2
    DRYI_ASSERT_SLOW(cache->is_alone != is_alone);
    cache->is_alone = is_alone;
#else
    (void)cache;
    (void)is_alone;
#endif
}

static struct free_list *
list_for(const struct dryi_cache *f, uint64_t bytes)
{
    return f->lists[bytes <= f->place->conf.small_max];
}

/* Return where the cache counts: its local statistics while shared, else the place's. */
static struct paged_stat *
get_local(struct dryi_cache *f)
{
    if (!f->place->is_shared)
        return f->place->stats;
    f->is_used = true;
    return f->local;
}

/* Count a block that the cache hands out. Requires that caches are shared. */
static void
count_taken(struct dryi_cache *cache, bool is_small, uint64_t bytes, uint64_t size)
{
    cache->requests++;
    cache->is_used = true;
    stat_taken(cache->local, is_small, bytes, size);
}

/* Count a block freed into the cache, in the current epoch of its stream. */
static void
count_put(struct dryi_cache *cache, bool is_small, struct block *b)
{
    struct stream *stream = &cache->place->streams[cache->stream];
    b->epoch = stream->epoch;
    /* Write only on change: other threads use the neighbouring stream records (false sharing). */
    if (stream->freed != stream->epoch)
        stream->freed = stream->epoch;
    stat_given(get_local(cache), is_small, b->size, b->requested);
}

/*
 * Would `bytes` more exceed what the cache may take before a balance? A balance adds the caches'
 * peaks, which are of different times, and an overstated peak would raise the budget.
 */
static bool
is_beyond_local(const struct dryi_cache *cache, uint64_t bytes)
{
    const struct paged_stat *b = &cache->local[STAT_ALLOCATED_BYTES];
    return b->current[0] + b->current[1] + (int64_t)bytes > cache->place->local_max;
}

uint64_t
dryi_paged_cache_take(struct dryi_cache *cache, uint64_t size)
{
    struct dryi_paged *p = cache->place;
    uint64_t bytes = round_to_grains(size);
    struct free_list *s = list_for(cache, bytes);
    if (!p->is_shared || !s)
        return 0;
    if (!s->is_small)
        dryi_paged_cache_want(s, bytes);
    if (is_beyond_local(cache, bytes) || dryi_paged_cache_top(p, s, bytes) == NONE)
        return 0;
    uint32_t block = dryi_paged_cache_take_registered(p, s, stack_slot(s, bytes), size);
    if (block == NONE)
        return 0;
    count_taken(cache, s->is_small, bytes, size);
    return p->blocks[block].addr;
}

static bool
push(struct dryi_paged *p, struct free_list *s, uint32_t block)
{
    uint64_t bytes = p->blocks[block].size;
    return (s->is_small || dryi_paged_cache_wants(s, bytes)) &&
           dryi_paged_cache_push(p, s, block, bytes);
}

DRYI_FLATTEN bool
dryi_paged_cache_put(struct dryi_cache *cache, dryi_block block)
{
    struct dryi_paged *p = cache->place;
    struct block *b = &p->blocks[block];
    if (b->state != BLOCK_USED || b->uses != NONE || p->observer.event)
        return false;
    struct free_list *s = list_for(cache, b->size);
    if (!s || !push(p, s, block))
        return false;
    count_put(cache, s->is_small, b);
    return true;
}

/* --- beside other stream caches ------------------------------------------------------------------ */

/*
 * Cut a block without new pages or another stream's memory. Inserts dividers around the stream's
 * free block, so the next cut there needs only the cache.
 */
static uint32_t
cut_divided(struct dryi_paged *p, const struct request *r)
{
    struct free_list *s = p->lists[r->list];
    uint32_t found = dryi_paged_list_find(p, s, r->bytes);
    if (found == NONE) {
        uint32_t block = dryi_paged_take_own(p, r);
        if (block != NONE || !dryi_paged_flush_for(p, r->list, r->bytes, FLUSH_MAX))
            return block;
        found = dryi_paged_list_find(p, s, r->bytes);
    }
    divide(p, found);
    return dryi_paged_take_found(p, r, found);
}

static uint32_t
cut_with_place(struct dryi_paged *p, const struct request *r)
{
    struct free_list *s = p->lists[r->list];
    uint32_t block = NONE;
    p->is_beside = true;
    refill_records(p, s);
    if (s->dead.count >= RECORDS_ONCE && dryi_paged_block_has_once(p))
        /* Growing the array would move records that other threads use. */
        block = cut_divided(p, r);
    p->is_beside = false;
    return block;
}

/* Cut a block while holding only the cache, if all links it changes belong to the cache. */
static uint32_t
cut_beside(struct dryi_cache *cache, const struct request *r)
{
    struct dryi_paged *p = cache->place;
    const struct free_list *s = p->lists[r->list];
    set_alone(cache, true);
    uint32_t found = dryi_paged_list_find(p, s, r->bytes);
    if (found == NONE && dryi_paged_flush_beside(p, r->list, r->bytes))
        found = dryi_paged_list_find(p, s, r->bytes);
    bool is_ours = found != NONE && s->dead.count >= RECORDS_ONCE &&
                   dryi_paged_is_enclosed(p, found);
    if (is_ours)
        found = dryi_paged_take_found(p, r, found);
    set_alone(cache, false);
    return is_ours ? found : NONE;
}

/*
 * May the cache cut a block for this request? Not while blocks are pending, because only alloc
 * queries their events. Not a large block on a full device, because page counts decide its spot
 * there.
 */
static bool
may_cut(const struct dryi_cache *cache, const struct request *r)
{
    const struct dryi_paged *p = cache->place;
    return p->is_shared && p->waiting_uses == 0 && p->first_held == NONE &&
           r->bytes <= RESERVED_LIMIT && !(p->is_full && !arena_is_small(r->arena)) &&
           !is_beyond_local(cache, r->bytes);
}

bool
dryi_paged_cache_cut(struct dryi_cache *cache, uint64_t size, bool has_place,
                     dryi_block *block)
{
    struct dryi_paged *p = cache->place;
    struct request r = {
        .size = size, .bytes = round_to_grains(size), .stream = cache->stream};
    bool is_small = r.bytes <= p->conf.small_max;
    r.arena = is_small;
    r.list = cache->list_ids[is_small];
    if (!may_cut(cache, &r))
        return false;
    /* take() returned no cached block whose address is unregistered, so try it here. */
    uint32_t found = dryi_paged_cache_take_top(p, p->lists[r.list], r.bytes);
    if (found == NONE)
        found = has_place ? cut_with_place(p, &r) : cut_beside(cache, &r);
    if (found == NONE)
        return false;
    struct block *b = &p->blocks[found];
    b->state = BLOCK_USED;
    b->uses = NONE;
    b->requested = size;
    b->has_ticket = false;
    b->address = ADDRESS_BY_TABLE;
    count_taken(cache, is_small, b->size, size);
    *block = found;
    return true;
}

bool
dryi_paged_cache_merge(struct dryi_cache *cache, dryi_block block, bool has_place)
{
    struct dryi_paged *p = cache->place;
    struct block *b = &p->blocks[block];
    bool is_small = b->size <= p->conf.small_max;
    if (!p->is_shared || b->state != BLOCK_USED || b->uses != NONE || b->has_ticket ||
        b->list != cache->list_ids[is_small])
        return false;
    struct free_list *s = p->lists[b->list];
    if (has_place) {
        p->is_beside = true;
        refill_records(p, s);
        if (s->dead.count >= RECORDS_ONCE)
            divide(p, block);
    } else if (!dryi_paged_can_coalesce_beside(p, s, block)) {
        return false;
    }
    count_put(cache, is_small, b);
    b->address = ADDRESS_UNKNOWN;
    b->state = BLOCK_FREE;
    if (!has_place)
        set_alone(cache, true);
    dryi_paged_block_coalesce(p, block);
    if (has_place)
        p->is_beside = false;
    else
        set_alone(cache, false);
    return true;
}

bool
dryi_paged_cache_register(struct dryi_cache *cache, dryi_block block)
{
    const struct dryi_paged *p = cache->place;
    struct block *b = &p->blocks[block];
    bool small = b->size <= p->conf.small_max;
    bool is_registered = cache->lists[small] && b->list == cache->list_ids[small] &&
                         b->uses == NONE && !b->has_ticket &&
                         b->size == round_to_grains(b->requested);
    b->address = is_registered ? ADDRESS_BY_TABLE : ADDRESS_UNKNOWN;
    return is_registered;
}

bool
dryi_paged_cache_holds(const void *self, dryi_block block)
{
    const struct dryi_paged *p = self;
    return p->blocks[block].state == BLOCK_CACHED;
}

void
dryi_paged_cache_watch(void *self, struct dryi_cache_watcher watcher)
{
    struct dryi_paged *p = self;
    p->cache_watcher = watcher;
}

/* --- local statistics -------------------------------------------------------------------------------- */

static void
raise_to(int64_t *peak, int64_t value, int64_t most)
{
    value = value > most ? most : value;
    if (*peak < value)
        *peak = value;
}

/*
 * Add the summed local statistics of the caches, `b`, to the place's. Byte peaks are capped by the
 * reserved bytes.
 */
static void
close_local(struct dryi_paged *p, enum stat_name name, const struct paged_stat *b)
{
    static const enum stat_name pendings[LOCAL_STATS] = {STAT_PENDING, STAT_PENDING_BYTES,
                                                         STAT_COUNT};
    struct paged_stat *t = &p->stats[name];
    int64_t reserved = (int64_t)stat_all(p, STAT_RESERVED_BYTES);
    int64_t most = name == STAT_ALLOCATION ? INT64_MAX : reserved;
    int64_t all = t->current[0] + t->current[1];
    if (pendings[name] != STAT_COUNT && stat_all(p, pendings[name]) > 0) {
        const int64_t *pending = p->stats[pendings[name]].current;
        struct active_peak *peak = &p->active_peaks[name];
        raise_to(&peak->all_peak, all + b->all_peak + pending[0] + pending[1], most);
        for (int i = 0; i < 2; i++)
            raise_to(&peak->peak[i], t->current[i] + b->peak[i] + pending[i], most);
    }
    raise_to(&t->all_peak, all + b->all_peak, most);
    for (int i = 0; i < 2; i++) {
        raise_to(&t->peak[i], t->current[i] + b->peak[i], most);
        t->current[i] += b->current[i];
        t->freed[i] += b->freed[i];
    }
}

static void
add_local(struct paged_stat *sum, struct paged_stat *b)
{
    for (int i = 0; i < 2; i++) {
        sum->current[i] += b->current[i];
        sum->peak[i] += b->peak[i];
        sum->freed[i] += b->freed[i];
    }
    sum->all_peak += b->all_peak;
    *b = (struct paged_stat){0};
}

/*
 * The peak over all caches may be overstated by 1/LOCAL_SHARE of the reserved bytes, or by
 * LOCAL_LEAST (bytes), whichever is larger.
 */
#define LOCAL_SHARE 64
#define LOCAL_LEAST (2 * DRYI_MIB)

/* Return p->local_max, in bytes, for `count` caches plus one that may be opened meanwhile. */
static int64_t
most_of_a_cache(const struct dryi_paged *p, size_t count)
{
    uint64_t most = stat_all(p, STAT_RESERVED_BYTES) / LOCAL_SHARE;
    most = most > LOCAL_LEAST ? most : LOCAL_LEAST;
    return (int64_t)(most / (count + 1));
}

uint64_t
dryi_paged_cache_balance(void *self, struct dryi_cache *const *caches, size_t count)
{
    struct dryi_paged *p = self;
    struct paged_stat sums[LOCAL_STATS] = {0};
    int64_t most = most_of_a_cache(p, count);
    if (p->local_max != most) /* Write only on change: all caches read this field */
        p->local_max = most;
    uint64_t used = 0;
    for (size_t i = 0; i < count; i++) {
        struct dryi_cache *f = caches[i];
        if (!f->is_used)
            continue;
        for (int name = 0; name < LOCAL_STATS; name++)
            add_local(&sums[name], &f->local[name]);
        p->requests += f->requests;
        f->requests = 0;
        f->is_used = false;
        used |= UINT64_C(1) << i;
    }
    for (int name = 0; used && name < LOCAL_STATS; name++)
        close_local(p, (enum stat_name)name, &sums[name]);
    return used;
}
