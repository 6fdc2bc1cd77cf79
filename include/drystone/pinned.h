/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PINNED_H
#define DRY_PINNED_H

/*
 * A cache of page-locked memory of the host: what a GPU copies from and to without a detour.
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
 * Pinning costs 0.03 to 1 second a GiB and unpinning 0.2. So memory is pinned in arenas, each
 * one registration with the driver, and cut to size. A block never spans two arenas. There are
 * two modes:
 *
 *     FIT    the default: cuts what is asked for, rounded up by 1/32 at most, and joins what is
 *            free at once with its neighbours
 *     BUDDY  the proposal of pytorch #181094: powers of two in blocks of one size
 *
 * Requests up to `threshold_bytes` live in arenas of their own, for one small block keeps a
 * whole arena from going back.
 *
 * Work of a device on a block is not over when the program frees the block. The program
 * announces every stream that uses a block with dry_pinned_record_stream(). The freed block
 * waits for an event in each of these streams, and is then joined with its neighbours like any
 * other. Nothing here waits for a stream.
 *
 * Words
 *     block         a part of an arena: in use, pending, in a thread cache or free
 *     pending       freed, while a stream or a graph may still use the block
 *     held          pending for a graph, see dry_pinned_hold()
 *     thread cache  the free blocks that one thread keeps at hand
 *     idle          said of an arena without a block in use or pending
 *     miss          a request that no free block serves, so that memory has to be pinned
 *
 * Ownership  dry_pinned_create() and dry_pinned_destroy(). Blocks still in use end with the
 *            cache: work on them must be over. In the child of a fork destroy gives nothing
 *            back, for the memory is the parent's.
 * Errors
 *     NO_SPACE     The budget, the machine or the driver has no room. Idle arenas were given
 *                  back and the request tried again first.
 *     MEMORY       The host has no memory for our records. Nothing was done.
 *     ARGUMENT     The address is no block in use, or the request is for more than 4 TiB.
 *     SYSTEM       The driver refuses.
 *     UNSUPPORTED  This is the child of a fork. Only destroy is allowed here.
 * Threads    Any thread may call any function at any time, except create and destroy. Each
 *            thread keeps some free blocks at hand (`thread_caches`). Everything else is under
 *            one lock, which is never held while memory is pinned or unpinned, or an event
 *            recorded: a slow driver holds up nobody else.
 *
 *            A thread of ours runs while memory is pinned ahead in the background; destroy
 *            ends it. The thread calls the driver, and no function of `memory`.
 * Units      Bytes, microseconds.
 * Cost       Alloc and free together take some 350 instructions at any size if the thread has
 *            such a block at hand, and 850 with a split and a join. A miss pins memory.
 *            Records are 16 bytes for each 4 KiB of large arenas and for each 512 bytes of
 *            small ones, and never lie in the pinned memory itself.
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
/*
 * The default stream of GPU number `device`, which a program with several must name so: 0 to 2,
 * the driver's handles of default streams, are those of the cache's own GPU.
 */
#define DRY_PINNED_DEFAULT_STREAM(device) (UINT64_C(1) << 63 | (uint64_t)(device))

#define DRY_PINNED_ANY_NODE (-1) /* the GPU's, if the machine tells and has room there */
#define DRY_PINNED_NO_NODE (-2)  /* the kernel's choice, wherever the GPU is */

enum dry_pinned_mode {
    DRY_PINNED_FIT = 0,
    DRY_PINNED_BUDDY = 1,
};

/* The party that pins. */
enum dry_pinned_backend {
    DRY_PINNED_AUTO = 0, /* CUDA if its driver can be opened, or else LOCK */
    DRY_PINNED_CUDA = 1, /* cuMemHostRegister, events of streams */
    DRY_PINNED_LOCK = 2, /* mlock; no device, so every use is over when it is freed */
};

