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
 * A block belongs to the stream it was asked for. Its memory may be taken by that stream
 * again as soon as it is freed, because work on a stream happens in order; other streams
 * that use it are told by dry_pool_record_stream(). Two placements: paged, ours, moves pages
 * under addresses, so that free memory anywhere serves a request everywhere; torch decides
 * exactly as PyTorch does.
 *
 * Ownership  create / destroy. The device must outlive the pool. Blocks that are still in use
 *            end with it: work on them must be over; for what was freed, destroy waits (where
 *            the host has no memory to sort it, it does not). Several devices are several
 *            pools.
 * Errors     NO_SPACE: out of memory; everything was tried, an immediate retry fails too.
 *            Placement torch fails where PyTorch does, which does not look again at what it
 *            has waited for: there a retry may succeed. ARGUMENT: an address that is not a block
 *            of this pool in use, a size of 1 EiB or more. MEMORY: the host has none for our
 *            records; nothing was done. SYSTEM: the driver refused something beside memory. Where
 *            either keeps a request from memory that was freed, it ends so, and not with NO_SPACE:
 *            nobody knows whether there was room; no callback is asked.
 *            UNSUPPORTED: this is the child of a fork: the device belongs to the parent; only
 *            destroy is allowed, and it leaves the device alone. A callback that forks must not
 *            return in the child. Where a thread had the pool's lock when another forked, destroy
 *            in the child gives back nothing at all.
 * Threads    Every function but create and destroy may be called by any thread at any time;
 *            one lock a pool. Callbacks say what they may do. With placement paged, when
 *            threads ask on streams of their own, what a stream has cached is handed out and
 *            taken back under a lock of that stream, beside the pool's, unless a history or
 *            an observer is on, or a private pool or a capture begun; what has to be cut or
 *            merged takes the pool's lock, too, and stops nobody who needs it not. Large blocks
 *            then lie cached where their sizes repeat, and no period is planned.
 *            Placement paged starts a thread now and then, to pack the program's period: for as
 *            long as that takes; it touches no device, its memory is the C library's, and destroy
 *            ends it. "plan:False" does without.
 * Units      Bytes.
 * Cost       alloc and free take no memory and call no driver when the request is served
 *            from the cache.
 */

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

/* (0, 0) is the default pool; others are yours to number. */
struct dry_pool_id {
    uint64_t a, b;
};

/* Something happened; `context` is what the stack callback returned for the request. */
struct dry_pool_event {
    enum dry_action action;
    /*
     * As a snapshot's entry of this action has them. Of an out-of-memory the address is what was
     * free: on the device and, of paged, in pages that it keeps under no address.
     */
    uint64_t address, size, stream;
    struct dry_pool_id pool;
    uint64_t time_us; /* since the epoch */
    uint32_t context; /* DRY_NONE if none */
};

struct dry_pool_options {
    size_t struct_size; /* set by dry_pool_options_init() */
    const struct dry_memory *memory;
    struct dry_device device;     /* required */
    int32_t device_index;         /* as messages and snapshots name it; default 0 */
    enum dry_placement placement; /* default paged */
    /*
     * Options as text, default "": for torch what PYTORCH_CUDA_ALLOC_CONF holds; for paged
     * "budget:1.05,remap:True,plan:True", see drystone-pool(5).
     */
    const char *conf;
    /* torch: a release from "2.0" to "2.15", which is the newest known: the rules of a later
       one are not. Default NULL: the newest rules. */
    const char *compat;
    /* Told of every event, in order, with the lock held: must not call the pool. */
    void (*observe)(void *self, const struct dry_pool_event *event);
    void *observe_self;
};

DRY_API void dry_pool_options_init(struct dry_pool_options *options);
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_create(
    const struct dry_pool_options *options, struct dry_pool **pool,
    struct dry_error *err);
DRY_API void dry_pool_destroy(struct dry_pool *pool);

/* --- blocks ----------------------------------------------------------------------------- */

