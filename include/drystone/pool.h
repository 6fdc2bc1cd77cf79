/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_POOL_H
#define DRY_POOL_H

/*
 * A caching allocator for one device: memory for streams, without driver calls once
 * warmed up.
 *
 *     struct dry_pool_options options;
 *     dry_pool_options_init(&options);
 *     options.device = dry_sim_get_device(sim);
 *     if (dry_pool_create(&options, &pool, &err) != DRY_OK) ...
 *     uint64_t address;
 *     if (dry_pool_alloc(pool, bytes, stream, &address) != DRY_OK) ...
 *     dry_pool_free(pool, address);
 *     dry_pool_destroy(pool);
 *
 * A block belongs to the stream it was asked for. This stream may take the block's memory
 * again as soon as the block is freed, because work on a stream happens in order. A
 * program announces every other stream that uses a block with dry_pool_record_stream().
 *
 * Two placements decide where a request goes. Placement paged, this library's own, remaps
 * pages, so that free memory under any address can serve a request at another. Placement
 * torch decides exactly as PyTorch does.
 *
 * Words
 *     segment       a range of addresses that the pool got from the device
 *     block         a part of one segment: in use, pending or free
 *     page          memory without an address, see <drystone/device.h>
 *     cached        free, but not given back to the device
 *     pending       freed, while a stream recorded on the block may still use it
 *     private pool  memory for the requests of its scope; the default pool is the memory
 *                   of all others
 *     capture       a span of time in which streams record work into a graph, not run it
 *     period        a part of the program's requests that repeats: an iteration
 *
 * Ownership  dry_pool_create() and dry_pool_destroy(). The device must outlive the pool;
 *            each device needs its own pool. Destroy also frees blocks in use: work on
 *            them must be over. Destroy waits for the work on freed blocks, unless the
 *            host has no memory to sort them.
 * Errors
 *     NO_SPACE     Out of memory. Everything was tried, so an immediate retry fails too.
 *                  Placement torch fails exactly where PyTorch does, and PyTorch does not
 *                  reconsider memory that it has waited for: a retry may succeed there.
 *     ARGUMENT     The address is not a block of this pool in use, or the size is 1 EiB
 *                  or more.
 *     MEMORY       The host has no memory for the pool's records. Nothing was done.
 *     SYSTEM       A driver call other than for memory failed.
 *     UNSUPPORTED  This is the child of a fork, and the device belongs to the parent.
 *                  Only destroy is allowed here, and it leaves the device alone.
 *     If MEMORY or SYSTEM keeps a request from memory that was freed, the request ends
 *     with this status and not with NO_SPACE: whether the request would fit is not known.
 *     No callback is called then. A callback that forks must not return in the child. If
 *     a thread had the pool's lock when another thread forked, destroy in the child frees
 *     nothing.
 * Threads    Any thread may call any function at any time, except create and destroy. A
 *            pool has one lock. Each callback's comment says what the callback may do.
 *
 *            Placement paged adds a lock for each stream once several threads each use
 *            streams of their own. A stream's cached blocks are then allocated and freed
 *            under the stream's lock, without the pool's. Splitting or merging a block
 *            also takes the pool's lock, which delays only threads that need it.
 *            Meanwhile large blocks stay cached if their sizes repeat, and no period is
 *            planned. A history, an observer, a private pool begun or a capture begun
 *            turns these locks off.
 *
 *            Placement paged sometimes starts a thread to pack the program's period. The
 *            thread exits when the packing is done. It calls no device, uses the C library's
 *            malloc, and is ended by destroy. The option "plan:False" avoids the thread.
 * Units      Bytes.
 * Cost       Alloc and free allocate no host memory and call no driver if the cache serves
 *            the request.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/device.h>
#include <drystone/memory.h>
#include <drystone/stats.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_pool;

enum dry_placement {
    DRY_PLACEMENT_PAGED, /* this library's own placement */
    DRY_PLACEMENT_TORCH, /* PyTorch's decisions */
};

/* The id of a pool: (0, 0) is the default pool; the program chooses the ids of private
   pools. */
