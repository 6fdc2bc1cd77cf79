/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_TORCH_STATE_H
#define DRYI_PLACE_TORCH_STATE_H

/*
 * The nouns of place/torch, and what is asked, counted and told of them. Each file has its
 * functions in a header of its name:
 *
 *     torch            requests, the ladder of retries
 *     torch_pool       streams, pools, lanes
 *     torch_block      free sets, split, merge
 *     torch_segment    ranges from the device
 *     torch_stream     frees, and what they wait for
 *     torch_release    giving back
 *     torch_checkpoint private pools that go back to a former layout
 *     torch_layout.c   walk, restore, check
 *
 * Everything is an index into a growable array, so that records may move; NONE is no index.
 */

#include "base/assert.h"
#include "base/bits.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/treap.h"
#include "place/torch/torch.h"

#define NONE UINT32_MAX

#define BLOCK_SIZE_MIN UINT64_C(512)
#define SMALL_SIZE_MAX DRYI_MIB      /* rounded requests up to here: the small pool */
#define SMALL_SEGMENT (2 * DRYI_MIB) /* a cudaMalloc, or a page, of the small pool */
#define LARGE_REQUEST_MIN (10 * DRYI_MIB) /* from here a request gets its own segment */
#define LARGE_ROUND (2 * DRYI_MIB)
#define LARGE_SPLIT_REST DRYI_MIB   /* a large block is split if more than this remains */
#define FIXED_SLACK (20 * DRYI_MIB) /* oversize slack before 2.6 */
#define REQUEST_LIMIT (UINT64_C(1) << 60)
#define TOTAL_LIMIT (UINT64_C(1) << 62) /* of all segments: statistics are int64_t */
/* Address space of an expandable segment where the device's size is unknown. */
#define UNKNOWN_DEVICE_TOTAL (UINT64_C(1) << 40)

struct block {
    uint64_t addr, size, requested;
    uint64_t gc_base;
    uint64_t made;       /* how many blocks were made before it */
    uint32_t prev, next; /* in the segment; next also links free slots */
    uint32_t segment, pool, stream, lane;
    uint32_t uses; /* recorded streams, a list of struct stream_use */
    uint32_t next_deferred;
    uint32_t event_count; /* events still to pass */
    bool live, allocated, mapped;
};

struct segment {
    uint64_t addr, size; /* of the range or of the reserved addresses */
    uint64_t page;       /* 0: from cudaMalloc */
    uint64_t counter;    /* PyTorch's registration counter */
    uint32_t first_block;
    uint32_t ordinal;
    uint32_t lane;
    uint32_t next_free; /* links free slots */
    bool live;
};

/* One stream that uses a block beside its own; from the free on, one event to wait for. */
struct stream_use {
    uint64_t event;
    uint32_t block, stream, next;
    bool in_capture; /* recorded where an open scope counts as a capture */
};

struct stream {
    uint64_t value;
    uint32_t queue_first, queue_last; /* stream_uses in the order of their events */
    uint32_t next_busy;               /* list of streams with a queue */
    bool is_busy;
    bool may_be_done; /* told to have progressed */
};

/* One size class of one (private or default) pool. */
struct block_pool {
    uint32_t lanes; /* a tree of its lanes, by the value of their streams */
    uint64_t search_count;
};

/* A pool and a stream: where a block lives and dies. */
struct lane {
    uint32_t free_root;     /* free blocks by (size, tie) */
    uint32_t unmapped_root; /* unmapped blocks by address */
    uint32_t pool, stream;
};

/* Number 0 is the default pool, for ever in use. Its block pools are 2n and 2n + 1. */
struct owner {
    struct dryi_pool_id id;
    unsigned flags; /* DRYI_POOL_... */
    uint64_t use_count;
    uint64_t made;           /* how many owners were made before it */
    uint64_t reserved_bytes; /* of its segments and mapped pages */
    uint32_t figure;         /* of t->figures */
    uint32_t segments;
    uint32_t prev,
        next; /* of those that live, the oldest first; next links free records */
    bool live;
};

/* Requests of these streams go to this owner. */
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
    uint64_t driver_calls, events_recorded; /* which PyTorch does not count */
    uint64_t reserved_peak;                 /* before the peaks were last reset */
    struct dryi_place_figures figures;      /* of owners, and of those that are gone */
    uint64_t device_total;
    uint64_t seed; /* of the priorities in trees */

    struct block *blocks;
    struct dryi_treap_node *nodes; /* parallel to blocks */
    size_t block_capacity, node_capacity;
    uint32_t block_count, free_block_slot, free_block_slots;

    struct segment *segments;
    size_t segment_capacity;
    uint32_t segment_slots, free_segment_slot;
    uint32_t segments_made;
    uint64_t next_counter;
    uint64_t made_count; /* blocks ever made */

    struct stream *streams;
    size_t stream_capacity;
    uint32_t stream_count, last_stream;
    struct dryi_intern stream_ids;          /* value -> index */
    uint32_t busy_streams;                  /* list */
    uint32_t deferred_first, deferred_last; /* blocks freed in what counts as a capture */
    uint32_t *progressed;                   /* streams told to have progressed */
    size_t progressed_capacity;
    uint32_t progressed_count;
    bool progress_is_told;

    struct stream_use *uses;
    size_t use_capacity;
    uint32_t use_count, free_use;
    struct dryi_map recorded; /* block and stream -> the use, while the block is in use */

    struct owner *owners;
    struct dryi_treap_node *owner_nodes; /* parallel to owners: those that live, by id */
    size_t owner_capacity, owner_node_capacity;
    uint32_t owner_count, free_owner_slot, newest_owner, owners_by_id;
    struct block_pool *pools;
    size_t pool_capacity;
    uint32_t unused_owners; /* live and without users: freeable */
    uint64_t owners_made;

    struct dryi_intern lane_ids; /* (pool, stream) -> index in lanes */
    struct lane *lanes;
    struct dryi_treap_node *lane_nodes; /* parallel to lanes */
    size_t lane_capacity, lane_node_capacity;
    uint32_t last_lanes[2]; /* of the large and the small pools: mostly asked again */
    struct scope *scopes;   /* outermost first */
    size_t scope_capacity;
    uint32_t scope_count;
    struct dryi_stream_filter *captures; /* outermost first */
    size_t capture_capacity;
    uint32_t capture_count;
    bool serves_on_oom; /* some owner was made with DRYI_POOL_USE_ON_OOM */

    uint64_t total_bytes; /* from the device: segments and mapped pages */
    bool has_limit;
    uint64_t limit_bytes;
    /* Pages of expandable segments go beyond limit_bytes, which PyTorch holds against what is
     * asked; beyond this nothing goes. */
    uint64_t mapped_limit_bytes;
    bool rejected; /* the request under way broke throw_on_cudamalloc_oom */
    /* The first failure that kept that request from what was freed; OK: none did. */
    enum dry_status hindered;
};

/* A request under way. */
struct request {
    uint64_t size;       /* as asked */
    uint64_t rounded;    /* the size of its block */
    uint64_t alloc_size; /* of a segment for it, and for limits */
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

/* The device is about to be called. */
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
    if (amount > 0) { /* the sums may wrap: nothing bounds how often it is done */
        stat->allocated = (int64_t)((uint64_t)stat->allocated + (uint64_t)amount);
        if (stat->current > stat->peak)
            stat->peak = stat->current;
    } else {
        stat->freed = (int64_t)((uint64_t)stat->freed - (uint64_t)amount);
    }
}

/* The same for the array: `all` and the pool's kind. */
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

/* Tell the observer of something about this block or range of a segment. */
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
