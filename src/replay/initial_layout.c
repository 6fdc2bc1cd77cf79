/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Undo the window's segment events, last first, from the final layout. Ranges (ranges.h) hold the
 * mapped pages of expandable segments. Each carried-over allocation then belongs to the segment at
 * its address. Cost: O(n log n) in segments, segment events and carried-over allocations, and one
 * pass over the requests.
 */
#include "replay/initial_layout.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/sort.h"
#include "replay/ranges.h"

/* PyTorch does not split off a remainder up to this many bytes in the large pool
   (kSmallSize; reference: 2.7). */
#define UNSPLIT_REST_MAX (UINT64_C(1) << 20)
#define SMALL_SEGMENT_SIZE (UINT64_C(2) << 20)
/* largest rounded request served by the small pool */
#define SMALL_SIZE_MAX (UINT64_C(1) << 20)
/* How far below a mapped range its reservation may begin: half of the largest reservation. */
#define RESERVATION_MAX (UINT64_C(1) << 39)

struct find {
    struct dryi_initial_layout *layout;
    struct dryi_program *p;
    const struct dryi_torch_conf *conf;
    const uint8_t *action;
    const uint64_t *addr, *size;
    struct dryi_map made;      /* address -> event, of segments that cudaMalloc returned
                                  in the window and that still exist */
    struct dryi_ranges mapped; /* mapped pages of expandable segments */
    /* Per carried-over allocation: the next block's address or its segment's
       end, whichever is lower. */
    uint64_t *carried_ends;
    uint32_t *carried_segments;
    bool failed;
};

static void
contradict(struct find *f, uint32_t event, const char *why)
{
    if (!f->p->inconsistency) {
        f->p->inconsistency = why;
        f->p->inconsistent_event = event;
    }
}

/* --- segments ----------------------------------------------------------------------------- */

static void
add_segment(struct find *f, uint64_t addr, uint64_t size, uint32_t lane, bool is_large,
            bool is_expandable)
{
    struct dryi_initial_layout *layout = f->layout;
    if (!dryi_memory_grow(&layout->memory, &layout->segments, &layout->segment_capacity,
                          layout->segment_count + 1, sizeof *layout->segments)) {
        f->failed = true;
        return;
    }
    const struct lane *l = dryi_program_lane(f->p, lane);
    layout->segments[layout->segment_count++] = (struct dryi_torch_restored){
        .segment = {.addr = addr,
                    .size = size,
                    .stream = l->stream,
                    .pool = l->pool,
                    .is_large = is_large,
                    .is_expandable = is_expandable},
    };
    layout->reserved += size;
}

static uint32_t
lane_index(struct find *f, const struct dry_lane *lane)
{
    struct lane l = {.stream = lane->stream, .pool = {lane->pool_a, lane->pool_b}};
    uint32_t index = dryi_intern_put(&f->p->lane_table, &l, sizeof l);
    f->failed |= index == DRYI_INTERN_NONE;
    return index;
}

/* Go through cudaMalloc and cudaFree in order. A segment freed in the window but not
   allocated in it existed before. */
static void
follow_whole_segments(struct find *f)
{
    const struct dryi_program *p = f->p;
    for (size_t i = 0; i < p->segment_event_count && !f->failed; i++) {
        uint32_t e = p->segment_events[i];
        if (f->action[e] == DRY_ACTION_SEGMENT_ALLOC) {
            if (dryi_map_find(&f->made, f->addr[e]))
                contradict(f, e, "a segment is taken from the device twice");
            f->failed |= !dryi_map_put(&f->made, f->addr[e], e);
        } else if (f->action[e] == DRY_ACTION_SEGMENT_FREE &&
                   !dryi_map_take(&f->made, f->addr[e])) {
            uint32_t lane = lane_index(f, &p->view->lanes[p->trace_lane[e]]);
            if (f->failed)
                return;
            add_segment(f, f->addr[e], f->size[e], lane, f->size[e] != SMALL_SEGMENT_SIZE,
                        false);
        }
    }
}

