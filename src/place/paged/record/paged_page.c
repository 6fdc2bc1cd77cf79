/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pages and segments: see paged_page.h.
 *
 * A page is created into the stock, mapped out of the stock, and unmapped back to it. Only pages of
 * the stock are released.
 */

#include "place/paged/record/paged_page.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_index.h"
#include "place/paged/record/paged_stats.h"

void
dryi_paged_whole_pages(const struct dryi_paged *p, uint64_t addr, uint64_t end,
                       uint64_t *lo, uint64_t *hi)
{
    DRYI_ASSERT_SLOW(addr <= end);
    *lo = page_ceil(p, addr);
    *hi = page_floor(p, end);
    if (*hi < *lo)
        *hi = *lo;
}

/* --- pages -------------------------------------------------------------------------------- */

/* Reserve memory for one more page in the page table, in the stock and in the handle array. */
static bool
reserve_page(struct dryi_paged *p)
{
    size_t needed = (size_t)p->page_slots + 1;
    return needed < NONE &&
           dryi_memory_grow(&p->memory, &p->pages, &p->page_capacity, needed,
                            sizeof *p->pages) &&
           dryi_memory_grow(&p->memory, &p->stock, &p->stock_capacity, needed,
                            sizeof *p->stock) &&
           dryi_memory_grow(&p->memory, &p->handles, &p->handle_capacity, needed,
                            sizeof *p->handles);
}

static bool
has_room_for(const struct dryi_paged *p, uint64_t bytes)
{
    uint64_t reserved = stat_all(p, STAT_RESERVED_BYTES);
    return reserved <= p->limit_bytes && bytes <= p->limit_bytes - reserved;
}

/* Update the peak of reserved bytes. Resetting the statistics does not reset this peak. */
static void
note_reserved(struct dryi_paged *p)
{
    uint64_t reserved = stat_all(p, STAT_RESERVED_BYTES);
    if (p->counters.reserved_peak_bytes < reserved)
        p->counters.reserved_peak_bytes = reserved;
}

enum dry_status
dryi_paged_page_create(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(p->page_bytes > 0);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (!has_room_for(p, p->page_bytes)) {
        p->is_full = true;
        return DRY_ERR_NO_SPACE;
    }
    if (!reserve_page(p))
        return DRY_ERR_MEMORY;
    uint64_t handle;
    p->counters.driver_calls++;
    enum dry_status status = p->device.ops->create_page(p->device.self, &handle);
    p->is_full = status == DRY_ERR_NO_SPACE;
    if (status != DRY_OK)
        return status;
    uint32_t page = p->dead_page;
    if (page != NONE)
        p->dead_page = p->pages[page].next_dead;
    else
        page = p->page_slots++;
    p->pages[page] = (struct page){.handle = handle};
    p->stock[p->stock_count++] = page;
    p->page_count++;
    p->counters.pages_created++;
    p->device_allocs++;
    stat_add(p, STAT_RESERVED_BYTES, false, p->page_bytes);
    note_reserved(p);
    return DRY_OK;
}

void
dryi_paged_page_release(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    DRYI_ASSERT(p->stock_count > 0);
    uint32_t page = p->stock[--p->stock_count];
    p->is_full = false;
    p->counters.driver_calls++;
    p->device.ops->release_page(p->device.self, p->pages[page].handle);
    p->pages[page].next_dead = p->dead_page;
    p->dead_page = page;
    p->page_count--;
    p->counters.pages_released++;
    p->device_frees++;
    stat_sub(p, STAT_RESERVED_BYTES, false, p->page_bytes);
}

static void
count_for_pool(struct dryi_paged *p, uint32_t arena, int64_t bytes)
{
    dryi_place_figures_change(&p->figures, p->pools[arena / 2].figure,
                              arena_is_small(arena), bytes);
}

/* Count pages that move between stock and arena. The stock counts as large, for no pool. */
static void
count_mapped(struct dryi_paged *p, uint32_t arena, uint64_t bytes, bool mapped)
{
    count_for_pool(p, arena, mapped ? (int64_t)bytes : -(int64_t)bytes);
    if (!arena_is_small(arena))
        return;
    stat_sub(p, STAT_RESERVED_BYTES, mapped ? false : true, bytes);
    stat_add(p, STAT_RESERVED_BYTES, mapped, bytes);
}

