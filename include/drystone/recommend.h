/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_RECOMMEND_H
#define DRY_RECOMMEND_H

/*
 * Recommend the PYTORCH_CUDA_ALLOC_CONF that would have helped: a search by replay.
 *
 *     struct dry_recommendation *rec;
 *     if (dry_recommend_create(replay, NULL, &rec, &err) != DRY_OK) ...
 *     const struct dry_recommend_summary *s = dry_recommend_get_summary(rec);
 *     const struct dry_candidate *c = dry_recommend_get_candidates(rec, &count);
 *     if (s->outcome == DRY_OUTCOME_CHANGE)
 *         use(c[s->best].conf);
 *     dry_recommend_destroy(rec);
 *
 * A candidate is a setting that is replayed. Like is compared with like: every candidate
 * begins on an empty device, see <drystone/replay.h>. So candidates are compared with the
 * recorded settings begun there too (`is_recorded`), not with the record itself.
 *
 * The recorded settings come first, then PyTorch's default, larger segments, expandable
 * segments, and split sizes just below and above the sizes the program asks for. Rounding
 * follows, garbage collection if a full device calls for it, and combinations around the
 * best.
 *
 * The order is from the simple to the complex. A candidate becomes the best only if it
 * gains `min_gain_bytes` over the best so far, or is as good with fewer caveats. So the
 * result is at most that much worse than the best candidate, and no more complicated than
 * it need be.
 *
 * A snapshot does not name its release, and several may have made it. Settings that all of
 * these know are tried first, and others only if none of them helps. A setting is named only
 * if it helps by the rules of every such release that knows it.
 *
 * Without evidence nothing is proposed. A window that asks for next to nothing is none, nor
 * is an OOM that does not come back when the program begins on an empty device.
 *
 * Never proposed are
 *
 *     max_split_size_mb together with expandable_segments: reserved memory grows without
 *         bound (pytorch#123548, #193400)
 *     settings that the replay's release refuses or does not have
 *     settings that fail
 *     garbage collection without need
 *
 * Recorded options that are not searched (pinned memory, a memory fraction ...) are kept in
 * every candidate.
 *
 * After a recorded OOM the program unwound, and its later needs are not known. A
 * setting that gets past the OOM proves nothing for the events after it (`events_after_oom`).
 *
 * Ownership  create / destroy; the replay is used by create only.
 * Errors     A program that no setting helps is no error: see `outcome`.
 * Threads    One at a time per replay.
 * Units      Bytes; modelled driver time in nanoseconds (in `run`).
 * Cost       At most `run_max` replays, each O(operations); a few more by the rules of other
 *            releases, of what is to be named.
 */

#include <stdbool.h>

#include <drystone/replay.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_recommendation;

/* The numbers of all enums here are fixed for ever; new ones are only appended. */
/* The figure that the search improves. */
enum dry_goal {
    /*
     * FIT if a capacity is given or known, or if the record met its limit (an OOM, or
     * retries); otherwise PEAK. A summary never has it.
     */
    DRY_GOAL_AUTO,
    DRY_GOAL_FIT,  /* the smallest device on which the program does not fail */
    DRY_GOAL_PEAK, /* the lowest peak of reserved memory */
    /*
     * The fewest retries, then the least driver time, on a device of the capacity.
     * Without a capacity: in no more memory than the recorded settings.
     */
    DRY_GOAL_STABLE,
};
#define DRY_GOAL_COUNT 4

/* Return the name of a goal: "auto", "fit", "peak", "stable". */
DRY_API const char *dry_goal_name(enum dry_goal goal);

/* Bits of `without`: options that the user cannot have. */
#define DRY_WITHOUT_EXPANDABLE 1u
#define DRY_WITHOUT_GC 2u
#define DRY_WITHOUT_SPLIT 4u

