/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_STATE_H
#define DRYI_PLACE_PAGED_STATE_H

/* The state of a place and of one request, and functions that read or set a single record. */

#include "place/paged/record/paged_nouns.h"
#include "place/paged/record/paged_period.h"

struct dryi_paged {
    struct dry_memory memory;
    struct dry_device device;
    struct dryi_paged_conf conf;
    struct dryi_place_observer observer;
    uint64_t page_bytes; /* 0: the device has no pages; a segment is one range */
    uint64_t page_mask;  /* page_bytes - 1 */
    unsigned page_shift;
    uint64_t device_total;
    /* A request with only a stream cache reads the fields down to `pad`, and its own records. */
    struct block *blocks; /* in block_memory, aligned to the size of a record */
    struct stream *streams;
    struct address_index index;
    bool is_shared; /* several threads can use stream caches at once */
    /* Bytes a cache may take, net of puts, before the cache needs a balance. */
    int64_t local_max;
    char pad[DRYI_CACHE_LINE_PAD];

    uint64_t limit_bytes;
    size_t block_capacity;
    unsigned char *block_memory;
    size_t block_bytes;
    uint32_t block_count;
    struct records dead;
    /* List of dividers, linked by bin_next and bin_prev. */
    uint32_t divider_count, first_divider;
    uint64_t dividers_request; /* p->requests at the last visit to the dividers */
    /* A cut or a merge holds the place while other threads use their caches. */
    bool is_beside;

    struct free_list **lists; /* NULL: the list was dropped */
    size_t list_capacity;
    uint32_t list_count;
    /* Stack of free indices in `lists`; its capacity suffices for all. */
    uint32_t *gone_lists;
    size_t gone_list_capacity;
    uint32_t gone_list_count, list_turn; /* list_turn: the list visited last */
    struct dryi_map list_ids; /* key: arena and stream; value: index in `lists` */

    struct arena *arenas;
    size_t arena_capacity;
    uint32_t arena_count; /* two per pool, and those of a half-made pool */
    uint32_t dead_pool_count;
    struct private_pool *pools;
    size_t pool_capacity;
    struct dryi_treap_node *pool_nodes; /* parallel to pools: the live pools, by id */
    size_t pool_node_capacity;
    uint32_t pool_count, dead_pool, pools_by_id;
    /* Pools without users, visited in turns. opened: pools opened since the last visit. */
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
    uint32_t *stock; /* unmapped pages */
    size_t stock_capacity;
    uint32_t stock_count, page_count; /* page_count: created and not released */
    uint64_t *handles;                /* scratch array for one device call */
    size_t handle_capacity;
    struct run_part *run_parts; /* scratch array for one search before an OOM */
    size_t run_part_capacity;

    size_t stream_capacity;
    uint32_t stream_count, last_stream;
    uint32_t streams_kept; /* stream records above this count are recycled */
    uint32_t stream_turn;  /* the record visited last for recycling */
    uint64_t streams_made, pools_made, next_mark;
    struct dryi_map stream_ids; /* key: value of a stream; value: index in `streams` */
    uint32_t *busy; /* streams with pending events; a stream leaves the array late */
    size_t busy_capacity;
    uint32_t busy_count, busy_turn;
    uint32_t *progressed;
    size_t progressed_capacity;
    uint32_t progressed_count;
    bool progress_is_told;
    struct dryi_map order_ids; /* key: both streams; value: index in `orders` */
    struct order *orders;
    size_t order_capacity;
    uint32_t order_count, dead_order;

    /* Called when all uses of a pending block are complete (paged_free.c). */
    void (*completed)(struct dryi_paged *p, uint32_t block);
    struct use *uses;
    size_t use_capacity;
    uint32_t use_count, dead_use;
    uint32_t waiting_uses;           /* uses that a pending block waits for */
    uint32_t oldest_use, newest_use; /* ends of the list of pending uses of all streams */
    /* Key: block and stream; value: index in `uses`; for blocks in use. */
    struct dryi_map recorded;
    uint32_t first_held, last_held; /* frees deferred by captures, linked by bin_next */
    struct paged_stat stats[STAT_COUNT];
    struct dryi_place_figures figures;  /* per pool, destroyed pools included */
    struct active_peak active_peaks[2]; /* [0] blocks, [1] bytes */
    int64_t device_allocs, device_frees, retries, ooms, syncs;
    struct dry_pool_counters counters;

