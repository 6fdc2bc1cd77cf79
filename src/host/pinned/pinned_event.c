/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A freed block waits for one event in each stream that used it. Events of one stream
 * pass in order, so they are polled from the oldest on, up to the first that has not
 * passed. Streams do not wait for each other's events. A graph is a stream whose only
 * event is dry_pinned_release().
 *
 * All memory is allocated when a use is recorded; a free allocates none.
 *
 * Recording an event may block in the driver, so the lock is not held meanwhile. One
 * thread at a time records for a stream; it records another event for blocks that other
 * threads free meanwhile. Only a miss, a clear and a full check walk over all streams.
 */
#include <sched.h>

#include "base/assert.h"
#include "base/memory.h"
#include "host/pinned/pinned_count.h"
#include "host/pinned/pinned_event.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"

#define NONE DRYI_PINNED_NONE

void
dryi_pinned_streams_init(struct dry_pinned *p)
{
    struct dryi_pinned_streams *s = &p->streams;
    dryi_map_init(&s->by_handle, &p->memory);
    dryi_map_init(&s->by_graph, &p->memory);
    s->unused = s->unused_stream = s->due = s->first_waiting = s->last_waiting = NONE;
}

static void
return_events(struct dry_pinned *p, const struct dryi_pinned_stream *s)
{
    for (uint32_t u = s->first_batch; u != NONE; u = p->streams.uses[u].next_batch)
        p->pin.event_return(p->pin.self, p->streams.uses[u].event);
}

void
dryi_pinned_streams_finish(struct dry_pinned *p, bool is_child)
{
    struct dryi_pinned_streams *s = &p->streams;
    for (uint32_t i = 0; i < s->count && !is_child; i++)
        if (s->list[i].use_count)
            return_events(p, &s->list[i]);
    dryi_map_finish(&s->by_handle);
    dryi_map_finish(&s->by_graph);
    dryi_memory_free(&p->memory, s->list, s->capacity, sizeof *s->list);
    dryi_memory_free(&p->memory, s->uses, s->use_capacity, sizeof *s->uses);
}

/* --- recording ------------------------------------------------------------------------------ */

/* Find the stream's entry, or assign an unused one; NONE: no memory. */
static uint32_t
find_or_make_stream(struct dry_pinned *p, uint64_t handle, bool is_graph)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_streams *s = &p->streams;
    struct dryi_map *map = is_graph ? &s->by_graph : &s->by_handle;
    const uint32_t *known = dryi_map_find(map, handle);
    if (known)
        return *known;
    uint32_t at = s->unused_stream != NONE ? s->unused_stream : s->count;
    if (!dryi_memory_grow(&p->memory, (void **)&s->list, &s->capacity, (size_t)at + 1,
                          sizeof *s->list) ||
        !dryi_map_put(map, handle, at))
        return NONE;
    struct dryi_pinned_stream *stream = &s->list[at], old = {0};
    if (at == s->count) {
        s->count++;
    } else {
        old = *stream;
        s->unused_stream = old.next_unused;
    }
    *stream = (struct dryi_pinned_stream){
        .handle = handle,
        .first_batch = NONE,
        .last_batch = NONE,
        .open_first = NONE,
        .open_last = NONE,
        .closing_first = NONE,
        .is_graph = is_graph,
        .is_due = old.is_due, /* the entry is still in these lists */
        .next_due = old.next_due,
        .is_waiting = old.is_waiting,
        .next_waiting = old.next_waiting,
    };
    return at;
}

/* Remove a use; remove the stream's entry with its last use. */
static void
drop_use(struct dry_pinned *p, uint32_t use)
{
    struct dryi_pinned_streams *s = &p->streams;
    uint32_t at = s->uses[use].stream;
    struct dryi_pinned_stream *stream = &s->list[at];
    DRYI_ASSERT_SLOW(stream->use_count > 0);
    s->uses[use].next = s->unused;
    s->unused = use;
    if (--stream->use_count > 0)
        return;
    if (!stream->is_released)
        (void)dryi_map_take(stream->is_graph ? &s->by_graph : &s->by_handle,
                            stream->handle);
    stream->next_unused = s->unused_stream;
    s->unused_stream = at;
}

