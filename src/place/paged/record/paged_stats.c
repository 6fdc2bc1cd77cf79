/* SPDX-License-Identifier: Apache-2.0 */

/* Events and statistics under PyTorch's names: see paged_stats.h. */

#include "place/paged/record/paged_stats.h"

/* Report an event. Segment events carry the default stream, because streams share pages. */
void
dryi_paged_tell_observer(struct dryi_paged *p, enum dry_action action, uint32_t block,
                         uint64_t addr, uint64_t size)
{
    const struct block *b = &p->blocks[block];
    const struct segment *segment = &p->segments[b->segment];
    const struct free_list *s = p->lists[b->list];
    bool is_shared = s->stream == NONE || action == DRY_ACTION_SEGMENT_ALLOC ||
                     action == DRY_ACTION_SEGMENT_FREE ||
                     action == DRY_ACTION_SEGMENT_MAP ||
                     action == DRY_ACTION_SEGMENT_UNMAP;
    struct dryi_place_event event = {
        .action = action,
        .addr = addr,
        .size = size,
        .stream = is_shared ? 0 : p->streams[s->stream].value,
        .pool = p->pools[segment->arena / 2].id,
        .segment = segment->ordinal,
        .offset = addr - segment->addr,
    };
    p->observer.event(p->observer.self, &event);
}

/* --- statistics --------------------------------------------------------------------------- */

static void
raise_peak(int64_t *peak, int64_t value)
{
    if (*peak < value)
        *peak = value;
}

void
dryi_paged_note_active(struct dryi_paged *p)
{
    static const enum stat_name parts[2][2] = {
        {STAT_ALLOCATION, STAT_PENDING}, {STAT_ALLOCATED_BYTES, STAT_PENDING_BYTES}};
    for (int i = 0; i < 2; i++) {
        const struct paged_stat *a = &p->stats[parts[i][0]], *b = &p->stats[parts[i][1]];
        int64_t large = a->current[0] + b->current[0];
        int64_t small = a->current[1] + b->current[1];
        raise_peak(&p->active_peaks[i].peak[0], large);
        raise_peak(&p->active_peaks[i].peak[1], small);
        raise_peak(&p->active_peaks[i].all_peak, large + small);
    }
}

uint64_t
dryi_paged_active_peak(const struct dryi_paged *p)
{
    int64_t peak = p->stats[STAT_ALLOCATED_BYTES].all_peak;
    raise_peak(&peak, p->active_peaks[1].all_peak);
    return (uint64_t)peak;
}

static struct dry_stat_array
sum_stat(const struct dryi_paged *p, enum stat_name name)
{
    const struct paged_stat *t = &p->stats[name];
    struct dry_stat parts[2];
    for (int i = 0; i < 2; i++)
        parts[i] =
            (struct dry_stat){.current = t->current[i],
                              .peak = t->peak[i],
                              .allocated = t->current[i] + t->freed[i] - t->base[i],
                              .freed = t->freed[i]};
    struct dry_stat all = {.current = t->current[0] + t->current[1],
                           .peak = t->all_peak,
                           .allocated = parts[0].allocated + parts[1].allocated,
                           .freed = t->freed[0] + t->freed[1]};
    return (struct dry_stat_array){
        .all = all, .large_pool = parts[0], .small_pool = parts[1]};
}

/* Add the pending blocks to the allocated ones, as PyTorch's active statistics do. */
static void
add_pending(struct dry_stat *stat, const struct dry_stat *pending, int64_t peak)
{
    stat->current += pending->current;
    stat->freed += pending->freed - pending->allocated;
    raise_peak(&stat->peak, peak);
}

static struct dry_stat_array
get_active(const struct dryi_paged *p, enum stat_name allocated, enum stat_name pending,
           const struct active_peak *peak)
{
    struct dry_stat_array sum = sum_stat(p, allocated), more = sum_stat(p, pending);
    add_pending(&sum.all, &more.all, peak->all_peak);
    add_pending(&sum.large_pool, &more.large_pool, peak->peak[0]);
    add_pending(&sum.small_pool, &more.small_pool, peak->peak[1]);
    return sum;
}

void
dryi_paged_get_stats(const void *self, struct dry_stats *stats)
{
    const struct dryi_paged *p = self;
    *stats = (struct dry_stats){
        .allocation = sum_stat(p, STAT_ALLOCATION),
        .segment = sum_stat(p, STAT_SEGMENT),
        .active = get_active(p, STAT_ALLOCATION, STAT_PENDING, &p->active_peaks[0]),
        .allocated_bytes = sum_stat(p, STAT_ALLOCATED_BYTES),
        .reserved_bytes = sum_stat(p, STAT_RESERVED_BYTES),
        .active_bytes =
            get_active(p, STAT_ALLOCATED_BYTES, STAT_PENDING_BYTES, &p->active_peaks[1]),
        .requested_bytes = sum_stat(p, STAT_REQUESTED_BYTES),
        .max_split_size = -1,
        .num_alloc_retries = p->retries,
        .num_device_alloc = p->device_allocs,
        .num_device_free = p->device_frees,
        .num_ooms = p->ooms,
        .num_sync_all_streams = p->syncs,
    };
}

void
dryi_paged_get_counters(const void *self, struct dry_pool_counters *counters)
{
    const struct dryi_paged *p = self;
    *counters = p->counters;
}

static void
reset_peaks(struct dryi_paged *p)
{
    for (int i = 0; i < STAT_COUNT; i++) {
        struct paged_stat *t = &p->stats[i];
        t->peak[0] = t->current[0];
        t->peak[1] = t->current[1];
        t->all_peak = t->current[0] + t->current[1];
    }
    p->active_peaks[0] = p->active_peaks[1] = (struct active_peak){0};
    dryi_paged_note_active(p);
}

void
dryi_paged_reset_stats(void *self, bool peaks, bool accumulated)
{
    struct dryi_paged *p = self;
    dryi_place_figures_reset(&p->figures, peaks, accumulated);
    if (peaks)
        reset_peaks(p);
    if (!accumulated)
        return;
    for (int i = 0; i < STAT_COUNT; i++) {
        struct paged_stat *t = &p->stats[i];
        for (int k = 0; k < 2; k++) {
            t->base[k] = t->current[k];
            t->freed[k] = 0;
        }
    }
    p->device_allocs = p->device_frees = p->retries = p->ooms = p->syncs = 0;
}
