/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker's map of addresses: reservations, mapped memory, and the page at each
 * address.
 *
 * A call that a driver would refuse fails and makes a finding, so that the map is always
 * consistent. Adjacent ranges of the same source are joined, so that a block of many
 * pages is looked up as one range. Memory to split them is reserved when they are mapped,
 * because unmapping cannot fail.
 */
#include "device/sim/sim_state.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

void
dryi_sim_memory_finish(struct dryi_sim_check *check)
{
    const struct dry_memory *memory = &check->mapped.memory;
    dryi_memory_free(memory, check->pages, check->page_capacity, sizeof *check->pages);
    dryi_map_finish(&check->page_slots);
    dryi_map_finish(&check->page_places);
    dryi_sim_ranges_finish(&check->reserved);
    dryi_sim_ranges_finish(&check->mapped);
}

static void
find_at(struct dry_sim *sim, enum dry_sim_fault fault, uint64_t address, uint64_t size)
{
    dryi_sim_find(
        sim, (struct dry_sim_finding){.fault = fault, .address = address, .size = size});
}

/* Remove [begin, end) from all ranges. Without memory to split the last one, also remove
   its rest. */
static void
cut_all(struct dryi_sim_ranges *ranges, uint64_t begin, uint64_t end)
{
    uint32_t node;
    while ((node = dryi_sim_ranges_find(ranges, begin)) != 0 &&
           ranges->nodes[node].begin < end) {
        uint64_t up_to = dryi_sim_ranges_reserve(ranges, 1) ? end : UINT64_MAX;
        dryi_sim_ranges_cut(ranges, node, begin, up_to);
    }
}

/* Reserve ranges for the worst case: no mapping is smaller than the granularity. */
static bool
make_room(struct dry_sim *sim, uint64_t bytes)
{
    struct dryi_sim_check *check = sim->check;
    uint64_t all = dryi_add_saturating(check->mapped_bytes, bytes);
    return dryi_sim_ranges_reserve(&check->mapped,
                                   all / sim->options.granularity_bytes + 3);
}

/* Record that [begin, end) is mapped, and join it with adjacent ranges. */
static void
add_mapped(struct dryi_sim_check *check, uint64_t begin, uint64_t end,
           enum dryi_sim_source source)
{
    struct dryi_sim_ranges *mapped = &check->mapped;
    check->mapped_bytes += end - begin;
    uint32_t left = begin > 0 ? dryi_sim_ranges_find(mapped, begin - 1) : 0;
    if (left && mapped->nodes[left].end == begin &&
        mapped->nodes[left].value == (uint32_t)source) {
        begin = mapped->nodes[left].begin;
        dryi_sim_ranges_cut(mapped, left, begin, mapped->nodes[left].end);
    }
    uint32_t right = dryi_sim_ranges_find(mapped, end);
    if (right && mapped->nodes[right].begin == end &&
        mapped->nodes[right].value == (uint32_t)source) {
        end = mapped->nodes[right].end;
        dryi_sim_ranges_cut(mapped, right, mapped->nodes[right].begin, end);
    }
    dryi_sim_ranges_insert(mapped, begin, end, (uint32_t)source);
}

/* Return whether memory of this source is mapped in all of [begin, end), which is then
   one joined range. */
static bool
is_mapped_from(const struct dryi_sim_check *check, uint64_t begin, uint64_t end,
               enum dryi_sim_source source)
{
    uint32_t node = dryi_sim_ranges_find(&check->mapped, begin);
    if (!node)
        return false;
    const struct dryi_sim_range *range = &check->mapped.nodes[node];
    return range->begin <= begin && end <= range->end && range->value == (uint32_t)source;
}

static void
take_mapped(struct dry_sim *sim, uint64_t begin, uint64_t end, enum dry_sim_fault fault)
{
    dryi_sim_forget(sim, begin, end, fault);
    cut_all(&sim->check->mapped, begin, end);
    sim->check->mapped_bytes -= end - begin;
}

enum dry_status
dryi_sim_memory_alloc(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    struct dryi_sim_check *check = sim->check;
    uint64_t end = dryi_add_saturating(address, size);
    if (!make_room(sim, size))
        return DRY_ERR_MEMORY;
    if (dryi_sim_ranges_touch(&check->mapped, address, end)) {
        find_at(sim, DRY_SIM_MAP_OVER_MAPPED, address, size);
        return DRY_ERR_SYSTEM;
    }
    check->mapped_bytes += end - address;
    dryi_sim_ranges_insert(&check->mapped, address, end, DRYI_SIM_FROM_ALLOC);
    return DRY_OK;
}

