/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_INFO_H
#define DRYI_PLACE_INFO_H

/*
 * The memory of a place, as every place describes it: names, descriptions and events.
 *
 * Nouns: a segment is a range from the device, or a reservation of addresses whose pages are
 * mapped bit by bit. A block is a part of one segment, in use, waiting for a stream, free or
 * unmapped. A pool (of a place) is what private pools and the default one are: memory that
 * does not mix.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/trace.h>

struct dryi_pool_id {
    uint64_t a, b; /* (0, 0): the default pool */
};

/* A handle of a block in use; valid until its free. */
typedef uint32_t dryi_block;
#define DRYI_NO_BLOCK UINT32_MAX

/* Addresses; of size 0: none. */
struct dryi_range {
    uint64_t addr, size;
};

struct dryi_block_info {
    uint64_t addr, size, requested;
    uint64_t stream;
    struct dryi_pool_id pool;
    uint32_t segment; /* ordinal of creation, restored ones first */
    uint64_t offset;  /* in the segment */
    bool allocated, pending, mapped, is_large;
};

/* Each contiguous mapped run of a reservation is one for itself. */
struct dryi_segment_info {
    uint64_t addr, size;
    uint64_t stream;
    struct dryi_pool_id pool;
    bool is_large, is_expandable;
    uint32_t segment;
};

/* One thing that happened. */
struct dryi_place_event {
    enum dry_action action;
    uint64_t addr, size; /* as a snapshot's entry of this action has them */
    uint64_t stream;
    struct dryi_pool_id pool;
    uint32_t segment; /* ordinal of creation; DRYI_NO_BLOCK for an OOM */
    uint64_t offset;  /* of addr in the segment */
};

/* Told of everything in the order it happens, from inside every call. */
struct dryi_place_observer {
    void (*event)(void *self, const struct dryi_place_event *event);
    void *self;
};

#endif
