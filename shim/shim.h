/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SHIM_H
#define DRY_SHIM_H

/*
 * What Python calls of the shim, by ctypes: libdrystone_torch_2_N.so, made for one release of
 * PyTorch, which has to be loaded before.
 *
 * Threads  The functions that enable are called once, before other threads use PyTorch's CUDA.
 * Errors   A function that can fail returns NULL, or a text that is valid until the next call
 *          on this thread.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define DRY_SHIM_API __attribute__((visibility("default")))

/* The release the shim was compiled for: 208 for 2.8, 215 for 2.15. */
DRY_SHIM_API int dry_shim_release(void);

/*
 * Make Drystone's pools PyTorch's allocator of device memory. `placement` is "torch" or "paged",
 * `conf` and `compat` are those of struct dry_pool_options. Fails if CUDA's memory was used
 * already, if another allocator than PyTorch's native one is chosen, or for an unknown placement.
 * The texts of conf are looked at when a device is first used.
 */
DRY_SHIM_API const char *dry_shim_enable(const char *placement, const char *conf,
                                         const char *compat);

/* The placement that is enabled; NULL: none. */
DRY_SHIM_API const char *dry_shim_placement(void);

#ifdef __cplusplus
}
#endif

#endif
