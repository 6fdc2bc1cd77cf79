/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_POOL_H
#define DRY_POOL_H

/*
 * A caching allocator for one device: memory for streams, without a driver call once warm.
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
 * again as soon as the block is freed, because work on a stream happens in order. A program
 * announces every other stream that uses a block with dry_pool_record_stream().
 *
 * Two placements decide where a request goes. Placement paged, ours, moves pages under
 * addresses, so that free memory anywhere serves a request everywhere. Placement torch decides
 * exactly as PyTorch does.
 *
 * Words
 *     segment       a range of addresses that the pool has from the device
 *     block         a part of one segment: in use, pending or free
 *     page          memory apart from addresses, as <drystone/device.h> has it
 *     cached        free, but not given back to the device
 *     pending       freed, while a stream recorded on the block may still use it
 *     private pool  memory for the requests of its scope; the default pool is the memory of
 *                   all others
 *     capture       a span of time in which streams record work into a graph, not run it
 *     period        a part of the program's requests that repeats: an iteration
 *
 * Ownership  dry_pool_create() and dry_pool_destroy(). The device must outlive the pool, and
 *            several devices are several pools. Blocks still in use end with the pool: work on
 *            them must be over. Destroy waits for the work on what was freed, unless the host
 *            has no memory to sort it.
 * Errors
 *     NO_SPACE     Out of memory. Everything was tried, so an immediate retry fails too.
 *                  Placement torch fails exactly where PyTorch does, and PyTorch does not look
 *                  again at what it has waited for: a retry may succeed there.
 *     ARGUMENT     The address is no block of this pool in use, or the size is 1 EiB or more.
 *     MEMORY       The host has no memory for our records. Nothing was done.
 *     SYSTEM       The driver refused something beside memory.
 *     UNSUPPORTED  This is the child of a fork, and the device belongs to the parent. Only
 *                  destroy is allowed here, and it leaves the device alone.
 *     If MEMORY or SYSTEM keeps a request from memory that was freed, the request ends with
 *     this status and not with NO_SPACE: nobody knows whether there was room. No callback is
 *     asked then.
 *     A callback that forks must not return in the child. If a thread had the pool's lock when
 *     another thread forked, destroy in the child gives back nothing at all.
 * Threads    Any thread may call any function at any time, except create and destroy. A pool
 *            has one lock. Each callback's comment says what the callback may do.
 *
 *            Placement paged adds a lock for each stream once threads ask on streams of their
 *            own. A stream's cached blocks are then handed out and taken back under the
 *            stream's lock, without the pool's. A block that has to be cut or merged takes the
 *            pool's lock, too; this stops no thread that does not need the pool's lock. Large
 *            blocks stay cached meanwhile if their sizes repeat, and no period is planned. A
 *            history, an observer, a private pool begun or a capture begun turns all this off.
 *
 *            Placement paged starts a thread now and then, to pack the program's period. The
 *            thread lives as long as the packing takes. It touches no device, its memory is
 *            the C library's, and destroy ends it. "plan:False" does without the thread.
 * Units      Bytes.
 * Cost       Alloc and free take no memory and call no driver if the cache serves the request.
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
    DRY_PLACEMENT_PAGED, /* ours */
    DRY_PLACEMENT_TORCH, /* PyTorch's decisions */
};

/* The number of a pool: (0, 0) is the default pool, the program numbers its private ones. */
struct dry_pool_id {
    uint64_t a, b;
};

/* One thing that happened. */
struct dry_pool_event {
    enum dry_action action;
    /*
     * The values of a snapshot's entry of this action. If the action is DRY_ACTION_OOM, `address`
     * is the number of free bytes: on the device and, with placement paged, in pages that the
     * placement keeps under no address.
     */
    uint64_t address, size, stream;
    struct dry_pool_id pool;
    uint64_t time_us; /* since the epoch */
    uint32_t context; /* what get_context returned for the request; DRY_NONE if none */
};

