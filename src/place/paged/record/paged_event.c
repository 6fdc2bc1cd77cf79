/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams, epochs and events.
 *
 * Each free block has the epoch of its stream in which it was freed. An event ends an epoch. Once
 * an event completes, all blocks freed in that epoch or before are complete, so one event serves
 * any number of frees. No event is recorded while only the stream itself reuses the memory.
 */

#include "place/paged/record/paged_event.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/record/paged_order.h"

bool
dryi_paged_is_captured(const struct dryi_paged *p, uint32_t stream)
{
    DRYI_ASSERT_SLOW(stream < p->stream_count);
    for (size_t i = 0; i < p->capture_count; i++) {
        if (dryi_stream_filter_covers(&p->captures[i], p->streams[stream].value))
            return true;
    }
    return false;
}

bool
dryi_paged_is_complete(const struct dryi_paged *p, const struct block *b)
{
    DRYI_ASSERT_SLOW(b->list < p->list_count && p->lists[b->list]);
    const struct free_list *s = p->lists[b->list];
    return s->kind != FREE_STREAM || b->epoch <= p->streams[s->stream].completed;
}

bool
dryi_paged_is_usable(const struct dryi_paged *p, uint32_t list, const struct block *b)
{
    DRYI_ASSERT_SLOW(b->state == BLOCK_FREE);
    if (b->list == list)
        return true;
    const struct free_list *own = p->lists[list], *s = p->lists[b->list];
    if (s->kind != FREE_STREAM)
        return s->kind == FREE_SHARED;
    if (dryi_paged_is_complete(p, b) && p->conf.reuse_passed)
        return true;
    return own->kind == FREE_STREAM && p->conf.reuse_ordered &&
           b->epoch <= dryi_paged_known_epoch(p, own->stream, s->stream);
}

/* --- uses --------------------------------------------------------------------------- */

