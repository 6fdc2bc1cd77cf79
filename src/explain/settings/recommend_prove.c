/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Check that the record has enough evidence, and that a setting helps under every release that may
 * have made the record. Cost: one pass over the sizes; per setting to be named one run per row of
 * rules, and as many of the recorded settings.
 */
#include "explain/settings/recommend.h"

#include "base/bits.h"
#include "replay/inside.h"
#include "replay/releases.h"

#define PROVED_MAX 3u        /* settings to prove; no report names more */
#define OPS_FOR_ALL 4000000u /* with more operations only the best is proved */
#define REQUESTS_MIN 2u
#define ROWS_MAX 32u

/* --- evidence ----------------------------------------------------------------------------- */

/* Return the sum of bytes requested in the window. */
static uint64_t
asked_bytes(const struct dryi_program *p)
{
    uint64_t sum = 0;
    for (size_t i = p->carried_count; i < p->request_count; i++)
        sum = dryi_add_saturating(sum, p->sizes[i]);
    return sum;
}

/* Return whether the recorded OOM does not recur because the run begins on an empty device. */
static bool
is_oom_lost(const struct dryi_recommend_search *s)
{
    const struct dry_run *run = &s->rec->tried[DRYI_RECORDED].result.run;
    bool is_past = s->options.past_event != DRY_EVENT_NONE ? run->gets_past : !run->oom;
    return s->rec->summary.oom_recorded && is_past &&
           s->rec->summary.capacity_bytes != UINT64_MAX;
}

const char *
dryi_recommend_evidence_gap(const struct dryi_recommend_search *s)
{
    const struct dryi_program *p = s->program;
    if (p->device->event_count == 0)
        return "the file holds no events";
    if (p->inconsistency)
        return "the recording contradicts itself";
    bool asks_little = asked_bytes(p) < s->rec->summary.min_gain_bytes;
    if (p->request_count < p->carried_count + REQUESTS_MIN ||
        (asks_little && !dryi_recommend_is_won(s)))
        return "the window asks for too little memory to tell settings apart";
    if (is_oom_lost(s))
        return "begun on an empty device the recorded settings do not run out: the cause "
               "is older than the window";
    return NULL;
}

bool
dryi_recommend_is_limited(const struct dryi_recommend_search *s)
{
    const struct dryi_program *p = s->program;
    if (p->oom_count == 0 || p->inconsistency || s->options.capacity_bytes > 0)
        return false;
    for (uint32_t i = 0; i < p->limit_count; i++) {
        const struct limit *limit = &p->limits[i];
        if (limit->event == p->oom_event)
            return p->addr[limit->event] >= limit->need;
    }
    return false;
}

/* --- other releases ----------------------------------------------------------------------- */

struct prover {
    struct dryi_recommend_search *search;
    const struct dryi_torch_rules *all;
    size_t row_count;
    uint64_t recorded_peaks[ROWS_MAX]; /* 0: not run yet, UINT64_MAX: failed */
};

/* Run a candidate under the rules of a row. ARGUMENT: the rules refuse its options. */
static enum dry_status
run_by(const struct prover *f, size_t index, size_t row, uint64_t capacity,
       struct dry_run *run)
{
    const struct dryi_recommend_search *s = f->search;
    struct dry_run_options o;
    struct dry_error refusal;
    char conf[DRYI_CONF_BYTES];
    dryi_recommend_write_conf(s, index, capacity, conf);
    dry_run_options_init(&o);
    o.conf = index == DRYI_RECORDED ? NULL : conf;
    o.compat = f->all[row].release;
    o.begin_anew = true;
    o.capacity_bytes = capacity;
    o.past_event = s->options.past_event;
    enum dry_status status = dry_replay_run(s->replay, &o, run, &refusal);
    if (status != DRY_OK && status != DRY_ERR_ARGUMENT && s->err)
        *s->err = refusal;
    return status;
}

static enum dry_status
find_recorded_peak(struct prover *f, size_t row)
{
    struct dry_run run;
    if (f->recorded_peaks[row] > 0)
        return DRY_OK;
    enum dry_status status = run_by(f, DRYI_RECORDED, row, UINT64_MAX, &run);
    if (status == DRY_OK)
        f->recorded_peaks[row] = run.oom || run.reserved_peak_bytes == 0
                                     ? UINT64_MAX
                                     : run.reserved_peak_bytes;
    return status;
}

static bool
spares(const struct dryi_recommend_search *s, size_t index)
{
    return dryi_recommend_spares_retries(&s->rec->summary,
                                         &s->rec->tried[DRYI_RECORDED].result,
                                         &s->rec->tried[index].result);
}

/* Return the capacity at which a setting must run: the device's, or the recorded need
   minus the minimum gain. */
