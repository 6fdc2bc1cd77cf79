/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CASES_H
#define TEST_CASES_H

/*
 * Labelled cases: snapshots of programs of which we know why they died.
 *
 * Each case is a small program written for the simulated device (program.h): a training
 * loop, a server, a loader. It runs by PyTorch's rules with its own settings on a device of
 * stated size, is recorded as PyTorch would record it, runs out of memory, unwinds (so
 * that the end of the record looks nothing like the moment), and is dumped. What was true
 * at the moment is kept beside it in a struct case_truth, taken from the allocator and the
 * device, not from the record.
 *
 * test/unit/explain/verdict/test_cases.c proves that every case is what its label says, by sums over the
 * truth and by replaying it under other settings. make_cases writes them to files.
 *
 *     const struct labelled_case *c = case_at(i);
 *     struct case_truth truth;
 *     struct dry_trace *snapshot;
 *     if (case_make(c, &snapshot, &truth, &err) != DRY_OK) ...
 *     dry_trace_destroy(snapshot);
 *
 * Threads    Any number of cases may be made at once.
 * Units      Bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/cause.h>
#include <drystone/trace.h>

struct program;

/*
 * `cause` is what a reader must be told first; `second` is what is true besides: that
 * something else adds to it, or which sum shows it. A leak, a spike, an imbalance and an
 * overflow end as a lack of capacity, and foreign memory cannot be told from one without
 * the device's size: these have CAPACITY for their second.
 */
/*
 * A setting helps where nothing fails if it saves memory, or retries at the limit. A record
 * that `is_silent` cannot show that a setting helps, though one may: an honest answer names
 * none.
 */
struct labelled_case {
    const char *name; /* of the file, too: lower case, digits and '-' */
    const char *what; /* the story in one sentence */
    enum dry_cause cause, second;
    bool setting_helps;    /* some allocator setting removes the OOM, all else equal */
    bool expandable_helps; /* expandable_segments:True does */
    const char *helps;     /* one that does; NULL if none is known */
    /* The machine and the recording. */
    const char *conf;     /* PYTORCH_CUDA_ALLOC_CONF; NULL: none */
    uint64_t total_bytes; /* of the device */
    uint64_t other_bytes; /* of them, never PyTorch's: context, NCCL, other processes */
    double fraction;      /* set_per_process_memory_fraction(); 0: not called */
    size_t ring_entries;  /* max_entries of the recording; 0: no limit */
    bool has_no_events;   /* history was not recorded: segments only, no stacks */
    bool is_silent;
    bool detects_anomalies; /* torch.autograd.set_detect_anomaly(True) */
    bool survives;          /* it never runs out of memory, though something is wrong */
    /* Its snapshots look like those of PyTorch 2.N; 0: of the newest. */
    unsigned shape_minor;
    void (*run)(struct program *program);
    unsigned variant; /* which of the cases that `run` serves */
    /* The program without what it does wrong itself: a leak, a spike, an imbalance. */
    enum dry_cause without;
};

#define CASE_STEPS_MAX 256
#define CASE_DEVICES_MAX 8

/*
 * The moment is that of the first OOM, after all retries, before anything unwinds; where
 * there is no OOM, the end. All block sizes are rounded ones unless they say `requested`.
 * A lane is what the request may be served from: its stream, its pool, its size class.
 */
struct case_truth {
    uint64_t total_bytes;
    uint64_t capacity_bytes; /* total without what is never PyTorch's */
    uint64_t limit_bytes;    /* of a memory fraction; UINT64_MAX: none */

    bool has_oom;
    int32_t device;         /* the one the moment is of */
    size_t oom_event;       /* in the trace's table; SIZE_MAX: none */
    uint64_t request_bytes; /* as the program asked, 0 where there is no OOM */
    uint64_t rounded_bytes; /* the block it would have got */
    uint64_t driver_bytes;  /* the segment or pages it would have taken */
    uint64_t request_stream, request_pool_a, request_pool_b;

    uint64_t live_bytes, requested_bytes; /* blocks in use; as asked */
    uint64_t pending_bytes;               /* blocks that wait for streams */
    uint64_t reserved_bytes;
    uint64_t device_free_bytes;  /* what the driver had left */
    uint64_t releasable_bytes;   /* whole free segments of the default pool */
    uint64_t lane_free_bytes;    /* free blocks of the request's lane */
    uint64_t lane_hole_bytes;    /* the largest of them */
    uint64_t other_class_bytes;  /* free: small pool for a large request, or converse */
    uint64_t other_stream_bytes; /* free, same pool, cached by another stream */
    uint64_t other_pool_bytes;   /* free, in another pool */

    /* When the request came in, before its retries waited for all streams. */
    uint64_t pending_before_bytes;
    uint64_t hole_before_bytes;  /* largest free block of the lane */
    uint64_t hole_if_done_bytes; /* the same, had all streams been done */

    uint64_t end_live_bytes, end_reserved_bytes; /* of the dump */
    uint64_t retry_count;
    size_t step_count;
    uint64_t step_live_bytes[CASE_STEPS_MAX]; /* at the end of each step */
    size_t device_count;
    uint64_t device_peak_bytes[CASE_DEVICES_MAX]; /* peaks of live bytes, by device */
};

/*
 * All cases. The second and the third set were labelled before anything was asked about
 * them, see doc/benchmarks.md.
 */
size_t case_count(void);
size_t case_second_begin(void);
size_t case_third_begin(void);
const struct labelled_case *case_at(size_t index);
/* NULL if there is none of that name. */
const struct labelled_case *case_find(const char *name);

/* The most PyTorch could have taken: the device, or the limit if that is less. */
uint64_t case_allowed_bytes(const struct case_truth *truth);

/* `truth` may be NULL. The trace is of kind SNAPSHOT and the caller's to destroy. */
DRY_CHECK_RESULT enum dry_status case_make(const struct labelled_case *label,
                                           struct dry_trace **snapshot,
                                           struct case_truth *truth,
                                           struct dry_error *err);

#endif
