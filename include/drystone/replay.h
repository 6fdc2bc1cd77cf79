/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_REPLAY_H
#define DRY_REPLAY_H

/*
 * Replay a trace: verify the replay against the record, then compute what other settings
 * would have done.
 *
 *     struct dry_replay *replay;
 *     if (dry_replay_create(trace, NULL, &replay, &err) != DRY_OK) ...
 *     const struct dry_replay_check *check = dry_replay_get_check(replay);
 *     if (!check->exact) ...
 *     struct dry_run_options options;
 *     struct dry_run run;
 *     dry_run_options_init(&options);
 *     options.conf = "expandable_segments:True";
 *     if (dry_replay_run(replay, &options, &run, &err) == DRY_OK)
 *         use(run.reserved_peak_bytes);
 *     dry_replay_destroy(replay);
 *
 * dry_replay_create() turns one device's part of a trace into a program of requests
 * (alloc, free, a stream reaches its end, empty_cache ...). It reconstructs the blocks
 * that were live before the window, backwards from the final segments. Then it runs the
 * program under the recorded settings. It compares every address, every segment event and
 * the final layout with the record. The same requests run under any settings by
 * dry_replay_run().
 *
 * A run starts in one of two ways. Under the recorded settings it continues from the
 * rebuilt layout (`as_recorded`). Every other run begins on an empty device and first
 * allocates, in address order, the blocks that were live before the window. The cache
 * that other settings would have had by then is not known.
 *
 * A place is an allocator that serves the requests: PyTorch's, or another one.
 *
 * Ownership  create / destroy; the trace must outlive the replay.
 * Errors     A trace that cannot be checked is no error: the check says why.
 * Threads    One at a time per replay. dry_replay_run() changes nothing in it: any number
 *            of threads may call it with one replay at once, if `memory` and `progress`
 *            allow that. Meanwhile only getters may be called with the replay.
 * Units      Bytes; modelled driver time in nanoseconds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/field.h>
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
    int32_t device; /* DRY_DEVICE_BUSIEST, the default: the device with the most events */
    /* The release whose rules are used, "2.0" to "2.15"; NULL, the default: the release
       that fits the record. */
    const char *compat;
    /* Called regularly with the number of events done so far, or of searches done while
       place "offline" packs; a result of true cancels. */
    bool (*progress)(void *self, uint64_t event_count);
    void *progress_self;
};

/* Set all options to their defaults. */
DRY_API void dry_replay_options_init_sized(struct dry_replay_options *options,
                                           size_t struct_size);
#define dry_replay_options_init(options)                                                 \
    dry_replay_options_init_sized(options, sizeof *(options))

/*
 * Make a program of one device's part of `trace`, and check it against the record; the
 * result is *replay. `options` NULL: the defaults. Errors: ARGUMENT (the trace has no
 * such device, an unknown release), UNSUPPORTED (pinned host memory), LIMIT (too many
 * events), CANCELLED, MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_replay_create(
    const struct dry_trace *trace, const struct dry_replay_options *options,
    struct dry_replay **replay, struct dry_error *err);
/* End the replay. NULL is fine. */
DRY_API void dry_replay_destroy(struct dry_replay *replay);

/* The first point at which the replay differs from the record. */
struct dry_mismatch {
    size_t event;   /* index in the trace's events; SIZE_MAX: in the final layout */
    char what[160]; /* the recorded and the replayed value */
};

/* The result of the self-check: the replay under the recorded settings, compared with the
   record. */
