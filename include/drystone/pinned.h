/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PINNED_H
#define DRY_PINNED_H

/*
 * A cache of page-locked host memory, which a GPU can copy from and to directly.
 *
 *     struct dry_pinned_options options;
 *     dry_pinned_options_init(&options);
 *     if (dry_pinned_create(&options, &pinned, &err) != DRY_OK) ...
 *     void *batch;
 *     if (dry_pinned_alloc(pinned, bytes, DRY_PINNED_NO_STREAM, &batch) != DRY_OK) ...
 *     ... copy from it on a stream ...
 *     dry_pinned_record_stream(pinned, batch, stream);
 *     dry_pinned_free(pinned, batch);
 *     dry_pinned_destroy(pinned);
 *
 * Pinning takes 0.03 to 1 second per GiB and unpinning 0.2. So memory is pinned in
 * arenas, each one registration with the driver, and blocks are cut from arenas. A block
 * never spans two arenas. There are two modes:
 *
 *     FIT    the default: cuts blocks of the requested size, rounded up by 1/32 at most,
 *            and merges a freed block with free neighbours at once
 *     BUDDY  the proposal of pytorch #181094: sizes are powers of two, cut from large
 *            blocks of one size
 *
 * Requests up to `threshold_bytes` have separate arenas, for one small block would keep a
 * whole arena from being unpinned.
 *
 * A device may still use a block when the program frees it. The program announces every
 * stream that uses a block with dry_pinned_record_stream(). The freed block is reused
 * after an event in each of these streams. No call of the cache waits for a stream.
 *
 * Words
 *     block         a part of an arena: in use, pending, in a thread cache or free
 *     pending       freed, while a stream or a graph may still use the block
 *     held          pending for a graph, see dry_pinned_hold()
 *     thread cache  free blocks that one thread reuses without the lock
 *     idle          an arena without a block in use or pending
 *     miss          a request that no free block serves, so that memory has to be pinned
 *
 * Ownership  dry_pinned_create() and dry_pinned_destroy(). Destroy also frees blocks in
 *            use: work on them must be over. In the child of a fork destroy unpins
 *            nothing, for the memory is the parent's.
 * Errors
 *     NO_SPACE     The budget, the machine or the driver has no memory left, even after
 *                  idle arenas were unpinned.
 *     MEMORY       No memory for the library's records. Nothing was done.
 *     ARGUMENT     The address is not a block in use, or the request exceeds 4 TiB.
 *     SYSTEM       The driver fails.
 *     UNSUPPORTED  This is the child of a fork. Only destroy is allowed here.
 * Threads    Any thread may call any function at any time, except create and destroy.
 *            Each thread caches some free blocks (`thread_caches`). All other state is
 *            under one lock. The lock is not held while memory is pinned or unpinned, or
 *            an event recorded, so a slow driver does not block other threads.
 *
 *            While memory is pinned ahead in the background, the library runs a thread;
 *            destroy ends it. The thread calls the driver, but no function of `memory`.
 * Units      Bytes, microseconds.
 * Cost       Alloc and free together take some 350 instructions at any size if the thread
 *            has cached a block, and 850 with a split and a merge. A miss pins memory.
 *            Records are 16 bytes for each 4 KiB of large arenas and for each 512 bytes of
 *            small ones, and are never in the pinned memory itself.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/pages.h>
#include <drystone/stats.h>
#include <drystone/status.h>
#include <drystone/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_pinned;

#define DRY_PINNED_NO_STREAM UINT64_MAX
/* The default stream of GPU number `device`, for programs that use several GPUs. The
   driver's handles of default streams, 0 to 2, mean the cache's own GPU. */
#define DRY_PINNED_DEFAULT_STREAM(device) (UINT64_C(1) << 63 | (uint64_t)(device))

#define DRY_PINNED_ANY_NODE (-1) /* the GPU's node, if it is known and has free memory */
#define DRY_PINNED_NO_NODE (-2)  /* the kernel's choice, independent of the GPU */

enum dry_pinned_mode {
    DRY_PINNED_FIT = 0,
    DRY_PINNED_BUDDY = 1,
};

/* How memory is pinned. */
enum dry_pinned_backend {
    DRY_PINNED_AUTO = 0, /* CUDA if its driver can be loaded, or else LOCK */
    DRY_PINNED_CUDA = 1, /* cuMemHostRegister, and events of streams */
    DRY_PINNED_LOCK = 2, /* mlock; there is no device, so freed blocks are reusable at
                            once */
};

