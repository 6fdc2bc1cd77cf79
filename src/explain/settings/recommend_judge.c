/* SPDX-License-Identifier: Apache-2.0 */

/* Run one candidate, and compare it with the best so far. */
#include "explain/settings/recommend.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "replay/inside.h"
#include "replay/releases.h"

/* 10 ms: less driver time is not worth a setting. */
#define TIME_NS_MIN UINT64_C(10000000)
#define CAPACITY_MAX (UINT64_C(1) << 50)

/* --- runs --------------------------------------------------------------------------------- */

/* Join option strings, each of which may be empty. */
static void
join(char text[DRYI_CONF_BYTES], const char *kept, const char *own)
{
    snprintf(text, DRYI_CONF_BYTES, "%s%s%s", kept, kept[0] && own[0] ? "," : "", own);
}

void
dryi_recommend_write_conf(const struct dryi_recommend_search *s, size_t index,
                          uint64_t capacity, char conf[DRYI_CONF_BYTES])
{
    join(conf, capacity == UINT64_MAX ? s->kept_unlimited : s->rec->kept,
         s->rec->tried[index].own);
}

static enum dry_status
run_on(struct dryi_recommend_search *s, size_t index, uint64_t capacity,
       struct dry_run *run)
{
    struct dry_recommend_summary *summary = &s->rec->summary;
    if (summary->run_count >= summary->run_max)
        return DRY_END;
    if (s->options.progress && s->options.progress(s->options.progress_self,
                                                   summary->run_count, summary->run_max))
        return dryi_fail(s->err, DRY_ERR_CANCELLED, "cancelled");
    char conf[DRYI_CONF_BYTES];
    dryi_recommend_write_conf(s, index, capacity, conf);
    struct dry_run_options o;
    dry_run_options_init(&o);
    o.conf = index == DRYI_RECORDED ? NULL : conf;
    o.begin_anew = true;
    o.capacity_bytes = capacity;
    o.past_event = s->options.past_event;
    if (o.past_event == DRY_EVENT_NONE && summary->oom_recorded)
        o.past_event = dry_replay_get_recorded(s->replay)->oom_event;
    summary->run_count++;
    return dry_replay_run(s->replay, &o, run, s->err);
}

static void
note_fit(struct dry_candidate *c, uint64_t capacity, const struct dry_run *run)
{
    c->runs_on_bytes = capacity;
    c->runs_on_retries = (uint64_t)run->stats.num_alloc_retries;
}

/* Run the candidate at `capacity`, and record the result in it. */
static enum dry_status
try_on(struct dryi_recommend_search *s, size_t index, uint64_t capacity, bool *fits)
{
    struct dry_run run = {0};
    enum dry_status status = run_on(s, index, capacity, &run);
    if (status != DRY_OK)
        return status;
    struct dry_candidate *c = &s->rec->tried[index].result;
    *fits = !run.oom;
    if (run.oom)
        c->fails_on_bytes = capacity > c->fails_on_bytes ? capacity : c->fails_on_bytes;
    else if (c->runs_on_bytes == 0 || capacity < c->runs_on_bytes)
        note_fit(c, capacity, &run);
    return DRY_OK;
}

/* --- the smallest capacity ---------------------------------------------------------------- */

/* Find a capacity that is large enough: the bytes reserved without a limit, or more
   under a memory fraction. */
static enum dry_status
find_sufficient_capacity(struct dryi_recommend_search *s, size_t index)
{
    struct dry_candidate *c = &s->rec->tried[index].result;
    struct dry_run run = c->run;
    enum dry_status status = DRY_OK;
    if (run.oom)
        status = run_on(s, index, UINT64_MAX, &run);
    uint64_t capacity = dryi_round_up(run.reserved_peak_bytes, DRYI_CAPACITY_STEP);
    if (capacity <= c->fails_on_bytes)
        capacity = c->fails_on_bytes + DRYI_CAPACITY_STEP;
    for (bool fits = false; status == DRY_OK && !fits; capacity *= 2) {
        if (run.oom || capacity > CAPACITY_MAX)
            return DRY_OK; /* no device is large enough */
        status = try_on(s, index, capacity, &fits);
    }
    return status;
}

