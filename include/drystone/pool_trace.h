/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_POOL_TRACE_H
#define DRY_POOL_TRACE_H

/*
 * Export a pool as a trace: its current segments and blocks, its history and its
 * settings, in the format of torch.cuda.memory._snapshot(). dry_trace_write() makes a
 * file of it that pytorch.org/memory_viz, torch.cuda._memory_viz and every drystone
 * command can read.
 *
 *     struct dry_pool_trace_options options;
 *     dry_pool_trace_options_init(&options);
 *     options.get_frames = frames_of;
 *     if (dry_trace_from_pool(pool, &options, &trace, &err) == DRY_OK)
 *         status = dry_trace_write(trace, &sink, &err);
 *
 * Segments and history are of one moment. Without a history (dry_pool_record_history())
 * the trace has segments only, without stacks. A record of placement torch replays
 * exactly if it begins with the pool, is complete, and no request failed.
 * allocator_settings hold PyTorch's options. With placement paged they hold
 * `drystone_placement` and `drystone_conf`, and all segments belong to the default
 * stream, because streams share pages.
 *
 * Ownership  The caller owns the trace and ends it with dry_trace_destroy(). The pool may
 *            end before it.
 * Threads    Any thread may call. The pool's lock is held while its state is copied, and
 *            not while the callback is called. The contexts are passed to get_frames
 *            afterwards; if another thread ends the history meanwhile, they may already
 *            have been released.
 * Cost       O(blocks + entries of the history), and one callback for each context found.
 */

#include <drystone/pool.h>
#include <drystone/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A frame of a stack. A NULL string counts as empty. */
struct dry_pool_frame {
    const char *name, *file;
    uint32_t line;
};

/* Frames of a stack beyond this number are left out. */
#define DRY_POOL_FRAMES_MAX 4096

struct dry_pool_trace_options {
    size_t struct_size;              /* set by dry_pool_trace_options_init() */
    const struct dry_memory *memory; /* allocator of the trace */
    /*
     * Write up to `capacity` frames of the stack with number `context`, innermost first.
     * Return the number of frames it has in all; if that exceeds `capacity`, the call is
     * repeated once with sufficient capacity. Strings must live until the next call. It may
     * call the pool. NULL: no stacks.
     */
    size_t (*get_frames)(void *self, uint32_t context, struct dry_pool_frame *frames,
                         size_t capacity);
    void *frames_self;
};

DRY_API void dry_pool_trace_options_init_sized(struct dry_pool_trace_options *options,
                                               size_t struct_size);
#define dry_pool_trace_options_init(options)                                             \
    dry_pool_trace_options_init_sized(options, sizeof *(options))

/*
 * Make a trace of a pool. `options` NULL: the defaults. Errors:
 *     ARGUMENT     The pool's device_index is negative, so it names no device.
 *     UNSUPPORTED  This is the child of a fork.
 *     MEMORY
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_from_pool(
    struct dry_pool *pool, const struct dry_pool_trace_options *options,
    struct dry_trace **trace, struct dry_error *err);

/*
 * Return the placement of a record that a pool made, "paged", and its options, which may
 * be empty. A snapshot that PyTorch wrote while the pool was its allocator has both in
 * its settings' `conf`, after "drystone_placement:". NULL and length 0: the record names
 * none, and counts as PyTorch's. The text belongs to the trace and is not terminated;
 * `length` may be NULL.
 */
DRY_API const char *dry_trace_placement(const struct dry_trace *trace, size_t *length);
DRY_API const char *dry_trace_placement_conf(const struct dry_trace *trace,
                                             size_t *length);

#ifdef __cplusplus
}
#endif

#endif
