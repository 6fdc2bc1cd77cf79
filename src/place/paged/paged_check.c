/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The invariants of the placement, P1 to P12, each stated at its check. P8 is checked by
 * dryi_paged_layout_check() and dryi_paged_parking_check().
 */

#include "base/fail.h"
#include "base/memory.h"
#include "place/paged/paged_pool.h"
#include "place/paged/paged_view.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_index.h"
#include "place/paged/record/paged_park.h"

/* Totals recomputed by the check, to compare with the counters: [0] large, [1] small. */
struct sums {
    int64_t allocation[2], allocated_bytes[2], requested_bytes[2];
    int64_t pending[2], pending_bytes[2], mapped_bytes[2], segments[2];
    uint64_t mapped_pages;
    uint32_t *by_list; /* number of blocks per list */
    uint32_t blocks, listed_blocks, cached, parked, dividers, pending_uses;
};

/*
 * P1: the blocks of a segment are contiguous, ordered by address, and fill it; holes begin and end
 * at
 *     page boundaries.
 * P2: two adjacent blocks are never both holes, or both free on the same list.
 * P10: a block's address is registered or indexed only if the block is used, cached or parked, and
 *     the index finds the blocks that it should.
 */
static const char *
check_order(const struct dryi_paged *p, uint32_t block, uint64_t addr)
{
    const struct block *b = &p->blocks[block];
    if (b->state == BLOCK_DEAD || b->addr != addr ||
        (b->size == 0) != (b->state == BLOCK_DIVIDER))
        return "P1: the blocks of a segment lie gapless in address order";
    if (b->addr % GRAIN || b->size % GRAIN)
        return "P1: blocks are multiples of 512 bytes";
    if (b->state == BLOCK_HOLE && p->page_bytes > 0 &&
        ((b->addr | b->size) & p->page_mask))
        return "P1: holes begin and end at pages";
    if (b->next == NONE)
        return NULL;
    const struct block *n = &p->blocks[b->next];
    if (n->prev != block)
        return "P1: links between blocks go both ways";
    if (b->state == n->state && (b->state == BLOCK_HOLE || b->state == BLOCK_FREE) &&
        b->list == n->list)
        return "P2: two free neighbours of one free list";
    if (b->address != ADDRESS_UNKNOWN && b->state != BLOCK_USED &&
        b->state != BLOCK_CACHED && b->state != BLOCK_PARKED)
        return "P10: blocks with an address are used, cached or parked";
    if (b->address == ADDRESS_BY_INDEX && b->state == BLOCK_USED &&
        (addr - p->index.range.addr >= p->index.range.size ||
         dryi_paged_find(p, addr) != block))
        return "P10: the index finds the blocks that it has";
    return NULL;
}

static bool
is_of_stream(const struct dryi_paged *p, uint32_t block)
{
    return block != NONE && p->blocks[block].state != BLOCK_DIVIDER &&
           p->lists[p->blocks[block].list]->kind == FREE_STREAM;
}

/*
 * P3: a block belongs to a list of its arena.
 * P9: a divider separates blocks of two streams, and only while caches are shared.
 */
static const char *
check_list(const struct dryi_paged *p, const struct segment *segment,
           const struct block *b)
{
    if (b->state != BLOCK_DIVIDER)
        return b->list < p->list_count && p->lists[b->list] &&
                       p->lists[b->list]->arena == segment->arena
                   ? NULL
                   : "P3: a block lies on a free list of its arena";
    bool is_needed = is_of_stream(p, b->prev) && is_of_stream(p, b->next) &&
                     p->blocks[b->prev].list != p->blocks[b->next].list;
    return is_needed && b->list == DIVIDERS && p->is_shared
               ? NULL
               : "P9: a divider lies between blocks of two streams that share the place";
}

/*
 * P4: each page is mapped at exactly one address or is in the stock; an address has a page exactly
 * if no hole covers it. P7, that pages of a NO_REMAP pool stay in place, is checked only by the
 * checking device.
 */