/* Sort the final segments: those not allocated in the window existed before it. */
static void
sort_final_segments(struct find *f)
{
    const struct dry_trace_view *v = f->p->view;
    const struct dry_trace_device *d = f->p->device;
    for (size_t i = 0; i < d->segment_count && !f->failed; i++) {
        const struct dry_trace_segment *s = &v->segments[d->first_segment + i];
        uint32_t lane = lane_index(f, &v->lanes[s->lane]);
        if (f->failed)
            return;
        if (s->is_expandable) {
            struct range range = {.addr = s->address,
                                  .size = s->total_size,
                                  .lane = lane,
                                  .kind = s->is_large ? RANGE_LARGE : RANGE_SMALL};
            enum ranges_result result = dryi_ranges_add(&f->mapped, &range);
            f->failed |= result == RANGES_NO_MEMORY;
            if (result == RANGES_CONTRADICTION)
                contradict(f, NO_EVENT, "two final segments overlap");
        } else if (!dryi_map_take(&f->made, s->address)) {
            add_segment(f, s->address, s->total_size, lane, s->is_large, false);
        }
    }
    if (f->made.count > 0)
        contradict(f, NO_EVENT, "a segment taken in the window is missing at the end");
}

/* Undo maps and unmaps, last first. */
static void
unwind_mapped_ranges(struct find *f)
{
    const struct dryi_program *p = f->p;
    for (size_t i = p->segment_event_count; i-- > 0 && !f->failed;) {
        uint32_t e = p->segment_events[i];
        enum ranges_result result = RANGES_DONE;
        if (f->action[e] == DRY_ACTION_SEGMENT_MAP) {
            result = dryi_ranges_remove(&f->mapped, f->addr[e], f->size[e]);
        } else if (f->action[e] == DRY_ACTION_SEGMENT_UNMAP) {
            struct range range = {.addr = f->addr[e],
                                  .size = f->size[e],
                                  .lane =
                                      lane_index(f, &p->view->lanes[p->trace_lane[e]])};
            result = dryi_ranges_add(&f->mapped, &range);
        }
        f->failed |= result == RANGES_NO_MEMORY;
        if (result == RANGES_CONTRADICTION)
            contradict(f, e, "mapped pages do not add up to the final segments");
    }
}

/* Tell the small from the large pool for ranges that are unmapped at the end. Only the size of a
   request in the range shows its pool. */
static void
find_pools_of_ranges(struct find *f)
{
    const struct dryi_program *p = f->p;
    for (uint32_t r = 0; r < p->request_count; r++) {
        if (r >= p->carried_count && f->action[p->alloc_events[r]] != DRY_ACTION_ALLOC)
            continue;
        struct range *range = dryi_ranges_at(&f->mapped, dryi_program_addr(p, r));
        if (range && range->kind == RANGE_UNKNOWN)
            range->kind = dryi_torch_round_size(f->conf, p->sizes[r]) <= SMALL_SIZE_MAX
                              ? RANGE_SMALL
                              : RANGE_LARGE;
    }
}

static void
add_mapped_ranges(struct find *f)
{
    if (f->mapped.live_count > 0)
        find_pools_of_ranges(f);
    const struct range *range = dryi_ranges_from(&f->mapped, 0);
    while (range && !f->failed) {
        bool is_large = range->kind == RANGE_LARGE ||
                        (range->kind == RANGE_UNKNOWN &&
                         range->size % f->conf->large_segment_size == 0);
        add_segment(f, range->addr, range->size, range->lane, is_large, true);
        range = dryi_ranges_from(&f->mapped, range->addr + 1);
    }
}

static void
check_segments(struct find *f)
{
    const struct dryi_initial_layout *layout = f->layout;
    uint64_t total = 0;
    for (size_t i = 0; i < layout->segment_count; i++) {
        uint64_t end;
        const struct dryi_segment_info *s = &layout->segments[i].segment;
        if (s->size == 0 || __builtin_add_overflow(s->addr, s->size, &end))
            contradict(f, NO_EVENT, "a segment is empty or wraps around");
        else if (i + 1 < layout->segment_count &&
                 end > layout->segments[i + 1].segment.addr)
            contradict(f, NO_EVENT, "two segments overlap before the window");
        else if (__builtin_add_overflow(total, s->size, &total) ||
                 total > DEVICE_BYTES_MAX)
            contradict(f, NO_EVENT, "segments add up to more than any device");
    }
}

size_t
dryi_initial_layout_count_up_to(const struct dryi_initial_layout *layout, uint64_t addr)
{
    return dryi_count_up_to(layout->segments, layout->segment_count,
                            sizeof *layout->segments,
                            offsetof(struct dryi_torch_restored, segment.addr), addr);
}

/* Return the first segment above an address, or NULL. */
static struct dryi_torch_restored *
segment_above(const struct dryi_initial_layout *layout, uint64_t addr)
{
    size_t i = dryi_initial_layout_count_up_to(layout, addr);
    return i < layout->segment_count ? &layout->segments[i] : NULL;
}

