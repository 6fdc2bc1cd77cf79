/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLUG_H
#define DRY_PLUG_H

/*
 * Pools as functions that PyTorch's CUDAPluggableAllocator finds by name, in C and without a
 * header of PyTorch: libdrystone_plug.so serves every release that has this class.
 *
 *     drystone_plug_configure("paged", "", "");        by ctypes, before the first request
 *     CUDAPluggableAllocator("libdrystone_plug.so", "drystone_plug_alloc", "drystone_plug_free")
 *
 * Function names carry no object. So the library owns the pools, one for each GPU. A process has
 * one placement and one conf.
 *
 * Threads  Any thread may call any function.
 * Errors   PyTorch checks no result: it uses NULL as an address. A function that fails throws
 *          PyTorch's exception through PyTorch's frames: torch.OutOfMemoryError for memory, else
 *          RuntimeError. No lock is held then.
 * Units    Bytes. A stream is a cudaStream_t.
 * Cost     A call costs what its dry_pool_ function does. The first request of a GPU
 *          opens it.
 */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/pool.h>

#define PLUG_API __attribute__((visibility("default")))

/*
 * Choose the settings of the pools: `placement` "paged" or "torch", and `conf` and
 * `compat` as in struct dry_pool_options; "" for its defaults. Without this call the
 * pools are paged, with the defaults. Returns NULL, or an error text that is valid until
 * the next call: a value is invalid, or other values are in use.
 */
PLUG_API const char *drystone_plug_configure(const char *placement, const char *conf,
                                             const char *compat);

/* Allocate for `stream`; NULL for a `size` of 0. Free the block at `address`. */
PLUG_API void *drystone_plug_alloc(size_t size, int device, void *stream);
PLUG_API void drystone_plug_free(void *address, size_t size, int device, void *stream);

/*
 * Do the same for the segments of a torch.cuda.MemPool, whose blocks PyTorch's native
 * allocator makes. NULL means out of memory: PyTorch then empties its cache and retries.
 * Freed memory returns to the driver, for requests outside of the MemPool.
 */
PLUG_API void *drystone_plug_alloc_segment(size_t size, int device, void *stream);
PLUG_API void drystone_plug_free_segment(void *address, size_t size, int device,
                                         void *stream);

/* Do what torch.cuda.empty_cache() does, for all GPUs in use. */
PLUG_API void drystone_plug_reset(void);

/* Do what torch.cuda.set_per_process_memory_fraction() does. */
PLUG_API void drystone_plug_set_fraction(double fraction, int device);

/* Return the start of a block's segment, and its size in *size, which may be NULL. */
PLUG_API void *drystone_plug_get_base(void *address, size_t *size);

/* Do what Tensor.record_stream() does. Memory from elsewhere is ignored. */
PLUG_API void drystone_plug_record_stream(void *address, void *stream);

/*
 * Begin and end the scope of a CUDA graph: in between all requests of the GPU go to the
 * graph's private pool. Release ends the pool. `filter`, a C++ std::function that tells
 * which streams are captured, is ignored: all streams count as captured.
 */
PLUG_API void drystone_plug_begin_pool(int device, struct dry_pool_id id, void *filter);
PLUG_API void drystone_plug_end_pool(int device, struct dry_pool_id id);
PLUG_API void drystone_plug_release_pool(int device, struct dry_pool_id id);

/*
 * Keep a history of `entries` entries, without stacks, on each GPU that is opened later.
 * Call `on_oom` in the thread whose request failed, before the exception is thrown. No
 * lock is held then.
 */
PLUG_API void drystone_plug_watch(size_t entries, void (*on_oom)(int device));

/*
 * Write a GPU's memory and history as a file like that of torch.cuda.memory._snapshot().
 * On failure returns false, and writes the reason to `why`, which has `capacity` bytes.
 */
PLUG_API bool drystone_plug_write(int device, const char *path, char *why,
                                  size_t capacity);

#endif
