/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_RECOMMEND_H
#define DRY_RECOMMEND_H

/*
 * Which PYTORCH_CUDA_ALLOC_CONF would have helped: a search by replay.
 *
 *     struct dry_recommendation *rec;
 *     if (dry_recommend_create(replay, NULL, &rec, &err) != DRY_OK) ...
 *     const struct dry_recommend_summary *s = dry_recommend_get_summary(rec);
 *     const struct dry_candidate *c = dry_recommend_get_candidates(rec, &count);
 *     if (s->outcome == DRY_OUTCOME_CHANGE)
 *         use(c[s->best].conf);
 *     dry_recommend_destroy(rec);
 *
 * Like is compared with like: every candidate begins on an empty device, see
 * <drystone/replay.h>, so what they are held against is the recorded settings begun there
 * too (`is_recorded`), not the record itself. Then come PyTorch's default, larger segments,
 * expandable segments, split sizes just below and above the sizes the program asks for,
 * rounding, garbage collection where a full device calls for it, and combinations around the
 * best. From the simple to the complex: a candidate becomes the best only if it gains
 * `min_gain_bytes` over the best so far, or is as good with fewer caveats. So the result is
 * at most that much worse than the best candidate, and no more complicated than it need be.
 * PyTorch's default wins over the recorded settings where it is at most that much worse.
 *
 * Never proposed: max_split_size_mb together with expandable_segments (reserved memory grows
 * without bound: pytorch#123548, #193400), what the replay's release refuses or does not
 * have, what fails, and garbage collection without need. Recorded options that are not
 * searched (pinned memory, a memory fraction ...) are kept in every candidate.
 *
 * After a recorded OOM the program unwound. What it would have gone on to need is not known:
 * that a setting gets past it says nothing of what comes after (`events_after_oom`).
 *
 * Ownership  create / destroy; the replay is used by create only.
 * Errors     A program that no setting helps is no error: see `outcome`.
 * Threads    One at a time per replay.
 * Units      Bytes; modelled driver time in nanoseconds (in `run`).
 */

#include <drystone/replay.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_recommendation;

/* The numbers of all enums here are fixed for ever; new ones are only appended. */
enum dry_goal {
    DRY_GOAL_AUTO, /* FIT where a capacity is given or known or the record has an OOM, else
                        PEAK; a summary never has it */
    DRY_GOAL_FIT,  /* the smallest device on which the program does not fail */
    DRY_GOAL_PEAK,   /* the lowest peak of reserved memory */
    DRY_GOAL_STABLE, /* the fewest retries, then the least driver time, on a device of the
                        capacity, or else in no more memory than the recorded settings */
};
#define DRY_GOAL_COUNT 4

/* "auto", "fit", "peak", "stable". */
DRY_API const char *dry_goal_name(enum dry_goal goal);

/* What the user cannot have, for `without`. */
#define DRY_WITHOUT_EXPANDABLE 1u
#define DRY_WITHOUT_GC 2u
#define DRY_WITHOUT_SPLIT 4u

struct dry_recommend_options {
    size_t struct_size; /* set by dry_recommend_options_init() */
    const struct dry_memory *memory;
    enum dry_goal goal;
    uint32_t without;        /* DRY_WITHOUT_… */
    uint64_t capacity_bytes; /* of the device; UINT64_MAX: unlimited; 0, the default: the
                                recorded capacity where known, else unlimited */
    uint64_t
        min_gain_bytes; /* less is no gain; 0, the default: 64 MiB or 1 % of the recorded
                                settings' peak, whichever is more */
    /*
     * Runs of the whole program at most. 0, the default: 48, fewer for programs of more than
     * 8 million operations (400 million in all), but 24 at least.
     */
    size_t run_max;
    /* Called before every run with the number of those done; other than 0 cancels. */
    int (*progress)(void *self, size_t run_count, size_t run_max);
    void *progress_self;
    /*
     * The recorded out-of-memory that is to be got past, whatever comes after it (an index in
     * the trace's events): each run tells (`gets_past`), and none is left out because of what
     * the program asks for elsewhere. DRY_EVENT_NONE, the default: the whole program counts.
     */
    size_t past_event;
};

DRY_API void dry_recommend_options_init(struct dry_recommend_options *options);

/*
 * Search. O(operations) a run. Fails with CANCELLED, MEMORY, ARGUMENT (unknown goal or
 * `without`), or what dry_replay_run() fails with under the recorded settings.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_recommend_create(
    struct dry_replay *replay, const struct dry_recommend_options *options,
    struct dry_recommendation **recommendation, struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_recommend_destroy(struct dry_recommendation *recommendation);

enum dry_outcome {
    DRY_OUTCOME_CHANGE,   /* candidate `best` is worth a change */
    DRY_OUTCOME_KEEP,     /* nothing gains enough over the recorded settings */
    DRY_OUTCOME_NONE,     /* everything that was tried fails */
    DRY_OUTCOME_CAPACITY, /* nothing can help: `floor_bytes` exceed the capacity */
};
#define DRY_OUTCOME_COUNT 4

