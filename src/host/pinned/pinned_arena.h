/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_ARENA_H
#define DRYI_HOST_PINNED_ARENA_H

/*
 * Ranges of the pin as arenas, and the directory that leads from an address to its arena.
 * Functions require the lock unless they say otherwise.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

#include "host/pinned/pinned_state.h"

/*
 * The directory divides the address space into squares of 2 MiB, the least an arena has. So
 * at most two arenas touch a square: one that ends in it and one that begins in it. A leaf
 * has 4,096 squares.
 */
#define DRYI_PINNED_SQUARE_SHIFT 21
#define DRYI_PINNED_SQUARE (UINT64_C(1) << DRYI_PINNED_SQUARE_SHIFT)
#define DRYI_PINNED_LEAF_SHIFT 12
#define DRYI_PINNED_LEAF_SQUARES (UINT32_C(1) << DRYI_PINNED_LEAF_SHIFT)
#define DRYI_PINNED_ADDRESS_BITS 48
#define DRYI_PINNED_LEAVES                                                               \
    (UINT32_C(1) << (DRYI_PINNED_ADDRESS_BITS - DRYI_PINNED_SQUARE_SHIFT -               \
                     DRYI_PINNED_LEAF_SHIFT))

/*
 * A square has the borders of its arenas too. So a look-up of a block of one arena, without a
 * lock, never looks at the other arena, which may be going just now.
 */
struct dryi_pinned_square {
    struct dryi_pinned_arena *_Atomic lower; /* covers the square's beginning */
    struct dryi_pinned_arena *_Atomic upper; /* begins in the square, behind that */
    _Atomic uint64_t lower_end;              /* 0: none */
    _Atomic uint64_t upper_begin;            /* 0: none */
};

struct dryi_pinned_leaf {
    struct dryi_pinned_square squares[DRYI_PINNED_LEAF_SQUARES];
};

enum dry_status dryi_pinned_arenas_init(struct dry_pinned *p, struct dry_error *err);
/* Free all arenas; give their ranges back to the pin, unless this is a child. */
void dryi_pinned_arenas_finish(struct dry_pinned *p, bool is_child);
/*
 * Make an arena of the heap out of a range; if that fails, the range is still the caller's.
 * Requires the inbox too: what is pinned is compared with the budget.
 */
DRY_CHECK_RESULT enum dry_status dryi_pinned_arena_add(struct dry_pinned *p,
                                                       const struct dryi_pin_range *range,
                                                       uint32_t heap);
/* Take out an idle arena; its range is the caller's then. */
void dryi_pinned_arena_remove(struct dry_pinned *p, struct dryi_pinned_arena *a,
                              struct dryi_pin_range *range);
/* Find the block that begins here, in whatever state; NULL: none. Needs no lock. */
struct dryi_pinned_cell *dryi_pinned_find(const struct dry_pinned *p, uint64_t address,
                                          struct dryi_pinned_arena **arena);
/* Find the arena of an address; NULL: none. Needs no lock. */
struct dryi_pinned_arena *dryi_pinned_arena_at(const struct dry_pinned *p,
                                               uint64_t address);

#endif
