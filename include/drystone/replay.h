/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_REPLAY_H
#define DRY_REPLAY_H

/*
 * Do it again: what happened, proved against the record, and what other settings would
 * have done.
 *
 * dry_replay_create() turns one device's part of a trace into a program of requests (alloc,
 * free, a stream reaches its end, empty_cache ...), rebuilds what was alive before the
 * window backwards from the final segments, runs it under the recorded settings and compares
 * every address, every segment event and the final layout with the record. dry_replay_run()
 * then runs the same requests under any settings.
 *
 * Two beginnings: a run under the recorded settings continues from the rebuilt layout
 * (`as_recorded`); every other run begins on an empty device and first places, in address
 * order, the blocks that were alive before the window, because nobody knows what other
 * settings would have left in the cache by then.
 *
 * Ownership  create / destroy; the trace must outlive the replay.
 * Errors     A trace that cannot be checked is no error: the check says why.
 * Threads    One at a time per replay.
 * Units      Bytes; modelled driver time in microseconds.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/stats.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_replay;

#define DRY_DEVICE_BUSIEST INT32_MIN

struct dry_replay_options {
    size_t struct_size; /* set by dry_replay_options_init() */
    const struct dry_memory *memory;
    int32_t device; /* DRY_DEVICE_BUSIEST, the default: the one with the most events */
    /* "2.0" to "2.15", the newest known; default NULL: the release that fits the record. */
    const char *compat;
    /*
     * Called now and then with the events done so far, while "offline" packs with the
     * searches done so far; other than 0 cancels.
     */
    int (*progress)(void *self, uint64_t event_count);
    void *progress_self;
};

DRY_API void dry_replay_options_init(struct dry_replay_options *options);

DRY_API DRY_CHECK_RESULT enum dry_status dry_replay_create(
    const struct dry_trace *trace, const struct dry_replay_options *options,
    struct dry_replay **replay, struct dry_error *err);
DRY_API void dry_replay_destroy(struct dry_replay *replay);

/* Where the replay and the record part for the first time. */
struct dry_mismatch {
    size_t event;   /* in the trace's table of events; SIZE_MAX: the final layout */
    char what[160]; /* what was recorded and what came out */
};

struct dry_replay_check {
    int possible;       /* 0: the record cannot be checked, `reason` says why */
    int exact;          /* every address, segment event and final block came out */
    char reason[160];   /* why it is not possible */
    const char *compat; /* the release whose rules were used */
    size_t event_count; /* of this device */
    size_t alloc_count, alloc_matched;                 /* addresses */
    size_t segment_event_count, segment_event_matched; /* alloc, free, map, unmap */
    size_t segment_count, segment_matched;             /* final layout */
    size_t block_count, block_matched;
    int has_mismatch;
    struct dry_mismatch first_mismatch;
    size_t live_before;       /* blocks older than the window */
    size_t sizes_inferred;    /* of them: size found from later addresses or gaps */
    size_t frees_inferred;    /* given back after the last event, before the snapshot */
    size_t empty_cache_count; /* bursts of segment_free the program asked for */
    size_t retry_count;       /* bursts that a full device forced */
    size_t pending_count;     /* frees that waited for a stream */
    size_t oom_count;
    size_t unknown_count; /* events of unknown actions, skipped */
};

DRY_API const struct dry_replay_check *dry_replay_get_check(
    const struct dry_replay *replay);

struct dry_replay_recorded {
    int32_t device;
    const char *conf; /* recorded option string of PyTorch's, "" if none */
    /*
     * Why the option string could not be read whole (an option of a later release, say), or
     * NULL; replayed are then the values the snapshot exports beside it, of place "paged"
     * the defaults.
     */
    const char *conf_problem;
    uint64_t reserved_peak_bytes; /* in the window, from the record alone; 0: unknown */
    uint64_t reserved_end_bytes;
    uint64_t allocated_peak_bytes; /* rounded bytes, as the allocator counts */
    /*
     * Of what the program had asked for and not asked to give back, in bytes as it asked:
     * what any place needs at least. Known for every trace.
     */
    uint64_t live_peak_bytes;
    int oom; /* the record holds an OOM */
    size_t oom_event;
    uint64_t capacity_bytes; /* reserved + free at the OOM; 0 if not known */
    /* Who placed: "torch"; "paged", a pool of this library; "": nobody who can replay. */
    const char *place;
    const char *place_conf; /* of "paged": recorded option string; else "" */
};

DRY_API const struct dry_replay_recorded *dry_replay_get_recorded(
    const struct dry_replay *replay);

#define DRY_EVENT_NONE SIZE_MAX