/*
 * Find reservations that begin below their mapped range. If the window maps pages below it for the
 * same stream and pool, their front had been unmapped. The next request in the record is the one
 * that the pages were mapped for; its size shows the pool.
 */
static void
find_reservations(struct find *f)
{
    const struct dryi_program *p = f->p;
    size_t r = p->carried_count;
    for (size_t i = 0; i < p->segment_event_count; i++) {
        uint32_t e = p->segment_events[i];
        if (f->action[e] != DRY_ACTION_SEGMENT_MAP)
            continue;
        while (r < p->request_count && p->alloc_events[r] < e)
            r++;
        bool is_large = r < p->request_count &&
                        dryi_torch_round_size(f->conf, p->sizes[r]) > SMALL_SIZE_MAX;
        struct dryi_torch_restored *above = segment_above(f->layout, f->addr[e]);
        const struct dry_lane *lane = &p->view->lanes[p->trace_lane[e]];
        if (!above || !above->segment.is_expandable ||
            above->segment.is_large != is_large ||
            above->segment.stream != lane->stream ||
            (lane->pool_known && (above->segment.pool.a != lane->pool_a ||
                                  above->segment.pool.b != lane->pool_b)) ||
            above->segment.addr - f->addr[e] > RESERVATION_MAX)
            continue;
        if (!above->reserved_from || f->addr[e] < above->reserved_from)
            above->reserved_from = f->addr[e];
    }
}

static void
find_segments(struct find *f)
{
    follow_whole_segments(f);
    sort_final_segments(f);
    unwind_mapped_ranges(f);
    add_mapped_ranges(f);
    if (f->failed || f->layout->segment_count == 0)
        return;
    qsort(f->layout->segments, f->layout->segment_count, sizeof *f->layout->segments,
          dryi_compare_leading);
    check_segments(f);
    find_reservations(f);
}

/* --- sizes of carried-over allocations ---------------------------------------------------- */

/* Bound each carried-over allocation by the next one's address or its segment's end. An allocation
   outside all segments contradicts the record. */
static void
bound_carried(struct find *f)
{
    const struct dryi_initial_layout *layout = f->layout;
    const struct dryi_program *p = f->p;
    size_t s = 0;
    for (size_t i = 0; i < p->carried_count; i++) {
        uint64_t addr = p->carried[i].addr;
        while (s < layout->segment_count &&
               addr - layout->segments[s].segment.addr >=
                   layout->segments[s].segment.size &&
               addr >= layout->segments[s].segment.addr)
            s++;
        if (s == layout->segment_count || addr < layout->segments[s].segment.addr) {
            contradict(f, p->carried[i].free_event,
                       "a block older than the window lies in no segment");
            return;
        }
        uint64_t end =
            layout->segments[s].segment.addr + layout->segments[s].segment.size;
        if (i + 1 < p->carried_count && p->carried[i + 1].addr < end)
            end = p->carried[i + 1].addr;
        f->carried_ends[i] = end;
        f->carried_segments[i] = (uint32_t)s;
    }
}

/* Return how many bytes a block may be larger than its rounded request, because PyTorch does not
   split off the remainder. UINT64_MAX: no limit. */
static uint64_t
unsplit_rest_max(const struct find *f, size_t carried, uint64_t rounded)
{
    const struct dryi_segment_info *s =
        &f->layout->segments[f->carried_segments[carried]].segment;
    if (!s->is_large || f->conf->expandable_segments)
        return 0;
    if (rounded >= f->conf->max_split_size)
        return UINT64_MAX;
    return UNSPLIT_REST_MAX;
}

/* Set the block sizes that follow from the next block's address alone. Returns how many
   sizes are still unknown. */
static size_t
size_carried_by_neighbour(struct find *f)
{
    size_t open_count = 0;
    for (size_t i = 0; i < f->p->carried_count; i++) {
        struct carried *c = &f->p->carried[i];
        uint64_t bytes_to_end = f->carried_ends[i] - c->addr;
        uint64_t rounded =
            c->block_size ? c->block_size : dryi_torch_round_size(f->conf, c->requested);
        if (rounded > bytes_to_end || c->requested > rounded) {
            contradict(f, c->free_event,
                       "a block older than the window does not fit where it was");
            return 0;
        }
        if (c->block_size)
            continue;
        uint64_t rest = bytes_to_end - rounded;
        uint64_t rest_max = unsplit_rest_max(f, i, rounded);
        if (rest <= rest_max) {
            c->block_size = bytes_to_end;
            c->is_inferred = rest > 0;
        } else if (rest_max == 0) {
            c->block_size = rounded;
        } else {
            open_count++;
        }
    }
    return open_count;
}

