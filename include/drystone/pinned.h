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
 * Pinning costs 0.03 to 1 second a GiB and unpinning 0.2, so memory is pinned in arenas, each
 * one registration with the driver, and cut to size. A block never spans two arenas. Two modes:
 * FIT, the default, cuts what is asked for, rounded up by 1/32 at most, and joins what is free
 * at once with its neighbours; BUDDY is what pytorch #181094 proposes, powers of two in blocks
 * of one size. Requests up to `threshold_bytes` live in arenas of their own, for one small block
 * keeps a whole arena from going back.
 *
 * Work of a device on a block is not over when the program frees it. Every stream that uses a
 * block is told by dry_pinned_record_stream(); the freed block waits for an event in each, and
 * is then joined with its neighbours like any other. Nothing here waits for a stream.
 *
 * Ownership  create / destroy. Blocks still in use end with the cache: work on them must be
 *            over. In the child of a fork destroy gives nothing back: it is the parent's.
 * Errors     NO_SPACE: the budget, the machine or the driver has no room; what was idle was
 *            given back and tried again first. MEMORY: none for our records; nothing was done.
 *            ARGUMENT: an address that is not a block in use, more than 4 TiB. SYSTEM: the
 *            driver refuses.
 *            UNSUPPORTED: this is the child of a fork; only destroy is allowed there.
 * Threads    Any thread may call anything at any time but create and destroy. Each thread
 *            keeps some free blocks at hand (`magazines`); everything else is under one lock,
 *            which is never held while memory is pinned or unpinned, or an event recorded: a
 *            driver that takes its time holds up nobody else. A thread of ours runs
 *            while memory is pinned ahead in the background; destroy ends it. It calls the
 *            driver, and no function of `memory`.
 * Units      Bytes, microseconds.
 * Cost       alloc and free together, when a thread has such a block at hand, are some 350
 *            instructions at any size; with a split and a join 850. A miss pins memory. Records
 *            are 16 bytes a 4 KiB of large arenas and a 512 bytes of small ones, never in the
 *            pinned memory itself.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/pages.h>
#include <drystone/stats.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_pinned;

#define DRY_PINNED_NO_STREAM UINT64_MAX
#define DRY_PINNED_ANY_NODE (-1)

enum dry_pinned_mode {
    DRY_PINNED_FIT = 0,
    DRY_PINNED_BUDDY = 1,
};

/* Who pins. */
enum dry_pinned_backend {
    DRY_PINNED_AUTO = 0, /* CUDA where its driver can be opened, else LOCK */
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
     * Of an arena in FIT, 2 MiB to 1 GiB; 0, the default: as large as a 32nd of what is
     * pinned already, 32 MiB to 1 GiB, or of just the size that is asked for, if that is a quarter
     * of it or more. What is larger than an arena always gets one of its own.
     */
    uint64_t arena_bytes;
    uint64_t threshold_bytes; /* up to here requests live apart; 0: none; default 1 MiB */
    uint64_t warm_bytes;      /* pinned ahead by create; default 0 */
    int in_background;        /* what is pinned ahead is pinned by a thread of ours */
    uint64_t budget_bytes; /* never more pinned; 0: as much as the machine has room for */
    /*
     * Idle beyond this goes back when it is freed; default all. With less no thread keeps
     * blocks at hand.
     */
    uint64_t cached_max_bytes;
    uint64_t keep_max_bytes; /* of a block: larger ones are never kept; default all */
    int magazines;           /* default 1 */
    /*
     * One event in a stream stands for so many frees, default 1: it is recorded as free is
     * called, or by the thread that is just recording one there, so a stream must not be
     * destroyed while any thread frees blocks of it. With more, up to 4096, the last ones are
     * recorded when memory is looked for, and a stream must not be destroyed before
     * dry_pinned_stream_done().
     */
    uint32_t event_batch;
    /* Of BUDDY: size, a power of two of 2 MiB to 8 GiB, and how many are pinned by create. */
    uint64_t block_bytes; /* default 1 GiB */
    uint32_t block_count; /* default 8 */
    /*
     * What is pinned, as in struct dry_pages_options: the kind, default TRANSPARENT; of POOL which
     * pool, 0: the kernel's default; and what may be instead, default PREFER. Each arena is of
     * whole pages. Huge ones cost less to register, and a twentieth to give back.
     */
    enum dry_pages_kind page_kind;
    uint64_t page_bytes;
    enum dry_pages_policy page_policy;
};

