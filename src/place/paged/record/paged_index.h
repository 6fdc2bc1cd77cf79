/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_INDEX_H
#define DRYI_PLACE_PAGED_INDEX_H

/*
 * Blocks by their addresses: a large block in use by its first address, and any block of the
 * segment that the layout lies in.
 */

#include "place/paged/record/paged_state.h"

/* Index the large blocks of this segment, if an index pays and there is memory for the index. */
void dryi_paged_index_begin(struct dryi_paged *p, uint32_t segment);
/* Extend the index to [lo, hi) of a segment, where pages were mapped. */
void dryi_paged_index_extend(struct dryi_paged *p, uint32_t segment, uint64_t lo,
                             uint64_t hi);
/* End the index, with its segment or with the place. */
void dryi_paged_index_finish(struct dryi_paged *p);
/* Return the block in use that begins at `address`, if the index has the block; NIL: none. O(1). */
uint32_t dryi_paged_find_used(const struct dryi_paged *p, uint64_t address);
/* The op of place.h. */
dryi_block dryi_paged_find(const void *self, uint64_t address);

/* Return where the index says which block began in the stretch of this address, or NULL. */
static inline uint32_t *
dryi_paged_index_at(const struct address_index *f, uint64_t address)
{
    uint64_t offset = address - f->range.addr;
    if (offset >= f->range.size)
        return NULL;
    uint64_t stretch = offset >> f->shift;
    uint32_t *leaf = f->leaves[stretch >> LEAF_SHIFT];
    return leaf ? &leaf[stretch % LEAF_COUNT] : NULL;
}

/* Note a large block that comes into use. True: the index finds the block from now on. */
static inline bool
dryi_paged_index_note(struct dryi_paged *p, uint32_t block)
{
    struct block *b = &p->blocks[block];
    uint32_t *begun = dryi_paged_index_at(&p->index, b->addr);
    b->address = begun ? ADDRESS_BY_INDEX : ADDRESS_UNKNOWN;
    if (begun)
        *begun = block;
    return begun != NULL;
}

/* --- the blocks of the layout's segment ---------------------------------------------------- */

/* Index all blocks of the segment. Requires that none is indexed. False: no memory. */
bool dryi_paged_layout_index(struct dryi_paged *p, uint32_t segment);
/* End the index of these blocks; there is no layout then. */
void dryi_paged_layout_unindex(struct dryi_paged *p);
/* Return the page of the layout's segment at an address. */
size_t dryi_paged_layout_page_of(const struct dryi_paged *p, uint64_t addr);
/* Return the block that holds this address; NONE: too many blocks begin in the page to look at. */
uint32_t dryi_paged_layout_block_at(const struct dryi_paged *p, uint64_t addr);
/* Return what is wrong with the index of the layout, or NULL. */
const char *dryi_paged_layout_check(const struct dryi_paged *p);

DRYI_NOINLINE void dryi_paged_layout_add(struct dryi_paged *p, uint32_t block);
DRYI_NOINLINE void dryi_paged_layout_take_out(struct dryi_paged *p, uint32_t block);

/* Note that a block begins at its address from now on. */
static inline void
dryi_paged_note_begin(struct dryi_paged *p, uint32_t block)
{
    if (p->blocks[block].segment == p->layout.segment)
        dryi_paged_layout_add(p, block);
}

/*
 * Note that no block will begin at the address of this block. Requires that the block before is
 * still its neighbour.
 */
static inline void
dryi_paged_note_end(struct dryi_paged *p, uint32_t block)
{
    if (p->blocks[block].segment == p->layout.segment)
        dryi_paged_layout_take_out(p, block);
}

#endif
