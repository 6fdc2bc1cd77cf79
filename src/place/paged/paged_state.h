/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_STATE_H
#define DRYI_PLACE_PAGED_STATE_H

/*
 * What place/paged is made of: its nouns, and what is asked of one record alone. What its files do
 * with them for each other stands in paged_inside.h.
 *
 * Everything is an index into a growable array, so that records may move; NONE is no index.
 * Free lists alone stay where they are, for they are large.
 */

#include "base/inline.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/treap.h"
#include "place/forecast/forecast.h"
#include "place/paged/paged.h"

#define NONE UINT32_MAX
#define NIL 0u /* the number of no block, where NONE would have to be asked for */

#define GRAIN_SHIFT 9
#define GRAIN (UINT64_C(1) << GRAIN_SHIFT)
#define REQUEST_LIMIT (UINT64_C(1) << 60)
/* No device has more; without this a number in a file could cost as many page records. */
#define RESERVED_LIMIT (UINT64_C(1) << 42)
#define SCAN_MAX 16         /* blocks of a bin looked at */
#define DIVIDERS (NONE - 1) /* the free list of dividers */
/* Blocks kept on the stream caches of a free list: a flush, which looks at all of them, stays short. */
#define CACHE_MAX 1024
#define PARKED_MAX 1024 /* blocks that wait for their successors, for the same reason */
#define FLUSH_MAX 16    /* of them, merged for one request: about a microsecond */
#define CACHE_LARGE_SIZES                                                                \
    256 /* that a stream cache of large blocks holds at once, at most */
/*
 * On a full device with less than this share of it free, large requests are placed by the
 * pages they need (a few microseconds), no longer by the best fit among free blocks.
 */
#define TIGHT_SHARE 4

/* 32 octaves of 32 bins: up to 2^36 grains, more than RESERVED_LIMIT. */
#define OCTAVE_COUNT 32u
#define BIN_COUNT (OCTAVE_COUNT * 32u)

enum block_state {
    BLOCK_DEAD, /* a record without a block */
    BLOCK_HOLE,
    BLOCK_FREE,
    BLOCK_CACHED, /* free, kept whole for the next request of its size */
    BLOCK_PARKED, /* free, kept whole for the request that the layout has there next */
    BLOCK_USED,
    BLOCK_PENDING, /* freed, other streams are not done with it */
    BLOCK_DIVIDER, /* no bytes: between blocks of two streams that share the place */
};

/* Whether anybody but us knows where a block begins. */
enum block_address {
    ADDRESS_UNKNOWN, /* who asked for it has to keep that, or it is free */
    ADDRESS_BY_TABLE, /* somebody keeps it, while the block is used and while it lies on a stream cache */
    ADDRESS_BY_INDEX, /* nobody has to: it is found (paged_index.c), while it is used */
};

struct block {
    uint64_t addr, size;
    uint64_t requested;          /* used and pending */
    uint64_t epoch;              /* of its stream, when it was freed; 0: of no interest */
    uint32_t prev, next;         /* in the segment; next also links dead records */
    uint32_t bin_prev, bin_next; /* free blocks and holes; bin_next: stream caches too */
    /*
     * In use with a ticket of the forecast, bin_prev is that, and bin_next the step of the layout that
     * is its successor, or NONE; while it waits for that one, bin_next still is.
     */
    uint32_t list; /* where it lies, or will when it is freed; of dividers DIVIDERS */
    uint32_t segment;
    uint32_t uses; /* recorded streams, a list; pending: how many are not done */
    uint8_t state;
    bool has_ticket;
    uint8_t address; /* enum block_address */
};

/* Records without a block, linked by next. */
struct records {
    uint32_t first, count; /* first: NONE where there are none */
};

struct segment {
    uint64_t addr, size;
    uint32_t *pages; /* by page from addr: index in pages + 1, 0: none; NULL: no pages */
    size_t page_count;
    uint32_t first_block;
    uint32_t arena;
    uint32_t ordinal;
    uint32_t prev, next; /* of its arena, newest first; next links dead ones, too */
    bool live;
};

enum free_list_kind { FREE_HOLES, FREE_SHARED, FREE_STREAM };

