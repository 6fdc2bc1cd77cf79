/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Restoring a private pool to a checkpoint, as PyTorch does. All blocks in use are freed. Then each
 * segment is cut into the checkpoint's blocks, and those that were free are freed again.
 *
 * All refusals come before any change; PyTorch checks on the way. Cost: O(blocks of the pool and of
 * the checkpoint + all segments). Source: DeviceCachingAllocator::setCheckpointPoolState
 * (c10/cuda/CUDACachingAllocator.cpp, 2.15).
 */

#include "place/torch/torch_checkpoint.h"

#include "base/assert.h"
#include "base/fail.h"
#include "place/torch/torch_block.h"
#include "place/torch/torch_pool.h"
#include "place/torch/torch_stream.h"

static uint32_t
find_used_owner(const struct dryi_torch *t, struct dryi_pool_id pool)
{
    uint32_t owner = dryi_torch_owner_find(t, pool);
    bool is_used = owner != NONE && owner != 0 && t->owners[owner].use_count > 0;
    return is_used ? owner : NONE;
}

/* Record events for frees that captures deferred. Returns the failure that prevented one. */
static enum dry_status
settle(struct dryi_torch *t)
{
    t->hindered = DRY_OK;
    dryi_torch_settle_deferred(t);
    return t->hindered;
}

enum dry_status
dryi_torch_hold_pool(void *self, struct dryi_pool_id pool, uint64_t *hold)
{
    struct dryi_torch *t = self;
    uint32_t owner = find_used_owner(t, pool);
    if (owner == NONE)
        return DRY_ERR_ARGUMENT;
    *hold = t->owners[owner].made;
    return settle(t);
}

/* --- may it go back? ----------------------------------------------------------------------- */

/* The checkpoint blocks of one mapped range, and its segment. */
struct saved_run {
    const struct dryi_block_info *blocks;
    size_t count;
    uint32_t segment;
};

static uint64_t
get_end(const struct dryi_block_info *b)
{
    return b->addr + b->size;
}

/* Return the run that begins at `blocks`, at most `most` blocks long. */
static struct saved_run
next_run(const struct dryi_block_info *blocks, size_t most)
{
    DRYI_ASSERT_SLOW(most > 0);
    struct saved_run run = {.blocks = blocks, .count = 1, .segment = NONE};
    while (run.count < most && blocks[run.count].segment == blocks->segment &&
           blocks[run.count].addr == get_end(&blocks[run.count - 1]))
        run.count++;
    return run;
}

/* Map ordinals to the pool's segments. False: out of memory. */
static bool
index_segments(const struct dryi_torch *t, uint32_t owner, struct dryi_map *segments)
{
    for (uint32_t s = 0; s < t->segment_slots; s++) {
        const struct segment *segment = &t->segments[s];
        if (segment->live && t->lanes[segment->lane].pool / 2 == owner &&
            !dryi_map_put(segments, segment->ordinal, s))
            return false;
    }
    return true;
}

static bool
has_waiting_block(const struct dryi_torch *t, uint32_t segment)
{
    uint32_t b = t->segments[segment].first_block;
    while (b != NONE && t->blocks[b].uses == NONE && t->blocks[b].event_count == 0)
        b = t->blocks[b].next;
    return b != NONE;
}

/* Does a mapped range begin at the run's begin, and reach its end? */
static bool
covers_run(const struct dryi_torch *t, const struct saved_run *run)
{
    DRYI_ASSERT_SLOW(run->count > 0 && t->segments[run->segment].live);
    uint64_t begin = 0, end = 0;
    uint32_t b = t->segments[run->segment].first_block;
    for (; b != NONE && begin <= run->blocks->addr; b = t->blocks[b].next) {
        const struct block *block = &t->blocks[b];
        if (!block->mapped)
            continue;
        if (end != block->addr)
            begin = block->addr;
        end = block->addr + block->size;
        if (begin == run->blocks->addr && end >= get_end(&run->blocks[run->count - 1]))
            return true;
    }
    return false;
}

static enum dry_status
check_run(const struct dryi_torch *t, const struct dryi_map *segments,
          struct saved_run *run, struct dry_error *err)
{
    const uint32_t *segment = dryi_map_find(segments, run->blocks->segment);
    run->segment = segment ? *segment : NONE;
    if (run->segment == NONE || !covers_run(t, run))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "the memory at 0x%llx is not there any more",
                         (unsigned long long)run->blocks->addr);
    if (has_waiting_block(t, run->segment))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "a block in the segment at 0x%llx waits for another stream",
                         (unsigned long long)t->segments[run->segment].addr);
    return DRY_OK;
}

/* --- going back ----------------------------------------------------------------------------- */

static enum dry_status
free_segment(struct dryi_torch *t, uint32_t segment,
             const struct dryi_restore_watcher *watcher)
{
    DRYI_ASSERT_SLOW(t->segments[segment].live);
    enum dry_status status = DRY_OK;
    uint32_t b = t->segments[segment].first_block;
    for (; b != NONE && status == DRY_OK; b = t->blocks[b].next) {
        if (!t->blocks[b].allocated)
            continue;
        watcher->begin(watcher->self, DRY_ACTION_FREE_REQUESTED);
        status = dryi_torch_free(t, b);
        if (status == DRY_OK)
            watcher->freed(watcher->self, b);
    }
    return status;
}

