/* SPDX-License-Identifier: Apache-2.0 */

/* The memory map at a moment: segments, blocks in use, and the free blocks in between. Free
   neighbours are always merged, so each gap between used blocks is one free block. */

#include <drystone/state.h>

#include <stdlib.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"
#include "explain/timeline/timeline_inside.h"

#define SMALL_PAGE (2 * DRYI_MIB)

struct building {
    struct dry_state state; /* first member: what the caller sees */
    struct dry_memory memory;
    const struct dry_timeline *t;
    struct dry_state_segment *segments;
    size_t segment_capacity;
    struct dryi_sort_item *alive; /* allocations by address, while building */
    size_t alive_count, alive_capacity;
    struct dry_state_block *blocks;
    size_t block_capacity;
    struct dry_state_pool *pools;
    size_t pool_capacity;
    struct dry_pinner *pinners;
    size_t pinner_capacity;
};

/* --- live allocations --------------------------------------------------------------------- */

static enum dry_status
on_alive(void *self, uint32_t allocation)
{
    struct building *b = self;
    const struct dry_allocation *a = &b->t->allocations[allocation];
    if (!dryi_memory_grow(&b->memory, &b->alive, &b->alive_capacity, b->alive_count + 1,
                          sizeof *b->alive))
        return DRY_ERR_MEMORY;
    b->alive[b->alive_count++] =
        (struct dryi_sort_item){.key = a->address, .value = allocation};
    return DRY_OK;
}

static enum dry_status
on_segment(void *self, uint32_t segment)
{
    struct building *b = self;
    const struct dry_timeline_segment *s = &b->t->segments[segment];
    if (!dryi_memory_grow(&b->memory, &b->segments, &b->segment_capacity,
                          b->state.segment_count + 1, sizeof *b->segments))
        return DRY_ERR_MEMORY;
    const struct dry_lane *lane = &b->t->trace->lanes[s->lane];
    b->segments[b->state.segment_count++] = (struct dry_state_segment){
        .address = s->address,
        .size = s->size,
        .lane = s->lane,
        .is_large = s->is_large,
        .is_expandable = s->is_expandable,
        .is_private = lane->pool_a != 0 || lane->pool_b != 0,
    };
    return DRY_OK;
}

/* Sort by address. The sort is stable: at equal addresses the older allocation comes first. */
static bool
sort_alive(struct building *b)
{
    struct dryi_sort_item *scratch =
        dryi_memory_zalloc(&b->memory, b->alive_count + 1, sizeof *scratch);
    if (!scratch)
        return false;
    dryi_sort_items(b->alive, scratch, b->alive_count);
    dryi_memory_free(&b->memory, scratch, b->alive_count + 1, sizeof *scratch);
    return true;
}

/*
 * Join adjacent pieces of an expandable segment, as a snapshot lists each contiguous run of
 * pages as one segment. Before the dump, the size of pages suggests whether they belong to
 * the large pool. If pages of 2 MiB serve both pools, the guess may change within a run;
 * then it counts as large.
 */
static void
join_runs(struct building *b)
{
    bool is_known = b->state.moment == b->t->view.dump_moment;
    size_t kept = 0;
    for (size_t i = 0; i < b->state.segment_count; i++) {
        const struct dry_state_segment *s = &b->segments[i];
        struct dry_state_segment *last = kept ? &b->segments[kept - 1] : NULL;
        bool is_run = last && last->is_expandable && s->is_expandable &&
                      last->address + last->size == s->address && last->lane == s->lane;
        if (is_run && (last->is_large == s->is_large || !is_known)) {
            last->size += s->size;
            last->is_large |= s->is_large;
        } else {
            b->segments[kept++] = *s;
        }
    }
    b->state.segment_count = kept;
}

/* --- blocks of segments ------------------------------------------------------------------- */

