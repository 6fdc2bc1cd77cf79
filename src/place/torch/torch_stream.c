/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frees, and the streams they wait for. A block that other streams use becomes reusable once the
 * events recorded on them at its free have completed.
 */

#include "place/torch/torch_stream.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/torch/torch_block.h"
#include "place/torch/torch_pool.h"

/* --- frees -------------------------------------------------------------------------------- */

static uint64_t
use_key(uint32_t block, uint32_t stream)
{
    return (uint64_t)block << 32 | stream;
}

enum dry_status
dryi_torch_record_stream(void *self, dryi_block block, uint64_t stream)
{
    struct dryi_torch *t = self;
    if (block == DRYI_NO_BLOCK)
        return DRY_OK;
    DRYI_ASSERT(block < t->block_count && t->blocks[block].allocated);
    struct block *b = &t->blocks[block];
    if (t->streams[b->stream].value == stream)
        return DRY_OK;
    uint32_t index = dryi_torch_stream_index(t, stream);
    if (index == NONE)
        return DRY_ERR_MEMORY;
    bool in_capture = dryi_torch_in_capture(t) || dryi_torch_is_captured(t, index);
    const uint32_t *known = dryi_map_find(&t->recorded, use_key(block, index));
    if (known) {
        t->uses[*known].in_capture |= in_capture;
        return DRY_OK;
    }
    uint32_t use = t->free_use != NONE ? t->free_use : t->use_count;
    if (!dryi_memory_grow(&t->memory, &t->uses, &t->use_capacity, (size_t)use + 1,
                          sizeof *t->uses) ||
        !dryi_map_put(&t->recorded, use_key(block, index), use))
        return DRY_ERR_MEMORY;
    if (use == t->free_use)
        t->free_use = t->uses[use].next;
    else
        t->use_count++;
    t->uses[use] = (struct stream_use){
        .block = block, .stream = index, .next = b->uses, .in_capture = in_capture};
    b->uses = use;
    return DRY_OK;
}

/* Record one event per recorded stream. On failure none remains. */
static enum dry_status
record_events(struct dryi_torch *t, const struct block *b)
{
    DRYI_ASSERT_SLOW(b->event_count == 0);
    for (uint32_t u = b->uses; u != NONE; u = t->uses[u].next) {
        enum dry_status status = dryi_torch_driver(t)->event_record(
            t->device.self, t->streams[t->uses[u].stream].value, &t->uses[u].event);
        t->events_recorded += status == DRY_OK;
        if (status == DRY_OK)
            continue;
        for (uint32_t done = b->uses; done != u; done = t->uses[done].next)
            dryi_torch_driver(t)->event_destroy(t->device.self, t->uses[done].event);
        return status;
    }
    return DRY_OK;
}

/* Move each use from the block's list to the end of its stream's queue. */
static void
queue_uses(struct dryi_torch *t, struct block *b)
{
    DRYI_ASSERT_SLOW(!b->allocated && b->event_count == 0 && b->uses != NONE);
    while (b->uses != NONE) {
        uint32_t use = b->uses;
        struct stream_use *u = &t->uses[use];
        struct stream *stream = &t->streams[u->stream];
        b->uses = u->next;
        dryi_map_take(&t->recorded, use_key(u->block, u->stream));
        b->event_count++;
        u->next = NONE;
        if (stream->queue_first == NONE)
            stream->queue_first = use;
        else
            t->uses[stream->queue_last].next = use;
        stream->queue_last = use;
        if (!stream->is_busy) {
            stream->is_busy = true;
            stream->next_busy = t->busy_streams;
            t->busy_streams = u->stream;
        }
    }
}

/*
 * Defer a free in a capture, where PyTorch records no events, until the first alloc outside. Uses
 * recorded inside count as complete then, as at the end of a real capture.
 */
static void
defer(struct dryi_torch *t, uint32_t block)
{
    DRYI_ASSERT_SLOW(!t->blocks[block].allocated && t->blocks[block].uses != NONE);
    t->blocks[block].next_deferred = NONE;
    if (t->deferred_first == NONE)
        t->deferred_first = block;
    else
        t->blocks[t->deferred_last].next_deferred = block;
    t->deferred_last = block;
}

