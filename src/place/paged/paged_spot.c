/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The search for the spot where the fewest pages are needed.
 *
 * A run is a sequence of adjacent holes and free blocks. A request fits in a run once pages are
 * mapped in its range. The cost is the pages of the run's holes in that range. At its edges the
 * request shares pages with its neighbours.
 *
 * A bounded search tries runs around free blocks that can hold the request's part beyond whole
 * pages. It also tries runs around holes of about the request's size, and the unused addresses at
 * the end. The run with the fewest pages wins.
 *
 * Before an OOM all runs are tried, whatever their length. If pages can be had for any spot, they
 * can be had for the spot found then.
 */

#include "place/paged/paged_spot.h"

#include "base/assert.h"
#include "place/paged/paged_pool.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_page.h"

#define REACH 16    /* Blocks that a run extends to each side in a bounded search */
#define SEED_MAX 32 /* blocks of one list from which a bounded search tries runs */

#define RUN_MAX (2 * REACH + 1)

struct run {
    uint32_t first, count; /* the first block, and the number of blocks */
    uint64_t begin, end;
    uint64_t free; /* bytes with pages */
    struct run_part *parts;
};

/* Slots of a hash table of runs tried: a bounded search uses up to four lists. A power of two. */
#define TRIED_COUNT (4u * SEED_MAX)

/* A search: the request, and the best spot so far (its block is NONE before the first). */
struct search {
    const struct dryi_paged *p;
    const struct request *r;
    enum search_kind kind;
    bool maps;              /* holes may be part of a run */
    bool gives;             /* pages of this arena may be moved elsewhere */
    struct run_part *parts; /* capacity: part_max */
    size_t part_max;
    struct spot best;
    uint32_t tried[TRIED_COUNT]; /* first block of each run tried, by hash; NIL: none */
};

static bool
is_part_of_run(const struct search *search, uint32_t block)
{
    if (block == NONE)
        return false;
    const struct dryi_paged *p = search->p;
    const struct block *b = &p->blocks[block];
    uint32_t list = search->r->list;
    if (b->state == BLOCK_HOLE)
        return search->maps;
    return b->state == BLOCK_FREE &&
           (b->list == list || dryi_paged_is_usable(p, list, b));
}

/* Return the block before this one, past a divider. */
static uint32_t
block_before(const struct dryi_paged *p, uint32_t block)
{
    uint32_t prev = p->blocks[block].prev;
    return prev != NONE && p->blocks[prev].state == BLOCK_DIVIDER ? p->blocks[prev].prev
                                                                  : prev;
}

static uint32_t
block_behind(const struct dryi_paged *p, uint32_t block)
{
    uint32_t next = p->blocks[block].next;
    return next != NONE && p->blocks[next].state == BLOCK_DIVIDER ? p->blocks[next].next
                                                                  : next;
}

/*
 * Can pages of a free block be moved elsewhere? Searches before an OOM come after all waits: a
 * block still incomplete then cannot be moved.
 */
static bool
is_movable(const struct search *search, const struct block *b)
{
    const struct dryi_paged *p = search->p;
    if (!search->gives || dryi_paged_is_complete(p, b))
        return search->gives;
    return search->kind < SEARCH_ALL &&
           !dryi_paged_is_captured(p, p->lists[b->list]->stream);
}

static struct run_part
make_part(const struct search *search, uint32_t block)
{
    const struct dryi_paged *p = search->p;
    const struct block *b = &p->blocks[block];
    struct run_part part = {.block = block,
                            .is_hole = b->state == BLOCK_HOLE,
                            .begin = b->addr,
                            .end = block_end(b),
                            .lo = b->addr};
    if (part.is_hole)
        part.hi = part.end;
    else if (is_movable(search, b))
        dryi_paged_whole_pages(p, b->addr, part.end, &part.lo, &part.hi);
    else
        part.hi = part.lo;
    return part;
}

/* Fill in the parts of a measured run. A separate step, because most runs are rejected before. */
static void
make_parts(const struct search *search, struct run *run)
{
    uint32_t at = run->first;
    for (uint32_t i = 0; i < run->count; i++, at = block_behind(search->p, at)) {
        struct run_part *part = &run->parts[i];
        *part = make_part(search, at);
        if (i == 0)
            continue;
        const struct run_part *last = part - 1;
        part->fresh = last->fresh + (last->is_hole ? last->hi - last->lo : 0);
        part->movable = last->movable + (last->is_hole ? 0 : last->hi - last->lo);
    }
}