/* Note that no setting fits below the peak of live bytes. */
static void
note_floor(const struct dryi_recommend_search *s, struct dry_candidate *c)
{
    uint64_t too_small = dryi_round_down(s->demand->floor_bytes - 1, DRYI_CAPACITY_STEP);
    if (s->demand->floor_bytes > 0 && too_small > c->fails_on_bytes)
        c->fails_on_bytes = too_small;
}

/* Return the distance between the devices that are known to suffice and to fail. */
static uint64_t
get_gap(const struct dry_candidate *c)
{
    return c->runs_on_bytes > c->fails_on_bytes ? c->runs_on_bytes - c->fails_on_bytes
                                                : 0;
}

static enum dry_status
halve_gap(struct dryi_recommend_search *s, size_t index)
{
    const struct dry_candidate *c = &s->rec->tried[index].result;
    bool fits;
    return try_on(s, index,
                  c->fails_on_bytes + dryi_round_up(get_gap(c) / 2, DRYI_CAPACITY_STEP),
                  &fits);
}

enum dry_status
dryi_recommend_narrow(struct dryi_recommend_search *s, size_t index)
{
    struct dry_candidate *c = &s->rec->tried[index].result;
    enum dry_status status =
        c->runs_on_bytes == 0 ? find_sufficient_capacity(s, index) : DRY_OK;
    if (status != DRY_OK || c->runs_on_bytes == 0)
        return status;
    note_floor(s, c);
    while (status == DRY_OK && get_gap(c) > s->rec->summary.capacity_step_bytes)
        status = halve_gap(s, index);
    return status;
}

/* Return the candidate to be listed whose smallest device is known least; SIZE_MAX if all are
   known well enough. */
static size_t
find_vaguest(const struct dryi_recommend_search *s)
{
    uint64_t widest = s->rec->summary.min_gain_bytes;
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < s->rec->tried_count; i++) {
        struct dry_candidate *c = &s->rec->tried[i].result;
        if (c->verdict > DRY_VERDICT_GOOD || c->runs_on_bytes == 0 || !c->is_allowed)
            continue;
        note_floor(s, c);
        if (get_gap(c) > widest) {
            widest = get_gap(c);
            found = i;
        }
    }
    return found;
}

enum dry_status
dryi_recommend_narrow_all(struct dryi_recommend_search *s)
{
    enum dry_status status = DRY_OK;
    if (s->rec->summary.goal != DRY_GOAL_FIT || s->rec->summary.evidence_gap)
        return DRY_OK;
    dryi_recommend_judge_all(s);
    for (size_t i = find_vaguest(s); i != SIZE_MAX && status == DRY_OK;
         i = find_vaguest(s))
        status = halve_gap(s, i);
    return status;
}

/* --- comparison with the best ------------------------------------------------------------- */

uint64_t
dryi_recommend_measure(const struct dry_recommend_summary *summary,
                       const struct dry_candidate *c)
{
    if (summary->goal != DRY_GOAL_FIT)
        return c->run.oom ? UINT64_MAX : c->run.reserved_peak_bytes;
    return c->runs_on_bytes ? c->runs_on_bytes : UINT64_MAX;
}

bool
dryi_recommend_is_steadier(const struct dry_candidate *a, const struct dry_candidate *b)
{
    if (a->run.stats.num_alloc_retries != b->run.stats.num_alloc_retries)
        return a->run.stats.num_alloc_retries < b->run.stats.num_alloc_retries;
    uint64_t least = b->run.driver_time_ns / 10;
    least = least > TIME_NS_MIN ? least : TIME_NS_MIN;
    return dryi_add_saturating(a->run.driver_time_ns, least) <= b->run.driver_time_ns;
}

uint64_t
dryi_recommend_allowance(const struct dry_recommend_summary *summary,
                         const struct dry_candidate *recorded)
{
    if (summary->capacity_bytes != UINT64_MAX)
        return summary->capacity_bytes;
    return recorded->run.oom ? UINT64_MAX : recorded->run.reserved_peak_bytes;
}

bool
dryi_recommend_spares_retries(const struct dry_recommend_summary *summary,
                              const struct dry_candidate *recorded,
                              const struct dry_candidate *c)
{
    int64_t before = recorded->run.stats.num_alloc_retries;
    return summary->goal == DRY_GOAL_FIT && summary->capacity_high_bytes > 0 &&
           before > 0 && !recorded->run.oom && !c->run.oom &&
           !(c->caveats & DRY_CAVEAT_FRACTION) &&
           c->run.stats.num_alloc_retries <= before / 2;
}

