/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_CELL_H
#define DRYI_HOST_PINNED_CELL_H

/*
 * A cell is the record of a granule, the unit of an arena; the first cell of a block is the
 * block's record. Cells lie outside the pinned memory. A free block of several granules has its
 * size in its last cell too, its foot, so both neighbours of a block are found in constant time.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/assert.h"

#define DRYI_PINNED_NONE UINT32_MAX /* no cell, no use, no stream */

enum dryi_pinned_state {
    DRYI_PINNED_INSIDE = 0, /* of a block, not its first cell */
    DRYI_PINNED_FREE = 1,
    DRYI_PINNED_FOOT = 2, /* the last cell of a free block of several */
    DRYI_PINNED_USED = 3,
    DRYI_PINNED_KEPT = 4,    /* free, in a thread cache */
    DRYI_PINNED_PENDING = 5, /* freed, waiting for streams */
};

/* A tag has the state in its low bits, then whether streams are recorded, then the class. */
#define DRYI_PINNED_STATE_MASK 7u
#define DRYI_PINNED_HAS_USES 8u
#define DRYI_PINNED_CLASS_SHIFT 8

struct dryi_pinned_cell {
    atomic_uint_least32_t tag;
    uint32_t size; /* granules */
    union {
        uint32_t previous; /* FREE: in the list of the bin */
        uint32_t waste;    /* else: bytes that were not asked for */
    };
    union {
        uint32_t next;
        uint32_t first_use; /* USED: streams recorded */
        uint32_t uses_left; /* PENDING */
    };
};

static inline enum dryi_pinned_state
dryi_pinned_state_of(uint32_t tag)
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

/* Write the record of a block that is handed out: USED, with `waste` bytes not asked for. */
static inline void
dryi_pinned_mark_used(struct dryi_pinned_cell *cell, uint32_t class_id, uint32_t waste)
{
    DRYI_ASSERT_SLOW(dryi_pinned_state_of(dryi_pinned_tag(cell)) != DRYI_PINNED_USED);
    cell->waste = waste;
    cell->first_use = DRYI_PINNED_NONE;
    dryi_pinned_set_tag(cell, DRYI_PINNED_USED, class_id << DRYI_PINNED_CLASS_SHIFT);
}

#endif