/* Return the range that is exactly [begin, end), or 0. */
static uint32_t
find_exactly(const struct dryi_sim_ranges *ranges, uint64_t begin, uint64_t end)
{
    uint32_t node = dryi_sim_ranges_find(ranges, begin);
    if (!node)
        return 0;
    const struct dryi_sim_range *range = &ranges->nodes[node];
    return range->begin == begin && range->end == end ? node : 0;
}

enum dry_status
dryi_sim_memory_free(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    struct dryi_sim_check *check = sim->check;
    uint64_t end = dryi_add_saturating(address, size);
    uint32_t node = find_exactly(&check->mapped, address, end);
    if (!node || check->mapped.nodes[node].value != DRYI_SIM_FROM_ALLOC) {
        find_at(sim, DRY_SIM_FREE_UNKNOWN, address, size);
        return DRY_ERR_SYSTEM;
    }
    dryi_sim_know_all(sim);
    take_mapped(sim, address, end, DRY_SIM_EARLY_FREE);
    return DRY_OK;
}

enum dry_status
dryi_sim_memory_reserve(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    struct dryi_sim_ranges *reserved = &sim->check->reserved;
    uint64_t end = dryi_add_saturating(address, size);
    if (!dryi_sim_ranges_reserve(reserved, 3))
        return DRY_ERR_MEMORY;
    cut_all(reserved, address, end); /* overlaps are the fault of a caller that chooses
                                        addresses */
    dryi_sim_ranges_insert(reserved, address, end, 0);
    return DRY_OK;
}

enum dry_status
dryi_sim_memory_unreserve(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    struct dryi_sim_check *check = sim->check;
    uint64_t end = dryi_add_saturating(address, size);
    if (!find_exactly(&check->reserved, address, end)) {
        find_at(sim, DRY_SIM_FREE_UNKNOWN, address, size);
        return DRY_ERR_SYSTEM;
    }
    if (dryi_sim_ranges_touch(&check->mapped, address, end)) {
        find_at(sim, DRY_SIM_UNRESERVE_MAPPED, address, size);
        return DRY_ERR_SYSTEM;
    }
    cut_all(&check->reserved, address, end);
    return DRY_OK;
}

/* Return whether the range is in one reservation and unmapped. */
static bool
can_map(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    const struct dryi_sim_check *check = sim->check;
    uint64_t end;
    bool fits = !__builtin_add_overflow(address, size, &end);
    uint32_t node = dryi_sim_ranges_find(&check->reserved, address);
    if (!fits || !node || check->reserved.nodes[node].begin > address ||
        check->reserved.nodes[node].end < end) {
        find_at(sim, DRY_SIM_MAP_UNRESERVED, address, size);
        return false;
    }
    if (dryi_sim_ranges_touch(&check->mapped, address, end)) {
        find_at(sim, DRY_SIM_MAP_OVER_MAPPED, address, size);
        return false;
    }
    return true;
}

enum dry_status
dryi_sim_memory_map(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    if (!can_map(sim, address, size))
        return DRY_ERR_SYSTEM;
    if (!make_room(sim, size))
        return DRY_ERR_MEMORY;
    add_mapped(sim->check, address, address + size, DRYI_SIM_FROM_MAP);
    return DRY_OK;
}

enum dry_status
dryi_sim_memory_unmap(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    uint64_t end;
    if (__builtin_add_overflow(address, size, &end) ||
        !is_mapped_from(sim->check, address, end, DRYI_SIM_FROM_MAP)) {
        find_at(sim, DRY_SIM_UNMAP_UNMAPPED, address, size);
        return DRY_ERR_SYSTEM;
    }
    if (size > 0)
        take_mapped(sim, address, end, DRY_SIM_EARLY_UNMAP);
    return DRY_OK;
}

static bool
take_page_slot(struct dry_sim *sim, uint32_t *slot)
{
    struct dryi_sim_check *check = sim->check;
    if (check->free_page != DRYI_SIM_NO_PAGE) {
        *slot = check->free_page;
        return true;
    }
    if (check->page_count == DRYI_SIM_NO_PAGE ||
        !dryi_memory_grow(&sim->memory, &check->pages, &check->page_capacity,
                          check->page_count + 1, sizeof *check->pages))
        return false;
    *slot = (uint32_t)check->page_count++;
    check->pages[*slot] = (struct dryi_sim_page){.next_free = DRYI_SIM_NO_PAGE};
    check->free_page = *slot;
    return true;
}

