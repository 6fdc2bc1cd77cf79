/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_POOL_TRACE_H
#define DRY_POOL_TRACE_H

/*
 * A pool as a trace: its segments and blocks now, the history it kept, and its settings, in
 * the shape of torch.cuda.memory._snapshot(). Written by dry_trace_write() it is a file that
 * pytorch.org/memory_viz, torch.cuda._memory_viz and every command of ours open.
 *
 *     struct dry_pool_trace_options options;
 *     dry_pool_trace_options_init(&options);
 *     options.get_frames = frames_of;
 *     if (dry_trace_from_pool(pool, &options, &trace, &err) == DRY_OK)
 *         status = dry_trace_write(trace, &sink, &err);
 *
 * Segments and history are of one moment. Without a history (dry_pool_record_history()) there
 * are segments only, without stacks. If the placement is torch and no request failed, a record
 * that begins with the pool and has lost nothing replays exactly. allocator_settings hold
 * PyTorch's options. With placement paged they hold `drystone_placement` and `drystone_conf`,
 * and all segments are the default stream's, as streams share pages.
 *
 * Ownership  The trace is the caller's, ended with dry_trace_destroy(). It does not need the
 *            pool any more.
 * Threads    Any thread may call. The pool's lock is held while its state is copied, and not
 *            while the callback is called. The trace being made holds the contexts that it asks
 *            about; a history that another thread ends meanwhile releases them all the same.
 * Cost       O(blocks + entries of the history), and one call for each context that is there.
 */

#include <drystone/pool.h>
#include <drystone/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function on a stack. NULL strings are empty ones. */
struct dry_pool_frame {
    const char *name, *file;
    uint32_t line;
};

/* Frames of a stack above so many are left out. */
#define DRY_POOL_FRAMES_MAX 4096

struct dry_pool_trace_options {
    size_t struct_size;              /* set by dry_pool_trace_options_init() */
    const struct dry_memory *memory; /* of the trace */
    /*
     * Write up to `room` frames of the stack with number `context`, innermost first, and return
     * how many frames it has in all. If there are more than `room`, this is called once again
     * with room for them. Strings must live until the next call. May call the pool. NULL: no
     * stacks.
     */
    size_t (*get_frames)(void *self, uint32_t context, struct dry_pool_frame *frames,
                         size_t room);
    void *frames_self;
};

DRY_API void dry_pool_trace_options_init_sized(struct dry_pool_trace_options *options,
                                               size_t struct_size);
#define dry_pool_trace_options_init(options)                                             \
    dry_pool_trace_options_init_sized(options, sizeof *(options))

/*
 * Make a trace of a pool. `options` NULL: the defaults. Errors:
 *     ARGUMENT     The pool's device_index names no device: it is negative.
 *     UNSUPPORTED  This is the child of a fork.
 *     MEMORY
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_from_pool(
    struct dry_pool *pool, const struct dry_pool_trace_options *options,
    struct dry_trace **trace, struct dry_error *err);

/*
 * The placement of a record that a pool made, "paged", and the options it had, which may be
 * empty. A snapshot that PyTorch wrote while the pool was its allocator has both in its settings'
 * `conf`, after "drystone_placement:". NULL and 0: the record does not say, and is taken for
 * PyTorch's. The text is the trace's and not terminated; `length` may be NULL.
 */
DRY_API const char *dry_trace_placement(const struct dry_trace *trace, size_t *length);
DRY_API const char *dry_trace_placement_conf(const struct dry_trace *trace,
                                             size_t *length);

#ifdef __cplusplus
}
#endif

#endif
