/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in fleet_settings.h. Rows choose the ranks that decide; the decision uses
 * only their searches. Cost: O(candidates^2 * ranks).
 */
#include "fleet/fleet_settings.h"

#include <stdlib.h>
#include <string.h>

/* --- ranks that decide -------------------------------------------------------------------- */

static bool
add_decider(size_t files[FLEET_DECIDERS_MAX], size_t *count, size_t file)
{
    for (size_t i = 0; i < *count; i++) {
        if (files[i] == file)
            return true;
    }
    if (*count == FLEET_DECIDERS_MAX)
        return false;
    files[(*count)++] = file;
    return true;
}

/* Add the largest rank of the group with the next lower peak. False: none is left. */
static bool
add_largest(const struct fleet_judgement *j, size_t files[FLEET_DECIDERS_MAX],
            size_t *count, uint64_t *last_bytes, size_t *last_group)
{
    size_t best = FLEET_NONE;
    uint64_t best_bytes = 0;
    for (size_t g = 0; g < j->group_count; g++) {
        uint64_t bytes = j->ranks[j->groups[g].largest].row->reserved_peak;
        bool is_later = bytes < *last_bytes || (bytes == *last_bytes && g > *last_group);
        if ((is_later || *last_group == FLEET_NONE) &&
            (best == FLEET_NONE || bytes > best_bytes)) {
            best = g;
            best_bytes = bytes;
        }
    }
    if (best == FLEET_NONE || !add_decider(files, count, j->groups[best].largest))
        return false;
    *last_bytes = best_bytes;
    *last_group = best;
    return true;
}

size_t
fleet_settings_choose(const struct fleet_judgement *j, size_t files[FLEET_DECIDERS_MAX])
{
    size_t count = 0, last_group = FLEET_NONE;
    uint64_t last_bytes = UINT64_MAX;
    if (j->first_failure != FLEET_NONE)
        add_decider(files, &count, j->first_failure);
    for (size_t i = 0; i < j->count && count < FLEET_DECIDERS_OOM; i++) {
        if (j->members[i].use == FLEET_USED && j->ranks[i].row->oom.is_there)
            add_decider(files, &count, i);
    }
    while (add_largest(j, files, &count, &last_bytes, &last_group))
        continue;
    return count;
}

/* --- judging settings --------------------------------------------------------------------- */

const char *
fleet_decision_name(enum fleet_decision_kind kind)
{
    static const char *const names[] = {"change", "keep", "disagree", "capacity",
                                        "no-evidence"};
    return names[kind];
}

/* Return true unless no setting helps the rank, or its search could not tell. */
static bool
has_a_say(const struct fleet_search *s)
{
    return s->is_there &&
           (s->outcome == DRY_OUTCOME_CHANGE || s->outcome == DRY_OUTCOME_KEEP);
}

static const struct dry_candidate *
find_candidate(const struct fleet_search *s, const char *label)
{
    for (size_t i = 0; i < s->candidate_count; i++) {
        if (strcmp(s->candidates[i].label, label) == 0 && !s->candidates[i].is_recorded)
            return &s->candidates[i];
    }
    return NULL;
}

static bool
is_help(const struct dry_candidate *c)
{
    return c->verdict == DRY_VERDICT_BEST || c->verdict == DRY_VERDICT_GOOD;
}

/*
 * Judge a setting on all ranks. Returns false if it was not tried, is not allowed, or
 * harms on some rank. A setting that is no rank's best was not verified on all releases
 * and is skipped.
 */
static bool
judge_setting(const struct fleet_search *searches, size_t count, const char *label,
              struct fleet_decision *d)
{
    bool is_best = false;
    *d = (struct fleet_decision){.kind = FLEET_DECISION_CHANGE, .gain_min = UINT64_MAX};
    for (size_t i = 0; i < count; i++) {
        if (!has_a_say(&searches[i]))
            continue;
        const struct dry_candidate *c = find_candidate(&searches[i], label);
        d->judged_count++;
        if (!c || !c->is_allowed || (!is_help(c) && c->verdict != DRY_VERDICT_NO_GAIN))
            return false;
        is_best |=
            c->verdict == DRY_VERDICT_BEST && searches[i].outcome == DRY_OUTCOME_CHANGE;
        if (!is_help(c))
            continue;
        uint64_t gain = c->has_gain ? (uint64_t)c->gain_bytes : 0;
        d->candidate = d->helped_count++ == 0 ? c : d->candidate;
        d->gain_min = gain < d->gain_min ? gain : d->gain_min;
        d->gain_max = gain > d->gain_max ? gain : d->gain_max;
    }
    return is_best;
}

