/* SPDX-License-Identifier: Apache-2.0 */

/* Derive verdicts, gains, order and outcome from the candidates. */
#include "explain/settings/recommend.h"

#include "base/bits.h"
#include "base/memory.h"

/* --- names -------------------------------------------------------------------------------- */

static const char *
get_name(const char *const *names, size_t count, size_t index)
{
    return index < count ? names[index] : "unknown";
}

const char *
dry_goal_name(enum dry_goal goal)
{
    static const char *const names[DRY_GOAL_COUNT] = {"auto", "fit", "peak", "stable"};
    return get_name(names, DRY_GOAL_COUNT, (size_t)goal);
}

const char *
dry_outcome_name(enum dry_outcome outcome)
{
    static const char *const names[DRY_OUTCOME_COUNT] = {
        "change", "keep", "none", "capacity", "no-evidence", "limit"};
    return get_name(names, DRY_OUTCOME_COUNT, (size_t)outcome);
}

const char *
dry_verdict_name(enum dry_verdict verdict)
{
    static const char *const names[DRY_VERDICT_COUNT] = {"best", "good", "no-gain",
                                                         "worse", "fails"};
    return get_name(names, DRY_VERDICT_COUNT, (size_t)verdict);
}

/* Sources: pytorch#165685 (IPC), vllm#41268 (sleep mode, NIXL), pytorch#113481 (frees wait),
   pytorch#123548 and #193400 (the combination that grows without bound). */
static const struct {
    const char *name, *text;
} caveats[DRY_CAVEAT_COUNT] = {
    {"ipc",
     "tensors cannot be shared between processes (CUDA IPC) where an old driver or a "
     "container forbids it"},
    {"sleep", "not with vLLM's sleep mode"},
    {"nixl", "not with NIXL and others that register device memory for RDMA"},
    {"sync", "giving blocks back to the driver waits for the device"},
    {"rounding", "requests are rounded up, so more is in use"},
    {"fraction", "the fraction is of the whole device, here of the capacity"},
    {"grows", "max_split_size_mb with expandable_segments: reserved memory grows without "
              "bound (pytorch#123548, #193400)"},
    {"release", "a release that may have made the file does not know it, and refuses it"},
};

/* Return a caveat's index; DRY_CAVEAT_COUNT unless it is a single known bit. */
static size_t
index_of_caveat(uint32_t caveat)
{
    size_t i = 0;
    while (i < DRY_CAVEAT_COUNT && caveat != UINT32_C(1) << i)
        i++;
    return i;
}

const char *
dry_caveat_name(uint32_t caveat)
{
    size_t i = index_of_caveat(caveat);
    return i < DRY_CAVEAT_COUNT ? caveats[i].name : "unknown";
}

const char *
dry_caveat_text(uint32_t caveat)
{
    size_t i = index_of_caveat(caveat);
    return i < DRY_CAVEAT_COUNT ? caveats[i].text : "unknown";
}

/* --- verdicts ----------------------------------------------------------------------------- */

/*
 * Return whether the candidate's smallest capacity was searched: to the end, or to below the
 * recorded need. Fitting the given device does not count. A need above the recorded one is not a
 * loss, because searches of non-winners end early.
 */
static bool
is_searched(const struct dry_recommend_summary *summary,
            const struct dry_candidate *recorded, const struct dry_candidate *c)
{
    if (summary->goal != DRY_GOAL_FIT || c->is_recorded)
        return true;
    if (c->runs_on_bytes <=
        dryi_add_saturating(c->fails_on_bytes, summary->capacity_step_bytes))
        return true;
    return c->runs_on_bytes < dryi_recommend_measure(summary, recorded) &&
           (c->runs_on_bytes != summary->capacity_bytes || c->fails_on_bytes > 0);
}

