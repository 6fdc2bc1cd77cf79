/* SPDX-License-Identifier: Apache-2.0 */

/* The layout: read access (get_block, walk), restoring, and the check of the invariants. */

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"
#include "place/torch/torch_block.h"
#include "place/torch/torch_pool.h"
#include "place/torch/torch_segment.h"

/* --- looking ------------------------------------------------------------------------------ */

static bool
is_pending(const struct block *b)
{
    return !b->allocated && (b->event_count > 0 || b->uses != NONE);
}

void
dryi_torch_get_block(const void *self, dryi_block block, struct dryi_block_info *info)
{
    const struct dryi_torch *t = self;
    DRYI_ASSERT(block < t->block_count && t->blocks[block].live);
    const struct block *b = &t->blocks[block];
    const struct segment *s = &t->segments[b->segment];
    *info = (struct dryi_block_info){
        .addr = b->addr,
        .size = b->size,
        .requested = b->requested,
        .stream = t->streams[b->stream].value,
        .pool = t->owners[b->pool / 2].id,
        .segment = s->ordinal,
        .offset = b->addr - s->addr,
        .allocated = b->allocated,
        .pending = is_pending(b),
        .mapped = b->mapped,
        .is_large = !pool_is_small(b->pool),
    };
}

/* A mapped range as a snapshot lists it: block_count blocks from `first` on. */
struct run {
    uint64_t addr, size; /* `addr` first, to sort by it */
    uint32_t first, segment;
    size_t block_count;
};

/* Return the mapped run at or after `block`. run.first is NONE at the end of the segment. */
static struct run
next_run(const struct dryi_torch *t, uint32_t segment, uint32_t block)
{
    struct run run = {.first = NONE, .segment = segment};
    while (block != NONE && !t->blocks[block].mapped)
        block = t->blocks[block].next;
    if (block == NONE)
        return run;
    run.first = block;
    run.addr = t->blocks[block].addr;
    for (; block != NONE && t->blocks[block].mapped; block = t->blocks[block].next) {
        run.size += t->blocks[block].size;
        run.block_count++;
    }
    return run;
}

/* Return the block after a run. */
static uint32_t
after_run(const struct dryi_torch *t, const struct run *run)
{
    uint32_t block = run->first;
    for (size_t i = 0; i < run->block_count; i++)
        block = t->blocks[block].next;
    return block;
}

/* Count the runs and write them to `runs` unless NULL. *longest: most blocks of one run. */
static size_t
list_runs(const struct dryi_torch *t, struct run *runs, size_t *longest)
{
    size_t count = 0;
    *longest = 0;
    for (uint32_t s = 0; s < t->segment_slots; s++) {
        if (!t->segments[s].live)
            continue;
        struct run run = next_run(t, s, t->segments[s].first_block);
        while (run.first != NONE) {
            if (runs)
                runs[count] = run;
            if (run.block_count > *longest)
                *longest = run.block_count;
            count++;
            run = next_run(t, s, after_run(t, &run));
        }
    }
    return count;
}

enum dry_status
dryi_torch_walk(const void *self,
                enum dry_status (*visit)(void *visitor,
                                         const struct dryi_segment_info *segment,
                                         const struct dryi_block_info *blocks,
                                         size_t count),
                void *visitor)
{
    const struct dryi_torch *t = self;
    size_t longest;
    size_t count = list_runs(t, NULL, &longest);
    if (count == 0)
        return DRY_OK;
    struct run *runs = dryi_memory_zalloc(&t->memory, count, sizeof *runs);
    struct dryi_block_info *infos =
        dryi_memory_zalloc(&t->memory, longest, sizeof *infos);
    enum dry_status status = runs && infos ? DRY_OK : DRY_ERR_MEMORY;
    if (status == DRY_OK) {
        list_runs(t, runs, &longest);
        qsort(runs, count, sizeof *runs, dryi_compare_leading);
    }
    for (size_t i = 0; i < count && status == DRY_OK; i++) {
        uint32_t block = runs[i].first;
        for (size_t j = 0; j < runs[i].block_count; j++) {
            dryi_torch_get_block(t, block, &infos[j]);
            block = t->blocks[block].next;
        }
        const struct segment *s = &t->segments[runs[i].segment];
        const struct lane *lane = &t->lanes[s->lane];
        struct dryi_segment_info info = {
            .addr = runs[i].addr,
            .size = runs[i].size,
            .stream = t->streams[lane->stream].value,
            .pool = t->owners[lane->pool / 2].id,
            .is_large = !pool_is_small(lane->pool),
            .is_expandable = s->page != 0,
            .segment = s->ordinal,
        };
        status = visit(visitor, &info, infos, runs[i].block_count);
    }
    dryi_memory_free(&t->memory, runs, count, sizeof *runs);
    dryi_memory_free(&t->memory, infos, longest, sizeof *infos);
    return status;
}

