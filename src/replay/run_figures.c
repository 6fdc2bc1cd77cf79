/* SPDX-License-Identifier: Apache-2.0 */

/* Fill in the figures of a run that all placements share. Cost: O(1). */
#include "replay/replay_state.h"

void
dryi_run_fill(struct dry_run *run, const struct dry_stats *stats)
{
    run->stats = *stats;
    run->reserved_peak_bytes = (uint64_t)stats->reserved_bytes.all.peak;
    run->reserved_end_bytes = (uint64_t)stats->reserved_bytes.all.current;
    run->allocated_peak_bytes = (uint64_t)stats->allocated_bytes.all.peak;
    run->requested_peak_bytes = (uint64_t)stats->requested_bytes.all.peak;
}

void
dryi_run_note_oom(struct dry_run *run, size_t event, uint64_t size)
{
    if (run->oom)
        return;
    run->oom = true;
    run->oom_event = event;
    run->oom_size = size;
}