static void
set_gain(const struct dry_recommend_summary *summary,
         const struct dry_candidate *recorded, struct dry_candidate *c)
{
    uint64_t before = dryi_recommend_measure(summary, recorded);
    uint64_t after = dryi_recommend_measure(summary, c);
    c->has_gain =
        before != UINT64_MAX && after != UINT64_MAX && is_searched(summary, recorded, c);
    c->gain_bytes = c->has_gain ? dryi_difference(before, after) : 0;
}

static enum dry_verdict
judge_steadiness(const struct dry_recommend_summary *summary,
                 const struct dry_candidate *recorded, const struct dry_candidate *c)
{
    uint64_t peak = c->run.reserved_peak_bytes;
    uint64_t allowance = dryi_recommend_allowance(summary, recorded);
    if (peak > dryi_add_saturating(allowance, summary->min_gain_bytes) ||
        dryi_recommend_is_steadier(recorded, c))
        return DRY_VERDICT_WORSE;
    return peak <= allowance && dryi_recommend_is_steadier(c, recorded)
               ? DRY_VERDICT_GOOD
               : DRY_VERDICT_NO_GAIN;
}

static enum dry_verdict
judge(const struct dry_recommend_summary *summary, const struct dry_candidate *recorded,
      const struct dry_candidate *c)
{
    if (c->run.oom)
        return DRY_VERDICT_FAILS;
    if (c->is_recorded)
        return DRY_VERDICT_NO_GAIN;
    if (recorded->run.oom)
        return DRY_VERDICT_GOOD;
    if (summary->goal == DRY_GOAL_STABLE)
        return judge_steadiness(summary, recorded, c);
    if (dryi_recommend_adds_retries(summary, recorded, c))
        return DRY_VERDICT_NO_GAIN;
    if (dryi_recommend_spares_retries(summary, recorded, c))
        return DRY_VERDICT_GOOD;
    uint64_t before = dryi_recommend_measure(summary, recorded);
    if (summary->goal == DRY_GOAL_FIT &&
        c->fails_on_bytes >= dryi_add_saturating(before, summary->min_gain_bytes))
        return DRY_VERDICT_WORSE;
    if (!c->has_gain)
        return DRY_VERDICT_NO_GAIN;
    uint64_t after = dryi_recommend_measure(summary, c), gain = summary->min_gain_bytes;
    if (dryi_add_saturating(after, gain) <= before)
        return DRY_VERDICT_GOOD;
    return summary->goal == DRY_GOAL_PEAK && after >= dryi_add_saturating(before, gain)
               ? DRY_VERDICT_WORSE
               : DRY_VERDICT_NO_GAIN;
}

/* --- order -------------------------------------------------------------------------------- */

/* Compare two candidates; ties keep the order of the search. */
bool
dryi_recommend_is_before(const struct dry_recommend_summary *summary,
                         const struct dry_candidate *a, const struct dry_candidate *b)
{
    if (a->verdict != b->verdict)
        return a->verdict < b->verdict;
    if (summary->goal == DRY_GOAL_STABLE) {
        if (a->run.stats.num_alloc_retries != b->run.stats.num_alloc_retries)
            return a->run.stats.num_alloc_retries < b->run.stats.num_alloc_retries;
        return a->run.driver_time_ns < b->run.driver_time_ns;
    }
    uint64_t measure_a = dryi_recommend_measure(summary, a);
    uint64_t measure_b = dryi_recommend_measure(summary, b);
    if (measure_a != measure_b)
        return measure_a < measure_b;
    return a->run.reserved_peak_bytes < b->run.reserved_peak_bytes &&
           a->verdict != DRY_VERDICT_FAILS;
}

/* Stable insertion sort: there are fewer candidates than runs. */
static void
sort(struct dry_recommendation *rec)
{
    for (size_t i = 1; i < rec->candidate_count; i++) {
        struct dry_candidate moved = rec->candidates[i];
        size_t to = i;
        for (; to > 0 &&
               dryi_recommend_is_before(&rec->summary, &moved, &rec->candidates[to - 1]);
             to--)
            rec->candidates[to] = rec->candidates[to - 1];
        rec->candidates[to] = moved;
    }
}