struct dry_pinned_options {
    size_t struct_size; /* set by dry_pinned_options_init() */
    const struct dry_memory *memory;
    enum dry_pinned_backend backend;
    int32_t device;      /* ordinal of the CUDA device; default 0 */
    const char *library; /* for CUDA; default "libcuda.so.1" */
    int32_t node;        /* NUMA node of the memory; default DRY_PINNED_ANY_NODE */
    enum dry_pinned_mode mode;
    /*
     * The size of an arena in FIT, 2 MiB to 1 GiB in steps of 4 KiB. 0, the default: 1/32
     * of the bytes pinned so far, within 32 MiB to 1 GiB. Then a request for a quarter of
     * this or more gets an arena of exactly its size. A request larger than an arena
     * always gets an arena of its own.
     */
    uint64_t arena_bytes;
    uint64_t threshold_bytes; /* requests up to this size have separate arenas; 0: none
                                 have; default 1 MiB */
    uint64_t warm_bytes;      /* bytes that create pins ahead; default 0 */
    bool in_background;       /* pin ahead in a thread of the library */
    uint64_t budget_bytes;    /* limit on pinned bytes; 0: what the machine can pin */
    /* Idle memory above this is unpinned when blocks are freed; default: none is. Any
       other value turns thread caches off. */
    uint64_t cached_max_bytes;
    uint64_t keep_max_bytes; /* larger blocks are unpinned when freed; default: none
                                are */
    bool thread_caches;      /* threads cache free blocks; default true */
    /*
     * The number of frees for which one event is recorded in a stream, 1 to 4096, default
     * 1. With 1, free records the event, or leaves that to a thread that is just
     * recording in the stream. A stream must then not be destroyed while any thread frees
     * blocks of it. With more, the last events are recorded when a request needs memory,
     * and a stream must not be destroyed before dry_pinned_stream_done().
     */
    uint32_t event_batch;
    /* For BUDDY: the size of its blocks, a power of two, and how many create pins if
       warm_bytes is 0. */
    uint64_t block_bytes; /* 2 MiB to 8 GiB; default 1 GiB */
    uint32_t block_count; /* default 8 */
    /* The pages of arenas, as in struct dry_pages_options; an arena has whole pages. Huge
       pages take less time to register, and a twentieth of the time to unpin. */
    enum dry_pages_kind page_kind;     /* default TRANSPARENT */
    uint64_t page_bytes;               /* page size of the pool if POOL; 0: the
                                          kernel's default */
    enum dry_pages_policy page_policy; /* allowed fallbacks; default PREFER */
};

DRY_API void dry_pinned_options_init_sized(struct dry_pinned_options *options,
                                           size_t struct_size);
#define dry_pinned_options_init(options)                                                 \
    dry_pinned_options_init_sized(options, sizeof *(options))

/*
 * Read options from `text`, NAME:VALUE separated by commas, over the values in *options.
 * Numbers are decimal, switches True or False. ARGUMENT: an unknown name or an invalid
 * value; err has the position, and *options is unchanged.
 *
 *     this library's
 *         mode (fit, buddy), backend (auto, cuda, lock), device, node, arena_mb,
 *         threshold_kb, warm_mb, in_background, budget_mb, cached_max_mb, keep_max_mb,
 *         thread_caches, event_batch, block_mb, block_count, pages (base, transparent, pool),
 *         page_mb, page_policy (prefer, strict, any)
 *
 *     the proposal's (pytorch #181094); each also sets mode:buddy
 *         BUDDY_BLOCK_SIZE_MB             block_mb
 *         BUDDY_BLOCK_COUNT               block_count
 *         BUDDY_THRESHOLD_MB              threshold_kb, but in MiB
 *
 *     PyTorch's (c10/core/AllocatorConfig.h)
 *         pinned_use_background_threads   in_background; events need no thread here
 *         pinned_reserve_segment_size_mb  warm_mb; but freed memory can be split again, and
 *                                         is unpinned when idle
 *         pinned_max_cached_size_mb       keep_max_mb
 *         pinned_max_round_threshold_mb, pinned_use_cuda_host_register,
 *         pinned_num_register_threads, pinned_max_register_threads
 *                                         change nothing: rounding is by 1/32 at any size, and
 *                                         memory is always populated by threads, then registered
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_options_parse(
    struct dry_pinned_options *options, const char *text, struct dry_error *err);

/* --- blocks ----------------------------------------------------------------------------- */

/*
 * Allocate `bytes`, aligned to 512, and to 4 KiB above the threshold. A size of 0 gives
 * NULL, which dry_pinned_free() accepts. `stream` is recorded on the block, as by
 * dry_pinned_record_stream(), unless it is DRY_PINNED_NO_STREAM. The memory is not
 * zeroed.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_alloc(struct dry_pinned *pinned,
                                                          uint64_t bytes, uint64_t stream,
                                                          void **address);

/* Free the block in use at `address`; NULL is ignored. Allocates no memory. */
DRY_API enum dry_status dry_pinned_free(struct dry_pinned *pinned, void *address);

