/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stream records. Streams come and go, and the place is not told when a stream ends. So a stream is
 * forgotten once it has no state left, whether it ended or not. Then no block is in use, no event
 * is pending, and all its free blocks are complete.
 *
 * The next new stream recycles the record with its free lists. A forgotten stream that comes back
 * counts as new. Epochs of a recycled record continue, so orderings that other streams have on it
 * stay true. The orderings of the forgotten stream itself are dropped.
 */

#include "place/paged/paged_stream.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_order.h"

/*
 * Bounds on the cost of one new stream. STREAM_VISITS_MAX: stream records visited, in turns. WORK_MAX: free
 * lists visited plus free blocks moved to the shared lists. Two records usually suffice, because a
 * visit also prepares the records that follow. WORK_MAX is twice the capacity of two caches, so a
 * new stream can clear more than any one stream leaves.
 */
#define WORK_MAX (4 * CACHE_MAX)
#define STREAM_VISITS_MAX 256
/* Streams without an event from which on one wait for the whole device pays. */
#define MARK_LEAST 128

/* The remaining budget of a search, and the number of visited streams that lack an event. */
struct search {
    uint32_t work, visits, unmarked;
};

static bool
spend(struct search *search, uint32_t work)
{
    bool is_there = search->work >= work;
    search->work -= is_there ? work : search->work;
    return is_there;
}

/*
 * Move the free blocks of a list to the shared list, within the budget. True: the list has no
 * blocks left. Requires that the uses of its free blocks are complete.
 */
static bool
empty_list(struct dryi_paged *p, struct free_list *s, struct search *search)
{
    DRYI_ASSERT_SLOW(s->kind == FREE_STREAM);
    uint32_t shared = p->arenas[s->arena].shared;
    if (s->block_count == 0 || !p->conf.reuse_passed)
        return s->block_count == 0;
    uint32_t before = s->stacked;
    dryi_paged_flush_some(p, s, search->work);
    (void)spend(search, before - s->stacked);
    while (s->octaves != 0 && spend(search, 1)) {
        uint32_t block = s->heads[bin_at_least(s, 0)];
        dryi_paged_block_move(p, block, shared, 0);
        dryi_paged_block_coalesce(p, block);
    }
    return s->block_count == 0;
}

/* May the record be recycled? Not if the stream had a request since the last visit or a cache. */
static bool
may_be_left(struct dryi_paged *p, uint32_t stream)
{
    struct stream *s = &p->streams[stream];
    bool was_asked = s->was_asked;
    s->was_asked = false;
    return !was_asked && !s->has_cache && stream != p->last_stream;
}

/* Does the stream lack only an event to show that its frees are complete? */
static bool
wants_event(const struct stream *s)
{
    return s->uses == 0 && s->freed > s->marked;
}

/* Does the stream have no state left? Empties the stream's lists as the budget allows. */
static bool
is_over(struct dryi_paged *p, uint32_t stream, struct search *search)
{
    dryi_paged_observe(p, stream);
    const struct stream *s = &p->streams[stream];
    search->unmarked += wants_event(s);
    if (s->uses > 0 || s->freed > s->completed)
        return false;
    for (uint32_t at = s->lists; at != NONE; at = p->lists[at]->next_of_stream) {
        if (!spend(search, 1) || !empty_list(p, p->lists[at], search))
            return false;
    }
    return true;
}

/* Return the next stream without state; NONE: none found within the budget. */
static uint32_t
find_left(struct dryi_paged *p, struct search *search)
{
    for (search->visits = STREAM_VISITS_MAX; search->visits > 0 && search->work > 0;
         search->visits--) {
        uint32_t stream = p->stream_turn = (p->stream_turn + 1) % p->stream_count;
        if (may_be_left(p, stream) && is_over(p, stream, search))
            return stream;
    }
    return NONE;
}

/* End the current epoch of a stream, as complete. Requires a preceding wait for the device. */
static void
end_epoch(struct stream *s)
{
    s->completed = s->marked = s->epoch++;
}

/*
 * Complete the frees of the streams just visited. A stream that has ended can record no event, and
 * the place cannot tell which have ended. So one wait_all, if the device has it, covers all these
 * streams. Otherwise an event is recorded on each that is not in use.
 */