/* Prefer more ranks helped, then a larger minimum gain, then fewer caveats. */
static bool
is_better(const struct fleet_decision *a, const struct fleet_decision *b)
{
    if (a->helped_count != b->helped_count)
        return a->helped_count > b->helped_count;
    if (a->gain_min != b->gain_min)
        return a->gain_min > b->gain_min;
    return __builtin_popcount(a->candidate->caveats) <
           __builtin_popcount(b->candidate->caveats);
}

/* Return the reason why no setting is chosen. */
static enum fleet_decision_kind
find_reason(const struct fleet_search *searches, size_t count, size_t *judged)
{
    bool wants_change = false, lacks = false;
    *judged = 0;
    for (size_t i = 0; i < count; i++) {
        const struct fleet_search *s = &searches[i];
        *judged += has_a_say(s);
        wants_change |= s->is_there && s->outcome == DRY_OUTCOME_CHANGE;
        lacks |= s->is_there &&
                 (s->outcome == DRY_OUTCOME_CAPACITY || s->outcome == DRY_OUTCOME_NONE);
    }
    if (wants_change)
        return FLEET_DECISION_DISAGREE;
    if (lacks)
        return FLEET_DECISION_CAPACITY;
    return *judged ? FLEET_DECISION_KEEP : FLEET_DECISION_NO_EVIDENCE;
}

/* --- settings to try on other ranks ------------------------------------------------------- */

static bool
is_proposed(const struct dry_candidate *const *proposals, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(proposals[i]->label, label) == 0)
            return true;
    }
    return false;
}

static bool
is_left_out(const struct fleet_search *searches, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++) {
        if (has_a_say(&searches[i]) && !find_candidate(&searches[i], label))
            return true;
    }
    return false;
}

size_t
fleet_settings_propose(const struct fleet_search *searches, size_t count,
                       const struct dry_candidate *proposals[FLEET_PROPOSALS_MAX])
{
    size_t used = 0, most = 0;
    for (size_t i = 0; i < count; i++)
        most = searches[i].candidate_count > most ? searches[i].candidate_count : most;
    for (size_t k = 0; k < most; k++) {
        for (size_t i = 0; i < count && used < FLEET_PROPOSALS_MAX; i++) {
            const struct fleet_search *s = &searches[i];
            const struct dry_candidate *c =
                k < s->candidate_count ? &s->candidates[k] : NULL;
            if (c && has_a_say(s) && is_help(c) && c->is_allowed && !c->is_recorded &&
                !is_proposed(proposals, used, c->label) &&
                is_left_out(searches, count, c->label))
                proposals[used++] = c;
        }
    }
    return used;
}

bool
fleet_settings_add(struct fleet_search *search, const struct fleet_search *trial)
{
    size_t count = search->candidate_count + trial->candidate_count;
    struct dry_candidate *all = realloc(search->candidates, (count + 1) * sizeof *all);
    if (!all)
        return false;
    search->candidates = all;
    for (size_t i = 0; i < trial->candidate_count; i++) {
        if (!find_candidate(search, trial->candidates[i].label))
            all[search->candidate_count++] = trial->candidates[i];
    }
    return true;
}

/* --- the decision ------------------------------------------------------------------------- */

void
fleet_settings_decide(const struct fleet_search *searches, size_t count,
                      struct fleet_decision *decision)
{
    struct fleet_decision best = {.candidate = NULL};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; has_a_say(&searches[i]) && k < searches[i].candidate_count;
             k++) {
            struct fleet_decision d;
            const char *label = searches[i].candidates[k].label;
            if (judge_setting(searches, count, label, &d) && d.candidate &&
                (!best.candidate || is_better(&d, &best)))
                best = d;
        }
    }
    if (!best.candidate)
        best.kind = find_reason(searches, count, &best.judged_count);
    *decision = best;
}