static const char *
check_pages(const struct dryi_paged *p, const struct segment *segment,
            const struct block *b, uint8_t *seen)
{
    if (!segment->pages)
        return b->state == BLOCK_HOLE ? "P4: a hole without pages" : NULL;
    uint64_t from = page_floor(p, b->addr), to = page_ceil(p, block_end(b));
    for (uint64_t at = from; at < to; at += p->page_bytes) {
        uint32_t page = segment->pages[(at - segment->addr) >> p->page_shift];
        if ((page == 0) != (b->state == BLOCK_HOLE) || page > p->page_slots)
            return "P4: a page lies under every address that no hole covers";
        if (page == 0 || at < b->addr) /* counted with the previous block */
            continue;
        if (seen[page - 1]++)
            return "P4: a page lies under one address";
    }
    return NULL;
}

static void
sum_block(const struct dryi_paged *p, const struct block *b, struct sums *sums)
{
    sums->blocks++;
    sums->dividers += b->state == BLOCK_DIVIDER;
    if (b->state == BLOCK_DIVIDER)
        return;
    sums->by_list[b->list]++;
    bool small = arena_is_small(p->lists[b->list]->arena);
    int64_t size = (int64_t)b->size;
    sums->listed_blocks += b->state == BLOCK_FREE || b->state == BLOCK_HOLE;
    sums->cached += b->state == BLOCK_CACHED;
    sums->parked += b->state == BLOCK_PARKED;
    if (b->state != BLOCK_HOLE)
        sums->mapped_bytes[small] += size;
    if (b->state == BLOCK_USED) {
        sums->allocation[small]++;
        sums->allocated_bytes[small] += size;
    }
    if (b->state == BLOCK_PENDING) {
        sums->pending[small]++;
        sums->pending_bytes[small] += size;
    }
    if (b->state == BLOCK_USED || b->state == BLOCK_PENDING) {
        sums->requested_bytes[small] += (int64_t)b->requested;
    }
}

static const char *
check_segment(const struct dryi_paged *p, const struct segment *segment,
              struct sums *sums, uint8_t *seen)
{
    uint64_t addr = segment->addr;
    for (uint32_t at = segment->first_block; at != NONE; at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        const char *broken = check_order(p, at, addr);
        if (!broken)
            broken = check_list(p, segment, b);
        if (!broken && b->state != BLOCK_DIVIDER)
            broken = check_pages(p, segment, b, seen);
        if (broken)
            return broken;
        sum_block(p, b, sums);
        if (b->state == BLOCK_PENDING)
            sums->pending_uses += b->uses;
        addr = block_end(b);
    }
    if (addr != segment->addr + segment->size)
        return "P1: the blocks of a segment fill it";
    sums->segments[arena_is_small(segment->arena)] += segment->pages == NULL;
    for (size_t i = 0; segment->pages && i < segment->page_count; i++)
        sums->mapped_pages += segment->pages[i] != 0;
    return NULL;
}

/* P3: a free block is in its list's bin exactly once; a bin's bit is set if it has blocks. */
static const char *
check_bin(const struct dryi_paged *p, uint32_t list, uint32_t bin, uint32_t *count)
{
    const struct free_list *s = p->lists[list];
    bool is_set = s->bins[bin / 32] >> (bin % 32) & 1;
    if (is_set != (s->heads[bin] != s->end) ||
        (s->bins[bin / 32] != 0) != (s->octaves >> (bin / 32) & 1))
        return "P3: a bin's bit is set exactly when the bin is not empty";
    uint32_t prev = s->end;
    for (uint32_t at = s->heads[bin]; at != s->end; at = p->blocks[at].bin_next) {
        const struct block *b = &p->blocks[at];
        bool fits = b->state == (s->kind == FREE_HOLES ? BLOCK_HOLE : BLOCK_FREE);
        if (!fits || b->list != list || find_bin(b->size) != bin || b->bin_prev != prev)
            return "P3: a bin holds free blocks of its free list and size";
        prev = at;
        ++*count;
    }
    return NULL;
}