static void
set_indexes(struct dry_recommendation *rec)
{
    if (rec->summary.best != SIZE_MAX)
        rec->summary.best = 0;
    for (size_t i = 0; i < rec->candidate_count; i++) {
        if (rec->candidates[i].is_recorded)
            rec->summary.recorded = i;
    }
}

/* --- outcome ------------------------------------------------------------------------------ */

static void
set_outcome(struct dry_recommendation *rec, bool is_limited)
{
    struct dry_recommend_summary *summary = &rec->summary;
    summary->kept = rec->kept;
    summary->oom_comes_back = rec->tried[DRYI_RECORDED].result.run.oom;
    if (summary->floor_bytes > summary->capacity_bytes)
        summary->outcome = DRY_OUTCOME_CAPACITY;
    else if (is_limited)
        summary->outcome = DRY_OUTCOME_LIMIT;
    else if (summary->evidence_gap)
        summary->outcome = DRY_OUTCOME_NO_EVIDENCE;
    else if (summary->best == SIZE_MAX)
        summary->outcome = DRY_OUTCOME_NONE;
    else
        summary->outcome =
            summary->best == DRYI_RECORDED ? DRY_OUTCOME_KEEP : DRY_OUTCOME_CHANGE;
    if (summary->best == SIZE_MAX || summary->capacity_bytes == UINT64_MAX)
        return;
    uint64_t used = dryi_recommend_measure(summary, &rec->tried[summary->best].result);
    if (used < summary->capacity_bytes)
        summary->margin_bytes = summary->capacity_bytes - used;
}

void
dryi_recommend_judge_all(struct dryi_recommend_search *s)
{
    struct dry_recommendation *rec = s->rec;
    const struct dry_candidate *recorded = &rec->tried[DRYI_RECORDED].result;
    for (size_t i = 0; i < rec->tried_count; i++) {
        struct dryi_tried *t = &rec->tried[i];
        set_gain(&rec->summary, recorded, &t->result);
        t->result.verdict = judge(&rec->summary, recorded, &t->result);
        if (i == rec->summary.best)
            t->result.verdict = DRY_VERDICT_BEST;
        else if (t->is_refuted && t->result.verdict == DRY_VERDICT_GOOD)
            t->result.verdict = DRY_VERDICT_NO_GAIN;
        t->result.is_proved = t->was_proved && !t->is_refuted;
    }
}

bool
dryi_recommend_conclude(struct dryi_recommend_search *s)
{
    struct dry_recommendation *rec = s->rec;
    rec->candidates =
        dryi_memory_zalloc(&rec->memory, rec->tried_count, sizeof *rec->candidates);
    if (!rec->candidates)
        return false;
    bool is_limited = dryi_recommend_is_limited(s);
    if (is_limited || rec->summary.evidence_gap)
        rec->summary.best = SIZE_MAX; /* without evidence no setting is the best */
    rec->candidate_count = rec->tried_count;
    dryi_recommend_judge_all(s);
    for (size_t i = 0; i < rec->tried_count; i++) {
        struct dryi_tried *t = &rec->tried[i];
        t->result.conf = t->result.is_recorded ? rec->recorded_conf : t->text;
        t->result.label = t->own;
        rec->candidates[i] = t->result;
    }
    set_outcome(rec, is_limited);
    sort(rec);
    set_indexes(rec);
    return true;
}

const struct dry_recommend_summary *
dry_recommend_get_summary(const struct dry_recommendation *recommendation)
{
    return &recommendation->summary;
}

const struct dry_candidate *
dry_recommend_get_candidates(const struct dry_recommendation *recommendation,
                             size_t *count)
{
    *count = recommendation->candidate_count;
    return recommendation->candidates;
}
