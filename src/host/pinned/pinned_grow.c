/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Misses, warming and unpinning: all calls of the pin for memory, made without the lock.
 * Misses are served one at a time, so that two threads do not both pin when one arena
 * suffices. A miss first checks memory that is already pinned: the inbox, passed events,
 * and other threads' caches.
 */
#include "host/pinned/pinned_grow.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_count.h"
#include "host/pinned/pinned_event.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"
#include "host/pinned/pinned_thread_cache.h"

#define LARGE_MIN (32 * DRYI_MIB)
#define LARGE_MAX DRYI_GIB
/* A request of at least 1/4 of an arena gets an arena of exactly its size. */
#define EXACT_PART 4
#define POLL_STEP 64
#define SMALL_MIN (8 * DRYI_MIB)
#define SMALL_MAX (64 * DRYI_MIB)

static uint64_t
round_square(uint64_t bytes)
{
    return dryi_round_up(bytes, DRYI_PINNED_SQUARE);
}

/* --- available bytes ------------------------------------------------------------------------ */

static uint64_t
pinned_now(struct dry_pinned *p)
{
    return atomic_load_explicit(&p->pinned_bytes, memory_order_relaxed) +
           atomic_load_explicit(&p->pinner.bytes, memory_order_relaxed);
}

uint64_t
dryi_pinned_available_bytes(struct dry_pinned *p)
{
    if (p->options.budget_bytes == 0)
        return p->pin.available_bytes(p->pin.self, p->options.node);
    uint64_t pinned = pinned_now(p);
    return pinned < p->options.budget_bytes ? p->options.budget_bytes - pinned : 0;
}

/* --- ranges --------------------------------------------------------------------------------- */

static uint64_t
take_block(struct dry_pinned *p, const struct dryi_pinned_request *request)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    uint64_t address = 0;
    if (dryi_pinned_heap_take(p, request, &address))
        dryi_pinned_count_alloc(p, request->bytes, request->requested);
    return address;
}

/* Return whether the range, which may be larger than requested, exceeds the budget. The
   caller holds the inbox until the range is counted. */
static bool
is_over_budget(struct dry_pinned *p, const struct dryi_pin_range *range)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->pinner.lock));
    uint64_t budget = p->options.budget_bytes;
    return budget && (range->bytes > budget || pinned_now(p) > budget - range->bytes);
}

/* Pin one more arena, and allocate the request from it before other threads can. */
static enum dry_status
pin_range(struct dry_pinned *p, uint64_t bytes, const struct dryi_pinned_request *request,
          uint64_t *address, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(bytes >= DRYI_PINNED_SQUARE);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    struct dryi_pin_range range;
    uint64_t begin = dryi_pinned_clock_us();
    enum dry_status status =
        p->pin.take(p->pin.self, bytes, p->options.node, &range, err);
    if (status != DRY_OK)
        return status;
    dryi_lock_take(&p->lock);
    dryi_lock_take(&p->pinner.lock);
    status = is_over_budget(p, &range)
                 ? DRY_ERR_NO_SPACE
                 : dryi_pinned_arena_add(p, &range,
                                         request ? request->heap : DRYI_PINNED_LARGE);
    dryi_lock_give(&p->pinner.lock);
    if (status == DRY_OK && request)
        *address = take_block(p, request);
    dryi_pinned_time_add(&p->stats.host_alloc_time, begin);
    p->stats.num_host_alloc++;
    dryi_lock_give(&p->lock);
    if (status == DRY_OK)
        return DRY_OK;
    p->pin.give(p->pin.self, &range);
    dryi_lock_take(&p->lock);
    p->stats.num_host_free++;
    dryi_lock_give(&p->lock);
    return dryi_fail(err, status, "%llu bytes that were pinned %s",
                     (unsigned long long)range.bytes,
                     status == DRY_ERR_NO_SPACE ? "are more than the budget allows"
                                                : "could not be put into records");
}

static void
give_range(struct dry_pinned *p, const struct dryi_pin_range *range)
{
    uint64_t begin = dryi_pinned_clock_us();
    p->pin.give(p->pin.self, range);
    dryi_lock_take(&p->lock);
    dryi_pinned_time_add(&p->stats.host_free_time, begin);
    p->stats.num_host_free++;
    dryi_lock_give(&p->lock);
}

