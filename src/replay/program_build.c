/* SPDX-License-Identifier: Apache-2.0 */

/* Cost: O(1) amortised per operation, request or carried-over allocation; O(log segments) for the
   lane of an event that does not name its pool. */
#include "replay/program_build.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trace/model/trace.h"

bool
dryi_build_contradict(struct dryi_build *b, uint32_t event, const char *why)
{
    if (!b->p->inconsistency) {
        b->p->inconsistency = why;
        b->p->inconsistent_event = event;
    }
    return false;
}

void
dryi_build_emit(struct dryi_build *b, enum op_kind kind, uint32_t arg, uint32_t event)
{
    struct dryi_program *p = b->p;
    const struct dry_memory *m = &p->memory;
    if (!dryi_memory_grow(m, &p->kinds, &p->kind_capacity, p->op_count + 1, 1) ||
        !dryi_memory_grow(m, &p->args, &p->arg_capacity, p->op_count + 1, 4) ||
        !dryi_memory_grow(m, &p->events, &p->event_capacity, p->op_count + 1, 4)) {
        b->failed = true;
        return;
    }
    p->kinds[p->op_count] = (uint8_t)kind;
    p->args[p->op_count] = arg;
    p->events[p->op_count] = event;
    p->op_count++;
}

/* --- lanes and streams -------------------------------------------------------------------- */

static bool
is_private(const struct dry_trace_view *v, const struct dry_trace_segment *s)
{
    const struct dry_lane *lane = &v->lanes[s->lane];
    return lane->pool_a != 0 || lane->pool_b != 0;
}

/* Collect segments of private pools: events in older files do not name their pool, but the segment
   at their address does. */
bool
dryi_build_find_private(struct dryi_build *b)
{
    const struct dry_trace_view *v = b->p->view;
    const struct dry_trace_device *d = b->p->device;
    for (size_t i = 0; i < d->segment_count; i++)
        b->private_count += is_private(v, &v->segments[d->first_segment + i]);
    if (b->private_count == 0)
        return true;
    b->private_segments = dryi_memory_zalloc(&b->p->memory, b->private_count,
                                             sizeof(struct dry_trace_segment *));
    if (!b->private_segments)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < d->segment_count; i++) {
        const struct dry_trace_segment *s = &v->segments[d->first_segment + i];
        if (is_private(v, s))
            b->private_segments[count++] = s;
    }
    qsort(b->private_segments, count, sizeof *b->private_segments,
          dryi_trace_compare_segments);
    return true;
}

static const struct dry_trace_segment *
private_segment_at(const struct dryi_build *b, uint64_t addr)
{
    size_t low = 0, high = b->private_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->private_segments[middle]->address <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct dry_trace_segment *s = b->private_segments[low - 1];
    return addr - s->address < s->total_size ? s : NULL;
}

uint32_t
dryi_build_intern_lane(struct dryi_build *b, uint64_t stream, struct dryi_pool_id pool)
{
    struct lane lane = {.stream = stream, .pool = pool};
    uint32_t id = dryi_intern_put(&b->p->lane_table, &lane, sizeof lane);
    b->failed |= id == DRYI_INTERN_NONE;
    return id;
}

uint32_t
dryi_build_lane(struct dryi_build *b, uint32_t trace_lane, uint64_t addr)
{
    const struct dry_lane *lane = &b->p->view->lanes[trace_lane];
    if (!lane->pool_known && b->private_count > 0) {
        const struct dry_trace_segment *s = private_segment_at(b, addr);
        if (s) {
            const struct dry_lane *l = &b->p->view->lanes[s->lane];
            return dryi_build_intern_lane(b, lane->stream,
                                          (struct dryi_pool_id){l->pool_a, l->pool_b});
        }
    }
    uint32_t *cached = &b->lane_cache[trace_lane];
    if (*cached == NO_EVENT)
        *cached = dryi_build_intern_lane(
            b, lane->stream, (struct dryi_pool_id){lane->pool_a, lane->pool_b});
    return *cached;
}