/* Options of the search. */
struct dry_recommend_options {
    size_t struct_size; /* set by dry_recommend_options_init() */
    const struct dry_memory *memory;
    enum dry_goal goal;
    uint32_t without; /* DRY_WITHOUT_… */
    /*
     * The device's memory; UINT64_MAX: unlimited; 0, the default: the recorded capacity if
     * known, else the least that retries prove, otherwise unlimited.
     */
    uint64_t capacity_bytes;
    /*
     * A smaller difference is no gain; 0, the default: 64 MiB or 1 % of the recorded
     * settings' peak, whichever is more.
     */
    uint64_t min_gain_bytes;
    /*
     * At most so many runs of the whole program. 0, the default: 48, fewer for programs
     * of more than 4 million operations (200 million in all), but 16 at least.
     */
    size_t run_max;
    /*
     * Called before every run with the number of runs done; a result of true
     * cancels.
     */
    bool (*progress)(void *self, size_t run_count, size_t run_max);
    void *progress_self;
    /*
     * The recorded out-of-memory to get past, whatever comes after it (an index in the
     * trace's events). Each run tells whether it does (`gets_past`). No setting is left
     * out because of requests that the program makes elsewhere. DRY_EVENT_NONE, the
     * default: the whole program counts.
     */
    size_t past_event;
};

/* Set all options to their defaults. */
DRY_API void dry_recommend_options_init_sized(struct dry_recommend_options *options,
                                              size_t struct_size);
#define dry_recommend_options_init(options)                                              \
    dry_recommend_options_init_sized(options, sizeof *(options))

/*
 * Search for better settings of the program in `replay`; the result is *recommendation.
 * O(operations) a run. Errors: CANCELLED, MEMORY, ARGUMENT (unknown goal or `without`),
 * or those of dry_replay_run() under the recorded settings.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_recommend_create(
    struct dry_replay *replay, const struct dry_recommend_options *options,
    struct dry_recommendation **recommendation, struct dry_error *err);
/* End the recommendation. NULL is fine. */
DRY_API void dry_recommend_destroy(struct dry_recommendation *recommendation);

/* The outcome of a search. */
enum dry_outcome {
    DRY_OUTCOME_CHANGE,      /* candidate `best` is worth a change */
    DRY_OUTCOME_KEEP,        /* no setting gains enough over the recorded ones */
    DRY_OUTCOME_NONE,        /* every setting that was tried fails */
    DRY_OUTCOME_CAPACITY,    /* no setting can help: `floor_bytes` exceed the capacity */
    DRY_OUTCOME_NO_EVIDENCE, /* the record cannot tell settings apart: `evidence_gap` */
    /* The OOM came of a memory fraction: the device had room for the request. */
    DRY_OUTCOME_LIMIT,
};
#define DRY_OUTCOME_COUNT 6

/*
 * Return the name of an outcome: "change", "keep", "none", "capacity", "no-evidence",
 * "limit".
 */
DRY_API const char *dry_outcome_name(enum dry_outcome outcome);

/* The result of a search. */
struct dry_recommend_summary {
    enum dry_goal goal;
    enum dry_outcome outcome;
    size_t best;     /* index of a candidate: CHANGE, KEEP; otherwise SIZE_MAX */
    size_t recorded; /* index of the recorded settings begun on an empty device */

    uint64_t capacity_bytes; /* UINT64_MAX: unlimited */
    uint64_t min_gain_bytes;
    uint64_t capacity_step_bytes; /* how closely smallest devices were searched (FIT) */
    /*
     * For the best: capacity - smallest device (FIT) or capacity - peak; 0 if unlimited.
     */
    uint64_t margin_bytes;

    /*
     * Bytes alive at the peak, in blocks of 512 bytes: no setting can run on less. A
     * recorded OOM's request counts. UINT64_MAX: more than 64 bits hold.
     */
    uint64_t floor_bytes;
    size_t floor_event; /* in the trace's events; SIZE_MAX: before the first */

    bool oom_recorded;
    /*
     * The recorded settings begun on an empty device fail as well. If not, the OOM came
     * of a layout older than the window, and a candidate that does not fail either proves
     * little.
     */
    bool oom_comes_back;
    uint64_t oom_live_bytes,
        oom_request_bytes;   /* at the first recorded OOM, counted as floor_bytes are */
    size_t events_after_oom; /* of the device; no projection is made of them */

