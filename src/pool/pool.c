/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Life of a pool, alloc and free.
 *
 * The place decides which block serves a request. The pool takes the lock, maps addresses to
 * blocks, and calls the callbacks before a request fails. It refuses calls in the child of a fork,
 * because the device belongs to the parent.
 */

#include <drystone/pool.h>

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/inline.h"
#include "base/memory.h"
#include "base/sized.h"
#include "os/system.h"
#include "place/paged/paged.h"
#include "place/torch/torch.h"
#include "pool/history.h"
#include "pool/pool_address.h"
#include "pool/pool_cache.h"
#include "pool/pool_device.h"
#include "pool/pool_lock.h"
#include "pool/pool_stream.h"
#include "pool/pool_view.h"

#define SIZE_LIMIT (UINT64_C(1) << 60)
#define ALIGNMENT_MAX DRYI_GIB

/* --- create and destroy ------------------------------------------------------------------- */

void
dry_pool_options_init_sized(struct dry_pool_options *options, size_t struct_size)
{
    const struct dry_pool_options defaults = {
        .placement = DRY_PLACEMENT_PAGED,
        .conf = "",
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/*
 * Remove an address whose registration has ended. Called by the place, with the pool and the
 * block's cache locked.
 */
static void
cache_lost(void *self, uint64_t stream, uint64_t address)
{
    struct dry_pool *pool = self;
    dryi_pool_cache_forget(pool, stream, address);
}

static enum dry_status
create_torch(struct dry_pool *pool, const struct dry_pool_options *o,
             struct dry_error *err)
{
    struct dryi_torch_options options = {.device = dryi_pool_device(pool),
                                         .memory = &pool->memory};
    options.rules = dryi_torch_rules_newest();
    if (o->compat)
        options.rules = dryi_torch_rules_find(o->compat);
    if (!options.rules)
        return dryi_torch_rules_refuse(o->compat, err);
    dryi_torch_conf_init(&options.conf);
    enum dry_status status = dryi_torch_conf_parse(o->conf, strlen(o->conf),
                                                   options.rules, &options.conf, err);
    if (status == DRY_ERR_FORMAT) { /* The text is an argument here, not a file */
        status = DRY_ERR_ARGUMENT;
        if (err)
            err->status = status;
    }
    struct dryi_torch *place;
    if (status == DRY_OK)
        status = dryi_torch_create(&options, &place, err);
    if (status != DRY_OK)
        return status;
    pool->torch_conf = options.conf;
    pool->fraction = options.conf.per_process_memory_fraction;
    pool->place = dryi_torch_as_place(place);
    return DRY_OK;
}

static enum dry_status
create_paged(struct dry_pool *pool, const struct dry_pool_options *o,
             struct dry_error *err)
{
    struct dryi_paged_options options = {.device = dryi_pool_device(pool),
                                         .memory = &pool->memory,
                                         .wants_job =
                                             dryi_pool_packer_call(&pool->packer)};
    dryi_paged_conf_init(&options.conf);
    enum dry_status status = dryi_paged_conf_parse(
        o->conf, strlen(o->conf), dryi_torch_conf_has, &options.conf, err);
    if (status != DRY_OK)
        return status;
    pool->fraction = options.conf.per_process_memory_fraction;
    return dryi_paged_create(&options, &pool->place, err);
}

static enum dry_status
create_place(struct dry_pool *pool, const struct dry_pool_options *options,
             struct dry_error *err)
{
    if (options->placement == DRY_PLACEMENT_TORCH)
        return create_torch(pool, options, err);
    if (options->placement == DRY_PLACEMENT_PAGED)
        return create_paged(pool, options, err);
    return dryi_fail(err, DRY_ERR_UNSUPPORTED, "no such placement: %d",
                     (int)options->placement);
}

static enum dry_status
keep_conf(struct dry_pool *pool, const char *conf, struct dry_error *err)
{
    size_t length = strlen(conf);
    pool->conf = dryi_memory_zalloc(&pool->memory, length + 1, 1);
    if (!pool->conf)
        return dryi_fail_memory(err, "a pool's options");
    memcpy(pool->conf, conf, length);
    pool->conf_length = length;
    return DRY_OK;
}

/* Copy the functions that the device has and this version knows; all others are NULL. */
static void
copy_device(struct dry_pool *p, struct dry_device device)
{
    p->device_ops = DRY_INIT(struct dry_device_ops);
    (void)dryi_sized_give(&p->device_ops, device.ops, device.ops->struct_size);
    p->device = (struct dry_device){&p->device_ops, device.self};
    p->has_stream_ids = p->device_ops.stream_id != NULL;
}

enum dry_status
dry_pool_create(const struct dry_pool_options *options, struct dry_pool **pool,
                struct dry_error *err)
{
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (!o.device.ops)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "a pool needs a device");
    if (o.device.ops->struct_size < sizeof(size_t))
        return dryi_fail(err, DRY_ERR_ARGUMENT, "a device's calls without struct_size");
    if (!o.conf)
        o.conf = "";
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_pool *p = dryi_memory_zalloc(&memory, 1, sizeof *p);
    if (!p)
        return dryi_fail_memory(err, "a pool");
    p->memory = memory;
    copy_device(p, o.device);
    p->fraction = 1;
    p->limit_bytes = UINT64_MAX;
    p->asking = DRY_NONE;
    uint64_t free_bytes;
    p->device.ops->get_info(p->device.self, &free_bytes, &p->total_bytes);
    dryi_pool_caches_init(p);
    dryi_map_init(&p->streams.index, &memory);
    dryi_lock_init(&p->lock);
    dryi_fork_mark_init(&p->fork);
    dryi_pool_packer_init(&p->packer);
    status = keep_conf(p, o.conf, err);
    if (status == DRY_OK)
        status = create_place(p, &o, err);
    if (status != DRY_OK) {
        dry_pool_destroy(p);
        return status;
    }
    p->options = o;
    /* Copied into `memory`; conf and compat belong to the caller. */
    p->options.memory = NULL;
    p->options.conf = p->options.compat = NULL;
    if (p->place.caches)
        p->place.caches->watch(p->place.self, (struct dryi_cache_watcher){cache_lost, p});
    dryi_pool_listen(p);
    *pool = p;
    return DRY_OK;
}

/* Remove all users of a private pool. This changes nothing that the walk visits. */
static enum dry_status
release_users(void *visitor, const struct dryi_segment_info *segment,
              const struct dryi_block_info *blocks, size_t count)
{
    const struct dryi_place *place = visitor;
    (void)blocks;
    (void)count;
    while (place->ops->release_pool(place->self, segment->pool) == DRY_OK) {
    }
    return DRY_OK;
}

/*
 * Return all cached memory before destroy. Streams may still use freed memory, and destroy waits
 * for no stream. So it is trimmed first, which does wait; then destroy only returns blocks that the
 * program never freed. If the trim runs out of memory, destroy returns the rest without waiting.
 */
static void
return_cached(const struct dry_pool *pool)
{
    struct dryi_place place = pool->place;
    const struct dryi_place_ops *ops = place.ops;
    ops->set_observer(place.self, (struct dryi_place_observer){0});
    while (ops->end_capture(place.self) == DRY_OK) {
    }
    /* An open scope counts as a capture by the rules of old releases. */
    for (const struct dryi_pool_scope *s = pool->scopes; s; s = s->outer) {
        if (!s->is_capture)
            (void)ops->end_pool(place.self, s->id);
    }
    (void)ops->walk(place.self, release_users, &place);
    (void)ops->trim(place.self, 0);
}

void
dry_pool_destroy(struct dry_pool *pool)
{
    if (!pool)
        return;
    pool->is_child = dryi_fork_mark_is_child(&pool->fork);
    if (pool->is_child && !dryi_lock_try(&pool->lock))
        /* Forked during a call: its records may be inconsistent, so they are leaked. */
        return;
    if (pool->is_child)
        dryi_lock_give(&pool->lock);
    dryi_history_destroy(pool);
    dryi_pool_packer_finish(&pool->packer, &pool->place, pool->is_child);
    if (pool->place.ops && !pool->is_child)
        return_cached(pool);
    if (pool->place.ops)
        pool->place.ops->destroy(pool->place.self);
    while (pool->scopes) {
        struct dryi_pool_scope *scope = pool->scopes;
        pool->scopes = scope->outer;
        dryi_memory_free(&pool->memory, scope, 1, sizeof *scope);
    }
    dryi_pool_caches_finish(pool);
    dryi_map_finish(&pool->streams.index);
    struct dry_memory m = pool->memory;
    dryi_memory_free(&m, pool->streams.list, pool->streams.capacity,
                     sizeof *pool->streams.list);
    dryi_memory_free(&m, pool->parts, pool->part_capacity, sizeof *pool->parts);
    if (pool->conf)
        dryi_memory_free(&m, pool->conf, pool->conf_length + 1, 1);
    dryi_fork_mark_finish(&pool->fork);
    dryi_lock_finish(&pool->lock);
    dryi_memory_free(&m, pool, 1, sizeof *pool);
}

/* --- alloc -------------------------------------------------------------------------------- */

/* A request in progress. */
struct request {
    uint64_t size, alignment, stream;
    uint32_t context;
    uint64_t turn; /* pool->history_turn when the context was given */
};

/* A request with the usual alignment and without a context. */
#define REQUEST(size, stream)                                                            \
    (struct request)                                                                     \
    {                                                                                    \
        (size), DRYI_POOL_GRAIN, (stream), DRY_NONE, 0                                   \
    }

/*
 * Return the extra bytes to request for the alignment. Blocks begin at multiples of 512, so this
 * always suffices.
 */
static uint64_t
get_slack(const struct request *request)
{
    DRYI_ASSERT_SLOW(request->alignment >= DRYI_POOL_GRAIN);
    return request->alignment > DRYI_POOL_GRAIN ? request->alignment - DRYI_POOL_GRAIN
                                                : 0;
}

/* Register the block's address if a free may return the block directly to its stream's cache. */
static bool
is_registered(const struct dry_pool *pool, const struct dryi_pool_cache *cache,
              const struct request *request, dryi_block block)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    return cache->at_place && request->alignment == DRYI_POOL_GRAIN &&
           (request->size <= pool->place.cache_max ||
            dryi_pool_caches_are_shared(&pool->caches)) &&
           pool->place.caches->register_address(cache->at_place, block);
}

