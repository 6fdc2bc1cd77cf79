/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_NOUNS_H
#define DRYI_PLACE_PAGED_NOUNS_H

/*
 * The nouns of place/paged, one record each.
 *
 * A record names others by their index in a growable array, for arrays move when they grow. NONE is
 * no index. Free lists alone stay where they are: they are large.
 */

#include "base/inline.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/treap.h"
#include "place/forecast/forecast.h"
#include "place/paged/record/paged_conf.h"

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
    bool is_alone; /* a thread is inside that does not hold the place; for assertions */
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

#endif