/* --- restoring ---------------------------------------------------------------------------- */

static bool
is_restorable(const struct dryi_torch_restored *r)
{
    uint64_t at = r->segment.addr;
    for (size_t i = 0; i < r->block_count; i++) {
        const struct dryi_block_info *b = &r->blocks[i];
        if (b->addr != at || b->size == 0 || b->size % BLOCK_SIZE_MIN != 0 ||
            b->requested > b->size || __builtin_add_overflow(at, b->size, &at))
            return false;
    }
    return r->block_count > 0 && at - r->segment.addr == r->segment.size;
}

static enum dry_status
find_lane(struct dryi_torch *t, const struct dryi_segment_info *info, uint32_t *lane)
{
    uint32_t owner = dryi_torch_owner_find(t, info->pool);
    if (owner == NONE) {
        owner = dryi_torch_owner_make(t, info->pool);
        if (owner == NONE)
            return DRY_ERR_MEMORY;
        dryi_torch_owner_use(t, owner);
    }
    uint32_t stream = dryi_torch_stream_index(t, info->stream);
    if (stream == NONE)
        return DRY_ERR_MEMORY;
    *lane = dryi_torch_lane_index(t, 2 * owner + !info->is_large, stream);
    return *lane == NONE ? DRY_ERR_MEMORY : DRY_OK;
}

static void
count_restored(struct dryi_torch *t, const struct block *b)
{
    struct dry_stats *s = &t->stats;
    if (b->allocated) {
        dryi_torch_stat_change(&s->allocation, b->pool, 1);
        dryi_torch_stat_change(&s->allocated_bytes, b->pool, (int64_t)b->size);
        dryi_torch_stat_change(&s->active, b->pool, 1);
        dryi_torch_stat_change(&s->active_bytes, b->pool, (int64_t)b->size);
        dryi_torch_stat_change(&s->requested_bytes, b->pool, (int64_t)b->requested);
        if (b->size >= t->conf.max_split_size)
            dryi_torch_stat_add(&s->oversize_allocations, 1);
    } else if (!block_is_expandable(t, b) && block_is_split(b)) {
        dryi_torch_stat_change(&s->inactive_split, b->pool, 1);
        dryi_torch_stat_change(&s->inactive_split_bytes, b->pool, (int64_t)b->size);
    }
}

/* Split a block off the begin of `front`, and mark it as `info` says. Returns the rest or NONE. */
static uint32_t
carve(struct dryi_torch *t, uint32_t front, const struct dryi_block_info *info)
{
    struct block *f = &t->blocks[front];
    DRYI_ASSERT_SLOW(f->addr == info->addr && f->size >= info->size &&
                     info->requested <= info->size);
    DRYI_ASSERT_SLOW(!t->nodes[front].in_set && !f->allocated);
    uint32_t rest = NONE;
    if (f->size > info->size) {
        rest = dryi_torch_block_make(t, f->segment, f->addr + info->size,
                                     f->size - info->size);
        t->blocks[rest].mapped = f->mapped;
        f->size = info->size;
        dryi_torch_block_link_after(t, front, rest);
    }
    f->mapped = true;
    f->allocated = info->allocated;
    f->requested = info->requested;
    return rest;
}

