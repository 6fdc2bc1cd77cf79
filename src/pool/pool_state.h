/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_STATE_H
#define DRYI_POOL_STATE_H

/*
 * The data structures of a pool, for its files. Each file has its functions in a header of its
 * name:
 *
 *   pool           life of a pool; alloc and free
 *   pool_lock      the lock, with those of the stream caches
 *   pool_address   addresses to blocks
 *   pool_stream    streams by number
 *   pool_cache     requests with only a stream cache locked
 *   pool_private   private pools, captures
 *   pool_limit     limits, cached memory, callbacks
 *   pool_view      statistics, walk, check
 *   pool_device    the device as the place sees it
 *   history        events, and the contexts of requests
 *
 * A pool is a place with a lock. All fields are read and written with the pool locked, except
 * fields that only create sets, atomics, and fields of stream caches that state other rules.
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
#define DRYI_POOL_GRAIN UINT64_C(512) /* bytes; all addresses are multiples of it */

struct dryi_history;

struct dryi_oom_callback {
    bool (*callback)(void *self, uint64_t size, uint64_t stream);
    void *self;
};

/* An active private pool or capture, with the caller's stream filter that the place calls back. */
struct dryi_pool_scope {
    struct dry_pool *pool;
    struct dry_stream_filter filter;
    struct dryi_pool_id id;
    bool is_capture;
    struct dryi_pool_scope *outer;
};

/* Stream caches of a pool. Further streams have none, or take over one that was unused for long. */
#define DRYI_POOL_CACHES 64u

struct dryi_pool_cache {
    struct dryi_lock lock;
    bool is_open;
    uint32_t number; /* 1 to DRYI_POOL_CACHES; 0: shared by all streams without a cache */
    uint32_t idle;   /* times the pool was locked since the cache was last used */
    uint32_t beside; /* cuts and merges since all caches were last locked */
    _Atomic uint64_t stream;      /* number of the stream */
    uint64_t found_at;            /* value of `finds` at the last find */
    uint64_t handle;              /* the program's handle of the stream */
    struct dryi_cache *at_place;  /* NULL for number 0, which is never open */
    struct dryi_pool_table table; /* addresses of the stream's blocks */
    /* Keeps two caches out of one cache line of the processor. */
    char pad[DRYI_CACHE_LINE_PAD];
};

#define DRYI_POOL_HINT_BITS 17u
#define DRYI_POOL_THREAD_BITS 10u
#define DRYI_POOL_HINT_SHIFT 12u /* Blocks within 2^12 bytes share a hint */

struct dryi_pool_caches {
    /* Read without the lock, written with the lock. */
    atomic_bool is_shared;
    /* Hash table by stream. */
    _Atomic(struct dryi_pool_cache *) by_stream[2 * DRYI_POOL_CACHES];
    struct dryi_pool_cache *all[DRYI_POOL_CACHES + 1]; /* by number */
    struct dryi_pool_cache others;                     /* number 0 */
    /* Hash tables by address and by thread, of guesses: numbers of caches; 0: none. */
    _Atomic uint8_t hints[1u << DRYI_POOL_HINT_BITS];
    _Atomic uint8_t thread_hints[1u << DRYI_POOL_THREAD_BITS];
    char pad[DRYI_CACHE_LINE_PAD];
    /* Stream of the last request that took the lock, except small ones that were registered. */
    uint64_t stream;
    uintptr_t thread; /* the thread of that request */
    /* Cache of that stream. NULL: unknown, or each request must pass through the place. */
    struct dryi_pool_cache *last;
    uint32_t count;
    uint64_t finds, misses; /* misses: finds of streams without a cache */
    uint32_t turn;          /* number of the cache last examined for idleness */
    /* The open caches and their counterparts in the place, in order of their numbers. */
    struct dryi_pool_cache *open[DRYI_POOL_CACHES];
    struct dryi_cache *open_caches[DRYI_POOL_CACHES];
    uint32_t open_count;
    uint32_t alone; /* Times the pool was locked while at most one cache was open */
};

/* Streams by number, if the device has numbers: see pool_stream.h. */
struct dryi_pool_stream {
    uint64_t number;
    uint64_t handle; /* the handle last seen */
};

struct dryi_pool_streams {
    struct dryi_map index; /* number -> index in `list` */
    struct dryi_pool_stream *list;
    size_t capacity;
    uint32_t count;
    /* At this length of `list`, streams without state in the place are removed. */
    uint32_t prune_count;
    uint64_t last; /* the number of the last request */
};

struct dry_pool {
    /* Set by create, constant afterwards. */
    struct dry_memory memory;
    struct dry_device device; /* the caller's device, called through device_ops */
    struct dry_device_ops device_ops;
    /* `conf` and `compat` are NULL: they belong to the caller. */
    struct dry_pool_options options;
    bool has_stream_ids;
    uint64_t total_bytes;              /* the device's memory; UINT64_MAX: unknown */
    char *conf;                        /* option string, zero-terminated, for snapshots */
    size_t conf_length;                /* without the zero */
    struct dryi_torch_conf torch_conf; /* parsed options; only with placement torch */
    struct dryi_fork_mark fork;        /* detects the child of a fork */
    bool is_child; /* set by destroy in a forked child: no device calls */

    struct dryi_place place;
    atomic_bool asks_alloc, asks_free; /* Ask for a context before the lock is taken */
    struct dryi_pool_caches caches;

    struct dryi_lock lock; /* see dryi_pool_lock() */
    struct dryi_pool_streams streams;
    struct dryi_pool_scope *scopes; /* innermost first */

    double fraction;      /* share of the device's memory; 1: no limit */
    uint64_t limit_bytes; /* UINT64_MAX: none. The smaller of both limits holds */
    struct dryi_oom_callback callbacks[DRYI_POOL_CALLBACKS_MAX];
    uint32_t callback_count;

    /* Delivery of the place's events to history and observer. */
    uint32_t asking; /* context of the current request, or DRY_NONE */
    /* Hold back the event of an out-of-memory, because a callback may still help. */
    bool holds_oom;
    struct dryi_place_event held_oom;
    /* Out-of-memory events that the place counted, but a callback helped. */
    uint64_t ooms_helped;
    int64_t ooms_seen; /* the place's count at the last refusal */
    uint64_t callbacks_helped;
    uint64_t driver_time_ns; /* During a driver call: minus its begin (pool_device.c) */

    struct dryi_history *history; /* history.c; NULL: off */
    uint64_t history_turn;        /* Changes when earlier contexts become invalid */

    struct dry_pool_part *parts; /* scratch array for one segment of a walk */
    size_t part_capacity;

    struct dryi_pool_packer packer; /* packs periods of the place: pool_packing.c */
};

static inline bool
dryi_pool_caches_are_shared(const struct dryi_pool_caches *caches)
{
    return atomic_load_explicit(&caches->is_shared, memory_order_relaxed);
}

/* Is there a history or an observer? */
static inline bool
dryi_pool_is_heard(const struct dry_pool *pool)
{
    return pool->history || pool->options.observe;
}

#endif
