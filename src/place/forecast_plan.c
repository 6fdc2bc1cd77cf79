/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the blocks of a period should lie.
 *
 * A life within the period lies from its request to its free. One that is freed in the next
 * period, before its request comes again, keeps its place throughout. What lives longer, or
 * for ever, is not planned: it is an obstacle once it is there.
 *
 * Memory goes from stream to stream only with an event between, so each stream has offsets of
 * its own, and they are packed one above the other.
 *
 * Two packings are made, and the one that touches fewer pages beside the obstacles' own is
 * taken: all in one piece, in the lowest gap that is large enough; and each block in the
 * lowest gap it fits into between the obstacles, which fills pages that are there anyway
 * (for one stream alone).
 */
#include "place/forecast.h"

#include "base/bits.h"
#include "base/memory.h"
#include "base/sort.h"
#include "place/forecast_inside.h"

#define UNIT 512u
/* One more than 1/256 of the floor is good enough: a page's rounding is as much. */
#define SPARE_SHIFT 8u

struct plan {
    struct dryi_forecast *hints;
    const struct dryi_obstacle *obstacles;
    size_t obstacle_count;
    uint64_t page_bytes;
    size_t count;            /* planned lives */
    size_t capacity;         /* steps and obstacles */
    uint32_t *steps;         /* of the planned lives */
    struct dryi_life *lives; /* planned, then one an obstacle */
    uint64_t *fixed, *piece, *fill;
    struct dryi_sort_item *items; /* twice */
    uint64_t floor;
    uint32_t streams;
};

static bool
take_memory(struct plan *p)
{
    const struct dry_memory *m = &p->hints->memory;
    p->capacity = p->hints->step_count + p->obstacle_count;
    p->steps = dryi_memory_zalloc(m, p->capacity, sizeof *p->steps);
    p->lives = dryi_memory_zalloc(m, p->capacity, sizeof *p->lives);
    p->fixed = dryi_memory_zalloc(m, p->capacity, sizeof *p->fixed);
    p->piece = dryi_memory_zalloc(m, p->capacity, sizeof *p->piece);
    p->fill = dryi_memory_zalloc(m, p->capacity, sizeof *p->fill);
    p->items = dryi_memory_zalloc(m, p->capacity, 2 * sizeof *p->items);
    return p->steps && p->lives && p->fixed && p->piece && p->fill && p->items;
}

static void
give_memory_back(struct plan *p)
{
    const struct dry_memory *m = &p->hints->memory;
    dryi_memory_free(m, p->steps, p->capacity, sizeof *p->steps);
    dryi_memory_free(m, p->lives, p->capacity, sizeof *p->lives);
    dryi_memory_free(m, p->fixed, p->capacity, sizeof *p->fixed);
    dryi_memory_free(m, p->piece, p->capacity, sizeof *p->piece);
    dryi_memory_free(m, p->fill, p->capacity, sizeof *p->fill);
    dryi_memory_free(m, p->items, p->capacity, 2 * sizeof *p->items);
}

/* The steps in the order of their streams, into the items. */
static void
sort_by_stream(struct plan *p)
{
    const struct dryi_forecast *h = p->hints;
    for (uint32_t i = 0; i < h->step_count; i++)
        p->items[i] = (struct dryi_sort_item){h->steps[i].stream, i};
    dryi_sort_items(p->items, p->items + p->capacity, h->step_count);
}

static void
find_lives(struct plan *p)
{
    const struct dryi_forecast *h = p->hints;
    sort_by_stream(p);
    for (uint32_t n = 0; n < h->step_count; n++) {
        uint32_t i = p->items[n].value;
        const struct hints_step *step = &h->steps[i];
        bool is_inside = step->end <= h->step_count;
        if (step->size == 0 || step->end == 0 ||
            (!is_inside && step->end - h->step_count > i))
            continue;
        p->steps[p->count] = i;
        p->fixed[p->count] = DRYI_OFFLINE_ANYWHERE;
        p->lives[p->count++] = is_inside
                                   ? (struct dryi_life){i, step->end, step->size}
                                   : (struct dryi_life){0, h->step_count, step->size};
    }
    for (size_t k = 0; k < p->obstacle_count; k++) {
        const struct dryi_obstacle *o = &p->obstacles[k];
        uint64_t begin = dryi_round_down(o->offset, UNIT);
        uint64_t end = dryi_round_up(o->offset + o->size, UNIT);
        p->fixed[p->count + k] = begin;
        p->lives[p->count + k] = (struct dryi_life){0, h->step_count, end - begin};
    }
}

/* The lowest gap of `size` bytes between the obstacles, or above them. */
static uint64_t
find_gap(const struct plan *p, uint64_t size)
{
    uint64_t cursor = 0;
    for (size_t k = p->count; k < p->count + p->obstacle_count; k++) {
        if (p->fixed[k] >= cursor && p->fixed[k] - cursor >= size)
            return cursor;
        if (p->fixed[k] + p->lives[k].size > cursor)
            cursor = p->fixed[k] + p->lives[k].size;
    }
    return cursor;
}