/* `size` bytes for `stream`, aligned to 512. size 0 gives address 0, which free accepts. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_alloc(struct dry_pool *pool,
                                                        uint64_t size, uint64_t stream,
                                                        uint64_t *address);
/*
 * The same at a multiple of `alignment`, a power of two up to 1 GiB. The block is larger by
 * what it takes to find one in it, alignment - 512 at most; free takes the address given.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_alloc_aligned(struct dry_pool *pool,
                                                                uint64_t size,
                                                                uint64_t alignment,
                                                                uint64_t stream,
                                                                uint64_t *address);
/*
 * Give back; the block waits for the streams recorded on it. 0 is ignored. For a stream that
 * was destroyed since, the device is waited for here, once. SYSTEM: an event had to be recorded
 * and could not be; the block stays in use.
 */
DRY_API enum dry_status dry_pool_free(struct dry_pool *pool, uint64_t address);
/* `stream` uses the block too. Its own stream is ignored, as are repetitions. */
DRY_API enum dry_status dry_pool_record_stream(struct dry_pool *pool, uint64_t address,
                                               uint64_t stream);
/*
 * The program has made `stream` wait for all work on `on` so far (cuStreamWaitEvent): what was
 * freed on `on` before may be taken by `stream` (paged; torch has no use for it).
 */
DRY_API enum dry_status dry_pool_stream_waits(struct dry_pool *pool, uint64_t stream,
                                              uint64_t on);

struct dry_pool_block {
    uint64_t address, size; /* of the block, >= requested */
    uint64_t requested;
    uint64_t stream;
    struct dry_pool_id pool;
    uint64_t segment_address, segment_size;
    uint32_t context; /* DRY_NONE if none */
};
/*
 * The block in use whose address this is. That of an aligned one may begin before it, and what it
 * takes to find the address in it is requested, too. Cost: a walk to its segment, not for the hot
 * path.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_get_block(struct dry_pool *pool,
                                                            uint64_t address,
                                                            struct dry_pool_block *block);
/* The size of the block a request of `size` bytes would get at least; 0 from 1 EiB on. */
DRY_API uint64_t dry_pool_round_size(const struct dry_pool *pool, uint64_t size);

/* --- limits and cached memory ----------------------------------------------------------- */

/*
 * torch.cuda.set_per_process_memory_fraction(); 0 <= fraction <= 1, 1: no limit. Of the total
 * that the device gave at create; without effect where it knows none. It takes the place of
 * what the options said; the smaller of this and dry_pool_set_limit() counts. The placement
 * torch holds it against what is asked, as PyTorch does: pages of expandable segments may go
 * beyond.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_fraction(struct dry_pool *pool,
                                                               double fraction);
/* No more than `bytes` from the device, whole pages included; UINT64_MAX: no limit. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_set_limit(struct dry_pool *pool,
                                                            uint64_t bytes);
/* Everything cached goes back to the device. Waits for streams. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_empty_cache(struct dry_pool *pool);
/* The same, only until `target` bytes are reserved; *reserved (or NULL) is what remains. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_trim(struct dry_pool *pool,
                                                       uint64_t target,
                                                       uint64_t *reserved);

/*
 * Called when a request would fail, without the lock: may call the pool, must not wait for
 * another thread that does. `size` is the request. Non-zero: something was freed, try again.
 * Callbacks are asked in order of adding until the request is served; at most 8, each request
 * asks each at most once. A request that a callback makes asks them too: it must not make one
 * without an end. One that another thread is in may return after its removal has. ARGUMENT:
 * NULL, there already, or a ninth; of remove: not there.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_add_oom_callback(
    struct dry_pool *pool, int (*callback)(void *self, uint64_t size, uint64_t stream),
    void *self);
DRY_API enum dry_status dry_pool_remove_oom_callback(
    struct dry_pool *pool, int (*callback)(void *self, uint64_t size, uint64_t stream),
    void *self);

/* --- private pools and captures ----------------------------------------------------------- */

#define DRY_POOL_USE_ON_OOM 1u /* its free blocks serve others before an OOM */
#define DRY_POOL_NO_SPLIT 2u   /* a free block that is found for a request is its whole */
#define DRY_POOL_NO_REMAP 4u   /* its pages stay then, too: NCCL, IPC, CUDA graphs */