DRYI_NOINLINE static void
note_other_thread(struct dry_pool *pool, uint64_t number)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    const struct dryi_pool_caches *f = &pool->caches;
    if (f->stream != number && f->thread != 0 && !dryi_pool_caches_are_shared(f))
        dryi_pool_caches_share(pool);
}

/*
 * Record the asking thread. If another thread uses another stream, sharing begins, so that they
 * contend less.
 */
static inline void
note_thread(struct dry_pool *pool, uint64_t number)
{
    struct dryi_pool_caches *f = &pool->caches;
    uintptr_t thread = dryi_thread_self();
    if (f->thread != thread)
        note_other_thread(pool, number);
    f->thread = thread;
    f->stream = number;
}

/*
 * Return the cache of the last stream if a request on it needs no other check: the pool is not
 * shared, and no private pool or capture is active. Else NULL.
 */
static inline struct dryi_pool_cache *
cache_at_hand(const struct dry_pool *pool, uint64_t stream)
{
    struct dryi_pool_cache *cache = pool->caches.last;
    bool is_its =
        cache && cache->handle == stream &&
        (!pool->has_stream_ids || cache->stream == dryi_pool_get_number(pool, stream));
    return is_its ? cache : NULL;
}

static inline enum dry_status
serve_at_hand(struct dry_pool *pool, struct dryi_pool_cache *cache, uint64_t size,
              uint32_t context, uint64_t *address)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    DRYI_ASSERT_SLOW(size > 0 && cache->number > 0);
    bool has_room = dryi_pool_table_reserve(&cache->table);
    pool->asking = context;
    struct dryi_cache_block got;
    enum dry_status status =
        dryi_paged_cache_alloc(cache->at_place, size, has_room, &got);
    if (dryi_pool_packer_is_due(&pool->packer))
        dryi_pool_packer_step(&pool->packer, &pool->place);
    if (status != DRY_OK)
        return status;
    *address = got.address;
    if (!got.was_registered || size > pool->place.cache_max)
        note_thread(pool, cache->stream);
    if (!got.was_registered)
        dryi_pool_put(
            pool, cache,
            (struct dryi_pool_entry){got.address, got.block, got.is_registered});
    return DRY_OK;
}