uint32_t
dryi_paged_use_make(struct dryi_paged *p, uint32_t stream)
{
    DRYI_ASSERT_SLOW(stream < p->stream_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    uint32_t use = p->dead_use;
    if (use != NONE)
        p->dead_use = p->uses[use].next;
    else if (dryi_memory_grow(&p->memory, &p->uses, &p->use_capacity,
                              (size_t)p->use_count + 1, sizeof *p->uses))
        use = p->use_count++;
    else
        return NONE;
    p->uses[use] = (struct use){.block = NONE, .stream = stream};
    p->streams[stream].uses++;
    return use;
}

void
dryi_paged_use_drop(struct dryi_paged *p, uint32_t use)
{
    DRYI_ASSERT_SLOW(use < p->use_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    p->streams[p->uses[use].stream].uses--;
    p->uses[use].next = p->dead_use;
    p->dead_use = use;
}

static void
link_newest(struct dryi_paged *p, uint32_t use)
{
    p->uses[use].older = p->newest_use;
    p->uses[use].newer = NONE;
    if (p->newest_use == NONE)
        p->oldest_use = use;
    else
        p->uses[p->newest_use].newer = use;
    p->newest_use = use;
}

static void
unlink_use(struct dryi_paged *p, const struct use *u)
{
    if (u->older == NONE)
        p->oldest_use = u->newer;
    else
        p->uses[u->older].newer = u->newer;
    if (u->newer == NONE)
        p->newest_use = u->older;
    else
        p->uses[u->newer].older = u->older;
}

void
dryi_paged_use_queue(struct dryi_paged *p, uint32_t use)
{
    DRYI_ASSERT_SLOW(use < p->use_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct use *u = &p->uses[use];
    struct stream *s = &p->streams[u->stream];
    u->next = NONE;
    link_newest(p, use);
    u->epoch = s->marked = s->epoch++;
    if (s->first_use == NONE)
        s->first_use = use;
    else
        p->uses[s->last_use].next = use;
    s->last_use = use;
    p->waiting_uses += u->block != NONE;
    if (!s->is_busy) {
        s->is_busy = true;
        p->busy[p->busy_count++] =
            u->stream; /* reserved by make_record() of paged_stream.c */
    }
}

enum dry_status
dryi_paged_event_record(struct dryi_paged *p, uint32_t stream, uint64_t *event)
{
    p->counters.driver_calls++;
    enum dry_status status =
        p->device.ops->event_record(p->device.self, p->streams[stream].value, event);
    p->counters.events_recorded += status == DRY_OK;
    return status;
}

enum dry_status
dryi_paged_mark(struct dryi_paged *p, uint32_t stream)
{
    DRYI_ASSERT_SLOW(stream < p->stream_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (dryi_paged_is_captured(p, stream))
        return DRY_ERR_UNSUPPORTED;
    uint32_t use = dryi_paged_use_make(p, stream);
    if (use == NONE)
        return dryi_note_hindered(&p->hindered, DRY_ERR_MEMORY);
    enum dry_status status = dryi_paged_event_record(p, stream, &p->uses[use].event);
    if (status == DRY_OK)
        dryi_paged_use_queue(p, use);
    else
        dryi_paged_use_drop(p, use);
    return dryi_note_hindered(&p->hindered, status);
}

enum dry_status
dryi_paged_mark_all(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    enum dry_status first = DRY_OK;
    for (uint32_t i = 0; i < p->stream_count; i++) {
        if (p->streams[i].freed <= p->streams[i].marked || dryi_paged_is_captured(p, i))
            continue;
        enum dry_status status = dryi_paged_mark(p, i);
        if (first == DRY_OK)
            first = status;
    }
    return first;
}

/* --- events ------------------------------------------------------------------------- */

static void
finish_first_use(struct dryi_paged *p, uint32_t stream)
{
    DRYI_ASSERT_SLOW(p->streams[stream].first_use != NONE);
    struct stream *s = &p->streams[stream];
    uint32_t use = s->first_use;
    struct use u = p->uses[use];
    s->first_use = u.next;
    if (u.next == NONE)
        s->last_use = NONE;
    if (s->completed < u.epoch)
        s->completed = u.epoch;
    unlink_use(p, &u);
    p->device.ops->event_destroy(p->device.self, u.event);
    dryi_paged_use_drop(p, use);
    if (u.block == NONE)
        return;
    p->waiting_uses--;
    DRYI_ASSERT(p->blocks[u.block].uses > 0);
    if (--p->blocks[u.block].uses == 0)
        p->completed(p, u.block);
}

/* Finish up to `most` complete events of a stream, oldest first. */
static void
observe_some(struct dryi_paged *p, uint32_t stream, uint32_t most)
{
    const struct stream *s = &p->streams[stream];
    if (dryi_paged_is_captured(p, stream))
        return;
    while (most-- > 0 && s->first_use != NONE &&
           p->device.ops->event_query(p->device.self, p->uses[s->first_use].event)) {
        const struct use *u = &p->uses[s->first_use];
        /* The program's cross-stream use, not an event of the allocator. */
        if (u->block != NONE)
            dryi_paged_tell_forecast(p, stream, DRYI_HINT_ANYBODY, u->epoch);
        finish_first_use(p, stream);
    }
}

void
dryi_paged_observe(struct dryi_paged *p, uint32_t stream)
{
    DRYI_ASSERT_SLOW(stream < p->stream_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    observe_some(p, stream, UINT32_MAX);
}

enum dry_status
dryi_paged_wait(struct dryi_paged *p, uint32_t stream, uint64_t epoch)
{
    DRYI_ASSERT_SLOW(epoch < p->streams[stream].epoch);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    const struct stream *s = &p->streams[stream];
    while (s->completed < epoch && s->first_use != NONE) {
        p->counters.driver_calls++;
        enum dry_status status =
            p->device.ops->event_wait(p->device.self, p->uses[s->first_use].event);
        if (dryi_note_hindered(&p->hindered, status) != DRY_OK)
            return status;
        finish_first_use(p, stream);
    }
    return DRY_OK;
}

bool
dryi_paged_wait_oldest(struct dryi_paged *p, uint32_t *skipped)
{
    DRYI_ASSERT_SLOW(*skipped == NONE || *skipped < p->use_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    uint32_t use = *skipped == NONE ? p->oldest_use : p->uses[*skipped].newer;
    while (use != NONE && dryi_paged_is_captured(p, p->uses[use].stream)) {
        *skipped = use;
        use = p->uses[use].newer;
    }
    if (use == NONE)
        return false;
    return dryi_paged_wait(p, p->uses[use].stream, p->uses[use].epoch) == DRY_OK;
}

/*
 * Query up to `most` events of `count` busy streams, in turns. Only this function removes a stream
 * from the busy array; elsewhere a stream without events stays in the array.
 */
static void
process_busy_streams(struct dryi_paged *p, uint32_t count, uint32_t most)
{
    if (count > p->busy_count)
        count = p->busy_count;
    for (uint32_t i = 0; i < count; i++) {
        if (p->busy_turn >= p->busy_count)
            p->busy_turn = 0;
        uint32_t stream = p->busy[p->busy_turn];
        observe_some(p, stream, most);
        struct stream *s = &p->streams[stream];
        s->is_busy = s->first_use != NONE;
        if (s->is_busy)
            p->busy_turn++;
        else
            p->busy[p->busy_turn] = p->busy[--p->busy_count];
    }
}

void
dryi_paged_process(struct dryi_paged *p, uint32_t count, uint32_t most)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (!p->progress_is_told) {
        process_busy_streams(p, count, most);
        return;
    }
    while (p->progressed_count > 0) {
        uint32_t stream = p->progressed[--p->progressed_count];
        p->streams[stream].may_be_complete = false;
        dryi_paged_observe(p, stream);
    }
}

void
dryi_paged_stream_progressed(void *self, uint64_t stream)
{
    struct dryi_paged *p = self;
    const uint32_t *index = dryi_map_find(&p->stream_ids, stream);
    if (!index || p->streams[*index].may_be_complete)
        return;
    p->streams[*index].may_be_complete = true;
    /* Dryi_paged_stream_ask() reserved space. */
    p->progressed[p->progressed_count++] = *index;
}