struct dry_pool_options {
    size_t struct_size; /* set by dry_pool_options_init() */
    const struct dry_memory *memory;
    struct dry_device device;     /* required */
    int32_t device_index;         /* as messages and snapshots name it; default 0 */
    enum dry_placement placement; /* default paged */
    /*
     * Options as text, default "". Placement torch reads what PYTORCH_CUDA_ALLOC_CONF holds;
     * placement paged reads "budget:1.05,remap:True,plan:True", see drystone-pool(5).
     */
    const char *conf;
    /*
     * The release whose rules placement torch follows, "2.0" to "2.15". 2.15 is the newest
     * release known; the rules of later ones are not. Default NULL: the newest rules.
     */
    const char *compat;
    /* Called for every event, in order, with the lock held: must not call the pool. */
    void (*observe)(void *self, const struct dry_pool_event *event);
    void *observe_self;
};

/* Set the defaults; `device` is left for the caller to set. */
DRY_API void dry_pool_options_init_sized(struct dry_pool_options *options,
                                         size_t struct_size);
#define dry_pool_options_init(options)                                                   \
    dry_pool_options_init_sized(options, sizeof *(options))

/*
 * Make a pool. `options` are copied. Errors:
 *     ARGUMENT     There is no device, or `conf` or `compat` has no meaning; err says which.
 *     UNSUPPORTED  There is no such placement, or it cannot do with the backend that `conf`
 *                  names or the device's size of pages; err says which.
 *     MEMORY
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_create(
    const struct dry_pool_options *options, struct dry_pool **pool,
    struct dry_error *err);

/* End a pool and give all its memory back; see Ownership. */
DRY_API void dry_pool_destroy(struct dry_pool *pool);

/* --- blocks ----------------------------------------------------------------------------- */

/*
 * Allocate `size` bytes for `stream`; *address is a multiple of 512. A `size` of 0 gives
 * address 0, which dry_pool_free() accepts.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_alloc(struct dry_pool *pool,
                                                        uint64_t size, uint64_t stream,
                                                        uint64_t *address);

/*
 * Allocate at a multiple of `alignment`, a power of two up to 1 GiB. The block is larger than
 * `size` by the slack for the alignment, at most alignment - 512 bytes. dry_pool_free() takes
 * the address given here. ARGUMENT: also any other alignment.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_alloc_aligned(struct dry_pool *pool,
                                                                uint64_t size,
                                                                uint64_t alignment,
                                                                uint64_t stream,
                                                                uint64_t *address);

/*
 * Free the block in use that was handed out at `address`; 0 is ignored. The block is pending
 * until the streams recorded on it have passed this point. If one of these streams was
 * destroyed since, this call waits for the device, once. SYSTEM: an event had to be recorded
 * and could not be; the block stays in use.
 */
DRY_API enum dry_status dry_pool_free(struct dry_pool *pool, uint64_t address);

/*
 * Note that `stream` uses the block at `address`, too. The block's own stream and repetitions
 * are ignored.
 */
DRY_API enum dry_status dry_pool_record_stream(struct dry_pool *pool, uint64_t address,
                                               uint64_t stream);

/*
 * Note that the program has made `stream` wait for all work on `on` so far
 * (cuStreamWaitEvent). With placement paged `stream` may then take what was freed on `on`
 * before. Placement torch has no use for it.
 */
DRY_API enum dry_status dry_pool_stream_waits(struct dry_pool *pool, uint64_t stream,
                                              uint64_t on);

struct dry_pool_block {
    size_t struct_size;     /* DRY_INIT sets it */
    uint64_t address, size; /* of the block, >= requested */
    uint64_t requested;     /* with the slack of dry_pool_alloc_aligned() */
    uint64_t stream;
    struct dry_pool_id pool;
    uint64_t segment_address, segment_size;
    uint32_t context; /* DRY_NONE if none */
};

