/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_EXPLANATION_H
#define DRY_EXPLANATION_H

/*
 * The verdict: why the memory did not fit at a moment, with the sums that prove it, who held
 * it, and what would change it.
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
 * The order of the questions. Is the request larger than what PyTorch could have had, were
 * everything packed? Then it is capacity, and the next question is why so much was alive: a
 * leak, a spike, an imbalance between devices, or is the beginning lost? Else the bytes were
 * there: in blocks of the request's own pool but in pieces (fragmentation), in other pools
 * or streams (stranded), waiting for streams (pending), behind a limit, or with somebody
 * else. Every finding carries its sums; what they do not explain is `unexplained`.
 *
 * Settings are not argued about but run: each candidate is replayed on a device as large as
 * the recorded one, unless the sums alone prove that none can help.
 *
 * Ownership  create / destroy; the timelines and replays must outlive the explanation.
 * Errors     Nothing to find is a finding: NONE.
 * Threads    Create: one at a time per replay. The view: any number.
 * Units      Bytes.
 */

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

/* One device of the program. */
struct dry_explain_device {
    struct dry_replay *replay;
    const struct dry_timeline *timeline;
};

#define DRY_MOMENT_AUTO UINT32_MAX /* the OOM, else the peak, else the end */

struct dry_explain_options {
    size_t struct_size; /* set by dry_explain_options_init() */
    const struct dry_memory *memory;
    const struct dry_explain_device
        *devices; /* all of the program: siblings are compared */
    size_t device_count;
    size_t subject; /* which of them is explained */
    /* Of its timeline; default DRY_MOMENT_AUTO. The moment before an OOM stands for it. */
    uint32_t moment;
    /* Of the device, if the caller knows; 0: a snapshot does not. At least what is reserved
       at the peak. */
    uint64_t total_bytes;
    size_t run_max; /* replays under other settings at most; 0: none; default 12 */
    int (*progress)(void *self, size_t run_count,
                    size_t run_max); /* other than 0 cancels */
    void *progress_self;
    /*
     * The record of the subject is dry_replay_record()'s, of a trace that holds requests
     * alone: that it can be replayed proves nothing, and is not claimed. Its first
     * `before_count` allocations were there before the trace began (`live_before`).
     */
    int is_simulated;
    uint32_t before_count;
};
DRY_API void dry_explain_options_init(struct dry_explain_options *options);

/* The numbers of all enums here are fixed for ever; new ones are only appended. */
enum dry_moment_kind {
    DRY_MOMENT_AT_OOM,
    DRY_MOMENT_AT_PEAK, /* of the active curve */
    DRY_MOMENT_AT_EVENT,
    DRY_MOMENT_AT_END, /* without events nothing but the segments is known */
};
/* "oom", "peak", "event", "end". */
DRY_API const char *dry_moment_kind_name(enum dry_moment_kind kind);

/* left terms = left sum, compared with right terms = right sum. */
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
    uint8_t confidence; /* percent: 100 where the sums leave no other reading */
    uint8_t is_assumed; /* a figure in the sums is a guess, see `note` */
    unsigned proof_count;
    struct dry_proof proofs[DRY_PROOFS_MAX];
    uint64_t bytes; /* what it costs: short by, stranded, leaked, ... */
    char note[200]; /* one sentence more, where numbers alone do not say it; may be "" */
};

/* The same code on another device. */
struct dry_sibling {
    int32_t device;
    int is_subject, has_oom;
    uint64_t peak_bytes;
    uint64_t held_bytes;    /* alive on it at its own peak, at the subject's main lines */
    uint64_t typical_bytes; /* of one allocation there: the mean */
    uint32_t done;          /* allocations made at the line that failed */
};

enum dry_change_kind {
    DRY_CHANGE_SETTING,    /* `setting` in PYTORCH_CUDA_ALLOC_CONF, replayed */
    DRY_CHANGE_NO_SETTING, /* no setting helps: `bytes` is what is missing even so */
    DRY_CHANGE_OWNERS,     /* the largest lines: `bytes` is what they must shrink by */
    DRY_CHANGE_CHECKPOINT, /* recompute activations: `bytes` of them are alive */
    DRY_CHANGE_LEAK,       /* stop the growth: `bytes` a step */
    DRY_CHANGE_BALANCE,    /* an even split: `bytes` for each device */
    DRY_CHANGE_LIMIT,      /* raise the fraction: the device has `bytes` more */
    DRY_CHANGE_OTHER,      /* give back `bytes` that PyTorch does not own */
    DRY_CHANGE_STREAMS,    /* free earlier or on the same stream: `bytes` wait */
    DRY_CHANGE_POOL,       /* `bytes` lie free in other pools or streams */
    DRY_CHANGE_RECORD,     /* record longer: the beginning is lost */
};
DRY_API const char *dry_change_kind_name(enum dry_change_kind kind);

