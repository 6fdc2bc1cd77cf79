/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Releasing memory to the device: garbage collection, oversize segments, and all cached memory, in
 * PyTorch's order.
 */

#include "place/torch/torch_release.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"
#include "place/torch/torch_block.h"
#include "place/torch/torch_pool.h"
#include "place/torch/torch_segment.h"
#include "place/torch/torch_stream.h"

/* --- walks over a pool, in the order (stream, size, ...) ---------------------------------- */

/* Iterate over the lanes of a pool, ordered by the values of their streams. */
static uint32_t
first_lane(const struct dryi_torch *t, uint32_t pool)
{
    return dryi_treap_at_least(t->lane_nodes, t->pools[pool].lanes, 0, 0);
}

static uint32_t
lane_after(const struct dryi_torch *t, uint32_t lane)
{
    return dryi_treap_after(t->lane_nodes, t->pools[t->lanes[lane].pool].lanes, lane);
}

static uint32_t
first_free(const struct dryi_torch *t, uint32_t root)
{
    return dryi_treap_at_least(t->nodes, root, 0, 0);
}

/* --- garbage collection ------------------------------------------------------------------- */

static bool
is_whole_segment(const struct dryi_torch *t, const struct block *b)
{
    return !block_is_split(b) && !block_is_expandable(t, b);
}

static uint64_t
get_age(const struct dryi_torch *t, const struct block *b)
{
    DRYI_ASSERT_SLOW(b->gc_base <= t->pools[b->pool].search_count);
    return t->pools[b->pool].search_count - b->gc_base;
}

struct ages {
    double total;
    uint64_t count;
};

/* Expandable blocks count in both sums, as in PyTorch, although they cannot be freed here. */
static struct ages
sum_ages(const struct dryi_torch *t, uint32_t pool)
{
    struct ages ages = {0};
    for (uint32_t l = first_lane(t, pool); l != NONE; l = lane_after(t, l)) {
        uint32_t root = t->lanes[l].free_root;
        for (uint32_t b = first_free(t, root); b != NONE;
             b = dryi_treap_after(t->nodes, root, b)) {
            if (block_is_split(&t->blocks[b]))
                continue;
            ages.total += (double)get_age(t, &t->blocks[b]);
            ages.count++;
        }
    }
    return ages;
}

/* Free all whole segments of at least this age, even beyond the target. Returns the bytes. */
static uint64_t
free_aged(struct dryi_torch *t, uint32_t pool, double age, struct ages *ages)
{
    uint64_t freed = 0;
    for (uint32_t l = first_lane(t, pool); l != NONE; l = lane_after(t, l)) {
        if (dryi_torch_is_captured(t, t->lanes[l].stream))
            continue;
        uint32_t b = first_free(t, t->lanes[l].free_root);
        while (b != NONE) {
            uint32_t next = dryi_treap_after(t->nodes, t->lanes[l].free_root, b);
            struct block *block = &t->blocks[b];
            if (is_whole_segment(t, block) && (double)get_age(t, block) >= age) {
                freed += block->size;
                ages->total -= (double)get_age(t, block);
                ages->count--;
                dryi_torch_segment_free(t, b);
            }
            b = next;
        }
    }
    return freed;
}

void
dryi_torch_collect_garbage(struct dryi_torch *t)
{
    DRYI_ASSERT_SLOW(t->has_limit && t->conf.garbage_collection_threshold > 0);
    uint64_t threshold =
        (uint64_t)(t->conf.garbage_collection_threshold * (double)t->limit_bytes);
    if (t->total_bytes <= threshold)
        return;
    uint64_t target = t->total_bytes - threshold, reclaimed = 0, freed = 1;
    uint32_t pool = 0; /* PyTorch collects from the default large pool only */
    struct ages ages = sum_ages(t, pool);
    while (reclaimed < target && freed > 0 && ages.count > 0) {
        freed = free_aged(t, pool, ages.total / (double)ages.count, &ages);
        reclaimed += freed;
    }
}

/* --- oversize blocks ---------------------------------------------------------------------- */

/* Return the bytes to release for a request: at least max_split_size. */
static uint64_t
get_oversize(const struct dryi_torch *t, const struct request *r)
{
    return r->rounded < t->conf.max_split_size ? t->conf.max_split_size : r->rounded;
}

/* Return the largest oversize block of this lane below a key, or NONE. */
static uint32_t
oversize_below(const struct dryi_torch *t, const struct request *r, uint64_t major,
               uint64_t minor)
{
    uint32_t root = t->lanes[r->lane].free_root;
    uint32_t b = dryi_treap_below(t->nodes, root, major, minor);
    return b != NONE && t->blocks[b].size >= t->conf.max_split_size ? b : NONE;
}

