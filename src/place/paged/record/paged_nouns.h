/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_NOUNS_H
#define DRYI_PLACE_PAGED_NOUNS_H

/*
 * The data structures of place/paged, one struct each.
 *
 * Records refer to each other by their indices in growable arrays, because an array moves when it
 * grows. NONE is never an index. Only free lists are allocated one by one, because a free list is
 * large.
 */

#include "base/inline.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/treap.h"
#include "place/forecast/forecast.h"
#include "place/paged/record/paged_conf.h"

#define NONE UINT32_MAX
/*
 * Index of a block record that is always dead. Used instead of NONE where the record is read
 * without a test of the index first.
 */
#define NIL 0u

#define GRAIN_SHIFT 9
#define GRAIN (UINT64_C(1) << GRAIN_SHIFT)
#define REQUEST_LIMIT (UINT64_C(1) << 60)
/* 4 TiB, more than any device has. Bounds the page records that a number in a file can cause. */
#define RESERVED_LIMIT (UINT64_C(1) << 42)
/*
 * Limits on the records that one request visits, by kind. A visit costs about 5 ns if the record is
 * in the processor's cache, 50 to 100 ns if not.
 */
#define SCAN_MAX 16 /* blocks of one bin that a search visits */
#define VISITS_MAX                                                                       \
    64 /* streams, lists, idle pools or old blocks that one search visits at most */
/*
 * Each creation of a record also visits this number of existing records, in turns, and drops unused
 * ones. A value of 1 would already drop records as fast as others are created.
 */
#define VISITS_PER_RECORD 4
#define DIVIDERS (NONE - 1) /* the `list` of a divider record */
/* Maximum number of cached blocks per free list, so that a flush, which visits all, stays short. */
#define CACHE_MAX 1024
/* Maximum number of parked blocks, so that unparking all stays short. */
#define PARKED_MAX 1024
#define FLUSH_MAX 16 /* cached blocks coalesced for one request; takes about 1 us */
/* Maximum number of different sizes in a stream cache of large blocks. */
#define CACHE_LARGE_SIZES 256
/*
 * Below 1/TIGHT_SHARE free on a full device, a large request takes the range that needs the fewest
 * pages instead of the first fit. This search takes a few microseconds.
 */
#define TIGHT_SHARE 4

/* 32 octaves of 32 bins cover 2^36 grains, more than RESERVED_LIMIT. */
#define OCTAVE_COUNT 32u
#define BIN_COUNT (OCTAVE_COUNT * 32u)

enum block_state {
    BLOCK_DEAD, /* an unused record */
    BLOCK_HOLE,
    BLOCK_FREE,
    BLOCK_CACHED, /* free, but kept whole for the next request of its size */
    BLOCK_PARKED, /* free, but kept whole for its successor in the layout */
    BLOCK_USED,
    BLOCK_PENDING, /* freed, but other streams may still use the memory */
    BLOCK_DIVIDER, /* 0 bytes; separates blocks of two streams while caches are shared */
};

/* How a block is found by its first address. */
enum block_address {
    ADDRESS_UNKNOWN,  /* not found: the caller passes the handle, or the block is free */
    ADDRESS_BY_TABLE, /* the caller's table has it while the block is used or cached */
    ADDRESS_BY_INDEX, /* paged_index.c has it while the block is used */
};

struct block {
    uint64_t addr, size;
    uint64_t requested; /* bytes; valid while used or pending */
    uint64_t epoch;     /* epoch of its stream at the free; 0: complete for all streams */
    uint32_t prev, next; /* neighbours in the segment; next also links dead records */
    /*
     * Links in a bin; bin_next also links a stack. In a used block with a forecast ticket, bin_prev
     * is the ticket and bin_next the successor. The successor is a step of the layout or NONE, and
     * stays valid while the block is parked.
     */
    uint32_t bin_prev, bin_next;
    /* The free list that the block is on, or will be on when freed; DIVIDERS: a divider. */
    uint32_t list;
    uint32_t segment;
    /* Used: first recorded stream use. Pending: number of incomplete uses. */
    uint32_t uses;
    uint8_t state;
    bool has_ticket;
    uint8_t address; /* enum block_address */
};

/* A stack of unused block records, linked by `next`. */
struct records {
    uint32_t first, count; /* first: NONE if empty */
};

struct segment {
    uint64_t addr, size;
    /* Per page: index in p->pages + 1, or 0 if unmapped. NULL: a device without pages. */
    uint32_t *pages;
    size_t page_count;
    uint32_t first_block;
    uint32_t arena;
    uint32_t ordinal;
    uint32_t prev, next; /* list of the arena, newest first; next also links dead ones */
    bool live;
};

enum free_list_kind { FREE_HOLES, FREE_SHARED, FREE_STREAM };

