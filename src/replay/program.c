/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"

/* While building, ghosts are numbered apart: they are sorted when all are known. */
#define GHOST_BIT UINT32_C(0x80000000)
#define REQUEST_COUNT_MAX UINT32_C(0x7fffffff)

/* Values of the streams that stand for "whatever else used the block". */
#define PENDING_STREAM_VALUE(slot) (UINT64_MAX - (slot))

struct build {
    struct dryi_program *p;
    const struct dryi_torch_conf *conf;
    const uint8_t *action; /* of the device's events */
    const uint64_t *addr, *size;
    const uint32_t *trace_lane;
    uint32_t event_count;

    struct dryi_map live;    /* address -> request */
    struct dryi_map pending; /* address -> stream index, of those with a free under way */
    uint32_t *lane_cache;    /* trace lane -> lane; NO_EVENT: look it up */
    size_t lane_cache_count;
    uint32_t *free_streams; /* pending streams that are done */
    size_t free_stream_capacity, free_stream_count;
    uint32_t pending_stream_count;
    const struct dry_trace_segment **private_segments; /* by address */
    size_t private_count;

    uint32_t *held; /* streams whose OP_STREAM_DONE waits for its place */
    size_t held_capacity, held_count;
    size_t settled; /* operations up to the last OOM, which waited for all streams */
    int64_t reserved;
    uint32_t burst_event; /* of segment_free and segment_unmap; NO_EVENT: none */
    int64_t burst_before;
    uint64_t burst_need;    /* the first growth after the burst */
    bool burst_has_default; /* it gives back memory of the default pools */
    uint32_t *burst_lanes;  /* of private pools it gives back memory of */
    size_t burst_lane_capacity, burst_lane_count;
    bool failed; /* no memory */
};

static bool
contradict(struct build *b, uint32_t event, const char *why)
{
    if (!b->p->inconsistency) {
        b->p->inconsistency = why;
        b->p->inconsistent_event = event;
    }
    return false;
}

static void
emit(struct build *b, enum op_kind kind, uint32_t arg, uint32_t event)
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

static int
compare_segments(const void *a, const void *b)
{
    const struct dry_trace_segment *const *x = a, *const *y = b;
    return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

static bool
is_private(const struct dry_trace_view *v, const struct dry_trace_segment *s)
{
    const struct dry_lane *lane = &v->lanes[s->lane];
    return lane->pool_a != 0 || lane->pool_b != 0;
}

/* Events of older files do not name their pool, but lie in a segment that does. */
static bool
find_private_segments(struct build *b)
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
    qsort(b->private_segments, count, sizeof *b->private_segments, compare_segments);
    return true;
}

static const struct dry_trace_segment *
private_segment_at(const struct build *b, uint64_t addr)
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

static uint32_t
intern_lane(struct build *b, uint64_t stream, struct dryi_pool_id pool)
{
    struct lane lane = {.stream = stream, .pool = pool};
    uint32_t id = dryi_intern_put(&b->p->lane_table, &lane, sizeof lane);
    b->failed |= id == DRYI_INTERN_NONE;
    return id;
}

static uint32_t
lane_of(struct build *b, uint32_t trace_lane, uint64_t addr)
{
    const struct dry_lane *lane = &b->p->view->lanes[trace_lane];
    if (!lane->pool_known && b->private_count > 0) {
        const struct dry_trace_segment *s = private_segment_at(b, addr);
        if (s) {
            const struct dry_lane *l = &b->p->view->lanes[s->lane];
            return intern_lane(b, lane->stream,
                               (struct dryi_pool_id){l->pool_a, l->pool_b});
        }
    }
    uint32_t *cached = &b->lane_cache[trace_lane];
    if (*cached == NO_EVENT)
        *cached = intern_lane(b, lane->stream,
                              (struct dryi_pool_id){lane->pool_a, lane->pool_b});
    return *cached;
}

static uint32_t
intern_stream(struct build *b, uint64_t value)
{
    uint32_t id = dryi_intern_put(&b->p->streams, &value, sizeof value);
    b->failed |= id == DRYI_INTERN_NONE;
    return id;
}

static uint32_t
take_pending_stream(struct build *b)
{
    if (b->free_stream_count > 0)
        return b->free_streams[--b->free_stream_count];
    return intern_stream(b, PENDING_STREAM_VALUE(b->pending_stream_count++));
}