/* Which streams; `covers` NULL: all. Called with the lock held: must not call the pool. */
struct dry_stream_filter {
    int (*covers)(void *self, uint64_t stream);
    void *self;
};

/*
 * One user more; made with these flags if it is not there. Then pools that nobody uses any more
 * give their pages to others: up to 64 events are recorded, and the device is waited for where
 * what they have free is of a stream that is gone; amid a capture that is put off to its end.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_open_private(struct dry_pool *pool,
                                                               struct dry_pool_id id,
                                                               unsigned flags);
/* One user less; without users its cached memory goes with the next release. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_release_private(struct dry_pool *pool,
                                                                  struct dry_pool_id id);
/*
 * From here to the end, requests of these streams go to it. The innermost begin wins.
 * ARGUMENT: it is not there, has no users, or is begun already; filter NULL: all streams.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_begin_private(
    struct dry_pool *pool, struct dry_pool_id id, const struct dry_stream_filter *filter);
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_end_private(struct dry_pool *pool,
                                                              struct dry_pool_id id);
/*
 * Work on these streams is being captured into a graph, not run: no event is asked about or
 * recorded on them, nothing is given back to the device for them (paged: nothing at all
 * meanwhile), and frees that wait for other streams are held until no capture is left (torch: all
 * of them, as PyTorch does; paged: of blocks that these streams own or use).
 * Captures nest; end ends the innermost. ARGUMENT: none has begun.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_begin_capture(
    struct dry_pool *pool, const struct dry_stream_filter *filter);
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_end_capture(struct dry_pool *pool);

/* --- seeing inside ------------------------------------------------------------------------ */

/* What PyTorch's statistics have no name for; counts, except where bytes are said. */
struct dry_pool_counters {
    uint64_t reserved_peak_bytes;
    uint64_t pages_created, pages_released, pages_remapped;
    /* Across streams: blocks that were whole, but those found by the last look before an OOM. */
    uint64_t reused_ordered, reused_passed, reused_waiting;
    uint64_t events_recorded;
    uint64_t plans_made, hints_taken, hints_refused;
    uint64_t driver_calls;
    uint64_t oom_callbacks_helped;
};

/*
 * As PyTorch counts. While threads ask on streams of their own, a peak of what is allocated or
 * requested is the sum of the streams' own since somebody last needed the whole pool: never
 * less than it was, nor more than is reserved; bytes are too many by 1/64 of that, or 2 MiB, at
 * most. Otherwise exact.
 */
DRY_API void dry_pool_get_stats(struct dry_pool *pool, struct dry_stats *stats);
DRY_API void dry_pool_get_counters(struct dry_pool *pool,
                                   struct dry_pool_counters *counters);
