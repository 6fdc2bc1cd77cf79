/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_ARENA_H
#define DRYI_HOST_PINNED_ARENA_H

/* Arenas made of the pin's ranges, and the directory that maps an address to its arena.
   Functions require the lock unless they say otherwise. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

#include "host/pinned/pinned_state.h"

/*
 * The directory divides the address space into squares of 2 MiB, the minimum size of an
 * arena. So at most two arenas overlap a square: one ends in it and one begins in it. A
 * leaf has 4,096 squares.
 */
#define DRYI_PINNED_SQUARE_SHIFT 21
#define DRYI_PINNED_SQUARE (UINT64_C(1) << DRYI_PINNED_SQUARE_SHIFT)
#define DRYI_PINNED_LEAF_SHIFT 12
#define DRYI_PINNED_LEAF_SQUARES (UINT32_C(1) << DRYI_PINNED_LEAF_SHIFT)
#define DRYI_PINNED_ADDRESS_BITS 48
#define DRYI_PINNED_LEAVES                                                               \
    (UINT32_C(1) << (DRYI_PINNED_ADDRESS_BITS - DRYI_PINNED_SQUARE_SHIFT -               \
                     DRYI_PINNED_LEAF_SHIFT))

/* A square also has its arenas' bounds. So a look-up without the lock never dereferences
   the other arena, which another thread may be removing. */
struct dryi_pinned_square {
    struct dryi_pinned_arena *_Atomic lower; /* the arena that covers the square's
                                                beginning */
    struct dryi_pinned_arena *_Atomic upper; /* the arena that begins later in the
                                                square */
    _Atomic uint64_t lower_end;              /* 0: no lower arena */
    _Atomic uint64_t upper_begin;            /* 0: no upper arena */
};

struct dryi_pinned_leaf {
    struct dryi_pinned_square squares[DRYI_PINNED_LEAF_SQUARES];
};

enum dry_status dryi_pinned_arenas_init(struct dry_pinned *p, struct dry_error *err);
/* Free all arenas and unpin their ranges. In a child only the records are freed. */
void dryi_pinned_arenas_finish(struct dry_pinned *p, bool is_child);
/* Make an arena of the heap from a range; on failure the range stays the caller's. Also
   requires the inbox lock, so that the check of the budget counts all pinned bytes. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_arena_add(struct dry_pinned *p,
                                                       const struct dryi_pin_range *range,
                                                       uint32_t heap);
/* Remove an idle arena; the caller then owns its range. */
void dryi_pinned_arena_remove(struct dry_pinned *p, struct dryi_pinned_arena *a,
                              struct dryi_pin_range *range);
/* Find the block that begins at an address, in any state; NULL: none. Needs no lock. */
struct dryi_pinned_cell *dryi_pinned_find(const struct dry_pinned *p, uint64_t address,
                                          struct dryi_pinned_arena **arena);
/* Find the arena of an address; NULL: none. Needs no lock. */
struct dryi_pinned_arena *dryi_pinned_arena_at(const struct dry_pinned *p,
                                               uint64_t address);

#endif