struct free_list {
    uint32_t octaves; /* bit: an octave with blocks */
    uint32_t bins[OCTAVE_COUNT];
    uint32_t heads[BIN_COUNT]; /* `end`: empty */
    uint32_t end; /* of lists, at both sides: the number of a record of no block */
    uint32_t arena;
    uint32_t stream; /* FREE_STREAM: index; else NONE */
    enum free_list_kind kind;
    uint32_t *stacks; /* stacks of blocks of one size, their newest ones; NULL: none */
    size_t stack_count;
    uint32_t *stack_bits; /* behind stream caches: which of them may have blocks */
    uint32_t *wanted;     /* of large ones, behind those: what was asked for, by stack */
    uint32_t stacked;     /* on all stacks */
    bool is_small;
    bool is_cached;    /* is among those whose stacks are flushed */
    bool stays_cached; /* and stays there: a stream cache may fill them at any time */
    /* While its stream cache is shared: records for what is cut there beside the place. */
    bool has_records;
    struct records dead;
    uint32_t block_count; /* of this free list, on it or not, but dividers */
    uint32_t prev, next;  /* of the arena */
    uint32_t prev_of_stream, next_of_stream;
    uint32_t prev_cached, next_cached;
};

/* Arenas 2n and 2n + 1 are those of pool n: large, small. */
struct arena {
    uint32_t holes, shared; /* free lists */
    uint32_t lists;         /* of streams, a list */
    uint32_t last_stream, last_list;
    uint32_t segments;
};

/* A private pool; number 0 is the default one. */
struct private_pool {
    struct dryi_pool_id id;
    uint64_t users, holds; /* checkpoints; its pages stay while it has users, too */
    uint64_t made;         /* how many pools were made before it */
    unsigned flags;
    uint32_t figure; /* of p->figures */
    bool live;
    uint32_t prev, next; /* of those nobody uses, without 0; next links dead ones, too */
};

struct scope {
    uint32_t pool;
    struct dryi_stream_filter filter;
};

struct page {
    uint64_t handle;
    uint32_t next_dead;
    bool was_mapped; /* a second mapping is a move */
};

struct stream {
    uint64_t value;
    uint64_t epoch;               /* of frees from now on; from 1 */
    uint64_t freed;               /* the last epoch in which anything was freed */
    uint64_t marked;              /* the last epoch that has an event */
    uint64_t completed;           /* the last epoch that is complete */
    uint32_t first_use, last_use; /* events under way, oldest first */
    uint32_t uses;                /* those, and what is recorded for blocks in use */
    uint32_t lists;               /* a list; NONE: none */
    uint32_t orders;              /* what it knows of others, a list */
    bool is_busy, may_be_complete;
    bool was_asked; /* for anything, since paged_recycle.c looked at it last */
    bool has_cache;
};
_Static_assert(sizeof(struct stream) == 64, "a power of two: found by a shift");

/* A stream comes behind this epoch of another one. */
struct order {
    uint64_t epoch;
    uint32_t on, next;
};

/* An event under way, and the block that waits for it, if one does. */
struct use {
    uint64_t event, epoch;
    uint32_t block, stream, next;
    uint32_t older, newer; /* of all streams */
};

struct paged_stat {
    int64_t current[2], peak[2], freed[2]; /* [0] large, [1] small */
    int64_t all_peak;
    int64_t base[2]; /* taken off what was allocated: reset_stats */
};

/* The first of stat_name: what a stream cache counts itself while it is used beside the place. */
#define LOCAL_STATS 3

struct dryi_cache {
    struct dryi_paged *place;
    struct free_list *lists[2]; /* of its stream: large, NULL while not shared; small */
    uint32_t list_ids[2];
    uint32_t stream;
    struct dryi_cache *next; /* of all of the place */
    /* While shared, since the last balance: what has changed, and the highest it was. */
    bool is_used;
    uint64_t requests;
    struct paged_stat local[LOCAL_STATS];
    char pad[DRYI_CACHE_LINE_PAD]; /* no line of the cache holds two */
};

enum stat_name {
    STAT_ALLOCATION, /* the first three are those of a local statistic, in this order */
    STAT_ALLOCATED_BYTES,
    STAT_REQUESTED_BYTES,
    STAT_PENDING, /* active is what is allocated, and this */
    STAT_PENDING_BYTES,
    STAT_RESERVED_BYTES,
    STAT_SEGMENT,
};
#define STAT_COUNT 7

/* Peaks of what is allocated or pending, at moments when something was pending. */
struct active_peak {
    int64_t peak[2], all_peak;
};

#define LEVEL_COUNT 6u /* of 64 each: 2^36 pages */

/*
 * The segment a layout lies in, and by page the block that begins last in it, with bits that lead
 * to the nearest page below where one does: so the block at an address is found at once.
 */
struct layout {
    uint32_t segment; /* NONE: there is no layout */
    uint32_t *begins;
    size_t page_count;
    uint64_t *bits;  /* of all levels */
    uint32_t period; /* requests */
    uint32_t streams;
    uint32_t handed; /* places that go from stream to stream, a period */
    uint32_t waits;  /* put in since that request */
    uint64_t waits_since;
    size_t bit_words, levels[LEVEL_COUNT];
    uint32_t *parked;       /* by step: the block that waits for it, NONE */
    uint64_t *parked_steps; /* a bit each: there is one */
    uint32_t step_count, parked_count;
};