/* torch.cuda.reset_peak_memory_stats() and reset_accumulated_memory_stats(). */
DRY_API void dry_pool_reset_peaks(struct dry_pool *pool);
DRY_API void dry_pool_reset_accumulated(struct dry_pool *pool);
/* The table of torch.cuda.memory_summary(), the same characters. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_write_summary(
    struct dry_pool *pool, int abbreviated, const struct dry_sink *sink,
    struct dry_error *err);

struct dry_pool_history_options {
    size_t struct_size; /* set by dry_pool_history_options_init() */
    size_t entries;     /* of the ring; default 65536 */
    /*
     * Who asks: a number the program gives its stack, DRY_NONE for none. Called before the
     * lock is taken, once an alloc (and a free, if `frees`); may call anything but the pool.
     */
    uint32_t (*get_context)(void *self);
    void *context_self;
    int frees;
};
DRY_API void dry_pool_history_options_init(struct dry_pool_history_options *options);
/*
 * Begin to keep the last entries, forgetting those of before; NULL ends it. Off costs one
 * test; on, an event costs a copy of 64 bytes and a look at the clock, and the ring is taken
 * whole here. An entry of a free that was not asked about has the context of its block, as one
 * of a free that is completed always has. Where there is no memory to note who asked for a block,
 * it has none; requests do not fail for it. A get_context that another thread is in may return
 * after this has.
 * Errors: ARGUMENT (entries 0), MEMORY, UNSUPPORTED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_record_history(
    struct dry_pool *pool, const struct dry_pool_history_options *options);

/* Oldest first; the events are valid during the call, which holds the lock. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk_history(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_event *event), void *self);

struct dry_pool_segment {
    uint64_t address, size, stream;
    struct dry_pool_id pool;
    int is_large, is_expandable;
};
struct dry_pool_part {
    uint64_t address, size, requested;
    uint32_t context;
    int is_active, is_pending; /* both 0: free */
};
/* The segments by address, as a snapshot has them; holds the lock. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_walk(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                             const struct dry_pool_part *parts, size_t count),
    void *self);

/*
 * Why a request of `size` on `stream` would fail or did, as data. Unused is what is free or
 * waits for streams. Of the default pool, an unused segment goes back to the device whole, of
 * an expandable one each unused page; what else is unused is pinned, by the blocks in use that
 * share its segment or page. Without private pools and with nothing waiting,
 *     reserved = allocated + releasable + pinned
 * Amid a capture what a captured stream freed, and what is pending, is taken to be in the way as
 * a block in use is, and would_fit leaves out what may come back: not everything can be waited
 * for before the capture ends.
 */
struct dry_pool_explanation {
    uint64_t size, segment_size; /* asked, and what was asked of the device for it */
    uint64_t total_bytes, free_bytes, limit_bytes; /* limit UINT64_MAX: none */
    uint64_t allocated_bytes, reserved_bytes, private_free_bytes;
    uint64_t largest_hole;     /* the largest free block it could have had */
    uint64_t largest_hole_any; /* the same on any stream and pool */
    uint64_t releasable_bytes; /* empty_cache() would give back now */
    uint64_t pending_bytes;    /* freed, waiting for streams */
    uint64_t pinned_bytes;     /* unused, but held by the pinners */
    uint64_t pinner_bytes;     /* in blocks that pin, and how many of them */
    uint64_t pinner_count;
    /* The block beside which most is unused, and the hole there would be without it. */
    uint64_t largest_pinner_address, largest_pinner_hole;
    /*
     * The largest request that is sure to succeed now: a free block, or what new memory can be
     * had when all that is releasable has gone back. Exact where nothing is waiting, nothing is
     * captured and memory cannot grow in place; else a bit more may fit.
     */
    uint64_t would_fit;
    /* throw_on_cudamalloc_oom (torch) refuses new memory for it before the device is asked. */
    int is_rejected;
};
/*
 * Looks at the pool that a request of the stream goes to: the innermost private one begun for
 * it, else the default one. O(blocks log blocks) with the lock held. Errors: ARGUMENT (1 EiB
 * or more), MEMORY, UNSUPPORTED; *explanation is unchanged then.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_explain(
    struct dry_pool *pool, uint64_t size, uint64_t stream,
    struct dry_pool_explanation *explanation);

/*
 * The text of torch.OutOfMemoryError for this request, exactly, then what it lacks in lines of
 * their own. `text` is always ended by a zero byte where room > 0; returns the length it would
 * have whole, like snprintf.
 * process_bytes: memory of this process as the driver sees it; 0: not known, left out.
 * expandable: PyTorch's last sentence, that of expandable_segments on (1) or off (0); less
 * than 0: none, as neither is true of the paged placement.
 * dry_message_parse() reads it back. Source of the first line: DeviceCachingAllocator::malloc
 * (c10/cuda/CUDACachingAllocator.cpp, 2.15.0a0). Takes no memory.
 */
DRY_API size_t dry_pool_format_oom(const struct dry_pool_explanation *explanation,
                                   int32_t device_index, uint64_t process_bytes,
                                   int expandable, char *text, size_t room);

/* Walk all invariants of the pool and its place; FORMAT with the first broken one. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pool_check(struct dry_pool *pool,
                                                        struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
