/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_EXPLANATION_H
#define DRY_EXPLANATION_H

/*
 * The verdict: why memory did not fit at a moment, with proof by sums, the owners of the
 * memory, and changes that would help.
 *
 *     struct dry_explain_options options;
 *     dry_explain_options_init(&options);
 *     options.devices = devices;
 *     options.device_count = 1;
 *     struct dry_explanation *e;
 *     if (dry_explanation_create(&options, &e, &err) != DRY_OK) ...
 *     const struct dry_explanation_view *v = dry_explanation_get_view(e);
 *     for (size_t i = 0; i < v->finding_count; i++)
 *         use(v->findings[i].cause);
 *     dry_explanation_destroy(e);
 *
 * At an OOM sums find the possible causes. If the request exceeds the device even with
 * all live bytes packed, one is capacity. If not, enough bytes were free: in pieces of
 * the request's own pool (fragmentation), in other pools or streams (stranded), waiting
 * for streams (pending), or above a limit. Others say why many bytes were taken: a leak,
 * a spike, an imbalance between devices, other programs, or a lost beginning.
 *
 * Each cause is judged by what its removal would have bought: bytes of headroom at the
 * failure, and how many steps these last by the recorded growth (struct dry_effect). The
 * verdict is the cause whose removal lasts longest. No change is about a spike alone, so
 * its effect is not known. Every finding has its sums; bytes
 * that they do not explain are `unexplained_bytes`.
 *
 * Settings are tested by replays, by the search of <drystone/recommend.h>; only settings
 * that it recommends are named. No replay runs if the sums alone prove that no setting
 * can help.
 *
 * Moments are those of <drystone/timeline.h>. A sibling is the same code on another
 * device.
 *
 * Ownership  create / destroy; the timelines and replays must outlive the explanation.
 * Errors     A moment with nothing to find is no error: its finding is NONE.
 * Threads    Create: one at a time per replay. The view: any number.
 * Units      Bytes.
 * Cost       dry_explanation_create() takes O(events) plus the replays; reading is O(1).
 */

#include <stdbool.h>

#include <drystone/categories.h>
#include <drystone/cause.h>
#include <drystone/owners.h>
#include <drystone/recommend.h>
#include <drystone/state.h>
#include <drystone/steps.h>
#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_explanation;

struct dry_explain_device {
    struct dry_replay *replay;
    const struct dry_timeline *timeline;
};

#define DRY_RUNS_AUTO SIZE_MAX
#define DRY_MOMENT_AUTO UINT32_MAX /* the OOM, or else the peak, or else the end */

/* The moment to explain, and the devices to compare. */
struct dry_explain_options {
    size_t struct_size; /* set by dry_explain_options_init() */
    const struct dry_memory *memory;
    /* Required: all devices of the program, for siblings are compared. */
    const struct dry_explain_device *devices;
    size_t device_count;
    size_t subject; /* index of the device that is explained */
    /* A moment of the subject's timeline; default DRY_MOMENT_AUTO. The moment just before
       an OOM means the OOM. */
    uint32_t moment;
    /* The device's total memory; 0: unknown, for a snapshot does not have it. At least
       the bytes reserved at the peak. */
    uint64_t total_bytes;
    /* Limit on replays under other settings; 0: none; DRY_RUNS_AUTO, the default: as many
       as dry_recommend_create() makes. */
    size_t run_max;
    bool (*progress)(
        void *self, size_t run_count,
        size_t run_max); /* Called before each replay; a result of true cancels. */
    void *progress_self;
    /*
     * The subject's record is dry_replay_record()'s, of a trace that has only requests.
     * So a successful self-check would prove nothing, and none is claimed. Its first
     * `before_count` allocations existed before the trace began (`live_before`).
     */
    bool is_simulated;
    uint32_t before_count;
    /* Do not determine which releases may have made the record, which takes one more
       check for each. The view's `releases` then have no names. */
    bool skip_releases;
};
/* Set all options to their defaults. */
DRY_API void dry_explain_options_init_sized(struct dry_explain_options *options,
                                            size_t struct_size);
#define dry_explain_options_init(options)                                                \
    dry_explain_options_init_sized(options, sizeof *(options))

/* The numbers of all enums here never change; new ones are appended. */
enum dry_moment_kind {
    DRY_MOMENT_AT_OOM,
    DRY_MOMENT_AT_PEAK, /* the peak of the active curve */
    DRY_MOMENT_AT_EVENT,
    DRY_MOMENT_AT_END, /* without events, only the segments are known */
};
/* Return the name of a kind: "oom", "peak", "event", "end". */
DRY_API const char *dry_moment_kind_name(enum dry_moment_kind kind);

/* How long a change lasts: until the next failure, by the growth that was recorded. */
enum dry_lasting {
    DRY_LASTING_UNKNOWN,   /* the record has too few whole steps to tell a growth */
    DRY_LASTING_STEPS,     /* `steps` more steps */
    DRY_LASTING_RECORDING, /* to its end: nothing is left that grows */
    /* No growth is known, and the headroom is less than a tenth of what the program had added
       since it last gave a tenth of its memory back. It never held as much before. */
    DRY_LASTING_LITTLE,
};
/* Return the name of a lasting: "unknown", "steps", "recording", "little". */
DRY_API const char *dry_lasting_name(enum dry_lasting lasting);