/*
 * Describe the block in use that was handed out at `address`. A block of
 * dry_pool_alloc_aligned() may begin before `address`. Cost: a walk to the block's segment, not
 * for the hot path.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_get_block(struct dry_pool *pool,
                                                            uint64_t address,
                                                            struct dry_pool_block *block);

/* The least size of the block for a request of `size` bytes; 0 for 0 and from 1 EiB on. */
DRY_API uint64_t dry_pool_round_size(const struct dry_pool *pool, uint64_t size);

/* --- limits and cached memory ----------------------------------------------------------- */

/*
 * Limit the pool to a fraction of the device, as torch.cuda.set_per_process_memory_fraction()
 * does: 0 <= fraction <= 1, and 1 is no limit. The whole is the total that the device gave at
 * create; without a known total there is no effect. This fraction replaces the one of the
 * options, and the smaller of it and dry_pool_set_limit() counts. Placement torch holds the
 * limit against what is asked, as PyTorch does: pages of expandable segments may go beyond.
 * ARGUMENT: any other fraction.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_fraction(struct dry_pool *pool,
                                                               double fraction);

/* Take no more than `bytes` from the device, whole pages included; UINT64_MAX: no limit. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_limit(struct dry_pool *pool,
                                                            uint64_t bytes);

/*
 * Apply further options to a pool of placement torch, as PyTorch does when a program sets the
 * allocator's options while it runs: requests from now on go by them, and memory there is stays
 * as it is. An option that is not mentioned is reset or stays, by PyTorch's rules. A fraction
 * given so counts for throw_on_cudamalloc_oom alone; dry_pool_set_fraction() sets the limit.
 * ARGUMENT: an option or a value that is none. UNSUPPORTED: placement paged, whose options are
 * those of its create. MEMORY. The pool is unchanged then. Cost: O(length).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_conf(struct dry_pool *pool,
                                                           const char *conf,
                                                           struct dry_error *err);

/*
 * Wait for streams, and give back to the device all cached memory that no block in use pins. A
 * private pool that has users gives nothing.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_empty_cache(struct dry_pool *pool);

/*
 * Do so for private pool `id` alone, if it has no users; one that is not there has nothing. Placement
 * paged gives back all cached memory: its pages belong to nobody.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_empty_private(struct dry_pool *pool,
                                                                struct dry_pool_id id);

/*
 * Do the same only until `target` bytes are reserved. *reserved (or NULL) is what remains
 * reserved.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_trim(struct dry_pool *pool,
                                                       uint64_t target,
                                                       uint64_t *reserved);

/*
 * Add a callback that is asked before a request fails. `size` and `stream` are the request's.
 * The callback returns true if it freed something and the request is to be tried again.
 *
 * Callbacks are asked in the order of adding until the request is served. There are at most 8,
 * and each request asks each of them at most once. They are called without the lock. A callback
 * may call the pool, but must not wait for another thread that calls the pool. A request made
 * by a callback asks the callbacks as well, so a callback must not request without end.
 * ARGUMENT: `callback` is NULL, is there already with this `self`, or is a ninth.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_add_oom_callback(
    struct dry_pool *pool, bool (*callback)(void *self, uint64_t size, uint64_t stream),
    void *self);

/*
 * Remove a callback. If another thread is inside the callback, it may return from there after
 * this call has returned. ARGUMENT: it is not there with this `self`.
 */
DRY_API enum dry_status dry_pool_remove_oom_callback(
    struct dry_pool *pool, bool (*callback)(void *self, uint64_t size, uint64_t stream),
    void *self);

/* --- private pools and captures ----------------------------------------------------------- */

/* Flags of a private pool. */
#define DRY_POOL_USE_ON_OOM 1u /* its free blocks serve others before an OOM */
#define DRY_POOL_NO_SPLIT 2u   /* a request gets the free block found for it whole */
#define DRY_POOL_NO_REMAP 4u   /* its pages stay even then: NCCL, IPC, CUDA graphs */

/* A choice of streams; `covers` NULL: all. Called with the lock held: must not call the pool. */
struct dry_stream_filter {
    bool (*covers)(void *self, uint64_t stream);
    void *self;
};

