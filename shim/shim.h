/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SHIM_H
#define DRY_SHIM_H

/*
 * Functions of the shim that Python calls by ctypes: libdrystone_torch_2_N.so, built for
 * one release of PyTorch, which must be loaded before.
 *
 * Threads  The functions that enable are called once, before other threads use PyTorch's CUDA.
 * Errors   A function that can fail returns NULL, or a text that is valid until the next call
 *          on this thread.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRY_SHIM_API __attribute__((visibility("default")))

/* Return the release that the shim was compiled for: 208 for 2.8, 215 for 2.15. */
DRY_SHIM_API int dry_shim_release(void);

/*
 * Make Drystone's pools PyTorch's allocator of device memory. `placement` is "torch" or "paged",
 * `conf` and `compat` are those of struct dry_pool_options. Fails if CUDA's memory was used
 * already, or if conf or compat is invalid. Requires that PyTorch uses its native allocator.
 */
DRY_SHIM_API const char *dry_shim_enable(const char *placement, const char *conf,
                                         const char *compat);

/*
 * Apply settings made by PyTorch's functions to the pools of placement torch, see
 * dry_pool_set_conf(). Devices that are used later get them too. Fails for placement
 * paged, and for settings that dry_pool_set_conf() refuses. Requires dry_shim_enable().
 */
DRY_SHIM_API const char *dry_shim_set_conf(const char *conf);

/* Return the enabled placement; NULL: none, or PyTorch's allocator has been replaced since. */
DRY_SHIM_API const char *dry_shim_placement(void);

/*
 * Write driver_calls, pages_remapped and driver_time_ns of a device's pool, or zeros before its
 * first request. Requires dry_shim_enable(), and a device that torch.cuda counts.
 */
DRY_SHIM_API void dry_shim_counters(int device, uint64_t figures[3]);

/*
 * Make a Drystone pinned cache PyTorch's allocator of pinned memory. This may happen at any time:
 * older blocks stay with their allocator. `options` is parsed by dry_pinned_options_parse().
 * `ahead_bytes` are pinned in the background; if memory is short, fewer, with a warning. `device`
 * is the GPU whose driver context registers memory. -1 selects the GPU that is current at the
 * first request, and nothing is pinned before. `node` is that of struct dry_pinned_options.
 * `library` is the driver's; NULL: the usual one.
 *
 * Fails if it was enabled before, if an option is invalid, and if the driver refuses.
 */
DRY_SHIM_API const char *dry_shim_enable_pinned(const char *options, uint64_t ahead_bytes,
                                                int device, int node,
                                                const char *library);

/* Release idle memory, as torch.accelerator.memory.empty_host_cache() does. */
DRY_SHIM_API const char *dry_shim_pinned_clear(void);

/* Visit the figures of dry_pinned_stats_visit(); zeros before the first request. */
DRY_SHIM_API const char *dry_shim_pinned_stats(void (*visit)(void *self, const char *key,
                                                             int64_t value),
                                               void *self);

/* Check the cache's invariants, see dry_pinned_check(). */
DRY_SHIM_API const char *dry_shim_pinned_check(void);

#ifdef __cplusplus
}
#endif

#endif