/* P3: a cached block is on the stack of its size exactly once; lists count cached blocks. */
static const char *
check_caches(const struct dryi_paged *p, uint32_t list, uint32_t *count)
{
    const struct free_list *s = p->lists[list];
    uint32_t before = *count;
    if (s->stacked > 0 && !s->is_cached)
        return "P3: a list with cached blocks is noted";
    for (size_t i = 0; i < s->stack_count; i++) {
        for (uint32_t at = s->stacks[i]; at != NONE; at = p->blocks[at].bin_next) {
            const struct block *b = &p->blocks[at];
            if (b->state != BLOCK_CACHED || b->list != list ||
                stack_slot(s, b->size) != i || b->size != p->blocks[s->stacks[i]].size ||
                ++*count - before > s->stacked)
                return "P3: a cache holds free blocks of its list and size";
        }
    }
    return *count - before == s->stacked ? NULL : "P3: cached blocks are counted";
}

static bool
is_counted(const struct dryi_paged *p, enum stat_name name, const int64_t sums[2])
{
    const struct paged_stat *t = &p->stats[name];
    return t->current[0] == sums[0] && t->current[1] == sums[1] &&
           t->all_peak >= sums[0] + sums[1] && t->peak[0] >= sums[0] &&
           t->peak[1] >= sums[1];
}

/* P5: statistics and counters equal the recomputed totals. */
static const char *
check_sums(const struct dryi_paged *p, struct sums *sums)
{
    if (sums->mapped_pages + p->stock_count != p->page_count)
        return "P4: every page lies under an address or in the stock";
    if (dryi_place_figures_sum(&p->figures, false) != sums->mapped_bytes[0] ||
        dryi_place_figures_sum(&p->figures, true) != sums->mapped_bytes[1])
        return "P5: mapped bytes are those of all pools";
    sums->mapped_bytes[0] += (int64_t)(p->stock_count * p->page_bytes);
    if (!is_counted(p, STAT_ALLOCATION, sums->allocation) ||
        !is_counted(p, STAT_ALLOCATED_BYTES, sums->allocated_bytes) ||
        !is_counted(p, STAT_REQUESTED_BYTES, sums->requested_bytes) ||
        !is_counted(p, STAT_PENDING, sums->pending) ||
        !is_counted(p, STAT_PENDING_BYTES, sums->pending_bytes) ||
        !is_counted(p, STAT_RESERVED_BYTES, sums->mapped_bytes) ||
        !is_counted(p, STAT_SEGMENT, sums->segments))
        return "P5: the statistics are those of a walk";
    return NULL;
}

/* Count a list of unused records; NONE: one of them is in use. */
static uint32_t
count_dead(const struct dryi_paged *p, const struct records *dead)
{
    uint32_t count = 0;
    for (uint32_t at = dead->first; count < dead->count; at = p->blocks[at].next) {
        if (at == NONE || p->blocks[at].state != BLOCK_DEAD)
            return NONE;
        count++;
    }
    return count;
}

/* P9: each record belongs to a block or is on exactly one list of records. */
static const char *
check_records(const struct dryi_paged *p, const struct sums *sums)
{
    /* NIL, and the sentinel of each free list, use a record without a block. */
    uint64_t count = (uint64_t)sums->blocks + count_dead(p, &p->dead) + 1;
    for (uint32_t i = 0; i < p->list_count; i++) {
        const struct free_list *s = p->lists[i];
        if (!s)
            continue;
        count++;
        if (s->dead.count > 0 && !s->has_records)
            return "P9: only lists of shared caches have records";
        if (s->block_count != sums->by_list[i])
            return "P3: the blocks of a free list are counted";
        count += count_dead(p, &s->dead);
    }
    if (sums->dividers != p->divider_count)
        return "P9: dividers are counted";
    return count == p->block_count ? NULL : "P9: a record is a block's, or on one list";
}

/*
 * P6: memory that waits for streams is given to others only after its uses complete. Events end
 * epochs in order, and no stream is ordered after an epoch that has not ended.
 */