struct dry_pool_id {
    uint64_t a, b;
};

/* One entry of the history. */
struct dry_pool_event {
    enum dry_action action;
    /*
     * Values as in a snapshot's entry of this action. For DRY_ACTION_OOM, `address` is
     * the number of free bytes: on the device and, with placement paged, in pages not
     * mapped anywhere.
     */
    uint64_t address, size, stream;
    struct dry_pool_id pool;
    uint64_t time_us; /* microseconds since the epoch */
    uint32_t context; /* the result of get_context for the request; DRY_NONE: none */
};

struct dry_pool_options {
    size_t struct_size; /* set by dry_pool_options_init() */
    const struct dry_memory *memory;
    struct dry_device device; /* required */
    int32_t device_index; /* the device's number in messages and snapshots; default 0 */
    enum dry_placement placement; /* default paged */
    /*
     * Options as text, default "". Placement torch reads the format of
     * PYTORCH_CUDA_ALLOC_CONF; placement paged reads "budget:1.05,remap:True,plan:True",
     * see drystone-pool(5).
     */
    const char *conf;
    /* The release whose rules placement torch follows, "2.0" to "2.15", the newest known.
       Default NULL: the newest rules. */
    const char *compat;
    /* Called for every event, in order, with the lock held: it must not call the pool. */
    void (*observe)(void *self, const struct dry_pool_event *event);
    void *observe_self;
};

/* Set the defaults; the caller must set `device`. */
DRY_API void dry_pool_options_init_sized(struct dry_pool_options *options,
                                         size_t struct_size);
#define dry_pool_options_init(options)                                                   \
    dry_pool_options_init_sized(options, sizeof *(options))

/*
 * Make a pool. `options` are copied. Errors:
 *     ARGUMENT     No device, or an invalid `conf` or `compat`; err says which.
 *     UNSUPPORTED  Unknown placement, or it does not support the backend in `conf` or the
 *                  device's page size; err says which.
 *     MEMORY
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_create(
    const struct dry_pool_options *options, struct dry_pool **pool,
    struct dry_error *err);

/* End a pool and free all its memory; see Ownership. */
DRY_API void dry_pool_destroy(struct dry_pool *pool);

/* --- blocks ----------------------------------------------------------------------------- */

/* Allocate `size` bytes for `stream`; *address is a multiple of 512. A `size` of 0 gives
   address 0, which dry_pool_free() accepts. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_alloc(struct dry_pool *pool,
                                                        uint64_t size, uint64_t stream,
                                                        uint64_t *address);

/*
 * Allocate at a multiple of `alignment`, a power of two up to 1 GiB. The block is larger
 * than `size` by at most alignment - 512 bytes. dry_pool_free() takes the address
 * returned here. ARGUMENT: also any other alignment.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_alloc_aligned(struct dry_pool *pool,
                                                                uint64_t size,
                                                                uint64_t alignment,
                                                                uint64_t stream,
                                                                uint64_t *address);

/*
 * Free the block in use that was allocated at `address`; 0 is ignored. The block is
 * pending until the streams recorded on it have passed this point. If one of these
 * streams has been destroyed, this call waits for the device, once. SYSTEM: an event
 * could not be recorded; the block stays in use.
 */
DRY_API enum dry_status dry_pool_free(struct dry_pool *pool, uint64_t address);

/* Record that `stream` also uses the block at `address`. The block's own stream and
   repeated calls are ignored. */
DRY_API enum dry_status dry_pool_record_stream(struct dry_pool *pool, uint64_t address,
                                               uint64_t stream);

/*
 * Record that the program has made `stream` wait for all work on `on` so far
 * (cuStreamWaitEvent). With placement paged `stream` may then reuse memory freed on `on`
 * before. Placement torch ignores this.
 */
DRY_API enum dry_status dry_pool_stream_waits(struct dry_pool *pool, uint64_t stream,
                                              uint64_t on);