/*
 * Make the blocks of one restored range from `front`, the block that contains the range. Returns
 * the block after the range, or NONE. A free block is inserted once its links are final.
 */
static uint32_t
restore_blocks(struct dryi_torch *t, uint32_t front, const struct dryi_torch_restored *r,
               dryi_block *handles)
{
    for (size_t i = 0; i < r->block_count; i++) {
        DRYI_ASSERT(front != NONE);
        uint32_t block = front;
        front = carve(t, block, &r->blocks[i]);
        handles[i] = r->blocks[i].allocated ? block : DRYI_NO_BLOCK;
        if (!r->blocks[i].allocated)
            dryi_torch_free_insert(t, block);
    }
    return front;
}

static void
count_segment_blocks(struct dryi_torch *t, uint32_t segment)
{
    for (uint32_t b = t->segments[segment].first_block; b != NONE;
         b = t->blocks[b].next) {
        if (t->blocks[b].mapped)
            count_restored(t, &t->blocks[b]);
    }
}

static void
count_restored_bytes(struct dryi_torch *t, uint32_t pool, uint64_t bytes)
{
    t->total_bytes += bytes;
    t->owners[pool / 2].reserved_bytes += bytes;
    dryi_torch_stat_change(&t->stats.reserved_bytes, pool, (int64_t)bytes);
    dryi_place_figures_change(&t->figures, t->owners[pool / 2].figure,
                              pool_is_small(pool), (int64_t)bytes);
}

static void
restore_whole(struct dryi_torch *t, const struct dryi_torch_restored *r, uint32_t lane,
              dryi_block *handles)
{
    DRYI_ASSERT_SLOW(!r->segment.is_expandable && lane < t->lane_ids.count);
    const struct dryi_segment_info *info = &r->segment;
    uint32_t pool = t->lanes[lane].pool;
    uint32_t segment = dryi_torch_segment_make(t, info->addr, info->size, 0, lane);
    restore_blocks(t, t->segments[segment].first_block, r, handles);
    count_segment_blocks(t, segment);
    dryi_torch_stat_change(&t->stats.segment, pool, 1);
    if (info->size >= t->conf.max_split_size)
        dryi_torch_stat_add(&t->stats.oversize_segments, 1);
    count_restored_bytes(t, pool, info->size);
}

/*
 * Return the unmapped block that contains the range, or NONE. Ranges come in order, so it is the
 * end of the previous range's reservation, if the reservation reaches that far.
 */
static uint32_t
find_unmapped(const struct dryi_torch *t, const struct dryi_segment_info *info,
              uint32_t lane)
{
    uint32_t root = t->lanes[lane].unmapped_root;
    uint32_t block = dryi_treap_below(t->nodes, root, info->addr, 1);
    if (block == NONE)
        return NONE;
    const struct block *b = &t->blocks[block];
    bool fits = b->size >= info->size && info->addr - b->addr <= b->size - info->size;
    return fits ? block : NONE;
}

