/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_STATE_H
#define DRYI_PLACE_PAGED_STATE_H

/* The state of a place, a request under way, and functions that read or set one record alone. */

#include "place/paged/record/paged_nouns.h"
#include "place/paged/record/paged_period.h"

struct dryi_paged {
    struct dry_memory memory;
    struct dry_device device;
    struct dryi_paged_conf conf;
    struct dryi_place_observer observer;
    uint64_t page_bytes; /* 0: the device has no pages; segments are ranges */
    uint64_t page_mask;  /* page_bytes - 1 */
    unsigned page_shift;
    uint64_t device_total;
    /* A request at a stream cache reads the fields down to `pad`, and what is its own. */
    struct block *blocks; /* in block_memory, aligned to their size */
    struct stream *streams;
    struct address_index index;
    bool is_shared; /* several stream caches are used at once */
    /* Bytes that a cache may take, beyond those it puts, until a balance is due. */
    int64_t local_max;
    char pad[DRYI_CACHE_LINE_PAD];

    uint64_t limit_bytes;
    size_t block_capacity;
    unsigned char *block_memory;
    size_t block_bytes;
    uint32_t block_count;
    struct records dead;
    uint32_t divider_count, first_divider; /* linked by bin_next and bin_prev */
    uint64_t dividers_request; /* p->requests at the last look at the dividers */
    /* A cut or a merge holds the place, while others use their caches. */
    bool is_beside;

    struct free_list **lists; /* NULL: a list that is gone */
    size_t list_capacity;
    uint32_t list_count;
    uint32_t *gone_lists; /* indices of lists that are gone, a stack with room for all */
    size_t gone_list_capacity;
    uint32_t gone_list_count, list_turn; /* list_turn: the list looked at last */
    struct dryi_map list_ids;            /* arena and stream -> free list */

    struct arena *arenas;
    size_t arena_capacity;
    uint32_t arena_count; /* of pools, and of a pool that could not be made whole */
    uint32_t dead_pool_count;
    struct private_pool *pools;
    size_t pool_capacity;
    struct dryi_treap_node *pool_nodes; /* parallel to pools: the live pools, by id */
    size_t pool_node_capacity;
    uint32_t pool_count, dead_pool, pools_by_id;
    /* Pools without users, looked at in turns; opened: pools since the last look. */
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
    uint64_t *handles;                /* of one call to the device */
    size_t handle_capacity;
    struct run_part *run_parts; /* of one search before an OOM */
    size_t run_part_capacity;

    size_t stream_capacity;
    uint32_t stream_count, last_stream;
    uint32_t streams_kept; /* from so many on, stream records are recycled */
    uint32_t stream_turn;  /* the record that was looked at last for that */
    uint64_t streams_made, pools_made, next_mark;
    struct dryi_map stream_ids; /* value -> stream */
    uint32_t *busy; /* streams with events under way, and some that have no more */
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

    /* Called when all uses of a pending block are complete (paged_free.c). */
    void (*completed)(struct dryi_paged *p, uint32_t block);
    struct use *uses;
    size_t use_capacity;
    uint32_t use_count, dead_use;
    uint32_t waiting_uses;           /* uses that a block waits for */
    uint32_t oldest_use, newest_use; /* of the uses under way */
    struct dryi_map recorded;        /* block and stream -> use, for blocks in use */
    uint32_t first_held, last_held;  /* frees held back by captures, linked by bin_next */
    struct paged_stat stats[STAT_COUNT];
    struct dryi_place_figures figures;  /* of pools, also of pools that are gone */
    struct active_peak active_peaks[2]; /* blocks, bytes */
    int64_t device_allocs, device_frees, retries, ooms, syncs;
    struct dry_pool_counters counters;

    struct dryi_forecast *forecast; /* NULL: nothing is packed */
    struct layout layout;
    struct packing packing;
    struct dryi_paged_call wants_job;
    uint64_t layout_earliest; /* no layout before p->requests is so high */
    uint64_t
        layout_rest; /* requests to the next layout; doubles after a useless layout */
    uint64_t layout_taken; /* hints taken before the last layout */

    uint64_t requests;
    uint64_t gathered_request; /* p->requests when a gather last waited for all streams */
    uint32_t first_cached;     /* lists that may have cached blocks, linked */
    struct dryi_cache *caches; /* all that were asked for */
    struct dryi_cache_watcher cache_watcher;
    uint64_t rent; /* pages moved or released though the device had more */
    bool is_full;  /* the device or the limit refused a page; none was released since */
    /* The first failure that barred this request from freed memory; OK: there was none. */
    enum dry_status hindered;
};

/*
 * A thread holds one cache, the place too while others use their caches, or the place and all caches.
 * A function that crosses files asserts what it requires.
 */
enum access { ACCESS_CACHE, ACCESS_PLACE, ACCESS_ALL };

/* Does the caller hold as much, as far as can be told? For assertions. */
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

/* A request under way. */
struct request {
    uint64_t size, bytes; /* as asked for, and of the block */
    uint32_t stream, arena, list;
    uint32_t ticket;    /* of the forecast, if has_ticket */
    uint32_t successor; /* a step of the layout, or NONE */
    bool has_ticket;
    bool is_at_cache; /* the address may be registered: the caller is told if so */
};

/*
 * A block of a run, and sums over the blocks before. A run is free blocks and holes in a row
 * (paged_spot.c).
 */
struct run_part {
    uint32_t block;
    bool is_hole;
    uint64_t begin, end;
    /* The part that counts: all of a hole, or whole pages that could lie elsewhere. */
    uint64_t lo, hi;
    uint64_t fresh, movable; /* bytes that count before: in holes, in free blocks */
};

/* A spot: a range where a request could lie if pages came under the range. */
struct spot {
    uint32_t block; /* holds addr */
    uint64_t addr;
    uint64_t fresh; /* pages to be mapped */
    uint64_t cost;  /* fresh, and pages under the range that could go elsewhere */
};

/* Return the bytes of the block for a request of `size` bytes. */
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
 * Return the list of a block, which may belong to another cache. While caches are shared, a block
 * is changed only with the cache of its list. A thread without that cache reads nothing of the
 * block but the list. A list or a link is stored only once what it says is true.
 * paged_cache_shared.c says which cache owns a link.
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

/* Return `prev` or `next` of a block, as block_list_beside() returns the list. */
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
 * Prefetch a block, unless it is NONE. Always inline: gcc 12 takes a function that only prefetches
 * for a function without effect, and leaves it out.
 */
DRYI_ALWAYS_INLINE static inline void
prefetch_block(const struct dryi_paged *p, uint32_t block)
{
    if (block != NONE)
        __builtin_prefetch(&p->blocks[block]);
}

#endif
