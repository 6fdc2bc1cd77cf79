/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks: free sets, best fit, split and merge.
 *
 * PyTorch has one set per pool, ordered by (stream, size, registration counter, address). No search
 * crosses a stream, so here each (pool, stream) has its own tree, with the key (size, tie). The tie
 * is the address or, from 2.13 on, the segment's counter followed by the offset in it, which gives
 * the same order in one 64-bit word.
 */

#include "place/torch/torch_block.h"

#include "base/assert.h"
#include "base/memory.h"

/* Bits of the tie for offsets in units of 512 bytes: up to 32 TiB. */
#define OFFSET_BITS 36

bool
dryi_torch_block_reserve(struct dryi_torch *t, size_t count)
{
    DRYI_ASSERT_SLOW(t->free_block_slots <= t->block_count &&
                     t->block_count <= t->block_capacity);
    if (t->free_block_slots >= count)
        return true;
    size_t needed = t->block_count + (count - t->free_block_slots);
    return needed < NONE &&
           dryi_memory_grow(&t->memory, &t->blocks, &t->block_capacity, needed,
                            sizeof *t->blocks) &&
           dryi_memory_grow(&t->memory, &t->nodes, &t->node_capacity, needed,
                            sizeof *t->nodes);
}

uint32_t
dryi_torch_block_make(struct dryi_torch *t, uint32_t segment, uint64_t addr,
                      uint64_t size)
{
    DRYI_ASSERT_SLOW(segment < t->segment_slots && t->segments[segment].live && size > 0);
    uint32_t block = t->free_block_slot;
    if (block != NONE) {
        t->free_block_slot = t->blocks[block].next;
        t->free_block_slots--;
    } else {
        DRYI_ASSERT(t->block_count < t->block_capacity);
        block = t->block_count++;
    }
    t->blocks[block] = (struct block){
        .addr = addr,
        .size = size,
        .made = t->made_count++,
        .prev = NONE,
        .next = NONE,
        .segment = segment,
        .pool = t->lanes[t->segments[segment].lane].pool,
        .stream = t->lanes[t->segments[segment].lane].stream,
        .lane = t->segments[segment].lane,
        .uses = NONE,
        .live = true,
        .mapped = true,
    };
    t->nodes[block] =
        (struct dryi_treap_node){.priority = (uint32_t)dryi_mix64(block ^ t->seed)};
    return block;
}

void
dryi_torch_block_drop(struct dryi_torch *t, uint32_t block)
{
    DRYI_ASSERT(!t->nodes[block].in_set);
    DRYI_ASSERT_SLOW(t->blocks[block].live && !t->blocks[block].allocated);
    t->blocks[block].live = false;
    t->blocks[block].next = t->free_block_slot;
    t->free_block_slot = block;
    t->free_block_slots++;
}

void
dryi_torch_block_link_after(struct dryi_torch *t, uint32_t block, uint32_t fresh)
{
    struct block *b = &t->blocks[block];
    DRYI_ASSERT_SLOW(b->segment == t->blocks[fresh].segment);
    DRYI_ASSERT_SLOW(b->addr + b->size == t->blocks[fresh].addr);
    t->blocks[fresh].prev = block;
    t->blocks[fresh].next = b->next;
    if (b->next != NONE)
        t->blocks[b->next].prev = fresh;
    b->next = fresh;
}

static uint64_t
get_tie(const struct dryi_torch *t, const struct block *block)
{
    if (t->rules->order_by_block)
        return block->made;
    if (!t->rules->order_by_counter)
        return block->addr;
    const struct segment *segment = &t->segments[block->segment];
    return segment->counter << OFFSET_BITS |
           (block->addr - segment->addr) / BLOCK_SIZE_MIN;
}

void
dryi_torch_free_insert(struct dryi_torch *t, uint32_t block)
{
    struct block *b = &t->blocks[block];
    DRYI_ASSERT_SLOW(b->live && b->mapped && !b->allocated);
    DRYI_ASSERT_SLOW(b->event_count == 0 && b->uses == NONE);
    t->nodes[block].major = b->size;
    t->nodes[block].minor = get_tie(t, b);
    b->gc_base = t->pools[b->pool].search_count;
    dryi_treap_insert(t->nodes, &t->lanes[b->lane].free_root, block);
}

void
dryi_torch_free_remove(struct dryi_torch *t, uint32_t block)
{
    struct block *b = &t->blocks[block];
    DRYI_ASSERT_SLOW(b->mapped && !b->allocated);
    dryi_treap_remove(t->nodes, &t->lanes[b->lane].free_root, block);
}

void
dryi_torch_unmapped_insert(struct dryi_torch *t, uint32_t block)
{
    struct block *b = &t->blocks[block];
    DRYI_ASSERT_SLOW(!b->mapped && block_is_expandable(t, b));
    t->nodes[block].major = b->addr;
    t->nodes[block].minor = 0;
    dryi_treap_insert(t->nodes, &t->lanes[b->lane].unmapped_root, block);
}