struct dry_pool_block {
    size_t struct_size;     /* DRY_INIT sets it */
    uint64_t address, size; /* address and size of the block; size >= requested */
    uint64_t requested; /* bytes requested, plus the slack of dry_pool_alloc_aligned() */
    uint64_t stream;
    struct dry_pool_id pool;
    uint64_t segment_address, segment_size;
    uint32_t context; /* DRY_NONE: none */
};

/*
 * Describe the block in use that was allocated at `address`. A block of
 * dry_pool_alloc_aligned() may begin before `address`. Cost: a walk to the block's
 * segment, not for the hot path.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_get_block(struct dry_pool *pool,
                                                            uint64_t address,
                                                            struct dry_pool_block *block);

/* Return the least size of a block for a request of `size` bytes; 0 for 0 and from 1 EiB
   on. */
DRY_API uint64_t dry_pool_round_size(const struct dry_pool *pool, uint64_t size);

/* --- limits and cached memory ----------------------------------------------------------- */

/*
 * Limit the pool to a fraction of the device, as
 * torch.cuda.set_per_process_memory_fraction() does: 0 <= fraction <= 1, and 1 means no
 * limit. It is a fraction of the device's total at create; without a known total it has
 * no effect. It replaces the fraction in the options; the smaller of it and
 * dry_pool_set_limit() applies. Like PyTorch, placement torch checks only the request
 * against the limit: whole pages of expandable segments may exceed it. ARGUMENT: any
 * other fraction.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_fraction(struct dry_pool *pool,
                                                               double fraction);

/* Limit the bytes taken from the device, counted in whole pages; UINT64_MAX: no limit. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_limit(struct dry_pool *pool,
                                                            uint64_t bytes);

/*
 * Apply further options to a pool of placement torch, as PyTorch does when a program
 * changes the allocator's options while it runs. They apply to later requests; existing
 * memory is not changed. Options that are not mentioned are reset or kept, by PyTorch's
 * rules. A fraction given here counts for throw_on_cudamalloc_oom only;
 * dry_pool_set_fraction() sets the limit. Errors, after which the pool is unchanged:
 * ARGUMENT (an unknown option or an invalid value), UNSUPPORTED (placement paged, whose
 * options are fixed at create), MEMORY. Cost: O(length).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_conf(struct dry_pool *pool,
                                                           const char *conf,
                                                           struct dry_error *err);

/* Wait for streams, and release to the device all cached memory that no block in use
   pins. A private pool that has users releases none. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_empty_cache(struct dry_pool *pool);

/*
 * Release the cached memory of private pool `id` only, if it has no users. An unknown
 * pool has none. Placement paged releases all cached memory, for its pages belong to no
 * pool.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_empty_private(struct dry_pool *pool,
                                                                struct dry_pool_id id);

/* Release cached memory until at most `target` bytes are reserved. *reserved (or NULL)
   gets the bytes still reserved. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_trim(struct dry_pool *pool,
                                                       uint64_t target,
                                                       uint64_t *reserved);

/*
 * Add a callback that is called before a request fails. `size` and `stream` are the
 * request's. The callback returns true if it freed memory and the request should be
 * retried.
 *
 * Callbacks are called in the order of adding until the request is served. There are at
 * most 8, and each is called at most once per request, without the lock. A callback may
 * call the pool, but must not wait for another thread that calls the pool. A request made
 * by a callback calls the callbacks again, so a callback must not recurse forever.
 * ARGUMENT: `callback` is NULL, is already added with this `self`, or is a ninth.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_add_oom_callback(
    struct dry_pool *pool, bool (*callback)(void *self, uint64_t size, uint64_t stream),
    void *self);

/* Remove a callback. If another thread is inside the callback, the callback may return
   after this call has returned. ARGUMENT: it was not added with this `self`. */
DRY_API enum dry_status dry_pool_remove_oom_callback(
    struct dry_pool *pool, bool (*callback)(void *self, uint64_t size, uint64_t stream),
    void *self);

/* --- private pools and captures ----------------------------------------------------------- */

