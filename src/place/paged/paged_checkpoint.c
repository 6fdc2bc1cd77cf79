/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Restoring a private pool to a checkpoint. All blocks in use are freed. Then each block of the
 * checkpoint is carved out of free memory at its old address.
 *
 * Streams share a pool, so another stream may have free memory now where a block was. The restore
 * does not write there, but the block's stream may. So the restore waits for the other stream. All
 * waits and refusals come before any change.
 *
 * Cost: O(blocks of the pool and of the checkpoint), plus one wait for each stream with incomplete
 * uses in the way.
 */

#include "place/paged/paged_checkpoint.h"

#include "base/assert.h"
#include "base/fail.h"
#include "place/paged/paged_free.h"
#include "place/paged/paged_pool.h"
#include "place/paged/paged_stream.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_list.h"
#include "place/paged/record/paged_stats.h"

enum wait { WAIT_NOT, WAIT_WANTED, WAITED };

struct restore {
    struct dryi_paged *p;
    uint32_t pool;
    const struct dryi_block_info *blocks; /* ordered by address */
    size_t count;
    uint32_t *lists; /* list of each checkpoint block; NONE: the block was free */
    uint8_t *waits;  /* enum wait of each stream */
    uint32_t stream_count;
    uint32_t *used; /* blocks in use when the restore begins */
    size_t used_count, used_capacity;
    const struct dryi_restore_watcher *watcher;
    struct dry_error *err;
};

static uint32_t
find_used_pool(const struct dryi_paged *p, struct dryi_pool_id id)
{
    uint32_t pool = dryi_paged_pool_find(p, id);
    bool is_used = pool != NONE && pool != 0 && p->pools[pool].users > 0;
    return is_used ? pool : NONE;
}

/* --- holding ------------------------------------------------------------------------------ */

enum dry_status
dryi_paged_hold_pool(void *self, struct dryi_pool_id id, uint64_t *hold)
{
    struct dryi_paged *p = self;
    uint32_t pool = find_used_pool(p, id);
    if (pool == NONE)
        return DRY_ERR_ARGUMENT;
    p->hindered = DRY_OK;
    dryi_paged_release_held(p);
    if (p->hindered != DRY_OK)
        return p->hindered;
    p->pools[pool].holds++;
    *hold = p->pools[pool].made;
    return DRY_OK;
}

void
dryi_paged_unhold_pool(void *self, struct dryi_pool_id id, uint64_t hold)
{
    struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    if (pool == NONE || p->pools[pool].made != hold)
        return;
    DRYI_ASSERT(p->pools[pool].holds > 0);
    p->pools[pool].holds--;
}

/* --- what stands in the way ----------------------------------------------------------------- */

static enum dry_status
refuse(const struct restore *r, uint64_t addr, const char *why)
{
    return dryi_fail(r->err, DRY_ERR_ARGUMENT, "at 0x%llx, %s", (unsigned long long)addr,
                     why);
}

/* Request a wait for the stream of a block in the way, unless it is on `list` or complete. */
static enum dry_status
want_wait(const struct restore *r, uint32_t block, uint32_t list)
{
    const struct dryi_paged *p = r->p;
    const struct block *b = &p->blocks[block];
    bool is_used = b->state == BLOCK_USED;
    if (b->list == list || (!is_used && dryi_paged_is_complete(p, b)))
        return DRY_OK;
    uint32_t stream = p->lists[b->list]->stream;
    if (dryi_paged_is_captured(p, stream) || (!is_used && r->waits[stream] == WAITED))
        return refuse(r, b->addr, "a stream that cannot be waited for has memory");
    if (r->waits[stream] == WAIT_NOT)
        r->waits[stream] = WAIT_WANTED;
    return DRY_OK;
}