/* "change", "keep", "none", "capacity". */
DRY_API const char *dry_outcome_name(enum dry_outcome outcome);

struct dry_recommend_summary {
    enum dry_goal goal;
    enum dry_outcome outcome;
    size_t best;     /* index of a candidate: CHANGE, KEEP; else SIZE_MAX */
    size_t recorded; /* index of the recorded settings begun empty */

    uint64_t capacity_bytes; /* UINT64_MAX: unlimited */
    uint64_t min_gain_bytes;
    uint64_t capacity_step_bytes; /* how closely smallest devices were searched (FIT) */
    /* Of the best: capacity - smallest device (FIT) or - peak; 0 where unlimited. */
    uint64_t margin_bytes;

    /*
     * What is alive at the peak, in blocks of 512 bytes: nobody can run on less. A recorded
     * OOM's request counts. UINT64_MAX: more than 64 bits hold.
     */
    uint64_t floor_bytes;
    size_t floor_event; /* in the trace's events; SIZE_MAX: before the first */

    int oom_recorded;
    /* The recorded settings begun empty fail as well. If not, the OOM came of a layout older
       than the window, and that a candidate does not fail either proves little. */
    int oom_comes_back;
    uint64_t oom_live_bytes,
        oom_request_bytes;   /* at the first recorded OOM, as floor_bytes */
    size_t events_after_oom; /* of the device; not projected */

    int approximate; /* the check is not exact, or a snapshot could not be checked */
    int begins_warm; /* blocks were alive before the window, else it holds first steps */
    uint64_t as_recorded_peak_bytes; /* continued from the rebuilt layout; 0: not known */

    const char *kept; /* recorded options that are part of every candidate; "" if none */
    int kept_is_lost; /* there may be some, but the recorded string could not be taken apart */
    size_t run_count, run_max;
};

DRY_API const struct dry_recommend_summary *dry_recommend_get_summary(
    const struct dry_recommendation *recommendation);

enum dry_verdict {
    DRY_VERDICT_BEST,
    DRY_VERDICT_GOOD,    /* gains over the recorded settings */
    DRY_VERDICT_NO_GAIN, /* the difference is less than min_gain_bytes, or not a gain */
    DRY_VERDICT_WORSE,
    DRY_VERDICT_FAILS, /* out of memory */
};
#define DRY_VERDICT_COUNT 5

/* "best", "good", "no-gain", "worse", "fails". */
DRY_API const char *dry_verdict_name(enum dry_verdict verdict);

/* What stands against a setting though the replay does not show it. Bits of `caveats`. */
#define DRY_CAVEAT_IPC 1u
#define DRY_CAVEAT_SLEEP 2u
#define DRY_CAVEAT_NIXL 4u
#define DRY_CAVEAT_SYNC 8u
#define DRY_CAVEAT_ROUNDING 16u
#define DRY_CAVEAT_FRACTION 32u
#define DRY_CAVEAT_GROWS 64u
#define DRY_CAVEAT_COUNT 7

/* Of one bit: "ipc", "sleep" ... and a clause for people; "unknown" for other values. */
DRY_API const char *dry_caveat_name(uint32_t caveat);
DRY_API const char *dry_caveat_text(uint32_t caveat);

struct dry_candidate {
    const char *conf;  /* for PYTORCH_CUDA_ALLOC_CONF, `kept` included; "": unset */
    const char *label; /* the same without `kept`; "" is PyTorch's default */
    const char *since; /* the first release with all of it, "2.11"; "" if all have it */
    enum dry_verdict verdict;
    int is_recorded;  /* the recorded settings; conf is the recorded string */
    int is_default;   /* places as PyTorch's default does */
    int is_allowed;   /* may be proposed; only the recorded settings need not be */
    uint32_t caveats; /* DRY_CAVEAT_… */
    /*
     * Devices on which it runs and fails, as close as was searched; 0: not searched. Where
     * they are further apart than capacity_step_bytes, the smallest device is in between.
     */
    uint64_t runs_on_bytes, fails_on_bytes;
    uint64_t runs_on_retries; /* num_alloc_retries on a device of runs_on_bytes */
    /* Less memory than the recorded settings: device it runs on (FIT) or peak. Where the
       smallest device is in between (see above) it gains that at least; without has_gain
       that is not known. */
    int has_gain;
    int64_t gain_bytes;
    struct dry_run run; /* on a device of capacity_bytes */
};

/* Best first, then by verdict and figure; valid as long as the recommendation. */
DRY_API const struct dry_candidate *dry_recommend_get_candidates(
    const struct dry_recommendation *recommendation, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