DRY_API void dry_pinned_options_init(struct dry_pinned_options *options);
/*
 * Options as text, NAME:VALUE separated by commas, over what `options` holds. Ours: mode (fit,
 * buddy), backend (auto, cuda, lock), device, node, arena_mb, threshold_kb, warm_mb,
 * in_background, budget_mb, cached_max_mb, keep_max_mb, magazines, event_batch, block_mb,
 * block_count, pages (base, transparent, pool), page_mb, page_policy (prefer, strict, any);
 * numbers are decimal, switches True or False.
 *
 * Of the proposal: BUDDY_BLOCK_SIZE_MB is block_mb, BUDDY_BLOCK_COUNT is block_count,
 * BUDDY_THRESHOLD_MB is threshold_kb in MiB; each also means mode:buddy.
 *
 * Of PyTorch (c10/core/AllocatorConfig.h): pinned_use_background_threads is in_background
 * (events need no thread here); pinned_reserve_segment_size_mb is warm_mb (but what is freed
 * can be cut again, and goes back when it is idle); pinned_max_cached_size_mb is keep_max_mb;
 * pinned_max_round_threshold_mb, pinned_use_cuda_host_register, pinned_num_register_threads
 * and pinned_max_register_threads are read and change nothing: rounding is by 1/32 at any
 * size, and memory is always filled by threads and then registered.
 *
 * ARGUMENT: a name that is none of these, or a value it cannot have; err has the place, and
 * *options is as it was.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_options_parse(
    struct dry_pinned_options *options, const char *text, struct dry_error *err);

/* --- blocks ----------------------------------------------------------------------------- */

/*
 * `bytes` aligned to 512, to 4 KiB above the threshold; 0 bytes give NULL, which free accepts.
 * stream: as dry_pinned_record_stream() at once; DRY_PINNED_NO_STREAM: none so far. The
 * contents are what was there before.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_alloc(struct dry_pinned *pinned,
                                                          uint64_t bytes, uint64_t stream,
                                                          void **address);
/* NULL is ignored. Takes no memory. */
DRY_API enum dry_status dry_pinned_free(struct dry_pinned *pinned, void *address);
/*
 * The same for many: one event a stream for all of them. ARGUMENT if one of them is no block in
 * use; the others are freed.
 */
DRY_API enum dry_status dry_pinned_free_many(struct dry_pinned *pinned,
                                             void *const *addresses, size_t count);
/*
 * `stream` uses the block, until whatever it has been asked for when the block is freed.
 * ARGUMENT: no block in use, or DRY_PINNED_NO_STREAM.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_record_stream(
    struct dry_pinned *pinned, const void *address, uint64_t stream);
/*
 * All work on `stream` is over: the program waited for it. What waits for the stream is free,
 * also where its events are lost. Before a stream is destroyed, if event_batch is not 1.
 */
DRY_API enum dry_status dry_pinned_stream_done(struct dry_pinned *pinned,
                                               uint64_t stream);
/*
 * A graph is being captured that uses the block: freed, it is not used again until the
 * graph, a number of the program's, is released: a captured use has no end an event could
 * tell. What is used in a capture must be held; nobody here can know. Source of the rule:
 * aten/src/ATen/core/CachingHostAllocator.h, which never reuses such blocks at all.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_hold(struct dry_pinned *pinned,
                                                         const void *address,
                                                         uint64_t graph);
/* The graph is gone and its last run over. A graph that holds nothing is ignored. */
DRY_API enum dry_status dry_pinned_release(struct dry_pinned *pinned, uint64_t graph);
/* Of the block in use that begins here; 0: none does. */
DRY_API uint64_t dry_pinned_usable_bytes(const struct dry_pinned *pinned,
                                         const void *address);
/* What a request of `bytes` gets. */
DRY_API uint64_t dry_pinned_round_size(const struct dry_pinned *pinned, uint64_t bytes);

/* --- what is pinned ------------------------------------------------------------------------ */

/*
 * Pin until `bytes` are pinned, now, or beside the program with `in_background`, where what
 * is there can be used from the first arena on. Errors as of alloc; what was pinned stays. In the
 * background nothing is reported; one warm-up at a time, a second call then does nothing.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_warm(struct dry_pinned *pinned,
                                                         uint64_t bytes,
                                                         int in_background,
                                                         struct dry_error *err);
/*
 * Give back every arena without a block in use or waiting. The most that was in use since the
 * last clear is remembered: at the next miss the program has come back, and as much is pinned
 * again at once, or in the background if in_background is set.
 */
