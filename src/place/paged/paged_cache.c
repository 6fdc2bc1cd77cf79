/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stream caches: free blocks kept whole for the next request of their size, stacks by size of the
 * free lists of streams. A hit costs a record and no neighbours.
 *
 * The stacks of one stream of the default pool can be used beside the place while they are
 * shared (place.h says with what care). Then take and put write nothing of the place but the
 * blocks on them and in use, and of those neither size nor neighbours; the stream's record of its
 * frees; and the stream cache's own local statistics. Cut and merge write the blocks and bins of the stream cache's own
 * free lists, and take records from there. Beside the place they change no link to another free list's
 * block; with it, they do, and everybody's memory may be cut and merged.
 */

#include <string.h>

#include "base/ablate.h"
#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged_inside.h"

/* --- stacks ------------------------------------------------------------------------------- */

/* Of so many stacks, a bit of each, and what is wanted of each. */
static size_t
words_of(const struct free_list *s, size_t count)
{
    return count + (count + 31) / 32 + (s->is_small ? 0 : count);
}

void
dryi_paged_cache_make(struct dryi_paged *p, struct free_list *s)
{
    size_t count = CACHE_LARGE_SIZES;
    if (DRYI_ABLATED(caches))
        return;
    if (s->is_small)
        count = (size_t)(p->conf.small_max >> GRAIN_SHIFT) + 1;
    s->stacks = dryi_memory_zalloc(&p->memory, words_of(s, count), sizeof *s->stacks);
    if (!s->stacks)
        return;
    s->stack_count = count;
    s->stack_bits = s->stacks + count;
    s->wanted = s->stack_bits + (count + 31) / 32;
    memset(s->stacks, 0xff, count * sizeof *s->stacks);
}

void
dryi_paged_cache_note(struct dryi_paged *p, uint32_t list)
{
    struct free_list *s = p->lists[list];
    if (s->is_cached)
        return;
    if (p->first_cached != NONE)
        p->lists[p->first_cached]->prev_cached = list;
    s->is_cached = true;
    s->prev_cached = NONE;
    s->next_cached = p->first_cached;
    p->first_cached = list;
}

void
dryi_paged_cache_unnote(struct dryi_paged *p, struct free_list *s)
{
    if (!s->is_cached)
        return;
    if (s->prev_cached == NONE)
        p->first_cached = s->next_cached;
    else
        p->lists[s->prev_cached]->next_cached = s->next_cached;
    if (s->next_cached != NONE)
        p->lists[s->next_cached]->prev_cached = s->prev_cached;
    s->is_cached = false;
}

void
dryi_paged_cache_finish(struct dryi_paged *p, struct free_list *s)
{
    dryi_memory_free(&p->memory, s->stacks, words_of(s, s->stack_count),
                     sizeof *s->stacks);
}

void
dryi_paged_caches_finish(struct dryi_paged *p)
{
    while (p->caches) {
        struct dryi_cache *f = p->caches;
        p->caches = f->next;
        dryi_memory_free(&p->memory, f, 1, sizeof *f);
    }
}

void
dryi_paged_cache_forget(struct dryi_paged *p, struct block *b)
{
    bool was_registered = b->address == ADDRESS_BY_TABLE;
    b->address = ADDRESS_UNKNOWN;
    if (!was_registered)
        return;
    uint32_t stream = p->lists[b->list]->stream;
    p->cache_watcher.lost(p->cache_watcher.self, p->streams[stream].value, b->addr);
}

/* --- records ------------------------------------------------------------------------------ */

#define RECORDS_MAX 64u /* that a free list has for itself */
#define RECORDS_REFILL 32u

static bool
can_coalesce_beside(const struct dryi_paged *p, const struct free_list *s, uint32_t block)
{
    return s->dead.count <= RECORDS_MAX - RECORDS_ONCE &&
           dryi_paged_is_enclosed(p, block);
}

/* Records for a cut or a merge beside the place, and room for them, by who has it. */
static void
refill_records(struct dryi_paged *p, struct free_list *s)
{
    if (s->dead.count < RECORDS_ONCE || s->dead.count > RECORDS_MAX - RECORDS_ONCE)
        dryi_paged_records_refill(p, s, RECORDS_REFILL);
}

/* --- flushing ----------------------------------------------------------------------------- */