static bool
add_block(struct building *b, struct dry_state_segment *s,
          const struct dry_state_block *block)
{
    if (!dryi_memory_grow(&b->memory, &b->blocks, &b->block_capacity,
                          b->state.block_count + 1, sizeof *b->blocks))
        return false;
    b->blocks[b->state.block_count++] = *block;
    s->block_count++;
    return true;
}

static bool
add_free(struct building *b, struct dry_state_segment *s, uint64_t from, uint64_t to)
{
    struct dry_state_block block = {.address = from,
                                    .size = to - from,
                                    .allocation = DRY_NONE,
                                    .state = DRY_BLOCK_INACTIVE};
    return from == to || add_block(b, s, &block);
}

static void
count_unplaced(struct building *b, const struct dryi_sort_item *alive)
{
    b->state.unplaced_bytes += b->t->allocations[alive->value].size;
    b->state.unplaced_count++;
}

static struct dry_state_block
get_block(const struct building *b, const struct dryi_sort_item *alive)
{
    const struct dry_allocation *a = &b->t->allocations[alive->value];
    bool is_pending = a->freed <= b->state.moment;
    return (struct dry_state_block){
        .address = a->address,
        .size = a->size,
        .requested = a->requested,
        .allocation = alive->value,
        .state = is_pending ? DRY_BLOCK_PENDING_FREE : DRY_BLOCK_ACTIVE,
    };
}

/* Add the blocks that begin inside a segment, and the gaps. *next iterates
   over the live allocations. */
static bool
fill_segment(struct building *b, struct dry_state_segment *s, size_t *next)
{
    uint64_t at = s->address, end = s->address + s->size;
    s->first_block = b->state.block_count;
    while (*next < b->alive_count && b->alive[*next].key < s->address)
        count_unplaced(b, &b->alive[(*next)++]);
    for (; *next < b->alive_count && b->alive[*next].key < end; (*next)++) {
        struct dry_state_block block = get_block(b, &b->alive[*next]);
        uint64_t last =
            end - block.address < block.size ? end : block.address + block.size;
        bool is_cut = block.address < at || last - block.address < block.size;
        if (is_cut) { /* the record contradicts itself */
            b->state.overlap_count++;
            block.address = block.address < at ? at : block.address;
            if (last <= block.address) {
                count_unplaced(b, &b->alive[*next]);
                continue;
            }
            block.size = last - block.address;
            block.requested = block.requested < block.size ? block.requested : block.size;
        }
        if (!add_free(b, s, at, block.address) || !add_block(b, s, &block))
            return false;
        at = last;
    }
    return add_free(b, s, at, end);
}

static bool
place_blocks(struct building *b)
{
    size_t expected = b->alive_count + b->state.segment_count;
    if (expected > 0 && !dryi_memory_grow(&b->memory, &b->blocks, &b->block_capacity,
                                          expected, sizeof *b->blocks))
        return false;
    size_t next = 0;
    for (size_t i = 0; i < b->state.segment_count; i++) {
        if (!fill_segment(b, &b->segments[i], &next))
            return false;
    }
    while (next < b->alive_count)
        count_unplaced(b, &b->alive[next++]);
    return true;
}

/* --- sums --------------------------------------------------------------------------------- */

static uint64_t
get_page(const struct building *b, const struct dry_state_segment *s)
{
    return s->is_large ? b->state.page_bytes : SMALL_PAGE;
}

/* Return the bytes of a free block that can go back to the device without moving a block.
   Private pools return none. */
static uint64_t
count_releasable(const struct building *b, const struct dry_state_segment *s,
                 const struct dry_state_block *block)
{
    if (s->is_private)
        return 0;
    if (!s->is_expandable)
        return block->size == s->size ? block->size : 0;
    uint64_t page = get_page(b, s), from = block->address - s->address;
    uint64_t begin = dryi_round_up(from, page);
    uint64_t end = dryi_round_down(from + block->size, page);
    if (from + block->size == s->size) /* the run's end is cut by
                                          events that the record lacks */
        end = s->size;
    return end > begin ? end - begin : 0;
}

