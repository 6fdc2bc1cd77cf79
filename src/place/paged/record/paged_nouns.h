/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_NOUNS_H
#define DRYI_PLACE_PAGED_NOUNS_H

/*
 * The nouns of place/paged, one record each.
 *
 * A record names another by its index in a growable array, for arrays move when they grow. NONE is
 * no index. A free list alone stays where it is, because it is large.
 */

#include "base/inline.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/treap.h"
#include "place/forecast/forecast.h"
#include "place/paged/record/paged_conf.h"

#define NONE UINT32_MAX
/* The index of no block, used if a test for NONE would cost: its record is there, and dead. */
#define NIL 0u

#define GRAIN_SHIFT 9
#define GRAIN (UINT64_C(1) << GRAIN_SHIFT)
#define REQUEST_LIMIT (UINT64_C(1) << 60)
/* No device has more. Without this limit, a number in a file could cost as many page records. */
#define RESERVED_LIMIT (UINT64_C(1) << 42)
/*
 * The work that one request does is bounded, by so many looks at records of one kind. A look costs
 * some 5 ns if the record is in the processor's cache, 50 to 100 ns if not.
 */
#define SCAN_MAX 16 /* blocks of a bin that a search for a block looks at */
#define LOOKS_MAX                                                                        \
    64 /* streams, lists, idle pools or old blocks that a bounded search looks at */
/*
 * Records that may be dropped are looked at in turns, so many for each record that is made. One would
 * be enough to drop records as fast as others come.
 */
#define LOOKS_FOR_ONE 4
#define DIVIDERS (NONE - 1) /* the list that dividers name */
/* Blocks in the stream cache of a list, at most: a flush looks at all of them, and stays short. */
#define CACHE_MAX 1024
#define PARKED_MAX 1024 /* parked blocks at most, for the same reason */
#define FLUSH_MAX 16    /* cached blocks coalesced for one request: about a microsecond */
/* Sizes that a stream cache of large blocks holds at once, at most. */
#define CACHE_LARGE_SIZES 256
/*
 * If less than 1/TIGHT_SHARE of a full device is free, a large request goes where it needs the
 * fewest pages, not to the first block that fits. The search takes a few microseconds.
 */
#define TIGHT_SHARE 4

/* 32 octaves of 32 bins hold up to 2^36 grains, more than RESERVED_LIMIT. */
#define OCTAVE_COUNT 32u
#define BIN_COUNT (OCTAVE_COUNT * 32u)

enum block_state {
    BLOCK_DEAD, /* a record without a block */
    BLOCK_HOLE,
    BLOCK_FREE,
    BLOCK_CACHED, /* free, stays whole for the next request of its size */
    BLOCK_PARKED, /* free, stays whole for its successor in the layout */
    BLOCK_USED,
    BLOCK_PENDING, /* freed, but uses by other streams are not complete */
    BLOCK_DIVIDER, /* no bytes: between two streams' blocks, while caches are shared */
};

/* How a block is found by the address where it begins. */
enum block_address {
    ADDRESS_UNKNOWN,  /* not at all: the caller names the block, or it is free */
    ADDRESS_BY_TABLE, /* registered, while the block is used and while it is cached */
    ADDRESS_BY_INDEX, /* by the index (paged_index.c), while the block is used */
};

struct block {
    uint64_t addr, size;
    uint64_t requested;  /* bytes, while the block is used or pending */
    uint64_t epoch;      /* of its stream, when the block was freed; 0: does not matter */
    uint32_t prev, next; /* in the segment; next also links dead records */
    /*
     * A used block with a ticket of the forecast has the ticket in bin_prev, and its successor in
     * bin_next. The successor is a step of the layout, or NONE, and stays while the block is
     * parked.
     */
    uint32_t bin_prev, bin_next; /* else in a bin; bin_next also on a stack */
    /* The list that the block is on, or will be on when it is freed; DIVIDERS: a divider. */
    uint32_t list;
    uint32_t segment;
    uint32_t uses; /* used: by recorded streams, linked; pending: count of incomplete */
    uint8_t state;
    bool has_ticket;
    uint8_t address; /* enum block_address */
};

/* Records without a block, linked by next. */
struct records {
    uint32_t first, count; /* first: NONE if there are none */
};

struct segment {
    uint64_t addr, size;
    /* For each page from addr: index in p->pages + 1, or 0 for none. NULL: no pages. */
    uint32_t *pages;
    size_t page_count;
    uint32_t first_block;
    uint32_t arena;
    uint32_t ordinal;
    uint32_t prev, next; /* in its arena, newest first; next also links dead segments */
    bool live;
};

enum free_list_kind { FREE_HOLES, FREE_SHARED, FREE_STREAM };