static bool
make_use(struct dry_pinned *p, uint32_t *use)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_streams *s = &p->streams;
    if (s->unused != NONE) {
        *use = s->unused;
        s->unused = s->uses[*use].next;
        return true;
    }
    if (!dryi_memory_grow(&p->memory, (void **)&s->uses, &s->use_capacity,
                          s->use_count + 1, sizeof *s->uses))
        return false;
    *use = s->use_count++;
    return true;
}

enum dry_status
dryi_pinned_use_add(struct dry_pinned *p, uint32_t block, uint64_t handle, bool is_graph)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_streams *s = &p->streams;
    struct dryi_pinned_cell *cell = dryi_pinned_cell(p, block);
    uint32_t use;
    for (use = cell->first_use; use != NONE; use = s->uses[use].next) {
        const struct dryi_pinned_stream *stream = &s->list[s->uses[use].stream];
        if (stream->handle == handle && stream->is_graph == is_graph &&
            !stream->is_released)
            return DRY_OK;
    }
    if (!make_use(p, &use))
        return DRY_ERR_MEMORY;
    uint32_t stream = find_or_make_stream(p, handle, is_graph);
    if (stream == NONE) {
        s->uses[use].next = s->unused;
        s->unused = use;
        return DRY_ERR_MEMORY;
    }
    s->list[stream].use_count++;
    s->uses[use] = (struct dryi_pinned_use){
        .block = block, .stream = stream, .next = cell->first_use, .next_batch = NONE};
    cell->first_use = use;
    uint32_t tag = dryi_pinned_tag(cell) | DRYI_PINNED_HAS_USES;
    atomic_store_explicit(&cell->tag, tag, memory_order_relaxed);
    return DRY_OK;
}

/* --- passing -------------------------------------------------------------------------------- */

static void
free_block(struct dry_pinned *p, uint32_t block)
{
    struct dryi_pinned_arena *a = dryi_pinned_arena_get(p, block);
    struct dryi_pinned_cell *cell = dryi_pinned_cell(p, block);
    uint64_t bytes = dryi_pinned_block_bytes(a, cell);
    DRYI_ASSERT_SLOW(p->stats.pending_bytes >= (int64_t)bytes);
    p->stats.pending_bytes -= (int64_t)bytes;
    dryi_pinned_count_free(p, bytes, bytes - cell->waste);
    dryi_pinned_heap_give(p, a, cell);
}

/* End the uses in a list; a block becomes free with its last use. */
static void
end_uses(struct dry_pinned *p, uint32_t first)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    for (uint32_t use = first, next; use != NONE; use = next) {
        next = p->streams.uses[use].next;
        uint32_t block = p->streams.uses[use].block;
        struct dryi_pinned_cell *cell = dryi_pinned_cell(p, block);
        DRYI_ASSERT(dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) ==
                    DRYI_PINNED_PENDING);
        DRYI_ASSERT(cell->uses_left > 0);
        drop_use(p, use);
        if (--cell->uses_left == 0)
            free_block(p, block);
    }
}

static void
end_batch(struct dry_pinned *p, struct dryi_pinned_stream *s)
{
    DRYI_ASSERT_SLOW(s->first_batch != NONE && p->streams.batch_count > 0);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    uint32_t first = s->first_batch;
    p->pin.event_return(p->pin.self, p->streams.uses[first].event);
    s->first_batch = p->streams.uses[first].next_batch;
    if (s->first_batch == NONE)
        s->last_batch = NONE;
    p->streams.batch_count--;
    end_uses(p, first);
}

/* --- closing -------------------------------------------------------------------------------- */

static void
push_due(struct dryi_pinned_streams *s, uint32_t at)
{
    struct dryi_pinned_stream *stream = &s->list[at];
    if (stream->is_due)
        return;
    stream->is_due = true;
    stream->next_due = s->due;
    s->due = at;
}

static void
push_waiting(struct dryi_pinned_streams *s, uint32_t at)
{
    struct dryi_pinned_stream *stream = &s->list[at];
    DRYI_ASSERT_SLOW(!stream->is_graph && stream->first_batch != NONE);
    DRYI_ASSERT_SLOW((s->last_waiting == NONE) == (s->waiting_count == 0));
    if (stream->is_waiting)
        return;
    stream->is_waiting = true;
    stream->next_waiting = NONE;
    if (s->last_waiting == NONE)
        s->first_waiting = at;
    else
        s->list[s->last_waiting].next_waiting = at;
    s->last_waiting = at;
    s->waiting_count++;
}

