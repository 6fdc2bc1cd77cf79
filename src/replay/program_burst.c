/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The build holds at most one open burst. The event that ends it decides its cause;
 * dryi_bursts_settle() corrects the decision when the window's peak is known. program.h has the
 * rules. Cost: O(1) per event, plus O(pools of the burst) at its end.
 */
#include "replay/program_burst.h"

#include "base/memory.h"

static uint32_t
add_limit(struct dryi_build *b, struct limit limit)
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
 * Assume that the retry waited for the free right before it. The free may have waited for a stream:
 * the record looks the same in both cases. The assumption is safe, because the request missed the
 * cache either way. It does not hold with max_split_size: the first step of a retry may then
 * release that very block without waiting.
 */
static void
hold_last_free(struct dryi_build *b)
{
    struct dryi_program *p = b->p;
    if (p->op_count == b->settled || p->kinds[p->op_count - 1] != OP_FREE ||
        b->conf->max_split_size != UINT64_MAX)
        return;
    uint32_t request = p->args[p->op_count - 1], event = p->events[p->op_count - 1];
    uint32_t stream = dryi_build_take_stream(b);
    p->op_count--;
    dryi_build_emit(b, OP_STREAM, stream, event);
    dryi_build_emit(b, OP_RECORD_STREAM, request, event);
    dryi_build_emit(b, OP_FREE, request, event);
    dryi_build_hold_stream(b, stream);
    dryi_build_return_stream(b, stream);
}

/* Return whether the burst freed oversize segments of the request's own pool, as a request
   may with max_split_size. */
static bool
is_of_own_pool(struct dryi_build *b, uint32_t alloc_event)
{
    if (b->conf->max_split_size == UINT64_MAX || b->burst_has_default ||
        b->burst_lane_count != 1)
        return false;
    return b->burst_lanes[0] ==
           dryi_build_lane(b, b->trace_lane[alloc_event], b->addr[alloc_event]);
}

/* Return an upper bound of the bytes that a request asks the device for. */
static uint64_t
get_need(const struct dryi_build *b, uint64_t size)
{
    if (size >= DEVICE_BYTES_MAX)
        return DEVICE_BYTES_MAX;
    return dryi_torch_segment_size(b->conf, dryi_torch_round_size(b->conf, size));
}

/* Note a full device. The requested bytes are an upper bound: expandable segments map
   pages in smaller steps. */
static void
emit_device_full(struct dryi_build *b, uint32_t alloc_event)
{
    uint64_t asked = get_need(b, b->size[alloc_event]);
    struct limit limit = {.before = b->burst_before,
                          .after = b->reserved,
                          .need = asked > b->burst_need ? asked : b->burst_need,
                          .free_bytes = UINT64_MAX,
                          .event = alloc_event};
    dryi_build_emit(b, OP_DEVICE_FULL, add_limit(b, limit), b->burst_event);
}

/* End the burst. If it made space for the segment of `event`, it may be a retry. Whether the device
   was full is only known with the window's peak (dryi_bursts_settle). */
void
dryi_burst_end(struct dryi_build *b, uint32_t event, bool is_alloc)
{
    if (b->burst_event == NO_EVENT)
        return;
    bool is_own = is_alloc && is_of_own_pool(b, event);
    bool is_ladder = is_alloc && b->burst_need > 0 && (b->burst_has_default || is_own);
    if (is_ladder)
        hold_last_free(b);
    for (size_t i = 0; i < b->burst_lane_count && !is_own; i++)
        dryi_build_emit(b, OP_POOL_RELEASE, b->burst_lanes[i], b->burst_event);
    if (is_ladder) /* a retry waits for the streams: their
                      OP_STREAM_DONE follows its alloc */
        emit_device_full(b, event);
    else if (b->burst_has_default)
        dryi_build_emit(b, OP_EMPTY_CACHE, 0, b->burst_event);
    for (size_t i = 0; i < b->burst_lane_count && !is_ladder && !b->burst_has_default;
         i++)
        dryi_build_emit(b, OP_EMPTY_POOL, b->burst_lanes[i], b->burst_event);
    if (!is_ladder)
        dryi_build_put_back(b, event);
    b->burst_event = NO_EVENT;
}

void
dryi_bursts_settle(struct dryi_program *p)
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

/* Note the pool of a freed segment. A private pool's memory is freed only when
   the pool has no users. */
static void
note_burst_pool(struct dryi_build *b, uint32_t i)
{
    uint32_t lane = dryi_build_lane(b, b->trace_lane[i], b->addr[i]);
    if (b->failed)
        return;
    if (!dryi_build_is_private(b, lane)) {
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

void
dryi_burst_segment(struct dryi_build *b, uint32_t i)
{
    struct dryi_program *p = b->p;
    bool grows = b->action[i] == DRY_ACTION_SEGMENT_ALLOC ||
                 b->action[i] == DRY_ACTION_SEGMENT_MAP;
    if (b->size[i] > DEVICE_BYTES_MAX) {
        dryi_build_contradict(b, i, "a segment is larger than any device");
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
        dryi_build_hold_done(b);
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
        dryi_build_contradict(b, i, "segments add up to more than any device");
        return;
    }
    b->reserved = reserved;
    if (b->reserved > p->reserved_peak)
        p->reserved_peak = b->reserved;
}

void
dryi_burst_oom(struct dryi_build *b, uint32_t i)
{
    struct dryi_program *p = b->p;
    uint64_t need = get_need(b, b->size[i]);
    if (b->burst_event == NO_EVENT)
        dryi_build_hold_done(b);
    struct limit limit = {.before =
                              b->burst_event != NO_EVENT ? b->burst_before : b->reserved,
                          .after = b->reserved,
                          .need = need,
                          .free_bytes = b->addr[i] < need ? b->addr[i] : need - 1,
                          .event = i};
    hold_last_free(b);
    for (size_t j = 0; b->burst_event != NO_EVENT && j < b->burst_lane_count; j++)
        dryi_build_emit(b, OP_POOL_RELEASE, b->burst_lanes[j], b->burst_event);
    dryi_build_emit(b, OP_DEVICE_FULL, add_limit(b, limit),
                    b->burst_event != NO_EVENT ? b->burst_event : i);
    b->burst_event = NO_EVENT;
    uint32_t lane = dryi_build_lane(b, b->trace_lane[i], 0);
    uint32_t request = dryi_build_add_request(b, b->size[i], lane, i);
    dryi_build_emit(b, OP_OOM, request, i);
    dryi_build_emit(b, OP_FREE, request, i);
    dryi_build_put_back(b, i);
    b->settled = p->op_count;
    if (p->oom_count++ == 0)
        p->oom_event = i;
}
