/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_HEAP_H
#define DRYI_HOST_PINNED_HEAP_H

/*
 * Which block of which arena a request gets, and where a freed block goes. The idea stands in
 * pinned_heap.c. All functions but dryi_pinned_wish_init() and dryi_pinned_bin() require the
 * lock. Each takes constant time, but that a buddy splits or joins once for each power of two.
 */

#include <stdbool.h>
#include <stdint.h>

#include "host/pinned/pinned_state.h"

#define DRYI_PINNED_BYTES_MAX (UINT64_C(1) << 42) /* of a request */
#define DRYI_PINNED_HEAP_SHIFT 10 /* a class: the bin, and the heap above it */

/* What a request takes. */
struct dryi_pinned_wish {
    uint64_t requested, bytes; /* asked; rounded */
    uint32_t granules;
    uint32_t class_id; /* heap and bin */
    uint32_t heap;
};

void dryi_pinned_heap_init(struct dryi_pinned_heap *heap, uint32_t name,
                           unsigned granule_shift, bool is_buddy);
void dryi_pinned_wish_init(const struct dry_pinned *p, uint64_t bytes,
                           struct dryi_pinned_wish *wish);
/* A block for the wish, USED; NULL: no free one is large enough. Lock held, as below. */
struct dryi_pinned_cell *dryi_pinned_heap_take(struct dry_pinned *p,
                                               const struct dryi_pinned_wish *wish,
                                               uint64_t *address);
/* A block becomes free, one with its free neighbours. */
void dryi_pinned_heap_give(struct dry_pinned *p, struct dryi_pinned_arena *a,
                           struct dryi_pinned_cell *cell);
/* All of a new arena is free; of one that is idle, nothing is any more. */
void dryi_pinned_heap_add(struct dry_pinned *p, struct dryi_pinned_arena *a);
void dryi_pinned_heap_remove(struct dry_pinned *p, struct dryi_pinned_arena *a);
/* The bin where a free block of so many granules is; each in it has as many at least. */
uint32_t dryi_pinned_bin(const struct dryi_pinned_heap *heap, uint32_t granules);
/* Of the largest free block, 0 if there is none: exact to its bin's width. */
uint64_t dryi_pinned_heap_largest(const struct dry_pinned *p, uint32_t heap);

#endif