static uint32_t
pop_waiting(struct dryi_pinned_streams *s)
{
    uint32_t at = s->first_waiting;
    DRYI_ASSERT_SLOW(s->waiting_count > 0 && s->list[at].is_waiting);
    s->list[at].is_waiting = false;
    s->first_waiting = s->list[at].next_waiting;
    if (s->first_waiting == NONE)
        s->last_waiting = NONE;
    s->waiting_count--;
    return at;
}

static uint32_t
take_open(struct dryi_pinned_stream *s)
{
    DRYI_ASSERT_SLOW((s->open_first == NONE) == (s->open_count == 0));
    uint32_t first = s->open_first;
    s->open_first = s->open_last = NONE;
    s->open_count = 0;
    return first;
}

/*
 * Put back uses whose event failed to record, before those opened meanwhile. They are
 * retried when the stream gets more frees, or at a miss. Retrying at every free would be
 * wasteful: a broken stream fails every time.
 */
static void
reopen(struct dryi_pinned_streams *s, uint32_t at, uint32_t first, uint32_t last,
       uint32_t count)
{
    struct dryi_pinned_stream *stream = &s->list[at];
    DRYI_ASSERT_SLOW(!stream->is_closing && stream->use_count >= count);
    s->uses[last].next = stream->open_first;
    stream->open_first = first;
    if (stream->open_last == NONE)
        stream->open_last = last;
    stream->open_count += count;
}

static void
append_batch(struct dryi_pinned_streams *s, uint32_t at, uint32_t first, uint64_t event)
{
    struct dryi_pinned_stream *stream = &s->list[at];
    s->uses[first].event = event;
    s->uses[first].next_batch = NONE;
    if (stream->last_batch == NONE)
        stream->first_batch = first;
    else
        s->uses[stream->last_batch].next_batch = first;
    stream->last_batch = first;
    s->batch_count++;
    push_waiting(s, at);
}

/* Record an event for all uses opened since the last event; false: it failed. Releases
   the lock meanwhile. The entry persists, because its uses do, but may be reallocated. */
static bool
close_batch(struct dry_pinned *p, uint32_t at)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_streams *s = &p->streams;
    struct dryi_pinned_stream *stream = &s->list[at];
    DRYI_ASSERT_SLOW(!stream->is_closing && !stream->is_graph && stream->open_count > 0);
    uint32_t last = stream->open_last, count = stream->open_count;
    uint32_t first = take_open(stream);
    uint64_t handle = stream->handle, event = 0;
    stream->closing_first = first;
    stream->is_closing = true;
    dryi_lock_give(&p->lock);
    bool is_recorded = p->pin.event_record(p->pin.self, handle, &event, NULL) == DRY_OK;
    dryi_lock_take(&p->lock);
    stream = &s->list[at];
    DRYI_ASSERT_SLOW(stream->handle == handle && stream->use_count >= count);
    DRYI_ASSERT_SLOW(stream->is_closing && stream->closing_first == first);
    stream->is_closing = false;
    stream->closing_first = NONE;
    if (is_recorded) {
        p->stats.num_events++;
        append_batch(s, at, first, event);
    } else {
        p->stats.num_event_failures++;
        reopen(s, at, first, last, count);
    }
    return is_recorded;
}

/* --- freeing -------------------------------------------------------------------------------- */

static void
append_open(struct dry_pinned *p, uint32_t use)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    uint32_t at = p->streams.uses[use].stream;
    struct dryi_pinned_stream *s = &p->streams.list[at];
    p->streams.uses[use].next = NONE;
    if (s->open_last == NONE)
        s->open_first = use;
    else
        p->streams.uses[s->open_last].next = use;
    s->open_last = use;
    s->open_count++;
    if (!s->is_graph && s->open_count >= p->options.event_batch)
        push_due(&p->streams, at);
}

