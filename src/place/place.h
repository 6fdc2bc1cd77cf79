/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_H
#define DRYI_PLACE_H

/*
 * A place decides where a request goes, over a device.
 *
 * A place is two words, like a device: a table of functions and a self. Implementations: PyTorch's
 * decisions (place/torch/torch.h) and ours (place/paged/paged.h). A place is pure: it takes no
 * lock, reads no clock, starts nothing. A pool is a place with a lock, a replay is one on the
 * simulated device.
 *
 * Streams    A stream is a number, and a number is one stream for ever. A caller whose handles are
 *            used again turns them into numbers before they come here (pool/pool_stream.h).
 * Errors     Records are taken before they are needed: MEMORY leaves the place consistent
 *            and the request undone. Memory that a failing request has given back stays given back.
 * Threads    One thread at a time; stream caches: see place/place_cache.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/device.h>
#include <drystone/memory.h>
#include <drystone/pool.h>

#include "place/place_cache.h"
#include "place/place_figures.h"
#include "place/place_info.h"

struct dryi_packing_job;

/* Which streams something is about; `covers` NULL: all of them. */
struct dryi_stream_filter {
    bool (*covers)(void *self, uint64_t stream);
    void *self;
};

static inline bool
dryi_stream_filter_covers(const struct dryi_stream_filter *filter, uint64_t stream)
{
    return !filter->covers || filter->covers(filter->self, stream);
}

/* How a private pool behaves. */
#define DRYI_POOL_USE_ON_OOM 1u /* its free blocks serve others before an OOM */
#define DRYI_POOL_NO_SPLIT 2u   /* a block is as large as what was found for it */
#define DRYI_POOL_NO_REMAP 4u /* its pages stay where they are (NCCL, IPC, CUDA graphs) */

/* The blocks that a private pool had at a checkpoint. */
struct dryi_restored {
    struct dryi_pool_id pool;
    uint64_t hold; /* which of the pools that had this id */
    const struct dryi_block_info *blocks;
    size_t count;
};

/* Told, from inside restore_pool, of what goes and comes. */
struct dryi_restore_watcher {
    /* The next event is of this action: ALLOC or FREE_REQUESTED. */
    void (*begin)(void *self, enum dry_action action);
    /* The block that had this handle is free. */
    void (*freed)(void *self, dryi_block block);
    /* The block is in use: the one with this index in `blocks`. */
    void (*made)(void *self, dryi_block block, size_t index);
    void *self;
};

struct dryi_place_ops {
    /* Return everything, without a wait for any stream. A trim to 0 before does wait. */
    void (*destroy)(void *self);

    /*
     * Take a block of `size` bytes for `stream`. A size of 0 gives DRYI_NO_BLOCK and OK. NO_SPACE:
     * out of memory after everything was tried, so that the same call again fails again (PyTorch's
     * place: after everything PyTorch tries). ARGUMENT: 1 EiB or more. MEMORY, SYSTEM: also if
     * nothing was found, and part of what was freed could not be looked at for that reason.
     */
    enum dry_status (*alloc)(void *self, uint64_t size, uint64_t stream,
                             dryi_block *block);
    /*
     * Give a block back. The call takes no memory. SYSTEM: an event must be recorded and cannot be.
     * The block stays in use then; no other failure is possible.
     */
    enum dry_status (*free)(void *self, dryi_block block);
    /*
     * Note that another stream uses the block too. The block's own stream is ignored, as are
     * repetitions.
     */
    enum dry_status (*record_stream)(void *self, dryi_block block, uint64_t stream);
    /* Note that the program made `stream` wait for everything on `on` so far. */
    enum dry_status (*stream_waits)(void *self, uint64_t stream, uint64_t on);
    /* Is anything left of a stream? NULL: something is left of every stream. */
    bool (*has_stream)(const void *self, uint64_t stream);
    /* Note that events of this stream may be complete: the next alloc looks. */
    void (*stream_progressed)(void *self, uint64_t stream);
    void (*process_events)(void *self);

    /*
     * Give cached memory of a pool back to the device; (0, 0): as torch.cuda.empty_cache() does. A
     * private pool gives nothing while it has users. Without users, paged gives back all that is
     * cached: its pages belong to no pool.
     */
    enum dry_status (*empty_cache)(void *self, struct dryi_pool_id pool);
    /* Do the same until no more than `target` bytes are reserved, or nothing is left to give. */
    enum dry_status (*trim)(void *self, uint64_t target);
    /*
     * Take no more than `bytes` from the device, whatever the options said; UINT64_MAX: no limit.
     * PyTorch's rules compare `bytes` with what is asked. Whole pages of expandable segments may go
     * beyond it there, but never beyond `mapped_bytes`.
     */
    void (*set_limit)(void *self, uint64_t bytes, uint64_t mapped_bytes);

    /*
     * Private pools. `open_pool` gives a pool one user more. A pool that is not there is made, with
     * these flags. A pool without users that is still there gets a user again, and its flags stay.
     * Requests of the streams that a filter covers go to the pool from begin to end; the innermost
     * begin wins. The users do not change by `begin_pool` and `end_pool`. A pool without users is
     * freed by the next release of cached memory. ARGUMENT: begin of a pool that is begun or not
     * there, end of a pool that is not begun, release without users.
     */
    enum dry_status (*open_pool)(void *self, struct dryi_pool_id pool, unsigned flags);
    enum dry_status (*begin_pool)(void *self, struct dryi_pool_id pool,
                                  struct dryi_stream_filter filter);
    enum dry_status (*end_pool)(void *self, struct dryi_pool_id pool);
    enum dry_status (*release_pool)(void *self, struct dryi_pool_id pool);

