/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams, epochs, events.
 *
 * A free block belongs to the epoch of its stream in which it was freed. An event ends an
 * epoch: when it has passed, everything freed in that epoch and before is complete, so one event
 * serves any number of frees, and as long as nobody but the stream itself wants the memory
 * there is none at all.
 */

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged_inside.h"

/* --- streams ------------------------------------------------------------------------------ */

bool
dryi_paged_is_captured(const struct dryi_paged *p, uint32_t stream)
{
    for (size_t i = 0; i < p->capture_count; i++) {
        if (dryi_stream_filter_covers(&p->captures[i], p->streams[stream].value))
            return true;
    }
    return false;
}

bool
dryi_paged_is_complete(const struct dryi_paged *p, const struct block *b)
{
    const struct free_list *s = p->lists[b->list];
    return s->kind != FREE_STREAM || b->epoch <= p->streams[s->stream].completed;
}

/* --- uses --------------------------------------------------------------------------------- */

static uint64_t
use_key(uint32_t block, uint32_t stream)
{
    return (uint64_t)block << 32 | stream;
}

static uint32_t
make_use(struct dryi_paged *p, uint32_t stream)
{
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

static void
drop_use(struct dryi_paged *p, uint32_t use)
{
    p->streams[p->uses[use].stream].uses--;
    p->uses[use].next = p->dead_use;
    p->dead_use = use;
}

enum dry_status
dryi_paged_record_stream(void *self, dryi_block block, uint64_t stream)
{
    struct dryi_paged *p = self;
    if (block == DRYI_NO_BLOCK)
        return DRY_OK;
    DRYI_ASSERT(block < p->block_count && p->blocks[block].state == BLOCK_USED);
    uint32_t own = p->lists[p->blocks[block].list]->stream;
    uint32_t index = dryi_paged_stream_index(p, stream);
    if (index == NONE)
        return DRY_ERR_MEMORY;
    if (index == own || dryi_map_find(&p->recorded, use_key(block, index)))
        return DRY_OK;
    uint32_t use = make_use(p, index);
    if (use == NONE)
        return DRY_ERR_MEMORY;
    if (!dryi_map_put(&p->recorded, use_key(block, index), use)) {
        drop_use(p, use);
        return DRY_ERR_MEMORY;
    }
    p->uses[use].block = block;
    p->uses[use].next = p->blocks[block].uses;
    p->blocks[block].uses = use;
    return DRY_OK;
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

/* To the end of the queue of its stream; its event ends the stream's epoch. */
static void
queue_use(struct dryi_paged *p, uint32_t use)
{
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
        p->busy[p->busy_count++] = u->stream; /* one place a stream was reserved */
    }
}

static enum dry_status
record_event(struct dryi_paged *p, uint32_t stream, uint64_t *event)
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
    if (dryi_paged_is_captured(p, stream))
        return DRY_ERR_UNSUPPORTED;
    uint32_t use = make_use(p, stream);
    if (use == NONE)
        return dryi_note_hindered(&p->hindered, DRY_ERR_MEMORY);
    enum dry_status status = record_event(p, stream, &p->uses[use].event);
    if (status == DRY_OK)
        queue_use(p, use);
    else
        drop_use(p, use);
    return dryi_note_hindered(&p->hindered, status);
}