/*
 * Add a user to private pool `id`, which is made with these flags if it is not there. ARGUMENT:
 * the default pool, or an unknown flag.
 *
 * Private pools without users then give their pages to others. Up to 64 events are recorded for
 * it, and the device is waited for if their free memory is of a stream that is gone. During a
 * capture this is put off to the capture's end.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_open_private(struct dry_pool *pool,
                                                               struct dry_pool_id id,
                                                               unsigned flags);

/*
 * Give those flags of private pool `id` that are in `mask` the values they have in `flags`. The
 * other flags stay as they are. ARGUMENT: the pool is not there, or `mask` or `flags` has an
 * unknown flag, or `flags` has one that `mask` has not.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_private_flags(struct dry_pool *pool,
                                                                    struct dry_pool_id id,
                                                                    unsigned flags,
                                                                    unsigned mask);

/* Tell how many users private pool `id` has. ARGUMENT: it is not there. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_count_private_users(
    struct dry_pool *pool, struct dry_pool_id id, uint64_t *users);

/*
 * Tell if the blocks in use of private pool `id` are exactly those that were handed out as these
 * `count` addresses, in any order; an address may be there twice. Cost: O(blocks of all pools).
 * Errors: ARGUMENT (the pool is not there), MEMORY; *has is unchanged then.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_private_has(struct dry_pool *pool,
                                                              struct dry_pool_id id,
                                                              const uint64_t *addresses,
                                                              size_t count, bool *has);

/*
 * Remove a user from private pool `id`. Without users the pool's cached memory goes with the
 * next release. ARGUMENT: it is not there, or has no users.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_release_private(struct dry_pool *pool,
                                                                  struct dry_pool_id id);

/*
 * Begin the scope of private pool `id`: until dry_pool_end_private() requests of the streams of
 * `filter` go to it; filter NULL: all streams. The innermost begin wins (placement torch by the
 * rules before 2.10: the outermost). ARGUMENT: the pool is not there, has no users, or is begun
 * already.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_begin_private(
    struct dry_pool *pool, struct dry_pool_id id, const struct dry_stream_filter *filter);

/* End the scope of private pool `id`. ARGUMENT: it is not begun. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_end_private(struct dry_pool *pool,
                                                              struct dry_pool_id id);

/*
 * Begin a capture of the streams of `filter`: from here on work on them is captured into a
 * graph, not run. Captures nest. Until the end:
 *     - no event is asked about or recorded on these streams;
 *     - nothing is given back to the device for them (placement paged: nothing at all);
 *     - frees that wait for other streams are held until no capture is left (placement torch:
 *       all of them, as PyTorch does; placement paged: those of blocks that these streams own
 *       or use).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_begin_capture(
    struct dry_pool *pool, const struct dry_stream_filter *filter);

/* End the innermost capture. ARGUMENT: none has begun. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_end_capture(struct dry_pool *pool);

/* --- private pools that go back ------------------------------------------------------------ */

/*
 * The blocks of a private pool at one moment. A program that replays a graph has tensors in blocks
 * which the pool takes for free, or for in use by tensors that are gone. Before it records another
 * graph into the pool, it brings the pool back to the checkpoint taken after the first one.
 *
 * While a pool has checkpoints and users, its pages stay under their addresses, as if it had the
 * flag DRY_POOL_NO_REMAP.
 */
struct dry_pool_checkpoint;

/*
 * Take a checkpoint of private pool `id`. The caller ends it with
 * dry_pool_checkpoint_destroy(), before the pool ends. Errors:
 *     ARGUMENT  The pool is not there or has no users, or one of its blocks is pending.
 *     SYSTEM    An event for a block that a capture held back could not be recorded.
 *     MEMORY, UNSUPPORTED
 * Cost: O(blocks of all pools).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_checkpoint_private(
    struct dry_pool *pool, struct dry_pool_id id, struct dry_pool_checkpoint **checkpoint,
    struct dry_error *err);

/* End a checkpoint; NULL is accepted. */
DRY_API void dry_pool_checkpoint_destroy(struct dry_pool_checkpoint *checkpoint);

