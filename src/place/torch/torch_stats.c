/* SPDX-License-Identifier: Apache-2.0 */

/* Reset of PyTorch's statistics, and counters that PyTorch does not have. */

#include "base/assert.h"
#include "place/torch/torch_state.h"

void
dryi_torch_reset_stats(void *self, bool peaks, bool accumulated)
{
    struct dryi_torch *t = self;
    struct dry_stats *s = &t->stats;
    struct dry_stat_array *arrays[] = {
        &s->allocation,      &s->segment,
        &s->active,          &s->inactive_split,
        &s->allocated_bytes, &s->reserved_bytes,
        &s->active_bytes,    &s->inactive_split_bytes,
        &s->requested_bytes,
    };
    if (peaks && (uint64_t)s->reserved_bytes.all.peak > t->reserved_peak)
        t->reserved_peak = (uint64_t)s->reserved_bytes.all.peak;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        dryi_stat_array_reset(arrays[i], peaks, accumulated);
    dryi_place_figures_reset(&t->figures, peaks, accumulated);
    dryi_stat_reset(&s->oversize_allocations, peaks, accumulated);
    dryi_stat_reset(&s->oversize_segments, peaks, accumulated);
    if (!accumulated)
        return;
    s->num_alloc_retries = s->num_device_alloc = s->num_device_free = 0;
    s->num_oom_rejections = s->num_ooms = s->num_sync_all_streams = 0;
}

void
dryi_torch_get_counters(const void *self, struct dry_pool_counters *counters)
{
    const struct dryi_torch *t = self;
    uint64_t peak = (uint64_t)t->stats.reserved_bytes.all.peak;
    DRYI_ASSERT_SLOW(peak >= t->total_bytes);
    *counters = (struct dry_pool_counters){
        .reserved_peak_bytes = peak > t->reserved_peak ? peak : t->reserved_peak,
        .events_recorded = t->events_recorded,
        .driver_calls = t->driver_calls,
    };
}