struct dry_pinned_options {
    size_t struct_size; /* set by dry_pinned_options_init() */
    const struct dry_memory *memory;
    enum dry_pinned_backend backend;
    int32_t device;      /* of CUDA: ordinal; default 0 */
    const char *library; /* of CUDA; default "libcuda.so.1" */
    int32_t node;        /* where memory is to lie; default DRY_PINNED_ANY_NODE */
    enum dry_pinned_mode mode;
    /*
     * The size of an arena in FIT, 2 MiB to 1 GiB in steps of 4 KiB. 0, the default: a 32nd of
     * what is pinned already, 32 MiB to 1 GiB; but a request for a quarter of this or more gets
     * an arena of just its size. A request larger than an arena always gets one of its own.
     */
    uint64_t arena_bytes;
    uint64_t threshold_bytes; /* up to here requests live apart; 0: none; default 1 MiB */
    uint64_t warm_bytes;      /* pinned ahead by create; default 0 */
    bool in_background;       /* a thread of ours pins what is pinned ahead */
    uint64_t budget_bytes; /* never more pinned; 0: as much as the machine has room for */
    /*
     * Idle memory beyond this goes back when it is freed; the default is to keep all. With less
     * than all, no thread keeps blocks at hand.
     */
    uint64_t cached_max_bytes;
    uint64_t keep_max_bytes; /* larger blocks are never kept; default: all are */
    bool thread_caches;      /* threads keep free blocks at hand; default true */
    /*
     * The number of frees that one event in a stream stands for, 1 to 4096, default 1. With 1,
     * free records the event, or leaves it to a thread that is just recording one there. A
     * stream must then not be destroyed while any thread frees blocks of it. With more, the
     * last events are recorded when memory is looked for, and a stream must not be destroyed
     * before dry_pinned_stream_done().
     */
    uint32_t event_batch;
    /*
     * The blocks of BUDDY: their size, a power of two, and how many of them create pins if
     * warm_bytes is 0.
     */
    uint64_t block_bytes; /* 2 MiB to 8 GiB; default 1 GiB */
    uint32_t block_count; /* default 8 */
    /*
     * The pages that are pinned, as in struct dry_pages_options. Each arena is of whole pages.
     * Huge pages cost less to register, and a twentieth to give back.
     */
    enum dry_pages_kind page_kind;     /* default TRANSPARENT */
    uint64_t page_bytes;               /* of POOL: which pool; 0: the kernel's default */
    enum dry_pages_policy page_policy; /* what may be instead; default PREFER */
};

DRY_API void dry_pinned_options_init_sized(struct dry_pinned_options *options,
                                           size_t struct_size);
#define dry_pinned_options_init(options)                                                 \
    dry_pinned_options_init_sized(options, sizeof *(options))

/*
 * Read options from `text`, NAME:VALUE separated by commas, over what *options holds. Numbers
 * are decimal, switches True or False. ARGUMENT: a name that is none of these, or a value it
 * cannot have; err has the place, and *options is as it was.
 *
 *     ours
 *         mode (fit, buddy), backend (auto, cuda, lock), device, node, arena_mb,
 *         threshold_kb, warm_mb, in_background, budget_mb, cached_max_mb, keep_max_mb,
 *         thread_caches, event_batch, block_mb, block_count, pages (base, transparent, pool),
 *         page_mb, page_policy (prefer, strict, any)
 *
 *     the proposal's; each also means mode:buddy
 *         BUDDY_BLOCK_SIZE_MB             block_mb
 *         BUDDY_BLOCK_COUNT               block_count
 *         BUDDY_THRESHOLD_MB              threshold_kb, but in MiB
 *
 *     PyTorch's (c10/core/AllocatorConfig.h)
 *         pinned_use_background_threads   in_background; events need no thread here
 *         pinned_reserve_segment_size_mb  warm_mb; but what is freed can be cut again, and
 *                                         goes back when it is idle
 *         pinned_max_cached_size_mb       keep_max_mb
 *         pinned_max_round_threshold_mb, pinned_use_cuda_host_register,
 *         pinned_num_register_threads, pinned_max_register_threads
 *                                         change nothing: rounding is by 1/32 at any size, and
 *                                         memory is always filled by threads, then registered
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_options_parse(
    struct dry_pinned_options *options, const char *text, struct dry_error *err);

/* --- blocks ----------------------------------------------------------------------------- */

/*
 * Allocate `bytes`, aligned to 512, and to 4 KiB above the threshold. A size of 0 gives NULL,
 * which dry_pinned_free() accepts. The block has `stream` recorded at once, as by
 * dry_pinned_record_stream(), unless it is DRY_PINNED_NO_STREAM. The memory holds whatever was
 * there before.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_alloc(struct dry_pinned *pinned,
                                                          uint64_t bytes, uint64_t stream,
                                                          void **address);

/* Free the block in use at `address`; NULL is ignored. Takes no memory. */
DRY_API enum dry_status dry_pinned_free(struct dry_pinned *pinned, void *address);