enum dry_status
dryi_paged_mark_all(struct dryi_paged *p)
{
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

/* --- frees -------------------------------------------------------------------------------- */

/* Nobody uses it any more. */
static inline void
end_use(struct dryi_paged *p, const struct free_list *s, uint32_t block)
{
    struct block *b = &p->blocks[block];
    stat_sub(p, STAT_REQUESTED_BYTES, s->is_small, b->requested);
    dryi_paged_tell(p, DRY_ACTION_FREE_COMPLETED, block, b->addr, b->requested);
    b->uses = NONE;
    if (b->has_ticket)
        dryi_forecast_freed(p->forecast, b->bin_prev, b->epoch);
}

/* To the stream cache of its size, or merged and listed. */
static inline void
make_free(struct dryi_paged *p, struct free_list *s, uint32_t block)
{
    struct block *b = &p->blocks[block];
    b->has_ticket = false;
    if ((s->is_small || (p->is_shared && dryi_paged_cache_wants(s, b->size))) &&
        dryi_paged_cache_push(p, s, block, b->size)) {
        dryi_paged_cache_note(p, b->list);
        return;
    }
    b->address = ADDRESS_UNKNOWN;
    b->state = BLOCK_FREE;
    dryi_paged_block_coalesce(p, block);
}

/* No stream uses it any more. */
static void
complete(struct dryi_paged *p, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    struct free_list *s = p->lists[b->list];
    bool small = arena_is_small(s->arena);
    stat_sub(p, STAT_PENDING, small, 1);
    stat_sub(p, STAT_PENDING_BYTES, small, b->size);
    end_use(p, s, block);
    make_free(p, s,
              block); /* somebody may have waited for it, who is not its successor */
}

/* One event a recorded stream, all or none. */
DRYI_NOINLINE static enum dry_status
record_uses(struct dryi_paged *p, uint32_t first)
{
    for (uint32_t u = first; u != NONE; u = p->uses[u].next) {
        enum dry_status status = record_event(p, p->uses[u].stream, &p->uses[u].event);
        if (status == DRY_OK)
            continue;
        for (uint32_t done = first; done != u; done = p->uses[done].next)
            p->device.ops->event_destroy(p->device.self, p->uses[done].event);
        return status;
    }
    return DRY_OK;
}

/* The block is pending; its list of uses becomes a count of them. */
DRYI_NOINLINE static void
queue_uses(struct dryi_paged *p, uint32_t block)
{
    uint32_t use = p->blocks[block].uses, count = 0;
    while (use != NONE) {
        uint32_t next = p->uses[use].next;
        dryi_map_take(&p->recorded, use_key(block, p->uses[use].stream));
        queue_use(p, use);
        count++;
        use = next;
    }
    p->blocks[block].uses = count;
}

static void
hold(struct dryi_paged *p, uint32_t block)
{
    p->blocks[block].bin_next = NONE;
    if (p->first_held == NONE)
        p->first_held = block;
    else
        p->blocks[p->last_held].bin_next = block;
    p->last_held = block;
}

void
dryi_paged_release_held(struct dryi_paged *p)
{
    while (p->first_held != NONE && p->capture_count == 0) {
        uint32_t block = p->first_held;
        enum dry_status status = record_uses(p, p->blocks[block].uses);
        if (dryi_note_hindered(&p->hindered, status) != DRY_OK)
            return; /* the next request tries again */
        p->first_held = p->blocks[block].bin_next;
        queue_uses(p, block);
    }
}

/* The program has no use for it any more. */
static inline void
note_free(struct dryi_paged *p, const struct free_list *s, uint32_t block)
{
    struct block *b = &p->blocks[block];
    struct stream *stream = &p->streams[s->stream];
    b->epoch = stream->freed = stream->epoch;
    stat_sub(p, STAT_ALLOCATION, s->is_small, 1);
    stat_sub(p, STAT_ALLOCATED_BYTES, s->is_small, b->size);
    dryi_paged_tell(p, DRY_ACTION_FREE_REQUESTED, block, b->addr, b->requested);
}

/* Its stream, or one that uses it. */
static bool
is_of_capture(const struct dryi_paged *p, const struct free_list *s, uint32_t use)
{
    if (p->capture_count == 0 || dryi_paged_is_captured(p, s->stream))
        return p->capture_count > 0;
    while (use != NONE && !dryi_paged_is_captured(p, p->uses[use].stream))
        use = p->uses[use].next;
    return use != NONE;
}

/*
 * Other streams may still use it. Amid a capture that is held back which one of its streams has to
 * do with, or one that is gone, of which nobody is asked then.
 */
DRYI_NOINLINE static enum dry_status
free_recorded(struct dryi_paged *p, const struct free_list *s, uint32_t block)
{
    struct block *b = &p->blocks[block];
    bool is_held = is_of_capture(p, s, b->uses);
    enum dry_status status = is_held ? DRY_OK : record_uses(p, b->uses);
    if (status == DRY_ERR_UNSUPPORTED && p->capture_count > 0) {
        is_held = true;
        status = DRY_OK;
    }
    if (status == DRY_ERR_UNSUPPORTED) /* of a stream that is gone: nobody can tell */
        return DRY_ERR_SYSTEM;
    if (status != DRY_OK)
        return status;
    note_free(p, s, block);
    stat_add(p, STAT_PENDING, s->is_small, 1);
    stat_add(p, STAT_PENDING_BYTES, s->is_small, b->size);
    b->state = BLOCK_PENDING;
    b->address = ADDRESS_UNKNOWN;
    if (is_held)
        hold(p, block);
    else
        queue_uses(p, block);
    return DRY_OK;
}

DRYI_FLATTEN enum dry_status
dryi_paged_free_used(struct dryi_paged *p, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    struct free_list *s = p->lists[b->list];
    if (b->uses != NONE)
        return free_recorded(p, s, block);
    if (!s->is_small) { /* looked at soon, and far from here */
        prefetch_block(p, b->next);
        prefetch_block(p, b->prev);
    }
    bool may_wait = dryi_paged_may_park(p, s, b);
    note_free(p, s, block);
    end_use(p, s, block);
    if (may_wait)
        dryi_paged_park(p, block);
    else
        make_free(p, s, block);
    return DRY_OK;
}

enum dry_status
dryi_paged_free(void *self, dryi_block block)
{
    struct dryi_paged *p = self;
    if (block == DRYI_NO_BLOCK)
        return DRY_OK;
    DRYI_ASSERT(block < p->block_count && p->blocks[block].state == BLOCK_USED);
    return dryi_paged_free_used(p, block);
}

/* --- events ------------------------------------------------------------------------------- */

static void
finish_first_use(struct dryi_paged *p, uint32_t stream)
{
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
    drop_use(p, use);
    if (u.block == NONE)
        return;
    p->waiting_uses--;
    DRYI_ASSERT(p->blocks[u.block].uses > 0);
    if (--p->blocks[u.block].uses == 0)
        complete(p, u.block);
}

/* `most` of its events. */
static void
observe_some(struct dryi_paged *p, uint32_t stream, uint32_t most)
{
    const struct stream *s = &p->streams[stream];
    if (dryi_paged_is_captured(p, stream))
        return;
    while (most-- > 0 && s->first_use != NONE &&
           p->device.ops->event_query(p->device.self, p->uses[s->first_use].event)) {
        const struct use *u = &p->uses[s->first_use];
        if (u->block != NONE) /* else it was our own */
            dryi_paged_tell_forecast(p, stream, DRYI_HINT_ANYBODY, u->epoch);
        finish_first_use(p, stream);
    }
}

void
dryi_paged_observe(struct dryi_paged *p, uint32_t stream)
{
    observe_some(p, stream, UINT32_MAX);
}

enum dry_status
dryi_paged_wait(struct dryi_paged *p, uint32_t stream, uint64_t epoch)
{
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
    uint32_t use = *skipped == NONE ? p->oldest_use : p->uses[*skipped].newer;
    while (use != NONE && dryi_paged_is_captured(p, p->uses[use].stream)) {
        *skipped = use;
        use = p->uses[use].newer;
    }
    if (use == NONE)
        return false;
    return dryi_paged_wait(p, p->uses[use].stream, p->uses[use].epoch) == DRY_OK;
}

/* Streams without a queue leave the list here, not when their queue runs dry. */
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
    dryi_paged_release_held(p);
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
    p->progressed[p->progressed_count++] = *index; /* one place a stream was reserved */
}