/* --- giving back ---------------------------------------------------------------------------- */

/* Find the largest idle arena, or the largest unwanted one; NULL: none. */
static struct dryi_pinned_arena *
find_idle(const struct dry_pinned *p, bool is_unwanted)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_arena *best = NULL;
    for (uint32_t i = 0; i < p->arena_count; i++) {
        struct dryi_pinned_arena *a = p->arenas[i];
        if (a->used == 0 && (!is_unwanted || a->is_unwanted) &&
            (!best || a->range.bytes > best->range.bytes))
            best = a;
    }
    return best;
}

void
dryi_pinned_shrink(struct dry_pinned *p, uint64_t bytes)
{
    for (;;) {
        struct dryi_pin_range range = {0};
        dryi_lock_take(&p->lock);
        struct dryi_pinned_arena *a = find_idle(p, false);
        bool is_over = (uint64_t)p->stats.allocated_bytes.current > bytes;
        if (a && is_over)
            dryi_pinned_arena_remove(p, a, &range);
        dryi_lock_give(&p->lock);
        if (!a || !is_over)
            return;
        give_range(p, &range);
    }
}

bool
dryi_pinned_has_too_much(const struct dry_pinned *p)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    return p->has_unwanted || p->idle_bytes > p->options.cached_max_bytes;
}

void
dryi_pinned_shed(struct dry_pinned *p)
{
    for (;;) {
        struct dryi_pin_range range = {0};
        dryi_lock_take(&p->lock);
        bool is_over = p->idle_bytes > p->options.cached_max_bytes;
        struct dryi_pinned_arena *a = find_idle(p, !is_over);
        if (a)
            dryi_pinned_arena_remove(p, a, &range);
        else
            p->has_unwanted = false;
        dryi_lock_give(&p->lock);
        if (!a)
            return;
        give_range(p, &range);
    }
}

/* --- the pinner thread ---------------------------------------------------------------------- */

static bool
put_into_inbox(struct dry_pinned *p, const struct dryi_pin_range *range, uint64_t begin)
{
    struct dryi_pinned_pinner *pinner = &p->pinner;
    dryi_lock_take(&pinner->lock);
    dryi_pinned_time_add(&pinner->time, begin);
    bool has_room = pinner->count < pinner->capacity && !is_over_budget(p, range);
    if (has_room) {
        pinner->inbox[pinner->count++] = *range;
        atomic_fetch_add_explicit(&pinner->bytes, range->bytes, memory_order_relaxed);
    }
    dryi_lock_give(&pinner->lock);
    return has_room;
}

/* The pinner's thread: pin until the target is reached or a call fails. */
static void *
run(void *self)
{
    struct dry_pinned *p = self;
    struct dryi_pinned_pinner *pinner = &p->pinner;
    DRYI_ASSERT_SLOW(pinner->piece_bytes >= DRYI_PINNED_SQUARE);
    while (!atomic_load_explicit(&pinner->is_cancelled, memory_order_relaxed)) {
        struct dryi_pin_range range;
        uint64_t pinned = pinned_now(p), begin = dryi_pinned_clock_us();
        if (pinned >= pinner->target_bytes ||
            dryi_pinned_available_bytes(p) < pinner->piece_bytes ||
            p->pin.take(p->pin.self, pinner->piece_bytes, p->options.node, &range,
                        NULL) != DRY_OK)
            break;
        if (!put_into_inbox(p, &range, begin)) {
            p->pin.give(p->pin.self, &range);
            break;
        }
    }
    atomic_store_explicit(&pinner->is_done, true, memory_order_release);
    return NULL;
}

void
dryi_pinned_adopt(struct dry_pinned *p)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_pinner *pinner = &p->pinner;
    dryi_lock_take(&pinner->lock);
    while (pinner->count > 0) {
        const struct dryi_pin_range *range = &pinner->inbox[pinner->count - 1];
        if (dryi_pinned_arena_add(p, range, DRYI_PINNED_LARGE) != DRY_OK)
            break; /* no memory for records now; the range stays in the inbox */
        atomic_fetch_sub_explicit(&pinner->bytes, range->bytes, memory_order_relaxed);
        pinner->count--;
    }
    DRYI_ASSERT_SLOW(pinner->count > 0 || pinner->bytes == 0);
    p->stats.num_host_alloc += pinner->time.count;
    dryi_pinned_time_join(&p->stats.host_alloc_time, &pinner->time);
    pinner->time = (struct dry_pinned_time){0};
    dryi_lock_give(&pinner->lock);
}