static void
add_to_sums(struct building *b, struct dry_state_segment *s, struct dry_state_pool *pool)
{
    struct dry_state *state = &b->state;
    pool->segment_count++;
    pool->reserved += s->size;
    for (size_t i = 0; i < s->block_count; i++) {
        const struct dry_state_block *block = &b->blocks[s->first_block + i];
        if (block->state == DRY_BLOCK_INACTIVE) {
            uint64_t releasable = count_releasable(b, s, block);
            s->releasable += releasable;
            pool->releasable += releasable;
            pool->stranded += block->size - releasable;
            state->private_free += s->is_private ? block->size : 0;
            pool->hole_count += block->size != s->size;
            if (block->size > s->largest_free)
                s->largest_free = block->size;
        } else {
            bool is_pending = block->state == DRY_BLOCK_PENDING_FREE;
            *(is_pending ? &s->pending : &s->allocated) += block->size;
            pool->requested += block->requested;
        }
    }
    pool->allocated += s->allocated;
    pool->pending += s->pending;
    if (s->largest_free > pool->largest_free)
        pool->largest_free = s->largest_free;
}

/* Sort segments by pool (lane and size class), so that each pool is contiguous. */
struct key {
    uint32_t lane, is_large;
    size_t segment;
};

static int
compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->is_large != y->is_large)
        return x->is_large < y->is_large ? -1 : 1;
    return (x->segment > y->segment) - (x->segment < y->segment);
}

static bool
add_pool(struct building *b, const struct dry_state_segment *s)
{
    if (!dryi_memory_grow(&b->memory, &b->pools, &b->pool_capacity,
                          b->state.pool_count + 1, sizeof *b->pools))
        return false;
    b->pools[b->state.pool_count++] = (struct dry_state_pool){
        .lane = s->lane, .is_large = s->is_large, .is_private = s->is_private};
    return true;
}

/* A pool, with its number from before sorting by size. */
struct numbered_pool {
    struct dry_state_pool pool;
    uint32_t number;
};

static int
compare_pools(const void *a, const void *b)
{
    const struct numbered_pool *x = a, *y = b;
    if (x->pool.reserved != y->pool.reserved)
        return x->pool.reserved < y->pool.reserved ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

static bool
sort_pools(struct building *b)
{
    size_t count = b->state.pool_count;
    struct numbered_pool *pools =
        dryi_memory_zalloc(&b->memory, count + 1, sizeof *pools);
    uint32_t *ranks = dryi_memory_zalloc(&b->memory, count + 1, sizeof *ranks);
    for (uint32_t i = 0; pools && ranks && i < count; i++)
        pools[i] = (struct numbered_pool){.pool = b->pools[i], .number = i};
    if (pools && ranks) {
        qsort(pools, count, sizeof *pools, compare_pools);
        for (uint32_t i = 0; i < count; i++) {
            b->pools[i] = pools[i].pool;
            ranks[pools[i].number] = i;
        }
        for (size_t i = 0; i < b->state.segment_count; i++)
            b->segments[i].pool = ranks[b->segments[i].pool];
    }
    bool is_done = pools && ranks;
    dryi_memory_free(&b->memory, pools, count + 1, sizeof *pools);
    dryi_memory_free(&b->memory, ranks, count + 1, sizeof *ranks);
    return is_done;
}

static void
add_up_pools(struct building *b)
{
    struct dry_state *s = &b->state;
    for (size_t i = 0; i < s->pool_count; i++) {
        const struct dry_state_pool *pool = &b->pools[i];
        s->reserved += pool->reserved;
        s->allocated += pool->allocated;
        s->pending += pool->pending;
        s->requested += pool->requested;
        s->releasable += pool->releasable;
        s->stranded += pool->stranded;
    }
    s->active = s->allocated + s->pending;
    s->rounding = s->active - (s->requested < s->active ? s->requested : s->active);
}

static bool
is_of_pool(const struct dry_state_pool *pool, const struct dry_state_segment *s)
{
    return pool->lane == s->lane && pool->is_large == s->is_large;
}

static bool
make_pools(struct building *b)
{
    size_t count = b->state.segment_count;
    struct key *keys = dryi_memory_zalloc(&b->memory, count + 1, sizeof *keys);
    if (!keys)
        return false;
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct key){.lane = b->segments[i].lane,
                               .is_large = b->segments[i].is_large,
                               .segment = i};
    qsort(keys, count, sizeof *keys, compare_keys);
    bool has_memory = true;
    for (size_t i = 0; i < count && has_memory; i++) {
        struct dry_state_segment *s = &b->segments[keys[i].segment];
        if (b->state.pool_count == 0 ||
            !is_of_pool(&b->pools[b->state.pool_count - 1], s))
            has_memory = add_pool(b, s);
        if (!has_memory)
            break;
        s->pool = (uint32_t)b->state.pool_count - 1;
        add_to_sums(b, s, &b->pools[s->pool]);
    }
    dryi_memory_free(&b->memory, keys, count + 1, sizeof *keys);
    if (!has_memory || !sort_pools(b))
        return false;
    add_up_pools(b);
    return true;
}