/* Serve a request by the place: for any alignment, and for streams without a usable cache. */
static enum dry_status
serve_at_place(struct dry_pool *pool, struct dryi_pool_cache *cache,
               const struct request *request, uint64_t number, uint64_t *address)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    DRYI_ASSERT_SLOW(dryi_is_power_of_two(request->alignment));
    if (!dryi_pool_table_reserve(&cache->table))
        return DRY_ERR_MEMORY;
    struct dryi_pool_entry entry = {0};
    pool->asking = request->context;
    enum dry_status status = pool->place.ops->alloc(
        pool->place.self, request->size + get_slack(request), number, &entry.block);
    if (dryi_pool_packer_is_due(&pool->packer))
        dryi_pool_packer_step(&pool->packer, &pool->place);
    if (status != DRY_OK)
        return status;
    uint64_t begin = pool->place.ops->get_address(pool->place.self, entry.block);
    entry.address = (begin + request->alignment - 1) & ~(request->alignment - 1);
    entry.is_registered = is_registered(pool, cache, request, entry.block);
    note_thread(pool, number);
    dryi_pool_put(pool, cache, entry);
    *address = entry.address;
    return DRY_OK;
}

static enum dry_status
serve(struct dry_pool *pool, const struct request *request, uint64_t *address)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    DRYI_ASSERT_SLOW(request->size > 0 && request->size < SIZE_LIMIT);
    uint64_t number;
    enum dry_status status = dryi_pool_stream_number(pool, request->stream, &number);
    if (status != DRY_OK)
        return status;
    struct dryi_pool_cache *cache = dryi_pool_cache_find(pool, number, request->stream);
    if (cache != pool->caches.last || request->alignment != DRYI_POOL_GRAIN)
        return serve_at_place(pool, cache, request, number, address);
    status = serve_at_hand(pool, cache, request->size, request->context, address);
    if (status == DRY_OK)
        /* Also if registered, because another stream made the last request. */
        note_thread(pool, number);
    return status;
}