enum dry_status
dryi_paged_unmap(struct dryi_paged *p, uint32_t block, uint64_t lo, uint64_t hi)
{
    DRYI_ASSERT_SLOW(lo < hi && p->blocks[block].state == BLOCK_FREE);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (!dryi_paged_block_reserve(p, 2))
        return DRY_ERR_MEMORY;
    struct segment *segment = &p->segments[p->blocks[block].segment];
    size_t count = (size_t)((hi - lo) >> p->page_shift);
    p->counters.driver_calls++;
    enum dry_status status = p->device.ops->unmap_pages(p->device.self, lo, count);
    if (status != DRY_OK)
        return status;
    size_t first = (size_t)((lo - segment->addr) >> p->page_shift);
    for (size_t i = first + count; i-- > first;) {
        p->stock[p->stock_count++] = segment->pages[i] - 1;
        segment->pages[i] = 0;
    }
    count_mapped(p, segment->arena, hi - lo, false);
    dryi_paged_tell(p, DRY_ACTION_SEGMENT_UNMAP, block, lo, hi - lo);
    uint32_t hole = block;
    dryi_paged_list_remove(p, block);
    if (lo > p->blocks[block].addr) {
        hole = dryi_paged_block_split(p, block, lo - p->blocks[block].addr);
        dryi_paged_list_insert(p, block);
    }
    if (hi < block_end(&p->blocks[hole]))
        dryi_paged_list_insert(p, dryi_paged_block_split(p, hole, hi - lo));
    p->blocks[hole].state = BLOCK_HOLE;
    dryi_paged_block_assign(p, hole, p->arenas[segment->arena].holes);
    p->blocks[hole].epoch = 0;
    dryi_paged_block_coalesce(p, hole);
    return DRY_OK;
}

/* Cut [lo, hi) out of a listed hole. Returns the cut part, an unlisted hole. */
static uint32_t
cut_hole(struct dryi_paged *p, uint32_t hole, uint64_t lo, uint64_t hi)
{
    dryi_paged_list_remove(p, hole);
    if (lo > p->blocks[hole].addr) {
        uint32_t rest = dryi_paged_block_split(p, hole, lo - p->blocks[hole].addr);
        dryi_paged_list_insert(p, hole);
        hole = rest;
    }
    if (hi < block_end(&p->blocks[hole]))
        dryi_paged_list_insert(p, dryi_paged_block_split(p, hole, hi - lo));
    return hole;
}

enum dry_status
dryi_paged_map(struct dryi_paged *p, uint32_t hole, uint64_t lo, uint64_t hi,
               uint32_t list, uint32_t *filled)
{
    DRYI_ASSERT_SLOW(lo < hi && p->blocks[hole].state == BLOCK_HOLE);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct segment *segment = &p->segments[p->blocks[hole].segment];
    uint32_t count = (uint32_t)((hi - lo) >> p->page_shift);
    DRYI_ASSERT(count <= p->stock_count);
    for (uint32_t i = 0; i < count; i++)
        p->handles[i] = p->pages[p->stock[p->stock_count - 1 - i]].handle;
    p->counters.driver_calls++;
    enum dry_status status =
        p->device.ops->map_pages(p->device.self, lo, p->handles, count);
    if (status != DRY_OK)
        return status;
    size_t first = (size_t)((lo - segment->addr) >> p->page_shift);
    for (uint32_t i = 0; i < count; i++) {
        struct page *page = &p->pages[p->stock[--p->stock_count]];
        p->counters.pages_remapped += page->was_mapped;
        p->rent += page->was_mapped && !p->is_full;
        page->was_mapped = true;
        segment->pages[first + i] = p->stock[p->stock_count] + 1;
    }
    count_mapped(p, segment->arena, hi - lo, true);
    dryi_paged_index_extend(p, p->blocks[hole].segment, lo, hi);
    uint32_t block = cut_hole(p, hole, lo, hi);
    p->blocks[block].state = BLOCK_FREE;
    dryi_paged_block_assign(p, block, list);
    p->blocks[block].epoch = 0;
    dryi_paged_tell(p, DRY_ACTION_SEGMENT_MAP, block, lo, hi - lo);
    *filled = dryi_paged_block_coalesce(p, block);
    return DRY_OK;
}