static const char *
check_streams(const struct dryi_paged *p)
{
    uint32_t waiting = 0, uses = 0, dead = 0, orders = 0;
    for (uint32_t i = 0; i < p->stream_count; i++) {
        const struct stream *s = &p->streams[i];
        uint64_t epoch = s->completed;
        uses += s->uses;
        for (uint32_t o = s->orders; o != NONE; o = p->orders[o].next, orders++) {
            if (p->orders[o].epoch >= p->streams[p->orders[o].on].epoch)
                return "P6: nobody comes behind an epoch that has not ended";
        }
        for (uint32_t u = s->first_use; u != NONE; u = p->uses[u].next) {
            if (p->uses[u].epoch <= epoch)
                return "P6: events of a stream lie in the order of their epochs";
            epoch = p->uses[u].epoch;
            waiting += p->uses[u].block != NONE;
        }
        if (s->marked < epoch || s->epoch <= s->marked)
            return "P6: an event ends its epoch";
    }
    for (uint32_t u = p->dead_use; u != NONE; u = p->uses[u].next)
        dead++;
    if (uses + dead != p->use_count || orders != p->order_ids.count)
        return "P6: a stream's uses are counted, and what it knows is its own";
    return waiting == p->waiting_uses ? NULL : "P6: what waits for streams is counted";
}

/* P11: a pool is found by its id; idle pools are on one list, unused pool records on another. */
static const char *
check_pools(const struct dryi_paged *p)
{
    uint32_t idle = 0, dead = 0, listed = 0;
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct private_pool *o = &p->pools[i];
        if (o->live && dryi_paged_pool_find(p, o->id) != i)
            return "P11: a pool is found by its id";
        idle += i > 0 && o->live && o->users == 0;
        dead += !o->live;
    }
    uint32_t last = NONE;
    for (uint32_t i = p->first_idle; i != NONE; i = p->pools[i].next) {
        const struct private_pool *o = &p->pools[i];
        if (!o->live || o->users > 0 || o->prev != last || ++listed > idle)
            return "P11: pools that nobody uses are listed, and no others";
        last = i;
    }
    if (dead != p->dead_pool_count || listed != idle || listed != p->idle_count ||
        last != p->last_idle)
        return "P11: pools that nobody uses are listed, and no others";
    listed = 0;
    for (uint32_t i = p->dead_pool; i != NONE && listed <= dead; i = p->pools[i].next)
        listed += !p->pools[i].live;
    return listed == dead ? NULL : "P11: a pool that is gone leaves its record";
}

/* P3: lists whose stacks may have blocks are chained from p->first_cached. */
static const char *
check_cached(const struct dryi_paged *p)
{
    uint32_t listed = 0, cached = 0, last = NONE;
    for (uint32_t i = 0; i < p->list_count; i++)
        cached += p->lists[i] && p->lists[i]->is_cached;
    for (uint32_t at = p->first_cached; at != NONE; at = p->lists[at]->next_cached) {
        const struct free_list *s = p->lists[at];
        if (!s->is_cached || s->prev_cached != last || ++listed > cached)
            break;
        last = at;
    }
    return listed == cached ? NULL : "P3: a list that is noted is on the list of those";
}

/* Count the free lists linked from `first`; NONE: the links are inconsistent. */
static uint32_t
count_lists(const struct dryi_paged *p, uint32_t first, bool of_stream, uint32_t whose)
{
    uint32_t count = 0, last = NONE;
    for (uint32_t at = first; at != NONE && count <= p->list_count; count++) {
        const struct free_list *s = p->lists[at];
        if (!s || s->kind != FREE_STREAM || (of_stream ? s->stream : s->arena) != whose ||
            (of_stream ? s->prev_of_stream : s->prev) != last)
            return NONE;
        last = at;
        at = of_stream ? s->next_of_stream : s->next;
    }
    return count;
}

/* Does the list belong to this arena? True for NONE. */
static bool
is_of_arena(const struct dryi_paged *p, uint32_t list, uint32_t arena)
{
    return list == NONE || (p->lists[list] && p->lists[list]->arena == arena);
}

