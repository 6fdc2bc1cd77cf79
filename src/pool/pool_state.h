/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_STATE_H
#define DRYI_POOL_STATE_H

/*
 * The inside of a pool, shared by its files: pool.c (life, blocks), pool_limit.c (limits,
 * cached memory, callbacks), pool_front.c (requests beside the lock, and the lock itself; in
 * whose table an address stands), pool_private.c (private pools, captures), pool_view.c
 * (statistics, walk, check), pool_table.c (addresses to blocks), pool_device.c (streams by
 * number), history.c (what happened, who asked).
 *
 * A pool is a place with a lock. Everything of it is read and written with the pool locked,
 * but what create sets for ever, what is marked atomic, and what fronts say of themselves.
 */

#include <stdatomic.h>

#include <drystone/pool.h>

#include "base/bits.h"
#include "base/map.h"
#include "os/fork.h"
#include "os/lock.h"
#include "place/place.h"
#include "place/torch/torch.h"
#include "pool/pool_front.h"
#include "pool/pool_plan.h"
#include "pool/pool_table.h"

#define DRYI_POOL_CALLBACKS_MAX 8
#define DRYI_POOL_GRAIN UINT64_C(512) /* every address is a multiple */

struct dryi_history;

struct dryi_oom_callback {
    int (*callback)(void *self, uint64_t size, uint64_t stream);
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

/* Streams by number, where the device has such: see pool_device.c. */
struct dryi_pool_stream {
    uint64_t number;
    uint64_t handle; /* the last one seen */
};

struct dryi_pool_streams {
    struct dryi_map index; /* number -> index in list */
    struct dryi_pool_stream *list;
    size_t capacity;
    uint32_t count;
    uint32_t enough; /* so many: those that the place has nothing of are forgotten */
    uint64_t last;   /* the number asked for last */
};

struct dry_pool {
    /* Set by create, for ever. */
    struct dry_memory memory;
    struct dry_device device;        /* the caller's */
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
    struct dryi_pool_fronts fronts;

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

    struct dryi_history *history; /* history.c; NULL: off */

    struct dry_pool_part *parts; /* of one segment, in a walk */
    size_t part_capacity;