/* Return the smallest free block that suffices, if it is a whole segment; else NONE. */
static uint32_t
oversize_at_least(const struct dryi_torch *t, const struct request *r)
{
    uint32_t root = t->lanes[r->lane].free_root;
    uint32_t b = dryi_treap_at_least(t->nodes, root, get_oversize(t, r), 0);
    return b != NONE && is_whole_segment(t, &t->blocks[b]) ? b : NONE;
}

uint32_t
dryi_torch_available_find(const struct dryi_torch *t, const struct request *r)
{
    DRYI_ASSERT_SLOW(t->lanes[r->lane].pool == r->pool &&
                     t->lanes[r->lane].stream == r->stream);
    if (t->conf.max_split_size == UINT64_MAX)
        return NONE;
    uint32_t b = oversize_at_least(t, r);
    if (b == NONE)
        b = oversize_below(t, r, get_oversize(t, r), 0);
    while (b != NONE && !is_whole_segment(t, &t->blocks[b]))
        b = oversize_below(t, r, t->nodes[b].major, t->nodes[b].minor);
    return b;
}

/*
 * Release whole oversize segments of this lane until the request fits: one that suffices, else the
 * largest first. True: enough was released.
 */
bool
dryi_torch_release_available(struct dryi_torch *t, const struct request *r)
{
    DRYI_ASSERT_SLOW(t->lanes[r->lane].pool == r->pool &&
                     t->lanes[r->lane].stream == r->stream);
    if (t->conf.max_split_size == UINT64_MAX || dryi_torch_is_captured(t, r->stream))
        return false;
    uint64_t size = get_oversize(t, r);
    uint32_t b = oversize_at_least(t, r);
    if (b != NONE) {
        dryi_torch_segment_free(t, b);
        return true;
    }
    uint64_t freed = 0;
    b = oversize_below(t, r, size, 0);
    while (b != NONE && freed < size) {
        uint64_t major = t->nodes[b].major, minor = t->nodes[b].minor;
        if (is_whole_segment(t, &t->blocks[b])) {
            freed += t->blocks[b].size;
            dryi_torch_segment_free(t, b);
        }
        b = oversize_below(t, r, major, minor);
    }
    return freed >= size;
}

/* --- everything cached -------------------------------------------------------------------- */

/*
 * Release the cached memory of a pool. Whole segments come first, in the order of the set.
 * Expandable blocks are collected and unmapped afterwards, linked through `uses`, which a free
 * block does not need.
 */
static enum dry_status
release_pool(struct dryi_torch *t, uint32_t pool)
{
    uint32_t first = NONE, last = NONE, count = 0;
    for (uint32_t l = first_lane(t, pool); l != NONE; l = lane_after(t, l)) {
        if (dryi_torch_is_captured(t, t->lanes[l].stream))
            continue;
        uint32_t b = first_free(t, t->lanes[l].free_root);
        while (b != NONE) {
            uint32_t next = dryi_treap_after(t->nodes, t->lanes[l].free_root, b);
            if (block_is_expandable(t, &t->blocks[b])) {
                *(first == NONE ? &first : &t->blocks[last].uses) = b;
                last = b;
                count++;
            } else if (!block_is_split(&t->blocks[b])) {
                dryi_torch_segment_free(t, b);
            }
            b = next;
        }
    }
    bool has_room = dryi_torch_block_reserve(t, 2 * (size_t)count);
    while (first != NONE) {
        uint32_t b = first;
        first = t->blocks[b].uses;
        t->blocks[b].uses = NONE;
        if (has_room)
            dryi_torch_segment_unmap(t, b);
    }
    return has_room ? DRY_OK : DRY_ERR_MEMORY;
}

static enum dry_status
release_owner(struct dryi_torch *t, uint32_t owner)
{
    DRYI_ASSERT_SLOW(owner == 0 || t->owners[owner].use_count == 0);
    uint32_t small_first =
        /* PyTorch's order: default pools large first, private ones small first. */
        owner > 0;
    enum dry_status status = release_pool(t, 2 * owner + small_first);
    if (status == DRY_OK)
        status = release_pool(t, 2 * owner + !small_first);
    return status;
}

/*
 * Release the cached memory of a pool without users, and drop the pool with its last memory. While
 * a scope is open the pool stays, because requests still go there; PyTorch fails in such a request.
 */
static enum dry_status
release_unused(struct dryi_torch *t, uint32_t owner)
{
    DRYI_ASSERT_SLOW(owner > 0 && t->owners[owner].live &&
                     t->owners[owner].use_count == 0);
    enum dry_status status = release_owner(t, owner);
    if (t->owners[owner].reserved_bytes == 0 && !dryi_torch_is_in_scope(t, owner))
        dryi_torch_owner_end(t, owner);
    return status;
}