/* Can this block be replaced by a checkpoint block of `list`? */
static enum dry_status
check_block(const struct restore *r, uint32_t block, uint32_t list)
{
    const struct block *b = &r->p->blocks[block];
    if (b->state == BLOCK_PENDING || (b->state == BLOCK_USED && b->uses != NONE))
        return refuse(r, b->addr, "a block waits for another stream");
    if (b->state == BLOCK_HOLE)
        return refuse(r, b->addr, "the memory is not there any more");
    return want_wait(r, block, list);
}

/* Return the index of the first checkpoint block that ends after this address. */
static size_t
find_saved(const struct restore *r, uint64_t addr)
{
    size_t lo = 0, hi = r->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->blocks[mid].addr + r->blocks[mid].size > addr)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/*
 * Check a block of the pool against the checkpoint blocks that it overlaps. Adds the overlapping
 * bytes to *covered.
 */
static enum dry_status
check_against_saved(const struct restore *r, uint32_t block, uint64_t *covered)
{
    const struct dryi_paged *p = r->p;
    uint64_t begin = p->blocks[block].addr, end = block_end(&p->blocks[block]);
    enum dry_status status = DRY_OK;
    for (size_t i = find_saved(r, begin);
         i < r->count && r->blocks[i].addr < end && status == DRY_OK; i++) {
        if (r->lists[i] == NONE)
            continue;
        const struct dryi_block_info *saved = &r->blocks[i];
        uint64_t lo = saved->addr > begin ? saved->addr : begin;
        uint64_t hi = saved->addr + saved->size < end ? saved->addr + saved->size : end;
        *covered += hi - lo;
        status = check_block(r, block, r->lists[i]);
    }
    return status;
}

static enum dry_status
check_arena(const struct restore *r, uint32_t arena, uint64_t *covered)
{
    const struct dryi_paged *p = r->p;
    enum dry_status status = DRY_OK;
    for (uint32_t s = p->arenas[arena].segments; s != NONE; s = p->segments[s].next) {
        uint32_t b = p->segments[s].first_block;
        for (; b != NONE && status == DRY_OK; b = p->blocks[b].next) {
            if (p->blocks[b].state != BLOCK_DIVIDER)
                status = check_against_saved(r, b, covered);
        }
    }
    return status;
}

/* Check all blocks of the pool against all checkpoint blocks that were in use. */
static enum dry_status
check_once(const struct restore *r)
{
    uint64_t wanted = 0, covered = 0;
    for (size_t i = 0; i < r->count; i++)
        wanted += r->lists[i] == NONE ? 0 : r->blocks[i].size;
    enum dry_status status = check_arena(r, 2 * r->pool, &covered);
    if (status == DRY_OK)
        status = check_arena(r, 2 * r->pool + 1, &covered);
    if (status == DRY_OK && covered != wanted)
        status = dryi_fail(r->err, DRY_ERR_ARGUMENT,
                           "addresses of the checkpoint are not there any more");
    return status;
}

/* Wait for one stream with a requested wait. END: there is none. */
static enum dry_status
wait_for_one(const struct restore *r)
{
    struct dryi_paged *p = r->p;
    uint32_t stream = 0;
    while (stream < r->stream_count && r->waits[stream] != WAIT_WANTED)
        stream++;
    if (stream == r->stream_count)
        return DRY_END;
    r->waits[stream] = WAITED;
    uint64_t epoch = p->streams[stream].epoch;
    enum dry_status status = dryi_paged_mark(p, stream);
    if (status == DRY_OK)
        status = dryi_paged_wait(p, stream, epoch);
    if (status != DRY_OK)
        dryi_fail(r->err, status, "a stream could not be waited for");
    return status;
}

/*
 * Repeat check and wait until no wait is requested. A wait completes frees, whose blocks then
 * coalesce, so all blocks must be checked again.
 */
static enum dry_status
check_all(const struct restore *r)
{
    enum dry_status status;
    do {
        status = check_once(r);
        if (status == DRY_OK)
            status = wait_for_one(r);
    } while (status == DRY_OK);
    return status == DRY_END ? DRY_OK : status;
}

/* --- room for records ------------------------------------------------------------------------ */