static void
drop_uses_in_capture(struct dryi_torch *t, struct block *b)
{
    for (uint32_t *link = &b->uses; *link != NONE;) {
        uint32_t use = *link;
        if (!t->uses[use].in_capture) {
            link = &t->uses[use].next;
            continue;
        }
        *link = t->uses[use].next;
        dryi_map_take(&t->recorded, use_key(t->uses[use].block, t->uses[use].stream));
        t->uses[use].next = t->free_use;
        t->free_use = use;
    }
}

void
dryi_torch_settle_deferred(struct dryi_torch *t)
{
    while (t->deferred_first != NONE && t->capture_count == 0) {
        uint32_t block = t->deferred_first;
        struct block *b = &t->blocks[block];
        DRYI_ASSERT_SLOW(b->live && !b->allocated && b->event_count == 0);
        drop_uses_in_capture(t, b);
        if (dryi_note_hindered(&t->hindered, record_events(t, b)) != DRY_OK)
            return;
        t->deferred_first = b->next_deferred;
        if (b->uses == NONE)
            dryi_torch_block_free(t, block);
        else
            queue_uses(t, b);
    }
}

/* Is the block's own stream captured, or one that uses it? Then no event may be recorded. */
static bool
waits_for_capture(const struct dryi_torch *t, const struct block *b)
{
    if (dryi_torch_in_capture(t))
        return true;
    if (t->capture_count == 0)
        return false;
    bool is_captured = dryi_torch_is_captured(t, b->stream);
    for (uint32_t u = b->uses; u != NONE && !is_captured; u = t->uses[u].next)
        is_captured = dryi_torch_is_captured(t, t->uses[u].stream);
    return is_captured;
}

enum dry_status
dryi_torch_free(void *self, dryi_block block)
{
    struct dryi_torch *t = self;
    if (block == DRYI_NO_BLOCK)
        return DRY_OK;
    DRYI_ASSERT(block < t->block_count && t->blocks[block].allocated);
    struct block *b = &t->blocks[block];
    bool deferred = b->uses != NONE && waits_for_capture(t, b);
    enum dry_status status = deferred ? DRY_OK : record_events(t, b);
    /* The stream has ended, so no event can show its completion. */
    if (status == DRY_ERR_UNSUPPORTED)
        return DRY_ERR_SYSTEM;
    if (status != DRY_OK)
        return status;
    b->allocated = false;
    dryi_torch_stat_change(&t->stats.allocation, b->pool, -1);
    dryi_torch_stat_change(&t->stats.allocated_bytes, b->pool, -(int64_t)b->size);
    dryi_torch_tell(t, DRY_ACTION_FREE_REQUESTED, b->segment, b->addr, b->requested);
    if (b->size >= t->conf.max_split_size)
        dryi_torch_stat_add(&t->stats.oversize_allocations, -1);
    if (deferred)
        defer(t, block);
    else if (b->uses == NONE)
        dryi_torch_block_free(t, block);
    else
        queue_uses(t, b);
    return DRY_OK;
}

/* --- events ----------------------------------------------------------------------------- */

/* Finish the first use of this stream. The last use of a block frees it. */
static void
finish_first_use(struct dryi_torch *t, struct stream *stream)
{
    DRYI_ASSERT_SLOW(stream->queue_first != NONE && stream->is_busy);
    uint32_t use = stream->queue_first;
    struct stream_use *u = &t->uses[use];
    DRYI_ASSERT_SLOW(&t->streams[u->stream] == stream && !t->blocks[u->block].allocated);
    stream->queue_first = u->next;
    if (u->next == NONE)
        stream->queue_last = NONE;
    dryi_torch_driver(t)->event_destroy(t->device.self, u->event);
    uint32_t block = u->block;
    u->next = t->free_use;
    t->free_use = use;
    DRYI_ASSERT(t->blocks[block].event_count > 0);
    if (--t->blocks[block].event_count == 0)
        dryi_torch_block_free(t, block);
}