#define DRY_POOL_USE_ON_OOM 1u /* its free blocks serve other pools before an OOM */
#define DRY_POOL_NO_SPLIT 2u   /* a free block is used whole, without splitting */
/* Its pages stay mapped even before an OOM: for NCCL, IPC, CUDA graphs. */
#define DRY_POOL_NO_REMAP 4u

/* A set of streams; `covers` NULL: all. Called with the lock held: it must not call the
   pool. */
struct dry_stream_filter {
    bool (*covers)(void *self, uint64_t stream);
    void *self;
};

/*
 * Add a user to private pool `id`, and create the pool with these flags if it does not
 * exist. ARGUMENT: the default pool, or an unknown flag.
 *
 * Private pools without users then give their pages to other pools. This records up to 64
 * events, and waits for the device if their free memory belongs to a destroyed stream.
 * During a capture it is postponed to the capture's end.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_open_private(struct dry_pool *pool,
                                                               struct dry_pool_id id,
                                                               unsigned flags);

/*
 * Set the flags of private pool `id` that are in `mask` to their values in `flags`; other
 * flags stay. ARGUMENT: no such pool, an unknown flag, or a flag in `flags` that is not
 * in `mask`.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_private_flags(struct dry_pool *pool,
                                                                    struct dry_pool_id id,
                                                                    unsigned flags,
                                                                    unsigned mask);

/* Get the number of users of private pool `id`. ARGUMENT: no such pool. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_count_private_users(
    struct dry_pool *pool, struct dry_pool_id id, uint64_t *users);

/*
 * Test whether the blocks in use of private pool `id` are exactly those allocated at
 * these `count` addresses. Order and repetitions do not matter. Cost: O(blocks of all
 * pools). Errors: ARGUMENT (no such pool), MEMORY; *has is unchanged then.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_private_has(struct dry_pool *pool,
                                                              struct dry_pool_id id,
                                                              const uint64_t *addresses,
                                                              size_t count, bool *has);

/* Remove a user from private pool `id`. Without users, the pool's cached memory is freed
   by the next release. ARGUMENT: no such pool, or it has no users. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_release_private(struct dry_pool *pool,
                                                                  struct dry_pool_id id);

/*
 * Begin the scope of private pool `id`: until dry_pool_end_private(), requests on the
 * streams of `filter` use this pool; filter NULL: all streams. The innermost scope wins
 * (placement torch with rules before 2.10: the outermost). ARGUMENT: no such pool, it has
 * no users, or its scope has begun already.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_begin_private(
    struct dry_pool *pool, struct dry_pool_id id, const struct dry_stream_filter *filter);

/* End the scope of private pool `id`. ARGUMENT: it has not begun. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_end_private(struct dry_pool *pool,
                                                              struct dry_pool_id id);

/*
 * Begin a capture of the streams of `filter`: from now on their work is captured into a
 * graph, not run. Captures nest. Until the end:
 *     - no event is queried or recorded on these streams;
 *     - no memory is released to the device for them (placement paged: none at all);
 *     - frees that wait for other streams are held until no capture is open (placement torch:
 *       all of them, as PyTorch does; placement paged: those of blocks that these streams own
 *       or use).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_begin_capture(
    struct dry_pool *pool, const struct dry_stream_filter *filter);

/* End the innermost capture. ARGUMENT: none has begun. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_end_capture(struct dry_pool *pool);

/* --- checkpoints of private pools -------------------------------------------------------- */

/*
 * The blocks of a private pool at one moment. A program that replays a graph has tensors
 * in blocks that the pool considers free, or in use by tensors that no longer exist.
 * Before the program records another graph into the pool, it restores the checkpoint
 * taken after the first graph.
 *
 * While a pool has checkpoints and users, its pages stay mapped as with the flag
 * DRY_POOL_NO_REMAP.
 */
struct dry_pool_checkpoint;