static enum dry_status
restore_run(struct dryi_torch *t, const struct dryi_torch_restored *r, uint32_t lane,
            dryi_block *handles)
{
    DRYI_ASSERT_SLOW(r->segment.is_expandable && lane < t->lane_ids.count);
    const struct dryi_segment_info *info = &r->segment;
    uint32_t pool = t->lanes[lane].pool;
    uint64_t page = pool_is_small(pool) ? SMALL_SEGMENT : t->conf.large_segment_size;
    if (info->size % page != 0)
        return DRY_ERR_FORMAT;
    uint32_t front = find_unmapped(t, info, lane);
    if (front == NONE) {
        uint64_t base = r->reserved_from ? r->reserved_from : info->addr;
        uint64_t reach = dryi_torch_expandable_reach(t, page);
        if (base > info->addr || info->addr + info->size - base > reach)
            return DRY_ERR_FORMAT;
        uint32_t fresh = dryi_torch_segment_make(t, base, reach, page, lane);
        front = t->segments[fresh].first_block;
        dryi_torch_unmapped_insert(t, front);
    }
    uint32_t segment = t->blocks[front].segment;
    if ((info->addr - t->segments[segment].addr) % page != 0)
        return DRY_ERR_FORMAT;
    dryi_torch_unmapped_remove(t, front);
    /* Addresses before the range stay unmapped. */
    if (info->addr > t->blocks[front].addr) {
        struct block *hole = &t->blocks[front];
        uint32_t rest = dryi_torch_block_make(t, segment, info->addr,
                                              hole->addr + hole->size - info->addr);
        t->blocks[rest].mapped = false;
        hole->size = info->addr - hole->addr;
        dryi_torch_block_link_after(t, front, rest);
        dryi_torch_unmapped_insert(t, front);
        front = rest;
    }
    uint32_t behind = restore_blocks(t, front, r, handles);
    if (behind != NONE)
        dryi_torch_unmapped_insert(t, behind);
    for (size_t i = 0; i < r->block_count; i++) {
        if (handles[i] != DRYI_NO_BLOCK)
            count_restored(t, &t->blocks[handles[i]]);
    }
    count_restored_bytes(t, pool, info->size);
    return DRY_OK;
}

enum dry_status
dryi_torch_restore(struct dryi_torch *t, const struct dryi_torch_restored *segments,
                   size_t segment_count, dryi_block *handles, struct dry_error *err)
{
    DRYI_ASSERT(t->segments_made == 0);
    for (size_t i = 0; i < segment_count; i++) {
        const struct dryi_torch_restored *r = &segments[i];
        if (!is_restorable(r) ||
            (i > 0 && r->segment.addr < segments[i - 1].segment.addr))
            return dryi_fail(err, DRY_ERR_FORMAT,
                             "segment at %#llx: its blocks do not fill it in order",
                             (unsigned long long)r->segment.addr);
        uint32_t lane;
        enum dry_status status = find_lane(t, &r->segment, &lane);
        if (status != DRY_OK || !dryi_torch_segment_reserve(t, 1) ||
            !dryi_torch_block_reserve(t, r->block_count + 3))
            return dryi_fail_memory(err, "the blocks of a layout");
        if (r->segment.is_expandable)
            status = restore_run(t, r, lane, handles);
        else
            restore_whole(t, r, lane, handles);
        if (status != DRY_OK)
            return dryi_fail(err, status,
                             "expandable segment at %#llx: not made of whole pages",
                             (unsigned long long)r->segment.addr);
        handles += r->block_count;
    }
    return DRY_OK;
}

/* --- proving ------------------------------------------------------------------------------ */

/* Sums over all blocks, to compare with the statistics: [0] large, [1] small. */
struct tally {
    int64_t allocation, active, split, segment;
    int64_t allocated_bytes, active_bytes, requested_bytes, split_bytes, reserved_bytes;
};

static const char *
check_block(const struct dryi_torch *t, uint32_t block, uint64_t addr)
{
    const struct block *b = &t->blocks[block];
    const struct segment *s = &t->segments[b->segment];
    if (!b->live || b->addr != addr || b->size == 0)
        return "T1: the blocks of a segment lie gapless and fill it";
    if (b->size % BLOCK_SIZE_MIN || (b->addr - s->addr) % BLOCK_SIZE_MIN)
        return "T2: sizes and offsets are multiples of 512";
    bool is_waiting = is_pending(b);
    bool in_free = b->mapped && !b->allocated && !is_waiting;
    if (b->next != NONE) {
        const struct block *n = &t->blocks[b->next];
        bool next_free = n->mapped && !n->allocated && !is_pending(n);
        if ((in_free && next_free) || (!b->mapped && !n->mapped))
            return "T3: two free neighbours";
        if (n->prev != block)
            return "T1: links between blocks go both ways";
    }
    const struct lane *lane = &t->lanes[b->lane];
    const struct dryi_treap_node *node = &t->nodes[block];
    uint32_t root = b->mapped ? lane->free_root : lane->unmapped_root;
    bool should_be_in = in_free || !b->mapped;
    if ((node->in_set != 0) != should_be_in ||
        (should_be_in &&
         dryi_treap_at_least(t->nodes, root, node->major, node->minor) != block))
        return "T4: a block is in the set of its state";
    if (in_free && node->major != b->size)
        return "T4: a free block is filed under its size";
    return NULL;
}

