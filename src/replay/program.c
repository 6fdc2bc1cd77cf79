/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One pass over the events pairs allocs with frees by a map from address to request. The final
 * layout adds active blocks without events. Then carried-over allocations are sorted by address and
 * numbered first. Cost: O(events + c log c) for c carried-over allocations.
 */
#include "replay/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "replay/program_burst.h"
#include "trace/model/trace.h"

/* --- the events --------------------------------------------------------------------------- */

static void
on_alloc(struct dryi_build *b, uint32_t i)
{
    dryi_burst_end(b, i, true);
    if (b->p->has_addresses && b->size[i] > DEVICE_BYTES_MAX)
        dryi_build_contradict(b, i,
                              "an allocation is negative or larger than any device");
    if (dryi_map_find(&b->live, b->addr[i])) {
        dryi_build_contradict(b, i, "an address is handed out that is still in use");
        return;
    }
    uint32_t lane = dryi_build_lane(b, b->trace_lane[i], b->addr[i]);
    uint32_t request = dryi_build_add_request(b, b->size[i], lane, i);
    b->failed |= !dryi_map_put(&b->live, b->addr[i], request);
    dryi_build_emit(b, OP_ALLOC, request, i);
    dryi_build_put_back(b, i);
}

static void
on_live(struct dryi_build *b, uint32_t i)
{
    uint32_t lane = dryi_build_lane(b, b->trace_lane[i], b->addr[i]);
    struct carried *carried = dryi_build_add_carried(b, b->addr[i], b->size[i], lane);
    if (carried)
        b->failed |=
            !dryi_map_put(&b->live, b->addr[i], DRYI_CARRIED_BIT | carried->order);
}

/* Return the request alive at this event's address. If there is none, add a
   carried-over allocation. */
static uint32_t
find_request(struct dryi_build *b, uint32_t i)
{
    const uint32_t *known = dryi_map_find(&b->live, b->addr[i]);
    if (known)
        return *known;
    uint32_t lane = dryi_build_lane(b, b->trace_lane[i], b->addr[i]);
    struct carried *carried = dryi_build_add_carried(b, b->addr[i], b->size[i], lane);
    if (!carried ||
        !dryi_map_put(&b->live, b->addr[i], DRYI_CARRIED_BIT | carried->order)) {
        b->failed = true;
        return 0;
    }
    return DRYI_CARRIED_BIT | carried->order;
}

static void
note_carried_free(struct dryi_build *b, uint32_t request, uint32_t i)
{
    if (request & DRYI_CARRIED_BIT)
        b->p->carried[request & ~DRYI_CARRIED_BIT].free_event = i;
}

static void
emit_pending_free(struct dryi_build *b, uint32_t request, uint64_t addr, uint32_t event)
{
    uint32_t stream = dryi_build_take_stream(b);
    dryi_build_emit(b, OP_STREAM, stream, event);
    dryi_build_emit(b, OP_RECORD_STREAM, request, event);
    dryi_build_emit(b, OP_FREE, request, event);
    b->failed |= !dryi_map_put(&b->pending, addr, stream);
    b->p->pending_count++;
}

/* Emit a free. Returns true if the next event is its completion and was handled too. */
static bool
on_free_requested(struct dryi_build *b, uint32_t i)
{
    dryi_burst_end(b, i, false);
    if (dryi_map_find(&b->pending, b->addr[i]))
        return dryi_build_contradict(b, i, "a block is given back twice");
    uint32_t request = find_request(b, i);
    if (b->failed)
        return false;
    note_carried_free(b, request, i);
    bool completes = i + 1 < b->event_count &&
                     b->action[i + 1] == DRY_ACTION_FREE_COMPLETED &&
                     b->addr[i + 1] == b->addr[i];
    b->p->assumed_count += b->lacks_completions;
    if (b->p->has_addresses && !completes && !b->lacks_completions) {
        emit_pending_free(b, request, b->addr[i], i);
        return false;
    }
    dryi_build_emit(b, OP_FREE, request, i);
    dryi_map_take(&b->live, b->addr[i]);
    return completes;
}