/* Return the index of the last carried-over allocation at or below an address, or NO_EVENT. */
static uint32_t
carried_below(const struct dryi_program *p, uint64_t addr)
{
    size_t i = dryi_count_up_to(p->carried, p->carried_count, sizeof *p->carried,
                                offsetof(struct carried, addr), addr);
    return i ? (uint32_t)(i - 1) : NO_EVENT;
}

/* Set a carried-over block's size from the first address allocated after it,
   which is where it ends. */
static bool
size_carried_by_address(struct find *f, uint64_t addr, uint32_t event)
{
    uint32_t index = carried_below(f->p, addr);
    if (index == NO_EVENT || addr >= f->carried_ends[index])
        return false;
    struct carried *c = &f->p->carried[index];
    if (c->block_size || c->free_event < event)
        return false;
    uint64_t rounded = dryi_torch_round_size(f->conf, c->requested);
    uint64_t size = addr - c->addr;
    if (size < rounded || size - rounded > UNSPLIT_REST_MAX)
        size = rounded;
    c->block_size = size;
    c->is_inferred = size > rounded;
    return true;
}

static void
size_carried(struct find *f)
{
    struct dryi_program *p = f->p;
    size_t open_count = size_carried_by_neighbour(f);
    for (size_t i = 0; i < p->op_count && open_count > 0; i++) {
        if (p->kinds[i] == OP_ALLOC)
            open_count -= size_carried_by_address(f, dryi_program_addr(p, p->args[i]),
                                                  p->events[i]);
    }
    for (size_t i = 0; i < p->carried_count; i++) {
        struct carried *c = &p->carried[i];
        if (!c->block_size)
            c->block_size = dryi_torch_round_size(f->conf, c->requested);
        f->layout->sizes_inferred += c->is_inferred;
    }
}

/* --- blocks ------------------------------------------------------------------------------- */

static void
add_block(struct find *f, uint64_t addr, uint64_t size, uint32_t request)
{
    struct dryi_initial_layout *layout = f->layout;
    size_t count = layout->block_count + 1;
    if (!dryi_memory_grow(&layout->memory, &layout->blocks, &layout->block_capacity,
                          count, sizeof *layout->blocks) ||
        !dryi_memory_grow(&layout->memory, &layout->block_requests,
                          &layout->request_capacity, count,
                          sizeof *layout->block_requests)) {
        f->failed = true;
        return;
    }
    bool is_used = request != DRYI_NO_BLOCK;
    layout->blocks[layout->block_count] = (struct dryi_block_info){
        .addr = addr,
        .size = size,
        .requested = is_used ? f->p->carried[request].requested : 0,
        .allocated = is_used,
        .mapped = true,
    };
    layout->block_requests[layout->block_count++] = request;
}

static void
fill_segments(struct find *f)
{
    struct dryi_initial_layout *layout = f->layout;
    const struct dryi_program *p = f->p;
    uint32_t i = 0;
    for (size_t s = 0; s < layout->segment_count && !f->failed; s++) {
        uint64_t at = layout->segments[s].segment.addr;
        uint64_t end = at + layout->segments[s].segment.size;
        size_t first = layout->block_count;
        for (; i < p->carried_count && p->carried[i].addr < end; i++) {
            if (p->carried[i].addr > at)
                add_block(f, at, p->carried[i].addr - at, DRYI_NO_BLOCK);
            add_block(f, p->carried[i].addr, p->carried[i].block_size, i);
            at = p->carried[i].addr + p->carried[i].block_size;
        }
        if (at < end)
            add_block(f, at, end - at, DRYI_NO_BLOCK);
        layout->segments[s].block_count = layout->block_count - first;
    }
    size_t first = 0;
    for (size_t s = 0; s < layout->segment_count && !f->failed; s++) {
        layout->segments[s].blocks = layout->blocks + first;
        first += layout->segments[s].block_count;
    }
}

static bool
lies_in_spans(const struct range *spans, size_t count, uint64_t addr)
{
    size_t i =
        dryi_count_up_to(spans, count, sizeof *spans, offsetof(struct range, addr), addr);
    return i > 0 && addr - spans[i - 1].addr < spans[i - 1].size;
}

/* Sort spans, and merge those that touch or overlap: segments may get the
   same address repeatedly. */