/* --- pinners ------------------------------------------------------------------------------ */

/* The free blocks next to the current block in use, within its segment. */
struct surroundings {
    uint64_t free_before; /* end of the free block before it, as offset
                        in the segment; 0: none */
    size_t next;          /* index of the free block after it; block_count: none */
};

/* Return whether a block touches a page that a free block also touches. */
static bool
shares_page(const struct building *b, const struct dry_state_segment *s, size_t i,
            const struct surroundings *around)
{
    if (!s->is_expandable)
        return true;
    const struct dry_state_block *blocks = &b->blocks[s->first_block];
    uint64_t page = get_page(b, s), from = blocks[i].address - s->address;
    uint64_t page_begin = dryi_round_down(from, page);
    uint64_t page_end = dryi_round_up(from + blocks[i].size, page);
    bool free_behind = around->next < s->block_count &&
                       blocks[around->next].address - s->address < page_end;
    return around->free_before > page_begin || free_behind;
}

/* Sum up what would have to move to obtain whole free pages, or a free segment. */
static void
count_used(const struct building *b, const struct dry_state_segment *s,
           struct dry_pinner *pinner)
{
    const struct dry_state_block *blocks = &b->blocks[s->first_block];
    struct surroundings around = {0};
    for (size_t i = 0; i < s->block_count; i++) {
        if (blocks[i].state == DRY_BLOCK_INACTIVE) {
            around.free_before = blocks[i].address + blocks[i].size - s->address;
            continue;
        }
        while (around.next < s->block_count &&
               (around.next < i || blocks[around.next].state != DRY_BLOCK_INACTIVE))
            around.next++;
        if (shares_page(b, s, i, &around)) {
            pinner->used += blocks[i].size;
            pinner->used_count++;
        }
    }
}

static bool
add_pinner(struct building *b, size_t segment)
{
    const struct dry_state_segment *s = &b->segments[segment];
    struct dry_pinner pinner = {.segment = segment};
    pinner.pinned = s->size - s->allocated - s->pending - s->releasable;
    if (pinner.pinned == 0)
        return true;
    count_used(b, s, &pinner);
    if (pinner.used_count == 0) /* all free, in a private pool */
        return true;
    if (!dryi_memory_grow(&b->memory, &b->pinners, &b->pinner_capacity,
                          b->state.pinner_count + 1, sizeof *b->pinners))
        return false;
    b->pinners[b->state.pinner_count++] = pinner;
    return true;
}

/* Avoid division by 0: in a damaged file a block may have 0 bytes. */
static double
get_yield(const struct dry_pinner *p)
{
    return (double)p->pinned / (double)(p->used > 0 ? p->used : 1);
}

