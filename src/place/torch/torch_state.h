/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_TORCH_STATE_H
#define DRYI_PLACE_TORCH_STATE_H

/*
 * The data structures of place/torch, and functions that count changes and report events. Each file
 * has its functions in a header of its name:
 *
 *   torch            requests, the ladder of retries
 *   torch_pool       streams, pools, lanes
 *   torch_block      free sets, split, merge
 *   torch_segment    ranges from the device
 *   torch_stream     frees, and what they wait for
 *   torch_release    memory released to the device
 *   torch_checkpoint private pools restored to a checkpoint
 *   torch_layout.c   walk, restore, check
 *
 * Records refer to each other by index in growable arrays, because an array may move; NONE is never
 * an index.
 */

#include "base/assert.h"
#include "base/bits.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/treap.h"
#include "place/torch/torch.h"

#define NONE UINT32_MAX

#define BLOCK_SIZE_MIN UINT64_C(512)
#define SMALL_SIZE_MAX DRYI_MIB           /* largest rounded request of the small pool */
#define SMALL_SEGMENT (2 * DRYI_MIB)      /* a cudaMalloc, or a page, of the small pool */
#define LARGE_REQUEST_MIN (10 * DRYI_MIB) /* a request this large gets its own segment */
#define LARGE_ROUND (2 * DRYI_MIB)
#define LARGE_SPLIT_REST DRYI_MIB   /* a large block is split if more than this remains */
#define FIXED_SLACK (20 * DRYI_MIB) /* slack of oversize blocks before 2.6 */
#define REQUEST_LIMIT (UINT64_C(1) << 60)
/* Limit on all segments, because statistics are int64_t. */
#define TOTAL_LIMIT (UINT64_C(1) << 62)
/* Assumed device size for expandable segments if the device does not tell its size. */
#define UNKNOWN_DEVICE_TOTAL (UINT64_C(1) << 40)

struct block {
    uint64_t addr, size, requested;
    uint64_t gc_base;
    uint64_t made;       /* blocks created before this one */
    uint32_t prev, next; /* Neighbours in the segment; next also links unused records */
    uint32_t segment, pool, stream, lane;
    uint32_t uses; /* list of struct stream_use; NONE: empty */
    uint32_t next_deferred;
    uint32_t event_count; /* events that the freed block still waits for */
    bool live, allocated, mapped;
};

struct segment {
    uint64_t addr, size; /* bounds of the range, or of the reserved addresses */
    uint64_t page;       /* page size in bytes; 0: from cudaMalloc */
    uint64_t counter;    /* PyTorch's registration counter */
    uint32_t first_block;
    uint32_t ordinal;
    uint32_t lane;
    uint32_t next_free; /* links unused records */
    bool live;
};

/* A recorded use of a block by another stream. After the free: an event to wait for. */
struct stream_use {
    uint64_t event;
    uint32_t block, stream, next;
    bool in_capture; /* recorded while an open scope counted as a capture */
};

struct stream {
    uint64_t value;
    uint32_t queue_first, queue_last; /* stream_uses in the order of their events */
    uint32_t next_busy;               /* links streams that have a queue */
    bool is_busy;
    bool may_be_done; /* reported to have progressed */
};

/* The small or the large pool of an owner. */
struct block_pool {
    uint32_t lanes; /* tree of its lanes, by the value of their streams */
    uint64_t search_count;
};

/* A pool and a stream; a block stays in one lane all its life. */
struct lane {
    uint32_t free_root;     /* tree of free blocks by (size, tie) */
    uint32_t unmapped_root; /* tree of unmapped blocks by address */
    uint32_t pool, stream;
};

/* The default pool (index 0, always in use) or a private one; n has block pools 2n and 2n + 1. */
struct owner {
    struct dryi_pool_id id;
    unsigned flags; /* DRYI_POOL_.. */
    uint64_t use_count;
    uint64_t made; /* Owners created before this one; tells apart owners of equal id */
    uint64_t reserved_bytes; /* bytes of its segments and mapped pages */
    uint32_t figure;         /* index in t->figures */
    uint32_t segments;
    uint32_t prev,
        next; /* list of live owners, oldest first; next also links unused records */
    bool live;
};

/* Directs the requests of these streams to this owner. */
struct scope {
    uint32_t owner;
    struct dryi_stream_filter filter;
};

struct dryi_torch {
    struct dry_memory memory;
    struct dry_device device;
    struct dryi_torch_conf conf;
    const struct dryi_torch_rules *rules;
    struct dryi_place_observer observer;
    struct dry_stats stats;
    uint64_t driver_calls, events_recorded; /* not counted by PyTorch */
    uint64_t reserved_peak; /* bytes; highest peak before the last reset of peaks */
    struct dryi_place_figures figures; /* per owner, destroyed ones included */
    uint64_t device_total;
    uint64_t seed; /* seed of the priorities in trees */

    struct block *blocks;
    struct dryi_treap_node *nodes; /* parallel to blocks */
    size_t block_capacity, node_capacity;
    uint32_t block_count, free_block_slot, free_block_slots;

    struct segment *segments;
    size_t segment_capacity;
    uint32_t segment_slots, free_segment_slot;
    uint32_t segments_made;
    uint64_t next_counter;
    uint64_t made_count; /* blocks created so far */

