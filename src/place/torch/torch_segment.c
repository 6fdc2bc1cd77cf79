/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Segments: ranges from the device, whole (cudaMalloc) or by page (expandable).
 *
 * An expandable segment reserves addresses for 9/8 of the device. Pages of 2 MiB (small pool) or
 * large_segment_size (large pool) are mapped at its end or in its holes, so free memory of a stream
 * stays contiguous. Pages are unmapped only when cached memory is released.
 */

#include "place/torch/torch_segment.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "place/torch/torch_block.h"
#include "place/torch/torch_pool.h"

bool
dryi_torch_segment_reserve(struct dryi_torch *t, size_t count)
{
    DRYI_ASSERT_SLOW(count == 1); /* one unused record suffices */
    return t->free_segment_slot != NONE ||
           dryi_memory_grow(&t->memory, &t->segments, &t->segment_capacity,
                            t->segment_slots + count, sizeof *t->segments);
}

uint32_t
dryi_torch_segment_make(struct dryi_torch *t, uint64_t addr, uint64_t size, uint64_t page,
                        uint32_t lane)
{
    DRYI_ASSERT_SLOW(lane < t->lane_ids.count && t->owners[t->lanes[lane].pool / 2].live);
    DRYI_ASSERT_SLOW(size > 0 && (page == 0 || size % page == 0));
    uint32_t segment = t->free_segment_slot;
    if (segment != NONE) {
        t->free_segment_slot = t->segments[segment].next_free;
    } else {
        DRYI_ASSERT(t->segment_slots < t->segment_capacity);
        segment = t->segment_slots++;
    }
    t->segments[segment] = (struct segment){
        .addr = addr,
        .size = size,
        .page = page,
        .counter = t->next_counter++,
        .ordinal = t->segments_made++,
        .lane = lane,
        .live = true,
    };
    t->owners[t->lanes[lane].pool / 2].segments++;
    uint32_t block = dryi_torch_block_make(t, segment, addr, size);
    t->blocks[block].mapped = page == 0;
    t->segments[segment].first_block = block;
    return segment;
}

/* Drop a segment with its last block. */
static void
drop_segment(struct dryi_torch *t, uint32_t segment)
{
    struct segment *s = &t->segments[segment];
    DRYI_ASSERT_SLOW(s->live && t->blocks[s->first_block].size == s->size);
    dryi_torch_block_drop(t, s->first_block);
    dryi_torch_owner_lose(t, t->lanes[s->lane].pool / 2);
    s->live = false;
    s->next_free = t->free_segment_slot;
    t->free_segment_slot = segment;
}

static void
count_reserved(struct dryi_torch *t, uint32_t pool, int64_t bytes)
{
    DRYI_ASSERT_SLOW(bytes > 0 || t->owners[pool / 2].reserved_bytes >= (uint64_t)-bytes);
    DRYI_ASSERT_SLOW(t->total_bytes >= t->owners[pool / 2].reserved_bytes);
    t->total_bytes += (uint64_t)bytes;
    t->owners[pool / 2].reserved_bytes += (uint64_t)bytes;
    dryi_torch_stat_change(&t->stats.reserved_bytes, pool, bytes);
    dryi_place_figures_change(&t->figures, t->owners[pool / 2].figure,
                              pool_is_small(pool), bytes);
    if (bytes > 0)
        t->stats.num_device_alloc++;
    else
        t->stats.num_device_free++;
}

/* --- cudaMalloc ----------------------------------------------------------------------- */

static enum dry_status
alloc_whole(struct dryi_torch *t, const struct request *r, uint32_t *block)
{
    uint64_t addr;
    enum dry_status status =
        dryi_torch_driver(t)->alloc(t->device.self, r->alloc_size, &addr);
    if (status != DRY_OK)
        return status;
    uint32_t segment = dryi_torch_segment_make(t, addr, r->alloc_size, 0, r->lane);
    dryi_torch_stat_change(&t->stats.segment, r->pool, 1);
    count_reserved(t, r->pool, (int64_t)r->alloc_size);
    if (r->alloc_size >= t->conf.max_split_size)
        dryi_torch_stat_add(&t->stats.oversize_segments, 1);
    dryi_torch_tell(t, DRY_ACTION_SEGMENT_ALLOC, segment, addr, r->alloc_size);
    *block = t->segments[segment].first_block;
    return DRY_OK;
}

void
dryi_torch_segment_free(struct dryi_torch *t, uint32_t block)
{
    struct block b = t->blocks[block];
    DRYI_ASSERT(!b.allocated && !block_is_split(&b) && !block_is_expandable(t, &b));
    DRYI_ASSERT_SLOW(b.addr == t->segments[b.segment].addr &&
                     b.size == t->segments[b.segment].size);
    dryi_torch_free_remove(t, block);
    dryi_torch_driver(t)->free(t->device.self, b.addr, b.size);
    dryi_torch_stat_change(&t->stats.segment, b.pool, -1);
    count_reserved(t, b.pool, -(int64_t)b.size);
    if (b.size >= t->conf.max_split_size)
        dryi_torch_stat_add(&t->stats.oversize_segments, -1);
    dryi_torch_tell(t, DRY_ACTION_SEGMENT_FREE, b.segment, b.addr, b.size);
    drop_segment(t, b.segment);
}

