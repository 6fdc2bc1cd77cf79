/* SPDX-License-Identifier: Apache-2.0 */

/* Create, destroy, and allocation of blocks. See pinned_state.h for an overview. */

#include "host/pinned/pinned.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_count.h"
#include "host/pinned/pinned_event.h"
#include "host/pinned/pinned_grow.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_options.h"
#include "host/pinned/pinned_state.h"
#include "host/pinned/pinned_thread_cache.h"

#define SMALL_SHIFT 9
#define LARGE_SHIFT 12
#define FREES_A_POLL 16
#define POLL_BUDGET 4

/* --- life ----------------------------------------------------------------------------------- */

static enum dry_status
init_parts(struct dry_pinned *p, struct dry_error *err)
{
    bool is_buddy = p->options.mode == DRY_PINNED_BUDDY;
    enum dry_status status = dryi_pinned_arenas_init(p, err);
    if (status == DRY_OK)
        status = dryi_pinned_thread_caches_init(p, err);
    dryi_pinned_heap_init(&p->heaps[DRYI_PINNED_SMALL], DRYI_PINNED_SMALL, SMALL_SHIFT,
                          false);
    dryi_pinned_heap_init(&p->heaps[DRYI_PINNED_LARGE], DRYI_PINNED_LARGE, LARGE_SHIFT,
                          is_buddy);
    dryi_pinned_heap_init(&p->heaps[DRYI_PINNED_OWN], DRYI_PINNED_OWN, LARGE_SHIFT,
                          false);
    dryi_pinned_streams_init(p);
    dryi_pinned_pinner_init(p);
    dryi_lock_init(&p->grow);
    dryi_lock_init(&p->lock);
    dryi_fork_mark_init(&p->fork);
    return status;
}

static void
finish_parts(struct dry_pinned *p, bool is_child)
{
    dryi_pinned_pinner_finish(p, is_child);
    dryi_pinned_streams_finish(p, is_child);
    if (p->leaves)
        dryi_pinned_arenas_finish(p, is_child);
    dryi_pinned_thread_caches_finish(p);
    dryi_lock_finish(&p->lock);
    dryi_lock_finish(&p->grow);
    dryi_fork_mark_finish(&p->fork);
    struct dry_memory memory = p->memory;
    dryi_memory_free(&memory, p, 1, sizeof *p);
}

static uint64_t
warm_target(const struct dry_pinned_options *o)
{
    if (o->warm_bytes || o->mode != DRY_PINNED_BUDDY)
        return o->warm_bytes;
    return o->block_bytes * o->block_count;
}