    struct dryi_pool_planner planner; /* of the place's periods: pool_plan.c */
};

/* --- pool_front.c ------------------------------------------------------------------------- */

void dryi_pool_fronts_lock(struct dry_pool *pool);
void dryi_pool_fronts_unlock(struct dry_pool *pool);

/* Those that are open, by who has the pool's lock. */
static inline void
dryi_pool_lock_fronts(struct dry_pool *pool)
{
    if (dryi_pool_fronts_are_shared(&pool->fronts))
        dryi_pool_fronts_lock(pool);
}

static inline void
dryi_pool_unlock_fronts(struct dry_pool *pool)
{
    if (dryi_pool_fronts_are_shared(&pool->fronts))
        dryi_pool_fronts_unlock(pool);
}

/*
 * The place, all fronts and the rest of the pool are this thread's, and what was counted at
 * the fronts is counted.
 */
static inline void
dryi_pool_lock(struct dry_pool *pool)
{
    dryi_lock_take(&pool->lock);
    dryi_pool_lock_fronts(pool);
}

static inline void
dryi_pool_unlock(struct dry_pool *pool)
{
    dryi_pool_unlock_fronts(pool);
    dryi_lock_give(&pool->lock);
}

/* --- addresses: each table with its front locked, or all locked ---------------------------- */

/* Where an address stands. */
struct dryi_pool_found {
    struct dryi_pool_slot *slot; /* NULL: nowhere */
    struct dryi_pool_front *front;
};

static inline _Atomic uint8_t *
dryi_pool_hint(struct dry_pool *pool, uint64_t address)
{
    return &pool->fronts
                .hints[dryi_spread(address >> DRYI_POOL_HINT_SHIFT, DRYI_POOL_HINT_BITS)];
}

static inline void
dryi_pool_note_hint(_Atomic uint8_t *hint, const struct dryi_pool_front *front)
{
    uint8_t number = (uint8_t)front->number;
    if (atomic_load_explicit(hint, memory_order_relaxed) != number)
        atomic_store_explicit(hint, number, memory_order_release);
}

static inline struct dryi_pool_front *
dryi_pool_hinted(const struct dry_pool *pool, const _Atomic uint8_t *hint)
{
    return pool->fronts.all[atomic_load_explicit(hint, memory_order_acquire)];
}

/* Hints are asked for only where there are several tables. All locked, or the front. */
static inline void
dryi_pool_note(struct dry_pool *pool, uint64_t address,
               const struct dryi_pool_front *front)
{
    if (pool->fronts.count > 1)
        dryi_pool_note_hint(dryi_pool_hint(pool, address), front);
}

static inline struct dryi_pool_front *
dryi_pool_guess(struct dry_pool *pool, uint64_t address)
{
    return pool->fronts.count == 1
               ? pool->fronts.all[1]
               : dryi_pool_hinted(pool, dryi_pool_hint(pool, address));
}

static inline struct dryi_pool_found
dryi_pool_seek_at(struct dryi_pool_front *front, uint64_t address)
{
    return (struct dryi_pool_found){dryi_pool_table_seek(&front->table, address), front};
}

/* Where the hint does not lead to it: through all tables. All locked. */
struct dryi_pool_found dryi_pool_seek_further(struct dry_pool *pool, uint64_t address);

/* Of a block in use, or on a front. All locked. */
static inline struct dryi_pool_found
dryi_pool_seek(struct dry_pool *pool, uint64_t address)
{
    struct dryi_pool_found found =
        dryi_pool_seek_at(dryi_pool_guess(pool, address), address);
    return found.slot ? found : dryi_pool_seek_further(pool, address);
}

/* Its table has room. */
static inline void
dryi_pool_put(struct dry_pool *pool, struct dryi_pool_front *front,
              struct dryi_pool_entry entry)
{
    dryi_pool_table_put(&front->table, entry);
    dryi_pool_note(pool, entry.address, front);
}

/* Its block is in use, or is one of ours no more; else it lies on its front. */
static inline bool
dryi_pool_slot_is_used(const struct dry_pool *pool, const struct dryi_pool_slot *slot)
{
    return !dryi_pool_slot_is_kept(slot) ||
           !pool->place.ops->front_holds(pool->place.self, slot->block);
}

/* Does the place find blocks by their addresses itself? What it finds is in no table. */
static inline bool
dryi_pool_place_finds(const struct dry_pool *pool)
{
    return pool->place.ops->find;
}

/* The block in use that was handed out as this address; DRYI_NO_BLOCK: it is none. All locked. */
static inline dryi_block
dryi_pool_find(struct dry_pool *pool, uint64_t address)
{
    dryi_block block = DRYI_NO_BLOCK;
    if (dryi_pool_place_finds(pool))
        block = pool->place.ops->find(pool->place.self, address);
    if (block != DRYI_NO_BLOCK)
        return block;
    const struct dryi_pool_slot *slot = dryi_pool_seek(pool, address).slot;
    return slot && dryi_pool_slot_is_used(pool, slot) ? slot->block : DRYI_NO_BLOCK;
}

/* --- pool.c ------------------------------------------------------------------------------- */

/* The lock; UNSUPPORTED, without it, in the child of a fork. */
DRY_CHECK_RESULT static inline enum dry_status
dryi_pool_enter(struct dry_pool *pool)
{
    if (dryi_fork_mark_is_child(&pool->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_pool_lock(pool);
    pool->asking = DRY_NONE; /* a request says so itself */
    return DRY_OK;
}

static inline void
dryi_pool_leave(struct dry_pool *pool)
{
    dryi_pool_unlock(pool);
}

/* Somebody listens to events. */
static inline bool
dryi_pool_is_heard(const struct dry_pool *pool)
{
    return pool->history || pool->options.observe;
}

/* Somebody listens, or nobody does any more: tell the place whom to tell. Pool locked. */
void dryi_pool_listen(struct dry_pool *pool);
/* What the smaller of fraction and limit allows; UINT64_MAX: no limit. */
uint64_t dryi_pool_limit(const struct dry_pool *pool);
/* Of any stream; the pool is locked. */
bool dryi_pool_is_capturing(const struct dry_pool *pool);

/* --- pool_device.c ------------------------------------------------------------------------ */

/* What the place is given for a stream: its number. MEMORY if it cannot be remembered. */
DRY_CHECK_RESULT enum dry_status dryi_pool_stream_ask(struct dry_pool *pool,
                                                      uint64_t stream, uint64_t *number);
DRY_CHECK_RESULT static inline enum dry_status
dryi_pool_stream_number(struct dry_pool *pool, uint64_t stream, uint64_t *number)
{
    *number = stream;
    return pool->has_stream_ids ? dryi_pool_stream_ask(pool, stream, number) : DRY_OK;
}
/* The number alone, of a stream that the place was given before. */
static inline uint64_t
dryi_pool_number_of(const struct dry_pool *pool, uint64_t stream)
{
    return pool->has_stream_ids ? pool->device.ops->stream_id(pool->device.self, stream)
                                : stream;
}
/* And back: the last handle seen. */
uint64_t dryi_pool_stream_handle(const struct dry_pool *pool, uint64_t number);
/* The device as the place sees it: streams are numbers; gone in the child of a fork. */
struct dry_device dryi_pool_device(struct dry_pool *pool);

/* --- pool_view.c -------------------------------------------------------------------------- */

/* The statistics with the failures that a callback helped taken out. Lock held. */
void dryi_pool_stats(const struct dry_pool *pool, struct dry_stats *stats);
/* Has the place counted an out-of-memory since this was last asked? After a refusal. */
bool dryi_pool_saw_oom(struct dry_pool *pool);
/* dry_pool_walk with the lock held. */
DRY_CHECK_RESULT enum dry_status dryi_pool_walk(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                             const struct dry_pool_part *parts, size_t count),
    void *self);

/* --- history.c ---------------------------------------------------------------------------- */

/* Who asks, by the program's callback; before the lock, only where asks_... is set. */
uint32_t dryi_history_ask(struct dry_pool *pool);
/*
 * One more entry; lock held, history not NULL. Comes with the context of the request under
 * way (of the alloc, or DRY_NONE for a free nobody was asked about) and may replace it: what
 * happens to a block that is given back goes by who asked for the block.
 */
void dryi_history_keep(struct dry_pool *pool, struct dry_pool_event *event);
/* Who asked for the block, in use or pending, that begins here; DRY_NONE if not known. */
uint32_t dryi_history_context(const struct dry_pool *pool, uint64_t block_address);
/* End and forget; NULL history is accepted. Also called by destroy. */
void dryi_history_destroy(struct dry_pool *pool);

#endif