/* End the pinner. Requires the grow lock, except in destroy. */
static void
stop_pinner(struct dry_pinned *p)
{
    struct dryi_pinned_pinner *pinner = &p->pinner;
    if (!pinner->is_started)
        return;
    atomic_store_explicit(&pinner->is_cancelled, true, memory_order_relaxed);
    dryi_thread_join(&pinner->thread);
    pinner->is_started = false;
}

/* Allocate the inbox for all ranges that the thread will pin, because the thread calls no
   function of `memory`. */
static bool
make_inbox(struct dry_pinned *p, uint64_t target, uint64_t piece)
{
    DRYI_ASSERT_SLOW(piece > 0 && !p->pinner.is_started);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    struct dryi_pinned_pinner *pinner = &p->pinner;
    uint64_t pinned = pinned_now(p), missing = target > pinned ? target - pinned : 0;
    /* Upper bound on the arenas to pin. */
    uint64_t count = dryi_min(missing / piece + 1, DRYI_PINNED_ROWS_MAX);
    dryi_lock_take(&p->lock);
    dryi_lock_take(&pinner->lock);
    bool has_room =
        dryi_memory_grow(&p->memory, (void **)&pinner->inbox, &pinner->capacity,
                         pinner->count + (size_t)count, sizeof *pinner->inbox);
    dryi_lock_give(&pinner->lock);
    dryi_lock_give(&p->lock);
    return has_room;
}

/* Start the pinner, if it does not run. False: no thread or no memory for the inbox. */
static bool
start_pinner(struct dry_pinned *p, uint64_t target, uint64_t piece)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    struct dryi_pinned_pinner *pinner = &p->pinner;
    if (pinner->is_started &&
        !atomic_load_explicit(&pinner->is_done, memory_order_acquire))
        return true;
    stop_pinner(p);
    if (!make_inbox(p, target, piece))
        return false;
    atomic_store_explicit(&pinner->is_done, false, memory_order_relaxed);
    atomic_store_explicit(&pinner->is_cancelled, false, memory_order_relaxed);
    pinner->target_bytes = target;
    pinner->piece_bytes = piece;
    pinner->is_started = dryi_thread_start(&pinner->thread, run, p);
    return pinner->is_started;
}

void
dryi_pinned_pinner_init(struct dry_pinned *p)
{
    dryi_lock_init(&p->pinner.lock);
}

void
dryi_pinned_pinner_finish(struct dry_pinned *p, bool is_child)
{
    if (!is_child) {
        stop_pinner(p);
        for (size_t i = 0; i < p->pinner.count; i++)
            p->pin.give(p->pin.self, &p->pinner.inbox[i]);
    }
    dryi_memory_free(&p->memory, p->pinner.inbox, p->pinner.capacity,
                     sizeof *p->pinner.inbox);
    dryi_lock_finish(&p->pinner.lock);
}

/* --- warming -------------------------------------------------------------------------------- */

/* Return the size of an arena that is pinned ahead. */
static uint64_t
piece_bytes(const struct dry_pinned *p)
{
    if (p->heaps[DRYI_PINNED_LARGE].is_buddy)
        return p->options.block_bytes;
    return p->options.arena_bytes ? p->options.arena_bytes : LARGE_MAX;
}

static enum dry_status
warm_now(struct dry_pinned *p, uint64_t bytes, uint64_t piece, struct dry_error *err)
{
    for (uint64_t pinned = pinned_now(p); pinned < bytes; pinned = pinned_now(p)) {
        uint64_t available_bytes = dryi_pinned_available_bytes(p);
        if (available_bytes < piece)
            return dryi_fail(err, DRY_ERR_NO_SPACE,
                             "%llu bytes to be pinned next, there is room for %llu",
                             (unsigned long long)piece,
                             (unsigned long long)available_bytes);
        enum dry_status status = pin_range(p, piece, NULL, NULL, err);
        if (status != DRY_OK)
            return status;
    }
    return DRY_OK;
}