/* Free many blocks, with one event per stream for all of them. ARGUMENT: an address is
   neither NULL nor a block in use; the other blocks are freed. */
DRY_API enum dry_status dry_pinned_free_many(struct dry_pinned *pinned,
                                             void *const *addresses, size_t count);

/*
 * Record that `stream` uses the block at `address`. After its free, the block is not
 * reused before the work that `stream` has by then is done. ARGUMENT: not a block in use,
 * or DRY_PINNED_NO_STREAM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_record_stream(
    struct dry_pinned *pinned, const void *address, uint64_t stream);

/*
 * Record that all work on `stream` is done, because the program waited for it. Blocks
 * that wait only for this stream become free, even if its events are lost. If event_batch
 * is not 1, call this before a stream is destroyed.
 */
DRY_API enum dry_status dry_pinned_stream_done(struct dry_pinned *pinned,
                                               uint64_t stream);

/*
 * Hold the block at `address` for `graph`, a number that the program chooses, while the
 * graph is captured. The freed block is not reused until the graph is released, because
 * no event marks the end of a captured use. The program must hold every block that is
 * used in a capture; the library cannot know. Source of the rule:
 * aten/src/ATen/core/CachingHostAllocator.h, which never reuses such blocks at all.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_hold(struct dry_pinned *pinned,
                                                         const void *address,
                                                         uint64_t graph);

/* Record that `graph` is destroyed and its last run done. A graph that holds no block is
   ignored. */
DRY_API enum dry_status dry_pinned_release(struct dry_pinned *pinned, uint64_t graph);

/* Return the size of the block in use that begins at `address`; 0: there is none. */
DRY_API uint64_t dry_pinned_usable_bytes(const struct dry_pinned *pinned,
                                         const void *address);

/* Return the size of the block for a request of `bytes`; 0 for 0 and above 4 TiB. */
DRY_API uint64_t dry_pinned_round_size(const struct dry_pinned *pinned, uint64_t bytes);

/*
 * Make a tensor in a block of the cache; its memory is not zeroed. `options` are those of
 * dry_tensor_wrap(). The last owner of the tensor frees the block as dry_pinned_free()
 * does. The cache must outlive the tensor and its exports. Errors: those of
 * dry_pinned_alloc() and dry_tensor_wrap(). Cost: that of a block, and two allocations.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_create_tensor(
    struct dry_pinned *pinned, const struct dry_tensor_options *options,
    struct dry_tensor **tensor, struct dry_error *err);

/* --- pinned memory ----------------------------------------------------------------------- */

/*
 * Pin until `bytes` are pinned. Errors: those of dry_pinned_alloc(); arenas pinned before
 * the failure stay.
 *
 * With `in_background` a thread pins, and the program can use each arena as soon as it is
 * pinned. Failures are then not reported. There is one warm-up at a time: a second call
 * meanwhile does nothing. If no thread can be started, this call pins before it returns.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_warm(struct dry_pinned *pinned,
                                                         uint64_t bytes,
                                                         bool in_background,
                                                         struct dry_error *err);

/*
 * Unpin every idle arena, and remember the peak of used bytes since the last clear. The
 * next miss above the threshold shows that the program is active again. That miss pins
 * as much of the remembered peak again as possible: at once, or in the background if
 * in_background is set.
 */
DRY_API enum dry_status dry_pinned_clear(struct dry_pinned *pinned);

/* Unpin idle arenas until at most `bytes` are pinned or none is idle. No peak is
   remembered. */
DRY_API enum dry_status dry_pinned_trim(struct dry_pinned *pinned, uint64_t bytes);

/* --- statistics and checks --------------------------------------------------------------- */

/* Microseconds spent in calls that pin or unpin; `count` is the number of calls. */
struct dry_pinned_time {
    int64_t total, max, min, count;
};

/*
 * The statistics of torch.cuda.host_memory_stats(), with its names and meaning, and then
 * those that PyTorch lacks. A peak is that of the sum, not a sum of peaks. Peaks are
 * exact with one thread. With more threads, each may distort them by a block and 1 MiB,
 * or by 1/256 of the pinned bytes.
 */
struct dry_pinned_stats {
    size_t struct_size;              /* DRY_INIT sets it */
    struct dry_stat allocations;     /* pinned ranges */
    struct dry_stat allocated_bytes; /* pinned bytes */
    struct dry_stat active_requests; /* allocated, not yet reusable */
    struct dry_stat active_bytes;    /* rounded bytes of active requests */
    int64_t num_host_alloc, num_host_free;
    struct dry_pinned_time host_alloc_time, host_free_time;

