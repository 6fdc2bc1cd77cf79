/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams come and go, and nobody says when one is gone. A stream of which nothing is left, no
 * block in use, no event under way and nothing free that its uses may not be over of, is
 * forgotten, whether it is gone or not: its record, with its shelves, is the next new stream's.
 * If it was not gone it is a new stream itself when it comes back. Its epochs go on, so that what
 * others know of it stays true of whoever has the record then; what it knew itself is forgotten.
 */

#include "base/memory.h"
#include "place/paged_state.h"

/*
 * What one new stream costs at most. Mostly one look is enough, for each clears what keeps the
 * next one from its record; so many of them that records are not made faster than they are left.
 */
#define LOOK_MAX 256 /* records looked at, in turns */
#define GIVE_MAX 256 /* free blocks that go to everybody */
#define MARK_MAX 16  /* streams that get an event when nothing else helps */

/* What is left of that, and whether somebody wants an event. */
struct look {
    unsigned looks, gives;
    bool is_unmarked;
};

/* Its free blocks, all over, go to everybody: is it empty then? */
static bool
empty_shelf(struct dryi_paged *p, struct shelf *s, struct look *look)
{
    uint32_t everybody = p->arenas[s->arena].everybody;
    if (s->front_blocks > look->gives)
        return false;
    look->gives -= s->front_blocks;
    dryi_paged_flush_shelf(p, s);
    for (; look->gives > 0 && s->octaves != 0; look->gives--) {
        uint32_t block = s->heads[bin_at_least(s, 0)];
        dryi_paged_block_move(p, block, everybody, 0);
        dryi_paged_block_settle(p, block);
    }
    return s->block_count == 0;
}

/* Where it was asked for since the last look, or has a front, it will be asked for again. */
static bool
may_be_left(struct dryi_paged *p, uint32_t stream)
{
    struct stream *s = &p->streams[stream];
    bool was_asked = s->was_asked;
    s->was_asked = false;
    if (was_asked || stream == p->last_stream)
        return false;
    for (uint32_t at = s->shelves; at != NONE; at = p->shelves[at]->next_of_stream) {
        if (p->shelves[at]->is_kept)
            return false;
    }
    return true;
}

/* Is there nothing of it any more? */
static bool
is_over(struct dryi_paged *p, uint32_t stream, struct look *look)
{
    dryi_paged_observe(p, stream);
    const struct stream *s = &p->streams[stream];
    look->is_unmarked |= s->freed > s->marked;
    if (s->uses > 0 || s->freed > s->done)
        return false;
    bool is_empty = true;
    for (uint32_t at = s->shelves; at != NONE && is_empty;
         at = p->shelves[at]->next_of_stream)
        is_empty = empty_shelf(p, p->shelves[at], look);
    return is_empty;
}

/* The next of which nothing is left; NONE: not among those that were looked at. */
static uint32_t
find_left(struct dryi_paged *p, struct look *look)
{
    for (; look->looks > 0; look->looks--) {
        uint32_t stream = p->stream_turn = (p->stream_turn + 1) % p->stream_count;
        if (may_be_left(p, stream) && is_over(p, stream, look))
            return stream;
    }
    return NONE;
}

/* From the turn on. Several at once: of those that are gone the device is waited for. */
static void
mark_some(struct dryi_paged *p)
{
    uint32_t stream = p->stream_turn;
    for (unsigned i = 0; i < MARK_MAX; i++) {
        stream = (stream + 1) % p->stream_count;
        if (p->streams[stream].freed > p->streams[stream].marked)
            (void)dryi_paged_mark(p, stream); /* else it stays what it is */
    }
}

/* A record to be taken again; NONE: a new one is needed. Amid a capture nothing is asked. */
static uint32_t
take_record(struct dryi_paged *p)
{
    if (p->stream_count < p->streams_kept || p->capture_count > 0)
        return NONE;
    struct look look = {.looks = LOOK_MAX, .gives = GIVE_MAX};
    uint32_t stream = find_left(p, &look);
    if (stream == NONE && look.is_unmarked) {
        mark_some(p);
        look.looks = LOOK_MAX;
        stream = find_left(p, &look);
    }
    if (stream == NONE)
        return NONE;
    dryi_map_take(&p->stream_ids, p->streams[stream].value);
    dryi_paged_orders_forget(p, stream);
    return stream;
}

/* NONE: no memory. */
static uint32_t
make_record(struct dryi_paged *p)
{
    size_t count = (size_t)p->stream_count + 1;
    if (!dryi_memory_grow(&p->memory, &p->streams, &p->stream_capacity, count,
                          sizeof *p->streams) ||
        !dryi_memory_grow(&p->memory, &p->progressed, &p->progressed_capacity, count,
                          sizeof *p->progressed) ||
        !dryi_memory_grow(&p->memory, &p->busy, &p->busy_capacity, count,
                          sizeof *p->busy))
        return NONE;
    p->streams[p->stream_count] = (struct stream){
        .epoch = 1, .first_use = NONE, .last_use = NONE, .shelves = NONE, .orders = NONE};
    return p->stream_count;
}

static uint32_t
make_stream(struct dryi_paged *p, uint64_t value)
{
    /* Taken before anything of another one is forgotten; where it is put is said below. */
    if (!dryi_map_put(&p->stream_ids, value, NONE))
        return NONE;
    uint32_t stream = take_record(p);
    if (stream == NONE)
        stream = make_record(p);
    if (stream == NONE) {
        dryi_map_take(&p->stream_ids, value);
        return NONE;
    }
    p->stream_count += stream == p->stream_count;
    p->streams[stream].value = value;
    dryi_map_put(&p->stream_ids, value, stream); /* takes no memory, it is there */
    return stream;
}

bool
dryi_paged_has_stream(const void *self, uint64_t stream)
{
    const struct dryi_paged *p = self;
    return dryi_map_find(&p->stream_ids, stream) != NULL;
}

uint32_t
dryi_paged_stream_find(struct dryi_paged *p, uint64_t value)
{
    const uint32_t *known = dryi_map_find(&p->stream_ids, value);
    uint32_t stream = known ? *known : make_stream(p, value);
    if (stream == NONE)
        return NONE;
    p->streams[stream].was_asked = true;
    return p->last_stream = stream;
}
