/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLUG_H
#define DRY_PLUG_H

/*
 * Pools as functions that PyTorch's CUDAPluggableAllocator takes by their names, in C and without
 * a header of PyTorch: libdrystone_plug.so serves every release that has this class.
 *
 *     drystone_plug_configure("paged", "", "");        by ctypes, before the first request
 *     CUDAPluggableAllocator("libdrystone_plug.so", "drystone_plug_alloc", "drystone_plug_free")
 *
 * Names of functions carry no object. So the pools, a GPU each, are the library's own: one
 * placement and one conf for the process.
 *
 * Threads  Any thread may call any function.
 * Errors   PyTorch looks at no result: it takes NULL for an address. A function that fails throws
 *          PyTorch's exception through PyTorch's frames: torch.OutOfMemoryError for memory, else
 *          RuntimeError. Nothing is locked then.
 * Units    Bytes. A stream is a cudaStream_t.
 * Cost     A call costs what the dry_pool_ function behind it does. The first request of a GPU
 *          opens it.
 */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/pool.h>

#define PLUG_API __attribute__((visibility("default")))

/*
 * Choose what the pools will be: `placement` "paged" or "torch", and `conf` and `compat` as
 * struct dry_pool_options has them; "" for its defaults. Without this call they are paged, with
 * the defaults. Returns NULL or why not, valid until the next call: a value has no meaning, or
 * other values are in use.
 */
PLUG_API const char *drystone_plug_configure(const char *placement, const char *conf,
                                             const char *compat);

/* Allocate for `stream`; NULL for a `size` of 0. Free the block at `address`. */
PLUG_API void *drystone_plug_alloc(size_t size, int device, void *stream);
PLUG_API void drystone_plug_free(void *address, size_t size, int device, void *stream);

/*
 * Do the same for the segments of a torch.cuda.MemPool, whose blocks PyTorch's native allocator
 * makes. NULL is out of memory: PyTorch then empties its cache and asks again. Memory that is
 * freed goes back to the driver, for the requests outside of the MemPool.
 */
PLUG_API void *drystone_plug_alloc_segment(size_t size, int device, void *stream);
PLUG_API void drystone_plug_free_segment(void *address, size_t size, int device,
                                         void *stream);

/* Do what torch.cuda.empty_cache() does, for all GPUs in use. */
PLUG_API void drystone_plug_reset(void);

/* Do what torch.cuda.set_per_process_memory_fraction() does. */
PLUG_API void drystone_plug_set_fraction(double fraction, int device);

/* Return where the segment of a block begins, and its size (or NULL) in *size. */
PLUG_API void *drystone_plug_get_base(void *address, size_t *size);

/* Do what Tensor.record_stream() does. Memory of others is ignored. */
PLUG_API void drystone_plug_record_stream(void *address, void *stream);

/*
 * Begin and end the scope of a CUDA graph: all requests of the GPU meanwhile go to the graph's
 * private pool. Release ends the pool. `filter` is a std::function of C++ that says which streams
 * are captured. Nothing calls it: all streams are taken for captured.
 */
PLUG_API void drystone_plug_begin_pool(int device, struct dry_pool_id id, void *filter);
PLUG_API void drystone_plug_end_pool(int device, struct dry_pool_id id);
PLUG_API void drystone_plug_release_pool(int device, struct dry_pool_id id);

/*
 * Keep a history of so many entries, without stacks, on each GPU that is opened from here on. Call
 * `on_oom` in the thread whose request has failed, before the exception is thrown. Nothing is
 * locked then.
 */
PLUG_API void drystone_plug_watch(size_t entries, void (*on_oom)(int device));

/*
 * Write a GPU's memory and history as a file of torch.cuda.memory._snapshot()'s shape. If this
 * fails, false is returned and `why`, with room for `room` bytes, says why.
 */
PLUG_API bool drystone_plug_write(int device, const char *path, char *why, size_t room);

#endif