    bool approximate; /* the check is not exact, or a snapshot could not be checked */
    /* Blocks were alive before the window; if not, the window holds first steps. */
    bool begins_warm;
    uint64_t as_recorded_peak_bytes; /* continued from the rebuilt layout; 0: not known */

    const char *kept; /* recorded options that are part of every candidate; "" if none */
    /* There may be such options, but the recorded string could not be taken apart. */
    bool kept_is_lost;
    size_t run_count, run_max;

    /*
     * The room that retries prove: capacity_bytes or more, and less than this; 0: nothing
     * is proved, or another capacity was given.
     */
    uint64_t capacity_high_bytes;
    size_t recorded_retries; /* bursts that a full device forced; 0 at a proved OOM */
    struct dry_releases releases; /* that may have made the record */
    const char *evidence_gap;     /* NO_EVIDENCE: a clause that says why; else NULL */
};

/* Return the summary. */
DRY_API const struct dry_recommend_summary *dry_recommend_get_summary(
    const struct dry_recommendation *recommendation);

/* The verdict on one candidate. */
enum dry_verdict {
    DRY_VERDICT_BEST,
    DRY_VERDICT_GOOD, /* gains over the recorded settings */
    /* The difference is less than min_gain_bytes, or some release would gain nothing. */
    DRY_VERDICT_NO_GAIN,
    DRY_VERDICT_WORSE,
    DRY_VERDICT_FAILS, /* out of memory */
};
#define DRY_VERDICT_COUNT 5

/* Return the name of a verdict: "best", "good", "no-gain", "worse", "fails". */
DRY_API const char *dry_verdict_name(enum dry_verdict verdict);

/* Bits of `caveats`: reasons against a setting that the replay does not show. */
#define DRY_CAVEAT_IPC 1u
#define DRY_CAVEAT_SLEEP 2u
#define DRY_CAVEAT_NIXL 4u
#define DRY_CAVEAT_SYNC 8u
#define DRY_CAVEAT_ROUNDING 16u
#define DRY_CAVEAT_FRACTION 32u
#define DRY_CAVEAT_GROWS 64u
#define DRY_CAVEAT_RELEASE 128u
#define DRY_CAVEAT_COUNT 8

/* Return the name of one bit, "ipc", "sleep" ...; "unknown" for other values. */
DRY_API const char *dry_caveat_name(uint32_t caveat);
/* Return a clause about one bit, for people; "unknown" for other values. */
DRY_API const char *dry_caveat_text(uint32_t caveat);

/* A candidate and its run. */
struct dry_candidate {
    const char *conf;  /* for PYTORCH_CUDA_ALLOC_CONF, including `kept`; "": unset */
    const char *label; /* the same without `kept`; "" is PyTorch's default */
    /* The first release that has all of it, "2.11"; "" if all have it. */
    const char *since;
    enum dry_verdict verdict;
    bool is_recorded; /* the recorded settings; conf is the recorded string */
    bool is_default;  /* its placement is that of PyTorch's default */
    bool is_allowed;  /* may be proposed; only the recorded settings may be forbidden */
    uint32_t caveats; /* DRY_CAVEAT_… */
    /*
     * Devices on which it runs and fails, as close as was searched; 0: not searched. If
     * they are further apart than capacity_step_bytes, the smallest device is in between.
     */
    uint64_t runs_on_bytes, fails_on_bytes;
    uint64_t runs_on_retries; /* num_alloc_retries on a device of runs_on_bytes */
    /*
     * Memory saved over the recorded settings: of the device it runs on (FIT), or of the
     * peak. If the smallest device is in between (see above), the gain is at least that.
     * Without has_gain it is not known.
     */
    bool has_gain;
    int64_t gain_bytes;
    struct dry_run run; /* on a device of capacity_bytes */
    /*
     * It helps by the rules of every release that may have made the record and knows it.
     * Asked of the best few that help at all; a setting that is to be named has it.
     */
    bool is_proved;
};

/*
 * Return the candidates, the best first, then by verdict and figure. They are valid as
 * long as the recommendation.
 */
DRY_API const struct dry_candidate *dry_recommend_get_candidates(
    const struct dry_recommendation *recommendation, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
