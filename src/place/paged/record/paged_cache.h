/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_CACHE_H
#define DRYI_PLACE_PAGED_CACHE_H

/*
 * Stream caches as seen by the single thread that holds a cache: stacks of free whole blocks by
 * size. paged_cache_shared.h has the use by several threads.
 */

#include "base/bits.h"
#include "place/paged/record/paged_state.h"

/* Return the stack index for blocks of this size; an index of stack_count or more: none. */
static inline size_t
stack_slot(const struct free_list *s, uint64_t bytes)
{
    uint64_t grains = bytes >> GRAIN_SHIFT;
    if (!s->is_small && s->stack_count > 0)
        return dryi_mix64(grains) % CACHE_LARGE_SIZES;
    return (size_t)grains;
}

/* Return the value of `wanted` after two consecutive requests of this size on one stack. */
static inline uint32_t
cache_wanted_again(uint64_t bytes)
{
    return (uint32_t)(bytes >> GRAIN_SHIFT) << 1 | 1;
}

/* Record a request for a large size, so that dryi_paged_cache_wants() sees repeated sizes. */
static inline void
dryi_paged_cache_want(struct free_list *s, uint64_t bytes)
{
    uint32_t *wanted = &s->wanted[stack_slot(s, bytes)];
    uint32_t again = cache_wanted_again(bytes);
    *wanted = (*wanted | 1) == again ? again : again ^ 1;
}

/* Return the newest cached block of exactly this size, or NONE. The block stays on its stack. */
static inline uint32_t
dryi_paged_cache_top(const struct dryi_paged *p, const struct free_list *s,
                     uint64_t bytes)
{
    size_t slot = stack_slot(s, bytes);
    uint32_t block = slot < s->stack_count ? s->stacks[slot] : NONE;
    return block != NONE && p->blocks[block].size == bytes ? block : NONE;
}

/* Pop the newest block of a stack. Requires that the stack has a block. */
static inline void
dryi_paged_cache_pop(struct dryi_paged *p, struct free_list *s, size_t slot)
{
    uint32_t next = p->blocks[s->stacks[slot]].bin_next;
    s->stacks[slot] = next;
    s->stacked--;
    prefetch_block(p, next);
}

/* Pop the newest cached block of exactly this size; NONE: none. */
static inline uint32_t
dryi_paged_cache_take_top(struct dryi_paged *p, struct free_list *s, uint64_t bytes)
{
    uint32_t top = dryi_paged_cache_top(p, s, bytes);
    if (top != NONE)
        dryi_paged_cache_pop(p, s, stack_slot(s, bytes));
    return top;
}

/* Was this large size requested twice in a row, so that its blocks should stay whole? */
static inline bool
dryi_paged_cache_wants(const struct free_list *s, uint64_t bytes)
{
    return s->stack_count > 0 &&
           s->wanted[stack_slot(s, bytes)] == cache_wanted_again(bytes);
}

/*
 * Push a free block of `bytes`, which is on no list. False: the cache is full, or the stack has
 * another size.
 */
static inline bool
dryi_paged_cache_push(struct dryi_paged *p, struct free_list *s, uint32_t block,
                      uint64_t bytes)
{
    size_t slot = stack_slot(s, bytes);
    if (slot >= s->stack_count || s->stacked >= CACHE_MAX)
        return false;
    uint32_t top = s->stacks[slot];
    if (!s->is_small && top != NONE && p->blocks[top].size != bytes)
        return false;
    struct block *b = &p->blocks[block];
    b->state = BLOCK_CACHED;
    b->bin_next = top;
    s->stacks[slot] = block;
    s->stack_bits[slot / 32] |= UINT32_C(1) << (slot % 32);
    s->stacked++;
    return true;
}

/*
 * Allocate the newest block of a stack for `size` bytes. NONE: the stack is empty or the block's
 * address is not registered.
 */
static inline uint32_t
dryi_paged_cache_take_registered(struct dryi_paged *p, struct free_list *s, size_t slot,
                                 uint64_t size)
{
    uint32_t block = s->stacks[slot];
    if (block == NONE || p->blocks[block].address != ADDRESS_BY_TABLE)
        return NONE;
    dryi_paged_cache_pop(p, s, slot);
    p->blocks[block].state = BLOCK_USED;
    p->blocks[block].requested = size;
    return block;
}

/* Allocate the stacks of a list. If memory runs out, the list works without stacks. */
void dryi_paged_cache_make(struct dryi_paged *p, struct free_list *s);
/* Free the stacks of a list. */
void dryi_paged_cache_finish(struct dryi_paged *p, struct free_list *s);
/* Free all caches of the place. */
void dryi_paged_caches_finish(struct dryi_paged *p);
/* Add a list to those that dryi_paged_flush() visits, because its stacks may have blocks. */
void dryi_paged_cache_note(struct dryi_paged *p, uint32_t list);
/* Remove a list whose stacks are empty from those that dryi_paged_flush() visits. */
void dryi_paged_cache_unnote(struct dryi_paged *p, struct free_list *s);
/* End the registration of a free block's address, and tell the watcher. */
void dryi_paged_cache_forget(struct dryi_paged *p, struct block *b);

/* Coalesce all cached and all parked blocks. True: there were any. */
bool dryi_paged_flush(struct dryi_paged *p);
/* Coalesce the cached blocks of one list. */
void dryi_paged_flush_list(struct dryi_paged *p, struct free_list *s);
/* Coalesce at most `most` cached blocks of one list. */
void dryi_paged_flush_some(struct dryi_paged *p, struct free_list *s, uint32_t most);
/*
 * Coalesce up to `most` cached blocks of a list until one free block has `bytes`. Small blocks of
 * that size and above come first. True: such a block now exists.
 */
bool dryi_paged_flush_for(struct dryi_paged *p, uint32_t list, uint64_t bytes,
                          uint32_t most);
/*
 * Do as dryi_paged_flush_for() while holding only the cache. At most FLUSH_MAX blocks are
 * coalesced, and none that would merge with a block of another cache.
 */
bool dryi_paged_flush_beside(struct dryi_paged *p, uint32_t list, uint64_t bytes);
/* Can a thread that holds only the cache coalesce this block of the list? */
bool dryi_paged_can_coalesce_beside(const struct dryi_paged *p, const struct free_list *s,
                                    uint32_t block);

#endif
