/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_HEAP_H
#define DRYI_HOST_PINNED_HEAP_H

/*
 * A heap says which block of which arena a request gets, and where a freed block goes. The
 * idea stands in pinned_heap.c. A class is a bin and its heap. A request has
 * its size rounded up and its class.
 *
 * Cost       Constant; a buddy splits or joins once for each power of two.
 * Threads    Functions that change blocks, and dryi_pinned_heap_largest(), require the lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "host/pinned/pinned_state.h"

#define DRYI_PINNED_BYTES_MAX (UINT64_C(1) << 42) /* of a request */
#define DRYI_PINNED_HEAP_SHIFT 10 /* a class: the bin, and the heap above it */

struct dryi_pinned_request {
    uint64_t requested, bytes; /* asked, or 4 GiB below bytes if that is more; rounded */
    uint32_t granules;
    uint32_t class_id; /* heap and bin */
    uint32_t heap;
};

void dryi_pinned_heap_init(struct dryi_pinned_heap *heap, uint32_t name,
                           unsigned granule_shift, bool is_buddy);
void dryi_pinned_request_init(const struct dry_pinned *p, uint64_t bytes,
                              struct dryi_pinned_request *request);
/* Take a block for the request, USED then; NULL: no free one is large enough. */
struct dryi_pinned_cell *dryi_pinned_heap_take(struct dry_pinned *p,
                                               const struct dryi_pinned_request *request,
                                               uint64_t *address);
/* Free a block; it becomes one with its free neighbours. */
void dryi_pinned_heap_give(struct dry_pinned *p, struct dryi_pinned_arena *a,
                           struct dryi_pinned_cell *cell);
/* Put a new arena into its heap as one free block; take the one of an idle arena out. */
void dryi_pinned_heap_add(struct dry_pinned *p, struct dryi_pinned_arena *a);
void dryi_pinned_heap_remove(struct dry_pinned *p, struct dryi_pinned_arena *a);
/* The bin of a free block of so many granules: each block in it has its least size or more. */
uint32_t dryi_pinned_bin(const struct dryi_pinned_heap *heap, uint32_t granules);
/* The bytes of the largest free block, exact to its bin's width; 0: there is none. */
uint64_t dryi_pinned_heap_largest(const struct dry_pinned *p, uint32_t heap);

#endif