    struct dryi_forecast *forecast; /* NULL: the forecast is off */
    struct layout layout;
    struct packing packing;
    struct dryi_paged_call wants_job;
    /* p->requests must reach this value before the next layout. */
    uint64_t layout_earliest;
    /* Requests to wait before the next layout; doubles after a useless layout. */
    uint64_t layout_rest;
    uint64_t layout_taken; /* hints taken before the last layout */

    uint64_t requests;
    uint64_t gathered_request; /* p->requests when a gather last waited for all streams */
    uint32_t first_cached;     /* lists that may have cached blocks, linked */
    struct dryi_cache *caches; /* all caches of the place */
    struct dryi_cache_watcher cache_watcher;
    /* Pages moved or released although the device had free memory: see dryi_paged_bought(). */
    uint64_t rent;
    /* The device or the limit refused a page, and no page was released since. */
    bool is_full;
    /* First failure that kept this request from using freed memory; OK: none. */
    enum dry_status hindered;
};

/*
 * A thread holds one cache; one cache and the place, while others use their caches; or the place
 * and all caches. A function that crosses files asserts what it requires.
 */
enum access { ACCESS_CACHE, ACCESS_PLACE, ACCESS_ALL };

/* For assertions: does the caller hold at least this? True if the state cannot tell. */
static inline bool
dryi_paged_has_access(const struct dryi_paged *p, enum access access)
{
    if (p->is_beside)
        return access != ACCESS_ALL;
    for (const struct dryi_cache *cache = p->caches; cache; cache = cache->next) {
        if (cache->is_alone)
            return access == ACCESS_CACHE;
    }
    return true;
}

/* A request in progress. */
struct request {
    uint64_t size, bytes; /* `size` as requested, `bytes` of the block */
    uint32_t stream, arena, list;
    uint32_t ticket;    /* the forecast's ticket; valid if has_ticket */
    uint32_t successor; /* a step of the layout, or NONE */
    bool has_ticket;
    /* The request came through a cache: if the block stays registered, the caller is told. */
    bool is_at_cache;
};

/*
 * One block of a run, with sums over the blocks before. A run is a sequence of adjacent free blocks
 * and holes (paged_spot.c).
 */
struct run_part {
    uint32_t block;
    bool is_hole;
    uint64_t begin, end;
    /* The bytes that count: a whole hole, or the whole pages of a free block that can be moved. */
    uint64_t lo, hi;
    /* Sums before this block: bytes in holes, in movable pages. */
    uint64_t fresh, movable;
};

/* A spot is a range where a request fits once pages are mapped there. */
struct spot {
    uint32_t block; /* contains addr */
    uint64_t addr;
    uint64_t fresh; /* pages to map */
    uint64_t cost;  /* `fresh` plus the movable pages in the range */
};

/* Round the size of a request up to whole grains. */
static inline uint64_t
round_to_grains(uint64_t size)
{
    return (size + GRAIN - 1) & ~(GRAIN - 1);
}

static inline bool
arena_is_small(uint32_t arena)
{
    return arena & 1;
}

/* Does the request go to a pool with NO_SPLIT, which gives the whole block found? */
static inline bool
dryi_paged_is_no_split(const struct dryi_paged *p, const struct request *r)
{
    uint32_t pool = r->arena / 2; /* the default pool, 0, has no flags */
    return pool > 0 && (p->pools[pool].flags & DRYI_POOL_NO_SPLIT);
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
 * Read the list of a block that may belong to another thread's cache. While caches are shared, a
 * thread changes a block only if it holds the cache of the block's list. Other threads may read
 * only the list. Stores release and loads acquire, so a list or link is true when it becomes
 * visible. paged_cache_shared.c says which cache owns a link.
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

/* Read `prev` or `next` of a block; see block_list_beside(). */
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

/*
 * Prefetch a block unless it is NONE. Always inline: gcc 12 treats a function that only prefetches
 * as free of effects and removes its calls.
 */
DRYI_ALWAYS_INLINE static inline void
prefetch_block(const struct dryi_paged *p, uint32_t block)
{
    if (block != NONE)
        __builtin_prefetch(&p->blocks[block]);
}

#endif