/*
 * Free many blocks, with one event a stream for all of them. ARGUMENT: an address is neither
 * NULL nor a block in use; the others are freed.
 */
DRY_API enum dry_status dry_pinned_free_many(struct dry_pinned *pinned,
                                             void *const *addresses, size_t count);

/*
 * Note that `stream` uses the block at `address`, until the work is over that `stream` has been
 * given by the time the block is freed. ARGUMENT: no block in use, or DRY_PINNED_NO_STREAM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_record_stream(
    struct dry_pinned *pinned, const void *address, uint64_t stream);

/*
 * Note that all work on `stream` is over, because the program waited for it. Blocks that wait
 * for the stream alone are free then, even if its events are lost. If event_batch is not 1,
 * this must be called before a stream is destroyed.
 */
DRY_API enum dry_status dry_pinned_stream_done(struct dry_pinned *pinned,
                                               uint64_t stream);

/*
 * Hold the block at `address` for `graph`, a number of the program's, while the graph is
 * captured. The freed block is not used again until the graph is released, because a captured
 * use has no end that an event could tell. The program must hold every block that is used in a
 * capture; nobody here can know. Source of the rule:
 * aten/src/ATen/core/CachingHostAllocator.h, which never reuses such blocks at all.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_hold(struct dry_pinned *pinned,
                                                         const void *address,
                                                         uint64_t graph);

/* Note that `graph` is gone and its last run over. A graph that holds nothing is ignored. */
DRY_API enum dry_status dry_pinned_release(struct dry_pinned *pinned, uint64_t graph);

/* The bytes of the block in use that begins at `address`; 0: none does. */
DRY_API uint64_t dry_pinned_usable_bytes(const struct dry_pinned *pinned,
                                         const void *address);

/* The bytes that a request of `bytes` gets; 0 for 0 and beyond 4 TiB. */
DRY_API uint64_t dry_pinned_round_size(const struct dry_pinned *pinned, uint64_t bytes);

/*
 * Make a tensor in a block of the cache, which nobody zeroed. `options` are those of
 * dry_tensor_wrap(). Whoever has the tensor last frees the block, as dry_pinned_free() does.
 * The cache must outlive the tensor and its exports. Errors: those of dry_pinned_alloc() and
 * dry_tensor_wrap(). Cost: that of a block, and two allocations.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_create_tensor(
    struct dry_pinned *pinned, const struct dry_tensor_options *options,
    struct dry_tensor **tensor, struct dry_error *err);

/* --- what is pinned ------------------------------------------------------------------------ */

/*
 * Pin until `bytes` are pinned. Errors: those of dry_pinned_alloc(); what was pinned stays.
 *
 * With `in_background` a thread pins beside the program, which can use each arena as soon as it
 * is there. Refusals are not reported then. There is one warm-up at a time: a second call does
 * nothing meanwhile. If no thread can be started, this call pins now.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_warm(struct dry_pinned *pinned,
                                                         uint64_t bytes,
                                                         bool in_background,
                                                         struct dry_error *err);

/*
 * Give back every idle arena, and remember the most that was in use since the last clear. The
 * next miss above the threshold says that the program has come back. The memory is then pinned
 * again, as much as there is room for: at once, or in the background if in_background is set.
 */
DRY_API enum dry_status dry_pinned_clear(struct dry_pinned *pinned);

/* Give back idle arenas until `bytes` are pinned or none is idle. Nothing is remembered. */
DRY_API enum dry_status dry_pinned_trim(struct dry_pinned *pinned, uint64_t bytes);

/* --- looking ------------------------------------------------------------------------------- */

/* Microseconds spent in calls that pin or unpin. */
struct dry_pinned_time {
    int64_t total, max, min, count;
};

/*
 * The figures of torch.cuda.host_memory_stats(), with its names and meaning, and then those
 * that PyTorch lacks. Peaks are of the sum, not sums of peaks. They are exact with one thread.
 * With more, each thread may put them off by a block and 1 MiB, or 1/256 of what is pinned.
 */
struct dry_pinned_stats {
    size_t struct_size;              /* DRY_INIT sets it */
    struct dry_stat allocations;     /* ranges pinned */
    struct dry_stat allocated_bytes; /* pinned */
    struct dry_stat active_requests; /* handed out, until reusable */
    struct dry_stat active_bytes;    /* of these, as rounded */
    int64_t num_host_alloc, num_host_free;
    struct dry_pinned_time host_alloc_time, host_free_time;