/*
 * Find the list of each block that was in use, and reserve records. An empty list may be dropped,
 * so each list counts its blocks in advance. False: out of memory.
 */
static bool
hold_lists(const struct restore *r)
{
    struct dryi_paged *p = r->p;
    size_t pieces = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct dryi_block_info *saved = &r->blocks[i];
        if (!saved->allocated)
            continue;
        uint32_t stream = dryi_paged_stream_index(p, saved->stream);
        if (stream == NONE)
            return false;
        uint32_t arena = 2 * r->pool + !saved->is_large;
        uint32_t list = dryi_paged_list_index(p, arena, stream);
        if (list == NONE)
            return false;
        p->lists[list]->block_count++;
        r->lists[i] = list;
        pieces += 2;
    }
    return pieces < NONE / 2 && dryi_paged_block_reserve(p, (uint32_t)pieces);
}

/* Undo the counts of hold_lists(). */
static void
release_lists(const struct restore *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->lists[i] != NONE)
            r->p->lists[r->lists[i]]->block_count--;
    }
}

/* Coalesce all cached blocks of the pool. */
static void
flush(const struct restore *r)
{
    struct dryi_paged *p = r->p;
    for (uint32_t arena = 2 * r->pool; arena <= 2 * r->pool + 1; arena++) {
        for (uint32_t at = p->arenas[arena].lists; at != NONE; at = p->lists[at]->next)
            dryi_paged_flush_list(p, p->lists[at]);
    }
}

/* Collect the blocks of an arena that are in use. False: out of memory. */
static bool
collect_used(struct restore *r, uint32_t arena)
{
    struct dryi_paged *p = r->p;
    for (uint32_t s = p->arenas[arena].segments; s != NONE; s = p->segments[s].next) {
        for (uint32_t b = p->segments[s].first_block; b != NONE; b = p->blocks[b].next) {
            if (p->blocks[b].state != BLOCK_USED)
                continue;
            if (!dryi_memory_grow(&p->memory, &r->used, &r->used_capacity,
                                  r->used_count + 1, sizeof *r->used))
                return false;
            r->used[r->used_count++] = b;
        }
    }
    return true;
}

/* --- going back ------------------------------------------------------------------------------ */

/* Free all blocks in use, first the ones with recorded uses: only their frees can fail. */
static enum dry_status
free_all(const struct restore *r)
{
    struct dryi_paged *p = r->p;
    enum dry_status status = DRY_OK;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < r->used_count && status == DRY_OK; i++) {
            uint32_t block = r->used[i];
            if (block == NONE || (round == 0 && p->blocks[block].uses == NONE))
                continue;
            r->watcher->begin(r->watcher->self, DRY_ACTION_FREE_REQUESTED);
            status = dryi_paged_free_used(p, block);
            if (status != DRY_OK)
                continue;
            r->watcher->freed(r->watcher->self, block);
            r->used[i] = NONE;
        }
    }
    return status;
}

/*
 * Find the block that contains the address of a checkpoint block. They come in address order, so
 * the search starts at `last`, the block carved before, if it is in the same segment.
 */
static uint32_t
find_block(const struct restore *r, const struct dryi_block_info *saved, uint32_t last)
{
    const struct dryi_paged *p = r->p;
    uint32_t s = p->arenas[2 * r->pool + !saved->is_large].segments;
    while (saved->addr - p->segments[s].addr >= p->segments[s].size)
        s = p->segments[s].next;
    bool is_near = last != NONE && p->blocks[last].segment == s;
    uint32_t b = is_near ? last : p->segments[s].first_block;
    while (block_end(&p->blocks[b]) <= saved->addr)
        b = p->blocks[b].next;
    return b;
}