/* --- expandable ----------------------------------------------------------------------- */

uint64_t
dryi_torch_expandable_reach(const struct dryi_torch *t, uint64_t page)
{
    DRYI_ASSERT_SLOW(page > 0);
    uint64_t total =
        t->device_total == UINT64_MAX ? UNKNOWN_DEVICE_TOTAL : t->device_total;
    uint64_t reach = total + total / 8;
    uint64_t asked = reach;
    if (t->conf.expandable_reserve_bytes)
        asked = t->conf.expandable_reserve_bytes;
    else if (t->conf.expandable_reserve_fraction > 0 &&
             t->conf.expandable_reserve_fraction < 1.125)
        asked = (uint64_t)(t->conf.expandable_reserve_fraction * (double)total);
    return dryi_round_up(asked < reach ? asked : reach, page);
}

/* Is this block free for a growing request, mapped or not? */
static bool
is_usable(const struct dryi_torch *t, uint32_t block)
{
    return block != NONE && !t->blocks[block].allocated &&
           t->blocks[block].event_count == 0 && t->blocks[block].uses == NONE;
}

static bool
has_room(const struct dryi_torch *t, uint32_t block, uint64_t size)
{
    uint64_t usable_bytes = 0;
    while (usable_bytes < size && is_usable(t, block)) {
        usable_bytes += t->blocks[block].size;
        block = t->blocks[block].next;
    }
    return usable_bytes >= size;
}

static enum dry_status
make_expandable(struct dryi_torch *t, const struct request *r, uint32_t *block)
{
    uint64_t page = pool_is_small(r->pool) ? SMALL_SEGMENT : t->conf.large_segment_size;
    uint64_t size = dryi_torch_expandable_reach(t, page);
    uint64_t addr;
    enum dry_status status = dryi_torch_driver(t)->reserve(t->device.self, size, &addr);
    if (status != DRY_OK)
        return status;
    if (size < r->rounded) { /* larger than any segment can be */
        dryi_torch_driver(t)->unreserve(t->device.self, addr, size);
        return DRY_ERR_NO_SPACE;
    }
    uint32_t segment = dryi_torch_segment_make(t, addr, size, page, r->lane);
    *block = t->segments[segment].first_block;
    dryi_torch_unmapped_insert(t, *block);
    return DRY_OK;
}

uint32_t
dryi_torch_expandable_find(const struct dryi_torch *t, const struct request *r)
{
    DRYI_ASSERT_SLOW(t->lanes[r->lane].pool == r->pool &&
                     t->lanes[r->lane].stream == r->stream);
    uint32_t root = t->lanes[r->lane].unmapped_root;
    uint32_t unmapped = dryi_treap_at_least(t->nodes, root, 0, 0);
    while (unmapped != NONE) {
        uint32_t start = unmapped;
        if (is_usable(t, t->blocks[unmapped].prev))
            start = t->blocks[unmapped].prev;
        if (has_room(t, start, r->rounded))
            return start;
        unmapped = dryi_treap_after(t->nodes, root, unmapped);
    }
    return NONE;
}

/*
 * Map at least the first `size` bytes of an unmapped block, rounded up to pages. On success `block`
 * is merged with its free neighbours and in the free set.
 */
static enum dry_status
map_front(struct dryi_torch *t, uint32_t block, uint64_t size)
{
    struct block *b = &t->blocks[block];
    DRYI_ASSERT_SLOW(!b->mapped && size > 0 && size <= b->size);
    uint64_t page = t->segments[b->segment].page;
    uint64_t mapped = dryi_round_up(size, page);
    if (t->total_bytes > t->mapped_limit_bytes ||
        mapped > t->mapped_limit_bytes - t->total_bytes)
        return DRY_ERR_NO_SPACE;
    enum dry_status status =
        dryi_torch_driver(t)->map(t->device.self, b->addr, mapped, page);
    if (status != DRY_OK)
        return status;
    uint64_t addr = b->addr;
    dryi_torch_unmapped_remove(t, block);
    b->mapped = true;
    DRYI_ASSERT(mapped <= b->size);
    if (mapped < b->size) {
        uint32_t rest =
            dryi_torch_block_make(t, b->segment, b->addr + mapped, b->size - mapped);
        t->blocks[rest].mapped = false;
        b->size = mapped;
        dryi_torch_block_link_after(t, block, rest);
        dryi_torch_unmapped_insert(t, rest);
    }
    dryi_torch_block_merge(t, block, b->prev);
    dryi_torch_block_merge(t, block, b->next);
    dryi_torch_free_insert(t, block);
    count_reserved(t, b->pool, (int64_t)mapped);
    dryi_torch_tell(t, DRY_ACTION_SEGMENT_MAP, b->segment, addr, mapped);
    return DRY_OK;
}