/*
 * Try a request whose failure may not be final. Its event is held back, and a counted failure
 * counts as helped until it is final. Statistics are read only after a failure.
 */
DRYI_NOINLINE static enum dry_status
serve_quietly(struct dry_pool *pool, const struct request *request, uint64_t *address,
              bool *was_counted)
{
    DRYI_ASSERT_SLOW(!pool->holds_oom);
    *was_counted = false;
    pool->held_oom = (struct dryi_place_event){0};
    pool->holds_oom = true;
    enum dry_status status = serve(pool, request, address);
    pool->holds_oom = false;
    if (status != DRY_OK)
        *was_counted = dryi_pool_saw_oom(pool);
    pool->ooms_helped += *was_counted;
    return status;
}

static void
tell_held_oom(struct dry_pool *pool, const struct dryi_place_event *held,
              const struct request *request)
{
    DRYI_ASSERT_SLOW(held->action == DRY_ACTION_OOM);
    pool->asking = request->context;
    dryi_pool_tell(pool, held);
}

/*
 * Serve a request, with callbacks. Each is called at most once, without the lock, and may change
 * the list of callbacks.
 */
DRYI_NOINLINE static enum dry_status
alloc_with_callbacks(struct dry_pool *pool, struct request *request, uint64_t *address)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_oom_callback asked[DRYI_POOL_CALLBACKS_MAX];
    uint32_t count = pool->callback_count;
    memcpy(asked, pool->callbacks, sizeof asked);
    bool was_counted;
    enum dry_status status = serve_quietly(pool, request, address, &was_counted);
    struct dryi_place_event held = pool->held_oom;
    for (uint32_t i = 0; i < count && status == DRY_ERR_NO_SPACE; i++) {
        dryi_pool_unlock(pool);
        bool helped = asked[i].callback(asked[i].self, request->size, request->stream);
        dryi_pool_lock(pool);
        if (request->turn != pool->history_turn) /* the context was released meanwhile */
            request->context = DRY_NONE;
        if (!helped)
            continue;
        status = serve_quietly(pool, request, address, &was_counted);
        held = pool->held_oom;
        pool->callbacks_helped += status == DRY_OK;
    }
    if (status == DRY_ERR_NO_SPACE && was_counted) {
        if (pool->ooms_helped > 0) /* 0 if a callback reset the statistics */
            pool->ooms_helped--;
        /* A callback may have added or removed listeners, so both are checked. */
        if (held.action == DRY_ACTION_OOM && dryi_pool_is_heard(pool))
            tell_held_oom(pool, &held, request);
    }
    return status;
}

