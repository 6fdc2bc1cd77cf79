/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The history of events, and the contexts of requests.
 *
 * The last entries are in a ring buffer that doubles up to the requested length, or until memory
 * runs out, so an event costs one copy. (PyTorch's default asks for 2^63 - 1 entries.) Two maps by
 * address hold the context of each block not yet freed, and of each segment. A block keeps its
 * context even after its entry has left the ring. If a map entry cannot be allocated, the block has
 * no context, and the request still succeeds. Holders of a context (entries, blocks, segments,
 * requests) are counted: see pool/context/contexts.h.
 *
 * The place's events arrive here, and go to the ring and to the program's observer.
 */

#include <drystone/pool.h>

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sized.h"
#include "os/system.h"
#include "pool/context/contexts.h"
#include "pool/history.h"
#include "pool/pool_lock.h"
#include "pool/pool_stream.h"

#define ENTRIES_DEFAULT 65536

struct dryi_history {
    struct dry_memory memory;
    struct dry_pool_event *entries; /* ring buffer */
    size_t capacity, count;
    size_t most; /* maximum capacity of the ring */
    size_t next; /* index of the next entry */
    uint32_t (*get_context)(void *self);
    void *context_self;
    struct dryi_map blocks;   /* address of a block in use or pending -> context */
    struct dryi_map segments; /* address of a segment -> context */
    struct dryi_contexts contexts;
};

/* --- begin and end ------------------------------------------------------------------------ */

void
dry_pool_history_options_init_sized(struct dry_pool_history_options *options,
                                    size_t struct_size)
{
    const struct dry_pool_history_options defaults = {
        .entries = ENTRIES_DEFAULT,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static void
destroy(struct dryi_history *h)
{
    if (!h)
        return;
    struct dry_memory memory = h->memory;
    dryi_contexts_finish(&h->contexts);
    dryi_memory_free(&memory, h->entries, h->capacity, sizeof *h->entries);
    dryi_map_finish(&h->blocks);
    dryi_map_finish(&h->segments);
    dryi_memory_free(&memory, h, 1, sizeof *h);
}

static struct dryi_history *
create(const struct dry_pool_history_options *options, const struct dry_memory *memory)
{
    struct dryi_history *h = dryi_memory_zalloc(memory, 1, sizeof *h);
    if (!h)
        return NULL;
    h->memory = *memory;
    h->get_context = options->get_context;
    h->context_self = options->context_self;
    dryi_map_init(&h->blocks, memory);
    dryi_map_init(&h->segments, memory);
    dryi_contexts_init(&h->contexts, memory, options->release_context,
                       options->context_self);
    h->most = options->entries;
    size_t first = h->most < ENTRIES_DEFAULT ? h->most : ENTRIES_DEFAULT;
    h->entries = dryi_memory_zalloc(memory, first, sizeof *h->entries);
    if (!h->entries) {
        destroy(h);
        return NULL;
    }
    h->capacity = first;
    return h;
}

/* Replace the history, which may be NULL. Returns the old one. Requires the lock. */
static struct dryi_history *
exchange(struct dry_pool *pool, struct dryi_history *fresh, bool asks_frees)
{
    struct dryi_history *old = pool->history;
    bool asks = fresh && fresh->get_context;
    pool->history = fresh;
    atomic_store_explicit(&pool->asks_alloc, asks, memory_order_relaxed);
    atomic_store_explicit(&pool->asks_free, asks && asks_frees, memory_order_relaxed);
    return old;
}

/* Return the index of the i-th entry in the ring; 0 is the oldest. */
static size_t
find_entry(const struct dryi_history *h, size_t i)
{
    size_t oldest =
        h->next >= h->count ? h->next - h->count : h->next + h->capacity - h->count;
    size_t to_end = h->capacity - oldest;
    return i < to_end ? oldest + i : i - to_end;
}

/*
 * Double a full ring. False: it has its maximum length, or memory ran out; then its length becomes
 * the maximum. Requires that no entry was overwritten yet, so that the oldest is first.
 */
static bool
grow(struct dryi_history *h)
{
    if (h->capacity == h->most)
        return false;
    size_t wanted = h->capacity < h->most / 2 ? h->capacity * 2 : h->most;
    struct dry_pool_event *entries =
        dryi_memory_zalloc(&h->memory, wanted, sizeof *entries);
    if (!entries) {
        h->most = h->capacity;
        return false;
    }
    memcpy(entries, h->entries, h->count * sizeof *entries);
    dryi_memory_free(&h->memory, h->entries, h->capacity, sizeof *h->entries);
    h->entries = entries;
    h->capacity = wanted;
    h->next = h->count;
    return true;
}

static void
put_entry(struct dryi_history *h, const struct dry_pool_event *event)
{
    if (h->count == h->capacity && !grow(h))
        dryi_contexts_drop(&h->contexts, h->entries[h->next].context);
    h->entries[h->next] = *event;
    h->next = h->next + 1 == h->capacity ? 0 : h->next + 1;
    h->count += h->count < h->capacity;
}

/* Move the contents of an old history to a new, empty one. */
static void
inherit(struct dryi_history *fresh, struct dryi_history *old)
{
    dryi_contexts_finish(&fresh->contexts);
    fresh->contexts = old->contexts;
    fresh->blocks = old->blocks;
    fresh->segments = old->segments;
    for (size_t i = 0; i < old->count; i++)
        put_entry(fresh, &old->entries[find_entry(old, i)]);
    dryi_map_init(&old->blocks, &old->memory);
    dryi_map_init(&old->segments, &old->memory);
    dryi_contexts_init(&old->contexts, &old->memory, NULL, NULL);
}

/* May a history with these options inherit this one? Contexts must have the same owner. */
static bool
can_keep(const struct dryi_history *old, const struct dry_pool_history_options *options)
{
    return !old || (old->context_self == options->context_self &&
                    old->contexts.release == options->release_context);
}

/* Replace the pool's history by one with these options. Requires the lock. */
static enum dry_status
renew(struct dry_pool *pool, const struct dry_pool_history_options *options)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    if (options->keep && !can_keep(pool->history, options))
        return DRY_ERR_ARGUMENT;
    struct dryi_history *fresh = create(options, &pool->memory);
    if (!fresh)
        return DRY_ERR_MEMORY;
    struct dryi_history *old = exchange(pool, fresh, options->frees);
    if (options->keep && old)
        inherit(fresh, old);
    else
        pool->history_turn++;
    destroy(old);
    return DRY_OK;
}

enum dry_status
dry_pool_record_history(struct dry_pool *pool,
                        const struct dry_pool_history_options *given)
{
    struct dry_pool_history_options options;
    dry_pool_history_options_init(&options);
    enum dry_status status = dryi_sized_take(&options, sizeof options, given, NULL);
    if (status != DRY_OK)
        return status;
    if (options.entries == 0)
        return DRY_ERR_ARGUMENT;
    status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    if (given)
        status = renew(pool, &options);
    else
        dryi_history_destroy(pool);
    dryi_pool_listen(pool);
    dryi_pool_leave(pool);
    return status;
}

void
dryi_history_destroy(struct dry_pool *pool)
{
    pool->history_turn++;
    destroy(exchange(pool, NULL, false));
}

/* --- keeping ------------------------------------------------------------------------------ */

/* The callback and its self are read together, but called without the lock. */
struct dryi_asked
dryi_history_ask(struct dry_pool *pool)
{
    struct dryi_asked asked = {.context = DRY_NONE};
    uint32_t (*get_context)(void *) = NULL;
    if (dryi_pool_enter(pool) != DRY_OK)
        return asked;
    const struct dryi_history *h = pool->history;
    if (h) {
        get_context = h->get_context;
        asked.release = h->contexts.release;
        asked.release_self = h->context_self;
        asked.turn = pool->history_turn;
    }
    dryi_pool_leave(pool);
    if (get_context)
        asked.context = get_context(asked.release_self);
    return asked;
}

void
dryi_history_begin(struct dry_pool *pool, struct dryi_asked *asked)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    if (asked->context == DRY_NONE)
        return;
    if (asked->turn == pool->history_turn &&
        dryi_contexts_give(&pool->history->contexts, asked->context))
        return;
    if (asked->release)
        asked->release(asked->release_self, asked->context);
    asked->context = DRY_NONE;
}

void
dryi_history_end(struct dry_pool *pool, const struct dryi_asked *asked)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    dryi_history_drop(pool, asked->context, asked->turn);
}

