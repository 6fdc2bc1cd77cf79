/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_CACHE_H
#define DRYI_PLACE_PAGED_CACHE_H

/*
 * A stream's cache as one thread sees it: free blocks that stay whole, on one stack for each size.
 * paged_cache_shared.h has what several threads do.
 */

#include "base/bits.h"
#include "place/paged/record/paged_state.h"

/* Return the stack for blocks of this size; stack_count or more: there is none. */
static inline size_t
stack_slot(const struct free_list *s, uint64_t bytes)
{
    uint64_t grains = bytes >> GRAIN_SHIFT;
    if (!s->is_small && s->stack_count > 0)
        return dryi_mix64(grains) % CACHE_LARGE_SIZES;
    return (size_t)grains;
}

/* Return what `wanted` says after two requests of a size, with no other of its stack between. */
static inline uint32_t
cache_wanted_again(uint64_t bytes)
{
    return (uint32_t)(bytes >> GRAIN_SHIFT) << 1 | 1;
}

/* Note that a large size is asked for. */
static inline void
dryi_paged_cache_want(struct free_list *s, uint64_t bytes)
{
    uint32_t *wanted = &s->wanted[stack_slot(s, bytes)];
    uint32_t again = cache_wanted_again(bytes);
    *wanted = (*wanted | 1) == again ? again : again ^ 1;
}

/* Return the newest block of exactly this size, which stays on its stack; NONE: there is none. */
static inline uint32_t
dryi_paged_cache_top(const struct dryi_paged *p, const struct free_list *s,
                     uint64_t bytes)
{
    size_t slot = stack_slot(s, bytes);
    uint32_t block = slot < s->stack_count ? s->stacks[slot] : NONE;
    return block != NONE && p->blocks[block].size == bytes ? block : NONE;
}

/* Take the newest block off a stack that has one. */
static inline void
dryi_paged_cache_pop(struct dryi_paged *p, struct free_list *s, size_t slot)
{
    uint32_t next = p->blocks[s->stacks[slot]].bin_next;
    s->stacks[slot] = next;
    s->stacked--;
    prefetch_block(p, next);
}

/* Take the newest block of exactly this size; NONE: there is none. */
static inline uint32_t
dryi_paged_cache_take_top(struct dryi_paged *p, struct free_list *s, uint64_t bytes)
{
    uint32_t top = dryi_paged_cache_top(p, s, bytes);
    if (top != NONE)
        dryi_paged_cache_pop(p, s, stack_slot(s, bytes));
    return top;
}

/* Is this large size asked for again and again, so that its blocks should stay whole? */
static inline bool
dryi_paged_cache_wants(const struct free_list *s, uint64_t bytes)
{
    return s->stack_count > 0 &&
           s->wanted[stack_slot(s, bytes)] == cache_wanted_again(bytes);
}

/* Put a free block of `bytes`, on no list, onto its stack. False: there is no room. */
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

/* Hand out the newest block of a stack for `size` bytes; NONE: its address is not registered. */
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

/* Make stacks for a list. If memory runs out, the list has none. */
void dryi_paged_cache_make(struct dryi_paged *p, struct free_list *s);
/* End the stacks of a list. */
void dryi_paged_cache_finish(struct dryi_paged *p, struct free_list *s);
/* End all caches that were asked for. */
void dryi_paged_caches_finish(struct dryi_paged *p);
/* Note that the stacks of a list may have blocks: dryi_paged_flush() looks at them. */
void dryi_paged_cache_note(struct dryi_paged *p, uint32_t list);
/* Note that the stacks of a list have no blocks. */
void dryi_paged_cache_unnote(struct dryi_paged *p, struct free_list *s);
/* Unregister the address of a free block, and tell the watcher. */
void dryi_paged_cache_forget(struct dryi_paged *p, struct block *b);

/* Coalesce all cached and all parked blocks. True: there were any. */
bool dryi_paged_flush(struct dryi_paged *p);
/* Coalesce the cached blocks of one list. */
void dryi_paged_flush_list(struct dryi_paged *p, struct free_list *s);
/* Coalesce `most` cached blocks of one list. */
void dryi_paged_flush_some(struct dryi_paged *p, struct free_list *s, uint32_t most);
/*
 * Coalesce cached blocks of a list until a free block of `bytes` is there, at most `most` of them.
 * Small blocks of that size and above come first. True: such a free block is there.
 */
bool dryi_paged_flush_for(struct dryi_paged *p, uint32_t list, uint64_t bytes,
                          uint32_t most);
/*
 * Do as dryi_paged_flush_for() with the cache alone: coalesce no block that would merge with one of
 * another cache, and FLUSH_MAX blocks at most.
 */
bool dryi_paged_flush_beside(struct dryi_paged *p, uint32_t list, uint64_t bytes);
/* Can this block of the list be coalesced with the cache alone? */
bool dryi_paged_can_coalesce_beside(const struct dryi_paged *p, const struct free_list *s,
                                    uint32_t block);

#endif