/* Serve a request. Requires the pool's lock, without those of the caches. */
DRYI_NOINLINE static enum dry_status
alloc_locked(struct dry_pool *pool, struct request *request, uint64_t *address)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    dryi_pool_lock_caches(pool);
    enum dry_status status = DRY_OK;
    if (pool->callback_count > 0)
        status = alloc_with_callbacks(pool, request, address);
    else
        status = serve(pool, request, address);
    if (status != DRY_OK && pool->callback_count == 0)
        (void)dryi_pool_saw_oom(pool);
    dryi_pool_unlock_caches(pool);
    return status;
}

/*
 * Allocate when the fast path does not apply: the pool is shared, a context is needed, or the size
 * or the alignment is unusual.
 */
DRYI_NOINLINE static enum dry_status
alloc_shared(struct dry_pool *pool, struct request *request, uint64_t *address)
{
    if (dryi_fork_mark_is_child(&pool->fork))
        return DRY_ERR_UNSUPPORTED;
    if (request->size == 0) {
        *address = 0;
        return DRY_OK;
    }
    if (request->size >= SIZE_LIMIT)
        return DRY_ERR_ARGUMENT;
    if (dryi_pool_caches_are_shared(&pool->caches) &&
        request->alignment == DRYI_POOL_GRAIN &&
        (dryi_pool_cache_alloc(pool, request->size, request->stream, address) ||
         dryi_pool_cache_cut(pool, request->size, request->stream, address)))
        return DRY_OK;
    bool asks = atomic_load_explicit(&pool->asks_alloc, memory_order_relaxed);
    struct dryi_asked asked = {0};
    if (asks) /* the callback may call the pool */
        asked = dryi_history_ask(pool);
    dryi_lock_take(&pool->lock);
    if (asks) {
        dryi_history_begin(pool, &asked);
        request->context = asked.context;
        request->turn = asked.turn;
    }
    enum dry_status status = alloc_locked(pool, request, address);
    if (asks)
        dryi_history_end(pool, &asked);
    dryi_lock_give(&pool->lock);
    return status;
}

/* Does the fast path apply? The size is valid, and no check is needed before the lock. */
static inline bool
is_plain(const struct dry_pool *pool, uint64_t size)
{
    return !dryi_fork_mark_is_child(&pool->fork) && size - 1 < SIZE_LIMIT - 1 &&
           !dryi_pool_caches_are_shared(&pool->caches) &&
           !atomic_load_explicit(&pool->asks_alloc, memory_order_relaxed);
}

DRYI_FLATTEN enum dry_status
dry_pool_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream, uint64_t *address)
{
    if (!is_plain(pool, size))
        return alloc_shared(pool, &REQUEST(size, stream), address);
    dryi_lock_take(&pool->lock);
    enum dry_status status;
    struct dryi_pool_cache *cache = cache_at_hand(pool, stream);
    if (cache && pool->callback_count == 0) {
        status = serve_at_hand(pool, cache, size, DRY_NONE, address);
        if (status != DRY_OK)
            (void)dryi_pool_saw_oom(pool);
    } else {
        status = alloc_locked(pool, &REQUEST(size, stream), address);
    }
    dryi_lock_give(&pool->lock);
    return status;
}

enum dry_status
dry_pool_alloc_aligned(struct dry_pool *pool, uint64_t size, uint64_t alignment,
                       uint64_t stream, uint64_t *address)
{
    if (!dryi_is_power_of_two(alignment) || alignment > ALIGNMENT_MAX)
        return DRY_ERR_ARGUMENT;
    struct request request = {size, alignment, stream, DRY_NONE, 0};
    if (alignment < DRYI_POOL_GRAIN)
        request.alignment = DRYI_POOL_GRAIN;
    return alloc_shared(pool, &request, address);
}

/* --- blocks in use ------------------------------------------------------------------------ */

