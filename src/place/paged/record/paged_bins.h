/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_BINS_H
#define DRYI_PLACE_PAGED_BINS_H

/*
 * The bins of a free list: free blocks, or holes, by size. Every function looks at a bounded number
 * of blocks. NONE says that none was found.
 */

#include "base/bits.h"
#include "place/paged/record/paged_state.h"

/* Return the bin of a size. Each of the first 64 bins holds one size alone. */
static inline uint32_t
bin_of(uint64_t size)
{
    uint64_t grains = size >> GRAIN_SHIFT;
    unsigned above = dryi_log2_floor(grains | 32) - 5; /* the first 64 bins are exact */
    return above * 32 + (uint32_t)(grains >> above);
}

/* Return the first bin with blocks at or above `bin`. */
static inline uint32_t
bin_at_least(const struct free_list *s, uint32_t bin)
{
    uint32_t octave = bin / 32;
    if (octave >= OCTAVE_COUNT) /* the request is larger than any list could hold */
        return NONE;
    uint32_t bits = s->bins[octave] >> (bin % 32) << (bin % 32);
    uint32_t above = s->octaves & ~((UINT32_C(2) << octave) - 1);
    if ((bits | above) == 0)
        return NONE;
    /* The processor cannot predict which of the two it is: look both up, without a branch. */
    uint32_t next = (uint32_t)__builtin_ctz(above | UINT32_C(1) << 31);
    uint32_t next_bits = s->bins[next];
    octave = bits == 0 ? next : octave;
    bits = bits == 0 ? next_bits : bits;
    return octave * 32 + (uint32_t)__builtin_ctz(bits);
}

/* Return the last bin with blocks at or below `bin`. */
uint32_t dryi_paged_bin_at_most(const struct free_list *s, uint32_t bin);
/* Put a free block, or a hole, into the list that the block names. */
void dryi_paged_list_insert(struct dryi_paged *p, uint32_t block);
/* Take the block out of the list that the block names. */
void dryi_paged_list_remove(struct dryi_paged *p, uint32_t block);
/* Find a block of at least `size` bytes. The block stays on the list. */
uint32_t dryi_paged_list_find(const struct dryi_paged *p, const struct free_list *s,
                              uint64_t size);
/* Find such a block among those that were freed up to `epoch`. */
uint32_t dryi_paged_list_find_old(const struct dryi_paged *p, const struct free_list *s,
                                  uint64_t size, uint64_t epoch);

#endif
