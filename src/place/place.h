/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_H
#define DRYI_PLACE_H

/*
 * A place is an allocation policy over a device: a place decides which block serves a request.
 *
 * Like a device, a place is a table of functions and a `self`. Implementations: PyTorch's policy
 * (place/torch/torch.h) and ours (place/paged/paged.h). A place takes no lock, reads no clock and
 * starts no thread. A pool adds the lock; a replay runs a place on the simulated device.
 *
 * Streams    A number always means the same stream. A caller that reuses stream handles maps them
 *            to numbers first (pool/pool_stream.h).
 * Errors     Records are allocated before they are needed: after MEMORY the place is consistent and
 *            the request undone. Memory that a failed request released to the device stays
 *            released.
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

/* A set of streams: those for which `covers` returns true. `covers` NULL: all streams. */
struct dryi_stream_filter {
    bool (*covers)(void *self, uint64_t stream);
    void *self;
};

static inline bool
dryi_stream_filter_covers(const struct dryi_stream_filter *filter, uint64_t stream)
{
    return !filter->covers || filter->covers(filter->self, stream);
}

/* Flags of a private pool. */
#define DRYI_POOL_USE_ON_OOM 1u /* Other pools may use its free blocks before an OOM */
#define DRYI_POOL_NO_SPLIT 2u /* A free block is never split: it serves a request whole */
#define DRYI_POOL_NO_REMAP 4u /* Its pages are never moved (NCCL, IPC, CUDA graphs) */

/* The blocks of a private pool as they were at a checkpoint. */
struct dryi_restored {
    struct dryi_pool_id pool;
    uint64_t hold; /* set by hold_pool; differs between pools that had the same id */
    const struct dryi_block_info *blocks;
    size_t count;
};

/* The caller of restore_pool, told from inside the call which blocks are freed and allocated. */
struct dryi_restore_watcher {
    /* The next event has this action: ALLOC or FREE_REQUESTED. */
    void (*begin)(void *self, enum dry_action action);
    /* The block with this handle is now free. */
    void (*freed)(void *self, dryi_block block);
    /* The block blocks[index] is now in use under this handle. */
    void (*made)(void *self, dryi_block block, size_t index);
    void *self;
};

struct dryi_place_ops {
    /*
     * Return all memory to the device without waiting for any stream. A caller that must wait calls
     * trim with 0 first.
     */
    void (*destroy)(void *self);

    /*
     * Allocate a block of `size` bytes for `stream`. A size of 0 gives DRYI_NO_BLOCK and OK.
     *     NO_SPACE        All means were tried, so the same call fails again (PyTorch's place: all
     *                     that PyTorch tries).
     *     ARGUMENT        1 EiB or more.
     *     MEMORY, SYSTEM  Also if no block was found and this failure hid part of the freed memory.
     */
    enum dry_status (*alloc)(void *self, uint64_t size, uint64_t stream,
                             dryi_block *block);
    /*
     * Free a block. The call allocates no memory. SYSTEM: an event had to be recorded and could not
     * be; the block stays in use. No other failure is possible.
     */
    enum dry_status (*free)(void *self, dryi_block block);
    /*
     * Note that another stream uses the block. Repeated calls, and calls for the block's own
     * stream, have no effect.
     */
    enum dry_status (*record_stream)(void *self, dryi_block block, uint64_t stream);
    /* Note that the program made `stream` wait for all work submitted to `on` so far. */
    enum dry_status (*stream_waits)(void *self, uint64_t stream, uint64_t on);
    /* Does the place still hold any state of this stream? NULL: it always does. */
    bool (*has_stream)(const void *self, uint64_t stream);
    /* Note that events of this stream may be complete: the next alloc queries them. */
    void (*stream_progressed)(void *self, uint64_t stream);
    void (*process_events)(void *self);

    /*
     * Release the cached memory of a pool to the device. (0, 0): as torch.cuda.empty_cache() does.
     * A private pool with users releases none. Paged ignores the id of a pool without users and
     * releases all cached memory: its pages belong to no pool.
     */
    enum dry_status (*empty_cache)(void *self, struct dryi_pool_id pool);
    /* Release cached memory until `target` bytes are reserved or no cached memory is left. */
    enum dry_status (*trim)(void *self, uint64_t target);
    /*
     * Limit the reserved bytes to `bytes`, whatever the options said; UINT64_MAX: no limit.
     * PyTorch's rules compare `bytes` with the requested size. Whole pages of expandable segments
     * may therefore exceed `bytes`, but never `mapped_bytes`.
     */
    void (*set_limit)(void *self, uint64_t bytes, uint64_t mapped_bytes);

    /*
     * Private pools. `open_pool` adds a user. The pool is created with these flags if it does not
     * exist; an existing pool without users keeps its flags.
     *
     * Between begin_pool and end_pool, requests of the filter's streams go to the pool; the
     * innermost begin wins. Both leave the users unchanged. `release_pool` removes a user. A pool
     * without users is freed by the next release of cached memory.
     *
     * ARGUMENT: begin of a pool that is already begun or does not exist, end of a pool that is not
     * begun, release without users.
     */
    enum dry_status (*open_pool)(void *self, struct dryi_pool_id pool, unsigned flags);
    enum dry_status (*begin_pool)(void *self, struct dryi_pool_id pool,
                                  struct dryi_stream_filter filter);
    enum dry_status (*end_pool)(void *self, struct dryi_pool_id pool);
    enum dry_status (*release_pool)(void *self, struct dryi_pool_id pool);

