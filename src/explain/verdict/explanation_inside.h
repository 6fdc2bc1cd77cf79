/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLANATION_INSIDE_H
#define DRYI_EXPLANATION_INSIDE_H

/*
 * The state of an explanation, shared by these files:
 *     explanation.c      creation, moment, trust
 *     finding.c          list of findings and proofs
 *     explain_cause.c    findings from the sums at an OOM
 *     explain_reason.c   why memory was alive
 *     explain_sibling.c  the same code on other devices
 *     explain_change.c   changes to recommend
 *     explain_effect.c   what each would have bought, and the order
 *     explain_need.c     what the changed program would need, by replay
 */

#include <stdbool.h>

#include <drystone/explanation.h>

#include "explain/owners/owners.h"
#include "explain/timeline/timeline_inside.h"

#define FINDINGS_MAX 8
#define CHANGES_MAX 12

/* The sums at a failed request, from which findings are derived. In bytes. */
struct dryi_shortage {
    uint64_t need;           /* the segment or pages that would be allocated */
    uint64_t lane_free;      /* free in the pool that may serve the request */
    uint64_t lane_hole;      /* largest free block of that pool */
    uint64_t class_free;     /* free in the other size class of the same lane */
    uint64_t stream_free;    /* free in the default pools of other streams */
    uint64_t private_free;   /* free in other private pools */
    uint64_t hole_before;    /* largest free block before the retry waited for streams */
    uint64_t pending_before; /* pending frees before the retry */
    uint64_t other_bytes;    /* held by others beyond what is usual */
    bool is_limited;         /* the device had space, but a limit forbade its use */
};

struct dry_explanation {
    struct dry_explanation_view view; /* first member: what the caller sees */
    struct dry_memory memory;
    struct dry_explain_options options;
    struct dry_explain_device subject;
    const struct dry_timeline_view *timeline;
    struct dry_state *state;
    struct dryi_sites sites; /* the trace's sites, which name all owners */
    struct dry_owners *owners;
    struct dry_steps *steps;
    struct dry_categories *categories;
    struct dry_recommendation *settings;
    struct dryi_shortage shortage; /* valid at an OOM */
    bool knows_growth;             /* enough whole steps were seen */
    uint64_t growth_bytes;         /* growth of a step up to the moment */
    uint64_t leak_growth_bytes; /* the part of it from lines that leave memory behind */
    uint64_t climb_bytes; /* added since memory last fell, where growth is unknown */
    uint64_t rest_bytes;  /* bytes that this step may still need */
    struct dry_replay_check check; /* substitute for a simulated record's self-check */
    struct dry_finding findings[FINDINGS_MAX];
    struct dry_change changes[CHANGES_MAX];
    struct dry_sibling *siblings;
    double category_weights[DRY_CATEGORY_COUNT]; /* bytes times confidence */
    char request_line[256];
    char last_line[256];
    char limit_conf[512]; /* recorded option string without the limit */
};

/* Return whether the events tell of a request: an allocation, a free, or an OOM. */
static inline bool
dryi_timeline_tells_requests(const struct dry_timeline_view *t)
{
    return t->oom_count > 0 || t->unmatched_frees > 0 ||
           t->allocation_count > t->carried_over_count;
}

/* --- finding.c: findings and their proofs -------------------------------------------------- */

/* Add a finding without proofs. Beyond FINDINGS_MAX, return the last one instead. */
struct dry_finding *dryi_finding_add(struct dry_explanation *e, enum dry_cause cause,
                                     unsigned confidence, uint64_t bytes);
/* Move the last finding to the front, as the verdict. Requires at least one. */
void dryi_finding_promote(struct dry_explanation *e);
/* Add an empty proof to a finding; the two calls below add its terms. Beyond DRY_PROOFS_MAX, empty
   the first proof and return it. */
struct dry_proof *dryi_finding_prove(struct dry_finding *finding);
void dryi_proof_left(struct dry_proof *proof, const char *name, uint64_t bytes);
void dryi_proof_right(struct dry_proof *proof, const char *name, uint64_t bytes);
/* Set the relation of each proof: '=', '<' or '>' between its two sums. */
void dryi_findings_settle(struct dry_explanation *e);

/* --- explain_cause.c: where the bytes were ------------------------------------------------ */

/* Compute the sums of the shortage. Requires an OOM. */
DRY_CHECK_RESULT enum dry_status dryi_explain_shortage(struct dry_explanation *e,
                                                       struct dry_error *err);
/* Add the findings of an OOM, from the sums. */
void dryi_explain_oom(struct dry_explanation *e);
/* Add the proof that the request fits the budget, or does not. */
void dryi_prove_budget(struct dry_explanation *e, struct dry_finding *finding);
void dryi_add_fragmentation(struct dry_explanation *e);
/* Add findings of waste. Requires that there is no OOM. */
void dryi_explain_waste(struct dry_explanation *e);

/* --- explain_reason.c: why memory was alive ----------------------------------------------- */

/* Add the reasons: leak, spike, imbalance, overflow. They go before a lack of capacity. */
void dryi_explain_reasons(struct dry_explanation *e);

/* Add a leak, however small its share. Returns false if the lines of the steps tell none. */
bool dryi_add_leak(struct dry_explanation *e);

/*
 * Return whether steps free memory. In a window with a single forward pass, layers look like steps:
 * each keeps its activations, and none frees any. So steps found by periodicity must free half of
 * what they add, unless names tell that they are no layers. Marked steps need no check.
 */
bool dryi_steps_give_back(const struct dry_explanation *e);

/* Lines that grow with this confidence or more leave memory behind. */
#define DRYI_LEAK_CONFIDENCE_MIN 0.5

/* --- explain_effect.c --------------------------------------------------------------------- */

/* Measure what each change buys, and sort findings and changes by that. Requires an OOM. */
DRY_CHECK_RESULT enum dry_status dryi_explain_effects(struct dry_explanation *e,
                                                      struct dry_error *err);
/* Return the bytes that PyTorch would have had after a change of this kind. */
uint64_t dryi_explain_device(const struct dry_explanation *e, enum dry_change_kind kind);

/* --- explain_need.c ----------------------------------------------------------------------- */

/* Replay the program with a change of this kind, up to the OOM. The result is *need, see
   dryi_replay_find_need(). It is 0 if no replay tells: the kind is none that is replayed, or the
   record's own failure does not come back. */
DRY_CHECK_RESULT enum dry_status dryi_explain_need(struct dry_explanation *e,
                                                   enum dry_change_kind kind,
                                                   uint64_t *need, struct dry_error *err);

/* --- explain_sibling.c -------------------------------------------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_explain_siblings(struct dry_explanation *e,
                                                       struct dry_error *err);

/* --- explain_change.c --------------------------------------------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_explain_changes(struct dry_explanation *e,
                                                      struct dry_error *err);
/* Return the bytes that are missing even with unrounded sizes packed without gaps. */
uint64_t dryi_explain_missing(const struct dry_explanation *e);
/* Put the change of the largest lines first: they must shrink by `bytes` at least; 0: unknown. */
void dryi_change_owners_first(struct dry_explanation *e, uint64_t bytes);

#endif