/* Return the first block of the run around `seed`, at most REACH blocks before it. */
static uint32_t
first_of_run(const struct search *search, uint32_t seed)
{
    const struct dryi_paged *p = search->p;
    uint32_t first = seed;
    for (unsigned i = 0; i < REACH; i++) {
        uint32_t prev = block_before(p, first);
        if (!is_part_of_run(search, prev))
            break;
        first = prev;
    }
    return first;
}

/*
 * Record a run by its first block. True: the run is new, as far as the hash table remembers. Most
 * blocks of a run lead to the same first block, so each run is tried about once.
 */
static bool
is_new_run(struct search *search, uint32_t first)
{
    uint32_t *tried = &search->tried[first % TRIED_COUNT];
    bool is_new = *tried != first;
    *tried = first;
    return is_new;
}

static void
measure_run(const struct search *search, uint32_t first, struct run *run)
{
    DRYI_ASSERT_SLOW(is_part_of_run(search, first));
    const struct dryi_paged *p = search->p;
    *run = (struct run){
        .first = first, .begin = p->blocks[first].addr, .parts = search->parts};
    uint32_t at = first;
    do {
        const struct block *b = &p->blocks[at];
        run->count++;
        run->end = block_end(b);
        run->free += b->state == BLOCK_HOLE ? 0 : b->size;
        at = block_behind(p, at);
    } while (run->count < search->part_max && is_part_of_run(search, at));
}

/*
 * Parts of the last spot: at its begin, its first page and its last page. Spots come in address
 * order, so the search for the next spot resumes there.
 */
struct cursor {
    uint32_t addr, lo, hi;
};

/* Return the last part that begins at or below the address; the first part if there is none. */
static const struct run_part *
find_part(const struct run *run, uint32_t *at, uint64_t addr)
{
    DRYI_ASSERT_SLOW(*at < run->count);
    while (*at + 1 < run->count && run->parts[*at + 1].begin <= addr)
        ++*at;
    return &run->parts[*at];
}

/*
 * Count the bytes below the address in holes and in movable pages. `part`: what find_part() returns
 * for the address.
 */
static void
count_below(const struct run_part *part, uint64_t addr, uint64_t *fresh,
            uint64_t *movable)
{
    uint64_t top = addr < part->hi ? addr : part->hi;
    uint64_t here = top > part->lo ? top - part->lo : 0;
    *fresh = part->fresh + (part->is_hole ? here : 0);
    *movable = part->movable + (part->is_hole ? 0 : here);
}

/* Return the page count that a kind of search minimizes. */
static uint64_t
find_pages(const struct spot *spot, enum search_kind kind)
{
    return kind == SEARCH_FRESH ? spot->fresh : spot->cost;
}

/* Compute the pages that a spot needs. */
static void
measure_spot(const struct search *search, const struct run *run, struct cursor *cursor,
             struct spot *spot)
{
    const struct dryi_paged *p = search->p;
    uint64_t addr = spot->addr, end = addr + search->r->bytes;
    uint64_t lo = page_floor(p, addr), hi = page_ceil(p, end);
    uint64_t fresh[2], movable[2];
    count_below(find_part(run, &cursor->lo, lo), lo, &fresh[0], &movable[0]);
    count_below(find_part(run, &cursor->hi, hi), hi, &fresh[1], &movable[1]);
    spot->fresh = (fresh[1] - fresh[0]) >> p->page_shift;
    spot->cost = spot->fresh + ((movable[1] - movable[0]) >> p->page_shift);
}

static bool
is_better(const struct spot *a, const struct spot *b, enum search_kind kind)
{
    if (find_pages(a, kind) != find_pages(b, kind))
        return find_pages(a, kind) < find_pages(b, kind);
    if (a->fresh != b->fresh)
        return a->fresh < b->fresh;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    return a->addr < b->addr;
}

static void
try_spot(struct search *search, const struct run *run, struct cursor *cursor,
         uint64_t addr)
{
    if (addr < run->begin || search->r->bytes > run->end - addr)
        return;
    struct spot spot = {.addr = addr};
    measure_spot(search, run, cursor, &spot);
    if (search->best.block != NONE && !is_better(&spot, &search->best, search->kind))
        return;
    spot.block = find_part(run, &cursor->addr, addr)->block;
    search->best = spot;
}

/*
 * Can a spot of this run beat the best one? Bytes beyond the run's free bytes need pages wherever
 * the request is placed.
 */
static bool
may_be_better(const struct search *search, const struct run *run)
{
    const struct spot *best = &search->best;
    if (best->block == NONE)
        return true;
    uint64_t bytes = search->r->bytes;
    uint64_t least = bytes > run->free ? (bytes - run->free) >> search->p->page_shift : 0;
    return least <= find_pages(best, search->kind);
}