static size_t
join_spans(struct range *spans, size_t count)
{
    size_t kept = 0;
    qsort(spans, count, sizeof *spans, dryi_compare_leading);
    for (size_t i = 0; i < count; i++) {
        struct range *last = kept ? &spans[kept - 1] : NULL;
        if (last && spans[i].addr - last->addr <= last->size) {
            uint64_t end = spans[i].addr - last->addr + spans[i].size;
            last->size = end > last->size ? end : last->size;
        } else {
            spans[kept++] = spans[i];
        }
    }
    return kept;
}

/* Check that every allocation of the window is in a segment of the record. */
static void
check_addresses(struct find *f)
{
    const struct dryi_initial_layout *layout = f->layout;
    const struct dryi_program *p = f->p;
    size_t capacity = layout->segment_count + p->segment_event_count, count = 0;
    struct range *spans =
        dryi_memory_zalloc(&layout->memory, capacity + 1, sizeof *spans);
    if (!spans) {
        f->failed = true;
        return;
    }
    for (size_t i = 0; i < layout->segment_count; i++)
        spans[count++] = (struct range){.addr = layout->segments[i].segment.addr,
                                        .size = layout->segments[i].segment.size};
    for (size_t i = 0; i < p->segment_event_count; i++) {
        uint32_t e = p->segment_events[i];
        if (f->action[e] == DRY_ACTION_SEGMENT_ALLOC ||
            f->action[e] == DRY_ACTION_SEGMENT_MAP)
            spans[count++] = (struct range){.addr = f->addr[e], .size = f->size[e]};
    }
    count = join_spans(spans, count);
    for (size_t r = p->carried_count; r < p->request_count; r++) {
        uint32_t event = p->alloc_events[r];
        if (f->action[event] == DRY_ACTION_ALLOC &&
            !lies_in_spans(spans, count, f->addr[event])) {
            contradict(f, event, "an allocation lies in no segment");
            break;
        }
    }
    dryi_memory_free(&layout->memory, spans, capacity + 1, sizeof *spans);
}

static bool
find_init(struct find *f)
{
    const struct dryi_program *p = f->p;
    f->action = p->action;
    f->addr = p->addr;
    f->size = p->size;
    dryi_map_init(&f->made, &p->memory);
    dryi_ranges_init(&f->mapped, &p->memory);
    f->carried_ends =
        dryi_memory_zalloc(&p->memory, p->carried_count + 1, sizeof(uint64_t));
    f->carried_segments =
        dryi_memory_zalloc(&p->memory, p->carried_count + 1, sizeof(uint32_t));
    return f->carried_ends && f->carried_segments;
}

static void
find_finish(struct find *f)
{
    const struct dryi_program *p = f->p;
    dryi_map_finish(&f->made);
    dryi_ranges_finish(&f->mapped);
    dryi_memory_free(&p->memory, f->carried_ends, p->carried_count + 1, sizeof(uint64_t));
    dryi_memory_free(&p->memory, f->carried_segments, p->carried_count + 1,
                     sizeof(uint32_t));
}

static void
find_layout(struct find *f)
{
    find_segments(f);
    if (!f->failed && !f->p->inconsistency)
        check_addresses(f);
    if (!f->failed && !f->p->inconsistency)
        bound_carried(f);
    if (!f->failed && !f->p->inconsistency)
        size_carried(f);
    if (!f->failed && !f->p->inconsistency)
        fill_segments(f);
}

enum dry_status
dryi_initial_layout_init(struct dryi_initial_layout *layout, struct dryi_program *program,
                         const struct dryi_torch_conf *conf, struct dry_error *err)
{
    *layout = (struct dryi_initial_layout){.memory = program->memory};
    struct find f = {.layout = layout, .p = program, .conf = conf};
    if (find_init(&f))
        find_layout(&f);
    else
        f.failed = true;
    find_finish(&f);
    if (f.failed) {
        dryi_initial_layout_finish(layout);
        return dryi_fail_memory(err, "the layout before the window");
    }
    if (program->inconsistency)
        dryi_initial_layout_finish(layout);
    return DRY_OK;
}

void
dryi_initial_layout_finish(struct dryi_initial_layout *layout)
{
    if (!layout->memory.resize)
        return;
    dryi_memory_free(&layout->memory, layout->segments, layout->segment_capacity,
                     sizeof *layout->segments);
    dryi_memory_free(&layout->memory, layout->blocks, layout->block_capacity,
                     sizeof *layout->blocks);
    dryi_memory_free(&layout->memory, layout->block_requests, layout->request_capacity,
                     sizeof *layout->block_requests);
    *layout = (struct dryi_initial_layout){.memory = layout->memory};
}