bool
dryi_recommend_adds_retries(const struct dry_recommend_summary *summary,
                            const struct dry_candidate *recorded,
                            const struct dry_candidate *c)
{
    return summary->goal == DRY_GOAL_FIT && summary->capacity_high_bytes > 0 &&
           !recorded->run.oom && !c->is_recorded &&
           c->run.stats.num_alloc_retries > recorded->run.stats.num_alloc_retries;
}

/* Return whether a candidate as good as the best has fewer objections. The first is what cannot go
   back at a recorded OOM: more requests follow. On a proved limit retries count more than caveats. */
static bool
is_less_objectionable(const struct dryi_recommend_search *s, size_t index)
{
    const struct dry_candidate *c = &s->rec->tried[index].result;
    const struct dry_candidate *best = &s->rec->tried[s->rec->summary.best].result;
    uint64_t held = c->run.past_held_bytes, best_held = best->run.past_held_bytes;
    uint64_t gain = s->rec->summary.min_gain_bytes;
    if (held + gain <= best_held || best_held + gain <= held)
        return held < best_held;
    int64_t retries = c->run.stats.num_alloc_retries;
    int64_t best_retries = best->run.stats.num_alloc_retries;
    if (s->rec->summary.capacity_high_bytes > 0 && retries != best_retries)
        return retries < best_retries;
    return __builtin_popcount(c->caveats) < __builtin_popcount(best->caveats);
}

static bool
is_lower_peak(const struct dryi_recommend_search *s, size_t index)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    uint64_t peak = s->rec->tried[index].result.run.reserved_peak_bytes;
    uint64_t best = s->rec->tried[summary->best].result.run.reserved_peak_bytes;
    if (summary->best != DRYI_RECORDED && peak <= best && is_less_objectionable(s, index))
        return true;
    return dryi_add_saturating(peak, summary->min_gain_bytes) <= best;
}

static bool
is_steadier(const struct dryi_recommend_search *s, size_t index)
{
    const struct dry_candidate *c = &s->rec->tried[index].result;
    const struct dry_candidate *best = &s->rec->tried[s->rec->summary.best].result;
    const struct dry_candidate *recorded = &s->rec->tried[DRYI_RECORDED].result;
    if (c->run.reserved_peak_bytes > dryi_recommend_allowance(&s->rec->summary, recorded))
        return false;
    return dryi_recommend_is_steadier(c, best);
}

static bool
recorded_fails(const struct dryi_recommend_search *s)
{
    return s->rec->tried[DRYI_RECORDED].result.run.oom;
}

/* Return in *wins whether the candidate needs less than the recorded settings and the best by the
   minimum gain. One run for each, so that the smallest capacity is searched only for winners. */
static enum dry_status
screen(struct dryi_recommend_search *s, size_t index, bool *wins)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    const struct dry_candidate *c = &s->rec->tried[index].result;
    uint64_t gain = summary->min_gain_bytes;
    uint64_t best = s->rec->tried[summary->best].result.runs_on_bytes;
    uint64_t recorded = s->rec->tried[DRYI_RECORDED].result.runs_on_bytes;
    bool is_recorded_best = summary->best == DRYI_RECORDED;
    uint64_t wanted = best > gain ? best - gain : 0;
    if (!is_recorded_best && is_less_objectionable(s, index))
        wanted = best;
    enum dry_status status = DRY_OK;
    *wins = true;
    if (!is_recorded_best && recorded > gain && !recorded_fails(s))
        status = try_on(s, index, recorded - gain, wins);
    if (status != DRY_OK || !*wins)
        return status;
    if (wanted < summary->floor_bytes)
        *wins = false; /* no setting fits there */
    else if (c->runs_on_bytes == 0 || c->runs_on_bytes > wanted)
        status = try_on(s, index, wanted, wins);
    return status;
}

