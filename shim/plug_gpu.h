/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLUG_GPU_H
#define DRY_PLUG_GPU_H

/*
 * The pools of a process, a GPU each: the state behind plug.h. None is closed. Tensors may outlive
 * everything, and the driver takes all back when the process ends.
 */

#include <drystone/cuda.h>
#include <drystone/pool.h>

struct plug_gpu {
    struct dry_cuda *cuda;
    struct dry_pool *pool;
};

/* The GPU, opened if need be. Throws if it cannot be. */
struct plug_gpu *plug_gpu_at(int index);

/* The next open GPU from *index on, which is set behind it; NULL: none is left. */
struct plug_gpu *plug_gpu_next(int *index);

/* Tell the program that a request has failed, if drystone_plug_watch() was called. */
void plug_gpu_tell_oom(int index);

/* Throw c10::Error with a text that says which call failed. */
__attribute__((format(printf, 1, 2))) _Noreturn void plug_fail(const char *format, ...);

#endif