/*
 * Get a block from expandable segments. Pages mapped before a failure stay mapped, as free memory,
 * as in PyTorch.
 */
static enum dry_status
alloc_pages(struct dryi_torch *t, const struct request *r, uint32_t *found)
{
    enum dry_status status = DRY_OK;
    uint32_t block = dryi_torch_expandable_find(t, r);
    if (block == NONE)
        status = make_expandable(t, r, &block);
    if (status == DRY_OK && !t->blocks[block].mapped)
        status = map_front(t, block, dryi_min(t->blocks[block].size, r->rounded));
    while (status == DRY_OK && t->blocks[block].size < r->rounded) {
        uint64_t missing = r->rounded - t->blocks[block].size;
        block = t->blocks[block].next;
        status = map_front(t, block, dryi_min(t->blocks[block].size, missing));
    }
    if (status != DRY_OK)
        return status;
    dryi_torch_free_remove(t, block);
    *found = block;
    return DRY_OK;
}

/* Make a free block of the mapped bytes beside pages that were unmapped. */
static void
keep_part(struct dryi_torch *t, uint32_t after, uint32_t segment, uint64_t addr,
          uint64_t size)
{
    DRYI_ASSERT_SLOW(after != NONE || addr == t->segments[segment].addr);
    uint32_t part = dryi_torch_block_make(t, segment, addr, size);
    if (after != NONE) {
        dryi_torch_block_link_after(t, after, part);
    } else {
        uint32_t first = t->segments[segment].first_block;
        t->blocks[part].next = first;
        t->blocks[first].prev = part;
        t->segments[segment].first_block = part;
    }
    dryi_torch_free_insert(t, part);
}

void
dryi_torch_segment_unmap(struct dryi_torch *t, uint32_t block)
{
    struct block *b = &t->blocks[block];
    struct segment *s = &t->segments[b->segment];
    DRYI_ASSERT_SLOW(s->page > 0 && b->mapped && t->nodes[block].in_set);
    uint64_t begin = s->addr + dryi_round_up(b->addr - s->addr, s->page);
    uint64_t end = s->addr + dryi_round_down(b->addr + b->size - s->addr, s->page);
    if (begin >= end)
        return;
    enum dry_status status =
        dryi_torch_driver(t)->stream_wait(t->device.self, t->streams[b->stream].value);
    if (dryi_note_hindered(&t->hindered, status) != DRY_OK)
        return; /* work may still go on there: it stays mapped */
    dryi_torch_driver(t)->unmap(t->device.self, begin, end - begin, s->page);
    dryi_torch_free_remove(t, block);
    uint64_t old_begin = b->addr, old_end = b->addr + b->size;
    b->addr = begin;
    b->size = end - begin;
    b->mapped = false;
    if (old_begin < begin)
        keep_part(t, b->prev, b->segment, old_begin, begin - old_begin);
    if (end < old_end)
        keep_part(t, block, b->segment, end, old_end - end);
    dryi_torch_block_merge(t, block, b->prev);
    dryi_torch_block_merge(t, block, b->next);
    dryi_torch_unmapped_insert(t, block);
    count_reserved(t, b->pool, -(int64_t)(end - begin));
    dryi_torch_tell(t, DRY_ACTION_SEGMENT_UNMAP, b->segment, begin, end - begin);
    if (!block_is_split(b)) {
        dryi_torch_unmapped_remove(t, block);
        dryi_torch_driver(t)->unreserve(t->device.self, s->addr, s->size);
        drop_segment(t, b->segment);
    }
}

/* --- both ------------------------------------------------------------------------------- */

/* Does throw_on_cudamalloc_oom reject the request, before any driver call or retry? */
static bool
is_rejected(const struct dryi_torch *t, uint64_t alloc_size)
{
    return t->total_bytes + alloc_size >
           dryi_torch_allowed_bytes(&t->conf, t->device_total);
}

enum dry_status
dryi_torch_segment_alloc(struct dryi_torch *t, const struct request *r, bool is_retry,
                         uint32_t *block)
{
    DRYI_ASSERT_SLOW(r->rounded <= r->alloc_size && t->lanes[r->lane].pool == r->pool);
    if (is_retry)
        t->stats.num_alloc_retries++;
    if (r->alloc_size > TOTAL_LIMIT - t->total_bytes ||
        (t->has_limit && t->total_bytes + r->alloc_size > t->limit_bytes))
        return DRY_ERR_NO_SPACE;
    if (is_rejected(t, r->alloc_size)) {
        t->stats.num_oom_rejections++;
        t->rejected = true;
        return DRY_ERR_NO_SPACE;
    }
    if (!dryi_torch_block_reserve(t, 3) || !dryi_torch_segment_reserve(t, 1))
        return DRY_ERR_MEMORY;
    if (r->expandable)
        return alloc_pages(t, r, block);
    return alloc_whole(t, r, block);
}