/* Pin ahead, in this thread or in the background. */
static enum dry_status
warm_up(struct dry_pinned *p, uint64_t bytes, bool in_background, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    uint64_t pinned = pinned_now(p), piece = piece_bytes(p);
    if (bytes <= pinned)
        return DRY_OK;
    if (!p->heaps[DRYI_PINNED_LARGE].is_buddy) { /* equal arenas, so that no small
                                                    remainder gets an arena of its own */
        uint64_t missing = bytes - pinned;
        uint64_t count = missing / piece + (missing % piece != 0);
        piece = round_square((missing + count - 1) / count);
    }
    if (in_background && start_pinner(p, bytes, piece))
        return DRY_OK;
    return warm_now(p, bytes, piece, err);
}

enum dry_status
dryi_pinned_warm(struct dry_pinned *p, uint64_t bytes, bool in_background,
                 struct dry_error *err)
{
    dryi_lock_take(&p->grow);
    enum dry_status status = warm_up(p, bytes, in_background, err);
    dryi_lock_give(&p->grow);
    return status;
}

/* --- misses --------------------------------------------------------------------------------- */

/* Poll events in steps, because the lock is held during a step. */
static uint64_t
poll_events(struct dry_pinned *p, const struct dryi_pinned_request *request)
{
    bool is_last = false;
    uint64_t address = 0;
    while (!is_last && !address) {
        dryi_lock_take(&p->lock);
        is_last = dryi_pinned_events_poll(p, POLL_STEP);
        address = request ? take_block(p, request) : 0;
        dryi_lock_give(&p->lock);
    }
    return address;
}

/* Look for memory that was pinned or freed meanwhile. */
static uint64_t
retry_miss(struct dry_pinned *p, const struct dryi_pinned_request *request)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    dryi_pinned_enter(p);
    dryi_pinned_adopt(p);
    dryi_pinned_events_record(p, true);
    dryi_lock_give(&p->lock);
    uint64_t address = poll_events(p, request);
    if (address || !p->thread_caches)
        return address;
    dryi_pinned_thread_caches_flush(p);
    dryi_lock_take(&p->lock);
    address = take_block(p, request);
    dryi_lock_give(&p->lock);
    return address;
}

/* Pin again the bytes unpinned by the last clear: this miss shows that the program is
   active again. */
static uint64_t
come_back(struct dry_pinned *p, const struct dryi_pinned_request *request)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    uint64_t bytes = p->remembered_bytes, address;
    if (bytes == 0 || request->heap == DRYI_PINNED_SMALL)
        return 0;
    p->remembered_bytes = 0;
    /* Errors are ignored: pin as many arenas as possible. */
    (void)warm_up(p, bytes, p->options.in_background, NULL);
    dryi_lock_take(&p->lock);
    address = take_block(p, request);
    dryi_lock_give(&p->lock);
    return address;
}

/* Return the size of the next arena. */
static uint64_t
arena_bytes(struct dry_pinned *p, const struct dryi_pinned_request *request,
            uint64_t need)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    const struct dryi_pinned_heap *heap = &p->heaps[request->heap];
    dryi_lock_take(&p->lock);
    uint64_t pinned = heap->pinned_bytes;
    dryi_lock_give(&p->lock);
    if (request->heap == DRYI_PINNED_OWN)
        return need;
    if (request->heap == DRYI_PINNED_SMALL)
        return dryi_max(
            need, dryi_min(dryi_max(round_square(pinned / 2), SMALL_MIN), SMALL_MAX));
    if (p->options.arena_bytes)
        return dryi_max(need, p->options.arena_bytes);
    uint64_t want = dryi_min(dryi_max(round_square(pinned / 32), LARGE_MIN), LARGE_MAX);
    return need >= want / EXACT_PART ? need : want;
}

static uint64_t
idle_bytes(struct dry_pinned *p)
{
    dryi_lock_take(&p->lock);
    uint64_t bytes = p->idle_bytes;
    dryi_lock_give(&p->lock);
    return bytes;
}