/* The newest block of a stack becomes ordinary free memory: how much there is then. */
static uint64_t
flush_block(struct dryi_paged *p, struct free_list *s, size_t slot)
{
    uint32_t block = s->stacks[slot];
    s->stacks[slot] = p->blocks[block].bin_next;
    s->stacked--;
    dryi_paged_cache_forget(p, &p->blocks[block]);
    p->blocks[block].state = BLOCK_FREE;
    return p->blocks[dryi_paged_block_coalesce(p, block)].size;
}

/*
 * How far to go: until a block of `enough` bytes is there, over so many blocks at most; beside
 * the place, until one would be merged with what is not this stream cache's.
 */
struct flush {
    uint64_t enough;
    uint32_t most;
    bool is_beside;
    bool has_enough;
};

/* The stacks of one word of bits from `bit` on; true: it is the end. */
static bool
flush_word(struct dryi_paged *p, struct free_list *s, size_t word, unsigned bit,
           struct flush *flush)
{
    uint32_t bits = s->stack_bits[word] >> bit << bit;
    for (; bits != 0; bits &= bits - 1) {
        size_t slot = word * 32 + (size_t)__builtin_ctz(bits);
        while (s->stacks[slot] != NONE) {
            if (flush->is_beside && !can_coalesce_beside(p, s, s->stacks[slot]))
                return true;
            flush->has_enough = flush_block(p, s, slot) >= flush->enough;
            if (flush->has_enough || --flush->most == 0)
                return true;
        }
        s->stack_bits[word] &= ~(bits & -bits);
    }
    return false;
}

void
dryi_paged_flush_some(struct dryi_paged *p, struct free_list *s, uint32_t most)
{
    struct flush flush = {.enough = UINT64_MAX, .most = most};
    bool is_over = most == 0;
    for (size_t word = 0; s->stacked > 0 && !is_over; word++)
        is_over = flush_word(p, s, word, 0, &flush);
}

void
dryi_paged_flush_list(struct dryi_paged *p, struct free_list *s)
{
    dryi_paged_flush_some(p, s, UINT32_MAX);
}

/* Small blocks of the wanted size and up first, large ones in no order. */
static void
flush_from(struct dryi_paged *p, struct free_list *s, struct flush *flush)
{
    size_t slot = stack_slot(s, flush->enough);
    if (s->stacked == 0 || slot >= s->stack_count)
        return;
    size_t words = (s->stack_count + 31) / 32, first = slot / 32;
    bool is_over = flush_word(p, s, first, slot % 32, flush);
    for (size_t word = first + 1; word < words && s->stacked > 0 && !is_over; word++)
        is_over = flush_word(p, s, word, 0, flush);
    for (size_t word = first + 1; word-- > 0 && s->stacked > 0 && !is_over;)
        is_over = flush_word(p, s, word, 0, flush);
}

bool
dryi_paged_flush_for(struct dryi_paged *p, uint32_t list, uint64_t bytes, uint32_t most)
{
    struct flush flush = {.enough = bytes, .most = most};
    flush_from(p, p->lists[list], &flush);
    return flush.has_enough;
}

bool
dryi_paged_flush(struct dryi_paged *p)
{
    bool any = dryi_paged_unpark_all(p);
    uint32_t at = p->first_cached;
    p->first_cached = NONE;
    while (at != NONE) {
        struct free_list *s = p->lists[at];
        uint32_t next = s->next_cached;
        any |= s->stacked > 0;
        dryi_paged_flush_list(p, s);
        s->is_cached = false;
        if (s->stays_cached)
            dryi_paged_cache_note(p, at);
        at = next;
    }
    return any;
}

/* --- beside the place --------------------------------------------------------------------- */

/* Large blocks lie on stream caches while those are shared. */
static void
share_cache(struct dryi_paged *p, struct dryi_cache *f)
{
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
    DRYI_ASSERT(!cache->is_used); /* its local statistics are balanced */
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
        dryi_paged_layout_finish(p); /* what begins in its segment is noted no more */
    }
    p->is_shared = is_shared;
    if (!is_shared)
        dryi_paged_dividers_drop(p);
    for (struct dryi_cache *f = p->caches; f; f = f->next)
        share_cache(p, f);
}

static struct free_list *
list_for(const struct dryi_cache *f, uint64_t bytes)
{
    return f->lists[bytes <= f->place->conf.small_max];
}