static void
return_pending_stream(struct build *b, uint32_t stream)
{
    if (dryi_memory_grow(&b->p->memory, &b->free_streams, &b->free_stream_capacity,
                         b->free_stream_count + 1, sizeof *b->free_streams))
        b->free_streams[b->free_stream_count++] = stream;
    else
        b->failed = true;
}

/* --- requests and ghosts ------------------------------------------------------------------ */

static uint32_t
add_request(struct build *b, uint64_t size, uint32_t lane, uint32_t event)
{
    struct dryi_program *p = b->p;
    const struct dry_memory *m = &p->memory;
    size_t count = p->request_count + 1;
    if (count > REQUEST_COUNT_MAX ||
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

static struct ghost *
add_ghost(struct build *b, uint64_t addr, uint64_t requested, uint32_t lane)
{
    struct dryi_program *p = b->p;
    if (p->ghost_count >= REQUEST_COUNT_MAX ||
        !dryi_memory_grow(&p->memory, &p->ghosts, &p->ghost_capacity, p->ghost_count + 1,
                          sizeof *p->ghosts)) {
        b->failed = true;
        return NULL;
    }
    struct ghost *ghost = &p->ghosts[p->ghost_count];
    *ghost = (struct ghost){
        .addr = addr,
        .requested = requested,
        .lane = lane,
        .free_event = NO_EVENT,
        .order = (uint32_t)p->ghost_count++,
        .pending_stream = NO_STREAM,
    };
    return ghost;
}

static void
hold_stream(struct build *b, uint32_t stream)
{
    if (dryi_memory_grow(&b->p->memory, &b->held, &b->held_capacity, b->held_count + 1,
                         sizeof *b->held))
        b->held[b->held_count++] = stream;
    else
        b->failed = true;
}

/*
 * Streams that were done right before a burst were waited for by whoever caused it: take
 * them off the end of the program, to be put back behind him.
 */
static void
hold_done_streams(struct build *b)
{
    struct dryi_program *p = b->p;
    size_t first = p->op_count;
    while (first > b->settled && p->kinds[first - 1] == OP_STREAM_DONE)
        first--;
    for (size_t i = first; i < p->op_count; i++)
        hold_stream(b, p->args[i]);
    p->op_count = first;
}

static void
put_back_done_streams(struct build *b, uint32_t event)
{
    for (size_t i = 0; i < b->held_count; i++)
        emit(b, OP_STREAM_DONE, b->held[i], event);
    b->held_count = 0;
}

/* --- bursts of segment_free --------------------------------------------------------------- */

static uint32_t
add_limit(struct build *b, struct limit limit)
{
    struct dryi_program *p = b->p;
    if (!dryi_memory_grow(&p->memory, &p->limits, &p->limit_capacity,
                          (size_t)p->limit_count + 1, sizeof *p->limits)) {
        b->failed = true;
        return 0;
    }
    p->limits[p->limit_count] = limit;
    return p->limit_count++;
}

/*
 * The free right before a ladder may have waited for a stream, too, and have been waited
 * for by the ladder: the record shows both its events in a row either way. Taking it so is
 * safe, because the ladder's request missed the cache without it or with it. Not with
 * max_split_size: there the first rung may give back that very block, and waits for nobody.
 */
static void
hold_last_free(struct build *b)
{
    struct dryi_program *p = b->p;
    if (p->op_count == b->settled || p->kinds[p->op_count - 1] != OP_FREE ||
        b->conf->max_split_size != UINT64_MAX)
        return;
    uint32_t request = p->args[p->op_count - 1], event = p->events[p->op_count - 1];
    uint32_t stream = take_pending_stream(b);
    p->op_count--;
    emit(b, OP_STREAM, stream, event);
    emit(b, OP_RECORD_STREAM, request, event);
    emit(b, OP_FREE, request, event);
    hold_stream(b, stream);
    return_pending_stream(b, stream);
}

/* With max_split_size, a request may have oversize segments of its own pool given back. */
static bool
is_of_own_pool(struct build *b, uint32_t alloc_event)
{
    if (b->conf->max_split_size == UINT64_MAX || b->burst_has_default ||
        b->burst_lane_count != 1)
        return false;
    return b->burst_lanes[0] ==
           lane_of(b, b->trace_lane[alloc_event], b->addr[alloc_event]);
}

/* What a request asks the device for, at most. */
static uint64_t
need_of(const struct build *b, uint64_t size)
{
    if (size >= DEVICE_BYTES_MAX)
        return DEVICE_BYTES_MAX;
    return dryi_torch_segment_size(b->conf, dryi_torch_round_size(b->conf, size));
}

/* What was asked for in vain is bounded: pages may have been mapped in smaller helpings. */
static void
emit_device_full(struct build *b, uint32_t alloc_event)
{
    uint64_t asked = need_of(b, b->size[alloc_event]);
    struct limit limit = {.before = b->burst_before,
                          .after = b->reserved,
                          .need = asked > b->burst_need ? asked : b->burst_need,
                          .free_bytes = UINT64_MAX,
                          .event = alloc_event};
    emit(b, OP_DEVICE_FULL, add_limit(b, limit), b->burst_event);
}

/*
 * The burst is over. If it made room for `event`'s segment it may have been a retry: whether
 * the device was full is known only when its highest mark is (settle_bursts).
 */
static void
end_burst(struct build *b, uint32_t event, bool is_alloc)
{
    if (b->burst_event == NO_EVENT)
        return;
    bool is_own = is_alloc && is_of_own_pool(b, event);
    bool is_ladder = is_alloc && b->burst_need > 0 && (b->burst_has_default || is_own);
    if (is_ladder)
        hold_last_free(b);
    for (size_t i = 0; i < b->burst_lane_count && !is_own; i++)
        emit(b, OP_POOL_RELEASE, b->burst_lanes[i], b->burst_event);
    if (is_ladder) /* waits for the streams: they are put back behind its alloc */
        emit_device_full(b, event);
    else if (b->burst_has_default)
        emit(b, OP_EMPTY_CACHE, 0, b->burst_event);
    for (size_t i = 0; i < b->burst_lane_count && !is_ladder && !b->burst_has_default;
         i++)
        emit(b, OP_EMPTY_POOL, b->burst_lanes[i], b->burst_event);
    if (!is_ladder)
        put_back_done_streams(b, event);
    b->burst_event = NO_EVENT;
}

static void
settle_bursts(struct dryi_program *p)
{
    for (size_t i = 0; i < p->op_count; i++) {
        if (p->kinds[i] == OP_DEVICE_FULL) {
            const struct limit *limit = &p->limits[p->args[i]];
            if (limit->free_bytes == UINT64_MAX &&
                limit->before + (int64_t)limit->need <= p->reserved_peak)
                p->kinds[i] = OP_EMPTY_CACHE;
            else
                p->retry_count += limit->free_bytes == UINT64_MAX;
        }
        p->empty_cache_count += p->kinds[i] == OP_EMPTY_CACHE;
    }
}

/* Memory of a private pool goes back to the device only when nobody uses the pool. */
static void
note_burst_pool(struct build *b, uint32_t i)
{
    uint32_t lane = lane_of(b, b->trace_lane[i], b->addr[i]);
    if (b->failed)
        return;
    const struct lane *l = dryi_program_lane(b->p, lane);
    if (l->pool.a == 0 && l->pool.b == 0) {
        b->burst_has_default = true;
        return;
    }
    if (b->burst_lane_count > 0 && b->burst_lanes[b->burst_lane_count - 1] == lane)
        return;
    if (!dryi_memory_grow(&b->p->memory, &b->burst_lanes, &b->burst_lane_capacity,
                          b->burst_lane_count + 1, sizeof *b->burst_lanes)) {
        b->failed = true;
        return;
    }
    b->burst_lanes[b->burst_lane_count++] = lane;
}

static void
on_segment_event(struct build *b, uint32_t i)
{
    struct dryi_program *p = b->p;
    bool grows = b->action[i] == DRY_ACTION_SEGMENT_ALLOC ||
                 b->action[i] == DRY_ACTION_SEGMENT_MAP;
    if (b->size[i] > DEVICE_BYTES_MAX) {
        contradict(b, i, "a segment is larger than any device");
        return;
    }
    if (!dryi_memory_grow(&p->memory, &p->segment_events, &p->segment_event_capacity,
                          p->segment_event_count + 1, sizeof *p->segment_events)) {
        b->failed = true;
        return;
    }
    p->segment_events[p->segment_event_count++] = i;
    if (grows && b->burst_event != NO_EVENT && b->burst_need == 0)
        b->burst_need = b->size[i];
    if (!grows && b->burst_event == NO_EVENT) {
        hold_done_streams(b);
        b->burst_event = i;
        b->burst_before = b->reserved;
        b->burst_need = 0;
        b->burst_lane_count = 0;
        b->burst_has_default = false;
    }
    if (!grows)
        note_burst_pool(b, i);
    int64_t reserved = b->reserved + (grows ? 1 : -1) * (int64_t)b->size[i];
    if (reserved > (int64_t)DEVICE_BYTES_MAX || reserved < -(int64_t)DEVICE_BYTES_MAX) {
        contradict(b, i, "segments add up to more than any device");
        return;
    }
    b->reserved = reserved;
    if (b->reserved > p->reserved_peak)
        p->reserved_peak = b->reserved;
}

/* --- the events --------------------------------------------------------------------------- */

static void
on_alloc(struct build *b, uint32_t i)
{
    end_burst(b, i, true);
    if (b->p->has_addresses && b->size[i] > DEVICE_BYTES_MAX)
        contradict(b, i, "an allocation is negative or larger than any device");
    if (dryi_map_find(&b->live, b->addr[i])) {
        contradict(b, i, "an address is handed out that is still in use");
        return;
    }
    uint32_t lane = lane_of(b, b->trace_lane[i], b->addr[i]);
    uint32_t request = add_request(b, b->size[i], lane, i);
    b->failed |= !dryi_map_put(&b->live, b->addr[i], request);
    emit(b, OP_ALLOC, request, i);
    put_back_done_streams(b, i);
}

static void
on_live(struct build *b, uint32_t i)
{
    uint32_t lane = lane_of(b, b->trace_lane[i], b->addr[i]);
    struct ghost *ghost = add_ghost(b, b->addr[i], b->size[i], lane);
    if (ghost)
        b->failed |= !dryi_map_put(&b->live, b->addr[i], GHOST_BIT | ghost->order);
}

/* The request that lives at this event's address; a ghost is made if there is none. */
static uint32_t
find_request(struct build *b, uint32_t i)
{
    const uint32_t *known = dryi_map_find(&b->live, b->addr[i]);
    if (known)
        return *known;
    uint32_t lane = lane_of(b, b->trace_lane[i], b->addr[i]);
    struct ghost *ghost = add_ghost(b, b->addr[i], b->size[i], lane);
    if (!ghost || !dryi_map_put(&b->live, b->addr[i], GHOST_BIT | ghost->order)) {
        b->failed = true;
        return 0;
    }
    return GHOST_BIT | ghost->order;
}

static void
note_ghost_free(struct build *b, uint32_t request, uint32_t i)
{
    if (request & GHOST_BIT)
        b->p->ghosts[request & ~GHOST_BIT].free_event = i;
}

static void
emit_pending_free(struct build *b, uint32_t request, uint64_t addr, uint32_t event)
{
    uint32_t stream = take_pending_stream(b);
    emit(b, OP_STREAM, stream, event);
    emit(b, OP_RECORD_STREAM, request, event);
    emit(b, OP_FREE, request, event);
    b->failed |= !dryi_map_put(&b->pending, addr, stream);
    b->p->pending_count++;
}

/* Returns whether the next event, its completion, is dealt with too. */
static bool
on_free_requested(struct build *b, uint32_t i)
{
    end_burst(b, i, false);
    if (dryi_map_find(&b->pending, b->addr[i]))
        return contradict(b, i, "a block is given back twice");
    uint32_t request = find_request(b, i);
    if (b->failed)
        return false;
    note_ghost_free(b, request, i);
    bool completes = i + 1 < b->event_count &&
                     b->action[i + 1] == DRY_ACTION_FREE_COMPLETED &&
                     b->addr[i + 1] == b->addr[i];
    if (b->p->has_addresses && !completes) {
        emit_pending_free(b, request, b->addr[i], i);
        return false;
    }
    emit(b, OP_FREE, request, i);
    dryi_map_take(&b->live, b->addr[i]);
    return completes;
}

static void
on_free_completed(struct build *b, uint32_t i)
{
    const uint32_t *pending = dryi_map_find(&b->pending, b->addr[i]);
    if (pending) {
        uint32_t stream = *pending;
        if (b->burst_event != NO_EVENT)
            hold_stream(b, stream); /* between two helpings of a ladder */
        else
            emit(b, OP_STREAM_DONE, stream, i);
        dryi_map_take(&b->pending, b->addr[i]);
        dryi_map_take(&b->live, b->addr[i]);
        return_pending_stream(b, stream);
        return;
    }
    bool is_known = dryi_map_find(&b->live, b->addr[i]) != NULL;
    uint32_t request = find_request(b, i);
    if (b->failed)
        return;
    note_ghost_free(b, request, i);
    if (is_known) { /* free_requested was not recorded (skip_actions) */
        end_burst(b, i, false);
        emit(b, OP_FREE, request, i);
    } else { /* requested before the window, so it waits from its beginning */
        uint32_t stream = intern_stream(b, PENDING_STREAM_VALUE(b->pending_stream_count));
        b->pending_stream_count++;
        b->p->ghosts[request & ~GHOST_BIT].pending_stream = stream;
        b->p->pending_count++;
        emit(b, OP_STREAM_DONE, stream, i);
    }
    dryi_map_take(&b->live, b->addr[i]);
}

static void
on_oom(struct build *b, uint32_t i)
{
    struct dryi_program *p = b->p;
    uint64_t need = need_of(b, b->size[i]);
    if (b->burst_event == NO_EVENT)
        hold_done_streams(b);
    struct limit limit = {.before =
                              b->burst_event != NO_EVENT ? b->burst_before : b->reserved,
                          .after = b->reserved,
                          .need = need,
                          .free_bytes = b->addr[i] < need ? b->addr[i] : need - 1,
                          .event = i};
    hold_last_free(b);
    for (size_t j = 0; b->burst_event != NO_EVENT && j < b->burst_lane_count; j++)
        emit(b, OP_POOL_RELEASE, b->burst_lanes[j], b->burst_event);
    emit(b, OP_DEVICE_FULL, add_limit(b, limit),
         b->burst_event != NO_EVENT ? b->burst_event : i);
    b->burst_event = NO_EVENT;
    uint32_t lane = lane_of(b, b->trace_lane[i], 0);
    uint32_t request = add_request(b, b->size[i], lane, i);
    emit(b, OP_OOM, request, i);
    emit(b, OP_FREE, request, i);
    put_back_done_streams(b, i);
    b->settled = p->op_count;
    if (p->oom_count++ == 0)
        p->oom_event = i;
}

static void
on_record_stream(struct build *b, uint32_t i)
{
    const uint32_t *request = dryi_map_find(&b->live, b->addr[i]);
    if (!request) {
        contradict(b, i, "a stream is recorded on a block that is not alive");
        return;
    }
    uint32_t used = *request;
    emit(b, OP_STREAM, intern_stream(b, b->p->view->lanes[b->trace_lane[i]].stream), i);
    emit(b, OP_RECORD_STREAM, used, i);
}

/* Returns the number of events dealt with. */
static uint32_t
on_event(struct build *b, uint32_t i)
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
        on_segment_event(b, i);
        return 1;
    case DRY_ACTION_OOM:
        on_oom(b, i);
        return 1;
    case DRY_ACTION_LIVE:
        on_live(b, i);
        return 1;
    case DRY_ACTION_RECORD_STREAM:
        on_record_stream(b, i);
        return 1;
    case DRY_ACTION_STREAM_END:
        emit(b, OP_STREAM_DONE,
             intern_stream(b, b->p->view->lanes[b->trace_lane[i]].stream), i);
        return 1;
    case DRY_ACTION_EMPTY_CACHE:
        emit(b, OP_EMPTY_CACHE, 0, i);
        return 1;
    case DRY_ACTION_POOL_BEGIN:
        emit(b, OP_POOL_BEGIN, lane_of(b, b->trace_lane[i], 0), i);
        return 1;
    case DRY_ACTION_POOL_END:
        emit(b, OP_POOL_END, lane_of(b, b->trace_lane[i], 0), i);
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

/* What the final layout knows of an active block that the events do not. */
static void
on_final_block(struct build *b, const struct dry_trace_segment *s,
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
        intern_lane(b, l->stream, (struct dryi_pool_id){l->pool_a, l->pool_b});
    /* Files without requested_size: the block's own will do. */
    uint64_t requested = block->requested_size ? block->requested_size : block->size;
    struct ghost *ghost = add_ghost(b, block->address, requested, lane);
    if (!ghost)
        return;
    ghost->block_size = block->size;
    if (is_pending) {
        ghost->pending_stream =
            intern_stream(b, PENDING_STREAM_VALUE(b->pending_stream_count));
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

/* What lives after the last event but not in the final layout was freed in between. */
static bool
free_the_vanished(struct build *b)
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
        note_ghost_free(b, gone[i], b->event_count);
        emit(b, OP_FREE, gone[i], b->event_count);
    }
    b->p->frees_inferred += count;
    dryi_memory_free(&b->p->memory, gone, capacity, sizeof *gone);
    return true;
}

static bool
read_final_layout(struct build *b)
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
compare_ghosts(const void *a, const void *b)
{
    const struct ghost *x = a, *y = b;
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

/* Make room for the ghosts in front of the requests of the window. */
static bool
shift_requests(struct dryi_program *p)
{
    size_t g = p->ghost_count, n = p->request_count;
    const struct dry_memory *m = &p->memory;
    if (g + n > REQUEST_COUNT_MAX || g + n == 0)
        return g + n == 0;
    if (!dryi_memory_grow(m, &p->sizes, &p->size_capacity, g + n, 8) ||
        !dryi_memory_grow(m, &p->lanes, &p->lane_capacity, g + n, 4) ||
        !dryi_memory_grow(m, &p->alloc_events, &p->alloc_event_capacity, g + n, 4))
        return false;
    memmove(p->sizes + g, p->sizes, n * sizeof *p->sizes);
    memmove(p->lanes + g, p->lanes, n * sizeof *p->lanes);
    memmove(p->alloc_events + g, p->alloc_events, n * sizeof *p->alloc_events);
    for (size_t i = 0; i < g; i++) {
        p->sizes[i] = p->ghosts[i].requested;
        p->lanes[i] = p->ghosts[i].lane;
        p->alloc_events[i] = NO_EVENT;
    }
    p->request_count = g + n;
    return true;
}

/* Ghosts come first, by address; everybody learns the new numbers. */
static bool
number_requests(struct dryi_program *p)
{
    size_t g = p->ghost_count;
    uint32_t *rank = dryi_memory_zalloc(&p->memory, g + 1, sizeof *rank);
    if (!rank)
        return false;
    if (p->has_addresses && g > 0)
        qsort(p->ghosts, g, sizeof *p->ghosts, compare_ghosts);
    for (size_t i = 0; i < g; i++)
        rank[p->ghosts[i].order] = (uint32_t)i;
    for (size_t i = 0; i < p->op_count; i++) {
        if (!takes_request(p->kinds[i]))
            continue;
        if (p->args[i] & GHOST_BIT)
            p->args[i] = rank[p->args[i] & ~GHOST_BIT];
        else
            p->args[i] += (uint32_t)g;
    }
    dryi_memory_free(&p->memory, rank, g + 1, sizeof *rank);
    return shift_requests(p);
}

static bool
build(struct build *b)
{
    struct dryi_program *p = b->p;
    if (!find_private_segments(b))
        return false;
    for (uint32_t i = 0; i < b->event_count && !b->failed;)
        i += on_event(b, i);
    end_burst(b, b->event_count, false);
    p->reserved_end = b->reserved;
    if (b->failed)
        return false;
    settle_bursts(p);
    return read_final_layout(b) && !b->failed && number_requests(p);
}

static bool
build_init(struct build *b)
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
build_finish(struct build *b)
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
        .has_addresses = v->kind == DRY_TRACE_SNAPSHOT || v->kind == DRY_TRACE_BUILT,
        .oom_event = NO_EVENT,
    };
    if (device->event_count >= REQUEST_COUNT_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "%zu events on one device; the limit is %u",
                         device->event_count, REQUEST_COUNT_MAX);
    if (device->event_count > 0) {
        program->action = v->action + device->first_event;
        program->addr = v->addr + device->first_event;
        program->size = v->size + device->first_event;
        program->trace_lane = v->lane + device->first_event;
    }
    dryi_intern_init(&program->lane_table, &program->memory);
    dryi_intern_init(&program->streams, &program->memory);
    struct build b = {.p = program, .conf = conf};
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
    dryi_memory_free(m, p->ghosts, p->ghost_capacity, sizeof *p->ghosts);
    dryi_intern_finish(&p->lane_table);
    dryi_intern_finish(&p->streams);
    dryi_memory_free(m, p->limits, p->limit_capacity, sizeof *p->limits);
    dryi_memory_free(m, p->segment_events, p->segment_event_capacity,
                     sizeof *p->segment_events);
    *p = (struct dryi_program){.memory = p->memory};
}