void
dryi_torch_unmapped_remove(struct dryi_torch *t, uint32_t block)
{
    struct block *b = &t->blocks[block];
    DRYI_ASSERT_SLOW(!b->mapped && !b->allocated);
    dryi_treap_remove(t->nodes, &t->lanes[b->lane].unmapped_root, block);
}

uint64_t
dryi_torch_block_merge(struct dryi_torch *t, uint32_t block, uint32_t other)
{
    if (other == NONE)
        return 0;
    struct block *dst = &t->blocks[block], *src = &t->blocks[other];
    DRYI_ASSERT_SLOW(!t->nodes[block].in_set && !dst->allocated &&
                     dst->segment == src->segment);
    DRYI_ASSERT_SLOW((dst->prev == other && src->next == block) ||
                     (dst->next == other && src->prev == block));
    if (src->allocated || src->event_count > 0 || src->uses != NONE ||
        src->mapped != dst->mapped)
        return 0;
    if (src->mapped)
        dryi_torch_free_remove(t, other);
    else
        dryi_torch_unmapped_remove(t, other);
    if (dst->prev == other) {
        dst->addr = src->addr;
        dst->prev = src->prev;
        if (dst->prev != NONE)
            t->blocks[dst->prev].next = block;
        else
            t->segments[dst->segment].first_block = block;
    } else {
        dst->next = src->next;
        if (dst->next != NONE)
            t->blocks[dst->next].prev = block;
    }
    uint64_t gained = src->size;
    dst->size += gained;
    dryi_torch_block_drop(t, other);
    return gained;
}

/* Return the size to which a free block can grow, with the unmapped addresses after it. */
static uint64_t
growable_size(const struct dryi_torch *t, uint32_t block)
{
    const struct block *b = &t->blocks[block];
    const struct block *next = b->next != NONE ? &t->blocks[b->next] : NULL;
    return b->size + (next && !next->mapped ? next->size : 0);
}

/*
 * Choose among expandable blocks, because the best fit may be the end of a segment that can grow.
 * With may_expand: prefer a later candidate with less growable space. Without: return the first
 * cudaMalloc block.
 */
static uint32_t
skip_expandable(const struct dryi_torch *t, uint32_t root, uint32_t block,
                bool may_expand)
{
    if (may_expand) {
        uint32_t next = dryi_treap_after(t->nodes, root, block);
        while (block_is_expandable(t, &t->blocks[block]) && next != NONE &&
               growable_size(t, next) < growable_size(t, block)) {
            block = next;
            next = dryi_treap_after(t->nodes, root, block);
        }
        return block;
    }
    while (block != NONE && block_is_expandable(t, &t->blocks[block]))
        block = dryi_treap_after(t->nodes, root, block);
    return block;
}

/* A block of max_split_size or more serves only requests of that size, with limited slack. */
bool
dryi_torch_may_have(const struct dryi_torch *t, uint64_t block_size, uint64_t size)
{
    if (size < t->conf.max_split_size)
        return block_size < t->conf.max_split_size;
    uint64_t slack =
        t->rules->slack_is_option ? t->conf.max_non_split_rounding_size : FIXED_SLACK;
    return block_size < size + slack; /* may wrap around, as in PyTorch */
}

uint32_t
dryi_torch_free_find(const struct dryi_torch *t, const struct request *r)
{
    DRYI_ASSERT_SLOW(t->lanes[r->lane].pool == r->pool &&
                     t->lanes[r->lane].stream == r->stream);
    uint32_t root = t->lanes[r->lane].free_root;
    uint32_t block = dryi_treap_at_least(t->nodes, root, r->rounded, 0);
    if (block != NONE && block_is_expandable(t, &t->blocks[block]))
        block = skip_expandable(t, root, block, r->expandable);
    if (block == NONE || !dryi_torch_may_have(t, t->blocks[block].size, r->rounded))
        return NONE;
    return block;
}

uint32_t
dryi_torch_free_take(struct dryi_torch *t, const struct request *r)
{
    if (t->has_limit && t->conf.garbage_collection_threshold > 0)
        t->pools[r->pool].search_count++;
    uint32_t block = dryi_torch_free_find(t, r);
    if (block != NONE)
        dryi_torch_free_remove(t, block);
    return block;
}

static bool
should_split(const struct dryi_torch *t, const struct block *block,
             const struct request *r)
{
    DRYI_ASSERT_SLOW(block->pool == r->pool && block->size >= r->rounded);
    if (t->owners[block->pool / 2].flags & DRYI_POOL_NO_SPLIT)
        return false;
    uint64_t remaining = block->size - r->rounded;
    if (pool_is_small(block->pool) || r->expandable)
        return remaining >= BLOCK_SIZE_MIN;
    return r->rounded < t->conf.max_split_size && remaining > LARGE_SPLIT_REST;
}

