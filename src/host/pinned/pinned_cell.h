/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_CELL_H
#define DRYI_HOST_PINNED_CELL_H

/*
 * A cell is the record of a granule, an arena's unit of allocation. A block's first cell
 * is the block's record. Cells are outside the pinned memory. A free block of several
 * granules also has its size in its last cell, the foot, so that both neighbours of a
 * block are found in constant time.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/assert.h"

#define DRYI_PINNED_NONE UINT32_MAX /* no cell, no use or no stream */

enum dryi_pinned_state {
    DRYI_PINNED_INSIDE = 0, /* a cell of a block, not its first */
    DRYI_PINNED_FREE = 1,
    DRYI_PINNED_FOOT = 2, /* the last cell of a free block of several granules */
    DRYI_PINNED_USED = 3,
    DRYI_PINNED_KEPT = 4,    /* free, in a thread cache */
    DRYI_PINNED_PENDING = 5, /* freed, waiting for streams */
};

/* Layout of a tag: the state in the low bits, a flag for recorded streams, then the
   class. */
#define DRYI_PINNED_STATE_MASK 7u
#define DRYI_PINNED_HAS_USES 8u
#define DRYI_PINNED_CLASS_SHIFT 8

struct dryi_pinned_cell {
    atomic_uint_least32_t tag;
    uint32_t size; /* granules */
    union {
        uint32_t previous; /* FREE: previous block in the list of its bin */
        uint32_t waste;    /* other states: bytes beyond the requested ones */
    };
    union {
        uint32_t next;
        uint32_t first_use; /* USED: first of the recorded uses */
        uint32_t uses_left; /* PENDING: uses that have not ended */
    };
};

static inline enum dryi_pinned_state
dryi_pinned_cell_get_state(uint32_t tag)
{
    return (enum dryi_pinned_state)(tag & DRYI_PINNED_STATE_MASK);
}

static inline uint32_t
dryi_pinned_tag(const struct dryi_pinned_cell *cell)
{
    return atomic_load_explicit(&cell->tag, memory_order_relaxed);
}

static inline void
dryi_pinned_set_tag(struct dryi_pinned_cell *cell, enum dryi_pinned_state state,
                    uint32_t rest)
{
    atomic_store_explicit(&cell->tag, (uint32_t)state | rest, memory_order_relaxed);
}

/* Write the record of an allocated block: USED, with `waste` bytes beyond the request. */
static inline void
dryi_pinned_mark_used(struct dryi_pinned_cell *cell, uint32_t class_id, uint32_t waste)
{
    DRYI_ASSERT_SLOW(dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) !=
                     DRYI_PINNED_USED);
    cell->waste = waste;
    cell->first_use = DRYI_PINNED_NONE;
    dryi_pinned_set_tag(cell, DRYI_PINNED_USED, class_id << DRYI_PINNED_CLASS_SHIFT);
}

#endif
