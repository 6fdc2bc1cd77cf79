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
 * Segments and history are of one moment. Without a history (dry_pool_record_history) there
 * are segments only, without stacks. A record that begins with the pool and has lost nothing
 * replays exactly, where the placement is PyTorch's and no request failed. allocator_settings
 * hold PyTorch's options, or for the paged placement `drystone_placement` and `drystone_conf`;
 * there all segments are the default stream's, as streams share pages.
 *
 * Ownership  The trace is the caller's, ended with dry_trace_destroy(); it does not need the
 *            pool any more.
 * Threads    Any; the pool's lock is held while its state is copied, and not while the
 *            callback is called.
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
     * The stack of a context number, innermost frame first: up to `room` frames, and how
     * many there are in all. If those are more, it is asked once again with room for them.
     * Strings must live until the next call. NULL: no stacks. May call the pool.
     */
    size_t (*get_frames)(void *self, uint32_t context, struct dry_pool_frame *frames,
                         size_t room);
    void *frames_self;
};

DRY_API void dry_pool_trace_options_init(struct dry_pool_trace_options *options);

/*
 * options NULL: the defaults. Errors: MEMORY; ARGUMENT where the pool's device_index names no
 * device (it is negative); UNSUPPORTED in the child of a fork.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_from_pool(
    struct dry_pool *pool, const struct dry_pool_trace_options *options,
    struct dry_trace **trace, struct dry_error *err);

/*
 * Who placed the blocks of a record that a pool made, "paged", and the options it had, which
 * may be empty. NULL and 0: the record does not say, and is taken for PyTorch's. The text is
 * the trace's and not terminated; `length` may be NULL.
 */
DRY_API const char *dry_trace_placement(const struct dry_trace *trace, size_t *length);
DRY_API const char *dry_trace_placement_conf(const struct dry_trace *trace,
                                             size_t *length);

#ifdef __cplusplus
}
#endif

#endif
