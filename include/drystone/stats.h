/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_STATS_H
#define DRY_STATS_H

/*
 * PyTorch's memory statistics, with PyTorch's names and meaning.
 *
 * The source of every rule is c10/cuda/CUDACachingAllocator.cpp (main, 2.15.0a0) and
 * c10/core/CachingDeviceAllocator.h; torch.cuda.memory_stats() shows the same 123 keys.
 *
 * The struct never changes, because other structs contain it. A pool's counters beyond
 * PyTorch's keys are in dry_pool_get_counters().
 *
 * Ownership  Plain data.
 * Threads    Any thread may call.
 * Units      `*_bytes` are bytes, the others are counts.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `peak` follows `current` only when `current` grows. `allocated` and `freed` are the
   sums of all increases and decreases. */
struct dry_stat {
    int64_t current, peak, allocated, freed;
};

/* all = small_pool + large_pool, except for the peaks. */
struct dry_stat_array {
    struct dry_stat all, small_pool, large_pool;
};

struct dry_stats {
    struct dry_stat_array allocation; /* allocated blocks, until the request to free */
    struct dry_stat_array segment;    /* cudaMalloc segments, not expandable ones */
    struct dry_stat_array active; /* allocated blocks, or blocks that wait for a stream */
    struct dry_stat_array inactive_split;       /* free parts of split segments */
    struct dry_stat_array allocated_bytes;      /* rounded bytes of `allocation` */
    struct dry_stat_array reserved_bytes;       /* bytes from the driver */
    struct dry_stat_array active_bytes;         /* bytes of `active` */
    struct dry_stat_array inactive_split_bytes; /* bytes of `inactive_split` */
    struct dry_stat_array requested_bytes;      /* bytes of `active` as requested */
    struct dry_stat oversize_allocations;       /* blocks >= max_split_size */
    struct dry_stat oversize_segments;
    int64_t max_split_size; /* -1: unlimited */
    int64_t num_alloc_retries;
    int64_t num_device_alloc;
    int64_t num_device_free;
    int64_t num_oom_rejections;
    int64_t num_ooms;
    int64_t num_sync_all_streams;
};

#define DRY_STATS_KEY_COUNT 123

/*
 * Call `visit` for each of the 123 keys in the order of torch.cuda.memory_stats(), which is
 * alphabetical: "active.all.allocated", 7 ... The key is valid during the visit only.
 */
DRY_API void dry_stats_visit(const struct dry_stats *stats,
                             void (*visit)(void *self, const char *key, int64_t value),
                             void *self);

struct dry_sink; /* <drystone/trace.h> */

/*
 * Write the table of torch.cuda.memory_summary() for device `device`, character by
 * character: 75 columns, each line between bars, a newline after the last. With
 * `abbreviated` the rows for the two pools are left out. Errors: the sink's. Source:
 * torch/cuda/memory.py.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_stats_write_summary(
    const struct dry_stats *stats, int32_t device, bool abbreviated,
    const struct dry_sink *sink, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