DRY_API enum dry_status dry_pinned_clear(struct dry_pinned *pinned);
/* Give back idle arenas until `bytes` are pinned, or none is idle; nothing is remembered. */
DRY_API enum dry_status dry_pinned_trim(struct dry_pinned *pinned, uint64_t bytes);

/* --- looking ------------------------------------------------------------------------------- */

/* Microseconds spent in calls that pin or unpin. */
struct dry_pinned_time {
    int64_t total, max, min, count;
};

/*
 * torch.cuda.host_memory_stats(), with its names and meaning; what PyTorch lacks comes
 * after. Peaks are of the sum, not sums of peaks: exact with one thread, with more of them off
 * by a block and 1 MiB, or 1/256 of what is pinned, for each at most.
 */
struct dry_pinned_stats {
    struct dry_stat allocations;     /* ranges pinned */
    struct dry_stat allocated_bytes; /* pinned */
    struct dry_stat active_requests; /* handed out, until reusable */
    struct dry_stat active_bytes;    /* of these, as rounded */
    int64_t num_host_alloc, num_host_free;
    struct dry_pinned_time host_alloc_time, host_free_time;

    struct dry_stat requested_bytes; /* of active, as the program asked */
    int64_t pending_bytes;           /* freed, waiting for streams; in active */
    int64_t held_bytes;              /* of pending: for graphs */
    int64_t lost_bytes;              /* of pending: the context is gone, nobody knows */
    int64_t magazine_bytes;          /* free, at a thread's hand */
    int64_t idle_bytes;              /* in arenas without a block in use or waiting */
    int64_t largest_free_bytes;      /* the largest block to be had without pinning */
    int64_t num_events;              /* recorded so far */
    int64_t num_event_failures;      /* refused, to be tried again */
};
/* O(arenas). */
DRY_API void dry_pinned_get_stats(struct dry_pinned *pinned,
                                  struct dry_pinned_stats *stats);
/* torch.cuda.reset_peak_host_memory_stats(), reset_accumulated_host_memory_stats(). */
DRY_API void dry_pinned_reset_peaks(struct dry_pinned *pinned);
DRY_API void dry_pinned_reset_accumulated(struct dry_pinned *pinned);

#define DRY_PINNED_KEY_COUNT 40
/*
 * Each figure with its key, PyTorch's names where it has them, in alphabetical order:
 * "active_bytes.allocated" ... "requested_bytes.peak". The averages are total / count. The
 * key is valid during the call.
 */
DRY_API void dry_pinned_stats_visit(const struct dry_pinned_stats *stats,
                                    void (*visit)(void *self, const char *key,
                                                  int64_t value),
                                    void *self);

/*
 * Where the pinned bytes are, and whether a request of `bytes` would do without pinning:
 *     pinned = requested + rounding + magazine + free
 */
struct dry_pinned_explanation {
    uint64_t bytes, block_bytes; /* the request, and what it takes */
    uint64_t pinned_bytes;
    uint64_t requested_bytes;    /* in use or waiting, as asked */
    uint64_t rounding_bytes;     /* in the same blocks, but not asked for */
    uint64_t pending_bytes;      /* of both: in blocks that wait for streams */
    uint64_t magazine_bytes;     /* free, at threads' hands; a miss gets it */
    uint64_t free_bytes;         /* free in arenas */
    uint64_t idle_bytes;         /* of free: whole arenas, which clear gives back */
    uint64_t largest_free_bytes; /* that this request could have of free */
    uint64_t room_bytes; /* that may still be pinned, by the budget and the machine */
    int is_hit;          /* it fits into what is free */
    int would_fit;       /* or into what can be pinned, once idle arenas went back */
};
/* Errors: ARGUMENT (0 or too large), UNSUPPORTED. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_explain(
    struct dry_pinned *pinned, uint64_t bytes,
    struct dry_pinned_explanation *explanation);

/* Walk all invariants; FORMAT with the first broken one. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_check(struct dry_pinned *pinned,
                                                          struct dry_error *err);

/* --- life -------------------------------------------------------------------------------- */

/* MEMORY, ARGUMENT, UNSUPPORTED (no such backend here), and what pinning says. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pinned_create(
    const struct dry_pinned_options *options, struct dry_pinned **pinned,
    struct dry_error *err);
DRY_API void dry_pinned_destroy(struct dry_pinned *pinned);

#ifdef __cplusplus
}
#endif

#endif