/* --- segments -------------------------------------------------------------------------------- */

/* Return a slot that link_segment() can fill without allocating; NONE: out of memory. */
static uint32_t
segment_slot(struct dryi_paged *p)
{
    if (p->dead_segment != NONE)
        return p->dead_segment;
    if (!dryi_memory_grow(&p->memory, &p->segments, &p->segment_capacity,
                          (size_t)p->segment_slots + 1, sizeof *p->segments))
        return NONE;
    return p->segment_slots;
}

static void
link_segment(struct dryi_paged *p, uint32_t slot, uint32_t arena, struct segment segment)
{
    if (slot == p->dead_segment)
        p->dead_segment = p->segments[slot].next;
    else
        p->segment_slots++;
    segment.live = true;
    segment.arena = arena;
    segment.ordinal = p->segments_made++;
    segment.prev = NONE;
    segment.next = p->arenas[arena].segments;
    if (segment.next != NONE)
        p->segments[segment.next].prev = slot;
    p->arenas[arena].segments = slot;
    p->segments[slot] = segment;
}

#define SEGMENT_FIRST DRYI_GIB

/*
 * Return the size of an arena's next segment, in bytes. In the default pool that is
 * conf.segment_bytes, by default as large as the device. In a private pool the first segment is
 * small (SEGMENT_FIRST), and each later one as large as all before. A program may have hundreds of
 * private pools, and full-size segments would exhaust addresses and page records.
 */
static uint64_t
segment_bytes(const struct dryi_paged *p, uint32_t arena, uint64_t size)
{
    uint64_t most = p->conf.segment_bytes, bytes = 0;
    for (uint32_t i = p->arenas[arena].segments; i != NONE && bytes < most;
         i = p->segments[i].next)
        bytes = dryi_add_saturating(bytes, p->segments[i].size);
    if (bytes < SEGMENT_FIRST)
        bytes = SEGMENT_FIRST;
    if (arena / 2 == 0 || bytes > most)
        bytes = most;
    return page_ceil(p, size > bytes ? size : bytes);
}

static enum dry_status
reserve_bytes(struct dryi_paged *p, uint32_t arena, uint64_t bytes)
{
    uint32_t slot = segment_slot(p);
    if (slot == NONE || !dryi_paged_block_reserve(p, 1))
        return DRY_ERR_MEMORY;
    struct segment segment = {.size = bytes,
                              .page_count = (size_t)(bytes >> p->page_shift)};
    segment.pages =
        dryi_memory_zalloc(&p->memory, segment.page_count, sizeof *segment.pages);
    if (!segment.pages)
        return DRY_ERR_MEMORY;
    p->counters.driver_calls++;
    enum dry_status status = p->device.ops->reserve(p->device.self, bytes, &segment.addr);
    if (status != DRY_OK) {
        dryi_memory_free(&p->memory, segment.pages, segment.page_count,
                         sizeof *segment.pages);
        return status;
    }
    if (segment.addr & p->page_mask) { /* A misaligned range cannot take pages */
        p->device.ops->unreserve(p->device.self, segment.addr, bytes);
        dryi_memory_free(&p->memory, segment.pages, segment.page_count,
                         sizeof *segment.pages);
        return DRY_ERR_SYSTEM;
    }
    link_segment(p, slot, arena, segment);
    uint32_t hole =
        dryi_paged_block_make(p, p->arenas[arena].holes, slot, NONE, segment.addr, bytes);
    p->blocks[hole].state = BLOCK_HOLE;
    dryi_paged_list_insert(p, hole);
    if (arena == 0 && p->index.range.size == 0)
        dryi_paged_index_begin(p, slot);
    return DRY_OK;
}

enum dry_status
dryi_paged_segment_reserve(struct dryi_paged *p, uint32_t arena, uint64_t size,
                           bool least)
{
    DRYI_ASSERT_SLOW(arena < p->arena_count && p->page_bytes > 0);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    uint64_t bytes = segment_bytes(p, arena, size), least_bytes = page_ceil(p, size);
    enum dry_status status = DRY_ERR_NO_SPACE;
    if (!least)
        return reserve_bytes(p, arena, bytes);
    while (status == DRY_ERR_NO_SPACE && bytes > least_bytes) {
        bytes = page_ceil(p, bytes / 2);
        if (bytes < least_bytes)
            bytes = least_bytes;
        status = reserve_bytes(p, arena, bytes);
    }
    return status;
}