#define LEAF_SHIFT 10u /* of a index: stretches of a leaf, as a power of two */
#define LEAF_COUNT (1u << LEAF_SHIFT)

/*
 * Where large blocks of the default pool begin, in its first segment. Two of them in use are further
 * apart than the largest small block is long: in a stretch of so many bytes at most one begins.
 */
struct address_index {
    struct dryi_range range; /* the segment's; of size 0: there is none */
    unsigned shift;          /* bytes of a stretch, as a power of two */
    uint32_t segment;
    /* By stretch, LEAF_COUNT in each: which block in use began there last; NIL: none. */
    uint32_t **leaves; /* NULL: nothing is found there */
    size_t count;
};

/* A layout on its way. */
struct packing {
    struct dryi_packing_job *job;
    enum { JOB_NONE, JOB_WAITS, JOB_OUT, JOB_IS_BACK } state;
    uint32_t segment, ordinal;
};

struct dryi_paged {
    struct dry_memory memory;
    struct dry_device device;
    struct dryi_paged_conf conf;
    struct dryi_place_observer observer;
    uint64_t page_bytes; /* 0: segments are ranges */
    uint64_t page_mask;  /* page_bytes - 1 */
    unsigned page_shift;
    uint64_t device_total;
    /* With these, all that requests at stream caches read beside what is their own. */
    struct block *blocks; /* in block_memory, at a multiple of their size */
    struct stream *streams;
    struct address_index index;
    bool is_shared; /* several stream caches are used at once */
    int64_t
        local_max; /* bytes that one may have taken, more than it put, until a balance */
    char pad[DRYI_CACHE_LINE_PAD];

    uint64_t limit_bytes;
    size_t block_capacity;
    unsigned char *block_memory;
    size_t block_bytes;
    uint32_t block_count;
    struct records dead;
    uint32_t divider_count, first_divider; /* linked by bin_next and bin_prev */
    uint64_t dividers_request;             /* when they were looked at last */
    bool
        is_beside; /* a cut or a merge with the place goes on, others are at their stream caches */

    struct free_list **lists; /* NULL: one that is gone */
    size_t list_capacity;
    uint32_t list_count;
    uint32_t *gone_lists; /* the places of those, a stack with room for all */
    size_t gone_list_capacity;
    uint32_t gone_list_count, list_turn; /* the one that was looked at last */
    struct dryi_map list_ids;            /* arena and stream -> free list */

    struct arena *arenas;
    size_t arena_capacity;
    uint32_t arena_count; /* of pools, and of one that could not be made whole */
    struct private_pool *pools;
    size_t pool_capacity;
    struct dryi_treap_node *pool_nodes; /* parallel to pools: those that live, by id */
    size_t pool_node_capacity;
    uint32_t pool_count, dead_pool, pools_by_id;
    /* Pools that nobody uses, in turns; opened: since those were looked at. */
    uint32_t first_idle, last_idle, idle_count, opened;
    struct scope *scopes;
    size_t scope_capacity, scope_count;
    struct dryi_stream_filter *captures;
    size_t capture_capacity, capture_count;

    struct segment *segments;
    size_t segment_capacity;
    uint32_t segment_slots, dead_segment, segments_made;

    struct page *pages;
    size_t page_capacity;
    uint32_t page_slots, dead_page;
    uint32_t *stock; /* pages under no address */
    size_t stock_capacity;
    uint32_t stock_count, page_count; /* page_count: created and not released */
    uint64_t *handles;                /* of one call */
    size_t handle_capacity;
    struct run_part *run_parts; /* of one search before an OOM */
    size_t run_part_capacity;

    size_t stream_capacity;
    uint32_t stream_count, last_stream;
    uint32_t streams_kept; /* from so many on records are taken again */
    uint32_t stream_turn;  /* the one that was looked at last for that */
    uint64_t streams_made, pools_made, next_mark;
    struct dryi_map stream_ids; /* value -> stream */
    uint32_t *busy; /* streams with events under way, and some whose queue ran dry */
    size_t busy_capacity;
    uint32_t busy_count, busy_turn;
    uint32_t *progressed;
    size_t progressed_capacity;
    uint32_t progressed_count;
    bool progress_is_told;
    struct dryi_map order_ids; /* stream and other -> order */
    struct order *orders;
    size_t order_capacity;
    uint32_t order_count, dead_order;