/*
 * What a change would have bought at the OOM, or the removal of a cause. SETTING: how
 * much smaller the device could have been, by replay.
 *
 * LEAK, OTHER and POOL: the recorded requests are replayed up to the one that failed, on
 * the device that failed. What steps left behind is freed at the end of its step; others'
 * memory is given back; blocks of other pools and streams move to the request's before
 * it. The headroom is what is free beside the request, without the cache. Negative: it
 * fails all the same, and where nothing is scarce it takes so much more.
 *
 * STREAMS: the recorded requests are replayed with frees that wait for no stream, which
 * tells whether the request is served. How much is free then is a sum: the growth of steps
 * counts what waits.
 *
 * The other effects are sums, which ignore the layout: upper bounds. So are these if
 * nothing can be replayed, or if the recorded failure does not come back. CHECKPOINT and
 * BALANCE are always sums: what a recomputation takes again, and what devices can give to
 * each other, are not in a record.
 */
struct dry_effect {
    bool is_known;
    bool is_replayed;
    enum dry_lasting lasting;
    uint32_t steps;         /* STEPS: 0: it fails before one more step is done */
    int64_t headroom_bytes; /* free beside the request; negative: still missing */
};

/* A proof: the left terms add up to left_sum, the right terms to right_sum, and
   `relation` holds between the two sums. */
#define DRY_PROOF_TERMS_MAX 4
struct dry_proof_term {
    const char *name; /* static: "active", "asked for" ... */
    uint64_t bytes;
};
struct dry_proof {
    struct dry_proof_term left[DRY_PROOF_TERMS_MAX], right[DRY_PROOF_TERMS_MAX];
    unsigned left_count, right_count;
    uint64_t left_sum, right_sum;
    char relation; /* '>' '<' or '=' */
};

#define DRY_PROOFS_MAX 3
struct dry_finding {
    enum dry_cause cause;
    uint8_t confidence; /* percent; 100: the sums allow no other cause */
    bool is_assumed;    /* a number in the sums is a guess, see `note` */
    unsigned proof_count;
    struct dry_proof proofs[DRY_PROOFS_MAX];
    uint64_t bytes; /* the size of the problem: short by, stranded, leaked, ... */
    struct dry_effect effect; /* AT_OOM only: the best change that removes it */
    /* It decides as much as the first: the sums differ by less than 2 % of the budget. */
    bool is_tied;
    char note[200]; /* one further sentence where numbers are not sufficient; else "" */
};

/* A device that runs the same code as the subject, for comparison. */
struct dry_sibling {
    int32_t device;
    bool is_subject, has_oom;
    uint64_t peak_bytes;
    /* Live at that device's own peak, allocated at the subject's main lines. */
    uint64_t held_bytes;
    uint64_t typical_bytes; /* mean size of one such allocation */
    uint32_t done;          /* allocations made there so far at the line that failed */
};

/* Changes to the program, and the meaning of `bytes` in each. */
enum dry_change_kind {
    DRY_CHANGE_SETTING,    /* set `setting` in PYTORCH_CUDA_ALLOC_CONF; it was replayed */
    DRY_CHANGE_NO_SETTING, /* no setting helps: `bytes` are missing even with the best */
    DRY_CHANGE_OWNERS, /* the largest lines: they must shrink by `bytes` at least; 0: unknown */
    DRY_CHANGE_CHECKPOINT, /* recompute activations: `bytes` of them are alive */
    DRY_CHANGE_LEAK,       /* stop the growth: `bytes` a step */
    DRY_CHANGE_BALANCE,    /* an even split: `bytes` for each device */
    DRY_CHANGE_LIMIT,      /* raise the fraction: the device has `bytes` more */
    DRY_CHANGE_OTHER,      /* give back `bytes` that PyTorch does not own */
    DRY_CHANGE_STREAMS,    /* free earlier or on the same stream: `bytes` wait */
    DRY_CHANGE_POOL,       /* `bytes` lie free in other pools or streams */
    DRY_CHANGE_RECORD,     /* record longer: `bytes` are of lines that are not known */
    /* Nothing can be said of settings; `settings` has the reason, its evidence_gap. */
    DRY_CHANGE_NO_EVIDENCE,
};
/* Return the name of a kind of change, a key for machines. */
DRY_API const char *dry_change_kind_name(enum dry_change_kind kind);