static void
try_before(struct search *search, const struct run *run, struct cursor *cursor,
           uint64_t end)
{
    if (end >= run->begin + search->r->bytes)
        try_spot(search, run, cursor, end - search->r->bytes);
}

/*
 * Try the spots adjacent to the bounds of a part. The end of a segment's last hole is not tried:
 * the request would be far from all other blocks. Before an OOM the bounds of the part's whole
 * pages are tried too. This suffices: a spot between two bounds costs as much as one at a bound.
 */
static void
try_part(struct search *search, const struct run *run, const struct run_part *part,
         struct cursor *behind, struct cursor *before)
{
    bool is_all = search->kind >= SEARCH_ALL;
    bool is_amid = search->p->blocks[part->block].next != NONE;
    try_spot(search, run, behind, part->begin);
    if (is_all && part->lo < part->hi && !part->is_hole) {
        try_spot(search, run, behind, part->hi);
        try_before(search, run, before, part->lo);
    }
    if (is_amid || (is_all && !part->is_hole))
        try_before(search, run, before, part->end);
}

static void
try_run(struct search *search, uint32_t seed)
{
    uint64_t bytes = search->r->bytes;
    uint32_t first = first_of_run(search, seed);
    if (!is_new_run(search, first))
        return;
    struct run run;
    measure_run(search, first, &run);
    if (run.end - run.begin < bytes || !may_be_better(search, &run))
        return;
    make_parts(search, &run);
    struct cursor behind = {0}, before = {0};
    for (uint32_t i = 0; i < run.count; i++)
        try_part(search, &run, &run.parts[i], &behind, &before);
}

/* Try blocks of a list, from `size` up. SEARCH_FRESH tries a free block only next to a hole. */
static void
try_list(struct search *search, uint32_t list, uint64_t size)
{
    const struct dryi_paged *p = search->p;
    const struct free_list *s = p->lists[list];
    unsigned visited = 0;
    uint32_t bin = bin_at_least(s, find_bin(size));
    while (bin != NONE && visited < SEED_MAX) {
        for (uint32_t at = s->heads[bin]; at != s->end && visited < SEED_MAX; visited++) {
            const struct block *b = &p->blocks[at];
            if (b->state == BLOCK_HOLE || search->kind != SEARCH_FRESH ||
                (b->prev != NONE && p->blocks[b->prev].state == BLOCK_HOLE) ||
                (b->next != NONE && p->blocks[b->next].state == BLOCK_HOLE))
                try_run(search, at);
            at = b->bin_next;
        }
        bin = bin + 1 == BIN_COUNT ? NONE : bin_at_least(s, bin + 1);
    }
}

/* Return the block after the run that begins here. *count: the blocks of the run. */
static uint32_t
skip_run(const struct search *search, uint32_t first, size_t *count)
{
    uint32_t at = first;
    for (*count = 0; is_part_of_run(search, at); ++*count)
        at = block_behind(search->p, at);
    return at;
}

/* Return the first block of the next run at or after this block; NONE: none. */
static uint32_t
next_run(const struct search *search, uint32_t at)
{
    while (at != NONE && !is_part_of_run(search, at))
        at = block_behind(search->p, at);
    return at;
}

/* Return the number of blocks in the longest run. */
static size_t
measure_longest(const struct search *search)
{
    const struct dryi_paged *p = search->p;
    size_t longest = 0, count;
    uint32_t segment = p->arenas[search->r->arena].segments;
    for (; segment != NONE; segment = p->segments[segment].next) {
        uint32_t at = next_run(search, p->segments[segment].first_block);
        for (; at != NONE; at = next_run(search, at)) {
            at = skip_run(search, at, &count);
            longest = count > longest ? count : longest;
        }
    }
    return longest;
}

/* Try all runs in full length. */
static enum dry_status
try_all(struct dryi_paged *p, struct search *search)
{
    search->part_max = measure_longest(search);
    if (!dryi_memory_grow(&p->memory, &p->run_parts, &p->run_part_capacity,
                          search->part_max, sizeof *p->run_parts))
        return DRY_ERR_MEMORY;
    search->parts = p->run_parts;
    size_t count;
    uint32_t segment = p->arenas[search->r->arena].segments;
    for (; segment != NONE; segment = p->segments[segment].next) {
        uint32_t at = next_run(search, p->segments[segment].first_block);
        for (; at != NONE; at = next_run(search, at)) {
            try_run(search, at);
            at = skip_run(search, at, &count);
        }
    }
    return DRY_OK;
}

/*
 * Try a hole that is large enough, in case the bounded search tried none. It is one of the newest
 * holes in the size's own bin, else the first of a larger bin. A segment just reserved for the
 * request is among the newest.
 */