/* Told of addresses in a restore, with the lock held: must not call the pool. */
struct dry_pool_restore_visitor {
    void (*freed)(void *self, uint64_t address); /* was in use, and is free */
    void (*live)(void *self, uint64_t address);  /* is in use, and is to be freed once */
    void *self;
};

/*
 * Bring a private pool back to a checkpoint. Every block of the pool in use now is freed; then
 * each block in use at the checkpoint is in use again, at the same address, for the same stream.
 * A block that was in use all the time is told twice: as freed, and as live. Nothing is written to
 * the memory, and no stream is waited for with placement torch. Placement paged waits for a stream
 * that has memory in a place which was another stream's at the checkpoint.
 *
 * Events and statistics are those of PyTorch: frees, then allocs, of the pool's segments one after
 * the other, and frees of what was free. get_context is asked once. Errors:
 *     ARGUMENT  The pool is gone, or has no users, or has lost memory meanwhile; or a block in the
 *               way is used by other streams. err says which.
 *     SYSTEM    A stream could not be waited for, or an event not be recorded.
 *     MEMORY, UNSUPPORTED
 * Nothing has changed after an error, with one exception: if the visitor was told of freed blocks
 * and SYSTEM is returned, these are free, and all other blocks are as they were.
 * Cost: O(blocks of all pools).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_restore_private(
    const struct dry_pool_checkpoint *checkpoint,
    const struct dry_pool_restore_visitor *visitor, struct dry_error *err);

/* --- other devices ------------------------------------------------------------------------- */

/*
 * Let device number `peer` use the pool's pages: those that are mapped now, and those that will be.
 * PyTorch does so for its expandable segments. Memory that comes with its addresses
 * (cudaMalloc) is opened by the driver alone, with cuCtxEnablePeerAccess(). Repetitions are
 * allowed. Errors:
 *     ARGUMENT  `peer` is this device, or none.
 *     SYSTEM    The devices cannot reach each other, or the driver refused. A part of what is
 *               mapped may be open then; a repetition opens the rest.
 *     MEMORY, UNSUPPORTED
 * Cost: a call of the driver for each run of pages; later, one access more in each call that maps.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_enable_peer(struct dry_pool *pool,
                                                              int32_t peer);

/* --- other processes ------------------------------------------------------------------------- */

/* A block's memory as another process opens it: plain data, to be sent there. */
struct dry_pool_share {
    uint64_t offset; /* of the address, in what is shared */
    uint64_t size;   /* what is shared: whole segments, or whole pages */
    uint64_t
        page_bytes; /* 0: `name` says what is shared; else a descriptor for each page */
    uint64_t page_count;
    struct dry_range_name name;
};

/*
 * Share the block in use that was handed out at `address`. Memory of cudaMalloc is shared as the
 * whole segment (cuIpcGetMemHandle). Pages are shared one by one, as POSIX descriptors that are
 * the caller's to send and to close; if `room` is less than share->page_count, none is made, and
 * the caller calls again. The driver gives descriptors only of pages created for that, see
 * struct dry_cuda_options.
 *
 * The block must stay in use until the other process has closed it. A freed block's pages may go
 * elsewhere, and the other process would see what lies there. Errors:
 *     ARGUMENT     The address is no block in use.
 *     SYSTEM       The driver refused.
 *     UNSUPPORTED  The device has no memory to share, or its pages are not made for it; or this is
 *                  the child of a fork.
 *     MEMORY
 * Cost: a walk to the block's segment; a call of the driver for each page.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_share(struct dry_pool *pool,
                                                        uint64_t address,
                                                        struct dry_pool_share *share,
                                                        int *descriptors, size_t room);

/*
 * Open what another process shares. *address is where it begins here; the block lies at
 * share->offset behind. `descriptors` are this process's own, one for each page, and stay the
 * caller's; NULL where share->page_bytes is 0. The memory is no part of the pool, whose device and
 * peers may use it. The driver opens a segment once in a process: a program keeps what it has
 * open. Errors: ARGUMENT (no such share), SYSTEM, UNSUPPORTED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_open_shared(
    struct dry_pool *pool, const struct dry_pool_share *share, const int *descriptors,
    uint64_t *address);

/*
 * Close what was opened at `address`. The work on it must be over. SYSTEM: the driver refused.
 */