/* Carve a checkpoint block out of free memory at its address, and assign it to `list`. */
static uint32_t
carve(const struct restore *r, const struct dryi_block_info *saved, uint32_t list,
      uint32_t last)
{
    struct dryi_paged *p = r->p;
    uint64_t end = saved->addr + saved->size;
    uint32_t at = find_block(r, saved, last);
    DRYI_ASSERT(p->blocks[at].state == BLOCK_FREE);
    at = dryi_paged_carve_along(p, at, saved->addr, end);
    dryi_paged_block_assign(p, at, list);
    return at;
}

static void
use(struct dryi_paged *p, uint32_t block, uint64_t requested)
{
    struct block *b = &p->blocks[block];
    bool small = arena_is_small(p->segments[b->segment].arena);
    b->uses = NONE;
    b->requested = requested;
    b->has_ticket = false;
    b->address = ADDRESS_UNKNOWN;
    stat_taken(p->stats, small, b->size, requested);
    if (p->stats[STAT_PENDING].current[0] | p->stats[STAT_PENDING].current[1])
        dryi_paged_note_active(p);
    dryi_paged_tell(p, DRY_ACTION_ALLOC, block, b->addr, requested);
}

static enum dry_status
go_back(const struct restore *r)
{
    enum dry_status status = free_all(r);
    if (status != DRY_OK)
        return dryi_fail(r->err, status, "an event could not be recorded");
    flush(r);
    uint32_t block = NONE;
    for (size_t i = 0; i < r->count; i++) {
        if (r->lists[i] == NONE)
            continue;
        block = carve(r, &r->blocks[i], r->lists[i], block);
        r->watcher->begin(r->watcher->self, DRY_ACTION_ALLOC);
        use(r->p, block, r->blocks[i].requested);
        r->watcher->made(r->watcher->self, block, i);
    }
    return DRY_OK;
}

static enum dry_status
restore(struct restore *r)
{
    struct dryi_paged *p = r->p;
    flush(r);
    enum dry_status status = DRY_OK;
    if (!hold_lists(r))
        status = dryi_fail_memory(r->err, "a pool's former blocks");
    r->stream_count = p->stream_count;
    r->waits =
        dryi_memory_zalloc(&p->memory, (size_t)r->stream_count + 1, sizeof *r->waits);
    if (status == DRY_OK && !r->waits)
        status = dryi_fail_memory(r->err, "a pool's streams");
    if (status == DRY_OK)
        status = check_all(r);
    if (status == DRY_OK &&
        (!collect_used(r, 2 * r->pool) || !collect_used(r, 2 * r->pool + 1)))
        status = dryi_fail_memory(r->err, "a pool's blocks in use");
    if (status == DRY_OK)
        status = go_back(r);
    release_lists(r);
    dryi_memory_free(&p->memory, r->used, r->used_capacity, sizeof *r->used);
    dryi_memory_free(&p->memory, r->waits, (size_t)r->stream_count + 1, sizeof *r->waits);
    return status;
}

enum dry_status
dryi_paged_restore_pool(void *self, const struct dryi_restored *wanted,
                        const struct dryi_restore_watcher *watcher, struct dry_error *err)
{
    struct dryi_paged *p = self;
    struct restore r = {.p = p,
                        .pool = find_used_pool(p, wanted->pool),
                        .blocks = wanted->blocks,
                        .count = wanted->count,
                        .watcher = watcher,
                        .err = err};
    if (r.pool == NONE || p->pools[r.pool].made != wanted->hold)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the pool of the checkpoint is gone");
    p->hindered = DRY_OK;
    dryi_paged_release_held(p);
    if (p->hindered != DRY_OK)
        return dryi_fail(err, p->hindered, "an event could not be recorded");
    r.lists = dryi_memory_zalloc(&p->memory, r.count + 1, sizeof *r.lists);
    if (!r.lists)
        return dryi_fail_memory(err, "a pool's former blocks");
    for (size_t i = 0; i < r.count; i++)
        r.lists[i] = NONE;
    enum dry_status status = restore(&r);
    dryi_memory_free(&p->memory, r.lists, r.count + 1, sizeof *r.lists);
    return status;
}
