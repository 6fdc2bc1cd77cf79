/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLUG_GPU_H
#define DRY_PLUG_GPU_H

/*
 * The pools of a process, one for each GPU: the state of plug.h. They are never closed. Tensors
 * may outlive everything else, and the driver frees all memory when the process ends.
 */

#include <drystone/cuda.h>
#include <drystone/pool.h>

struct plug_gpu {
    struct dry_cuda *cuda;
    struct dry_pool *pool;
};

/* Return the GPU, opened if necessary. Throws if opening fails. */
struct plug_gpu *plug_gpu_at(int index);

/* Return the next open GPU from *index on, and set *index after it; NULL: none is left. */
struct plug_gpu *plug_gpu_next(int *index);

/* Report a failed request to the callback of drystone_plug_watch(), if there is one. */
void plug_gpu_tell_oom(int index);

/* Throw c10::Error with a text that says which call failed. */
__attribute__((format(printf, 1, 2))) _Noreturn void plug_fail(const char *format, ...);

#endif