struct dry_change {
    enum dry_change_kind kind;
    const char *setting;      /* SETTING: the option string; else NULL */
    uint32_t caveats;         /* DRY_CAVEAT_… bits: when not to apply the change */
    bool removes_oom;         /* a replay (SETTING) or the sums show it */
    struct dry_effect effect; /* AT_OOM only */
    /*
     * The effect, as the kind says; for SETTING, the reduction of bytes reserved at the
     * peak.
     */
    uint64_t bytes;
    uint64_t peak_bytes; /* SETTING: bytes reserved at the peak of its run */
    /*
     * The event at which the replay of the setting still fails, in the trace's events, or
     * DRY_EVENT_NONE.
     */
    size_t oom_event;
    /* SETTING: the first release that has it; "": all have it. Then the recorded
       settings' peak, replayed from the same start and with the same limit. */
    const char *since;
    uint64_t recorded_peak_bytes;
    /* Smallest devices that suffice, if the search was for these; otherwise 0. */
    uint64_t runs_on_bytes, recorded_runs_on_bytes;
    uint64_t retries, recorded_retries;
    bool recorded_fails; /* the replay of the recorded settings fails on that device */
    /* A positive gain is memory saved, like a candidate's in <drystone/recommend.h>. */
    bool has_gain;
    int64_t gain_bytes;
};

enum dry_trust { DRY_TRUST_HIGH, DRY_TRUST_MEDIUM, DRY_TRUST_LOW };
/* Return the name of a trust: "high", "medium", "low". */
DRY_API const char *dry_trust_name(enum dry_trust trust);

/* The result of an explanation. "Then" means at the moment explained. */
struct dry_explanation_view {
    int32_t device;
    enum dry_moment_kind moment_kind;
    uint32_t moment;
    size_t event;                  /* index in the trace's events; SIZE_MAX: none */
    int64_t time_us;               /* since the first event; clipped to what fits */
    const struct dry_state *state; /* the device's memory then */

    /* At an OOM; otherwise 0. */
    uint64_t request_bytes;     /* rounded */
    uint64_t device_free_bytes; /* free bytes that the driver had left */
    /* Reserved + free on the device: all that PyTorch could use. */
    uint64_t budget_bytes;
    /* Bytes that the device lacks for this request; 0: the sum suffices. */
    uint64_t short_bytes;
    uint32_t request_stack;   /* DRY_NONE: unknown */
    const char *request_line; /* the line that made the request, named like an owner; "":
                                 unknown */
    uint64_t other_bytes;     /* total - budget; 0: none, or the total is unknown */
    /* Live by the events, but in no segment or overlapping another allocation. */
    uint64_t unexplained_bytes;
    uint32_t freed_after; /* blocks freed after the OOM: the state at the end is not that
                             of the OOM */
    uint64_t end_active_bytes, end_reserved_bytes;
    uint32_t oom_number;   /* counted from 1 */
    size_t next_oom_event; /* index in the trace's events; DRY_EVENT_NONE: none */
    uint32_t oom_count;    /* all OOMs of the device, whatever the moment */

    /* At least one. The first is the verdict; the others also hold. At an OOM the first is
       the cause whose removal lasts longest; what puts the failure off by less than a
       step is never the first. */
    size_t finding_count;
    const struct dry_finding *findings;

    const struct dry_owners *owners; /* grouped by line, live at the moment */
    const struct dry_steps *steps;
    const struct dry_categories *categories;
    uint64_t category_bytes[DRY_CATEGORY_COUNT];
    /* Percent: the mean over the bytes of the category. */
    uint8_t category_confidence[DRY_CATEGORY_COUNT];
    uint32_t step;      /* the step at the moment; DRY_NONE: in none */
    uint32_t step_done; /* allocations made in this step so far */
    /* The pass and line of the last allocation before the moment. The line is named like
       an owner. */
    enum dry_pass last_pass;
    const char *last_line; /* "": unknown */
    /* Allocations made in the last complete step before; 0: no such step. */
    uint32_t step_whole;
    uint64_t step_whole_peak_bytes; /* peak of active bytes in the last complete step */
    /* The peak that this device would reach if it continued like a sibling; 0:
       unknown. */
    uint64_t projected_bytes;

    size_t sibling_count; /* 0: the only device */
    const struct dry_sibling *siblings;

    size_t change_count; /* the longest-lasting first */
    const struct dry_change *changes;
    const struct dry_recommendation *settings; /* the replayed settings; NULL: none */

    enum dry_trust trust;
    const struct dry_replay_check *check; /* `possible` is false for a simulation's
                                             record */
    uint64_t carried_over_bytes; /* alive then, and allocated before the recording */
    uint64_t covered_bytes;      /* alive then, with a known allocation stack */
    uint32_t unmatched_frees;
    uint32_t time_reversals;
    /* The releases that may have made the record; NULL for a simulation's, and if
       skipped. */
    struct dry_releases releases;
};

/*
 * Explain the moment that `options` name; the result is *explanation. O(events) and the
 * replays. Errors: CANCELLED, MEMORY, ARGUMENT (no device, a moment beyond the dump, a
 * total that is less than the bytes reserved), and those of the replays.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_explanation_create(
    const struct dry_explain_options *options, struct dry_explanation **explanation,
    struct dry_error *err);
/* End the explanation. NULL is fine. */
DRY_API void dry_explanation_destroy(struct dry_explanation *explanation);
/* Return the explanation's view, which lives as long as the explanation. */
DRY_API const struct dry_explanation_view *dry_explanation_get_view(
    const struct dry_explanation *explanation);

#ifdef __cplusplus
}
#endif

#endif