/*
 * Take a checkpoint of private pool `id`. The caller ends it with
 * dry_pool_checkpoint_destroy(), before the pool ends. Errors:
 *     ARGUMENT  No such pool, it has no users, or one of its blocks is pending.
 *     SYSTEM    An event for a block held by a capture could not be recorded.
 *     MEMORY, UNSUPPORTED
 * Cost: O(blocks of all pools).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_checkpoint_private(
    struct dry_pool *pool, struct dry_pool_id id, struct dry_pool_checkpoint **checkpoint,
    struct dry_error *err);

/* End a checkpoint; NULL is accepted. */
DRY_API void dry_pool_checkpoint_destroy(struct dry_pool_checkpoint *checkpoint);

/* Receives addresses during a restore, with the lock held: it must not call the pool. */
struct dry_pool_restore_visitor {
    void (*freed)(void *self, uint64_t address); /* the block was in use and is now
                                                    free */
    void (*live)(void *self, uint64_t address);  /* the block is now in use and must be
                                                    freed once */
    void *self;
};

/*
 * Restore a private pool to a checkpoint. Every block of the pool in use now is freed;
 * then each block in use at the checkpoint is in use again, at the same address, for the
 * same stream. A block that was in use all the time is visited twice: as freed, and as
 * live. The memory's contents are not touched. Placement torch waits for no stream.
 * Placement paged waits for a stream that now owns addresses of another stream at the
 * checkpoint.
 *
 * Events and statistics are those of PyTorch: segment by segment, frees, then allocs,
 * then frees of blocks that were free. get_context is called once. Errors:
 *     ARGUMENT  The pool no longer exists, has no users, or has lost memory meanwhile; or
 *               a block in use now is used by other streams. err says which.
 *     SYSTEM    Waiting for a stream or recording an event failed.
 *     MEMORY, UNSUPPORTED
 * A failed call changes nothing, with one exception: if SYSTEM is returned after calls of
 * `freed`, these blocks are free, and all others are unchanged. Cost: O(blocks of all
 * pools).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_restore_private(
    const struct dry_pool_checkpoint *checkpoint,
    const struct dry_pool_restore_visitor *visitor, struct dry_error *err);

/* --- other devices ------------------------------------------------------------------------- */

/*
 * Let device number `peer` access the pool's pages, mapped now or later. PyTorch does so
 * for its expandable segments. Memory of cudaMalloc is opened by the program with
 * cuCtxEnablePeerAccess(). Repeated calls are allowed. Errors:
 *     ARGUMENT  `peer` is this device, or no device.
 *     SYSTEM    The devices cannot reach each other, or the driver failed. Some mapped
 *               pages may be accessible then; a repeated call opens the rest.
 *     MEMORY, UNSUPPORTED
 * Cost: a driver call for each run of adjacent pages; later, one more driver call for
 * each map.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_enable_peer(struct dry_pool *pool,
                                                              int32_t peer);

/* --- other processes ------------------------------------------------------------------------- */

/* A block's memory as another process opens it: plain data, to be sent there. */
struct dry_pool_share {
    uint64_t offset;     /* offset of the block in the shared range */
    uint64_t size;       /* size of the shared range: a whole segment, or whole pages */
    uint64_t page_bytes; /* 0: `name` identifies the range; else each page has a
                            descriptor */
    uint64_t page_count;
    struct dry_range_name name;
};

/*
 * Share the block in use that was allocated at `address`. Memory of cudaMalloc is shared
 * as the whole segment (cuIpcGetMemHandle). Pages are shared one by one, as POSIX
 * descriptors that the caller sends and closes. If `capacity` is less than share->page_count,
 * no descriptor is made, and the caller must call again with more capacity. The driver
 * exports only pages created as shareable, see struct dry_cuda_options.
 *
 * The block must stay in use until the other process has closed it. The pages of a freed
 * block may be reused, and the other process would see their new contents. Errors:
 *     ARGUMENT     The address is not a block in use.
 *     SYSTEM       The driver failed.
 *     UNSUPPORTED  The device cannot share memory, or its pages were not created
 *                  shareable; or this is the child of a fork.
 *     MEMORY
 * Cost: a walk to the block's segment; a driver call for each page.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_share(struct dry_pool *pool,
                                                        uint64_t address,
                                                        struct dry_pool_share *share,
                                                        int *descriptors,
                                                        size_t capacity);

/*
 * Open memory shared by another process. *address is the beginning of the shared range in
 * this process; the block is at *address + share->offset. `descriptors` are this
 * process's own, one for each page, and stay the caller's; NULL if share->page_bytes is
 * 0. The memory is not part of the pool; the pool's device and peers may access it. The
 * driver opens a segment only once per process, so a program must keep what it has open.
 * Errors: ARGUMENT (an invalid share), SYSTEM, UNSUPPORTED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_open_shared(
    struct dry_pool *pool, const struct dry_pool_share *share, const int *descriptors,
    uint64_t *address);

/*
 * Close the range opened at `address`. Work on it must be over. SYSTEM: the driver
 * failed.
 */
