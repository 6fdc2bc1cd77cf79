/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of findings, with the verdict first, and their proofs: two sums of named terms and their
 * relation. All lists are fixed arrays inside the explanation, so no call can fail. Cost: O(1) to
 * add, O(findings) to promote.
 */
#include "explain/verdict/explanation_inside.h"

struct dry_finding *
dryi_finding_add(struct dry_explanation *e, enum dry_cause cause, unsigned confidence,
                 uint64_t bytes)
{
    if (e->view.finding_count == FINDINGS_MAX)
        return &e->findings[FINDINGS_MAX - 1];
    struct dry_finding *f = &e->findings[e->view.finding_count++];
    *f = (struct dry_finding){
        .cause = cause, .confidence = (uint8_t)confidence, .bytes = bytes};
    return f;
}

void
dryi_finding_promote(struct dry_explanation *e)
{
    struct dry_finding last = e->findings[e->view.finding_count - 1];
    for (size_t i = e->view.finding_count - 1; i > 0; i--)
        e->findings[i] = e->findings[i - 1];
    e->findings[0] = last;
}

struct dry_proof *
dryi_finding_prove(struct dry_finding *f)
{
    struct dry_proof *p =
        &f->proofs[f->proof_count < DRY_PROOFS_MAX ? f->proof_count++ : 0];
    *p = (struct dry_proof){0};
    return p;
}

void
dryi_proof_left(struct dry_proof *p, const char *name, uint64_t bytes)
{
    p->left[p->left_count++] = (struct dry_proof_term){.name = name, .bytes = bytes};
    p->left_sum += bytes;
}

void
dryi_proof_right(struct dry_proof *p, const char *name, uint64_t bytes)
{
    p->right[p->right_count++] = (struct dry_proof_term){.name = name, .bytes = bytes};
    p->right_sum += bytes;
}

void
dryi_findings_settle(struct dry_explanation *e)
{
    for (size_t i = 0; i < e->view.finding_count; i++) {
        for (unsigned k = 0; k < e->findings[i].proof_count; k++) {
            struct dry_proof *p = &e->findings[i].proofs[k];
            if (p->left_sum == p->right_sum)
                p->relation = '=';
            else
                p->relation = p->left_sum < p->right_sum ? '<' : '>';
        }
    }
}