/* Finish complete uses of a stream, in order: an incomplete event only delays its own stream. */
static void
finish_done_uses(struct dryi_torch *t, uint32_t index)
{
    struct stream *stream = &t->streams[index];
    if (dryi_torch_is_captured(t, index))
        return;
    while (stream->queue_first != NONE &&
           t->device.ops->event_query(t->device.self, t->uses[stream->queue_first].event))
        finish_first_use(t, stream);
}

/* Process all busy streams. Only this function removes a stream without a queue from the list. */
static void
process_busy_streams(struct dryi_torch *t)
{
    uint32_t *link = &t->busy_streams;
    while (*link != NONE) {
        struct stream *stream = &t->streams[*link];
        DRYI_ASSERT_SLOW(stream->is_busy);
        finish_done_uses(t, *link);
        stream->is_busy = stream->queue_first != NONE;
        if (stream->is_busy)
            link = &stream->next_busy;
        else
            *link = stream->next_busy;
    }
}

void
dryi_torch_process_events(void *self)
{
    struct dryi_torch *t = self;
    dryi_torch_settle_deferred(t);
    if (!t->progress_is_told) {
        process_busy_streams(t);
        return;
    }
    uint32_t left = 0; /* captured streams stay for a call after the capture */
    for (uint32_t i = 0; i < t->progressed_count; i++) {
        uint32_t index = t->progressed[i];
        DRYI_ASSERT_SLOW(t->streams[index].may_be_done);
        if (dryi_torch_is_captured(t, index)) {
            t->progressed[left++] = index;
            continue;
        }
        t->streams[index].may_be_done = false;
        finish_done_uses(t, index);
    }
    t->progressed_count = left;
}

/* Wait for a use. False: the device refused, and the use may be incomplete. */
static bool
wait_for_use(struct dryi_torch *t, uint32_t use)
{
    enum dry_status status =
        dryi_torch_driver(t)->event_wait(t->device.self, t->uses[use].event);
    return dryi_note_hindered(&t->hindered, status) == DRY_OK;
}

void
dryi_torch_wait_for_streams(struct dryi_torch *t)
{
    DRYI_ASSERT_SLOW(!dryi_torch_in_capture(t));
    t->stats.num_sync_all_streams++;
    dryi_torch_settle_deferred(t);
    uint32_t *link = &t->busy_streams;
    while (*link != NONE) {
        struct stream *stream = &t->streams[*link];
        if (dryi_torch_is_captured(t, *link)) {
            link = &stream->next_busy;
            continue;
        }
        while (stream->queue_first != NONE && wait_for_use(t, stream->queue_first))
            finish_first_use(t, stream);
        stream->is_busy = stream->queue_first != NONE;
        if (stream->is_busy)
            link = &stream->next_busy;
        else
            *link = stream->next_busy;
    }
}

/* Wait only for uses of one private pool's blocks, which may come after others in a queue. */
void
dryi_torch_wait_for_pool(struct dryi_torch *t, uint32_t owner)
{
    DRYI_ASSERT_SLOW(owner > 0 && t->owners[owner].live &&
                     t->owners[owner].use_count == 0);
    t->stats.num_sync_all_streams++;
    dryi_torch_settle_deferred(t);
    for (uint32_t s = t->busy_streams; s != NONE; s = t->streams[s].next_busy) {
        struct stream *stream = &t->streams[s];
        if (dryi_torch_is_captured(t, s))
            continue;
        uint32_t rest_first = NONE, rest_last = NONE;
        while (stream->queue_first != NONE) {
            uint32_t use = stream->queue_first;
            if (t->blocks[t->uses[use].block].pool / 2 == owner && wait_for_use(t, use)) {
                finish_first_use(t, stream);
                continue;
            }
            stream->queue_first = t->uses[use].next;
            t->uses[use].next = NONE;
            *(rest_first == NONE ? &rest_first : &t->uses[rest_last].next) = use;
            rest_last = use;
        }
        stream->queue_first = rest_first;
        stream->queue_last = rest_last;
    }
}