static void
on_free_completed(struct dryi_build *b, uint32_t i)
{
    const uint32_t *pending = dryi_map_find(&b->pending, b->addr[i]);
    if (pending) {
        uint32_t stream = *pending;
        if (b->burst_event != NO_EVENT)
            dryi_build_hold_stream(b, stream); /* in the middle of a retry */
        else
            dryi_build_emit(b, OP_STREAM_DONE, stream, i);
        dryi_map_take(&b->pending, b->addr[i]);
        dryi_map_take(&b->live, b->addr[i]);
        dryi_build_return_stream(b, stream);
        return;
    }
    bool is_known = dryi_map_find(&b->live, b->addr[i]) != NULL;
    uint32_t request = find_request(b, i);
    if (b->failed)
        return;
    note_carried_free(b, request, i);
    if (is_known) { /* free_requested was not recorded (skip_actions) */
        dryi_burst_end(b, i, false);
        dryi_build_emit(b, OP_FREE, request, i);
    } else { /* requested before the window, so it waits from the start */
        uint32_t stream = dryi_build_intern_stream(
            b, DRYI_PENDING_STREAM_VALUE(b->pending_stream_count));
        b->pending_stream_count++;
        b->p->carried[request & ~DRYI_CARRIED_BIT].pending_stream = stream;
        b->p->pending_count++;
        dryi_build_emit(b, OP_STREAM_DONE, stream, i);
    }
    dryi_map_take(&b->live, b->addr[i]);
}

static void
on_record_stream(struct dryi_build *b, uint32_t i)
{
    const uint32_t *request = dryi_map_find(&b->live, b->addr[i]);
    if (!request) {
        dryi_build_contradict(b, i, "a stream is recorded on a block that is not alive");
        return;
    }
    uint32_t used = *request;
    dryi_build_emit(
        b, OP_STREAM,
        dryi_build_intern_stream(b, b->p->view->lanes[b->trace_lane[i]].stream), i);
    dryi_build_emit(b, OP_RECORD_STREAM, used, i);
}

/* Emit an event's operations. Returns the number of events handled. */
static uint32_t
on_event(struct dryi_build *b, uint32_t i)
{
    enum dry_action action = b->action[i];
    switch (action) {
    case DRY_ACTION_ALLOC:
        on_alloc(b, i);
        return 1;
    case DRY_ACTION_FREE_REQUESTED:
        return on_free_requested(b, i) ? 2 : 1;
    case DRY_ACTION_FREE_COMPLETED:
        on_free_completed(b, i);
        return 1;
    case DRY_ACTION_SEGMENT_ALLOC:
    case DRY_ACTION_SEGMENT_FREE:
    case DRY_ACTION_SEGMENT_MAP:
    case DRY_ACTION_SEGMENT_UNMAP:
        dryi_burst_segment(b, i);
        return 1;
    case DRY_ACTION_OOM:
        dryi_burst_oom(b, i);
        return 1;
    case DRY_ACTION_LIVE:
        on_live(b, i);
        return 1;
    case DRY_ACTION_RECORD_STREAM:
        on_record_stream(b, i);
        return 1;
    case DRY_ACTION_STREAM_END:
        dryi_build_emit(
            b, OP_STREAM_DONE,
            dryi_build_intern_stream(b, b->p->view->lanes[b->trace_lane[i]].stream), i);
        return 1;
    case DRY_ACTION_EMPTY_CACHE:
        dryi_build_emit(b, OP_EMPTY_CACHE, 0, i);
        return 1;
    case DRY_ACTION_POOL_BEGIN:
        dryi_build_emit(b, OP_POOL_BEGIN, dryi_build_lane(b, b->trace_lane[i], 0), i);
        return 1;
    case DRY_ACTION_POOL_END:
        dryi_build_emit(b, OP_POOL_END, dryi_build_lane(b, b->trace_lane[i], 0), i);
        return 1;
    case DRY_ACTION_OTHER:
        b->p->unknown_count++;
        return 1;
    case DRY_ACTION_SNAPSHOT:
    case DRY_ACTION_ANNOTATE:
        return 1;
    }
    return 1;
}

/* --- the end of the window ---------------------------------------------------------------- */

/* Add an active block of the final layout for which the events are incomplete. */
static void
on_final_block(struct dryi_build *b, const struct dry_trace_segment *s,
               const struct dry_trace_block *block)
{
    bool is_pending = block->state == DRY_BLOCK_PENDING_FREE;
    const uint32_t *known = dryi_map_find(&b->live, block->address);
    if (known) {
        uint32_t request = *known;
        if (is_pending && !dryi_map_find(&b->pending, block->address)) {
            emit_pending_free(b, request, block->address, b->event_count);
            b->p->frees_inferred++;
        }
        dryi_map_take(&b->live, block->address);
        return;
    }
    const struct dry_lane *l = &b->p->view->lanes[s->lane];
    uint32_t lane =
        dryi_build_intern_lane(b, l->stream, (struct dryi_pool_id){l->pool_a, l->pool_b});
    /* Older files lack requested_size: use the block's size. */
    uint64_t requested = block->requested_size ? block->requested_size : block->size;
    struct carried *carried = dryi_build_add_carried(b, block->address, requested, lane);
    if (!carried)
        return;
    carried->block_size = block->size;
    if (is_pending) {
        carried->pending_stream = dryi_build_intern_stream(
            b, DRYI_PENDING_STREAM_VALUE(b->pending_stream_count));
        b->pending_stream_count++;
    }
}