static void
tally_block(const struct dryi_torch *t, const struct block *b, struct tally *tally)
{
    int64_t size = (int64_t)b->size;
    if (!b->mapped)
        return;
    tally->reserved_bytes += size;
    if (b->allocated) {
        tally->allocation++;
        tally->allocated_bytes += size;
    }
    if (b->allocated || is_pending(b)) {
        tally->active++;
        tally->active_bytes += size;
        tally->requested_bytes += (int64_t)b->requested;
    } else if (!block_is_expandable(t, b) && block_is_split(b)) {
        tally->split++;
        tally->split_bytes += size;
    }
}

static const char *
check_segment(const struct dryi_torch *t, const struct segment *s, struct tally *tallies)
{
    struct tally *tally = &tallies[pool_is_small(t->lanes[s->lane].pool)];
    uint64_t addr = s->addr;
    for (uint32_t b = s->first_block; b != NONE; b = t->blocks[b].next) {
        const char *broken = check_block(t, b, addr);
        if (broken)
            return broken;
        addr += t->blocks[b].size;
        tally_block(t, &t->blocks[b], tally);
    }
    if (addr != s->addr + s->size)
        return "T1: the blocks of a segment lie gapless and fill it";
    tally->segment += s->page == 0;
    return NULL;
}

static bool
is_counted(const struct dry_stat_array *stat, int64_t large, int64_t small)
{
    return stat->large_pool.current == large && stat->small_pool.current == small &&
           stat->all.current == large + small && stat->all.peak >= stat->all.current;
}

static const char *
check_stats(const struct dry_stats *s, const struct tally *n)
{
    if (!is_counted(&s->allocation, n[0].allocation, n[1].allocation) ||
        !is_counted(&s->active, n[0].active, n[1].active) ||
        !is_counted(&s->segment, n[0].segment, n[1].segment) ||
        !is_counted(&s->inactive_split, n[0].split, n[1].split))
        return "T5: the counts are those of a walk";
    if (!is_counted(&s->allocated_bytes, n[0].allocated_bytes, n[1].allocated_bytes) ||
        !is_counted(&s->active_bytes, n[0].active_bytes, n[1].active_bytes) ||
        !is_counted(&s->requested_bytes, n[0].requested_bytes, n[1].requested_bytes) ||
        !is_counted(&s->reserved_bytes, n[0].reserved_bytes, n[1].reserved_bytes) ||
        !is_counted(&s->inactive_split_bytes, n[0].split_bytes, n[1].split_bytes))
        return "T5: the bytes are those of a walk";
    return NULL;
}

enum dry_status
dryi_torch_check(const void *self, struct dry_error *err)
{
    const struct dryi_torch *t = self;
    struct tally tallies[2] = {{0}, {0}};
    const char *broken = NULL;
    for (uint32_t s = 0; s < t->segment_slots && !broken; s++) {
        if (t->segments[s].live)
            broken = check_segment(t, &t->segments[s], tallies);
    }
    if (!broken)
        broken = check_stats(&t->stats, tallies);
    if (!broken && (uint64_t)(tallies[0].reserved_bytes + tallies[1].reserved_bytes) !=
                       t->total_bytes)
        broken = "T6: total bytes are segments and mapped pages";
    if (!broken &&
        (dryi_place_figures_sum(&t->figures, false) != tallies[0].reserved_bytes ||
         dryi_place_figures_sum(&t->figures, true) != tallies[1].reserved_bytes))
        broken = "T7: reserved bytes are those of all pools";
    return broken ? dryi_fail(err, DRY_ERR_FORMAT, "%s", broken) : DRY_OK;
}