/* Sort by pinned bytes per used byte; ties by pinned bytes, largest first. */
static int
compare_pinners(const void *a, const void *b)
{
    const struct dry_pinner *x = a, *y = b;
    double p = get_yield(x), q = get_yield(y);
    if (p < q || p > q)
        return p < q ? 1 : -1;
    if (x->pinned != y->pinned)
        return x->pinned < y->pinned ? 1 : -1;
    return (x->segment > y->segment) - (x->segment < y->segment);
}

static void
add_up_loose(struct building *b)
{
    struct dry_state *s = &b->state;
    for (; s->loose_count < s->pinner_count; s->loose_count++) {
        const struct dry_pinner *p = &b->pinners[s->loose_count];
        if (p->pinned / DRY_PINNER_LOOSE < p->used)
            return;
        s->loose_pinned += p->pinned;
        s->loose_used += p->used;
        s->loose_blocks += p->used_count;
    }
}

static bool
find_pinners(struct building *b)
{
    for (size_t i = 0; i < b->state.segment_count; i++) {
        if (!add_pinner(b, i))
            return false;
    }
    if (b->state.pinner_count > 0)
        qsort(b->pinners, b->state.pinner_count, sizeof *b->pinners, compare_pinners);
    add_up_loose(b);
    return true;
}

/* --- creation ----------------------------------------------------------------------------- */

static bool
build(struct building *b)
{
    uint32_t moment = b->state.moment;
    if (dry_timeline_visit_alive(b->t, moment, on_alive, b) != DRY_OK ||
        dry_timeline_visit_segments(b->t, moment, on_segment, b) != DRY_OK ||
        !sort_alive(b))
        return false;
    if (b->state.segment_count > 0)
        qsort(b->segments, b->state.segment_count, sizeof *b->segments,
              dryi_compare_leading);
    join_runs(b);
    return place_blocks(b) && make_pools(b) && find_pinners(b);
}

enum dry_status
dry_state_create(const struct dry_timeline *timeline, uint32_t moment,
                 struct dry_state **state, struct dry_error *err)
{
    if (moment > timeline->view.dump_moment)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "moment %u: the last is %u", moment,
                         timeline->view.dump_moment);
    struct dry_memory memory = timeline->memory;
    struct building *b = dryi_memory_zalloc(&memory, 1, sizeof *b);
    if (!b)
        return dryi_fail_memory(err, "a state");
    b->memory = memory;
    b->t = timeline;
    b->state.moment = moment;
    b->state.device = timeline->view.device;
    b->state.page_bytes = timeline->has_small_pages
                              ? SMALL_PAGE
                              : dryi_replay_conf(timeline->replay)->large_segment_size;
    bool is_done = build(b);
    dryi_memory_free(&memory, b->alive, b->alive_capacity, sizeof *b->alive);
    b->alive = NULL;
    b->alive_capacity = 0;
    b->t = NULL;
    b->state.segments = b->segments;
    b->state.blocks = b->blocks;
    b->state.pools = b->pools;
    b->state.pinners = b->pinners;
    if (!is_done) {
        dry_state_destroy(&b->state);
        return dryi_fail_memory(err, "a state");
    }
    *state = &b->state;
    return DRY_OK;
}

void
dry_state_destroy(struct dry_state *state)
{
    if (!state)
        return;
    struct building *b = (struct building *)state;
    struct dry_memory memory = b->memory;
    dryi_memory_free(&memory, b->segments, b->segment_capacity, sizeof *b->segments);
    dryi_memory_free(&memory, b->blocks, b->block_capacity, sizeof *b->blocks);
    dryi_memory_free(&memory, b->pools, b->pool_capacity, sizeof *b->pools);
    dryi_memory_free(&memory, b->pinners, b->pinner_capacity, sizeof *b->pinners);
    dryi_memory_free(&memory, b, 1, sizeof *b);
}
