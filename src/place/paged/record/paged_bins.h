/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_BINS_H
#define DRYI_PLACE_PAGED_BINS_H

/*
 * The bins of a free list: free blocks, or holes, by size. Every search tests a bounded number of
 * blocks and returns NONE if none fits.
 */

#include "base/bits.h"
#include "place/paged/record/paged_state.h"

/* Map a size to its bin. Each of the first 64 holds one size; each later one, 1/32 of an octave. */
static inline uint32_t
bin_of(uint64_t size)
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

/* Return the last bin at or below `bin` that has blocks; NONE: none. */
uint32_t dryi_paged_bin_at_most(const struct free_list *s, uint32_t bin);
/* Put a free block, or a hole, on its list. */
void dryi_paged_list_insert(struct dryi_paged *p, uint32_t block);
/* Remove a block from its list. */
void dryi_paged_list_remove(struct dryi_paged *p, uint32_t block);
/* Find a block of at least `size` bytes. The block stays on its list. */
uint32_t dryi_paged_list_find(const struct dryi_paged *p, const struct free_list *s,
                              uint64_t size);
/* Do as dryi_paged_list_find() for blocks freed in `epoch` or before. */
uint32_t dryi_paged_list_find_old(const struct dryi_paged *p, const struct free_list *s,
                                  uint64_t size, uint64_t epoch);

#endif
