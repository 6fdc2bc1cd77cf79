/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A record of what happened, and who asked.
 *
 * The last entries lie in a ring that is taken whole when it begins, so that an event costs a copy.
 * A map beside it has, by address, who asked for each block that is not given back yet. The block
 * has its context as long as it lives, whatever has left the ring. If there is no memory for an
 * entry of the map, the block has no context; the request does not fail for it.
 *
 * The place's events come in here, and go to the ring and to the program's observer.
 */

#include <drystone/pool.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/options.h"
#include "os/system.h"
#include "pool/history.h"
#include "pool/pool_lock.h"
#include "pool/pool_stream.h"

#define ENTRIES_DEFAULT 65536

struct dryi_history {
    struct dry_memory memory;
    struct dry_pool_event *entries; /* a ring */
    size_t capacity, count;
    size_t next; /* where the next one goes */
    uint32_t (*get_context)(void *self);
    void *context_self;
    struct dryi_map contexts; /* address of a block, in use or pending -> who asked */
};

/* --- begin and end ------------------------------------------------------------------------ */

void
dry_pool_history_options_init(struct dry_pool_history_options *options)
{
    *options = (struct dry_pool_history_options){
        .struct_size = sizeof *options,
        .entries = ENTRIES_DEFAULT,
    };
}

static void
destroy(struct dryi_history *h)
{
    if (!h)
        return;
    struct dry_memory memory = h->memory;
    dryi_memory_free(&memory, h->entries, h->capacity, sizeof *h->entries);
    dryi_map_finish(&h->contexts);
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
    dryi_map_init(&h->contexts, memory);
    h->entries = dryi_memory_zalloc(memory, options->entries, sizeof *h->entries);
    if (!h->entries) {
        destroy(h);
        return NULL;
    }
    h->capacity = options->entries;
    return h;
}

/* The new one (or NULL) in the place of the old one, which is returned. Lock held. */
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

enum dry_status
dry_pool_record_history(struct dry_pool *pool,
                        const struct dry_pool_history_options *given)
{
    struct dry_pool_history_options options;
    dry_pool_history_options_init(&options);
    enum dry_status status = dryi_options_take(&options, sizeof options, given, NULL);
    if (status != DRY_OK)
        return status;
    if (options.entries == 0)
        return DRY_ERR_ARGUMENT;
    status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    struct dryi_history *fresh = given ? create(&options, &pool->memory) : NULL;
    if (given && !fresh) {
        dryi_pool_leave(pool);
        return DRY_ERR_MEMORY;
    }
    destroy(exchange(pool, fresh, options.frees));
    dryi_pool_listen(pool);
    dryi_pool_leave(pool);
    return DRY_OK;
}

void
dryi_history_destroy(struct dry_pool *pool)
{
    destroy(exchange(pool, NULL, false));
}

/* --- keeping ------------------------------------------------------------------------------ */

/* The callback and its self are copied together, and called without the lock. */
uint32_t
dryi_history_ask(struct dry_pool *pool)
{
    uint32_t (*get_context)(void *) = NULL;
    void *self = NULL;
    if (dryi_pool_enter(pool) != DRY_OK)
        return DRY_NONE;
    if (pool->history) {
        get_context = pool->history->get_context;
        self = pool->history->context_self;
    }
    dryi_pool_leave(pool);
    return get_context ? get_context(self) : DRY_NONE;
}

uint32_t
dryi_history_context(const struct dry_pool *pool, uint64_t block_address)
{
    if (!pool->history)
        return DRY_NONE;
    const uint32_t *context = dryi_map_find(&pool->history->contexts, block_address);
    return context ? *context : DRY_NONE;
}

static void
remember(struct dryi_history *h, uint64_t address, uint32_t context)
{
    bool is_known = context != DRY_NONE && dryi_map_put(&h->contexts, address, context);
    if (!is_known)
        dryi_map_take(&h->contexts, address);
}

void
dryi_history_keep(struct dry_pool *pool, struct dry_pool_event *event)
{
    struct dryi_history *h = pool->history;
    if (event->action == DRY_ACTION_ALLOC) {
        remember(h, event->address, event->context);
    } else if (event->action == DRY_ACTION_FREE_REQUESTED) {
        if (event->context == DRY_NONE)
            event->context = dryi_history_context(pool, event->address);
    } else if (event->action == DRY_ACTION_FREE_COMPLETED) {
        event->context = dryi_history_context(pool, event->address);
        dryi_map_take(&h->contexts, event->address);
    }
    h->entries[h->next] = *event;
    h->next = h->next + 1 == h->capacity ? 0 : h->next + 1;
    h->count += h->count < h->capacity;
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
    size_t at =
        h->next >= h->count ? h->next - h->count : h->next + h->capacity - h->count;
    for (size_t i = 0; i < h->count && status == DRY_OK; i++) {
        status = visit(self, &h->entries[at]);
        at = at + 1 == h->capacity ? 0 : at + 1;
    }
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
        dryi_history_keep(pool, &event);
    if (pool->options.observe)
        pool->options.observe(pool->options.observe_self, &event);
}

/* Told by the place of what it does; the lock is held. */
static void
on_event(void *self, const struct dryi_place_event *e)
{
    struct dry_pool *pool = self;
    if (e->action == DRY_ACTION_OOM && pool->holds_oom)
        pool->held_oom = *e;
    else
        dryi_pool_tell(pool, e);
}

void
dryi_pool_listen(struct dry_pool *pool)
{
    struct dryi_place_observer observer = {0};
    if (dryi_pool_is_heard(pool)) {
        observer = (struct dryi_place_observer){.event = on_event, .self = pool};
        dryi_pool_fronts_close(pool);
    }
    pool->place.ops->set_observer(pool->place.self, observer);
}
