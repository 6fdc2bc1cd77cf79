/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_HEAP_H
#define DRYI_HOST_PINNED_HEAP_H

/*
 * A heap chooses the block for a request, and files freed blocks; see pinned_heap.c. A
 * class is a bin and its heap. A request has its rounded size and its class.
 *
 * Cost       Constant; a buddy splits or joins once for each power of two.
 * Threads    Functions that change blocks, and dryi_pinned_heap_largest(), require the
 *            lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "host/pinned/pinned_state.h"

#define DRYI_PINNED_BYTES_MAX (UINT64_C(1) << 42) /* limit of a request: 4 TiB */
#define DRYI_PINNED_HEAP_SHIFT 10 /* class_id = heap << DRYI_PINNED_HEAP_SHIFT | bin */

struct dryi_pinned_request {
    uint64_t requested, bytes; /* requested: as requested, or bytes - 4 GiB if that is
                                  more (see waste); bytes: rounded */
    uint32_t granules;
    uint32_t class_id; /* heap and bin */
    uint32_t heap;
};

void dryi_pinned_heap_init(struct dryi_pinned_heap *heap, uint32_t name,
                           unsigned granule_shift, bool is_buddy);
void dryi_pinned_request_init(const struct dry_pinned *p, uint64_t bytes,
                              struct dryi_pinned_request *request);
/* Take a block for the request and mark it USED; NULL: no free block is large enough. */
struct dryi_pinned_cell *dryi_pinned_heap_take(struct dry_pinned *p,
                                               const struct dryi_pinned_request *request,
                                               uint64_t *address);
/* Free a block and merge it with free neighbours. */
void dryi_pinned_heap_give(struct dry_pinned *p, struct dryi_pinned_arena *a,
                           struct dryi_pinned_cell *cell);
/* Add a new arena to its heap as one free block; remove an idle arena's free block. */
void dryi_pinned_heap_add(struct dry_pinned *p, struct dryi_pinned_arena *a);
void dryi_pinned_heap_remove(struct dry_pinned *p, struct dryi_pinned_arena *a);
/* Return the bin for a free block of `granules`: every block in a bin has at least the
   bin's size. */
uint32_t dryi_pinned_bin(const struct dryi_pinned_heap *heap, uint32_t granules);
/* Return the size of the largest free block, rounded down to its bin's size; 0: none. */
uint64_t dryi_pinned_heap_largest(const struct dry_pinned *p, uint32_t heap);

#endif
