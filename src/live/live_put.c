/* SPDX-License-Identifier: Apache-2.0 */

/* Write figures into the page as Linux's seqlocks do: plain stores between two increments of the
   slot's sequence number. Readers use read system calls; the kernel's copy orders their loads. */
#include "live/live_put.h"

#include <string.h>

#include "base/assert.h"
#include "live/live_detail.h"
#include "os/system.h"

struct dry_live_source *
dryi_live_begin(struct dry_live *live, uint32_t number)
{
    struct dry_live_slot *slot = &dryi_live_page(live)->slots[number];
    DRYI_ASSERT(slot->sequence % 2 == 0);
    __atomic_store_n(&slot->sequence, slot->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return &slot->source;
}

void
dryi_live_end(struct dry_live *live, uint32_t number)
{
    struct dry_live_slot *slot = &dryi_live_page(live)->slots[number];
    DRYI_ASSERT(slot->sequence % 2 == 1);
    __atomic_store_n(&slot->sequence, slot->sequence + 1, __ATOMIC_RELEASE);
}

void
dryi_live_copy_text(char *to, size_t capacity, const char *from)
{
    size_t length = from ? strnlen(from, capacity - 1) : 0;
    memcpy(to, from ? from : "", length);
    memset(to + length, 0, capacity - length);
}

/* Copy only the rows in use; readers do not read the others. */
static void
copy_detail(struct dry_live_detail *to, const struct dry_live_detail *from, uint64_t now)
{
    memcpy(to, from, offsetof(struct dry_live_detail, lanes));
    memcpy(to->lanes, from->lanes, from->lane_count * sizeof *to->lanes);
    memcpy(to->lines, from->lines, from->line_count * sizeof *to->lines);
    to->at_ns = now;
}

/* Write figures and detail, each unless NULL, under one sequence: readers see both or none. */
static void
write_source(struct dry_live *live, uint32_t number,
             const struct dry_live_figures *figures, const struct dry_live_detail *detail)
{
    uint64_t now = dryi_system_uptime_ns();
    struct dry_live_source *source = dryi_live_begin(live, number);
    if (detail)
        copy_detail(&source->detail, detail, now);
    if (figures) {
        source->figures = *figures;
        source->updated_ns = now;
        source->updates++;
    }
    dryi_live_end(live, number);
}

/* --- figures of pools and pinned caches --------------------------------------------------- */

static uint64_t
to_bytes(int64_t figure)
{
    return figure > 0 ? (uint64_t)figure : 0;
}

static void
take_pool_figures(struct dry_pool *pool, const struct dryi_live_sample *sample,
                  struct dry_live_figures *figures)
{
    const struct dry_stats *s = &sample->stats;
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    dry_pool_get_counters(pool, &counters);
    *figures = (struct dry_live_figures){
        .reserved = to_bytes(s->reserved_bytes.all.current),
        .allocated = to_bytes(s->allocated_bytes.all.current),
        .active = to_bytes(s->active_bytes.all.current),
        .requested = to_bytes(s->requested_bytes.all.current),
        .reserved_peak = to_bytes(s->reserved_bytes.all.peak),
        .allocated_peak = to_bytes(s->allocated_bytes.all.peak),
        .limit = sample->limit,
        .retries = to_bytes(s->num_alloc_retries),
        .ooms = to_bytes(s->num_ooms),
        .driver_allocs = to_bytes(s->num_device_alloc),
        .driver_frees = to_bytes(s->num_device_free),
        .driver_calls = counters.driver_calls,
        .pages_moved = counters.pages_remapped,
        .driver_time_ns = counters.driver_time_ns,
    };
}

static void
take_pinned_figures(const struct dry_pinned_stats *s, struct dry_live_figures *figures)
{
    uint64_t active = to_bytes(s->active_bytes.current);
    uint64_t pending = to_bytes(s->pending_bytes);
    *figures = (struct dry_live_figures){
        .reserved = to_bytes(s->allocated_bytes.current),
        .allocated = active > pending ? active - pending : 0,
        .active = active,
        .requested = to_bytes(s->requested_bytes.current),
        .reserved_peak = to_bytes(s->allocated_bytes.peak),
        .allocated_peak = to_bytes(s->active_bytes.peak),
        .limit = DRY_LIVE_UNKNOWN,
        .driver_allocs = to_bytes(s->num_host_alloc),
        .driver_frees = to_bytes(s->num_host_free),
        .driver_calls = DRY_LIVE_UNKNOWN,
        .pages_moved = DRY_LIVE_UNKNOWN,
        .driver_time_ns = DRY_LIVE_UNKNOWN,
    };
}

/* Fill in the detail of a pinned cache from its statistics, without a walk. A
   pinned cache has no lanes. */
static void
take_pinned_detail(const struct dry_pinned_stats *s, struct dry_live_detail *detail)
{
    uint64_t reserved = to_bytes(s->allocated_bytes.current);
    uint64_t active = to_bytes(s->active_bytes.current);
    uint64_t idle = to_bytes(s->idle_bytes);
    uint64_t rest = reserved > active ? reserved - active : 0;
    memset(detail, 0, offsetof(struct dry_live_detail, lanes));
    detail->reserved = reserved;
    detail->pending = to_bytes(s->pending_bytes);
    detail->releasable = idle < rest ? idle : rest;
    detail->stranded = rest - detail->releasable;
    detail->largest_hole = to_bytes(s->largest_free_bytes);
}

static void
update_pinned(struct dry_live *live, uint32_t number, struct dry_pinned *pinned)
{
    struct dry_pinned_stats stats = DRY_INIT(struct dry_pinned_stats);
    struct dry_live_figures figures;
    dry_pinned_get_stats(pinned, &stats);
    take_pinned_figures(&stats, &figures);
    take_pinned_detail(&stats, live->detail);
    write_source(live, number, &figures, live->detail);
}

/*
 * Walk the pool's blocks if the last walk was long enough ago: `detail_rest` times its own
 * duration, at least 100 ms. Lock the file again, because POSIX drops the lock when a reader in
 * this process closes the file.
 */
static bool
walk_if_due(struct dry_live *live, struct dryi_live_origin *origin,
            struct dryi_live_sample *sample)
{
    const uint64_t rest_min_ns = 100000000;
    uint64_t begun = dryi_system_uptime_ns();
    if (begun < origin->detail_due_ns)
        return false;
    bool is_done = dryi_live_walk(origin->pool, sample, live->detail) == DRY_OK;
    uint64_t ended = dryi_system_uptime_ns();
    uint64_t rest = (ended - begun) * live->detail_rest;
    origin->detail_due_ns = ended + (rest > rest_min_ns ? rest : rest_min_ns);
    dryi_shared_file_lock(&live->file);
    return is_done;
}

static void
update_pool(struct dry_live *live, uint32_t number, struct dryi_live_origin *origin)
{
    struct dryi_live_sample sample;
    struct dry_live_figures figures;
    bool has_detail = walk_if_due(live, origin, &sample);
    if (!has_detail && dryi_live_sample(origin->pool, &sample) != DRY_OK)
        return;
    take_pool_figures(origin->pool, &sample, &figures);
    write_source(live, number, &figures, has_detail ? live->detail : NULL);
}

void
dryi_live_update_source(struct dry_live *live, uint32_t number)
{
    struct dryi_live_origin *origin = &live->origins[number];
    if (origin->pool)
        update_pool(live, number, origin);
    else if (origin->pinned)
        update_pinned(live, number, origin->pinned);
}

/* --- figures from the caller -------------------------------------------------------------- */

static enum dry_status
put(struct dry_live *live, uint32_t number, const struct dry_live_figures *figures,
    const struct dry_live_detail *detail)
{
    if (dryi_fork_mark_is_child(&live->fork))
        return DRY_OK;
    pthread_mutex_lock(&live->mutex);
    bool is_there = number < live->origin_count;
    if (is_there)
        write_source(live, number, figures, detail);
    if (is_there && detail)
        dryi_shared_file_lock(&live->file);
    pthread_mutex_unlock(&live->mutex);
    return is_there ? DRY_OK : DRY_ERR_ARGUMENT;
}

enum dry_status
dry_live_put(struct dry_live *live, uint32_t number,
             const struct dry_live_figures *figures)
{
    return put(live, number, figures, NULL);
}

enum dry_status
dry_live_put_detail(struct dry_live *live, uint32_t number,
                    const struct dry_live_detail *detail)
{
    if (detail->lane_count > DRY_LIVE_LANES_MAX ||
        detail->line_count > DRY_LIVE_LINES_MAX)
        return DRY_ERR_ARGUMENT;
    return put(live, number, NULL, detail);
}