/* Unpin idle arenas if that makes `need` bytes available. Returns the available bytes. */
static uint64_t
make_room(struct dry_pinned *p, uint64_t need)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    uint64_t available_bytes = dryi_pinned_available_bytes(p);
    if (available_bytes >= need ||
        dryi_add_saturating(available_bytes, idle_bytes(p)) < need)
        return available_bytes;
    uint64_t pinned = atomic_load_explicit(&p->pinned_bytes, memory_order_relaxed);
    uint64_t missing = need - available_bytes;
    dryi_pinned_shrink(p, pinned > missing ? pinned - missing : 0);
    return dryi_pinned_available_bytes(p);
}

/* Pin `want` bytes, or at least `need`, and allocate the request from them. */
static enum dry_status
pin_for(struct dry_pinned *p, const struct dryi_pinned_request *request, uint64_t need,
        uint64_t want, uint64_t *address)
{
    DRYI_ASSERT_SLOW(need <= want && need % DRYI_PINNED_SQUARE == 0);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->grow));
    uint64_t available_bytes = make_room(p, need);
    if (available_bytes < need)
        return DRY_ERR_NO_SPACE;
    /* At least `need`, which is a multiple, too. */
    uint64_t most_now = dryi_round_down(available_bytes, DRYI_PINNED_SQUARE);
    enum dry_status status =
        pin_range(p, dryi_min(most_now, want), request, address, NULL);
    if (status == DRY_ERR_NO_SPACE && want > need)
        status = pin_range(p, need, request, address, NULL);
    if (status != DRY_ERR_NO_SPACE || idle_bytes(p) == 0)
        return status;
    dryi_pinned_shrink(p, 0);
    return pin_range(p, need, request, address, NULL);
}

static enum dry_status
pin_and_take(struct dry_pinned *p, const struct dryi_pinned_request *request,
             uint64_t *address)
{
    bool is_buddy = p->heaps[request->heap].is_buddy;
    DRYI_ASSERT_SLOW(!is_buddy || request->bytes <= p->options.block_bytes);
    uint64_t need = is_buddy ? p->options.block_bytes : round_square(request->bytes);
    uint64_t want = is_buddy ? need : arena_bytes(p, request, need);
    return pin_for(p, request, need, want, address);
}

enum dry_status
dryi_pinned_grow(struct dry_pinned *p, const struct dryi_pinned_request *request,
                 uint64_t *address)
{
    enum dry_status status = DRY_OK;
    dryi_lock_take(&p->grow);
    *address = retry_miss(p, request);
    if (!*address)
        *address = come_back(p, request);
    if (!*address)
        status = pin_and_take(p, request, address);
    dryi_lock_give(&p->grow);
    return status;
}

/* --- clearing ------------------------------------------------------------------------------- */

static void
let_go(struct dry_pinned *p)
{
    dryi_pinned_enter(p);
    dryi_pinned_adopt(p);
    dryi_pinned_events_record(p, true);
    dryi_lock_give(&p->lock);
    (void)poll_events(p, NULL);
    dryi_pinned_thread_caches_flush(p);
}

enum dry_status
dry_pinned_clear(struct dry_pinned *pinned)
{
    struct dry_pinned *p = pinned;
    if (dryi_fork_mark_is_child(&p->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_lock_take(&p->grow);
    stop_pinner(p);
    let_go(p);
    dryi_lock_take(&p->lock);
    if (p->used_peak_bytes > 0)
        p->remembered_bytes = dryi_max(p->remembered_bytes, (uint64_t)p->used_peak_bytes);
    p->used_peak_bytes = p->stats.active_bytes.current;
    dryi_lock_give(&p->lock);
    dryi_pinned_shrink(p, 0);
    dryi_lock_give(&p->grow);
    return DRY_OK;
}

enum dry_status
dry_pinned_trim(struct dry_pinned *pinned, uint64_t bytes)
{
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    let_go(pinned);
    dryi_pinned_shrink(pinned, bytes);
    return DRY_OK;
}

enum dry_status
dry_pinned_warm(struct dry_pinned *pinned, uint64_t bytes, bool in_background,
                struct dry_error *err)
{
    if (dryi_fork_mark_is_child(&pinned->fork))
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "the cache is the parent's");
    return dryi_pinned_warm(pinned, bytes, in_background, err);
}