struct free_list {
    uint32_t octaves; /* bit per octave: the octave has blocks */
    uint32_t bins[OCTAVE_COUNT];
    uint32_t heads[BIN_COUNT]; /* first block of the bin; `end`: the bin is empty */
    uint32_t end;              /* sentinel record at both ends of all bins of this list */
    uint32_t arena;
    uint32_t stream; /* FREE_STREAM: index in p->streams; else NONE */
    enum free_list_kind kind;
    uint32_t *stacks; /* newest cached block of each size. NULL: no stacks */
    size_t stack_count;
    /* After the stacks in the same array. Bit clear: the stack is empty. */
    uint32_t *stack_bits;
    /* After the bits, large lists only: size last requested per stack, see cache_wanted_again(). */
    uint32_t *wanted;
    uint32_t stacked; /* blocks on all stacks */
    bool is_small;
    bool is_cached; /* The list is in the chain from p->first_cached */
    /* Stays in that chain after a flush: a shared cache can fill the stacks at any time. */
    bool stays_cached;
    /*
     * The list keeps its own spare records, so that a thread can cut with the cache alone. True
     * while its cache is shared.
     */
    bool has_records;
    struct records dead;
    /* Blocks whose `list` is this list, listed or not; no dividers. */
    uint32_t block_count;
    uint32_t prev, next; /* links of the arena's lists */
    uint32_t prev_of_stream, next_of_stream;
    uint32_t prev_cached, next_cached;
};

/* Pool n has two arenas: 2n for large requests, 2n + 1 for small ones. */
struct arena {
    uint32_t holes, shared; /* indices of the two free lists that each arena has */
    uint32_t lists;         /* first of the streams' lists */
    uint32_t last_stream, last_list;
    uint32_t segments;
};

/* A private pool; index 0 is the default pool. */
struct private_pool {
    struct dryi_pool_id id;
    /* holds: by checkpoints. Pages cannot move while held and used. */
    uint64_t users, holds;
    uint64_t made; /* pools created before this pool; tells apart pools of equal id */
    unsigned flags;
    uint32_t figure; /* index in p->figures */
    bool live;
    /* Among idle pools (without users) except pool 0; next also links dead pools. */
    uint32_t prev, next;
};

struct scope {
    uint32_t pool;
    struct dryi_stream_filter filter;
};

struct page {
    uint64_t handle;
    uint32_t next_dead;
    bool was_mapped; /* mapped before: another mapping counts as a move */
};

struct stream {
    uint64_t value;
    uint64_t epoch;               /* epoch of the next free; begins at 1 */
    uint64_t freed;               /* last epoch in which a block was freed */
    uint64_t marked;              /* last epoch that ends with an event */
    uint64_t completed;           /* last epoch that is complete */
    uint32_t first_use, last_use; /* queue of its pending events, oldest first */
    uint32_t uses;   /* pending events plus uses recorded for blocks in use */
    uint32_t lists;  /* first of its free lists; NONE: none */
    uint32_t orders; /* first of its struct orders; NONE: none */
    bool is_busy, may_be_complete;
    /* The stream had a request since paged_stream.c last visited the record. */
    bool was_asked;
    bool has_cache;
};
_Static_assert(sizeof(struct stream) == 64, "a power of two: found by a shift");

/* Ordering between streams: all work of a stream comes after `epoch` of the stream `on`. */
struct order {
    uint64_t epoch;
    uint32_t on, next;
};

/* A pending event, and the block that waits for the event, or NONE. */
struct use {
    uint64_t event, epoch;
    uint32_t block, stream, next;
    uint32_t older, newer; /* links of the pending events of all streams */
};

struct paged_stat {
    int64_t current[2], peak[2], freed[2]; /* [0] large, [1] small requests */
    int64_t all_peak;
    int64_t base[2]; /* subtracted from the allocated sum: its value at reset_stats */
};

/* The first LOCAL_STATS of stat_name, which a shared cache counts itself until balance. */
#define LOCAL_STATS 3

struct dryi_cache {
    struct dryi_paged *place;
    struct free_list *lists[2]; /* large (NULL while not shared), small */
    uint32_t list_ids[2];
    uint32_t stream;
    struct dryi_cache *next; /* next cache of the place */
    /* Counted since the last balance, while shared. */
    bool is_used;
    /* A thread uses the cache without holding the place; for assertions only. */
    bool is_alone;
    uint64_t requests;
    struct paged_stat local[LOCAL_STATS];
    /* Keeps two caches out of one cache line of the processor. */
    char pad[DRYI_CACHE_LINE_PAD];
};

enum stat_name {
    STAT_ALLOCATION, /* The first LOCAL_STATS, in this order, are counted per cache */
    STAT_ALLOCATED_BYTES,
    STAT_REQUESTED_BYTES,
    STAT_PENDING, /* PyTorch's `active` is allocated plus pending */
    STAT_PENDING_BYTES,
    STAT_RESERVED_BYTES,
    STAT_SEGMENT,
};
#define STAT_COUNT 7

/* Peaks of allocated plus pending, updated only while blocks are pending. */
struct active_peak {
    int64_t peak[2], all_peak;
};

#define LEAF_SHIFT 10u /* log2 of the stretches per leaf of the index */
#define LEAF_COUNT (1u << LEAF_SHIFT)

/*
 * The address index: where large blocks of the default pool's first segment begin. A stretch is a
 * range of 2^shift bytes, no longer than the largest small block. So at most one large block in use
 * begins in a stretch.
 */
struct address_index {
    struct dryi_range range; /* the segment's range; size 0: no index */
    unsigned shift;          /* log2 of the bytes per stretch */
    uint32_t segment;
    /* Per leaf LEAF_COUNT stretches: the block in use that last began there; NIL: none. */
    uint32_t **leaves; /* NULL leaf: out of memory, or never mapped */
    size_t count;
};

#endif
