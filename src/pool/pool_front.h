/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_FRONT_H
#define DRYI_POOL_FRONT_H

/*
 * Threads on streams of their own do not wait for each other.
 *
 * One lock is enough, and the cheapest, for a program that calls the pool from one thread at
 * a time. When two threads ask on two streams, the pool is shared from then on: each stream's
 * front (place/place.h) is opened by its next request, and what an open front can do, the alloc
 * of a block it holds or can cut, the free of one that goes back to it or merges, takes the lock
 * of that front alone. Where that touches what is not the stream's own, the pool's lock is taken
 * before it: others go on at their fronts. Whoever needs more takes the pool's lock and that of
 * every open front (dryi_pool_lock). The sharing ends when one stream alone has asked for long,
 * but for what lay on its front: as long as all it asks for lies there, it costs nobody anything.
 *
 * The addresses of a stream are in a table of its own. A free is told an address alone: which
 * table to look at is guessed, by what the thread asked for last and by where the address lies,
 * and where that is wrong all are looked at.
 *
 * All fronts are closed while something must see each request: a history or an observer,
 * a private pool's scope, a capture.
 */

#include <stdatomic.h>

#include "base/memory.h"
#include "os/lock.h"
#include "place/place.h"
#include "pool/pool_table.h"

/* Streams with a front of a pool; others go without, or take one long unused. */
#define DRYI_POOL_FRONTS 64u

struct dryi_pool_front {
    struct dryi_lock lock;
    bool is_open;
    uint32_t number;         /* 1 to DRYI_POOL_FRONTS; 0: of all streams that have none */
    uint32_t idle;           /* locked so often without having been used */
    uint32_t beside;         /* so often for a cut or a merge, since all fronts were */
    _Atomic uint64_t stream; /* as the place knows it */
    uint64_t found_at;       /* when it was found last, counted in finds */
    uint64_t handle;         /* as the program does */
    struct dryi_front *front;     /* NULL: of number 0, which is never open */
    struct dryi_pool_table table; /* of the stream's blocks */
    char apart[DRYI_APART];       /* no line of the cache holds two */
};

#define DRYI_POOL_HINT_BITS 17u
#define DRYI_POOL_THREAD_BITS 10u
#define DRYI_POOL_HINT_SHIFT 12u /* blocks so near to each other have one hint */

struct dryi_pool_fronts {
    /* Asked without the lock, changed with it. */
    atomic_bool is_shared;
    _Atomic(struct dryi_pool_front *) by_stream[2 * DRYI_POOL_FRONTS]; /* hashed */
    struct dryi_pool_front *all[DRYI_POOL_FRONTS + 1];                 /* by number */
    struct dryi_pool_front others;                                     /* number 0 */
    /* Guesses, by address and by thread, both hashed: numbers of fronts; 0: none. */
    _Atomic uint8_t hints[1u << DRYI_POOL_HINT_BITS];
    _Atomic uint8_t thread_hints[1u << DRYI_POOL_THREAD_BITS];
    char apart[DRYI_APART];
    /* Of the last request that took the lock, small ones whose address was known left out. */
    uint64_t stream;
    uintptr_t thread; /* and who asked */
    /* Of that stream; NULL: unknown, or each request has to be asked about. */
    struct dryi_pool_front *last;
    uint32_t count;
    uint64_t finds, misses; /* misses: of streams that have none */
    uint32_t turn;          /* the front that was looked at last for one that is idle */
    /* The open ones, in two arrays alike. */
    struct dryi_pool_front *open[DRYI_POOL_FRONTS];
    struct dryi_front *open_fronts[DRYI_POOL_FRONTS];
    uint32_t open_count;
    uint32_t alone; /* the pool was locked so often with one open at most */
};

struct dry_pool;
struct dryi_pool_found;

static inline bool
dryi_pool_fronts_are_shared(const struct dryi_pool_fronts *fronts)
{
    return atomic_load_explicit(&fronts->is_shared, memory_order_relaxed);
}

/* While shared, without the pool's lock. False: it is needed. size is at least 1. */
bool dryi_pool_front_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                           uint64_t *address);
bool dryi_pool_front_free(struct dry_pool *pool, uint64_t address);
/* The same, with the pool's lock taken. False: ask the place. */
bool dryi_pool_front_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                         uint64_t *address);
bool dryi_pool_front_merge(struct dry_pool *pool, uint64_t address);
/* The same with the pool locked, while it is not shared. False: ask the place. */
bool dryi_pool_front_free_alone(struct dry_pool *pool,
                                const struct dryi_pool_found *found);

/* Everything below: with the pool locked. */

/* The pool is shared from now on, if it can be. */
void dryi_pool_fronts_share(struct dry_pool *pool);
/* The front of a request's stream, while shared open from now on; number 0: it has none. */
struct dryi_pool_front *dryi_pool_front_find(struct dry_pool *pool, uint64_t number,
                                             uint64_t handle);
/* The front of this stream keeps a block no more: its address is forgotten. */
void dryi_pool_front_forget(struct dry_pool *pool, uint64_t stream, uint64_t address);
void dryi_pool_fronts_close(struct dry_pool *pool);
void dryi_pool_fronts_init(struct dry_pool *pool);
void dryi_pool_fronts_finish(struct dry_pool *pool);

#endif