struct dry_replay_check {
    bool possible;      /* false: the record cannot be checked; see `reason` */
    bool exact;         /* every address, segment event and final block is equal */
    char reason[160];   /* why it is not possible; "" if it is */
    const char *compat; /* the release whose rules were used */
    size_t event_count; /* events of this device */
    size_t alloc_count, alloc_matched; /* allocs, and those with the recorded address */
    /* Segment events: alloc, free, map, unmap. */
    size_t segment_event_count, segment_event_matched;
    size_t segment_count, segment_matched; /* segments and blocks of the final layout */
    size_t block_count, block_matched;
    bool has_mismatch;
    struct dry_mismatch first_mismatch;
    size_t live_before; /* blocks allocated before the window */
    /* Blocks of live_before whose size was inferred from later addresses or gaps. */
    size_t sizes_inferred;
    size_t frees_inferred;    /* freed between the last event and the snapshot */
    size_t empty_cache_count; /* bursts of segment frees that the program requested */
    size_t retry_count;       /* bursts of segment frees that a full device forced */
    size_t pending_count;     /* frees that waited for a stream */
    size_t oom_count;
    size_t unknown_count; /* skipped events with unknown actions */
    /* Frees taken as complete when requested: the history has no free_completed
       (skip_actions). Which of them waited for a stream is not known. */
    size_t assumed_count;
};

/* Return the check. */
DRY_API const struct dry_replay_check *dry_replay_get_check(
    const struct dry_replay *replay);

/* Facts that the record itself states or proves. */
struct dry_replay_recorded {
    int32_t device;
    const char *conf; /* the recorded option string of PyTorch, "": none */
    /*
     * Why the option string could not be fully parsed (an option of a later release, for
     * example), or NULL. If not NULL, the values that the snapshot exports separately are
     * replayed; for the place "paged", the defaults.
     */
    const char *conf_problem;
    uint64_t reserved_peak_bytes; /* the window's, told by the record; 0: not known */
    uint64_t reserved_end_bytes;
    uint64_t allocated_peak_bytes; /* rounded bytes, as the allocator counts them */
    /* The peak of requested bytes, from each request to the request to free. Every place
       needs at least this. Known for every trace. */
    uint64_t live_peak_bytes;
    bool oom; /* the record contains an OOM */
    size_t oom_event;
    uint64_t capacity_bytes; /* reserved + free at the OOM; 0 if not known */
    /*
     * Proved bounds of the memory that PyTorch could use: `low` or more, and less than
     * `high`. An OOM proves the exact value (high is low + 1). A retry that then
     * succeeded proves that the bytes reserved before plus the request were too much.
     * Both 0: no proof, because the limit was never reached or the check is not exact.
     */
    uint64_t capacity_low_bytes, capacity_high_bytes;
    /* The place of the record: "torch"; "paged", a pool of this library; "": a place that
       cannot be replayed. */
    const char *place;
    const char *place_conf; /* "paged": its recorded option string; otherwise "" */
};

/* Return the facts of the record, which live as long as the replay. */
DRY_API const struct dry_replay_recorded *dry_replay_get_recorded(
    const struct dry_replay *replay);

/* The range of PyTorch releases that may have made a file. Texts are static. */
struct dry_releases {
    const char *first, *last; /* oldest and newest: "2.0", "2.15" */
    /*
     * True if the rules of a release in the range reproduce the record exactly. False if
     * no check is possible or exact; then the range follows from the file's format alone.
     */
    bool reproduces;
    bool has_gap;           /* some releases in the range do not reproduce it */
    const char *not_before; /* the feature of the file that excludes older releases, "":
                               none */
};

/*
 * Find the releases that may have made the record. A release that the caller named
 * (`compat`) is the only one. The file's format and the rules decide: the self-check is
 * repeated by the rules of each other release. The result is *releases. Errors: MEMORY,
 * CANCELLED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_replay_find_releases(
    struct dry_replay *replay, struct dry_releases *releases, struct dry_error *err);

#define DRY_EVENT_NONE SIZE_MAX

/* A PyTorch release whose allocator decides differently from the one before. */
struct dry_replay_release {
    size_t struct_size;  /* DRY_INIT sets it */
    const char *version; /* "2.12": the first release with these rules */
    const char *change;  /* how they differ from the previous rules, for people; "": the
                           oldest */
};
/* Find the rules of release `version`, "2.9" or "2.12.1", as `compat` does. Returns false
   if they are not known; otherwise *index is their number, from 0, the oldest. O(1). */
