/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_BINS_H
#define DRYI_PLACE_PAGED_BINS_H

/*
 * What a free list holds. The bins have its free blocks, or holes, by size. The stacks of a
 * stream's list have whole blocks, each for the next request of its size. Every search tests a
 * bounded number of blocks and returns NONE if none fits.
 */

#include "base/assert.h"
#include "base/bits.h"
#include "place/paged/record/paged_state.h"

/* --- bins --------------------------------------------------------------------------------- */

/* Map a size to its bin. Each of the first 64 holds one size; each later one, 1/32 of an octave. */
static inline uint32_t
find_bin(uint64_t size)
{
    uint64_t grains = size >> GRAIN_SHIFT;
    unsigned above = dryi_log2_floor(grains | 32) - 5; /* 0 for the 64 exact bins */
    return above * 32 + (uint32_t)(grains >> above);
}

/* Return the first bin at or above `bin` that has blocks; NONE: none. */
static inline uint32_t
bin_at_least(const struct free_list *s, uint32_t bin)
{
    uint32_t octave = bin / 32;
    if (octave >= OCTAVE_COUNT) /* Only RESERVED_LIMIT bounds `size`, not the bins */
        return NONE;
    uint32_t bits = s->bins[octave] >> (bin % 32) << (bin % 32);
    uint32_t above = s->octaves & ~((UINT32_C(2) << octave) - 1);
    if ((bits | above) == 0)
        return NONE;
    /* Compute both candidates without a branch: the processor cannot predict which applies. */
    uint32_t next = (uint32_t)__builtin_ctz(above | UINT32_C(1) << 31);
    uint32_t next_bits = s->bins[next];
    octave = bits == 0 ? next : octave;
    bits = bits == 0 ? next_bits : bits;
    return octave * 32 + (uint32_t)__builtin_ctz(bits);
}

/* Return the first block of at least `size` bytes among the first SCAN_MAX of a bin; NONE: none. */
static inline uint32_t
bin_scan(const struct dryi_paged *p, const struct free_list *s, uint32_t bin,
         uint64_t size)
{
    uint32_t at = s->heads[bin];
    for (unsigned i = 0; at != s->end && i < SCAN_MAX; i++) {
        if (p->blocks[at].size >= size)
            return at;
        at = p->blocks[at].bin_next;
    }
    return NONE;
}

/* Find a block of at least `size` bytes. The block stays on its list. */
static inline uint32_t
dryi_paged_list_find(const struct dryi_paged *p, const struct free_list *s, uint64_t size)
{
    DRYI_ASSERT_SLOW(size > 0 && s->kind <= FREE_STREAM);
    uint32_t own = find_bin(size);
    uint32_t bin = bin_at_least(s, own);
    if (bin == NONE)
        return NONE;
    uint32_t best = bin_scan(p, s, bin, size);
    if (best != NONE || bin != own || own + 1 == BIN_COUNT)
        return best;
    bin = bin_at_least(s, own + 1);
    return bin == NONE ? NONE : bin_scan(p, s, bin, size);
}

/* Return the last bin at or below `bin` that has blocks; NONE: none. */
uint32_t dryi_paged_bin_at_most(const struct free_list *s, uint32_t bin);
/* Put a free block, or a hole, on its list. */
void dryi_paged_list_insert(struct dryi_paged *p, uint32_t block);
/* Remove a block from its list. */
void dryi_paged_list_remove(struct dryi_paged *p, uint32_t block);
/* Do as dryi_paged_list_find() for blocks freed in `epoch` or before. */
uint32_t dryi_paged_list_find_old(const struct dryi_paged *p, const struct free_list *s,
                                  uint64_t size, uint64_t epoch);

/* --- stacks ------------------------------------------------------------------------------- */

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

#endif