/* Pages that the obstacles and the planned lives at these offsets touch. */
static uint64_t
count_pages(const struct plan *p, const uint64_t *offsets)
{
    uint64_t pages = 0, next = 0; /* all below `next` are counted */
    size_t count = p->count + p->obstacle_count;
    for (size_t k = 0; k < count; k++) {
        uint64_t offset = k < p->count ? offsets[k] : p->fixed[k];
        p->items[k] = (struct dryi_sort_item){offset, (uint32_t)k};
    }
    dryi_sort_items(p->items, p->items + p->capacity, count);
    for (size_t k = 0; k < count; k++) {
        uint64_t first = p->items[k].key / p->page_bytes;
        uint64_t end = p->items[k].key + p->lives[p->items[k].value].size;
        uint64_t last = (end - 1) / p->page_bytes;
        first = first > next ? first : next;
        if (last + 1 > first) {
            pages += last + 1 - first;
            next = last + 1;
        }
    }
    return pages;
}

/* The lives [first, end), of one stream, above `base`; *height: of all so far. */
static enum dry_status
pack_stream(struct plan *p, size_t first, size_t end, uint64_t *height)
{
    struct dryi_packing packing;
    struct dryi_packing_options options = {.memory = &p->hints->memory,
                                           .alignment = UNIT};
    uint64_t moment, floor;
    enum dry_status status = dryi_offline_floor(p->lives + first, end - first, UNIT,
                                                options.memory, &floor, &moment);
    if (status != DRY_OK)
        return status;
    options.target = floor + (floor >> SPARE_SHIFT);
    status = dryi_offline_pack(p->lives + first, end - first, &options, p->piece + first,
                               &packing, NULL);
    if (status != DRY_OK)
        return status;
    for (size_t k = first; k < end; k++)
        p->piece[k] += *height;
    *height += packing.height;
    return DRY_OK;
}

static enum dry_status
pack_piece(struct plan *p)
{
    uint64_t moment, height = 0;
    enum dry_status status = dryi_offline_floor(p->lives, p->count, UNIT,
                                                &p->hints->memory, &p->floor, &moment);
    const struct hints_step *steps = p->hints->steps;
    for (size_t first = 0, end; status == DRY_OK && first < p->count; first = end) {
        for (end = first + 1; end < p->count && steps[p->steps[end]].stream ==
                                                    steps[p->steps[first]].stream;)
            end++;
        status = pack_stream(p, first, end, &height);
        p->streams++;
    }
    if (status != DRY_OK)
        return status;
    uint64_t base = find_gap(p, height);
    for (size_t k = 0; k < p->count; k++)
        p->piece[k] += base;
    return DRY_OK;
}

static enum dry_status
pack_fill(struct plan *p)
{
    struct dryi_packing packing;
    struct dryi_packing_options options = {
        .memory = &p->hints->memory, .alignment = UNIT, .fixed = p->fixed};
    return dryi_offline_pack(p->lives, p->count + p->obstacle_count, &options, p->fill,
                             &packing, NULL);
}

static void
take_plan(struct plan *p, struct dryi_plan_info *info)
{
    struct dryi_forecast *h = p->hints;
    uint64_t of_piece = count_pages(p, p->piece);
    bool is_filled = p->obstacle_count > 0 && p->streams <= 1;
    uint64_t of_fill = is_filled ? count_pages(p, p->fill) : UINT64_MAX;
    const uint64_t *offsets = of_fill < of_piece ? p->fill : p->piece;
    *info =
        (struct dryi_plan_info){.period = h->step_count,
                                .streams = p->streams,
                                .floor = p->floor,
                                .used_pages = of_fill < of_piece ? of_fill : of_piece};
    for (uint32_t i = 0; i < h->step_count; i++)
        h->steps[i].offset = DRYI_HINT_NONE;
    for (size_t k = 0; k < p->count; k++) {
        uint64_t end = offsets[k] + p->lives[k].size;
        h->steps[p->steps[k]].offset = offsets[k];
        info->height = end > info->height ? end : info->height;
    }
    h->state = HINTS_PLANNED;
    h->periods = 0;
    h->refused = 0;
}

static enum dry_status
check_obstacles(const struct dryi_obstacle *obstacles, size_t count)
{
    uint64_t end = 0;
    for (size_t k = 0; k < count; k++) {
        if (obstacles[k].size == 0 || obstacles[k].offset < end ||
            obstacles[k].offset > (UINT64_C(1) << 61) ||
            obstacles[k].size > (UINT64_C(1) << 61) - obstacles[k].offset)
            return DRY_ERR_ARGUMENT;
        end = obstacles[k].offset + obstacles[k].size;
    }
    return DRY_OK;
}

enum dry_status
dryi_forecast_pack(struct dryi_forecast *h, const struct dryi_obstacle *obstacles,
                   size_t obstacle_count, uint64_t page_bytes,
                   struct dryi_plan_info *info)
{
    if (h->state == HINTS_LEARNING || page_bytes == 0 ||
        obstacle_count > UINT32_MAX / 2 ||
        check_obstacles(obstacles, obstacle_count) != DRY_OK)
        return DRY_ERR_ARGUMENT;
    struct plan p = {.hints = h,
                     .obstacles = obstacles,
                     .obstacle_count = obstacle_count,
                     .page_bytes = page_bytes};
    enum dry_status status = take_memory(&p) ? DRY_OK : DRY_ERR_MEMORY;
    if (status == DRY_OK) {
        find_lives(&p);
        status = pack_piece(&p);
    }
    if (status == DRY_OK && obstacle_count > 0 && p.streams <= 1)
        status = pack_fill(&p);
    if (status == DRY_OK)
        take_plan(&p, info);
    give_memory_back(&p);
    if (status != DRY_OK)
        dryi_forecast_drop(h);
    return status;
}