    /* Give the flags of `mask` these values. ARGUMENT: there is no such private pool. */
    enum dry_status (*flag_pool)(void *self, struct dryi_pool_id pool, unsigned flags,
                                 unsigned mask);
    /* ARGUMENT: there is no such private pool. */
    enum dry_status (*count_users)(const void *self, struct dryi_pool_id pool,
                                   uint64_t *users);

    /*
     * Hold a private pool for a checkpoint. While the pool is held, its pages stay as long as it
     * has users, whatever its flags are. The caller gives *hold back to unhold_pool. Frees that a
     * capture put off are looked at. ARGUMENT: the pool is not there, or has no users.
     */
    enum dry_status (*hold_pool)(void *self, struct dryi_pool_id pool, uint64_t *hold);
    /*
     * Hold the pool no more. A pool that is gone by now is accepted. NULL: nothing is to be given
     * back.
     */
    void (*unhold_pool)(void *self, struct dryi_pool_id pool, uint64_t hold);
    /*
     * Free all blocks in use of a held pool, and put those of `wanted` that are allocated back
     * where they were. All blocks of the pool are in `wanted` as a walk told them, by address, none
     * of them pending. Returns before anything changed:
     *     ARGUMENT  The pool is gone or without users, or memory of it is, or a block in the way
     *               waits for other streams.
     *     MEMORY, SYSTEM
     * SYSTEM after something changed: an event could not be recorded for a block that other streams
     * use. Blocks that the watcher was told are free stay free; all else is as it was.
     */
    enum dry_status (*restore_pool)(void *self, const struct dryi_restored *wanted,
                                    const struct dryi_restore_watcher *watcher,
                                    struct dry_error *err);

    /*
     * Begin the capture of these streams into a graph. No event on them is asked about or recorded,
     * and nothing is given back. Frees that wait for streams are held until no capture is left.
     * Captures nest.
     */
    enum dry_status (*begin_capture)(void *self, struct dryi_stream_filter filter);
    enum dry_status (*end_capture)(void *self);

    /*
     * Find the block in use that begins at this address, if its alloc said that it can be found.
     * DRYI_NO_BLOCK: there is none. O(1). NULL: no block can be found.
     */
    dryi_block (*find)(const void *self, uint64_t address);

    /* Return where a block in use begins. A pool asks for this after every alloc. */
    uint64_t (*get_address)(const void *self, dryi_block block);
    void (*get_block)(const void *self, dryi_block block, struct dryi_block_info *info);
    void (*get_stats)(const void *self, struct dry_stats *stats);
    /* Fill *counters but for oom_callbacks_helped and driver_time_ns, which a pool counts. */
    void (*get_counters)(const void *self, struct dry_pool_counters *counters);
    /* Visit the reserved bytes of private pools, of those that are gone, too: place_figures.h. */
    void (*visit_figures)(const void *self, dryi_figure_visit *visit, void *visitor);
    /*
     * Reset statistics. `peaks`, as torch.cuda.reset_peak_memory_stats(): every peak is the current
     * value. `accumulated`, as reset_accumulated_memory_stats(): every sum and count is 0. Counters
     * stay.
     */
    void (*reset_stats)(void *self, bool peaks, bool accumulated);
    /* Tell this observer from now on; event NULL: tell no observer. */
    void (*set_observer)(void *self, struct dryi_place_observer observer);
    /* Return the size of the block a request gets, before any remainder that is not split off. */
    uint64_t (*round_size)(const void *self, uint64_t size);
    /*
     * Visit the segments as a snapshot lists them: by address, unmapped parts left out. `blocks`
     * are in address order and valid during the call. A status other than OK from `visit` ends the
     * walk.
     */
    enum dry_status (*walk)(
        const void *self,
        enum dry_status (*visit)(void *visitor, const struct dryi_segment_info *segment,
                                 const struct dryi_block_info *blocks, size_t count),
        void *visitor);
    /*
     * Take work that the place would like to have done; it is the taker's until it is returned.
     * NULL: there is none. dryi_packing_job_run() (place/forecast/forecast.h) does the work, in
     * any thread, and touches nothing of the place. The work is returned done, undone or
     * cancelled, and before the place is destroyed. Both ops NULL: the place has no such work.
     */
    struct dryi_packing_job *(*take_job)(void *self);
    void (*return_job)(void *self, struct dryi_packing_job *job);
    /* Walk all invariants; FORMAT with the first broken one as text. */
    enum dry_status (*check)(const void *self, struct dry_error *err);
};

struct dryi_place {
    const struct dryi_place_ops *ops;
    const struct dryi_cache_ops *caches; /* NULL: the placement has none */
    void *self;
    uint64_t cache_max; /* bytes; larger blocks lie in shared caches alone */
};

/*
 * Note, in a placement, a failure in spite of which a request goes on, and which the next request
 * may not meet. A request that finds nothing ends with the first such failure, and not with
 * NO_SPACE: it has not seen all there is. UNSUPPORTED is no such failure: a capture forbids it, or
 * the device cannot tell. Returns `status`.
 */
static inline enum dry_status
dryi_note_hindered(enum dry_status *hindered, enum dry_status status)
{
    if (*hindered == DRY_OK && status != DRY_ERR_UNSUPPORTED)
        *hindered = status;
    return status;
}

#endif