enum dry_status
dryi_pinned_create(const struct dry_pinned_options *options, const struct dryi_pin *pin,
                   struct dry_pinned **pinned, struct dry_error *err)
{
    struct dry_pinned_options o;
    enum dry_status status = dryi_pinned_options_take(options, &o, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_pinned *p = dryi_memory_zalloc(&memory, 1, sizeof *p);
    if (!p)
        return dryi_fail_memory(err, "a pinned cache");
    p->memory = memory;
    p->options = o;
    p->options.memory = NULL;
    p->options.library = NULL;
    p->pin = *pin;
    status = init_parts(p, err);
    if (status == DRY_OK && warm_target(&o))
        status = dryi_pinned_warm(p, warm_target(&o), o.in_background, err);
    if (status != DRY_OK) {
        finish_parts(p, false);
        return status;
    }
    *pinned = p;
    return DRY_OK;
}

/* Return whether all locks are free. A thread may have held one when another thread
   forked; the records are then inconsistent. */
static bool
is_whole(struct dry_pinned *p)
{
    return dryi_lock_try(&p->grow) && dryi_lock_try(&p->lock) &&
           dryi_lock_try(&p->pinner.lock);
}

void
dry_pinned_destroy(struct dry_pinned *pinned)
{
    if (!pinned)
        return;
    bool is_child = dryi_fork_mark_is_child(&pinned->fork);
    if (is_child) {
        if (!is_whole(pinned))
            return;
        dryi_lock_give(&pinned->pinner.lock);
        dryi_lock_give(&pinned->lock);
        dryi_lock_give(&pinned->grow);
    }
    struct dryi_pin pin = pinned->pin;
    finish_parts(pinned, is_child);
    if (!is_child && pin.finish)
        pin.finish(pin.self);
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Take a block from the heaps; 0: a miss. `t` may be NULL. */
static uint64_t
take_from_heap(struct dry_pinned *p, struct dryi_pinned_thread_cache *t,
               const struct dryi_pinned_request *request)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    uint64_t address = 0;
    dryi_lock_take(&p->lock);
    dryi_pinned_thread_cache_fold(p, t);
    if (p->streams.batch_count)
        (void)dryi_pinned_events_poll(p, 1);
    if (dryi_pinned_heap_take(p, request, &address)) {
        dryi_pinned_count_alloc(p, request->bytes, request->requested);
        if (t)
            dryi_pinned_thread_cache_refill(p, t, request);
    }
    dryi_lock_give(&p->lock);
    return address;
}

static enum dry_status
alloc_block(struct dry_pinned *p, uint64_t bytes, uint64_t *address)
{
    struct dryi_pinned_request request;
    dryi_pinned_request_init(p, bytes, &request);
    struct dryi_pinned_thread_cache *t = dryi_pinned_thread_cache_try_lock(p);
    uint64_t at = t ? dryi_pinned_thread_cache_take(p, t, &request) : 0;
    if (!at)
        at = take_from_heap(p, t, &request);
    if (t)
        dryi_pinned_thread_cache_unlock(t);
    *address = at;
    return at ? DRY_OK : dryi_pinned_grow(p, &request, address);
}

static void *
get_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

enum dry_status
dry_pinned_alloc(struct dry_pinned *pinned, uint64_t bytes, uint64_t stream,
                 void **address)
{
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    if (bytes > DRYI_PINNED_BYTES_MAX)
        return DRY_ERR_ARGUMENT;
    if (bytes == 0) {
        *address = NULL;
        return DRY_OK;
    }
    uint64_t at;
    enum dry_status status = alloc_block(pinned, bytes, &at);
    if (status == DRY_OK && stream != DRY_PINNED_NO_STREAM) {
        status = dry_pinned_record_stream(pinned, get_pointer(at), stream);
        if (status != DRY_OK)
            (void)dry_pinned_free(pinned, get_pointer(at));
    }
    if (status == DRY_OK)
        *address = get_pointer(at);
    return status;
}

static bool
is_used(const struct dryi_pinned_cell *cell)
{
    return cell && dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) == DRYI_PINNED_USED;
}

/* Free a block to its heap, or make it pending for its streams. */
static void
free_to_heap(struct dry_pinned *p, struct dryi_pinned_arena *a,
             struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    if (dryi_pinned_tag(cell) & DRYI_PINNED_HAS_USES) {
        dryi_pinned_use_free(p, dryi_pinned_id(a, cell));
    } else {
        uint64_t bytes = dryi_pinned_block_bytes(a, cell);
        dryi_pinned_count_free(p, bytes, bytes - cell->waste);
        dryi_pinned_heap_give(p, a, cell);
    }
    p->streams.frees++;
}

/* After one or many frees, record and poll events, and unpin excess memory. Releases the
   lock. */
static void
after_frees(struct dry_pinned *p)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    dryi_pinned_events_record(p, false);
    if (p->streams.frees >= FREES_A_POLL)
        (void)dryi_pinned_events_poll(p, POLL_BUDGET);
    bool has_too_much = dryi_pinned_has_too_much(p);
    dryi_lock_give(&p->lock);
    if (has_too_much)
        dryi_pinned_shed(p);
}

/* Free a block under the lock, and unlock the thread cache, which may be NULL. */
static enum dry_status
free_slowly(struct dry_pinned *p, struct dryi_pinned_thread_cache *t,
            struct dryi_pinned_arena *a, struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    dryi_lock_take(&p->lock);
    dryi_pinned_thread_cache_fold(p, t);
    if (t)
        dryi_pinned_thread_cache_unlock(t);
    if (!is_used(cell)) { /* another thread freed it first */
        dryi_lock_give(&p->lock);
        return DRY_ERR_ARGUMENT;
    }
    free_to_heap(p, a, cell);
    after_frees(p);
    return DRY_OK;
}