/* Judge a candidate that fits the device of the search. */
static enum dry_status
judge(struct dryi_recommend_search *s, size_t index)
{
    struct dry_recommend_summary *summary = &s->rec->summary;
    const struct dry_candidate *recorded = &s->rec->tried[DRYI_RECORDED].result;
    const struct dry_candidate *c = &s->rec->tried[index].result;
    bool wins = true;
    enum dry_status status = DRY_OK;
    if (dryi_recommend_adds_retries(summary, recorded, c))
        return DRY_OK;
    if (summary->best != SIZE_MAX) {
        if (summary->goal == DRY_GOAL_PEAK)
            wins = is_lower_peak(s, index);
        else if (summary->goal == DRY_GOAL_STABLE)
            wins = is_steadier(s, index);
        else
            status = screen(s, index, &wins);
    }
    if (status == DRY_OK && !wins && summary->best == DRYI_RECORDED)
        wins = dryi_recommend_spares_retries(
            summary, &s->rec->tried[DRYI_RECORDED].result, &s->rec->tried[index].result);
    if (status != DRY_OK || !wins)
        return status;
    summary->best = index;
    return summary->goal == DRY_GOAL_FIT ? dryi_recommend_narrow(s, index) : DRY_OK;
}

bool
dryi_recommend_is_done(const struct dryi_recommend_search *s)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    return summary->best != SIZE_MAX && dryi_recommend_is_won(s) &&
           s->rec->tried[summary->best].result.caveats == 0;
}

bool
dryi_recommend_is_won(const struct dryi_recommend_search *s)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    if (summary->best == SIZE_MAX)
        return false;
    const struct dry_candidate *best = &s->rec->tried[summary->best].result;
    if (summary->goal == DRY_GOAL_STABLE)
        return best->run.stats.num_alloc_retries == 0 &&
               best->run.driver_time_ns < TIME_NS_MIN;
    if (summary->capacity_high_bytes > 0 && best->run.stats.num_alloc_retries > 0)
        return false;
    uint64_t measure = dryi_recommend_measure(summary, best);
    return measure < dryi_add_saturating(summary->floor_bytes, summary->min_gain_bytes);
}

/* --- exclusions --------------------------------------------------------------------------- */

static bool
may_be_proposed(const struct dryi_recommend_search *s, const struct dryi_setting *setting)
{
    uint32_t without = s->options.without;
    if ((setting->expandable && (without & DRY_WITHOUT_EXPANDABLE)) ||
        (setting->split_mib > 0 && (without & DRY_WITHOUT_SPLIT)) ||
        (setting->gc_percent > 0 && (without & DRY_WITHOUT_GC)))
        return false;
    if (setting->expandable && setting->split_mib > 0)
        return false;
    const char *since = dryi_setting_since(setting);
    return !since[0] || s->release >= dryi_release_number(since);
}

/* Return whether a candidate that places exactly as `conf` was already tried. */
static bool
is_known(const struct dryi_recommend_search *s, const struct dryi_torch_conf *conf)
{
    for (size_t i = 0; i < s->rec->tried_count; i++) {
        if (dryi_setting_is_same_conf(&s->rec->tried[i].conf, conf))
            return true;
    }
    return false;
}

static bool
is_default_conf(const struct dryi_torch_conf *conf)
{
    struct dryi_torch_conf standard;
    dryi_torch_conf_init(&standard);
    standard.per_process_memory_fraction = conf->per_process_memory_fraction;
    standard.throw_on_cudamalloc_oom = conf->throw_on_cudamalloc_oom;
    return dryi_setting_is_same_conf(conf, &standard);
}

/* Append a zeroed candidate. Returns NULL if memory ran out. */
static struct dryi_tried *
add(struct dryi_recommend_search *s)
{
    struct dry_recommendation *rec = s->rec;
    if (!dryi_memory_grow(&rec->memory, (void *)&rec->tried, &rec->tried_capacity,
                          rec->tried_count + 1, sizeof *rec->tried))
        return NULL;
    struct dryi_tried *t = &rec->tried[rec->tried_count++];
    memset(t, 0, sizeof *t);
    t->result.is_allowed = true;
    return t;
}

/* Run the newest candidate on the device of the search, then judge it. If the run
   fails, remove the candidate. */
static enum dry_status
run_and_judge(struct dryi_recommend_search *s)
{
    struct dry_recommendation *rec = s->rec;
    size_t index = rec->tried_count - 1;
    struct dry_candidate *c = &rec->tried[index].result;
    enum dry_status status = run_on(s, index, rec->summary.capacity_bytes, &c->run);
    if (status != DRY_OK) {
        rec->tried_count--;
        return status;
    }
    s->last = index;
    if (rec->summary.capacity_bytes != UINT64_MAX) {
        if (c->run.oom)
            c->fails_on_bytes = rec->summary.capacity_bytes;
        else
            note_fit(c, rec->summary.capacity_bytes, &c->run);
    }
    return c->run.oom || index == DRYI_RECORDED ? DRY_OK : judge(s, index);
}