DRY_API enum dry_status dry_pool_close_shared(struct dry_pool *pool,
                                              const struct dry_pool_share *share,
                                              uint64_t address);

/*
 * Replace the observer of the options: `observe` is called for every event from here on, in order,
 * with the lock held, and must not call the pool. NULL: nobody is told. UNSUPPORTED: this is the
 * child of a fork.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_observer(
    struct dry_pool *pool,
    void (*observe)(void *self, const struct dry_pool_event *event), void *self);

/* --- seeing inside ------------------------------------------------------------------------ */

/* Figures that PyTorch's statistics have no name for: counts, except `*_bytes` and `*_ns`. */
struct dry_pool_counters {
    size_t struct_size; /* DRY_INIT sets it */
    uint64_t reserved_peak_bytes;
    uint64_t pages_created, pages_released;
    uint64_t pages_remapped; /* taken from free memory and mapped elsewhere */
    /*
     * Whole blocks that went from one stream to another: because the order was known, because
     * an event had passed, by a wait put in. Blocks found by the last look before an OOM are
     * left out.
     */
    uint64_t reused_ordered, reused_passed, reused_waiting;
    uint64_t events_recorded;
    uint64_t plans_made, hints_taken, hints_refused;
    uint64_t driver_calls; /* every call on the device but queries */
    uint64_t oom_callbacks_helped;
    /* In the device's calls for memory, and in waits of the host for the device. */
    uint64_t driver_time_ns;
};

/*
 * Fill *stats as PyTorch counts; zeroes in the child of a fork. All figures are exact, except
 * peaks of what is allocated or requested while threads ask on streams of their own. Such a
 * peak is the sum of the streams' own peaks since somebody last needed the whole pool. It is
 * never less than the true peak, nor more than is reserved; peaks of bytes are too high by 1/64
 * of what is reserved, or 2 MiB, at most.
 */
DRY_API void dry_pool_get_stats(struct dry_pool *pool, struct dry_stats *stats);

/* Fill *counters; zeroes in the child of a fork. */
DRY_API enum dry_status dry_pool_get_counters(struct dry_pool *pool,
                                              struct dry_pool_counters *counters);

/*
 * Reset statistics as torch.cuda.reset_peak_memory_stats() and
 * torch.cuda.reset_accumulated_memory_stats() do.
 */
/*
 * Visit what private pools have taken of the device, with the lock held: PyTorch's
 * reserved_bytes_by_private_pools. A pool is told once it has had memory; after its end, until 64
 * others have ended. The pools of an id that was used again are told one by one. With placement
 * paged this is the pages under a pool's addresses. `visit` must not call the pool.
 * Cost: O(private pools).
 */
DRY_API void dry_pool_visit_private_stats(
    struct dry_pool *pool,
    void (*visit)(void *self, struct dry_pool_id id,
                  const struct dry_stat_array *reserved_bytes),
    void *self);
DRY_API void dry_pool_reset_peaks(struct dry_pool *pool);
DRY_API void dry_pool_reset_accumulated(struct dry_pool *pool);