DRY_API enum dry_status dry_pool_close_shared(struct dry_pool *pool,
                                              const struct dry_pool_share *share,
                                              uint64_t address);

/*
 * Replace the observer of the options: `observe` is called for every later event, in
 * order, with the lock held, and must not call the pool. NULL: no observer. UNSUPPORTED:
 * this is the child of a fork.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_observer(
    struct dry_pool *pool,
    void (*observe)(void *self, const struct dry_pool_event *event), void *self);

/* --- statistics and history -------------------------------------------------------------- */

/* Counters that PyTorch's statistics do not have. */
struct dry_pool_counters {
    size_t struct_size; /* DRY_INIT sets it */
    uint64_t reserved_peak_bytes;
    uint64_t pages_created, pages_released;
    uint64_t pages_remapped; /* taken from free memory and mapped at another address */
    /*
     * Whole blocks reused by another stream: because the order was known, because an
     * event had passed, or after a wait that the pool inserted. Blocks found by the last
     * search before an OOM are not counted.
     */
    uint64_t reused_ordered, reused_passed, reused_waiting;
    uint64_t events_recorded;
    uint64_t plans_made, hints_taken, hints_refused;
    uint64_t driver_calls; /* every call of the device except queries */
    uint64_t oom_callbacks_helped;
    /* Time in the device's memory calls, and in waits of the host for the device. */
    uint64_t driver_time_ns;
};

/*
 * Fill *stats as PyTorch counts; zeroes in the child of a fork. All values are exact,
 * except peaks of allocated and requested memory while several threads each use streams
 * of their own. Such a peak is the sum of the streams' peaks since a call last took the
 * pool's lock for all streams. It is at least the true peak and at most the reserved
 * bytes. A peak of bytes exceeds the true one by at most 1/64 of the reserved bytes, or 2
 * MiB.
 */
DRY_API void dry_pool_get_stats(struct dry_pool *pool, struct dry_stats *stats);

/* Fill *counters; zeroes in the child of a fork. */
DRY_API enum dry_status dry_pool_get_counters(struct dry_pool *pool,
                                              struct dry_pool_counters *counters);

/*
 * Visit the device memory of each private pool, with the lock held: PyTorch's
 * reserved_bytes_by_private_pools. A pool is included once it has had memory; after its
 * end, until 64 others have ended. Successive pools with the same id are visited
 * separately. With placement paged the value counts the pages mapped for the pool.
 * `visit` must not call the pool. Cost: O(private pools).
 */
DRY_API void dry_pool_visit_private_stats(
    struct dry_pool *pool,
    void (*visit)(void *self, struct dry_pool_id id,
                  const struct dry_stat_array *reserved_bytes),
    void *self);
/* Reset the statistics as torch.cuda.reset_peak_memory_stats() and
   torch.cuda.reset_accumulated_memory_stats() do. */
DRY_API void dry_pool_reset_peaks(struct dry_pool *pool);
DRY_API void dry_pool_reset_accumulated(struct dry_pool *pool);