bool
dryi_build_is_private(const struct dryi_build *b, uint32_t lane)
{
    const struct lane *l = dryi_intern_get(&b->p->lane_table, lane, NULL);
    return l->pool.a != 0 || l->pool.b != 0;
}

uint32_t
dryi_build_intern_stream(struct dryi_build *b, uint64_t value)
{
    uint32_t id = dryi_intern_put(&b->p->streams, &value, sizeof value);
    b->failed |= id == DRYI_INTERN_NONE;
    return id;
}

uint32_t
dryi_build_take_stream(struct dryi_build *b)
{
    if (b->free_stream_count > 0)
        return b->free_streams[--b->free_stream_count];
    return dryi_build_intern_stream(b,
                                    DRYI_PENDING_STREAM_VALUE(b->pending_stream_count++));
}

void
dryi_build_return_stream(struct dryi_build *b, uint32_t stream)
{
    if (dryi_memory_grow(&b->p->memory, &b->free_streams, &b->free_stream_capacity,
                         b->free_stream_count + 1, sizeof *b->free_streams))
        b->free_streams[b->free_stream_count++] = stream;
    else
        b->failed = true;
}

/* --- requests and carried-over allocations ------------------------------------------------ */

uint32_t
dryi_build_add_request(struct dryi_build *b, uint64_t size, uint32_t lane, uint32_t event)
{
    struct dryi_program *p = b->p;
    const struct dry_memory *m = &p->memory;
    size_t count = p->request_count + 1;
    if (count > DRYI_REQUEST_COUNT_MAX ||
        !dryi_memory_grow(m, &p->sizes, &p->size_capacity, count, 8) ||
        !dryi_memory_grow(m, &p->lanes, &p->lane_capacity, count, 4) ||
        !dryi_memory_grow(m, &p->alloc_events, &p->alloc_event_capacity, count, 4)) {
        b->failed = true;
        return 0;
    }
    p->sizes[p->request_count] = size;
    p->lanes[p->request_count] = lane;
    p->alloc_events[p->request_count] = event;
    return (uint32_t)p->request_count++;
}

struct carried *
dryi_build_add_carried(struct dryi_build *b, uint64_t addr, uint64_t requested,
                       uint32_t lane)
{
    struct dryi_program *p = b->p;
    if (p->carried_count >= DRYI_REQUEST_COUNT_MAX ||
        !dryi_memory_grow(&p->memory, &p->carried, &p->carried_capacity,
                          p->carried_count + 1, sizeof *p->carried)) {
        b->failed = true;
        return NULL;
    }
    struct carried *carried = &p->carried[p->carried_count];
    *carried = (struct carried){
        .addr = addr,
        .requested = requested,
        .lane = lane,
        .free_event = NO_EVENT,
        .order = (uint32_t)p->carried_count++,
        .pending_stream = NO_STREAM,
    };
    return carried;
}

void
dryi_build_hold_stream(struct dryi_build *b, uint32_t stream)
{
    if (dryi_memory_grow(&b->p->memory, &b->held, &b->held_capacity, b->held_count + 1,
                         sizeof *b->held))
        b->held[b->held_count++] = stream;
    else
        b->failed = true;
}

void
dryi_build_hold_done(struct dryi_build *b)
{
    struct dryi_program *p = b->p;
    size_t first = p->op_count;
    while (first > b->settled && p->kinds[first - 1] == OP_STREAM_DONE)
        first--;
    for (size_t i = first; i < p->op_count; i++)
        dryi_build_hold_stream(b, p->args[i]);
    p->op_count = first;
}

void
dryi_build_put_back(struct dryi_build *b, uint32_t event)
{
    for (size_t i = 0; i < b->held_count; i++)
        dryi_build_emit(b, OP_STREAM_DONE, b->held[i], event);
    b->held_count = 0;
}
