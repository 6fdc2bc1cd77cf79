/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_INDEX_H
#define DRYI_PLACE_PAGED_INDEX_H

/*
 * Finding blocks by address: a large block in use by its first address, and any block of the
 * layout's segment by any of its addresses.
 */

#include "place/paged/record/paged_state.h"

/*
 * Begin to index the large blocks of this segment. If an index would not pay, or memory runs out,
 * there is no index.
 */
void dryi_paged_index_begin(struct dryi_paged *p, uint32_t segment);
/* Extend the index to [lo, hi) of a segment, where pages were just mapped. */
void dryi_paged_index_extend(struct dryi_paged *p, uint32_t segment, uint64_t lo,
                             uint64_t hi);
/* Free the index, when its segment or the place ends. */
void dryi_paged_index_finish(struct dryi_paged *p);
/* Return the indexed block in use that begins at `address`; NIL: none. O(1). */
uint32_t dryi_paged_find_used(const struct dryi_paged *p, uint64_t address);
/* Implements find of place.h. */
dryi_block dryi_paged_find(const void *self, uint64_t address);

/* Return the index entry for the stretch of this address; NULL: none. */
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

/* Add a large block that comes into use. True: the index finds the block until its free. */
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

/*
 * Index all blocks of the segment, as the segment of a new layout. Requires that no segment is
 * indexed. False: out of memory.
 */
bool dryi_paged_layout_index(struct dryi_paged *p, uint32_t segment);
/* Free the index of the layout's blocks; this ends the layout. */
void dryi_paged_layout_unindex(struct dryi_paged *p);
/* Return the page number of an address in the layout's segment. */
size_t dryi_paged_layout_find_page(const struct dryi_paged *p, uint64_t addr);
/*
 * Return the block that contains this address; NONE: the page has more than BACK_MAX blocks after
 * the address.
 */
uint32_t dryi_paged_layout_block_at(const struct dryi_paged *p, uint64_t addr);
/* Return the first violated invariant of the layout's index, or NULL. */
const char *dryi_paged_layout_check(const struct dryi_paged *p);

DRYI_NOINLINE void dryi_paged_layout_add(struct dryi_paged *p, uint32_t block);
DRYI_NOINLINE void dryi_paged_layout_take_out(struct dryi_paged *p, uint32_t block);

/* Note that a block now begins at its address. */
static inline void
dryi_paged_note_begin(struct dryi_paged *p, uint32_t block)
{
    if (p->blocks[block].segment == p->layout.segment)
        dryi_paged_layout_add(p, block);
}

/*
 * Note that no block begins at this block's address any more. Requires that the previous block is
 * still linked as its neighbour.
 */
static inline void
dryi_paged_note_end(struct dryi_paged *p, uint32_t block)
{
    if (p->blocks[block].segment == p->layout.segment)
        dryi_paged_layout_take_out(p, block);
}

#endif