    struct use *uses;
    size_t use_capacity;
    uint32_t use_count, dead_use;
    uint32_t waiting_uses;           /* of them, those that a block waits for */
    uint32_t oldest_use, newest_use; /* of those under way */
    struct dryi_map recorded;        /* block and stream -> use, of blocks in use */
    uint32_t first_held, last_held;  /* frees held back by captures, by bin_next */
    struct paged_stat stats[STAT_COUNT];
    struct dryi_place_figures figures;  /* of pools, and of those that are gone */
    struct active_peak active_peaks[2]; /* blocks, bytes */
    int64_t device_allocs, device_frees, retries, ooms, syncs;
    struct dryi_place_counters counters;

    struct dryi_forecast *forecast; /* NULL: nothing is packed */
    struct layout layout;
    struct packing packing;
    struct dryi_paged_call wants_job;
    uint64_t layout_earliest; /* no layout before so many requests */
    uint64_t layout_rest;     /* requests between two layouts that were of no use */
    uint64_t layout_taken;    /* the forecast taken before the last one */

    uint64_t requests;
    uint64_t gathered_request; /* the last time that all was waited for */
    uint32_t first_cached;     /* free lists that may have blocks on stream caches */
    struct dryi_cache *caches; /* those that were asked for */
    struct dryi_cache_watcher cache_watcher;
    bool is_full; /* the device or the limit refused a page, and none went back */
    /* Of this request: the first failure that kept it from what was freed; OK: none did. */
    enum dry_status hindered;
};

/* A request under way. */
struct request {
    uint64_t size, bytes; /* as asked, and of its block */
    uint32_t stream, arena, list;
    uint32_t ticket;    /* of the forecast, if they were told */
    uint32_t successor; /* a step of the layout, NONE */
    bool has_ticket;
    bool is_at_cache; /* who asks may know the block's address, and will be told if so */
};

/*
 * A block of a run, free ones and holes in a row (paged_spot.c), and what lies before it there.
 */
struct run_part {
    uint32_t block;
    bool is_hole;
    uint64_t begin, end;
    /* What counts: all of a hole, of a free block the whole pages that could lie elsewhere. */
    uint64_t lo, hi;
    uint64_t fresh, movable; /* bytes of these, of the parts before */
};

/* Where a request could lie if pages came under it. */
struct spot {
    uint32_t block; /* that holds addr */
    uint64_t addr;
    uint64_t fresh; /* pages to be mapped */
    uint64_t cost;  /* and those under it that could have gone elsewhere */
    unsigned gaps;  /* to its neighbours: 0 to 2; the bytes of one are hard to use */
    uint64_t slack; /* free bytes that remain on its pages */
};

/* Of the block for a request of so many. */
static inline uint64_t
bytes_of(uint64_t size)
{
    return (size + GRAIN - 1) & ~(GRAIN - 1);
}

static inline bool
arena_is_small(uint32_t arena)
{
    return arena & 1;
}

static inline uint64_t
page_floor(const struct dryi_paged *p, uint64_t addr)
{
    return addr & ~p->page_mask;
}

static inline uint64_t
page_ceil(const struct dryi_paged *p, uint64_t addr)
{
    return (addr + p->page_mask) & ~p->page_mask;
}

static inline uint64_t
block_end(const struct block *b)
{
    return b->addr + b->size;
}

/*
 * While stream caches are shared, a block is changed by whoever has the stream cache of its free list. Of another
 * stream cache's nothing may be asked but its free list; paged_divider.c says whose the links are. What a
 * free list or a link says is there before it says so.
 */
static inline uint32_t
block_list_beside(const struct block *b)
{
    return __atomic_load_n(&b->list, __ATOMIC_ACQUIRE);
}

static inline void
block_set_list(struct block *b, uint32_t list)
{
    __atomic_store_n(&b->list, list, __ATOMIC_RELEASE);
}

/* Of `prev` and `next`. */
static inline uint32_t
link_beside(const uint32_t *link)
{
    return __atomic_load_n(link, __ATOMIC_ACQUIRE);
}

static inline void
block_set_prev(struct block *b, uint32_t prev)
{
    __atomic_store_n(&b->prev, prev, __ATOMIC_RELEASE);
}

static inline void
block_set_next(struct block *b, uint32_t next)
{
    __atomic_store_n(&b->next, next, __ATOMIC_RELEASE);
}

/* Else gcc 12 takes a function that only prefetches for one without effect, and leaves it out. */
DRYI_ALWAYS_INLINE static inline void
prefetch_block(const struct dryi_paged *p, uint32_t block)
{
    if (block != NONE)
        __builtin_prefetch(&p->blocks[block]);
}

#endif