/* Split off the front as a new block. The rest keeps its record and returns to the free set. */
static uint32_t
split_front(struct dryi_torch *t, uint32_t block, uint64_t size)
{
    DRYI_ASSERT_SLOW(size > 0 && size < t->blocks[block].size);
    uint32_t front =
        dryi_torch_block_make(t, t->blocks[block].segment, t->blocks[block].addr, size);
    struct block *rest = &t->blocks[block];
    t->blocks[front].prev = rest->prev;
    t->blocks[front].next = block;
    if (rest->prev != NONE)
        t->blocks[rest->prev].next = front;
    else
        t->segments[rest->segment].first_block = front;
    rest->prev = front;
    rest->addr += size;
    rest->size -= size;
    dryi_torch_free_insert(t, block);
    return front;
}

/* Count inactive_split first, as PyTorch does: peaks depend on the order. */
static void
count_use_of_split(struct dryi_torch *t, const struct block *used, bool was_split,
                   uint64_t rest_size)
{
    if (block_is_expandable(t, used))
        return;
    struct dry_stats *s = &t->stats;
    if (rest_size && was_split) {
        dryi_torch_stat_change(&s->inactive_split_bytes, used->pool,
                               -(int64_t)used->size);
    } else if (rest_size) {
        dryi_torch_stat_change(&s->inactive_split_bytes, used->pool, (int64_t)rest_size);
        dryi_torch_stat_change(&s->inactive_split, used->pool, 1);
    } else if (was_split) {
        dryi_torch_stat_change(&s->inactive_split_bytes, used->pool,
                               -(int64_t)used->size);
        dryi_torch_stat_change(&s->inactive_split, used->pool, -1);
    }
}

uint32_t
dryi_torch_block_use_part(struct dryi_torch *t, uint32_t block, uint64_t bytes,
                          uint64_t requested, bool is_part)
{
    DRYI_ASSERT_SLOW(!t->nodes[block].in_set && t->blocks[block].mapped);
    DRYI_ASSERT_SLOW(!t->blocks[block].allocated && t->blocks[block].uses == NONE);
    DRYI_ASSERT_SLOW(requested <= bytes && bytes <= t->blocks[block].size);
    bool was_split = block_is_split(&t->blocks[block]);
    uint64_t rest_size = 0;
    if (is_part) {
        uint32_t front = split_front(t, block, bytes);
        rest_size = t->blocks[block].size;
        block = front;
    }
    struct block *used = &t->blocks[block];
    count_use_of_split(t, used, was_split, rest_size);
    used->allocated = true;
    used->requested = requested;
    dryi_torch_tell(t, DRY_ACTION_ALLOC, used->segment, used->addr, requested);
    struct dry_stats *s = &t->stats;
    dryi_torch_stat_change(&s->allocation, used->pool, 1);
    dryi_torch_stat_change(&s->allocated_bytes, used->pool, (int64_t)used->size);
    dryi_torch_stat_change(&s->active, used->pool, 1);
    dryi_torch_stat_change(&s->active_bytes, used->pool, (int64_t)used->size);
    dryi_torch_stat_change(&s->requested_bytes, used->pool, (int64_t)used->requested);
    if (used->size >= t->conf.max_split_size)
        dryi_torch_stat_add(&s->oversize_allocations, 1);
    return block;
}

uint32_t
dryi_torch_block_use(struct dryi_torch *t, uint32_t block, const struct request *r)
{
    return dryi_torch_block_use_part(t, block, r->rounded, r->size,
                                     should_split(t, &t->blocks[block], r));
}

/*
 * Net change of inactive_split when a block is freed. One update instead of three, because peaks
 * depend on it.
 */
struct split_change {
    int64_t count, bytes;
};

static void
count_free(struct dryi_torch *t, const struct block *b, int64_t size, int64_t requested,
           struct split_change change)
{
    struct dry_stats *s = &t->stats;
    if (!block_is_expandable(t, b)) {
        if (change.count)
            dryi_torch_stat_change(&s->inactive_split, b->pool, change.count);
        if (change.bytes)
            dryi_torch_stat_change(&s->inactive_split_bytes, b->pool, change.bytes);
    }
    dryi_torch_stat_change(&s->active, b->pool, -1);
    dryi_torch_stat_change(&s->active_bytes, b->pool, -size);
    dryi_torch_stat_change(&s->requested_bytes, b->pool, -requested);
}

void
dryi_torch_block_free(struct dryi_torch *t, uint32_t block)
{
    struct block *b = &t->blocks[block];
    DRYI_ASSERT(b->live && !b->allocated && b->event_count == 0 && b->uses == NONE);
    DRYI_ASSERT_SLOW(b->mapped && !t->nodes[block].in_set);
    int64_t size = (int64_t)b->size, requested = (int64_t)b->requested;
    dryi_torch_tell(t, DRY_ACTION_FREE_COMPLETED, b->segment, b->addr, b->requested);
    struct split_change change = {0};
    uint32_t neighbours[2] = {b->prev, b->next};
    for (int i = 0; i < 2; i++) {
        uint64_t gained = dryi_torch_block_merge(t, block, neighbours[i]);
        change.count -= gained > 0;
        change.bytes -= (int64_t)gained;
    }
    dryi_torch_free_insert(t, block);
    if (block_is_split(b)) {
        change.count += 1;
        change.bytes += (int64_t)b->size;
    }
    count_free(t, b, size, requested, change);
}
