/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events and streams of the simulated device.
 *
 * Events are marks in a stream's order: a stream counts the recorded and the passed ones,
 * and an event is its number in that count. A stream that follows another stream's event
 * stores a note between two of its own events. A stream that passes the note also
 * advances the other stream. A work list of streams replaces recursion, and every note is
 * read once.
 *
 * With the checker on, an event stores its stream's clock. A stream that follows the
 * event joins this clock, and so does the program's knowledge when it waits for the event
 * or finds it passed. Clocks omit what the program knows already, which keeps them short;
 * see sim_state.h.
 */
#include "device/sim/sim_state.h"

#include "base/assert.h"
#include "base/memory.h"

static void
finish_stream(struct dry_sim *sim, struct dryi_sim_stream *stream)
{
    dryi_memory_free(&sim->memory, stream->follows, stream->follow_capacity,
                     sizeof *stream->follows);
    dryi_sim_clock_finish(&stream->clock, &sim->memory);
}

void
dryi_sim_streams_finish(struct dry_sim *sim)
{
    for (size_t i = 0; i < sim->stream_count; i++)
        finish_stream(sim, &sim->streams[i]);
    for (size_t i = 0; i < sim->event_count; i++)
        dryi_sim_clock_finish(&sim->events[i].clock, &sim->memory);
    dryi_intern_finish(&sim->stream_ids);
    dryi_memory_free(&sim->memory, sim->streams, sim->stream_capacity,
                     sizeof *sim->streams);
    dryi_memory_free(&sim->memory, sim->events, sim->event_capacity, sizeof *sim->events);
}

bool
dryi_sim_put_stream(struct dry_sim *sim, uint64_t stream, uint32_t *index)
{
    size_t count = sim->stream_count;
    if (!dryi_memory_grow(&sim->memory, &sim->streams, &sim->stream_capacity, count + 1,
                          sizeof *sim->streams))
        return false;
    uint32_t found = dryi_intern_put(&sim->stream_ids, &stream, sizeof stream);
    if (found == DRYI_INTERN_NONE)
        return false;
    if (found == count) {
        sim->streams[count] = (struct dryi_sim_stream){.id = stream};
        sim->stream_count++;
    }
    *index = found;
    return true;
}

static void
know(struct dry_sim *sim, uint32_t stream, uint64_t tick)
{
    struct dryi_sim_stream *s = &sim->streams[stream];
    if (s->known < tick)
        s->known = tick;
}

/* Record that the program knows the stream's work up to this tick to be done, and with it
   all work in `clock`. */
static void
learn(struct dry_sim *sim, uint32_t stream, uint64_t tick,
      const struct dryi_sim_clock *clock)
{
    if (!sim->check || tick <= sim->streams[stream].known)
        return;
    know(sim, stream, tick);
    for (size_t i = 0; i < clock->count; i++)
        know(sim, clock->marks[i].stream, clock->marks[i].tick);
}

static void
drop_known(const struct dry_sim *sim, struct dryi_sim_clock *clock)
{
    size_t count = 0;
    for (size_t i = 0; i < clock->count; i++) {
        struct dryi_sim_mark mark = clock->marks[i];
        if (mark.tick > sim->streams[mark.stream].known)
            clock->marks[count++] = mark;
    }
    clock->count = count;
}

void
dryi_sim_know_all(struct dry_sim *sim)
{
    for (size_t i = 0; i < sim->stream_count; i++)
        sim->streams[i].known = ++sim->streams[i].tick;
}

bool
dryi_sim_is_before(const struct dry_sim *sim, uint32_t from, uint64_t tick, uint32_t to)
{
    return from == to || tick <= sim->streams[from].known ||
           tick <= dryi_sim_clock_get(&sim->streams[to].clock, from);
}

/* Add the stream to the work list, to advance to just before `limit`, an event or the
   end; see go(). */
static void
send(struct dry_sim *sim, uint32_t *way, uint32_t stream, uint64_t limit)
{
    struct dryi_sim_stream *s = &sim->streams[stream];
    if (s->is_on_way) {
        if (s->limit < limit)
            s->limit = limit;
        return;
    }
    if (limit <= s->passed)
        return;
    s->is_on_way = true;
    s->limit = limit;
    s->next_on_way = *way;
    *way = stream;
}