void
dryi_history_hold(struct dry_pool *pool, uint32_t context)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    if (pool->history)
        (void)dryi_contexts_hold(&pool->history->contexts, context);
}

void
dryi_history_drop(struct dry_pool *pool, uint32_t context, uint64_t turn)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    if (pool->history && turn == pool->history_turn)
        dryi_contexts_drop(&pool->history->contexts, context);
}

static uint32_t
find_context(const struct dryi_map *map, uint64_t address)
{
    const uint32_t *context = dryi_map_find(map, address);
    return context ? *context : DRY_NONE;
}

uint32_t
dryi_history_context(const struct dry_pool *pool, uint64_t block_address)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    return pool->history ? find_context(&pool->history->blocks, block_address) : DRY_NONE;
}

uint32_t
dryi_history_segment(const struct dry_pool *pool, uint64_t segment_address)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    return pool->history ? find_context(&pool->history->segments, segment_address)
                         : DRY_NONE;
}

static void
forget(struct dryi_history *h, struct dryi_map *map, uint64_t address)
{
    uint32_t context = find_context(map, address);
    dryi_map_take(map, address);
    dryi_contexts_drop(&h->contexts, context);
}

static void
remember(struct dryi_history *h, struct dryi_map *map, uint64_t address, uint32_t context)
{
    forget(h, map, address);
    if (context != DRY_NONE && dryi_map_put(map, address, context))
        (void)dryi_contexts_hold(&h->contexts, context);
}