/* Free a block by the place. A block that the place put into its cache keeps its slot. */
static enum dry_status
give_back(struct dry_pool *pool, const struct dryi_pool_found *found)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    DRYI_ASSERT_SLOW(found->slot && found->cache);
    enum dry_status status = pool->place.ops->free(pool->place.self, found->slot->block);
    if (status == DRY_OK && dryi_pool_slot_is_used(pool, found->slot))
        dryi_pool_table_remove(&found->cache->table, found->slot);
    return status;
}

/* Free a block that is in a table. */
static inline enum dry_status
free_kept(struct dry_pool *pool, uint64_t address)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_pool_found found = dryi_pool_seek(pool, address);
    if (dryi_pool_cache_free_alone(pool, &found))
        return DRY_OK;
    bool is_used = found.slot && dryi_pool_slot_is_used(pool, found.slot);
    return is_used ? give_back(pool, &found) : DRY_ERR_ARGUMENT;
}

/* Free a block. Requires the pool to be locked. */
DRYI_ALWAYS_INLINE static inline enum dry_status
free_within(struct dry_pool *pool, uint64_t address, uint32_t context)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    pool->asking = context;
    enum dry_status status = DRY_ERR_ARGUMENT;
    if (dryi_pool_place_finds(pool))
        status = dryi_paged_free_found(pool->place.self, address);
    if (status == DRY_ERR_ARGUMENT)
        status = free_kept(pool, address);
    return status;
}

DRYI_ALWAYS_INLINE static inline enum dry_status
free_locked(struct dry_pool *pool, uint64_t address)
{
    dryi_pool_lock(pool);
    enum dry_status status = free_within(pool, address, DRY_NONE);
    dryi_pool_unlock(pool);
    return status;
}

DRYI_NOINLINE static enum dry_status
free_asking(struct dry_pool *pool, uint64_t address)
{
    struct dryi_asked asked = dryi_history_ask(pool);
    dryi_pool_lock(pool);
    dryi_history_begin(pool, &asked);
    enum dry_status status = free_within(pool, address, asked.context);
    dryi_history_end(pool, &asked);
    dryi_pool_unlock(pool);
    return status;
}

/* Free without the fast path: in a forked child, a shared pool, or if a context is needed. */
DRYI_NOINLINE static enum dry_status
free_not_plain(struct dry_pool *pool, uint64_t address)
{
    if (dryi_fork_mark_is_child(&pool->fork))
        return DRY_ERR_UNSUPPORTED;
    if (address == 0)
        return DRY_OK;
    if (dryi_pool_caches_are_shared(&pool->caches) &&
        (dryi_pool_cache_free(pool, address) || dryi_pool_cache_merge(pool, address)))
        return DRY_OK;
    if (atomic_load_explicit(&pool->asks_free, memory_order_relaxed))
        return free_asking(pool, address);
    return free_locked(pool, address);
}

DRYI_FLATTEN enum dry_status
dry_pool_free(struct dry_pool *pool, uint64_t address)
{
    if (dryi_fork_mark_is_child(&pool->fork) || address == 0 ||
        dryi_pool_caches_are_shared(&pool->caches) ||
        atomic_load_explicit(&pool->asks_free, memory_order_relaxed))
        return free_not_plain(pool, address);
    return free_locked(pool, address);
}

enum dry_status
dry_pool_record_stream(struct dry_pool *pool, uint64_t address, uint64_t stream)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    uint64_t number;
    dryi_block block = dryi_pool_find(pool, address);
    status = DRY_ERR_ARGUMENT;
    if (block != DRYI_NO_BLOCK)
        status = dryi_pool_stream_number(pool, stream, &number);
    if (status == DRY_OK)
        status = pool->place.ops->record_stream(pool->place.self, block, number);
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_stream_waits(struct dry_pool *pool, uint64_t stream, uint64_t on)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    uint64_t number, on_number;
    status = dryi_pool_stream_number(pool, stream, &number);
    if (status == DRY_OK)
        status = dryi_pool_stream_number(pool, on, &on_number);
    if (status == DRY_OK)
        status = pool->place.ops->stream_waits(pool->place.self, number, on_number);
    dryi_pool_leave(pool);
    return status;
}

uint64_t
dry_pool_round_size(const struct dry_pool *pool, uint64_t size)
{
    bool is_request = size > 0 && size < SIZE_LIMIT;
    return is_request ? pool->place.ops->round_size(pool->place.self, size) : 0;
}