DRY_API bool dry_replay_find_release(const char *version, size_t *index);
/* Get rules by their number. Returns false beyond the newest. O(1). */
DRY_API bool dry_replay_get_release(size_t index, struct dry_replay_release *release);

/* A decision of a run, what the allocator did. What an action does not have is 0. */
struct dry_decision {
    enum dry_action action; /* ALLOC, FREE_REQUESTED, OOM, or of SEGMENT_* */
    uint32_t segment;       /* counts from 0 in order of creation */
    /* ALLOC, FREE_REQUESTED: the trace's own id, or without ids the request's index, which counts
       the blocks from before the window first, by address. */
    uint64_t request;
    uint64_t offset_bytes; /* in the segment */
    uint64_t size_bytes;   /* ALLOC: of the block; OOM: the rounded request */
    uint64_t stream;       /* SEGMENT_ALLOC */
};

/* Receives the decisions of a run in order. A status other than OK ends the run with it. */
struct dry_decision_sink {
    enum dry_status (*take)(void *self, const struct dry_decision *decision,
                            struct dry_error *err);
    void *self;
};

#define DRY_DECISION_BYTES 128
/* Write a decision as a line with its newline, see drystone-replay(1). Return its length in
   bytes. An action that is no decision gives an empty text. O(1). */
DRY_API size_t dry_decision_write(const struct dry_decision *decision,
                                  char text[DRY_DECISION_BYTES]);

struct dry_run_options {
    size_t struct_size; /* set by dry_run_options_init() */
    const char *conf;   /* PYTORCH_CUDA_ALLOC_CONF; NULL: the recorded one */
    const char *compat; /* release whose rules apply; NULL: the check's */
    /* The device's memory; UINT64_MAX, the default: unlimited; 0: the recorded capacity
       if known. */
    uint64_t capacity_bytes;
    bool begin_anew;    /* start on an empty device, even under the recorded settings */
    bool find_capacity; /* also find the smallest device on which the program runs */
    const struct dry_decision_sink *decisions; /* NULL: none */
    /*
     * The place: the allocator that serves the requests.
     *
     *   "torch"    PyTorch's allocator; NULL, the default, is this
     *   "paged"    this library's own. `conf` is its option string; NULL is the recorded
     *              one, or the defaults if another place made the record
     *   "offline"  no allocator: every lifetime is known, and the blocks are packed into
     *              one range. A block lives from its alloc to the request to free it, and
     *              from the beginning if it is older than the window. Streams are
     *              ignored, so that a program with several could not always run in the
     *              packing. `conf` is NULL or "".
     */
    const char *place;
    /*
     * Also report on the part of the run from this event on (an index in the trace's
     * events), for example after the first steps. DRY_EVENT_NONE, the default: no such
     * report.
     */
    size_t steady_from;
    /*
     * true: the device also checks the order of uses (<drystone/sim.h>). A block counts
     * as used on its own stream from alloc to free, and on every stream recorded on it.
     * The run starts on an empty device. Not for "offline", which has no streams. Doubles
     * the time of the run, roughly.
     */
    bool check_order;
    /*
     * Also tell whether the run succeeds at this event, a recorded out-of-memory (an
     * index in the trace's events). DRY_EVENT_NONE, the default: not told. Not for
     * "offline".
     */
    size_t past_event;
    /*
     * End the run before this event (an index in the trace's events): all results are
     * those of the part before it. The run starts on an empty device. Not for "offline",
     * which packs a whole program: ARGUMENT. DRY_EVENT_NONE, the default: no early end.
     */
    size_t end_event;
};

/* Set all options to their defaults. */
DRY_API void dry_run_options_init_sized(struct dry_run_options *options,
                                        size_t struct_size);
#define dry_run_options_init(options)                                                    \
    dry_run_options_init_sized(options, sizeof *(options))