/* Write the table of torch.cuda.memory_summary(), the same characters. Errors: the sink's. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_write_summary(
    struct dry_pool *pool, bool abbreviated, const struct dry_sink *sink,
    struct dry_error *err);

struct dry_pool_history_options {
    size_t struct_size; /* set by dry_pool_history_options_init() */
    size_t entries;     /* of the ring at most; default 65536 */
    /*
     * Returns the number that the program gives the stack of who asks; DRY_NONE for none.
     * Called before the lock is taken, once an alloc (and once a free, if `frees`). May call
     * anything but the pool.
     */
    uint32_t (*get_context)(void *self);
    void *context_self;
    bool frees;
    /*
     * Called when nothing in the pool refers to `context` any more: no entry, no block, no
     * segment and no request under way. The pool calls it exactly as often as get_context
     * returned the number, so a program either counts or gives a new number each time. Until then
     * the program may look a context up wherever the pool tells one: in a walk, an observer or a
     * block. Called with the lock held: must not call the pool. NULL: the program is not told.
     */
    void (*release_context)(void *self, uint32_t context);
    /*
     * Keep what the history before has: its newest entries, as far as there is room for them,
     * and who asked for blocks and segments. Then context_self and release_context must be those
     * of before. Default: everything is forgotten.
     */
    bool keep;
};
DRY_API void dry_pool_history_options_init_sized(struct dry_pool_history_options *options,
                                                 size_t struct_size);
#define dry_pool_history_options_init(options)                                           \
    dry_pool_history_options_init_sized(options, sizeof *(options))

/*
 * Begin to keep the last entries, and forget those of before; options NULL ends the history.
 * Everything forgotten is released, and destroy releases the rest.
 *
 * An entry of a completed free has the context of the request that completed it: of the free, or
 * of a later alloc, or of dry_pool_empty_cache() if `frees`. If get_context was not asked about that, entries of a free have the context of
 * their block. An entry of a segment that goes back has the context of the
 * request that goes on without it, or else of the request that got it. If the host has no memory
 * to note who asked for a block, the block has no context; no request fails for it.
 *
 * If another thread is inside the former get_context, it may return from there after this call
 * has returned. The former release_context is then called once more, for this number.
 *
 * Errors: ARGUMENT (`entries` is 0, or `keep` with other contexts), MEMORY, UNSUPPORTED.
 * Cost: off, one test. On, an event costs a copy of 64 bytes and a look at the clock. 65536 entries
 * are taken here; a longer ring doubles as it fills, and stays as it is if there is no memory.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_record_history(
    struct dry_pool *pool, const struct dry_pool_history_options *options);

/*
 * Visit the entries, oldest first, with the lock held. An event is valid during its visit. A
 * status other than DRY_OK from `visit` ends the walk and is returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk_history(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_event *event), void *self);

/*
 * Add an entry of action SNAPSHOT with the active bytes as its size, as PyTorch does whenever it
 * makes a snapshot. Without a history or an observer, nothing happens.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_note_snapshot(struct dry_pool *pool);

struct dry_pool_segment {
    uint64_t address, size, stream;
    struct dry_pool_id pool;
    uint32_t context; /* of the request that got it; DRY_NONE if none */
    bool is_large, is_expandable;
    uint64_t
        page_bytes; /* what can go back alone: a page of an expandable one, else `size` */
};
struct dry_pool_part {
    uint64_t address, size, requested;
    uint32_t context;
    bool is_active, is_pending; /* both false: free */
};

/*
 * Visit the segments by address, as a snapshot has them, with the lock held. `segment` and
 * `parts` are valid during the visit. A status other than DRY_OK from `visit` ends the walk and
 * is returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                             const struct dry_pool_part *parts, size_t count),
    void *self);

/* Addresses that grow page by page, and what lies under them. */
struct dry_pool_expandable {
    uint64_t address,
        mapped_bytes; /* where the first page lies, and all pages together */
    uint64_t stream;
    struct dry_pool_id pool;
    bool is_small; /* for small requests */
};