    struct stream *streams;
    size_t stream_capacity;
    uint32_t stream_count, last_stream;
    struct dryi_intern stream_ids; /* value of a stream -> index */
    uint32_t busy_streams;         /* linked list */
    /* Blocks freed during a capture, or a scope that counts as one. */
    uint32_t deferred_first, deferred_last;
    uint32_t *progressed; /* streams reported to have progressed */
    size_t progressed_capacity;
    uint32_t progressed_count;
    bool progress_is_told;

    struct stream_use *uses;
    size_t use_capacity;
    uint32_t use_count, free_use;
    /* Key: block and stream; value: index in `uses`; for blocks in use. */
    struct dryi_map recorded;

    struct owner *owners;
    struct dryi_treap_node *owner_nodes; /* parallel to owners: the live ones, by id */
    size_t owner_capacity, owner_node_capacity;
    uint32_t owner_count, free_owner_slot, newest_owner, owners_by_id;
    struct block_pool *pools;
    size_t pool_capacity;
    uint32_t unused_owners; /* live owners without users: freeable */
    uint64_t owners_made;

    struct dryi_intern lane_ids; /* (pool, stream) -> index in lanes */
    struct lane *lanes;
    struct dryi_treap_node *lane_nodes; /* parallel to lanes */
    size_t lane_capacity, lane_node_capacity;
    /* Last lanes of large and of small requests; usually the next one's too. */
    uint32_t last_lanes[2];
    struct scope *scopes; /* outermost first */
    size_t scope_capacity;
    uint32_t scope_count;
    struct dryi_stream_filter *captures; /* outermost first */
    size_t capture_capacity;
    uint32_t capture_count;
    bool serves_on_oom; /* an owner was created with DRYI_POOL_USE_ON_OOM */

    uint64_t total_bytes; /* bytes from the device: segments and mapped pages */
    bool has_limit;
    uint64_t limit_bytes;
    /*
     * Limit on mapped bytes. PyTorch compares limit_bytes with requested sizes, so pages of
     * expandable segments may exceed it, but never this limit.
     */
    uint64_t mapped_limit_bytes;
    bool rejected; /* the current request was rejected by throw_on_cudamalloc_oom */
    /* First failure that kept the current request from freed memory; OK: none. */
    enum dry_status hindered;
};

/* A request in progress. */
struct request {
    uint64_t size;       /* bytes, as requested */
    uint64_t rounded;    /* bytes of its block */
    uint64_t alloc_size; /* bytes of a new segment for it; compared with limits */
    uint32_t stream, pool, lane;
    bool expandable; /* may use and grow expandable segments */
};

static inline bool
pool_is_small(uint32_t pool)
{
    return pool & 1;
}

static inline bool
block_is_split(const struct block *block)
{
    return block->prev != NONE || block->next != NONE;
}

static inline bool
block_is_expandable(const struct dryi_torch *t, const struct block *block)
{
    return t->segments[block->segment].page != 0;
}

/* Return the device's functions, and count the driver call that follows. */
static inline const struct dry_device_ops *
dryi_torch_driver(struct dryi_torch *t)
{
    t->driver_calls++;
    return t->device.ops;
}

static inline void
dryi_torch_stat_add(struct dry_stat *stat, int64_t amount)
{
    stat->current += amount;
    if (amount > 0) { /* Sums may wrap around: the number of calls is unbounded */
        stat->allocated = (int64_t)((uint64_t)stat->allocated + (uint64_t)amount);
        if (stat->current > stat->peak)
            stat->peak = stat->current;
    } else {
        stat->freed = (int64_t)((uint64_t)stat->freed - (uint64_t)amount);
    }
}

/* Do as dryi_torch_stat_add() for `all` and for the pool's kind. */
static inline void
dryi_torch_stat_change(struct dry_stat_array *stat, uint32_t pool, int64_t amount)
{
    dryi_torch_stat_add(&stat->all, amount);
    dryi_torch_stat_add(pool_is_small(pool) ? &stat->small_pool : &stat->large_pool,
                        amount);
    DRYI_ASSERT_SLOW(stat->small_pool.current >= 0 && stat->large_pool.current >= 0);
    DRYI_ASSERT_SLOW(stat->all.current ==
                     stat->small_pool.current + stat->large_pool.current);
}

/* Report an event on a block or range of a segment to the observer. */
static inline void
dryi_torch_tell(struct dryi_torch *t, enum dry_action action, uint32_t segment,
                uint64_t addr, uint64_t size)
{
    const struct segment *s = &t->segments[segment];
    DRYI_ASSERT_SLOW(s->live && addr - s->addr <= s->size &&
                     size <= s->size - (addr - s->addr));
    if (!t->observer.event)
        return;
    struct dryi_place_event event = {
        .action = action,
        .addr = addr,
        .size = size,
        .stream = t->streams[t->lanes[s->lane].stream].value,
        .pool = t->owners[t->lanes[s->lane].pool / 2].id,
        .segment = s->ordinal,
        .offset = addr - s->addr,
    };
    t->observer.event(t->observer.self, &event);
}

#endif