struct dry_run {
    bool as_recorded; /* started from the rebuilt layout, otherwise from an empty
                         device */
    bool oom;
    size_t oom_event; /* index in the trace's events, if oom */
    uint64_t oom_size;
    uint64_t reserved_peak_bytes, reserved_end_bytes;
    uint64_t allocated_peak_bytes, requested_peak_bytes;
    uint64_t capacity_bytes; /* found with find_capacity, otherwise 0 */
    uint64_t driver_time_ns; /* modelled time of driver calls */
    uint64_t op_count;       /* replayed operations: requests, frees and others */
    /* For "offline" only the totals of allocations, segments, and allocated, reserved and
       requested bytes; the rest is 0. */
    struct dry_stats stats;

    const char *place; /* "torch", "paged", "offline" */
    /* Calls that allocate, map, unmap or free; calls for events are not counted. */
    uint64_t driver_calls;
    /* For "paged"; otherwise 0. */
    uint64_t pages_created, pages_released;
    uint64_t pages_remapped; /* taken from free memory and mapped at another address */
    /* Blocks reused across streams, see struct dry_pool_counters. */
    uint64_t reused_ordered, reused_passed, reused_waiting;
    uint64_t plans_made, hints_taken, hints_refused;
    /* For "offline"; otherwise 0 and NULL. */
    /* Height of the packing; reserved bytes are this, rounded up to whole pages. */
    uint64_t packed_bytes;
    uint64_t floor_bytes; /* peak of live blocks, rounded to 512 bytes: no packing is
                             lower */
    bool is_optimal;      /* packed_bytes is proved to be minimal */
    const char *method;   /* the method that found the packing, for people */
    /* Results from steady_from on; has_steady: the run reached that event. */
    bool has_steady;
    uint64_t steady_reserved_peak_bytes, steady_driver_calls, steady_driver_time_ns;
    uint64_t steady_pages_remapped;
    /*
     * With check_order: blocks reused, unmapped or moved before their last use was done.
     */
    bool has_order;
    uint64_t order_fault_count;
    char first_order_fault[192]; /* "" if there is none */
    /* With past_event: the run reached that event, and the request that failed there
       succeeded. Then the bytes in segments that cannot go back to the driver there. */
    bool gets_past;
    uint64_t past_held_bytes;
};

/* The members of a dry_run: all, or one part that not every run has. */
enum dry_run_part {
    DRY_RUN_WHOLE,
    DRY_RUN_PACKED, /* only if `method` is set */
    DRY_RUN_STEADY, /* only if has_steady */
    DRY_RUN_ORDER,  /* only if has_order */
};

/* Return the table of a part of struct dry_run. */
DRY_API struct dry_fields dry_run_get_fields(enum dry_run_part part);
/* Return the table of struct dry_replay_check. */
DRY_API struct dry_fields dry_replay_check_get_fields(void);
/* Return the table of struct dry_replay_recorded, without its settings. */
DRY_API struct dry_fields dry_replay_recorded_get_fields(void);

/*
 * Run the requests of `replay` under `options`; the result is *run. `options` NULL: the
 * defaults. An OOM ends the run and is no error. Errors: ARGUMENT for an unknown place,
 * and for an option string that PyTorch or the place would reject (err->text has its
 * message). UNSUPPORTED for a backend that cannot be replayed. Also LIMIT, MEMORY,
 * CANCELLED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_replay_run(
    struct dry_replay *replay, const struct dry_run_options *options, struct dry_run *run,
    struct dry_error *err);

/*
 * Run like dry_replay_run(), and return what the allocator did as a trace, *recorded. It
 * has the events that PyTorch would have recorded, with the requests' stacks and times,
 * and the segments at the end. UNSUPPORTED for a place other than "torch", because a
 * trace's settings are PyTorch's.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_replay_record(
    struct dry_replay *replay, const struct dry_run_options *options,
    struct dry_trace **recorded, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
