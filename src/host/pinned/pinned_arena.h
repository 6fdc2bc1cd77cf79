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
 * Address space in squares of 2 MiB, which is the least an arena has: so two arenas at most
 * touch a square, one that ends in it and one that begins in it.
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
 * With its borders, so that who looks up a block of one arena, without a lock, never looks at the
 * other, which may be going just now.
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
/* Gives the ranges back to the pin, but for a child. */
void dryi_pinned_arenas_finish(struct dry_pinned *p, bool is_child);
/* A range becomes an arena of the heap. On failure the range is still the caller's. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_arena_add(struct dry_pinned *p,
                                                       const struct dryi_pin_range *range,
                                                       uint32_t heap);
/* An idle arena is no more; its range is the caller's. */
void dryi_pinned_arena_remove(struct dry_pinned *p, struct dryi_pinned_arena *a,
                              struct dryi_pin_range *range);
/* The block that begins here, whatever its state; NULL: none. Needs no lock. */
struct dryi_pinned_cell *dryi_pinned_find(const struct dry_pinned *p, uint64_t address,
                                          struct dryi_pinned_arena **arena);
/* The arena of an address; NULL: none. Needs no lock. */
struct dryi_pinned_arena *dryi_pinned_arena_at(const struct dry_pinned *p,
                                               uint64_t address);

#endif