/* Write the table of torch.cuda.memory_summary(), character by character. Errors: the
   sink's. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_write_summary(
    struct dry_pool *pool, bool abbreviated, const struct dry_sink *sink,
    struct dry_error *err);

struct dry_pool_history_options {
    size_t struct_size; /* set by dry_pool_history_options_init() */
    size_t entries;     /* maximum entries of the ring; default 65536 */
    /*
     * Returns the program's number for the caller's stack; DRY_NONE: none. Called before
     * the lock is taken, once per alloc (and once per free, if `frees`). It may call
     * anything but the pool.
     */
    uint32_t (*get_context)(void *self);
    void *context_self;
    bool frees;
    /*
     * Called when the pool no longer refers to `context`: in no entry, block, segment or
     * running request. The pool calls it exactly as often as get_context returned the
     * number, so a program either counts references or returns a new number each time.
     * Until then, a context that the pool reports in a walk, an observer or a block is
     * valid. Called with the lock held: it must not call the pool. NULL: no calls.
     */
    void (*release_context)(void *self, uint32_t context);
    /*
     * Keep the previous history: its newest entries, as many as fit, and the contexts of
     * blocks and segments. Then context_self and release_context must be unchanged.
     * Default: the previous history is dropped.
     */
    bool keep;
};
DRY_API void dry_pool_history_options_init_sized(struct dry_pool_history_options *options,
                                                 size_t struct_size);
#define dry_pool_history_options_init(options)                                           \
    dry_pool_history_options_init_sized(options, sizeof *(options))

/*
 * Start a history, and drop the previous one; options NULL ends the history. Dropped
 * contexts are released, and destroy releases the rest.
 *
 * An entry of a completed free has the context of the request that completed it: of the
 * free, or of a later alloc, or of dry_pool_empty_cache() if `frees`. If get_context was
 * not called for that request, the entries have the context of their block. An entry of a
 * released segment has the context of the request that caused the release, or else of the
 * request that created the segment. If the host has no memory to record a block's
 * context, the block has none; no request fails because of this.
 *
 * If another thread is inside the former get_context, get_context may return after this
 * call has returned. The former release_context is then called once more, for this
 * number.
 *
 * Errors: ARGUMENT (`entries` is 0, or `keep` with other contexts), MEMORY, UNSUPPORTED.
 * Cost without a history: one test. With a history, an event costs a copy of 64 bytes and
 * reading the clock. 65536 entries are allocated here; a longer ring doubles as it fills,
 * or keeps its size if there is no memory.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_record_history(
    struct dry_pool *pool, const struct dry_pool_history_options *options);

/* Visit the entries, oldest first, with the lock held. An event is valid during its
   visit. A status other than DRY_OK from `visit` ends the walk and is returned. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk_history(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_event *event), void *self);

/* Add an entry of action SNAPSHOT with the active bytes as its size, as PyTorch does
   whenever it makes a snapshot. Without a history or an observer, nothing happens. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_note_snapshot(struct dry_pool *pool);

struct dry_pool_segment {
    uint64_t address, size, stream;
    struct dry_pool_id pool;
    uint32_t context; /* context of the request that created it; DRY_NONE: none */
    bool is_large, is_expandable;
    uint64_t page_bytes; /* the unit of release: a page if expandable, else `size` */
};
struct dry_pool_part {
    uint64_t address, size, requested;
    uint32_t context;
    bool is_active, is_pending; /* both false: free */
};

/*
 * Visit the segments in order of address, split as in a snapshot, with the lock held.
 * `segment` and `parts` are valid during the visit. A status other than DRY_OK from
 * `visit` ends the walk and is returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                             const struct dry_pool_part *parts, size_t count),
    void *self);

/* An expandable segment and its mapped pages. */
struct dry_pool_expandable {
    uint64_t address,
        mapped_bytes; /* address of the first page, and the size of all pages */
    uint64_t stream;
    struct dry_pool_id pool;
    bool is_small; /* for small requests */
};