/* Return the map whose context an entry without its own gets; NULL: none. */
static const struct dryi_map *
find_owners(const struct dryi_history *h, enum dry_action action)
{
    if (action == DRY_ACTION_FREE_REQUESTED || action == DRY_ACTION_FREE_COMPLETED)
        return &h->blocks;
    if (action == DRY_ACTION_SEGMENT_FREE || action == DRY_ACTION_SEGMENT_UNMAP)
        return &h->segments;
    return NULL;
}

/* Update the maps for an event. `offset`: of the event in its segment. */
static void
note_owner(struct dryi_history *h, const struct dry_pool_event *event, uint64_t offset)
{
    bool is_first = offset == 0 && find_context(&h->segments, event->address) == DRY_NONE;
    if (event->action == DRY_ACTION_ALLOC)
        remember(h, &h->blocks, event->address, event->context);
    else if (event->action == DRY_ACTION_FREE_COMPLETED)
        forget(h, &h->blocks, event->address);
    else if (event->action == DRY_ACTION_SEGMENT_ALLOC ||
             (event->action == DRY_ACTION_SEGMENT_MAP && is_first))
        remember(h, &h->segments, event->address, event->context);
    else if (event->action == DRY_ACTION_SEGMENT_FREE ||
             event->action == DRY_ACTION_SEGMENT_UNMAP)
        forget(h, &h->segments, event->address);
}

/*
 * Add an entry. Its context is that of the current request, an alloc or a free, as in PyTorch.
 * Frees that complete in an alloc get the context of the alloc. An entry of a free without a
 * context gets the context of the block's alloc. `offset`: of the event in its segment. Requires
 * the lock and a history.
 */
static void
keep(struct dryi_history *h, struct dry_pool_event *event, uint64_t offset)
{
    const struct dryi_map *owners = find_owners(h, event->action);
    if (owners && event->context == DRY_NONE)
        event->context = find_context(owners, event->address);
    if (!dryi_contexts_hold(&h->contexts, event->context))
        event->context = DRY_NONE;
    note_owner(h, event, offset);
    put_entry(h, event);
}

/* --- looking ------------------------------------------------------------------------------ */

enum dry_status
dryi_history_walk(const struct dry_pool *pool,
                  enum dry_status (*visit)(void *self,
                                           const struct dry_pool_event *event),
                  void *self)
{
    const struct dryi_history *h = pool->history;
    enum dry_status status = DRY_OK;
    if (!h)
        return status;
    for (size_t i = 0; i < h->count && status == DRY_OK; i++)
        status = visit(self, &h->entries[find_entry(h, i)]);
    return status;
}

enum dry_status
dry_pool_walk_history(struct dry_pool *pool,
                      enum dry_status (*visit)(void *self,
                                               const struct dry_pool_event *event),
                      void *self)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = dryi_history_walk(pool, visit, self);
    dryi_pool_leave(pool);
    return status;
}

/* --- events of the place ------------------------------------------------------------------ */

void
dryi_pool_tell(struct dry_pool *pool, const struct dryi_place_event *e)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    struct dry_pool_event event = {
        .action = e->action,
        .address = e->addr,
        .size = e->size,
        .stream = dryi_pool_stream_handle(pool, e->stream),
        .pool = {e->pool.a, e->pool.b},
        .time_us = dryi_system_time_us(),
        .context = pool->asking,
    };
    if (pool->history)
        keep(pool->history, &event, e->offset);
    if (pool->options.observe)
        pool->options.observe(pool->options.observe_self, &event);
}

enum dry_status
dry_pool_note_snapshot(struct dry_pool *pool)
{
    struct dry_stats stats;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    pool->place.ops->get_stats(pool->place.self, &stats);
    struct dryi_place_event event = {
        .action = DRY_ACTION_SNAPSHOT,
        .size = (uint64_t)stats.active_bytes.all.current,
    };
    if (dryi_pool_is_heard(pool))
        dryi_pool_tell(pool, &event);
    dryi_pool_leave(pool);
    return DRY_OK;
}

/* Receive an event of the place. The lock is held. */
static void
on_event(void *self, const struct dryi_place_event *e)
{
    struct dry_pool *pool = self;
    if (e->action == DRY_ACTION_OOM && pool->holds_oom)
        pool->held_oom = *e;
    else
        dryi_pool_tell(pool, e);
}

enum dry_status
dry_pool_set_observer(struct dry_pool *pool,
                      void (*observe)(void *self, const struct dry_pool_event *event),
                      void *self)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    pool->options.observe = observe;
    pool->options.observe_self = self;
    dryi_pool_listen(pool);
    dryi_pool_leave(pool);
    return DRY_OK;
}

void
dryi_pool_listen(struct dry_pool *pool)
{
    struct dryi_place_observer observer = {0};
    if (dryi_pool_is_heard(pool)) {
        observer = (struct dryi_place_observer){.event = on_event, .self = pool};
        dryi_pool_caches_close(pool);
    }
    pool->place.ops->set_observer(pool->place.self, observer);
}