struct dry_run_options {
    size_t struct_size;      /* set by dry_run_options_init() */
    const char *conf;        /* PYTORCH_CUDA_ALLOC_CONF; NULL: as recorded */
    const char *compat;      /* NULL: the check's */
    uint64_t capacity_bytes; /* of the device; UINT64_MAX: unlimited, the default; 0: the
                                recorded capacity where known */
    int begin_anew;          /* on an empty device, even under the recorded settings */
    int find_capacity;       /* also find the smallest device on which it runs */
    const struct dry_sink
        *decisions; /* one line an action, drystone-replay(1); NULL: none */
    /*
     * Who decides where a request goes.
     *   "torch"    PyTorch's allocator; NULL, the default, is this
     *   "paged"    this library's own; `conf` is its own option string, NULL as recorded, of
     *              a record by another place its defaults
     *   "offline"  nobody: every lifetime is known, and the blocks are packed into one range.
     *              A block lives from its alloc to the moment its free was asked for, one
     *              older than the window from the beginning; streams are ignored, so that a
     *              program with several could not always run in it. `conf` is NULL or "".
     */
    const char *place;
    /*
     * Also report on the part of the run that begins at this event (an index in the trace's
     * events), when the first steps are over; DRY_EVENT_NONE, the default: nothing.
     */
    size_t steady_from;
    /*
     * 1: the device also checks order (<drystone/sim.h>): a block counts as used on its own
     * stream from alloc to free, and on every stream recorded on it. Begins anew. Not
     * "offline", which knows no streams. Costs about as much again as the run.
     */
    int check_order;
    /*
     * Also tell whether the run gets past this event, an out-of-memory of the record (an
     * index in the trace's events); DRY_EVENT_NONE, the default: nothing. Not "offline".
     */
    size_t past_event;
};

DRY_API void dry_run_options_init(struct dry_run_options *options);

struct dry_run {
    int as_recorded; /* began from the rebuilt layout, else from an empty device */
    int oom;
    size_t oom_event; /* index in the trace's events, if oom */
    uint64_t oom_size;
    uint64_t reserved_peak_bytes, reserved_end_bytes;
    uint64_t allocated_peak_bytes, requested_peak_bytes;
    uint64_t capacity_bytes; /* found with find_capacity, else 0 */
    uint64_t driver_time_ns; /* modelled */
    uint64_t op_count;       /* requests, frees and the like that were replayed */
    struct dry_stats stats;  /* of "offline": allocation, segment, and allocated, reserved
                             * and requested bytes, of all; else 0 */

    const char *place; /* "torch", "paged", "offline" */
    uint64_t
        driver_calls; /* that take, map, unmap or give back; events are not counted */
    /* Of "paged", else 0. */
    uint64_t pages_created, pages_released;
    uint64_t pages_remapped; /* taken from free memory and mapped elsewhere */
    uint64_t reused_ordered, reused_passed, reused_waiting; /* across streams */
    uint64_t plans_made, hints_taken, hints_refused;
    /* Of "offline", else 0 and NULL. */
    uint64_t packed_bytes; /* height of the packing; reserved is that in whole pages */
    uint64_t floor_bytes;  /* peak of live blocks, rounded to 512: no packing is lower */
    int is_optimal;        /* packed_bytes is proved to be the least there is */
    const char *method;    /* what found it, for people */
    /* From steady_from on; has_steady: the run came that far. */
    int has_steady;
    uint64_t steady_reserved_peak_bytes, steady_driver_calls, steady_driver_time_ns;
    uint64_t steady_pages_remapped;
    /* With check_order: what was reused, unmapped or moved before its last use was over. */
    int has_order;
    uint64_t order_fault_count;
    char first_order_fault[192]; /* "" if there is none */
    /* With past_event: it came that far, and what failed then was placed. */
    int gets_past;
};

/*
 * Run the requests under `options->conf`. An OOM ends the run and is no error. Fails with
 * ARGUMENT for an option string PyTorch would refuse (err->text is its complaint), or the
 * place of that name, and for a name that is none; UNSUPPORTED for a backend nobody can
 * replay.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_replay_run(
    struct dry_replay *replay, const struct dry_run_options *options, struct dry_run *run,
    struct dry_error *err);

/*
 * Run, and keep what the allocator did as a trace of its own: the events PyTorch would have
 * recorded, with the requests' stacks and times, and the segments at the end. UNSUPPORTED
 * for a place other than "torch": a trace tells its settings as PyTorch's.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_replay_record(
    struct dry_replay *replay, const struct dry_run_options *options,
    struct dry_trace **recorded, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