enum dry_status
dryi_torch_release_cached(struct dryi_torch *t, struct dryi_pool_id only)
{
    if (!dryi_is_default_pool(only)) {
        uint32_t owner = dryi_torch_owner_find(t, only);
        if (owner == NONE || t->owners[owner].use_count > 0)
            return DRY_OK;
        dryi_torch_wait_for_pool(t, owner);
        return release_unused(t, owner);
    }
    enum dry_status status = DRY_OK;
    if (!dryi_torch_in_capture(t)) {
        dryi_torch_wait_for_streams(t);
        status = release_owner(t, 0);
    }
    uint32_t left = t->unused_owners;
    for (uint32_t o = t->owners[0].next, next; left > 0 && status == DRY_OK; o = next) {
        next = t->owners[o].next; /* read now: this owner may be dropped */
        if (t->owners[o].use_count > 0)
            continue;
        left--;
        status = release_unused(t, o);
    }
    return status;
}

/* --- down to a target --------------------------------------------------------------------- */

/* Free blocks to release, collected before the first release changes the trees. */
struct candidates {
    /* Key: UINT64_MAX - size, so that the largest is first. */
    struct dryi_sort_item *items;
    struct dryi_sort_item *scratch;
    size_t capacity, scratch_capacity;
    uint32_t count;
};

static bool
gather_lane(struct dryi_torch *t, uint32_t lane, bool expandable, struct candidates *c)
{
    uint32_t root = t->lanes[lane].free_root;
    for (uint32_t b = first_free(t, root); b != NONE;
         b = dryi_treap_after(t->nodes, root, b)) {
        const struct block *block = &t->blocks[b];
        bool fits =
            expandable ? block_is_expandable(t, block) : is_whole_segment(t, block);
        if (!fits)
            continue;
        if (!dryi_memory_grow(&t->memory, &c->items, &c->capacity, (size_t)c->count + 1,
                              sizeof *c->items))
            return false;
        c->items[c->count++] =
            (struct dryi_sort_item){.key = UINT64_MAX - block->size, .value = b};
    }
    return true;
}

static bool
gather_pool(struct dryi_torch *t, uint32_t pool, bool expandable, struct candidates *c)
{
    for (uint32_t l = first_lane(t, pool); l != NONE; l = lane_after(t, l)) {
        if (!dryi_torch_is_captured(t, t->lanes[l].stream) &&
            !gather_lane(t, l, expandable, c))
            return false;
    }
    return true;
}

/* Collect from the default pools and from private pools without users. */
static bool
gather(struct dryi_torch *t, bool expandable, struct candidates *c)
{
    c->count = 0;
    for (uint32_t o = 0; o != NONE; o = t->owners[o].next) {
        if (o > 0 && t->owners[o].use_count > 0)
            continue;
        if (!gather_pool(t, 2 * o, expandable, c) ||
            !gather_pool(t, 2 * o + 1, expandable, c))
            return false;
    }
    if (!dryi_memory_grow(&t->memory, &c->scratch, &c->scratch_capacity, c->count,
                          sizeof *c->scratch) ||
        (expandable && !dryi_torch_block_reserve(t, 2 * (size_t)c->count)))
        return false;
    dryi_sort_items(c->items, c->scratch, c->count);
    return true;
}

static enum dry_status
trim_free(struct dryi_torch *t, uint64_t target, struct candidates *c)
{
    for (int expandable = 0; expandable <= 1; expandable++) {
        if (t->total_bytes <= target)
            break;
        if (!gather(t, expandable, c))
            return DRY_ERR_MEMORY;
        for (uint32_t i = 0; i < c->count && t->total_bytes > target; i++) {
            if (expandable)
                dryi_torch_segment_unmap(t, c->items[i].value);
            else
                dryi_torch_segment_free(t, c->items[i].value);
        }
    }
    return DRY_OK;
}

enum dry_status
dryi_torch_trim(void *self, uint64_t target)
{
    struct dryi_torch *t = self;
    if (dryi_torch_in_capture(t) || t->total_bytes <= target)
        return DRY_OK;
    struct candidates c = {0};
    dryi_torch_process_events(t);
    enum dry_status status = trim_free(t, target, &c);
    if (status == DRY_OK && t->total_bytes > target) {
        dryi_torch_wait_for_streams(t);
        status = trim_free(t, target, &c);
    }
    dryi_memory_free(&t->memory, c.items, c.capacity, sizeof *c.items);
    dryi_memory_free(&t->memory, c.scratch, c.scratch_capacity, sizeof *c.scratch);
    return status;
}