/*
 * Visit the expandable segments that have pages, in order of address, with the lock held.
 * Unlike dry_pool_walk(), runs of pages of one segment are one visit. A status other than
 * DRY_OK from `visit` ends the walk and is returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk_expandable(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_expandable *segment),
    void *self);

/*
 * Get the size of the largest free block of any stream in any pool, 0 if there is none.
 * PyTorch's cacheInfo() adds it to the free memory of the device. Placement paged may
 * serve a larger request without new memory, by remapping pages. Cost: O(blocks).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_get_largest_free(struct dry_pool *pool,
                                                                   uint64_t *bytes);

/*
 * Why a request would fail, or has failed, in numbers.
 *
 * Memory is unused if it is free or pending. An unused segment of the default pool can be
 * released whole; an expandable segment can release each unused page. All other unused
 * memory is pinned by the blocks in use that share its segment or page: the pinners.
 * Without private pools and with nothing pending,
 *     reserved = allocated + releasable + pinned
 *
 * During a capture, some waits are impossible before its end. Memory freed by a captured
 * stream and pending memory then count as pinners, like blocks in use. would_fit then
 * excludes memory that may become free.
 */
struct dry_pool_explanation {
    size_t struct_size;          /* DRY_INIT sets it */
    uint64_t size, segment_size; /* the request, and the size that the device was asked
                                    for */
    uint64_t total_bytes, free_bytes, limit_bytes; /* limit_bytes UINT64_MAX: none */
    uint64_t allocated_bytes, reserved_bytes, private_free_bytes;
    uint64_t largest_hole;     /* the largest free block that the request could use */
    uint64_t largest_hole_any; /* the largest free block of any stream and pool */
    uint64_t releasable_bytes; /* empty_cache() would release them now */
    uint64_t pending_bytes;
    uint64_t pinned_bytes; /* unused, but pinned by blocks in use */
    uint64_t pinner_bytes; /* total size and number of the pinners */
    uint64_t pinner_count;
    /* The pinner with the most unused memory around it, and the free range there without
       it. */
    uint64_t largest_pinner_address, largest_pinner_hole;
    /*
     * The largest request that is certain to succeed now: in a free block, or in new
     * memory after all releasable memory is released. Exact if no memory is pending, no
     * capture is open and segments cannot grow; otherwise slightly more may fit.
     */
    uint64_t would_fit;
    /* The option throw_on_cudamalloc_oom (torch) rejects the request without a call of
       the device. */
    bool is_rejected;
};

/*
 * Explain a request of `size` bytes on `stream`. It is explained for the pool that would
 * serve it: the innermost private pool begun for the stream, or else the default pool.
 * Errors: ARGUMENT (more than 1 EiB - 512), MEMORY, UNSUPPORTED; *explanation is
 * unchanged then. Cost: O(blocks log blocks) with the lock held.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_explain(
    struct dry_pool *pool, uint64_t size, uint64_t stream,
    struct dry_pool_explanation *explanation);

/* The last sentence of PyTorch's out-of-memory message. */
enum dry_oom_hint {
    DRY_OOM_HINT_NONE,       /* placement paged: neither hint applies */
    DRY_OOM_HINT_EXPANDABLE, /* expandable_segments is off: recommend them */
    DRY_OOM_HINT_RESERVE,    /* expandable_segments is on: they may reserve too much */
};

/*
 * Write the text of torch.OutOfMemoryError for this request, exactly, followed by lines
 * with the facts that PyTorch's text lacks. Returns the length of the whole text, like
 * snprintf(). If capacity > 0, `text` always ends with a zero byte. Allocates no memory.
 * dry_message_parse() reads it back.
 *     process_bytes  memory of this process as reported by the driver; 0: not known, left
 *                    out
 *     hint           PyTorch's last sentence
 * Source of the first line: DeviceCachingAllocator::malloc
 * (c10/cuda/CUDACachingAllocator.cpp, 2.15.0a0).
 */
DRY_API size_t dry_pool_format_oom(const struct dry_pool_explanation *explanation,
                                   int32_t device_index, uint64_t process_bytes,
                                   enum dry_oom_hint hint, char *text, size_t capacity);

/*
 * Check all invariants of the pool and its placement. FORMAT: err names the first that is
 * broken.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_check(struct dry_pool *pool,
                                                        struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
