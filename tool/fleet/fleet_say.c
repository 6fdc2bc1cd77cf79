/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about the whole job, shared by the text report and the page. */
#include "fleet/fleet_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "fleet/fleet_phrases.h"

const char *
fleet_say_nothing(const struct fleet_report *r)
{
    return fleet_judge_compares(r->judgement)
               ? "no rank stands out from its group"
               : "a comparison needs five similar ranks, and no group has them";
}

void
fleet_say_failure(const struct fleet_report *r, char text[FLEET_TEXT_BYTES])
{
    const struct fleet_judgement *j = r->judgement;
    const struct fleet_oom *oom = &j->ranks[j->first_failure].row->oom;
    bool is_unknown = oom->pass == DRY_PASS_UNKNOWN;
    char bytes[TERM_NUMBER_BYTES];
    snprintf(
        text, FLEET_TEXT_BYTES, "in %s%s, after %" PRIu64 " whole step%s: asked for %s%s",
        is_unknown ? "a pass that is not known" : "the ",
        is_unknown ? "" : dry_pass_name(oom->pass), oom->step, oom->step == 1 ? "" : "s",
        term_format_bytes(oom->request_bytes, bytes), *oom->line ? ", at" : "");
}

void
fleet_say_settings(const struct fleet_report *r, char text[FLEET_TEXT_BYTES])
{
    const struct fleet_decision *d = &r->decision;
    char least[TERM_NUMBER_BYTES], most[TERM_NUMBER_BYTES];
    term_format_bytes(d->gain_min == UINT64_MAX ? 0 : d->gain_min, least);
    term_format_bytes(d->gain_max, most);
    switch (d->kind) {
    case FLEET_DECISION_CHANGE:
        snprintf(text, FLEET_TEXT_BYTES,
                 "PYTORCH_CUDA_ALLOC_CONF=%s helps %zu of %zu ranks that it was replayed "
                 "on, by %s%s%s, and harms none",
                 *d->candidate->conf ? d->candidate->conf : "(unset)", d->helped_count,
                 d->judged_count, least, strcmp(least, most) ? " to " : "",
                 strcmp(least, most) ? most : "");
        break;
    case FLEET_DECISION_KEEP:
        snprintf(text, FLEET_TEXT_BYTES, "no setting gains enough on any of them");
        break;
    case FLEET_DECISION_DISAGREE:
        snprintf(text, FLEET_TEXT_BYTES,
                 "what helps one rank harms another: none is named");
        break;
    case FLEET_DECISION_CAPACITY:
        snprintf(text, FLEET_TEXT_BYTES, "none helps a rank that ran out of memory");
        break;
    case FLEET_DECISION_NO_EVIDENCE:
        snprintf(text, FLEET_TEXT_BYTES, "the recordings cannot tell settings apart");
        break;
    }
}

static void
say_short(uint64_t bytes, char *text, size_t capacity)
{
    char number[TERM_NUMBER_BYTES];
    text[0] = '\0';
    if (bytes > 0)
        snprintf(text, capacity, "; it lacked %s", term_format_bytes(bytes, number));
}

void
fleet_say_advice(const struct fleet_report *r, char text[FLEET_TEXT_BYTES])
{
    const struct fleet_advice *a = &r->advice;
    const struct fleet_finding *f = a->finding;
    char who[FLEET_WHO_BYTES] = "", bytes[TERM_NUMBER_BYTES] = "", lacks[64];
    if (f && f->file != FLEET_NONE)
        fleet_phrase_rank(r->judgement, f->file, who);
    if (f)
        term_format_bytes(robust_distance(f->bytes, f->usual), bytes);
    say_short(a->short_bytes, lacks, sizeof lacks);
    switch (a->kind) {
    case FLEET_ADVICE_LEAK:
        snprintf(text, FLEET_TEXT_BYTES, "stop the growth of %s, %s a step%s, at", who,
                 bytes, lacks);
        break;
    case FLEET_ADVICE_LINE:
        snprintf(text, FLEET_TEXT_BYTES, "bring %s to its group's level: %s less%s, at",
                 who, bytes, lacks);
        break;
    case FLEET_ADVICE_SETTING:
        snprintf(text, FLEET_TEXT_BYTES, "set it, for all ranks");
        break;
    case FLEET_ADVICE_BALANCE:
        snprintf(text, FLEET_TEXT_BYTES,
                 "split the job more evenly: group %zu has %s more than the median group",
                 f ? f->group : 0, bytes);
        break;
    case FLEET_ADVICE_SHRINK:
        snprintf(text, FLEET_TEXT_BYTES, "the job must need less: %s%s",
                 r->is_searched ? "neither one line nor a setting helps"
                                : "one line does not help, and no setting was tried",
                 lacks);
        break;
    case FLEET_ADVICE_NOTHING:
        snprintf(text, FLEET_TEXT_BYTES, "nothing");
        break;
    }
}