/* P12: a stream's list is linked from its stream and arena; a dropped list's index is free. */
static const char *
check_lists(const struct dryi_paged *p)
{
    uint64_t of_streams = 0, of_arenas = 0, lists = 0, gone = 0;
    for (uint32_t i = 0; i < p->stream_count; i++)
        of_streams += count_lists(p, p->streams[i].lists, true, i);
    for (uint32_t i = 0; i < p->arena_count; i++) {
        const struct arena *a = &p->arenas[i];
        of_arenas += count_lists(p, a->lists, false, i);
        if (!is_of_arena(p, a->last_list, i))
            return "P12: what an arena remembers is a free list of its own";
    }
    for (uint32_t i = 0; i < p->list_count; i++) {
        lists += p->lists[i] && p->lists[i]->kind == FREE_STREAM;
        gone += !p->lists[i];
    }
    for (uint32_t i = 0; i < p->gone_list_count; i++) {
        if (p->lists[p->gone_lists[i]])
            return "P12: a free list that is gone leaves its place";
    }
    bool is_listed = of_streams == lists && of_arenas == lists;
    return is_listed && p->list_ids.count == lists && gone == p->gone_list_count
               ? NULL
               : "P12: a free list is its stream's and its arena's, or is gone";
}

/* P1: each live segment is on its arena's list. */
static const char *
check_segment_lists(const struct dryi_paged *p)
{
    uint32_t live = 0, listed = 0;
    for (uint32_t i = 0; i < p->segment_slots; i++)
        live += p->segments[i].live;
    for (uint32_t i = 0; i < p->arena_count; i++) {
        uint32_t last = NONE;
        for (uint32_t at = p->arenas[i].segments; at != NONE; at = p->segments[at].next) {
            const struct segment *s = &p->segments[at];
            if (!s->live || s->arena != i || s->prev != last || ++listed > live)
                return "P1: a segment is on its arena's list";
            last = at;
        }
    }
    return listed == live ? NULL : "P1: a segment is on its arena's list";
}

static const char *
check_all(const struct dryi_paged *p, uint8_t *seen, struct sums *sums)
{
    const char *broken = NULL;
    uint32_t listed_blocks = 0, cached = 0;
    for (uint32_t i = 0; i < p->segment_slots && !broken; i++) {
        if (p->segments[i].live)
            broken = check_segment(p, &p->segments[i], sums, seen);
    }
    for (uint32_t i = 0; i < p->list_count && !broken; i++) {
        for (uint32_t bin = 0; p->lists[i] && bin < BIN_COUNT && !broken; bin++)
            broken = check_bin(p, i, bin, &listed_blocks);
        if (p->lists[i] && !broken)
            broken = check_caches(p, i, &cached);
    }
    if (!broken && (listed_blocks != sums->listed_blocks || cached != sums->cached))
        broken = "P3: a free block is on its free list exactly once";
    if (!broken)
        broken = check_cached(p);
    if (!broken)
        broken = check_lists(p);
    if (!broken)
        broken = check_segment_lists(p);
    if (!broken)
        broken = check_pools(p);
    for (uint32_t i = 0; i < p->stock_count && !broken; i++) {
        if (seen[p->stock[i]]++)
            broken = "P4: a page in the stock lies under no address";
    }
    if (!broken)
        broken = check_records(p, sums);
    if (!broken)
        broken = check_sums(p, sums);
    if (!broken)
        broken = dryi_paged_layout_check(p);
    if (!broken)
        broken = dryi_paged_parking_check(p, sums->parked);
    return broken ? broken : check_streams(p);
}

enum dry_status
dryi_paged_check(const void *self, struct dry_error *err)
{
    const struct dryi_paged *p = self;
    size_t count = (size_t)p->page_slots + 1;
    uint8_t *seen = dryi_memory_zalloc(&p->memory, count, 1);
    struct sums sums = {0};
    sums.by_list = dryi_memory_zalloc(&p->memory, p->list_count, sizeof *sums.by_list);
    bool has_memory = seen && sums.by_list;
    const char *broken = has_memory ? check_all(p, seen, &sums) : NULL;
    dryi_memory_free(&p->memory, sums.by_list, p->list_count, sizeof *sums.by_list);
    dryi_memory_free(&p->memory, seen, count, 1);
    if (!has_memory)
        return dryi_fail_memory(err, "a check");
    return broken ? dryi_fail(err, DRY_ERR_FORMAT, "%s", broken) : DRY_OK;
}