enum dry_status
dryi_paged_segment_alloc(struct dryi_paged *p, uint32_t arena, uint64_t size,
                         uint32_t list)
{
    DRYI_ASSERT_SLOW(arena < p->arena_count && p->page_bytes == 0);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (!has_room_for(p, size))
        return DRY_ERR_NO_SPACE;
    uint32_t slot = segment_slot(p);
    if (slot == NONE || !dryi_paged_block_reserve(p, 1))
        return DRY_ERR_MEMORY;
    struct segment segment = {.size = size};
    p->counters.driver_calls++;
    enum dry_status status = p->device.ops->alloc(p->device.self, size, &segment.addr);
    if (status != DRY_OK)
        return status;
    link_segment(p, slot, arena, segment);
    p->device_allocs++;
    stat_add(p, STAT_RESERVED_BYTES, arena_is_small(arena), size);
    count_for_pool(p, arena, (int64_t)size);
    stat_add(p, STAT_SEGMENT, arena_is_small(arena), 1);
    note_reserved(p);
    uint32_t block = dryi_paged_block_make(p, list, slot, NONE, segment.addr, size);
    p->blocks[block].state = BLOCK_FREE;
    dryi_paged_list_insert(p, block);
    dryi_paged_tell(p, DRY_ACTION_SEGMENT_ALLOC, block, segment.addr, size);
    return DRY_OK;
}

void
dryi_paged_segment_return(struct dryi_paged *p, uint32_t segment)
{
    DRYI_ASSERT_SLOW(p->segments[segment].live);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct segment *s = &p->segments[segment];
    bool small = arena_is_small(s->arena);
    DRYI_ASSERT(segment != p->layout.segment);
    if (p->index.range.size > 0 && segment == p->index.segment)
        dryi_paged_index_finish(p);
    p->counters.driver_calls++;
    if (s->pages) {
        p->device.ops->unreserve(p->device.self, s->addr, s->size);
        dryi_memory_free(&p->memory, s->pages, s->page_count, sizeof *s->pages);
    } else {
        dryi_paged_tell(p, DRY_ACTION_SEGMENT_FREE, s->first_block, s->addr, s->size);
        p->device.ops->free(p->device.self, s->addr, s->size);
        p->device_frees++;
        stat_sub(p, STAT_RESERVED_BYTES, small, s->size);
        count_for_pool(p, s->arena, -(int64_t)s->size);
        stat_sub(p, STAT_SEGMENT, small, 1);
    }
    dryi_paged_list_remove(p, s->first_block);
    dryi_paged_block_drop(p, s->first_block);
    if (s->prev == NONE)
        p->arenas[s->arena].segments = s->next;
    else
        p->segments[s->prev].next = s->next;
    if (s->next != NONE)
        p->segments[s->next].prev = s->prev;
    *s = (struct segment){.next = p->dead_segment};
    p->dead_segment = segment;
}

/* Unmap and release all pages of a segment, and release its addresses. */
static void
finish_pages(struct dryi_paged *p, const struct segment *s)
{
    for (size_t i = 0; i < s->page_count;) {
        size_t begin = i;
        while (i < s->page_count && s->pages[i])
            i++;
        if (i == begin) {
            i++;
            continue;
        }
        enum dry_status status = p->device.ops->unmap_pages(
            p->device.self, s->addr + ((uint64_t)begin << p->page_shift), i - begin);
        (void)status; /* ignored: the addresses are released next in any case */
        for (size_t k = begin; k < i; k++)
            p->device.ops->release_page(p->device.self, p->pages[s->pages[k] - 1].handle);
    }
    p->device.ops->unreserve(p->device.self, s->addr, s->size);
}

void
dryi_paged_segments_finish(struct dryi_paged *p)
{
    for (uint32_t i = 0; i < p->segment_slots; i++) {
        struct segment *s = &p->segments[i];
        if (!s->live)
            continue;
        if (s->pages)
            finish_pages(p, s);
        else
            p->device.ops->free(p->device.self, s->addr, s->size);
        dryi_memory_free(&p->memory, s->pages, s->page_count, sizeof *s->pages);
    }
    while (p->stock_count > 0)
        dryi_paged_page_release(p);
}