static void
try_sure(struct search *search, uint32_t holes)
{
    const struct dryi_paged *p = search->p;
    const struct free_list *s = p->lists[holes];
    uint64_t size = page_ceil(p, search->r->bytes);
    uint32_t bin = find_bin(size), at = s->heads[bin];
    for (unsigned i = 0; at != s->end && i < SEED_MAX; i++, at = p->blocks[at].bin_next) {
        if (p->blocks[at].size < size)
            continue;
        try_run(search, at);
        return;
    }
    uint32_t above = bin + 1 < BIN_COUNT ? bin_at_least(s, bin + 1) : NONE;
    if (above != NONE)
        try_run(search, s->heads[above]);
}

/* Try a bounded number of runs that are likely to be good. */
static void
try_some(struct search *search)
{
    const struct dryi_paged *p = search->p;
    const struct request *r = search->r;
    const struct arena *arena = &p->arenas[r->arena];
    /* One of two adjacent blocks has at least half the bytes. */
    if (search->kind == SEARCH_JOINED) {
        try_list(search, r->list, r->bytes / 2);
        try_list(search, arena->shared, r->bytes / 2);
        return;
    }
    uint64_t rest = r->bytes & p->page_mask;
    uint64_t whole = r->bytes - rest;
    uint64_t least = whole > 2 * p->page_bytes ? whole - p->page_bytes : p->page_bytes;
    try_list(search, r->list, rest);
    try_list(search, arena->shared, rest);
    try_list(search, arena->holes, least);
    if (search->best.block == NONE)
        try_sure(search, arena->holes);
}

enum dry_status
dryi_paged_spot_find(struct dryi_paged *p, const struct request *r, enum search_kind kind,
                     struct spot *spot)
{
    DRYI_ASSERT_SLOW(r->bytes > 0 && r->list < p->list_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct run_part few[RUN_MAX];
    struct search search = {.p = p,
                            .r = r,
                            .kind = kind,
                            .parts = few,
                            .part_max = RUN_MAX,
                            .best.block = NONE};
    enum dry_status status = DRY_OK;
    search.maps = kind != SEARCH_FREE && kind != SEARCH_JOINED;
    search.gives =
        search.maps && dryi_paged_gives_pages(p, r->arena, kind == SEARCH_LAST);
    if (kind >= SEARCH_ALL)
        status = try_all(p, &search);
    else
        try_some(&search);
    *spot = search.best;
    return status;
}

/* --- taking ------------------------------------------------------------------------------- */

/* Map pages in all holes of the spot. *block: the block that then contains the spot's begin. */
static enum dry_status
fill(struct dryi_paged *p, const struct request *r, const struct spot *spot,
     uint32_t *block)
{
    uint64_t end = spot->addr + r->bytes;
    uint64_t lo = page_floor(p, spot->addr), hi = page_ceil(p, end);
    uint32_t at = *block = spot->block;
    while (at != NONE && p->blocks[at].addr < end) {
        const struct block *b = &p->blocks[at];
        if (b->state == BLOCK_HOLE) {
            uint64_t from = b->addr > lo ? b->addr : lo;
            uint64_t to = block_end(b) < hi ? block_end(b) : hi;
            enum dry_status status = dryi_paged_map(p, at, from, to, r->list, &at);
            if (status != DRY_OK)
                return status;
            if (p->blocks[at].addr <= spot->addr)
                *block = at;
        }
        at = p->blocks[at].next;
    }
    return DRY_OK;
}

/*
 * Return the number of blocks in the spot, each of which may be cut at both ends. At least RUN_MAX,
 * and rarely more; caches use the spare records.
 */
static uint32_t
count_parts(const struct dryi_paged *p, const struct spot *spot, uint64_t end)
{
    uint32_t at = spot->block, count = 0;
    for (; at != NONE && p->blocks[at].addr < end; at = p->blocks[at].next)
        count++;
    return count < RUN_MAX ? RUN_MAX : count;
}

enum dry_status
dryi_paged_spot_take(struct dryi_paged *p, const struct request *r,
                     const struct spot *spot, uint32_t *block)
{
    DRYI_ASSERT_SLOW(spot->block != NONE && spot->fresh <= p->stock_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    uint64_t end = spot->addr + r->bytes;
    if (!dryi_paged_block_reserve(p, 2 * count_parts(p, spot, end)))
        return DRY_ERR_MEMORY;
    uint32_t at;
    enum dry_status status = fill(p, r, spot, &at);
    if (status != DRY_OK)
        return status;
    at = dryi_paged_carve_along(p, at, spot->addr, end);
    dryi_paged_block_assign(p, at, r->list);
    *block = at;
    return DRY_OK;
}