    struct dry_stat requested_bytes; /* of active, as the program asked */
    int64_t pending_bytes;           /* part of active */
    int64_t held_bytes;              /* part of pending: for graphs */
    int64_t lost_bytes;         /* part of pending: the context is gone, nobody knows */
    int64_t thread_cache_bytes; /* free, in thread caches */
    int64_t idle_bytes;         /* in idle arenas */
    int64_t largest_free_bytes; /* the largest block to be had without pinning */
    int64_t num_events;         /* recorded so far */
    int64_t num_event_failures; /* refused, to be tried again */
};

/* Fill *stats. Cost: O(arenas). */
DRY_API enum dry_status dry_pinned_get_stats(struct dry_pinned *pinned,
                                             struct dry_pinned_stats *stats);

/*
 * Reset statistics as torch.cuda.reset_peak_host_memory_stats() and
 * torch.cuda.reset_accumulated_host_memory_stats() do.
 */
DRY_API void dry_pinned_reset_peaks(struct dry_pinned *pinned);
DRY_API void dry_pinned_reset_accumulated(struct dry_pinned *pinned);

#define DRY_PINNED_KEY_COUNT 40

/*
 * Visit each figure with its key, in alphabetical order: "active_bytes.allocated" ...
 * "thread_cache_bytes". Keys are PyTorch's names if it has them. The averages are
 * total / count. The key is valid during the visit.
 */
DRY_API void dry_pinned_stats_visit(const struct dry_pinned_stats *stats,
                                    void (*visit)(void *self, const char *key,
                                                  int64_t value),
                                    void *self);

/*
 * The places of the pinned bytes, and the outlook of a request of `bytes`:
 *     pinned = requested + rounding + thread_cache + free
 */
struct dry_pinned_explanation {
    size_t struct_size;          /* DRY_INIT sets it */
    uint64_t bytes, block_bytes; /* the request, and what it takes */
    uint64_t pinned_bytes;
    uint64_t requested_bytes;    /* in use or pending, as asked */
    uint64_t rounding_bytes;     /* in the same blocks, but not asked for */
    uint64_t pending_bytes;      /* part of both */
    uint64_t thread_cache_bytes; /* free, at threads' hands; a miss gets it */
    uint64_t free_bytes;         /* free in arenas */
    uint64_t idle_bytes;         /* part of free: whole arenas, which clear gives back */
    uint64_t largest_free_bytes; /* the largest part of free this request could have */
    uint64_t room_bytes;         /* may still be pinned, by the budget and the machine */
    bool is_hit;                 /* the request fits into what is free */
    bool would_fit; /* or into what can be pinned once idle arenas went back */
};

/* Explain a request of `bytes`. Errors: ARGUMENT (0 or more than 4 TiB), UNSUPPORTED. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_explain(
    struct dry_pinned *pinned, uint64_t bytes,
    struct dry_pinned_explanation *explanation);

enum dry_pinned_state {
    DRY_PINNED_FREE = 0, /* also in a thread cache */
    DRY_PINNED_IN_USE = 1,
    DRY_PINNED_PENDING = 2,
};

struct dry_pinned_block {
    uint64_t address, bytes;
    uint64_t requested_bytes; /* 0: free */
    uint64_t arena;           /* its address; all blocks of an arena come together */
    enum dry_pinned_state state;
};

/*
 * Visit every block, an arena after the other, each by rising address; together they are all
 * that is pinned. Every other call waits meanwhile, so `visit` must not call the cache, and takes
 * as little time as possible. Errors: UNSUPPORTED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_walk(
    struct dry_pinned *pinned,
    void (*visit)(void *self, const struct dry_pinned_block *block), void *self);

/* Walk all invariants. FORMAT: one is broken; err says which is the first. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_check(struct dry_pinned *pinned,
                                                          struct dry_error *err);

/* --- life -------------------------------------------------------------------------------- */

/*
 * Make a cache. `options` are copied. Errors, beside those of pinning `warm_bytes`:
 *     ARGUMENT     An option has an impossible value; err says which.
 *     UNSUPPORTED  There is no such backend here.
 *     MEMORY
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_create(
    const struct dry_pinned_options *options, struct dry_pinned **pinned,
    struct dry_error *err);

/* End a cache and give all its memory back; see Ownership. */
DRY_API void dry_pinned_destroy(struct dry_pinned *pinned);

#ifdef __cplusplus
}
#endif

#endif