static void
pass(struct dry_sim *sim, uint32_t *way, struct dryi_sim_stream *s, uint64_t limit)
{
    while (s->follow_first < s->follow_count &&
           s->follows[s->follow_first].behind < limit) {
        const struct dryi_sim_follow *f = &s->follows[s->follow_first++];
        send(sim, way, f->stream, f->event);
    }
    uint64_t events = limit < s->recorded ? limit : s->recorded;
    if (s->passed < events)
        s->passed = events;
}

/* Let the stream pass the event `limit`, and all events that must come first. The number
   of recorded events plus one means its end, including notes after its last event. */
static void
go(struct dry_sim *sim, uint32_t stream, uint64_t limit)
{
    uint32_t way = UINT32_MAX;
    send(sim, &way, stream, limit);
    while (way != UINT32_MAX) {
        struct dryi_sim_stream *s = &sim->streams[way];
        way = s->next_on_way;
        s->is_on_way = false;
        pass(sim, &way, s, s->limit);
    }
}

void
dry_sim_complete_stream(struct dry_sim *sim, uint64_t stream)
{
    uint32_t index = dryi_intern_find(&sim->stream_ids, &stream, sizeof stream);
    if (index != DRYI_INTERN_NONE)
        go(sim, index, sim->streams[index].recorded + 1);
}

void
dry_sim_advance_stream(struct dry_sim *sim, uint64_t stream, uint64_t count)
{
    uint32_t index = dryi_intern_find(&sim->stream_ids, &stream, sizeof stream);
    if (index == DRYI_INTERN_NONE)
        return;
    const struct dryi_sim_stream *s = &sim->streams[index];
    uint64_t left = s->recorded - s->passed;
    go(sim, index, s->passed + (count < left ? count : left));
}

static bool
take_event_slot(struct dry_sim *sim, uint64_t *slot)
{
    if (sim->first_free != DRYI_SIM_NO_SLOT) {
        *slot = sim->first_free;
        return true;
    }
    if (!dryi_memory_grow(&sim->memory, &sim->events, &sim->event_capacity,
                          sim->event_count + 1, sizeof *sim->events))
        return false;
    *slot = sim->event_count++;
    sim->events[*slot] = (struct dryi_sim_event){.next_free = DRYI_SIM_NO_SLOT};
    sim->first_free = *slot;
    return true;
}

enum dry_status
dryi_sim_record(struct dry_sim *sim, uint64_t stream, uint64_t *event)
{
    uint32_t index;
    uint64_t slot;
    if (!dryi_sim_put_stream(sim, stream, &index) || !take_event_slot(sim, &slot))
        return DRY_ERR_MEMORY;
    struct dryi_sim_stream *s = &sim->streams[index];
    struct dryi_sim_event *e = &sim->events[slot];
    if (sim->check) {
        drop_known(sim, &s->clock);
        if (!dryi_sim_clock_copy(&e->clock, &sim->memory, &s->clock))
            return DRY_ERR_MEMORY;
    }
    sim->first_free = e->next_free;
    e->ordinal = ++s->recorded;
    e->tick = ++s->tick;
    e->stream = index;
    sim->account.events_live++;
    *event = slot;
    return DRY_OK;
}

static const struct dryi_sim_event *
find_event(const struct dry_sim *sim, uint64_t event)
{
    DRYI_ASSERT(event < sim->event_count);
    DRYI_ASSERT(sim->events[event].ordinal != 0);
    return &sim->events[event];
}

bool
dryi_sim_query(struct dry_sim *sim, uint64_t event)
{
    const struct dryi_sim_event *e = find_event(sim, event);
    bool is_done = e->ordinal <= sim->streams[e->stream].passed;
    if (is_done)
        learn(sim, e->stream, e->tick, &e->clock);
    return is_done;
}

/* Wait for the event: the simulated stream simply reaches it. */
void
dryi_sim_wait_event(struct dry_sim *sim, uint64_t event)
{
    const struct dryi_sim_event *e = find_event(sim, event);
    go(sim, e->stream, e->ordinal);
    learn(sim, e->stream, e->tick, &e->clock);
}

void
dryi_sim_wait_stream(struct dry_sim *sim, uint64_t stream)
{
    dry_sim_complete_stream(sim, stream);
    uint32_t index = dryi_intern_find(&sim->stream_ids, &stream, sizeof stream);
    if (index == DRYI_INTERN_NONE)
        return;
    struct dryi_sim_stream *s = &sim->streams[index];
    learn(sim, index, ++s->tick, &s->clock);
}

