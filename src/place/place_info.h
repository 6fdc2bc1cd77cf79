/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_INFO_H
#define DRYI_PLACE_INFO_H

/*
 * How a place describes its memory: identifiers, descriptions and events.
 *
 * Nouns: a segment is a range allocated from the device, or a reserved address range whose pages
 * are mapped as needed. A block is a part of one segment: in use, pending (waiting for a stream),
 * free or unmapped. A pool is a set of segments whose memory serves no other pool: the default pool
 * or a private pool.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/trace.h>

struct dryi_pool_id {
    uint64_t a, b; /* (0, 0): the default pool */
};

static inline bool
dryi_is_same_pool(struct dryi_pool_id a, struct dryi_pool_id b)
{
    return a.a == b.a && a.b == b.b;
}

static inline bool
dryi_is_default_pool(struct dryi_pool_id id)
{
    return id.a == 0 && id.b == 0;
}

/* Handle of a block in use; valid until the block is freed. */
typedef uint32_t dryi_block;
#define DRYI_NO_BLOCK UINT32_MAX

/* An address range; size 0: empty. */
struct dryi_range {
    uint64_t addr, size;
};

struct dryi_block_info {
    uint64_t addr, size, requested;
    uint64_t stream;
    struct dryi_pool_id pool;
    uint32_t segment; /* creation ordinal, restored segments first */
    uint64_t offset;  /* bytes from the segment's begin */
    bool allocated, pending, mapped, is_large;
};

/* A segment as snapshots list it. An expandable one gives one entry per contiguous mapped range. */
struct dryi_segment_info {
    uint64_t addr, size;
    uint64_t stream;
    struct dryi_pool_id pool;
    bool is_large, is_expandable;
    uint32_t segment;
};

/* One event of a place, as an entry of PyTorch's snapshot trace describes it. */
struct dryi_place_event {
    enum dry_action action;
    uint64_t addr, size; /* values of this action's snapshot entry */
    uint64_t stream;
    struct dryi_pool_id pool;
    uint32_t segment; /* creation ordinal; DRYI_NO_BLOCK for an OOM */
    uint64_t offset;  /* distance of `addr` from the segment's begin, bytes */
};

/* Receives all events in order, from inside the call that causes the event. */
struct dryi_place_observer {
    void (*event)(void *self, const struct dryi_place_event *event);
    void *self;
};

#endif