static uint64_t
device_for(const struct dryi_recommend_search *s, size_t index)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    const struct dry_candidate *recorded = &s->rec->tried[DRYI_RECORDED].result;
    if (summary->goal != DRY_GOAL_FIT || recorded->run.oom || !recorded->is_allowed ||
        spares(s, index) || recorded->runs_on_bytes <= summary->min_gain_bytes)
        return summary->capacity_bytes;
    return recorded->runs_on_bytes - summary->min_gain_bytes;
}

static enum dry_status
helps_by(struct prover *f, size_t index, size_t row, bool *helps)
{
    const struct dryi_recommend_search *s = f->search;
    const struct dry_recommend_summary *summary = &s->rec->summary;
    const struct dry_candidate *recorded = &s->rec->tried[DRYI_RECORDED].result;
    struct dry_run run;
    enum dry_status status = run_by(f, index, row, device_for(s, index), &run);
    if (status == DRY_OK && summary->goal == DRY_GOAL_PEAK)
        status = find_recorded_peak(f, row);
    *helps = false;
    if (status != DRY_OK)
        return status == DRY_ERR_ARGUMENT ? DRY_OK : status;
    bool is_past = s->options.past_event != DRY_EVENT_NONE && run.gets_past;
    *helps = !run.oom || is_past;
    if (spares(s, index))
        *helps = *helps &&
                 run.stats.num_alloc_retries <=
                     s->rec->tried[DRYI_RECORDED].result.run.stats.num_alloc_retries / 2;
    if (summary->goal == DRY_GOAL_PEAK && !recorded->run.oom && recorded->is_allowed)
        *helps = *helps &&
                 dryi_add_saturating(run.reserved_peak_bytes, summary->min_gain_bytes) <=
                     f->recorded_peaks[row];
    return DRY_OK;
}

static enum dry_status
prove(struct prover *f, size_t index)
{
    struct dryi_tried *t = &f->search->rec->tried[index];
    unsigned since = dryi_release_number(t->result.since);
    enum dry_status status = DRY_OK;
    t->was_proved = true;
    for (size_t row = 0; row < f->row_count && status == DRY_OK && !t->is_refuted;
         row++) {
        bool helps = true, is_asked = f->search->rows & UINT32_C(1) << row &&
                                      &f->all[row] != f->search->rules &&
                                      dryi_release_number(f->all[row].last) >= since;
        if (is_asked)
            status = helps_by(f, index, row, &helps);
        t->is_refuted = !helps;
    }
    return status;
}

/* Return whether the candidate is to be named unless a release refutes it. */
static bool
is_promising(const struct dryi_recommend_search *s, size_t index)
{
    const struct dryi_tried *t = &s->rec->tried[index];
    bool gets_past = s->options.past_event != DRY_EVENT_NONE && t->result.run.gets_past;
    return !t->was_proved && t->result.is_allowed && index != DRYI_RECORDED &&
           (t->result.verdict <= DRY_VERDICT_GOOD || gets_past);
}

/* Return the first candidate, in the order of the result, that is to be named and was not
   proved; SIZE_MAX if none. */
static size_t
find_next(const struct dryi_recommend_search *s)
{
    size_t next = SIZE_MAX;
    for (size_t i = 0; i < s->rec->tried_count; i++) {
        if (is_promising(s, i) &&
            (next == SIZE_MAX ||
             dryi_recommend_is_before(&s->rec->summary, &s->rec->tried[i].result,
                                      &s->rec->tried[next].result)))
            next = i;
    }
    return next;
}

/* Replace a refuted best by the recorded settings, if these run at all. */
static void
drop_best(struct dryi_recommend_search *s)
{
    const struct dry_candidate *recorded = &s->rec->tried[DRYI_RECORDED].result;
    s->rec->summary.best =
        recorded->is_allowed && !recorded->run.oom ? DRYI_RECORDED : SIZE_MAX;
}

enum dry_status
dryi_recommend_prove(struct dryi_recommend_search *s)
{
    struct dry_recommend_summary *summary = &s->rec->summary;
    struct prover f = {.search = s};
    enum dry_status status = DRY_OK;
    unsigned proved = 0;
    f.all = dryi_torch_rules_all(&f.row_count);
    unsigned wanted = s->program->op_count > OPS_FOR_ALL ? 1 : PROVED_MAX;
    while (status == DRY_OK && proved < wanted) {
        dryi_recommend_judge_all(s);
        size_t next = find_next(s);
        if (next == SIZE_MAX)
            break;
        status = prove(&f, next);
        const struct dryi_tried *t = &s->rec->tried[next];
        proved += !t->is_refuted;
        if (t->is_refuted && summary->best == next)
            drop_best(s);
        bool has_best = summary->best != SIZE_MAX && summary->best != DRYI_RECORDED;
        if (!t->is_refuted && !has_best && t->result.verdict == DRY_VERDICT_GOOD)
            summary->best = next;
    }
    return status;
}
