/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frees. A block becomes free once the program has freed it and its recorded uses by other streams
 * are complete.
 */

#include "place/paged/paged_free.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged.h"
#include "place/paged/paged_stream.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_index.h"
#include "place/paged/record/paged_park.h"
#include "place/paged/record/paged_stats.h"

static uint64_t
use_key(uint32_t block, uint32_t stream)
{
    return (uint64_t)block << 32 | stream;
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
    uint32_t use = dryi_paged_use_make(p, index);
    if (use == NONE)
        return DRY_ERR_MEMORY;
    if (!dryi_map_put(&p->recorded, use_key(block, index), use)) {
        dryi_paged_use_drop(p, use);
        return DRY_ERR_MEMORY;
    }
    p->uses[use].block = block;
    p->uses[use].next = p->blocks[block].uses;
    p->blocks[block].uses = use;
    return DRY_OK;
}

/* End the last use of a block: tell the observer, and the forecast if the block has a ticket. */
static inline void
end_use(struct dryi_paged *p, const struct free_list *s, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_USED ||
                     p->blocks[block].state == BLOCK_PENDING);
    struct block *b = &p->blocks[block];
    stat_sub(p, STAT_REQUESTED_BYTES, s->is_small, b->requested);
    dryi_paged_tell(p, DRY_ACTION_FREE_COMPLETED, block, b->addr, b->requested);
    b->uses = NONE;
    if (b->has_ticket)
        dryi_forecast_freed(p->forecast, b->bin_prev, b->epoch);
}

/* Put a freed block into its stream's cache, or coalesce the block onto its list. */
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

void
dryi_paged_complete(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_PENDING);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    const struct block *b = &p->blocks[block];
    struct free_list *s = p->lists[b->list];
    bool small = arena_is_small(s->arena);
    stat_sub(p, STAT_PENDING, small, 1);
    stat_sub(p, STAT_PENDING_BYTES, small, b->size);
    end_use(p, s, block);
    /* Not parked: a request other than its successor may have waited for this block. */
    make_free(p, s, block);
}

/* Record one event per use in a list, each on its stream. On failure none remains. */
DRYI_NOINLINE static enum dry_status
record_uses(struct dryi_paged *p, uint32_t first)
{
    for (uint32_t u = first; u != NONE; u = p->uses[u].next) {
        enum dry_status status =
            dryi_paged_event_record(p, p->uses[u].stream, &p->uses[u].event);
        if (status == DRY_OK)
            continue;
        for (uint32_t done = first; done != u; done = p->uses[done].next)
            p->device.ops->event_destroy(p->device.self, p->uses[done].event);
        return status;
    }
    return DRY_OK;
}

/* Queue the uses of a pending block. `uses` changes from their list to their count. */
DRYI_NOINLINE static void
queue_uses(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_PENDING);
    uint32_t use = p->blocks[block].uses, count = 0;
    while (use != NONE) {
        uint32_t next = p->uses[use].next;
        dryi_map_take(&p->recorded, use_key(block, p->uses[use].stream));
        dryi_paged_use_queue(p, use);
        count++;
        use = next;
    }
    p->blocks[block].uses = count;
}

/* Defer the events of a freed block until the last capture ends. */
static void
hold(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->capture_count > 0);
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
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    while (p->first_held != NONE && p->capture_count == 0) {
        uint32_t block = p->first_held;
        enum dry_status status = record_uses(p, p->blocks[block].uses);
        if (dryi_note_hindered(&p->hindered, status) != DRY_OK)
            return; /* The next request retries */
        p->first_held = p->blocks[block].bin_next;
        queue_uses(p, block);
    }
}

/* Account for a free by the program, in the current epoch of the block's stream. */
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

/* Is the block's own stream captured, or a stream with a recorded use of the block? */
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
 * Other streams may still use the block: make it pending until their uses are complete. While a
 * capture is active, the free is deferred if one of the block's streams is captured. It is also
 * deferred if the device does not support an event on a stream, because the stream may have ended.
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
    /* The stream has ended, so no event can show when its use completes. */
    if (status == DRY_ERR_UNSUPPORTED)
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
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_USED);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    const struct block *b = &p->blocks[block];
    struct free_list *s = p->lists[b->list];
    if (b->uses != NONE)
        return free_recorded(p, s, block);
    /* Coalescing reads the neighbours' records next, which are rarely in the processor's cache. */
    if (!s->is_small) {
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

DRYI_FLATTEN enum dry_status
dryi_paged_free_found(void *self, uint64_t address)
{
    struct dryi_paged *p = self;
    uint32_t block = dryi_paged_find_used(p, address);
    return block == NIL ? DRY_ERR_ARGUMENT : dryi_paged_free_used(p, block);
}
