/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_STATE_H
#define DRYI_POOL_STATE_H

/*
 * The nouns of a pool, for its files. Each file has its functions in a header of its name:
 *
 *     pool           a pool's life, and its blocks
 *     pool_lock      the lock, with those of the stream caches
 *     pool_address   addresses to blocks
 *     pool_stream    streams by number
 *     pool_cache     requests with a stream cache alone
 *     pool_private   private pools, captures
 *     pool_limit     limits, cached memory, callbacks
 *     pool_view      statistics, walk, check
 *     pool_device    the device as the place sees it
 *     history        events, who asked
 *
 * A pool is a place with a lock. Everything of it is read and written with the pool locked. The
 * exceptions: what create sets for ever, what is atomic, and what stream caches say of themselves.
 */

#include <stdatomic.h>

#include <drystone/pool.h>

#include "base/inline.h"
#include "base/map.h"
#include "os/fork.h"
#include "os/lock.h"
#include "place/place.h"
#include "place/torch/torch.h"
#include "pool/pool_packing.h"
#include "pool/pool_table.h"

#define DRYI_POOL_CALLBACKS_MAX 8
#define DRYI_POOL_GRAIN UINT64_C(512) /* every address is a multiple */

struct dryi_history;

struct dryi_oom_callback {
    bool (*callback)(void *self, uint64_t size, uint64_t stream);
    void *self;
};

/* A begun private pool or capture: its filter, kept where the place can find it. */
struct dryi_pool_scope {
    struct dry_pool *pool;
    struct dry_stream_filter filter;
    struct dryi_pool_id id;
    bool is_capture;
    struct dryi_pool_scope *outer;
};

/* Stream caches of a pool. Other streams go without, or take one that was long unused. */
#define DRYI_POOL_CACHES 64u

struct dryi_pool_cache {
    struct dryi_lock lock;
    bool is_open;
    uint32_t number; /* 1 to DRYI_POOL_CACHES; 0: of all streams without a cache */
    uint32_t idle;   /* the pool was locked so often since the cache was used */
    uint32_t beside; /* cuts and merges since all caches were locked */
    _Atomic uint64_t stream;       /* as the place knows it */
    uint64_t found_at;             /* `finds` when the cache was found last */
    uint64_t handle;               /* as the program knows it */
    struct dryi_cache *at_place;   /* NULL: number 0, which is never open */
    struct dryi_pool_table table;  /* of the stream's blocks */
    char pad[DRYI_CACHE_LINE_PAD]; /* no line of the processor's cache holds two */
};

#define DRYI_POOL_HINT_BITS 17u
#define DRYI_POOL_THREAD_BITS 10u
#define DRYI_POOL_HINT_SHIFT 12u /* blocks so near to each other have one hint */

struct dryi_pool_caches {
    /* Asked without the lock, changed with it. */
    atomic_bool is_shared;
    _Atomic(struct dryi_pool_cache *) by_stream[2 * DRYI_POOL_CACHES]; /* hashed */
    struct dryi_pool_cache *all[DRYI_POOL_CACHES + 1];                 /* by number */
    struct dryi_pool_cache others;                                     /* number 0 */
    /* Guesses by address and by thread, both hashed: numbers of caches; 0: none. */
    _Atomic uint8_t hints[1u << DRYI_POOL_HINT_BITS];
    _Atomic uint8_t thread_hints[1u << DRYI_POOL_THREAD_BITS];
    char pad[DRYI_CACHE_LINE_PAD];
    /* The last request that took the lock, but no small one whose address was registered. */
    uint64_t stream;
    uintptr_t thread; /* and who asked */
    /* The cache of that stream; NULL: unknown, or each request has to be asked about. */
    struct dryi_pool_cache *last;
    uint32_t count;
    uint64_t finds, misses; /* misses: finds of streams without a cache */
    uint32_t turn;          /* the cache looked at last, in search of an idle one */
    /* The open caches, in two arrays alike. */
    struct dryi_pool_cache *open[DRYI_POOL_CACHES];
    struct dryi_cache *open_caches[DRYI_POOL_CACHES];
    uint32_t open_count;
    uint32_t alone; /* the pool was locked so often with at most one open */
};

/* Streams by number, if the device has such: see pool_stream.h. */
struct dryi_pool_stream {
    uint64_t number;
    uint64_t handle; /* the last one seen */
};

struct dryi_pool_streams {
    struct dryi_map index; /* number -> index in list */
    struct dryi_pool_stream *list;
    size_t capacity;
    uint32_t count;
    uint32_t
        prune_count; /* at this length, streams without blocks in the placement are dropped */
    uint64_t last; /* the number asked for last */
};

struct dry_pool {
    /* Set by create, for ever. */
    struct dry_memory memory;
    struct dry_device device; /* the caller's, by device_ops */
    struct dry_device_ops device_ops;
    struct dry_pool_options options; /* conf and compat not to be followed: NULL */
    bool has_stream_ids;
    uint64_t total_bytes;              /* of the device, UINT64_MAX if unknown */
    char *conf;                        /* the option string, kept for snapshots */
    size_t conf_length;                /* without its zero */
    struct dryi_torch_conf torch_conf; /* as parsed, where the placement is torch */
    struct dryi_fork_mark fork;        /* tells the child of a fork */
    bool is_child; /* destroy found so: the device is not to be called */

    struct dryi_place place;
    atomic_bool asks_alloc, asks_free; /* ask for a context before the lock is taken */
    struct dryi_pool_caches caches;

    struct dryi_lock lock; /* see dryi_pool_lock */
    struct dryi_pool_streams streams;
    struct dryi_pool_scope *scopes; /* innermost first */

    double fraction;      /* 1: no limit */
    uint64_t limit_bytes; /* UINT64_MAX: none; the smaller of both counts */
    struct dryi_oom_callback callbacks[DRYI_POOL_CALLBACKS_MAX];
    uint32_t callback_count;

    /* Events of the place go through here while anybody listens. */
    uint32_t asking; /* context of the request under way, DRY_NONE if none */
    bool holds_oom;  /* an out-of-memory may still be helped: keep its event back */
    struct dryi_place_event held_oom;
    uint64_t ooms_helped; /* counted by the place, but not failures */
    int64_t ooms_seen;    /* what the place had counted at the last refusal */
    uint64_t callbacks_helped;
    uint64_t driver_time_ns; /* pool_device.c; during a call, less the time it began */

    struct dryi_history *history; /* history.c; NULL: off */
    uint64_t history_turn;        /* another one once contexts are others' */

    struct dry_pool_part *parts; /* of one segment, in a walk */
    size_t part_capacity;

    struct dryi_pool_packer packer; /* of the place's periods: pool_packing.c */
};

static inline bool
dryi_pool_caches_are_shared(const struct dryi_pool_caches *caches)
{
    return atomic_load_explicit(&caches->is_shared, memory_order_relaxed);
}

/* Does somebody listen to events? */
static inline bool
dryi_pool_is_heard(const struct dry_pool *pool)
{
    return pool->history || pool->options.observe;
}

#endif