    /* Set the flags in `mask` to their values in `flags`. ARGUMENT: no such private pool. */
    enum dry_status (*flag_pool)(void *self, struct dryi_pool_id pool, unsigned flags,
                                 unsigned mask);
    /* Count the users of a private pool. ARGUMENT: no such private pool. */
    enum dry_status (*count_users)(const void *self, struct dryi_pool_id pool,
                                   uint64_t *users);

    /*
     * Hold a private pool for a checkpoint. Pages of a held pool stay in place while it has users,
     * whatever its flags. The caller passes *hold to unhold_pool later. Frees that a capture
     * deferred are processed first. ARGUMENT: the pool does not exist or has no users.
     */
    enum dry_status (*hold_pool)(void *self, struct dryi_pool_id pool, uint64_t *hold);
    /* End a hold; the pool may no longer exist. NULL: the place needs no call to end a hold. */
    void (*unhold_pool)(void *self, struct dryi_pool_id pool, uint64_t hold);
    /*
     * Free all blocks in use of a held pool, then allocate the blocks of `wanted` that were
     * allocated at their old addresses. `wanted` has all blocks of the pool as a walk visited them,
     * ordered by address, none pending. Failures that change nothing:
     *     ARGUMENT  The pool does not exist or has no users, memory of the pool was released, or a
     *               block in a wanted range waits for other streams.
     *     MEMORY, SYSTEM
     * SYSTEM can also come after a change: an event could not be recorded for a block that other
     * streams use. Blocks that the watcher was told are free stay free; all others are unchanged.
     */
    enum dry_status (*restore_pool)(void *self, const struct dryi_restored *wanted,
                                    const struct dryi_restore_watcher *watcher,
                                    struct dry_error *err);

    /*
     * Begin the capture of these streams into a graph. While captured, no event on these streams is
     * queried or recorded, and no memory is released. Frees that wait for streams are deferred
     * until the last capture ends. Captures nest.
     */
    enum dry_status (*begin_capture)(void *self, struct dryi_stream_filter filter);
    enum dry_status (*end_capture)(void *self);

    /*
     * Find the block in use that begins at this address, if alloc registered the block for this.
     * Returns DRYI_NO_BLOCK if there is none. O(1). NULL: the place finds no blocks by address.
     */
    dryi_block (*find)(const void *self, uint64_t address);

    /* Return the address of a block in use. A pool calls this after every alloc. */
    uint64_t (*get_address)(const void *self, dryi_block block);
    void (*get_block)(const void *self, dryi_block block, struct dryi_block_info *info);
    void (*get_stats)(const void *self, struct dry_stats *stats);
    /* Fill *counters except oom_callbacks_helped and driver_time_ns, which the pool counts. */
    void (*get_counters)(const void *self, struct dry_pool_counters *counters);
    /* Visit the reserved bytes per private pool, destroyed pools included: see place_figures.h. */
    void (*visit_figures)(const void *self, dryi_figure_visit *visit, void *visitor);
    /*
     * Reset statistics. `peaks`: each peak becomes the current value, as
     * torch.cuda.reset_peak_memory_stats() does. `accumulated`: sums and counts become 0, as
     * reset_accumulated_memory_stats() does. Counters are not reset.
     */
    void (*reset_stats)(void *self, bool peaks, bool accumulated);
    /* Replace the observer; `event` NULL: no observer. */
    void (*set_observer)(void *self, struct dryi_place_observer observer);
    /*
     * Return the block size for a request of `size` bytes. The block that alloc returns can be
     * larger if its remainder is not split off.
     */
    uint64_t (*round_size)(const void *self, uint64_t size);
    /*
     * Visit the segments as a snapshot lists them: by address, without unmapped parts. `blocks` are
     * in address order and valid during the call only. The walk ends at the first status other than
     * OK from `visit`, and returns it.
     */
    enum dry_status (*walk)(
        const void *self,
        enum dry_status (*visit)(void *visitor, const struct dryi_segment_info *segment,
                                 const struct dryi_block_info *blocks, size_t count),
        void *visitor);
    /*
     * Take a pending packing job; NULL: there is none. The taker owns the job until return_job.
     * dryi_packing_job_run() (place/forecast/forecast.h) runs a job in any thread and reads no
     * state of the place. The caller returns the job, run or not or cancelled, before it destroys
     * the place. Both functions NULL: the place has no such jobs.
     */
    struct dryi_packing_job *(*take_job)(void *self);
    void (*return_job)(void *self, struct dryi_packing_job *job);
    /* Check all invariants. FORMAT: `err` names the first violated one. */
    enum dry_status (*check)(const void *self, struct dry_error *err);
};

struct dryi_place {
    const struct dryi_place_ops *ops;
    const struct dryi_cache_ops *caches; /* NULL: the place has no caches */
    void *self;
    uint64_t cache_max; /* bytes; larger blocks are cached only while caches are shared */
};

/*
 * Record a failure that limits a request without ending the request. A request that finds no block
 * returns the first such failure instead of NO_SPACE, because a repeated call may succeed.
 * UNSUPPORTED is not recorded: a capture forbids the call, or the device cannot answer it. Returns
 * `status`.
 */
static inline enum dry_status
dryi_note_hindered(enum dry_status *hindered, enum dry_status status)
{
    if (*hindered == DRY_OK && status != DRY_ERR_UNSUPPORTED)
        *hindered = status;
    return status;
}

#endif