struct free_list {
    uint32_t octaves; /* a bit for each octave that has blocks */
    uint32_t bins[OCTAVE_COUNT];
    uint32_t heads[BIN_COUNT]; /* `end`: the bin is empty */
    uint32_t end;              /* ends a bin at both sides: a record that is no block's */
    uint32_t arena;
    uint32_t stream; /* FREE_STREAM: index; else NONE */
    enum free_list_kind kind;
    uint32_t *stacks; /* by stack: the newest block; NULL: there are no stacks */
    size_t stack_count;
    uint32_t *stack_bits; /* behind the stacks: which of them may have blocks */
    uint32_t *wanted;     /* behind the bits, if large: by stack, what was asked for */
    uint32_t stacked;     /* blocks on all stacks */
    bool is_small;
    bool is_cached;    /* is among the lists whose stacks are flushed */
    bool stays_cached; /* also after a flush: a cache may fill the stacks at any time */
    /* While its cache is shared: records for cuts with the cache alone. */
    bool has_records;
    struct records dead;
    uint32_t block_count; /* of this list, on it or not, without dividers */
    uint32_t prev, next;  /* in the arena */
    uint32_t prev_of_stream, next_of_stream;
    uint32_t prev_cached, next_cached;
};

/* Pool n has the arenas 2n, for large requests, and 2n + 1, for small ones. */
struct arena {
    uint32_t holes, shared; /* free lists */
    uint32_t lists;         /* the lists of streams, linked */
    uint32_t last_stream, last_list;
    uint32_t segments;
};

/* A private pool; pool 0 is the default pool. */
struct private_pool {
    struct dryi_pool_id id;
    uint64_t users, holds; /* holds: checkpoints; pages also stay while there are users */
    uint64_t made;         /* how many pools were made before this pool */
    unsigned flags;
    uint32_t figure; /* index in p->figures */
    bool live;
    uint32_t prev, next; /* in the pools without users, but 0; next also in dead pools */
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
    uint64_t epoch;               /* of frees from now on; the first is 1 */
    uint64_t freed;               /* the last epoch in which anything was freed */
    uint64_t marked;              /* the last epoch that has an event */
    uint64_t completed;           /* the last epoch that is complete */
    uint32_t first_use, last_use; /* events under way, oldest first */
    uint32_t uses;                /* these events, and uses recorded for blocks in use */
    uint32_t lists;               /* its free lists, linked; NONE: none */
    uint32_t orders;              /* struct order, linked */
    bool is_busy, may_be_complete;
    bool was_asked; /* for anything, since paged_stream.c last looked at the stream */
    bool has_cache;
};
_Static_assert(sizeof(struct stream) == 64, "a power of two: found by a shift");

/* An order: a stream comes behind `epoch` of the stream `on`. */
struct order {
    uint64_t epoch;
    uint32_t on, next;
};

/* An event under way, and the block that waits for the event, or NONE. */
struct use {
    uint64_t event, epoch;
    uint32_t block, stream, next;
    uint32_t older, newer; /* among the events of all streams */
};

struct paged_stat {
    int64_t current[2], peak[2], freed[2]; /* [0] large, [1] small */
    int64_t all_peak;
    int64_t base[2]; /* what reset_stats subtracts from what was allocated */
};

/* A stream cache itself counts the first LOCAL_STATS of stat_name while caches are shared. */
#define LOCAL_STATS 3

struct dryi_cache {
    struct dryi_paged *place;
    struct free_list *lists[2]; /* of its stream: large (NULL while not shared), small */
    uint32_t list_ids[2];
    uint32_t stream;
    struct dryi_cache *next; /* the next cache of the place */
    /* While shared: use, requests and changes of statistics since the last balance. */
    bool is_used;
    bool is_alone; /* a thread is inside that does not hold the place; for assertions */
    uint64_t requests;
    struct paged_stat local[LOCAL_STATS];
    char pad[DRYI_CACHE_LINE_PAD]; /* no line of the processor's cache holds two */
};

enum stat_name {
    STAT_ALLOCATION, /* the first three are counted locally, in this order */
    STAT_ALLOCATED_BYTES,
    STAT_REQUESTED_BYTES,
    STAT_PENDING, /* active is what is allocated or pending */
    STAT_PENDING_BYTES,
    STAT_RESERVED_BYTES,
    STAT_SEGMENT,
};
#define STAT_COUNT 7

/* Peaks of what was allocated or pending, at times when something was pending. */
struct active_peak {
    int64_t peak[2], all_peak;
};

#define LEAF_SHIFT 10u /* log2 of the stretches in a leaf of the index */
#define LEAF_COUNT (1u << LEAF_SHIFT)

/*
 * The index: where the large blocks of the default pool begin in its first segment. The begins of
 * two such blocks in use are further apart than the largest small block is long. So at most one
 * begins in a stretch of so many bytes.
 */
struct address_index {
    struct dryi_range range; /* of the segment; size 0: there is no index */
    unsigned shift;          /* log2 of the bytes in a stretch */
    uint32_t segment;
    /* LEAF_COUNT stretches in each: the block in use that began there last; NIL: none. */
    uint32_t **leaves; /* NULL leaf: no block is found there */
    size_t count;
};

#endif