/*
 * Visit the expandable segments that have pages, by address, with the lock held. Unlike
 * dry_pool_walk(), runs of pages of one segment are one visit. A status other than DRY_OK from
 * `visit` ends the walk and is returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk_expandable(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_expandable *segment),
    void *self);

/*
 * Tell the size of the largest free block of any stream in any pool, 0 if there is none: what
 * PyTorch's cacheInfo() adds to the free memory of the device. Placement paged may serve a larger
 * request without new memory, by moving pages. Cost: O(blocks).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_get_largest_free(struct dry_pool *pool,
                                                                   uint64_t *bytes);

/*
 * Why a request would fail or did, as data.
 *
 * Memory is unused if it is free or pending. An unused segment of the default pool goes back to
 * the device whole; an expandable segment gives back each unused page. All other unused memory
 * is pinned, by the blocks in use that share its segment or page: these are the pinners.
 * Without private pools and with nothing pending,
 *     reserved = allocated + releasable + pinned
 *
 * During a capture, not everything can be waited for before the end. Memory that a captured
 * stream freed, and memory that is pending, then counts as in the way, like a block in use.
 * would_fit then leaves out what may come back.
 */
struct dry_pool_explanation {
    size_t struct_size;          /* DRY_INIT sets it */
    uint64_t size, segment_size; /* asked, and what was asked of the device for it */
    uint64_t total_bytes, free_bytes, limit_bytes; /* limit UINT64_MAX: none */
    uint64_t allocated_bytes, reserved_bytes, private_free_bytes;
    uint64_t largest_hole;     /* the largest free block the request could have had */
    uint64_t largest_hole_any; /* the same on any stream and pool */
    uint64_t releasable_bytes; /* empty_cache() would give back now */
    uint64_t pending_bytes;
    uint64_t pinned_bytes; /* unused, but held by the pinners */
    uint64_t pinner_bytes; /* in the pinners, and how many there are */
    uint64_t pinner_count;
    /* The pinner beside which most is unused, and the hole there would be without it. */
    uint64_t largest_pinner_address, largest_pinner_hole;
    /*
     * The largest request that is sure to succeed now: in a free block, or in new memory once
     * all that is releasable has gone back. Exact if nothing is pending, nothing is captured
     * and memory cannot grow in place; otherwise a bit more may fit.
     */
    uint64_t would_fit;
    /* throw_on_cudamalloc_oom (torch) refuses new memory for it before the device is asked. */
    bool is_rejected;
};

/*
 * Explain a request of `size` bytes on `stream`. The pool looked at is the one such a request
 * goes to: the innermost private pool begun for the stream, or else the default pool.
 * Errors: ARGUMENT (more than 1 EiB - 512), MEMORY, UNSUPPORTED; *explanation is unchanged
 * then. Cost: O(blocks log blocks) with the lock held.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_explain(
    struct dry_pool *pool, uint64_t size, uint64_t stream,
    struct dry_pool_explanation *explanation);

/* PyTorch's last sentence of an out-of-memory. */
enum dry_oom_hint {
    DRY_OOM_HINT_NONE,       /* placement paged: neither is true of it */
    DRY_OOM_HINT_EXPANDABLE, /* of expandable_segments off: switch them on */
    DRY_OOM_HINT_RESERVE,    /* of expandable_segments on: they may reserve too much */
};

/*
 * Write the text of torch.OutOfMemoryError for this request, exactly; lines of their own then
 * say what the text lacks. Returns the length of the whole text, like snprintf(). If room > 0,
 * `text` always ends with a zero byte. Takes no memory. dry_message_parse() reads it back.
 *     process_bytes  memory of this process as the driver sees it; 0: not known, left out
 *     hint           PyTorch's last sentence
 * Source of the first line: DeviceCachingAllocator::malloc
 * (c10/cuda/CUDACachingAllocator.cpp, 2.15.0a0).
 */
DRY_API size_t dry_pool_format_oom(const struct dry_pool_explanation *explanation,
                                   int32_t device_index, uint64_t process_bytes,
                                   enum dry_oom_hint hint, char *text, size_t room);

/*
 * Walk all invariants of the pool and its placement. FORMAT: one is broken; err says which is
 * the first.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_check(struct dry_pool *pool,
                                                        struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