enum dry_status
dry_pinned_free(struct dry_pinned *pinned, void *address)
{
    struct dryi_pinned_arena *a = NULL;
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    if (!address)
        return DRY_OK;
    struct dryi_pinned_cell *cell =
        dryi_pinned_find(pinned, (uint64_t)(uintptr_t)address, &a);
    if (!is_used(cell))
        return DRY_ERR_ARGUMENT;
    struct dryi_pinned_thread_cache *t = dryi_pinned_thread_cache_try_lock(pinned);
    if (t && !(dryi_pinned_tag(cell) & DRYI_PINNED_HAS_USES) &&
        dryi_pinned_thread_cache_give(pinned, t, a, cell)) {
        dryi_pinned_thread_cache_unlock(t);
        return DRY_OK;
    }
    return free_slowly(pinned, t, a, cell);
}

enum dry_status
dry_pinned_free_many(struct dry_pinned *pinned, void *const *addresses, size_t count)
{
    enum dry_status status = DRY_OK;
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_pinned_enter(pinned);
    for (size_t i = 0; i < count; i++) {
        struct dryi_pinned_arena *a = NULL;
        uint64_t at = (uint64_t)(uintptr_t)addresses[i];
        struct dryi_pinned_cell *cell = dryi_pinned_find(pinned, at, &a);
        if (is_used(cell))
            free_to_heap(pinned, a, cell);
        else if (at)
            status = DRY_ERR_ARGUMENT;
    }
    after_frees(pinned);
    return status;
}

/* --- streams -------------------------------------------------------------------------------- */

static enum dry_status
add_use(struct dry_pinned *p, const void *address, uint64_t handle, bool is_graph)
{
    struct dryi_pinned_arena *a = NULL;
    if (dryi_fork_mark_is_child(&p->fork))
        return DRY_ERR_UNSUPPORTED;
    enum dry_status status = DRY_ERR_ARGUMENT;
    /* Take the lock before the look-up: without the lock only a block in use may be looked
       up, and programs also pass other addresses. */
    dryi_lock_take(&p->lock);
    struct dryi_pinned_cell *cell = dryi_pinned_find(p, (uint64_t)(uintptr_t)address, &a);
    if (is_used(cell))
        status = dryi_pinned_use_add(p, dryi_pinned_id(a, cell), handle, is_graph);
    dryi_lock_give(&p->lock);
    return status;
}

enum dry_status
dry_pinned_record_stream(struct dry_pinned *pinned, const void *address, uint64_t stream)
{
    if (stream == DRY_PINNED_NO_STREAM)
        return DRY_ERR_ARGUMENT;
    return add_use(pinned, address, stream, false);
}

enum dry_status
dry_pinned_hold(struct dry_pinned *pinned, const void *address, uint64_t graph)
{
    return add_use(pinned, address, graph, true);
}

enum dry_status
dry_pinned_stream_done(struct dry_pinned *pinned, uint64_t stream)
{
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_pinned_enter(pinned);
    dryi_pinned_stream_over(pinned, stream);
    after_frees(pinned);
    return DRY_OK;
}

enum dry_status
dry_pinned_release(struct dry_pinned *pinned, uint64_t graph)
{
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_pinned_enter(pinned);
    dryi_pinned_graph_over(pinned, graph);
    after_frees(pinned);
    return DRY_OK;
}

/* --- sizes ---------------------------------------------------------------------------------- */

uint64_t
dry_pinned_usable_bytes(const struct dry_pinned *pinned, const void *address)
{
    struct dryi_pinned_arena *a = NULL;
    const struct dryi_pinned_cell *cell =
        dryi_pinned_find(pinned, (uint64_t)(uintptr_t)address, &a);
    return is_used(cell) ? dryi_pinned_block_bytes(a, cell) : 0;
}

uint64_t
dry_pinned_round_size(const struct dry_pinned *pinned, uint64_t bytes)
{
    struct dryi_pinned_request request;
    if (bytes == 0 || bytes > DRYI_PINNED_BYTES_MAX)
        return 0;
    dryi_pinned_request_init(pinned, bytes, &request);
    return request.bytes;
}