/* Beside the place a stream cache has its own local statistics; else what it does is counted at once. */
static struct paged_stat *
local_of(struct dryi_cache *f)
{
    if (!f->place->is_shared)
        return f->place->stats;
    f->is_used = true;
    return f->local;
}

/* While shared. */
static void
count_taken(struct dryi_cache *cache, bool is_small, uint64_t bytes, uint64_t size)
{
    cache->requests++;
    cache->is_used = true;
    stat_taken(cache->local, is_small, bytes, size);
}

/* Its block is freed in this epoch of the stream. */
static void
count_put(struct dryi_cache *cache, bool is_small, struct block *b)
{
    struct stream *stream = &cache->place->streams[cache->stream];
    b->epoch = stream->epoch;
    if (stream->freed != stream->epoch) /* its neighbours are other threads' */
        stream->freed = stream->epoch;
    stat_given(local_of(cache), is_small, b->size, b->requested);
}

/*
 * More than this stream cache may take until its local statistics are balanced with the others': peaks are what
 * the budget grows by, and each stream cache's own peak is at another time.
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
    uint64_t bytes = bytes_of(size);
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

/* What needs neither pages nor another stream: next time it will not need the place. */
static uint32_t
cut_dividerd(struct dryi_paged *p, const struct request *r)
{
    struct free_list *s = p->lists[r->list];
    uint32_t found = dryi_paged_list_find(p, s, r->bytes);
    if (found == NONE) {
        uint32_t block = dryi_paged_take_own(p, r);
        if (block != NONE || !dryi_paged_flush_for(p, r->list, r->bytes, FLUSH_MAX))
            return block;
        found = dryi_paged_list_find(p, s, r->bytes);
    }
    dryi_paged_divide(p, found);
    return dryi_paged_take_found(p, r, found);
}

static uint32_t
cut_with_place(struct dryi_paged *p, const struct request *r)
{
    struct free_list *s = p->lists[r->list];
    refill_records(p, s);
    if (s->dead.count < RECORDS_ONCE || !dryi_paged_block_has_once(p))
        return NONE; /* for more of them all records may move */
    p->is_beside = true;
    uint32_t block = cut_dividerd(p, r);
    p->is_beside = false;
    return block;
}

/* The same, if nothing of it is anybody else's. */
static uint32_t
cut_beside(struct dryi_paged *p, const struct request *r)
{
    struct free_list *s = p->lists[r->list];
    uint32_t found = dryi_paged_list_find(p, s, r->bytes);
    if (found == NONE) {
        struct flush flush = {.enough = r->bytes, .most = FLUSH_MAX, .is_beside = true};
        flush_from(p, s, &flush);
        if (flush.has_enough)
            found = dryi_paged_list_find(p, s, r->bytes);
    }
    if (found == NONE || s->dead.count < RECORDS_ONCE ||
        !dryi_paged_is_enclosed(p, found))
        return NONE;
    return dryi_paged_take_found(p, r, found);
}

/*
 * Blocks that wait are looked after by every other request; on a full device pages decide where
 * large ones lie.
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
    struct request r = {.size = size, .bytes = bytes_of(size), .stream = cache->stream};
    bool is_small = r.bytes <= p->conf.small_max;
    r.arena = is_small;
    r.list = cache->list_ids[is_small];
    if (!may_cut(cache, &r))
        return false;
    /* On the stream cache if nobody kept its address. */
    uint32_t found = dryi_paged_cache_take_top(p, p->lists[r.list], r.bytes);
    if (found == NONE)
        found = has_place ? cut_with_place(p, &r) : cut_beside(p, &r);
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
            dryi_paged_divide(p, block);
    } else if (!can_coalesce_beside(p, s, block)) {
        return false;
    }
    count_put(cache, is_small, b);
    b->address = ADDRESS_UNKNOWN;
    b->state = BLOCK_FREE;
    dryi_paged_block_coalesce(p, block);
    if (has_place)
        p->is_beside = false;
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
                         b->size == bytes_of(b->requested);
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

/* The sum of what is in the local statistics of one kind comes on top of what was counted. */
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

#define LOCAL_SHARE                                                                      \
    64 /* of what is reserved: so much too high may a peak of all stream caches be */
#define LOCAL_LEAST (2 * DRYI_MIB)

/* Of so many stream caches, and one that may be used from now on. */
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
    if (p->local_max != most) /* all stream caches read it */
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
