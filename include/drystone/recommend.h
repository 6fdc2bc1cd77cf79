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
 * A candidate is a setting that is replayed. Every candidate begins on an empty device,
 * see <drystone/replay.h>. For a fair comparison, the recorded settings are also replayed
 * from there (`is_recorded`); the record itself is not used.
 *
 * The search tries the recorded settings first, then PyTorch's default, larger segments,
 * expandable segments, and split sizes just below and above the sizes the program asks
 * for. It goes on with rounding, garbage collection if the device gets full, and
 * combinations near the best.
 *
 * Simple candidates come before complex ones. A candidate becomes the best only if it
 * gains `min_gain_bytes` over the best so far, or is as good and holds so much less at a
 * recorded OOM, or is as good with fewer caveats. So the
 * result is at most `min_gain_bytes` worse than the best candidate, and no more
 * complicated than necessary. For FIT, the others that help are then listed by the
 * smallest device of each, found to `min_gain_bytes` as far as `run_max` allows.
 *
 * A snapshot does not name its PyTorch release, and several may have made it. Settings
 * that all of these releases support are tried first, and others only if none of the
 * former helps. A setting is recommended only if it helps by the rules of every such
 * release that supports it.
 *
 * Without evidence no setting is proposed. A window with hardly any requests is no
 * evidence, nor is an OOM that does not recur when the program begins on an empty device.
 *
 * Never proposed are
 *
 *     max_split_size_mb together with expandable_segments: reserved memory grows without
 *         bound (pytorch#123548, #193400)
 *     settings that the replay's release rejects or lacks
 *     settings under which the replay fails
 *     garbage collection if the device never gets full
 *
 * Recorded options that are not searched (pinned memory, a memory fraction ...) are kept
 * in every candidate.
 *
 * After a recorded OOM the program unwound its stack, so its later requests are not those
 * of a successful run. A setting that avoids the OOM proves nothing about the events
 * after it (`events_after_oom`).
 *
 * Ownership  create / destroy; the replay is used by create only.
 * Errors     A program that no setting helps is no error: see `outcome`.
 * Threads    One at a time per replay.
 * Units      Bytes; modelled driver time in nanoseconds (in `run`).
 * Cost       At most `run_max` replays, each O(operations); a few more by the rules of
 *            other releases, for the settings to be recommended.
 */

#include <stdbool.h>

#include <drystone/replay.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_recommendation;

/* The numbers of all enums here never change; new ones are appended. */
/* The quantity that the search minimizes. */
enum dry_goal {
    /* FIT if a capacity is given or known, or if the record met its limit (an OOM, or
       retries); otherwise PEAK. A summary has FIT or PEAK instead. */
    DRY_GOAL_AUTO,
    DRY_GOAL_FIT,  /* the smallest device on which the replay does not fail */
    DRY_GOAL_PEAK, /* the lowest peak of reserved memory */
    /* The fewest retries, then the least driver time, on a device of the capacity.
       Without a capacity, the device has the recorded settings' peak. */
    DRY_GOAL_STABLE,
};
#define DRY_GOAL_COUNT 4

/* Return the name of a goal: "auto", "fit", "peak", "stable". */
DRY_API const char *dry_goal_name(enum dry_goal goal);

/* Bits of `without`: options that the user cannot use. */
#define DRY_WITHOUT_EXPANDABLE 1u
#define DRY_WITHOUT_GC 2u
#define DRY_WITHOUT_SPLIT 4u

struct dry_recommend_options {
    size_t struct_size; /* set by dry_recommend_options_init() */
    const struct dry_memory *memory;
    enum dry_goal goal;
    uint32_t without; /* DRY_WITHOUT_… */
    /* The device's memory; UINT64_MAX: unlimited; 0, the default: the recorded capacity
       if known, or else the lower bound proved by retries, or else unlimited. */
    uint64_t capacity_bytes;
    /* The smallest difference that counts as a gain; 0, the default: 64 MiB or 1 % of the
       recorded settings' peak, whichever is larger. */
    uint64_t min_gain_bytes;
    /* Limit on replays of the whole program. 0, the default: 64; fewer for programs of
       more than 3 million operations (200 million in all), but at least 16. What the
       search leaves goes to the smallest devices of the settings that help (FIT). */
    size_t run_max;
    /* Called before every run with the number of runs done; a result of true cancels. */
    bool (*progress)(void *self, size_t run_count, size_t run_max);
    void *progress_self;
    /*
     * The recorded out-of-memory event to avoid, as an index in the trace's events. Each
     * run tells whether it does (`gets_past`). Failures at other events do not rule a
     * setting out. DRY_EVENT_NONE, the default: the whole program counts.
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

enum dry_outcome {
    DRY_OUTCOME_CHANGE,      /* candidate `best` is worth changing to */
    DRY_OUTCOME_KEEP,        /* no setting gains min_gain_bytes over the recorded ones */
    DRY_OUTCOME_NONE,        /* every tried setting fails */
    DRY_OUTCOME_CAPACITY,    /* no setting can help: `floor_bytes` exceed the capacity */
    DRY_OUTCOME_NO_EVIDENCE, /* the record cannot distinguish settings, see
                                `evidence_gap` */
    /* The OOM was caused by a memory fraction: the device had free memory for the
       request. */
    DRY_OUTCOME_LIMIT,
};
#define DRY_OUTCOME_COUNT 6

/*
 * Return the name of an outcome: "change", "keep", "none", "capacity", "no-evidence",
 * "limit".
 */
DRY_API const char *dry_outcome_name(enum dry_outcome outcome);

struct dry_recommend_summary {
    enum dry_goal goal;
    enum dry_outcome outcome;
    size_t best;     /* index of a candidate for CHANGE and KEEP; otherwise SIZE_MAX */
    size_t recorded; /* index of the recorded settings, replayed from an empty device */

    uint64_t capacity_bytes; /* UINT64_MAX: unlimited */
    uint64_t min_gain_bytes;
    uint64_t capacity_step_bytes; /* resolution of the search for smallest devices
                                     (FIT) */
    /*
     * For the best: capacity - smallest device (FIT) or capacity - peak; 0 if unlimited.
     */
    uint64_t margin_bytes;

    /* Live bytes at the peak, in blocks of 512 bytes: no setting can run with less.
       Includes a recorded OOM's request. UINT64_MAX: the sum exceeds 64 bits. */
    uint64_t floor_bytes;
    size_t floor_event; /* index in the trace's events; SIZE_MAX: before the first */

    bool oom_recorded;
    /*
     * The recorded settings also fail from an empty device. If not, the OOM was caused by
     * a layout older than the window, and a candidate that does not fail either proves
     * little.
     */
    bool oom_comes_back;
    uint64_t oom_live_bytes,
        oom_request_bytes;   /* at the first recorded OOM, counted like floor_bytes */
    size_t events_after_oom; /* events of the device after the OOM, whose replay proves
                                nothing */

    bool approximate; /* the self-check is not exact, or the snapshot could not be
                         checked */
    /* Blocks were live before the window; if not, the window contains the first steps. */
    bool begins_warm;
    uint64_t as_recorded_peak_bytes; /* peak continued from the rebuilt layout; 0: not
                                        known */

    const char *kept; /* recorded options that are part of every candidate; "": none */
    /* The recorded string could not be parsed, so such options may be missing. */
    bool kept_is_lost;
    size_t run_count, run_max;

    /* Upper bound of the capacity proved by retries, exclusive; capacity_bytes is the
       lower bound. 0: no proof, or the caller gave a capacity. */
    uint64_t capacity_high_bytes;
    size_t recorded_retries; /* retries of a full device, each a burst of segment frees; 0
                                at a proved OOM */
    struct dry_releases releases; /* the releases that may have made the record */
    const char *evidence_gap;     /* NO_EVIDENCE: a clause with the reason; else NULL */
};

/* Return the summary, which lives as long as the recommendation. */
DRY_API const struct dry_recommend_summary *dry_recommend_get_summary(
    const struct dry_recommendation *recommendation);

enum dry_verdict {
    DRY_VERDICT_BEST,
    DRY_VERDICT_GOOD, /* gains over the recorded settings */
    /* The difference is below min_gain_bytes, or the setting gains nothing by some
       release's rules. */
    DRY_VERDICT_NO_GAIN,
    DRY_VERDICT_WORSE,
    DRY_VERDICT_FAILS, /* out of memory */
};
#define DRY_VERDICT_COUNT 5

/* Return the name of a verdict: "best", "good", "no-gain", "worse", "fails". */
DRY_API const char *dry_verdict_name(enum dry_verdict verdict);

/* Bits of `caveats`: disadvantages of a setting that a replay does not show. */
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

struct dry_candidate {
    const char *conf;  /* for PYTORCH_CUDA_ALLOC_CONF, including `kept`; "": unset */
    const char *label; /* the same without `kept`; "" is PyTorch's default */
    /* The first release that supports the whole setting, "2.11"; "": all do. */
    const char *since;
    enum dry_verdict verdict;
    bool is_recorded; /* the recorded settings; conf is the recorded string */
    bool is_default;  /* decides like PyTorch's default in this replay */
    bool is_allowed;  /* may be proposed; only the recorded settings may be disallowed */
    uint32_t caveats; /* DRY_CAVEAT_… */
    /*
     * The smallest device found on which it runs, and the largest on which it fails; 0:
     * not searched. If their difference exceeds capacity_step_bytes, the smallest device
     * is in between.
     */
    uint64_t runs_on_bytes, fails_on_bytes;
    uint64_t runs_on_retries; /* num_alloc_retries on a device of runs_on_bytes */
    /*
     * Memory saved compared with the recorded settings: of the smallest device (FIT), or
     * of the peak. If the smallest device is only bounded (see above), the gain is at
     * least this. Valid only if has_gain.
     */
    bool has_gain;
    int64_t gain_bytes;
    struct dry_run run; /* its run on a device of capacity_bytes */
    /*
     * It helps by the rules of every release that may have made the record and supports
     * it. Only checked for the best few that help at all; true for a recommended setting.
     */
    bool is_proved;
};

/* Return the candidates: the best first, then by verdict and gain. They are valid as long
   as the recommendation. */
DRY_API const struct dry_candidate *dry_recommend_get_candidates(
    const struct dry_recommendation *recommendation, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
