/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLANATION_INSIDE_H
#define DRYI_EXPLANATION_INSIDE_H

/*
 * The inside of an explanation, shared by its files. Creation and what is looked at are
 * in explanation.c, the list of findings is in finding.c. Findings from sums are in
 * explain_cause.c, the reasons why so much was alive in explain_reason.c. The same code
 * elsewhere is in explain_sibling.c, what to do in explain_change.c.
 */

#include <stdbool.h>

#include <drystone/explanation.h>

#include "explain/owners/owners.h"
#include "explain/timeline/timeline_inside.h"

#define FINDINGS_MAX 8
#define CHANGES_MAX 12

/* The sums at a failing request that the findings are made of. */
struct dryi_shortage {
    uint64_t need;         /* the segment or pages that would have been taken */
    uint64_t lane_free;    /* free in the pool that may serve the request */
    uint64_t lane_hole;    /* its largest free block */
    uint64_t class_free;   /* free elsewhere: in the other size class of the same lane */
    uint64_t stream_free;  /* in the default pools of other streams */
    uint64_t private_free; /* in other (private) pools */
    uint64_t
        hole_before; /* the largest free block before the retries waited for streams */
    uint64_t pending_before; /* what waited then */
    bool is_limited;         /* the device had room, and was not allowed to give it */
};

struct dry_explanation {
    struct dry_explanation_view view; /* first: what the caller sees */
    struct dry_memory memory;
    struct dry_explain_options options;
    struct dry_explain_device subject;
    const struct dry_timeline_view *timeline;
    struct dry_state *state;
    struct dryi_sites sites; /* of the trace: all owners are named by it */
    struct dry_owners *owners;
    struct dry_steps *steps;
    struct dry_categories *categories;
    struct dry_recommendation *settings;
    struct dryi_shortage shortage; /* at an OOM */
    struct dry_replay_check check; /* what is said of a simulation's record */
    struct dry_finding findings[FINDINGS_MAX];
    struct dry_change changes[CHANGES_MAX];
    struct dry_sibling *siblings;
    double category_weights[DRY_CATEGORY_COUNT]; /* bytes times confidence */
    char request_line[256];
    char last_line[256];
    char limit_conf[512]; /* the recorded settings without their limit */
};

/* --- finding.c: findings and their proofs -------------------------------------------------- */

/* Add a finding without proofs. If FINDINGS_MAX are there, the last is returned instead. */
struct dry_finding *dryi_finding_add(struct dry_explanation *e, enum dry_cause cause,
                                     unsigned confidence, uint64_t bytes);
/* Move the last finding to the front, as the verdict. Requires at least one. */
void dryi_finding_promote(struct dry_explanation *e);
/*
 * Add an empty proof to a finding; the two calls below add its terms. If DRY_PROOFS_MAX are
 * there, the first is emptied and returned instead.
 */
struct dry_proof *dryi_finding_prove(struct dry_finding *finding);
void dryi_proof_left(struct dry_proof *proof, const char *name, uint64_t bytes);
void dryi_proof_right(struct dry_proof *proof, const char *name, uint64_t bytes);
/* Set the relation of each proof: '=', '<' or '>' between its two sums. */
void dryi_findings_settle(struct dry_explanation *e);

/* --- explain_cause.c: where the bytes were ------------------------------------------------ */

/* The sums of the shortage, at an OOM. */
DRY_CHECK_RESULT enum dry_status dryi_explain_shortage(struct dry_explanation *e,
                                                       struct dry_error *err);
/* The finding that the sums carry, and what goes with it. */
void dryi_explain_oom(struct dry_explanation *e);
/* Without an OOM: what is wasted. */
void dryi_explain_waste(struct dry_explanation *e);

/* --- explain_reason.c: why so much was alive ---------------------------------------------- */

/* Leak, spike, imbalance, a lost beginning: in front of a lack of capacity. */
void dryi_explain_reasons(struct dry_explanation *e);

/* --- explain_sibling.c -------------------------------------------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_explain_siblings(struct dry_explanation *e,
                                                       struct dry_error *err);

/* --- explain_change.c --------------------------------------------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_explain_changes(struct dry_explanation *e,
                                                      struct dry_error *err);

#endif