void
dryi_sim_destroy_event(struct dry_sim *sim, uint64_t event)
{
    find_event(sim, event);
    struct dryi_sim_event *e = &sim->events[event];
    e->ordinal = 0;
    e->clock.count = 0;
    e->next_free = sim->first_free;
    sim->first_free = event;
    sim->account.events_live--;
}

/* Drop notes that were read, or whose event has passed meanwhile. */
static void
drop_passed(const struct dry_sim *sim, struct dryi_sim_stream *s)
{
    size_t count = 0;
    for (size_t i = s->follow_first; i < s->follow_count; i++) {
        struct dryi_sim_follow f = s->follows[i];
        if (f.event > sim->streams[f.stream].passed)
            s->follows[count++] = f;
    }
    s->follow_first = 0;
    s->follow_count = count;
}

/* Make space for one more note. Half of the space is free afterwards, so that this is
   rarely called. */
static bool
reserve_follow(struct dry_sim *sim, struct dryi_sim_stream *s)
{
    if (s->follows) {
        if (s->follow_count < s->follow_capacity)
            return true;
        drop_passed(sim, s);
    }
    return dryi_memory_grow(&sim->memory, &s->follows, &s->follow_capacity,
                            2 * s->follow_count + 1, sizeof *s->follows);
}

static void
add_follow(struct dry_sim *sim, uint32_t stream, struct dryi_sim_follow follow)
{
    struct dryi_sim_stream *s = &sim->streams[stream];
    DRYI_ASSERT(s->follows && s->follow_count < s->follow_capacity);
    if (follow.stream == stream || follow.event <= sim->streams[follow.stream].passed)
        return;
    struct dryi_sim_follow *last =
        s->follow_count > s->follow_first ? &s->follows[s->follow_count - 1] : NULL;
    if (last && last->stream == follow.stream && last->event >= follow.event)
        return;
    if (last && last->stream == follow.stream && last->behind == follow.behind)
        last->event = follow.event;
    else
        s->follows[s->follow_count++] = follow;
}

/* Make the stream follow event number `event` of another, which has `tick` there and this
   clock. The stream's own tick in the clock is harmless. */
static enum dry_status
follow(struct dry_sim *sim, uint32_t stream, struct dryi_sim_follow what, uint64_t tick,
       const struct dryi_sim_clock *clock)
{
    struct dryi_sim_stream *s = &sim->streams[stream];
    if (!reserve_follow(sim, s))
        return DRY_ERR_MEMORY;
    if (sim->check && !dryi_sim_is_before(sim, what.stream, tick, stream)) {
        struct dryi_sim_mark mark = {.tick = tick, .stream = what.stream};
        drop_known(sim, &s->clock);
        if (!dryi_sim_clock_reserve(&s->clock, &sim->memory,
                                    s->clock.count + clock->count + 1) ||
            !dryi_sim_clock_join(&s->clock, &sim->memory, clock) ||
            !dryi_sim_clock_raise(&s->clock, &sim->memory, mark))
            return DRY_ERR_MEMORY;
    }
    what.behind = s->recorded;
    add_follow(sim, stream, what);
    return DRY_OK;
}

enum dry_status
dryi_sim_follow(struct dry_sim *sim, uint64_t stream, uint64_t event)
{
    uint32_t index;
    if (!dryi_sim_put_stream(sim, stream, &index))
        return DRY_ERR_MEMORY;
    const struct dryi_sim_event *e = find_event(sim, event);
    struct dryi_sim_follow what = {.event = e->ordinal, .stream = e->stream};
    return follow(sim, index, what, e->tick, &e->clock);
}

enum dry_status
dry_sim_stream_waits(struct dry_sim *sim, uint64_t stream, uint64_t on)
{
    uint32_t to, from;
    if (!dryi_sim_put_stream(sim, stream, &to) || !dryi_sim_put_stream(sim, on, &from))
        return DRY_ERR_MEMORY;
    if (to == from)
        return DRY_OK;
    struct dryi_sim_stream *other = &sim->streams[from];
    struct dryi_sim_follow what = {.event = other->recorded + 1, .stream = from};
    enum dry_status status = follow(sim, to, what, other->tick + 1, &other->clock);
    if (status != DRY_OK)
        return status;
    other->recorded++;
    other->tick++;
    return DRY_OK;
}