enum dry_status
dryi_sim_memory_create_page(struct dry_sim *sim, uint64_t page)
{
    struct dryi_sim_check *check = sim->check;
    uint32_t slot;
    if (!take_page_slot(sim, &slot) || !dryi_map_put(&check->page_slots, page, slot))
        return DRY_ERR_MEMORY;
    check->free_page = check->pages[slot].next_free;
    check->pages[slot] = (struct dryi_sim_page){.page = page};
    return DRY_OK;
}

enum dry_status
dryi_sim_memory_release_page(struct dry_sim *sim, uint64_t page)
{
    struct dryi_sim_check *check = sim->check;
    const uint32_t *found = dryi_map_find(&check->page_slots, page);
    if (!found) {
        find_at(sim, DRY_SIM_PAGE_UNKNOWN, page, sim->options.page_bytes);
        return DRY_ERR_SYSTEM;
    }
    uint32_t slot = *found;
    if (check->pages[slot].is_mapped) {
        find_at(sim, DRY_SIM_PAGE_MAPPED_AT_END, page, sim->options.page_bytes);
        return DRY_ERR_SYSTEM;
    }
    dryi_map_take(&check->page_slots, page);
    check->pages[slot] = (struct dryi_sim_page){.next_free = check->free_page};
    check->free_page = slot;
    return DRY_OK;
}

static enum dry_status
place_page(struct dry_sim *sim, uint64_t address, uint64_t page)
{
    struct dryi_sim_check *check = sim->check;
    const uint32_t *slot = dryi_map_find(&check->page_slots, page);
    if (!slot) {
        find_at(sim, DRY_SIM_PAGE_UNKNOWN, page, sim->options.page_bytes);
        return DRY_ERR_SYSTEM;
    }
    if (check->pages[*slot].is_mapped) {
        find_at(sim, DRY_SIM_PAGE_MAPPED_TWICE, page, sim->options.page_bytes);
        return DRY_ERR_SYSTEM;
    }
    if (!dryi_map_put(&check->page_places, address, *slot))
        return DRY_ERR_MEMORY;
    check->pages[*slot].is_mapped = true;
    return DRY_OK;
}

static void
displace_pages(struct dry_sim *sim, uint64_t address, size_t count)
{
    struct dryi_sim_check *check = sim->check;
    for (size_t i = 0; i < count; i++, address += sim->options.page_bytes) {
        const uint32_t *slot = dryi_map_find(&check->page_places, address);
        DRYI_ASSERT(slot != NULL);
        check->pages[*slot].is_mapped = false;
        dryi_map_take(&check->page_places, address);
    }
}

enum dry_status
dryi_sim_memory_map_pages(struct dry_sim *sim, uint64_t address, const uint64_t *pages,
                          size_t count)
{
    uint64_t size, page_bytes = sim->options.page_bytes;
    if (__builtin_mul_overflow((uint64_t)count, page_bytes, &size))
        size = UINT64_MAX;
    if (!can_map(sim, address, size))
        return DRY_ERR_SYSTEM;
    if (!make_room(sim, size))
        return DRY_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        enum dry_status status = place_page(sim, address + i * page_bytes, pages[i]);
        if (status != DRY_OK) {
            displace_pages(sim, address, i);
            return status;
        }
    }
    add_mapped(sim->check, address, address + size, DRYI_SIM_FROM_PAGES);
    return DRY_OK;
}

enum dry_status
dryi_sim_memory_unmap_pages(struct dry_sim *sim, uint64_t address, size_t count)
{
    uint64_t size, end;
    if (__builtin_mul_overflow((uint64_t)count, sim->options.page_bytes, &size))
        size = UINT64_MAX;
    if (__builtin_add_overflow(address, size, &end) ||
        !is_mapped_from(sim->check, address, end, DRYI_SIM_FROM_PAGES) ||
        !dryi_map_find(&sim->check->page_places, address)) {
        find_at(sim, DRY_SIM_UNMAP_UNMAPPED, address, size);
        return DRY_ERR_SYSTEM;
    }
    take_mapped(sim, address, end, DRY_SIM_EARLY_UNMAP);
    displace_pages(sim, address, count);
    return DRY_OK;
}

enum dry_status
dryi_sim_memory_let_peer(struct dry_sim *sim, uint64_t address, uint64_t size)
{
    uint64_t end = dryi_add_saturating(address, size);
    if (size > 0 && (is_mapped_from(sim->check, address, end, DRYI_SIM_FROM_PAGES) ||
                     is_mapped_from(sim->check, address, end, DRYI_SIM_FROM_MAP)))
        return DRY_OK;
    find_at(sim, DRY_SIM_USE_UNMAPPED, address, size);
    return DRY_ERR_SYSTEM;
}