enum dry_status
dryi_recommend_try(struct dryi_recommend_search *s, const struct dryi_setting *setting)
{
    struct dryi_tried t = {.setting = *setting, .has_setting = true};
    s->last = SIZE_MAX;
    if (!may_be_proposed(s, setting))
        return DRY_OK;
    dryi_setting_format(setting, t.own);
    join(t.text, s->rec->kept, t.own);
    dryi_torch_conf_init(&t.conf);
    if (dryi_torch_conf_parse(t.text, strlen(t.text), s->rules, &t.conf, NULL) !=
            DRY_OK ||
        is_known(s, &t.conf))
        return DRY_OK;
    struct dryi_tried *to = add(s);
    if (!to)
        return dryi_fail_memory(s->err, "a candidate");
    t.result = to->result;
    t.result.is_default = is_default_conf(&t.conf);
    t.result.caveats = dryi_setting_caveats(setting);
    t.result.since = dryi_setting_since(setting);
    if (dryi_release_number(t.result.since) > s->oldest)
        t.result.caveats |= DRY_CAVEAT_RELEASE;
    *to = t;
    return run_and_judge(s);
}

/* --- recorded settings -------------------------------------------------------------------- */

/* Return whether recorded options may be kept: not if the user excluded one, or if they
   must never be combined. */
static bool
may_be_kept(const struct dryi_recommend_search *s, const struct dryi_torch_conf *conf)
{
    uint32_t without = s->options.without;
    bool splits_less = conf->max_split_size != UINT64_MAX;
    bool collects = conf->garbage_collection_threshold > 0.0;
    return !(conf->expandable_segments && (without & DRY_WITHOUT_EXPANDABLE)) &&
           !(splits_less && (without & DRY_WITHOUT_SPLIT)) &&
           !(collects && (without & DRY_WITHOUT_GC)) &&
           !(conf->expandable_segments && splits_less);
}

static void
set_measures(struct dryi_recommend_search *s)
{
    struct dry_recommend_summary *summary = &s->rec->summary;
    const struct dry_run *run = &s->rec->tried[DRYI_RECORDED].result.run;
    uint64_t peak = run->oom && summary->capacity_bytes != UINT64_MAX
                        ? summary->capacity_bytes
                        : run->reserved_peak_bytes;
    uint64_t step = dryi_round_down(peak / 256, DRYI_CAPACITY_STEP);
    summary->capacity_step_bytes = step > DRYI_CAPACITY_STEP ? step : DRYI_CAPACITY_STEP;
    summary->min_gain_bytes = s->options.min_gain_bytes;
    if (summary->min_gain_bytes == 0)
        summary->min_gain_bytes = peak / 100 > 64 * DRYI_MIB ? peak / 100 : 64 * DRYI_MIB;
}

enum dry_status
dryi_recommend_try_recorded(struct dryi_recommend_search *s)
{
    struct dryi_tried *t = add(s);
    if (!t)
        return dryi_fail_memory(s->err, "a candidate");
    t->conf = *dryi_replay_conf(s->replay);
    t->has_setting = dryi_setting_of_conf(&t->conf, &t->setting);
    if (t->has_setting) {
        dryi_setting_format(&t->setting, t->own);
        t->result.caveats = dryi_setting_caveats(&t->setting);
    }
    t->result.is_recorded = true;
    t->result.is_default = is_default_conf(&t->conf);
    t->result.is_allowed = may_be_kept(s, &t->conf);
    t->result.since = "";
    struct dry_candidate *c = &t->result;
    enum dry_status status = run_and_judge(s);
    if (status != DRY_OK)
        return status;
    set_measures(s);
    if (c->run.oom)
        return DRY_OK;
    if (c->is_allowed)
        s->rec->summary.best = DRYI_RECORDED;
    return s->rec->summary.goal == DRY_GOAL_FIT ? dryi_recommend_narrow(s, DRYI_RECORDED)
                                                : DRY_OK;
}
