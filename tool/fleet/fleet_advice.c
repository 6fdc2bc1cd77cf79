/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choose one change for the whole job. If a rank failed, advise on that rank: one of its
 * lines, else a setting, else a better balance. If none failed, report a leak first,
 * because it will make a rank fail.
 */
#include "fleet/fleet_report.h"

const char *
fleet_advice_name(enum fleet_advice_kind kind)
{
    static const char *const names[] = {"leak",    "line",   "setting",
                                        "balance", "shrink", "nothing"};
    return names[kind];
}

/* Find the first finding of `kind`, about `file` unless that is FLEET_NONE. */
static const struct fleet_finding *
find_finding(const struct fleet_judgement *j, enum fleet_finding_kind kind, size_t file)
{
    for (size_t i = 0; i < j->finding_count; i++) {
        const struct fleet_finding *f = &j->findings[i];
        if (f->kind == kind && (file == FLEET_NONE || f->file == file))
            return f;
    }
    return NULL;
}

/* Find a line of the first failed rank that leaks (*kind LEAK) or is too large (LINE). */
static const struct fleet_finding *
find_blame(const struct fleet_judgement *j, enum fleet_advice_kind *kind)
{
    const struct fleet_finding *leak =
        find_finding(j, FLEET_FINDING_LEAK, j->first_failure);
    *kind = leak ? FLEET_ADVICE_LEAK : FLEET_ADVICE_LINE;
    return leak ? leak : find_finding(j, FLEET_FINDING_MORE, j->first_failure);
}

/* Advise on a job in which a rank ran out of memory. */
static struct fleet_advice
advise_on_failure(const struct fleet_report *r)
{
    const struct fleet_judgement *j = r->judgement;
    struct fleet_advice a = {.kind = FLEET_ADVICE_SHRINK};
    enum fleet_advice_kind blame;
    a.short_bytes = j->ranks[j->first_failure].row->oom.short_bytes;
    a.finding = find_blame(j, &blame);
    if (a.finding) {
        a.kind = blame;
    } else if (r->is_searched && r->decision.kind == FLEET_DECISION_CHANGE) {
        a.kind = FLEET_ADVICE_SETTING;
    } else {
        a.finding = find_finding(j, FLEET_FINDING_GROUP, FLEET_NONE);
        if (a.finding && a.finding->group != j->members[j->first_failure].group)
            a.finding = NULL; /* the load of another group did not stop this rank */
        if (a.finding)
            a.kind = FLEET_ADVICE_BALANCE;
    }
    return a;
}

struct fleet_advice
fleet_advice_choose(const struct fleet_report *r)
{
    const struct fleet_judgement *j = r->judgement;
    struct fleet_advice a = {.kind = FLEET_ADVICE_LEAK};
    if (j->first_failure != FLEET_NONE)
        return advise_on_failure(r);
    a.finding = find_finding(j, FLEET_FINDING_LEAK, FLEET_NONE);
    if (a.finding)
        return a;
    if (r->is_searched && r->decision.kind == FLEET_DECISION_CHANGE) {
        a.kind = FLEET_ADVICE_SETTING;
        return a;
    }
    a.finding = find_finding(j, FLEET_FINDING_GROUP, FLEET_NONE);
    a.kind = a.finding ? FLEET_ADVICE_BALANCE : FLEET_ADVICE_NOTHING;
    return a;
}