/* Free all blocks in use. Blocks of the checkpoint's segments cannot fail: no stream uses them. */
static enum dry_status
free_all(struct dryi_torch *t, uint32_t owner, const struct dryi_restore_watcher *watcher)
{
    enum dry_status status = DRY_OK;
    for (uint32_t s = 0; s < t->segment_slots && status == DRY_OK; s++) {
        const struct segment *segment = &t->segments[s];
        if (segment->live && t->lanes[segment->lane].pool / 2 == owner)
            status = free_segment(t, s, watcher);
    }
    return status;
}

static uint32_t
find_block(const struct dryi_torch *t, uint32_t segment, uint64_t addr)
{
    uint32_t b = t->segments[segment].first_block;
    while (t->blocks[b].addr != addr)
        b = t->blocks[b].next;
    return b;
}

/* Cut the run into its blocks, all of them in use at first. Returns the first one. */
static uint32_t
cut_run(struct dryi_torch *t, const struct saved_run *run,
        const struct dryi_restore_watcher *watcher)
{
    uint32_t at = find_block(t, run->segment, run->blocks->addr), first = NONE;
    for (size_t i = 0; i < run->count; i++) {
        uint64_t size = run->blocks[i].size;
        DRYI_ASSERT(t->blocks[at].addr == run->blocks[i].addr &&
                    t->blocks[at].size >= size);
        dryi_torch_free_remove(t, at);
        watcher->begin(watcher->self, DRY_ACTION_ALLOC);
        at = dryi_torch_block_use_part(t, at, size, size, t->blocks[at].size > size);
        first = first == NONE ? at : first;
        at = t->blocks[at].next;
    }
    return first;
}

static void
restore_run(struct dryi_torch *t, const struct saved_run *run,
            const struct dryi_block_info *all, const struct dryi_restore_watcher *watcher)
{
    uint32_t at = cut_run(t, run, watcher);
    for (size_t i = 0; i < run->count; i++) {
        DRYI_ASSERT_SLOW(t->blocks[at].allocated);
        DRYI_ASSERT_SLOW(t->blocks[at].addr == run->blocks[i].addr);
        if (run->blocks[i].allocated) {
            watcher->made(watcher->self, at, (size_t)(run->blocks + i - all));
        } else {
            watcher->begin(watcher->self, DRY_ACTION_FREE_REQUESTED);
            enum dry_status status = dryi_torch_free(t, at);
            DRYI_ASSERT(status == DRY_OK);
            (void)status; /* cannot fail: no other stream uses a block just cut */
        }
        at = t->blocks[at].next;
    }
}

static enum dry_status
check_all(struct dryi_torch *t, const struct dryi_map *segments,
          const struct dryi_block_info *blocks, size_t count, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < count && status == DRY_OK;) {
        struct saved_run run = next_run(blocks + i, count - i);
        status = check_run(t, segments, &run, err);
        i += run.count;
    }
    if (status == DRY_OK && !dryi_torch_block_reserve(t, count))
        status = dryi_fail_memory(err, "a pool's former blocks");
    return status;
}

static enum dry_status
restore_all(struct dryi_torch *t, uint32_t owner, const struct dryi_map *segments,
            const struct dryi_block_info *blocks, size_t count,
            const struct dryi_restore_watcher *watcher)
{
    enum dry_status status = free_all(t, owner, watcher);
    for (size_t i = 0; i < count && status == DRY_OK;) {
        struct saved_run run = next_run(blocks + i, count - i);
        run.segment = *dryi_map_find(segments, run.blocks->segment);
        restore_run(t, &run, blocks, watcher);
        i += run.count;
    }
    return status;
}

enum dry_status
dryi_torch_restore_pool(void *self, const struct dryi_restored *wanted,
                        const struct dryi_restore_watcher *watcher, struct dry_error *err)
{
    struct dryi_torch *t = self;
    const struct dryi_block_info *blocks = wanted->blocks;
    size_t count = wanted->count;
    uint32_t owner = find_used_owner(t, wanted->pool);
    if (owner == NONE || t->owners[owner].made != wanted->hold)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the pool of the checkpoint is gone");
    enum dry_status status = settle(t);
    if (status != DRY_OK)
        return dryi_fail(err, status, "an event could not be recorded");
    struct dryi_map segments;
    dryi_map_init(&segments, &t->memory);
    if (!index_segments(t, owner, &segments))
        status = dryi_fail_memory(err, "a pool's segments");
    if (status == DRY_OK)
        status = check_all(t, &segments, blocks, count, err);
    if (status == DRY_OK) {
        status = restore_all(t, owner, &segments, blocks, count, watcher);
        if (status != DRY_OK)
            dryi_fail(err, status, "an event could not be recorded");
    }
    dryi_map_finish(&segments);
    return status;
}
