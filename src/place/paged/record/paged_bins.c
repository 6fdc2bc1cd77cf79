/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a free list holds: see paged_bins.h.
 *
 * Bins hold the free blocks of a list by size, in 32 octaves of 32 bins. Two bitmap look-ups find
 * the first bin with blocks (Masmano, Ripoll, Crespo and Real, "TLSF", ECRTS 2004). TLSF rounds a
 * request up to the next bin; here a request takes the first block of its own bin that fits. At
 * most SCAN_MAX blocks of that bin are tested.
 */

#include "place/paged/record/paged_bins.h"

#include <string.h>

#include "base/ablate.h"
#include "base/assert.h"
#include "base/memory.h"

/* --- bins --------------------------------------------------------------------------------- */

uint32_t
dryi_paged_bin_at_most(const struct free_list *s, uint32_t bin)
{
    DRYI_ASSERT_SLOW(bin < BIN_COUNT);
    uint32_t octave = bin / 32;
    uint32_t bits = s->bins[octave] & (UINT32_MAX >> (31 - bin % 32));
    if (bits == 0) {
        uint32_t octaves = s->octaves & ((UINT32_C(1) << octave) - 1);
        if (octaves == 0)
            return NONE;
        octave = 31 - (uint32_t)__builtin_clz(octaves);
        bits = s->bins[octave];
    }
    return octave * 32 + 31 - (uint32_t)__builtin_clz(bits);
}

/* For assertions: do the block's state and arena match its list? */
__attribute__((unused)) static inline bool
is_listable(const struct dryi_paged *p, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    const struct free_list *s = b->list < p->list_count ? p->lists[b->list] : NULL;
    return s && s->arena == p->segments[b->segment].arena && b->size > 0 &&
           b->state == (s->kind == FREE_HOLES ? BLOCK_HOLE : BLOCK_FREE);
}

/*
 * Insert and remove are branch-free. The processor cannot predict whether a block is the last of
 * its bin, and a misprediction costs more than the whole function. A block without a neighbour
 * writes to the sentinel record `end`. Each list has its own sentinel, because other threads use
 * other lists.
 */
void
dryi_paged_list_insert(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(is_listable(p, block));
    struct block *b = &p->blocks[block];
    struct free_list *s = p->lists[b->list];
    uint32_t bin = find_bin(b->size);
    uint32_t head = s->heads[bin];
    b->bin_prev = s->end;
    b->bin_next = head;
    p->blocks[head].bin_prev = block;
    s->heads[bin] = block;
    s->bins[bin / 32] |= UINT32_C(1) << (bin % 32);
    s->octaves |= UINT32_C(1) << (bin / 32);
}

void
dryi_paged_list_remove(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(is_listable(p, block));
    const struct block *b = &p->blocks[block];
    struct free_list *s = p->lists[b->list];
    uint32_t bin = find_bin(b->size), octave = bin / 32;
    uint32_t next = b->bin_next, prev = b->bin_prev;
    uint32_t end = s->end;
    p->blocks[next].bin_prev = prev;
    p->blocks[prev].bin_next = next;
    uint32_t is_first = -(uint32_t)(prev == end);
    uint32_t head = s->heads[bin] = (next & is_first) | (s->heads[bin] & ~is_first);
    s->bins[octave] &= ~((uint32_t)(head == end) << (bin % 32));
    s->octaves &= ~((uint32_t)(s->bins[octave] == 0) << octave);
}

uint32_t
dryi_paged_list_find_old(const struct dryi_paged *p, const struct free_list *s,
                         uint64_t size, uint64_t epoch)
{
    DRYI_ASSERT_SLOW(size > 0 && s->kind == FREE_STREAM);
    unsigned visited = 0;
    uint32_t bin = bin_at_least(s, find_bin(size));
    while (bin != NONE && visited < VISITS_MAX) {
        for (uint32_t at = s->heads[bin]; at != s->end && visited < VISITS_MAX;
             visited++) {
            const struct block *b = &p->blocks[at];
            if (b->size >= size && b->epoch <= epoch)
                return at;
            at = b->bin_next;
        }
        bin = bin + 1 == BIN_COUNT ? NONE : bin_at_least(s, bin + 1);
    }
    return NONE;
}

/* --- stacks ------------------------------------------------------------------------------- */

/* Return the 32-bit words for `count` stacks: tops, bits and, for large blocks, wanted sizes. */
static size_t
count_stack_words(const struct free_list *s, size_t count)
{
    return count + (count + 31) / 32 + (s->is_small ? 0 : count);
}

void
dryi_paged_cache_make(struct dryi_paged *p, struct free_list *s)
{
    DRYI_ASSERT_SLOW(s->stack_count == 0 && s->kind == FREE_STREAM);
    size_t count = CACHE_LARGE_SIZES;
    if (DRYI_ABLATED(caches))
        return;
    if (s->is_small)
        count = (size_t)(p->conf.small_max >> GRAIN_SHIFT) + 1;
    s->stacks =
        dryi_memory_zalloc(&p->memory, count_stack_words(s, count), sizeof *s->stacks);
    if (!s->stacks)
        return;
    s->stack_count = count;
    s->stack_bits = s->stacks + count;
    s->wanted = s->stack_bits + (count + 31) / 32;
    memset(s->stacks, 0xff, count * sizeof *s->stacks);
}

void
dryi_paged_cache_finish(struct dryi_paged *p, struct free_list *s)
{
    dryi_memory_free(&p->memory, s->stacks, count_stack_words(s, s->stack_count),
                     sizeof *s->stacks);
}