static void
mark_left(struct dryi_paged *p)
{
    enum dry_status waited = DRY_ERR_UNSUPPORTED;
    if (p->device.ops->wait_all) {
        p->counters.driver_calls++;
        waited = p->device.ops->wait_all(p->device.self);
    }
    /* Also after a refused wait, so that it is not repeated at once. */
    p->next_mark = p->streams_made + MARK_LEAST;
    uint32_t stream = p->stream_turn;
    for (unsigned i = 0; i < STREAM_VISITS_MAX && i < p->stream_count; i++) {
        struct stream *s = &p->streams[stream];
        bool is_asked = s->was_asked || s->has_cache;
        if (wants_event(s) && waited == DRY_OK)
            end_epoch(s);
        else if (wants_event(s) && waited == DRY_ERR_UNSUPPORTED && !is_asked)
            (void)dryi_paged_mark(p, stream); /* on failure the stream is unchanged */
        stream = stream == 0 ? p->stream_count - 1 : stream - 1;
    }
    p->stream_turn = stream; /* find_left() visits these streams next */
}

/*
 * Return a recyclable stream record; NONE: none. During a capture no stream is queried, so no
 * record is recycled.
 */
static uint32_t
take_record(struct dryi_paged *p)
{
    if (p->stream_count < p->streams_kept || p->capture_count > 0)
        return NONE;
    struct search search = {.work = WORK_MAX};
    uint32_t stream = find_left(p, &search);
    if (stream == NONE && search.unmarked >= MARK_LEAST &&
        p->streams_made >= p->next_mark) {
        mark_left(p);
        stream = find_left(p, &search);
    }
    if (stream == NONE)
        return NONE;
    dryi_map_take(&p->stream_ids, p->streams[stream].value);
    dryi_paged_orders_forget(p, stream);
    return stream;
}

/*
 * Make a stream record, still uncounted; NONE: out of memory. Also reserves the stream's entries in
 * `progressed` and `busy`.
 */
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
        .epoch = 1, .first_use = NONE, .last_use = NONE, .lists = NONE, .orders = NONE};
    return p->stream_count;
}

static uint32_t
make_stream(struct dryi_paged *p, uint64_t value)
{
    /* Insert the key first: a failure must come before another stream is forgotten. */
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
    p->streams_made++;
    p->streams[stream].value = value;
    dryi_map_put(&p->stream_ids, value, stream); /* cannot fail: the key exists */
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
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    const uint32_t *known = dryi_map_find(&p->stream_ids, value);
    uint32_t stream = known ? *known : make_stream(p, value);
    if (stream == NONE)
        return NONE;
    p->streams[stream].was_asked = true;
    return p->last_stream = stream;
}

/* Let `to` inherit all orderings of `from`. False: out of memory. */
static bool
pass_on(struct dryi_paged *p, uint32_t from, uint32_t to)
{
    for (uint32_t at = p->streams[from].orders; at != NONE; at = p->orders[at].next) {
        uint32_t on = p->orders[at].on;
        uint64_t epoch = p->orders[at].epoch;
        if (on == to || epoch <= dryi_paged_known_epoch(p, to, on))
            continue;
        if (!dryi_paged_learn(p, to, on, epoch))
            return false;
        dryi_paged_tell_forecast(p, on, to, epoch);
    }
    return true;
}

/*
 * Note that the program made `stream` wait for `on`. The current epoch of `on` ends without an
 * event: the program's own wait orders `stream` after it.
 */
enum dry_status
dryi_paged_stream_waits(void *self, uint64_t stream, uint64_t on)
{
    struct dryi_paged *p = self;
    uint32_t to = dryi_paged_stream_index(p, stream);
    uint32_t from = dryi_paged_stream_index(p, on);
    if (to == NONE || from == NONE)
        return DRY_ERR_MEMORY;
    if (to == from)
        return DRY_OK;
    /* A wait during capture orders graph nodes, not work submitted before. */
    if (dryi_paged_is_captured(p, to) || dryi_paged_is_captured(p, from))
        return DRY_OK;
    if (!dryi_paged_learn(p, to, from, p->streams[from].epoch))
        return DRY_ERR_MEMORY;
    dryi_paged_tell_forecast(p, from, to, p->streams[from].epoch);
    p->streams[from].epoch++;
    return pass_on(p, from, to) ? DRY_OK : DRY_ERR_MEMORY;
}