static int
compare_u32(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Free requests that are alive after the last event but not in the final layout: they
   were freed in between. */
static bool
free_the_vanished(struct dryi_build *b)
{
    size_t count = 0, capacity = b->live.count, slot = 0;
    if (capacity == 0)
        return true;
    uint32_t *gone = dryi_memory_zalloc(&b->p->memory, capacity, sizeof *gone);
    if (!gone)
        return false;
    const struct dryi_map_slot *entry;
    while ((entry = dryi_map_next(&b->live, &slot))) {
        if (!dryi_map_find(&b->pending, entry->key))
            gone[count++] = entry->value;
    }
    qsort(gone, count, sizeof *gone, compare_u32);
    for (size_t i = 0; i < count; i++) {
        note_carried_free(b, gone[i], b->event_count);
        dryi_build_emit(b, OP_FREE, gone[i], b->event_count);
    }
    b->p->frees_inferred += count;
    dryi_memory_free(&b->p->memory, gone, capacity, sizeof *gone);
    return true;
}

static bool
read_final_layout(struct dryi_build *b)
{
    const struct dry_trace_view *v = b->p->view;
    const struct dry_trace_device *d = b->p->device;
    if (!b->p->has_addresses || d->segment_count == 0)
        return true;
    for (size_t i = 0; i < d->segment_count; i++) {
        const struct dry_trace_segment *s = &v->segments[d->first_segment + i];
        for (size_t j = 0; j < s->block_count; j++) {
            const struct dry_trace_block *block = &v->blocks[s->first_block + j];
            if (block->state != DRY_BLOCK_INACTIVE)
                on_final_block(b, s, block);
        }
    }
    return free_the_vanished(b);
}

static int
compare_carried(const void *a, const void *b)
{
    const struct carried *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr > y->addr ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static bool
takes_request(uint8_t kind)
{
    return kind == OP_ALLOC || kind == OP_FREE || kind == OP_RECORD_STREAM ||
           kind == OP_OOM;
}

/* Make space for the carried-over allocations before the window's requests. */
static bool
shift_requests(struct dryi_program *p)
{
    size_t c = p->carried_count, n = p->request_count;
    const struct dry_memory *m = &p->memory;
    if (c + n > DRYI_REQUEST_COUNT_MAX || c + n == 0)
        return c + n == 0;
    if (!dryi_memory_grow(m, &p->sizes, &p->size_capacity, c + n, 8) ||
        !dryi_memory_grow(m, &p->lanes, &p->lane_capacity, c + n, 4) ||
        !dryi_memory_grow(m, &p->alloc_events, &p->alloc_event_capacity, c + n, 4))
        return false;
    memmove(p->sizes + c, p->sizes, n * sizeof *p->sizes);
    memmove(p->lanes + c, p->lanes, n * sizeof *p->lanes);
    memmove(p->alloc_events + c, p->alloc_events, n * sizeof *p->alloc_events);
    for (size_t i = 0; i < c; i++) {
        p->sizes[i] = p->carried[i].requested;
        p->lanes[i] = p->carried[i].lane;
        p->alloc_events[i] = NO_EVENT;
    }
    p->request_count = c + n;
    return true;
}

/* Give carried-over allocations the first numbers, by address, and renumber all operations. */
static bool
number_requests(struct dryi_program *p)
{
    size_t c = p->carried_count;
    uint32_t *rank = dryi_memory_zalloc(&p->memory, c + 1, sizeof *rank);
    if (!rank)
        return false;
    if (p->has_addresses && c > 0)
        qsort(p->carried, c, sizeof *p->carried, compare_carried);
    for (size_t i = 0; i < c; i++)
        rank[p->carried[i].order] = (uint32_t)i;
    for (size_t i = 0; i < p->op_count; i++) {
        if (!takes_request(p->kinds[i]))
            continue;
        if (p->args[i] & DRYI_CARRIED_BIT)
            p->args[i] = rank[p->args[i] & ~DRYI_CARRIED_BIT];
        else
            p->args[i] += (uint32_t)c;
    }
    dryi_memory_free(&p->memory, rank, c + 1, sizeof *rank);
    return shift_requests(p);
}

static bool
build(struct dryi_build *b)
{
    struct dryi_program *p = b->p;
    if (!dryi_build_find_private(b))
        return false;
    for (uint32_t i = 0; i < b->event_count && !b->failed;)
        i += on_event(b, i);
    dryi_burst_end(b, b->event_count, false);
    p->reserved_end = b->reserved;
    if (b->failed)
        return false;
    dryi_bursts_settle(p);
    return read_final_layout(b) && !b->failed && number_requests(p);
}

static bool
build_init(struct dryi_build *b)
{
    const struct dryi_program *p = b->p;
    const struct dry_trace_view *v = p->view;
    b->action = p->action;
    b->addr = p->addr;
    b->size = p->size;
    b->trace_lane = p->trace_lane;
    b->event_count = (uint32_t)p->device->event_count;
    b->burst_event = NO_EVENT;
    dryi_map_init(&b->live, &p->memory);
    dryi_map_init(&b->pending, &p->memory);
    b->lane_cache_count = (size_t)v->lane_count + 1;
    b->lane_cache = dryi_memory_zalloc(&p->memory, b->lane_cache_count, sizeof(uint32_t));
    if (b->lane_cache)
        memset(b->lane_cache, 0xff, b->lane_cache_count * sizeof(uint32_t));
    return b->lane_cache != NULL;
}

static void
build_finish(struct dryi_build *b)
{
    const struct dry_memory *m = &b->p->memory;
    dryi_map_finish(&b->live);
    dryi_map_finish(&b->pending);
    dryi_memory_free(m, b->lane_cache, b->lane_cache_count, sizeof *b->lane_cache);
    dryi_memory_free(m, b->free_streams, b->free_stream_capacity,
                     sizeof *b->free_streams);
    dryi_memory_free(m, b->held, b->held_capacity, sizeof *b->held);
    dryi_memory_free(m, b->burst_lanes, b->burst_lane_capacity, sizeof *b->burst_lanes);
    dryi_memory_free(m, b->private_segments, b->private_count,
                     sizeof(struct dry_trace_segment *));
}

enum dry_status
dryi_program_init(struct dryi_program *program, const struct dry_trace *trace,
                  const struct dry_trace_device *device,
                  const struct dryi_torch_conf *conf, const struct dry_memory *memory,
                  struct dry_error *err)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    *program = (struct dryi_program){
        .memory = dryi_memory_or_default(memory),
        .view = v,
        .device = device,
        .has_addresses = v->has_addresses,
        .oom_event = NO_EVENT,
    };
    if (device->event_count >= DRYI_REQUEST_COUNT_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "%zu events on one device; the limit is %u",
                         device->event_count, DRYI_REQUEST_COUNT_MAX);
    if (device->event_count > 0) {
        program->action = v->action + device->first_event;
        program->addr = v->addr + device->first_event;
        program->size = v->size + device->first_event;
        program->trace_lane = v->lane + device->first_event;
    }
    dryi_intern_init(&program->lane_table, &program->memory);
    dryi_intern_init(&program->streams, &program->memory);
    struct dryi_build b = {.p = program,
                           .conf = conf,
                           .lacks_completions = dryi_trace_lacks_completions(v, device)};
    bool is_built = build_init(&b) && build(&b);
    build_finish(&b);
    if (!is_built) {
        dryi_program_finish(program);
        return dryi_fail_memory(err, "the program of a trace");
    }
    return DRY_OK;
}

void
dryi_program_finish(struct dryi_program *p)
{
    const struct dry_memory *m = &p->memory;
    if (!m->resize)
        return;
    dryi_memory_free(m, p->kinds, p->kind_capacity, sizeof *p->kinds);
    dryi_memory_free(m, p->args, p->arg_capacity, sizeof *p->args);
    dryi_memory_free(m, p->events, p->event_capacity, sizeof *p->events);
    dryi_memory_free(m, p->sizes, p->size_capacity, sizeof *p->sizes);
    dryi_memory_free(m, p->lanes, p->lane_capacity, sizeof *p->lanes);
    dryi_memory_free(m, p->alloc_events, p->alloc_event_capacity,
                     sizeof *p->alloc_events);
    dryi_memory_free(m, p->carried, p->carried_capacity, sizeof *p->carried);
    dryi_intern_finish(&p->lane_table);
    dryi_intern_finish(&p->streams);
    dryi_memory_free(m, p->limits, p->limit_capacity, sizeof *p->limits);
    dryi_memory_free(m, p->segment_events, p->segment_event_capacity,
                     sizeof *p->segment_events);
    *p = (struct dryi_program){.memory = p->memory};
}