void
dryi_pinned_use_free(struct dry_pinned *p, uint32_t block)
{
    struct dryi_pinned_arena *a = dryi_pinned_arena_get(p, block);
    struct dryi_pinned_cell *cell = dryi_pinned_cell(p, block);
    uint32_t use = cell->first_use, over = NONE;
    DRYI_ASSERT_SLOW(use != NONE);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    dryi_pinned_set_tag(cell, DRYI_PINNED_PENDING, 0);
    p->stats.pending_bytes += (int64_t)dryi_pinned_block_bytes(a, cell);
    cell->uses_left = 0;
    for (uint32_t next; use != NONE; use = next) {
        next = p->streams.uses[use].next;
        cell->uses_left++;
        if (p->streams.list[p->streams.uses[use].stream].is_released) {
            p->streams.uses[use].next = over;
            over = use;
        } else {
            append_open(p, use);
        }
    }
    end_uses(p, over);
}

/* --- polling -------------------------------------------------------------------------------- */

static bool
can_close(const struct dryi_pinned_stream *s, uint32_t least)
{
    return s->use_count && !s->is_graph && !s->is_closing && s->open_count >= least;
}

/* Record until no batch is left, including uses that other threads add meanwhile and
   leave to this thread. */
static void
close_stream(struct dry_pinned *p, uint32_t at, uint32_t least)
{
    while (can_close(&p->streams.list[at], least) && close_batch(p, at))
        ;
}

void
dryi_pinned_events_record(struct dry_pinned *p, bool all)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_streams *s = &p->streams;
    uint32_t at = s->due, least = p->options.event_batch;
    s->due = NONE; /* streams added from here on belong to another thread, or to the next
                 call */
    for (uint32_t next; at != NONE; at = next) {
        next = s->list[at].next_due;
        s->list[at].is_due = false;
        close_stream(p, at, least);
    }
    for (uint32_t i = 0; all && i < s->count; i++)
        close_stream(p, i, 1);
}

/* Poll the events of one stream, oldest first. Returns the number of queries. */
static uint32_t
poll_stream(struct dry_pinned *p, struct dryi_pinned_stream *s, uint32_t budget)
{
    DRYI_ASSERT_SLOW(s->first_batch == NONE || !s->is_graph);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    uint32_t asked = 0;
    while (asked < budget && s->use_count && s->first_batch != NONE && !s->is_lost) {
        asked++;
        int is_done =
            p->pin.event_is_done(p->pin.self, p->streams.uses[s->first_batch].event);
        if (is_done == 0)
            break;
        if (is_done < 0)
            s->is_lost = true;
        else
            end_batch(p, s);
    }
    return asked;
}

bool
dryi_pinned_events_poll(struct dry_pinned *p, uint32_t budget)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_streams *s = &p->streams;
    s->frees = 0;
    for (uint32_t i = s->waiting_count; i && budget; i--) {
        uint32_t at = pop_waiting(s);
        struct dryi_pinned_stream *stream = &s->list[at];
        budget -= poll_stream(p, stream, budget);
        if (stream->use_count && stream->first_batch != NONE && !stream->is_lost)
            push_waiting(s, at);
    }
    return budget > 0;
}

/* Wait until no event of the stream is being recorded; NULL: it has no uses. Releases and
   takes the lock. */
static struct dryi_pinned_stream *
wait_until_recorded(struct dry_pinned *p, uint64_t handle)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    for (;;) {
        const uint32_t *at = dryi_map_find(&p->streams.by_handle, handle);
        struct dryi_pinned_stream *s = at ? &p->streams.list[*at] : NULL;
        if (!s || !s->is_closing)
            return s;
        dryi_lock_give(&p->lock);
        sched_yield();
        dryi_lock_take(&p->lock);
    }
}

void
dryi_pinned_stream_over(struct dry_pinned *p, uint64_t handle)
{
    struct dryi_pinned_stream *s = wait_until_recorded(p, handle);
    if (!s)
        return;
    DRYI_ASSERT_SLOW(s->handle == handle && !s->is_graph);
    s->is_lost = false;
    while (s->use_count && s->first_batch != NONE)
        end_batch(p, s);
    if (s->use_count)
        end_uses(p, take_open(s));
}

void
dryi_pinned_graph_over(struct dry_pinned *p, uint64_t handle)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    const uint32_t *at = dryi_map_find(&p->streams.by_graph, handle);
    if (!at)
        return;
    struct dryi_pinned_stream *s = &p->streams.list[*at];
    DRYI_ASSERT_SLOW(s->handle == handle && s->is_graph && !s->is_released);
    /* The program may reuse the graph's number. */
    (void)dryi_map_take(&p->streams.by_graph, handle);
    s->is_released = true;
    end_uses(p, take_open(s));
}