    struct dry_stat requested_bytes; /* bytes of active requests, as requested */
    int64_t pending_bytes;           /* included in active */
    int64_t held_bytes;              /* included in pending: held for graphs */
    int64_t lost_bytes;         /* included in pending: never reusable, because the CUDA
                                   context is gone */
    int64_t thread_cache_bytes; /* free bytes in thread caches */
    int64_t idle_bytes;         /* bytes in idle arenas */
    int64_t largest_free_bytes; /* the largest request that needs no pinning */
    int64_t num_events;         /* events recorded so far */
    int64_t num_event_failures; /* events that the driver refused; they are tried again */
};

/* Fill *stats. Cost: O(arenas). */
DRY_API enum dry_status dry_pinned_get_stats(struct dry_pinned *pinned,
                                             struct dry_pinned_stats *stats);

/* Reset statistics as torch.cuda.reset_peak_host_memory_stats() and
   torch.cuda.reset_accumulated_host_memory_stats() do. */
DRY_API void dry_pinned_reset_peaks(struct dry_pinned *pinned);
DRY_API void dry_pinned_reset_accumulated(struct dry_pinned *pinned);

#define DRY_PINNED_KEY_COUNT 40

/*
 * Visit each statistic with its key, in alphabetical order: "active_bytes.allocated" ...
 * "thread_cache_bytes". Keys are PyTorch's names if it has them. The averages are total /
 * count. The key is valid during the visit.
 */
DRY_API void dry_pinned_stats_visit(const struct dry_pinned_stats *stats,
                                    void (*visit)(void *self, const char *key,
                                                  int64_t value),
                                    void *self);

/*
 * A breakdown of the pinned bytes, and whether a request of `bytes` would succeed:
 *     pinned = requested + rounding + thread_cache + free
 */
struct dry_pinned_explanation {
    size_t struct_size;          /* DRY_INIT sets it */
    uint64_t bytes, block_bytes; /* the request, and the size of its block */
    uint64_t pinned_bytes;
    uint64_t requested_bytes;    /* requested bytes of blocks in use or pending */
    uint64_t rounding_bytes;     /* the rest of these blocks */
    uint64_t pending_bytes;      /* included in both */
    uint64_t thread_cache_bytes; /* free in thread caches, which a miss empties */
    uint64_t free_bytes;         /* free in arenas */
    uint64_t idle_bytes;         /* included in free: whole arenas, which clear unpins */
    uint64_t largest_free_bytes; /* the largest free range that this request could use */
    uint64_t available_bytes;    /* bytes that may still be pinned, by the budget and the
                                    machine */
    bool is_hit;                 /* a free block serves the request */
    bool would_fit; /* the request succeeds, if necessary after idle arenas are
                       unpinned */
};

/* Explain a request of `bytes`. Errors: ARGUMENT (0 or more than 4 TiB), UNSUPPORTED. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_explain(
    struct dry_pinned *pinned, uint64_t bytes,
    struct dry_pinned_explanation *explanation);

enum dry_pinned_state {
    DRY_PINNED_FREE = 0, /* includes thread caches */
    DRY_PINNED_IN_USE = 1,
    DRY_PINNED_PENDING = 2,
};

struct dry_pinned_block {
    uint64_t address, bytes;
    uint64_t requested_bytes; /* 0: the block is free */
    uint64_t arena;           /* its address; an arena's blocks are visited together */
    enum dry_pinned_state state;
};

/*
 * Visit every block, arena by arena, with ascending addresses; together they cover all
 * pinned bytes. Every other call waits meanwhile, so `visit` must not call the cache and
 * should be fast. Errors: UNSUPPORTED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_walk(
    struct dry_pinned *pinned,
    void (*visit)(void *self, const struct dry_pinned_block *block), void *self);

/* Check all invariants. FORMAT: err names the first that is broken. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_check(struct dry_pinned *pinned,
                                                          struct dry_error *err);

/* --- life -------------------------------------------------------------------------------- */

/*
 * Make a cache. `options` are copied. Errors, in addition to those of pinning
 * `warm_bytes`:
 *     ARGUMENT     An option is invalid; err says which.
 *     UNSUPPORTED  This machine does not have the backend.
 *     MEMORY
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_create(
    const struct dry_pinned_options *options, struct dry_pinned **pinned,
    struct dry_error *err);

/* End a cache and free all its memory; see Ownership. */
DRY_API void dry_pinned_destroy(struct dry_pinned *pinned);

#ifdef __cplusplus
}
#endif

#endif