struct dry_change {
    enum dry_change_kind kind;
    const char *setting; /* SETTING: the option string; else NULL */
    uint32_t caveats;    /* DRY_CAVEAT_…: when not to use it */
    int removes_oom;     /* shown by replay (SETTING) or by the sum */
    uint64_t bytes; /* the effect, as the kind says; SETTING: less reserved at the peak */
    uint64_t peak_bytes; /* SETTING: reserved at the peak of its run */
    /* Of what was replayed: where that fails nevertheless, in the trace's events; or
       DRY_EVENT_NONE. */
    size_t oom_event;
};

enum dry_trust { DRY_TRUST_HIGH, DRY_TRUST_MEDIUM, DRY_TRUST_LOW };
DRY_API const char *dry_trust_name(enum dry_trust trust);

struct dry_explanation_view {
    int32_t device;
    enum dry_moment_kind moment_kind;
    uint32_t moment;
    size_t event;                  /* of the file; SIZE_MAX: none */
    int64_t time_us;               /* since the first event; at most what fits */
    const struct dry_state *state; /* then */

    /* At an OOM; else 0. */
    uint64_t request_bytes;     /* rounded */
    uint64_t device_free_bytes; /* what the driver had left */
    uint64_t budget_bytes;  /* reserved + free on the device: all PyTorch could have */
    uint64_t short_bytes;   /* of the device, for this request alone; 0: enough, in sum */
    uint32_t request_stack; /* DRY_NONE */
    const char *request_line; /* as an owner is named; "" */
    uint64_t other_bytes;     /* total - budget; 0: none, or the total was not stated */
    uint64_t
        unexplained_bytes; /* alive by the events, but in no segment or overlapping */
    uint32_t freed_after;  /* blocks given back after the OOM: the end is not the OOM */
    uint64_t end_active_bytes, end_reserved_bytes;
    uint32_t oom_number;   /* counted from 1 */
    size_t next_oom_event; /* of the file; DRY_EVENT_NONE */
    uint32_t oom_count;    /* of the device, whatever the moment */

    /* The first is the verdict; the others are true besides. At least one. */
    size_t finding_count;
    const struct dry_finding *findings;

    const struct dry_owners *owners; /* by line, alive then */
    const struct dry_steps *steps;
    const struct dry_categories *categories;
    uint64_t category_bytes[DRY_CATEGORY_COUNT];
    uint8_t
        category_confidence[DRY_CATEGORY_COUNT]; /* percent: the mean over the bytes */
    uint32_t step;                               /* of the moment; DRY_NONE */
    uint32_t step_done;                          /* allocations made in it */
    uint32_t step_whole;            /* in the last whole step before it; 0: none */
    uint64_t step_whole_peak_bytes; /* active, at the peak of that step */
    uint64_t projected_bytes; /* peak if it had gone on like a sibling; 0: not known */

    size_t sibling_count; /* 0: alone */
    const struct dry_sibling *siblings;

    size_t change_count; /* the most promising first */
    const struct dry_change *changes;
    const struct dry_recommendation *settings; /* what was replayed; NULL: nothing */

    enum dry_trust trust;
    const struct dry_replay_check *check; /* not `possible` of a simulation's record */
    uint64_t ghost_bytes;                 /* alive then, from before the recording */
    uint64_t covered_bytes; /* alive then, with the stack of its allocation */
    uint32_t unmatched_frees;
    uint32_t time_reversals;
};

/* O(events) and the replays. CANCELLED, MEMORY, ARGUMENT (no device, a moment beyond,
   a total that is less than what is reserved). */
DRY_API DRY_CHECK_RESULT enum dry_status dry_explanation_create(
    const struct dry_explain_options *options, struct dry_explanation **explanation,
    struct dry_error *err);
DRY_API void dry_explanation_destroy(struct dry_explanation *explanation);
DRY_API const struct dry_explanation_view *dry_explanation_get_view(
    const struct dry_explanation *explanation);

#ifdef __cplusplus
}
#endif

#endif
