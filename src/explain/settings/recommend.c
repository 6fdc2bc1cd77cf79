/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of the search: the recorded settings, the default, single options by promise, then
 * combinations around the best. A family of candidates ends when a bound excludes a win; the search
 * ends when none can win.
 */
#include "explain/settings/recommend.h"

#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "replay/inside.h"
#include "replay/releases.h"

#define RUNS_DEFAULT 64u
#define RUNS_MIN 16u
#define OPS_MAX UINT64_C(200000000)
#define SPLIT_SIZES_MAX 10u
#define SPLIT_SIZES_FIRST 4u
#define ROUNDS_MAX 3u
#define OLDEST_ASKED 201u
#define WITHOUT_ALL (DRY_WITHOUT_EXPANDABLE | DRY_WITHOUT_GC | DRY_WITHOUT_SPLIT)

void
dry_recommend_options_init_sized(struct dry_recommend_options *options,
                                 size_t struct_size)
{
    const struct dry_recommend_options defaults = {.past_event = DRY_EVENT_NONE};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- one option alone --------------------------------------------------------------------- */

/* Try a setting. DRY_OK: continue. DRY_END: no runs are left, or no setting can be better. */
static enum dry_status
try_unless_done(struct dryi_recommend_search *s, const struct dryi_setting *setting)
{
    return dryi_recommend_is_done(s) ? DRY_END : dryi_recommend_try(s, setting);
}

static enum dry_status
try_expandable(struct dryi_recommend_search *s)
{
    return try_unless_done(s, &(struct dryi_setting){.expandable = true});
}

static enum dry_status
try_larges(struct dryi_recommend_search *s, const uint32_t *mib, size_t count)
{
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < count && status == DRY_OK; i++)
        status = try_unless_done(s, &(struct dryi_setting){.large_mib = mib[i]});
    return status;
}

static enum dry_status
try_splits(struct dryi_recommend_search *s, const uint32_t *mib, size_t count)
{
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < count && status == DRY_OK; i++)
        status = try_unless_done(s, &(struct dryi_setting){.split_mib = mib[i]});
    return status;
}

/* Return whether the rounded bytes alone exceed the best: coarser rounding only adds bytes. */
static bool
is_too_coarse(const struct dryi_recommend_search *s)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    if (s->last == SIZE_MAX || summary->best == SIZE_MAX ||
        summary->goal == DRY_GOAL_STABLE)
        return false;
    const struct dry_candidate *c = &s->rec->tried[s->last].result;
    uint64_t best = dryi_recommend_measure(summary, &s->rec->tried[summary->best].result);
    return dryi_add_saturating(c->run.allocated_peak_bytes, summary->min_gain_bytes) >
           best;
}

/* Try roundup_power2_divisions from fine to coarse. */
static enum dry_status
try_roundups(struct dryi_recommend_search *s)
{
    enum dry_status status = DRY_OK;
    for (uint8_t divisions = 16; divisions >= 2 && status == DRY_OK; divisions /= 2) {
        struct dryi_setting setting = {0};
        dryi_setting_set_roundup(&setting, divisions);
        status = try_unless_done(s, &setting);
        if (is_too_coarse(s))
            break;
    }
    return status;
}

/* Round only sizes that vary, where rounding lets one block serve several sizes. */
static enum dry_status
try_roundup_lists(struct dryi_recommend_search *s)
{
    static const struct {
        uint8_t divisions, variety_min;
    } all[] = {{8, 4}, {4, 6}};
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == DRY_OK; i++) {
        struct dryi_setting setting = {.has_roundup = true};
        if (dryi_demand_roundup(s->demand, all[i].divisions, all[i].variety_min,
                                setting.divisions))
            status = try_unless_done(s, &setting);
    }
    return status;
}

/* Return whether the device was full in the recorded run. Otherwise garbage
   collection only costs time. */
static bool
needs_gc(const struct dryi_recommend_search *s)
{
    const struct dry_run *run = &s->rec->tried[DRYI_RECORDED].result.run;
    return s->rec->summary.capacity_bytes != UINT64_MAX &&
           (run->oom || run->stats.num_alloc_retries > 0);
}

/* Make a setting with garbage collection. It needs a memory fraction: the recorded one, or 95 %. */
static struct dryi_setting
gc_setting(const struct dryi_recommend_search *s, uint8_t percent)
{
    bool is_limited = dryi_replay_conf(s->replay)->per_process_memory_fraction < 1.0;
    return (struct dryi_setting){.gc_percent = percent,
                                 .limit_percent = is_limited ? 0 : 95};
}

static enum dry_status
try_gc(struct dryi_recommend_search *s)
{
    struct dryi_setting setting = gc_setting(s, 80);
    return needs_gc(s) ? try_unless_done(s, &setting) : DRY_OK;
}

/* --- around the best ---------------------------------------------------------------------- */

/* Add divisions if the setting has none: 8 divisions waste at most an eighth. */
static enum dry_status
add_roundup(struct dryi_recommend_search *s, struct dryi_setting setting)
{
    if (setting.has_roundup)
        return DRY_OK;
    dryi_setting_set_roundup(&setting, 8);
    return try_unless_done(s, &setting);
}

static enum dry_status
add_large(struct dryi_recommend_search *s, struct dryi_setting setting)
{
    uint32_t had = setting.large_mib;
    setting.large_mib = had ? had * 2 : 64;
    enum dry_status status = try_unless_done(s, &setting);
    setting.large_mib = had ? had - had / 2 : 12;
    return status == DRY_OK ? try_unless_done(s, &setting) : status;
}

static enum dry_status
add_split(struct dryi_recommend_search *s, struct dryi_setting setting, uint32_t mib)
{
    uint32_t had = setting.split_mib;
    if (setting.expandable || (had == 0 && mib == 0))
        return DRY_OK;
    setting.split_mib = had ? had - had / 4 : mib;
    enum dry_status status = try_unless_done(s, &setting);
    if (status != DRY_OK || had == 0)
        return status;
    setting.split_mib = had + had / 4;
    status = try_unless_done(s, &setting);
    setting.split_mib = had;
    setting.slack_mib = setting.slack_mib ? setting.slack_mib * 2 : 64;
    return status == DRY_OK ? try_unless_done(s, &setting) : status;
}

static enum dry_status
add_expandable(struct dryi_recommend_search *s, struct dryi_setting setting)
{
    if (setting.expandable || setting.split_mib > 0)
        return DRY_OK;
    setting.expandable = true;
    return try_unless_done(s, &setting);
}

static enum dry_status
vary_gc(struct dryi_recommend_search *s, struct dryi_setting setting)
{
    static const uint8_t percents[] = {60, 90};
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < 2 && setting.gc_percent > 0 && status == DRY_OK; i++) {
        setting.gc_percent = percents[i];
        status = try_unless_done(s, &setting);
    }
    return status;
}

static enum dry_status
try_around(struct dryi_recommend_search *s, const struct dryi_setting *setting,
           uint32_t split_mib)
{
    enum dry_status status = vary_gc(s, *setting);
    if (status == DRY_OK)
        status = add_expandable(s, *setting);
    if (status == DRY_OK)
        status = add_split(s, *setting, split_mib);
    if (status == DRY_OK)
        status = add_large(s, *setting);
    return status == DRY_OK ? add_roundup(s, *setting) : status;
}

/* Vary the best setting until no variation is better. The default needs no variation:
   single options were tried. */
static enum dry_status
refine(struct dryi_recommend_search *s, uint32_t split_mib)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    size_t around = SIZE_MAX;
    enum dry_status status = DRY_OK;
    for (unsigned round = 0; round < ROUNDS_MAX && status == DRY_OK; round++) {
        if (summary->best == around || summary->best == SIZE_MAX ||
            dryi_recommend_is_won(s))
            break;
        around = summary->best;
        const struct dryi_tried *best = &s->rec->tried[around];
        if (!best->has_setting || best->result.is_default)
            break;
        struct dryi_setting setting = best->setting;
        status = try_around(s, &setting, split_mib);
    }
    return status;
}

/* --- the search --------------------------------------------------------------------------- */

static enum dry_status
try_families(struct dryi_recommend_search *s)
{
    static const uint32_t larges[] = {64, 32, 128, 12};
    uint32_t splits[SPLIT_SIZES_MAX];
    uint32_t least = s->rules->split_min_allowed ? 20 : 21;
    size_t count = dryi_demand_split_sizes(s->demand, least, splits, SPLIT_SIZES_MAX);
    size_t first = count < SPLIT_SIZES_FIRST ? count : SPLIT_SIZES_FIRST;
    enum dry_status status = try_larges(s, larges, 1);
    if (status == DRY_OK)
        status = try_expandable(s);
    if (status == DRY_OK)
        status = try_splits(s, splits, first);
    if (status == DRY_OK)
        status = try_gc(s);
    if (status == DRY_OK)
        status = try_roundups(s);
    if (status == DRY_OK)
        status = try_roundup_lists(s);
    if (status == DRY_OK)
        status = try_larges(s, larges + 1, sizeof larges / sizeof *larges - 1);
    if (status == DRY_OK)
        status = try_splits(s, splits + first, count - first);
    return status == DRY_OK ? refine(s, count > 0 ? splits[0] : 0) : status;
}

/* Find the capacity that the recorded settings need, if they ran out of
   memory and runs are left. */
static enum dry_status
find_recorded_need(struct dryi_recommend_search *s)
{
    const struct dry_candidate *recorded = &s->rec->tried[DRYI_RECORDED].result;
    if (s->rec->summary.goal != DRY_GOAL_FIT || !recorded->run.oom)
        return DRY_OK;
    return dryi_recommend_narrow(s, DRYI_RECORDED);
}

/* Try options that all possible releases of the record have. Newer options follow only if none of
   these is better than the recorded settings. */
static enum dry_status
try_by_release(struct dryi_recommend_search *s)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    unsigned newest = dryi_release_number(summary->releases.last);
    enum dry_status status = dryi_recommend_try(s, &(struct dryi_setting){0});
    if (status == DRY_OK)
        status = try_families(s);
    bool is_helped = summary->best != SIZE_MAX && summary->best != DRYI_RECORDED &&
                     !s->rec->tried[summary->best].result.is_default;
    bool may_go_on = status == DRY_OK || status == DRY_END;
    if (!may_go_on || is_helped || newest <= s->release || dryi_recommend_is_done(s) ||
        summary->run_count >= summary->run_max)
        return status;
    s->release = newest;
    return try_families(s);
}

static enum dry_status
search(struct dryi_recommend_search *s)
{
    const struct dry_recommend_summary *summary = &s->rec->summary;
    enum dry_status status = dryi_recommend_try_recorded(s);
    /* If the floor exceeds the capacity, no setting helps when the whole program must fit. No
       setting raises a limit set by a memory fraction either. */
    bool is_hopeless =
        dryi_recommend_is_limited(s) || (s->options.past_event == DRY_EVENT_NONE &&
                                         summary->floor_bytes > summary->capacity_bytes);
    if (status == DRY_OK && !is_hopeless)
        s->rec->summary.evidence_gap = dryi_recommend_evidence_gap(s);
    if (status == DRY_OK && !is_hopeless && !summary->evidence_gap)
        status = try_by_release(s);
    if (status == DRY_OK || status == DRY_END)
        status = find_recorded_need(s);
    if (status == DRY_OK)
        status = dryi_recommend_narrow_all(s);
    return status == DRY_END ? DRY_OK : status;
}

/* --- public call -------------------------------------------------------------------------- */

static size_t
choose_run_max(size_t wanted, size_t op_count)
{
    if (wanted > 0)
        return wanted;
    if (op_count <= OPS_MAX / RUNS_DEFAULT)
        return RUNS_DEFAULT;
    size_t affordable = (size_t)(OPS_MAX / op_count);
    return affordable > RUNS_MIN ? affordable : RUNS_MIN;
}

static enum dry_goal
choose_goal(enum dry_goal wanted, bool is_limited, bool has_oom)
{
    if (wanted != DRY_GOAL_AUTO)
        return wanted;
    return is_limited || has_oom ? DRY_GOAL_FIT : DRY_GOAL_PEAK;
}

static bool
keep_recorded_conf(struct dry_recommendation *rec, const char *conf)
{
    rec->recorded_conf_bytes = strlen(conf) + 1;
    rec->recorded_conf = dryi_memory_zalloc(&rec->memory, rec->recorded_conf_bytes, 1);
    if (rec->recorded_conf)
        memcpy(rec->recorded_conf, conf, rec->recorded_conf_bytes);
    return rec->recorded_conf != NULL;
}

/* Keep the recorded options that are not searched, if they can be separated
   and PyTorch accepts them. */
static void
keep_options(struct dryi_recommend_search *s, const struct dry_replay_recorded *recorded)
{
    struct dry_recommendation *rec = s->rec;
    struct dryi_torch_conf conf;
    dryi_torch_conf_init(&conf);
    bool is_limited = rec->summary.capacity_bytes != UINT64_MAX;
    bool ok =
        !recorded->conf_problem && dryi_setting_keep(recorded->conf, true, rec->kept) &&
        dryi_setting_keep(recorded->conf, is_limited, s->kept_unlimited) &&
        dryi_torch_conf_parse(rec->kept, strlen(rec->kept), s->rules, &conf, NULL) ==
            DRY_OK;
    if (!ok)
        rec->kept[0] = s->kept_unlimited[0] = '\0';
    rec->summary.kept_is_lost = !ok;
}

static void
describe_record(struct dryi_recommend_search *s,
                const struct dry_replay_recorded *recorded)
{
    struct dry_recommend_summary *summary = &s->rec->summary;
    const struct dry_replay_check *check = dry_replay_get_check(s->replay);
    const struct dry_trace_device *device = s->program->device;
    summary->floor_bytes = s->demand->floor_bytes;
    summary->floor_event = s->demand->floor_event == NO_EVENT
                               ? SIZE_MAX
                               : device->first_event + s->demand->floor_event;
    summary->oom_recorded = recorded->oom;
    summary->oom_live_bytes = s->demand->oom_live_bytes;
    summary->oom_request_bytes = s->demand->oom_request_bytes;
    if (recorded->oom)
        summary->events_after_oom =
            device->first_event + device->event_count - recorded->oom_event - 1;
    summary->begins_warm = s->program->carried_count > 0;
    summary->approximate =
        check->possible ? !check->exact : s->program->view->kind == DRY_TRACE_SNAPSHOT;
}

/* Note the peak of the run from the recorded layout. It costs no time: the
   self-check has done the run. */
static enum dry_status
note_as_recorded(struct dryi_recommend_search *s)
{
    struct dry_run run;
    if (!dry_replay_get_check(s->replay)->possible)
        return DRY_OK;
    enum dry_status status = dry_replay_run(s->replay, NULL, &run, s->err);
    if (status == DRY_OK && run.as_recorded)
        s->rec->summary.as_recorded_peak_bytes = run.reserved_peak_bytes;
    return status;
}

/* Find the releases that may have made the record. The earliest release to ask for is 2.1, which
   introduced the settings. */
static enum dry_status
note_releases(struct dryi_recommend_search *s)
{
    struct dry_releases *releases = &s->rec->summary.releases;
    enum dry_status status = dryi_replay_find_rows(s->replay, releases, &s->rows, s->err);
    if (status != DRY_OK)
        return status;
    unsigned newest = dryi_release_number(releases->last);
    unsigned asked = newest < OLDEST_ASKED ? newest : OLDEST_ASKED;
    s->oldest = dryi_release_number(releases->first);
    s->oldest = s->oldest > asked ? s->oldest : asked;
    s->release = s->oldest;
    return DRY_OK;
}

/* Set the capacity: the caller's, the one that an OOM states, or the lower
   bound that retries prove. */
static void
take_capacity(struct dryi_recommend_search *s, const struct dry_replay_recorded *recorded)
{
    struct dry_recommend_summary *summary = &s->rec->summary;
    summary->capacity_bytes = s->options.capacity_bytes;
    if (summary->capacity_bytes == 0)
        summary->capacity_bytes = recorded->capacity_bytes;
    if (!recorded->oom && recorded->capacity_high_bytes > 0) {
        summary->recorded_retries = dry_replay_get_check(s->replay)->retry_count;
        if (summary->capacity_bytes == 0) {
            summary->capacity_bytes = recorded->capacity_low_bytes;
            summary->capacity_high_bytes = recorded->capacity_high_bytes;
        }
    }
    if (summary->capacity_bytes == 0)
        summary->capacity_bytes = UINT64_MAX;
}

static enum dry_status
run_search(struct dryi_recommend_search *s)
{
    struct dry_recommend_summary *summary = &s->rec->summary;
    const struct dry_replay_recorded *recorded = dry_replay_get_recorded(s->replay);
    s->program = dryi_replay_program(s->replay);
    s->rules = dryi_replay_rules(s->replay);
    dryi_demand_measure(s->demand, s->program);
    summary->best = SIZE_MAX;
    summary->recorded = DRYI_RECORDED;
    summary->run_max = choose_run_max(s->options.run_max, s->program->op_count);
    take_capacity(s, recorded);
    summary->goal = choose_goal(s->options.goal, summary->capacity_bytes != UINT64_MAX,
                                recorded->oom);
    describe_record(s, recorded);
    keep_options(s, recorded);
    if (!keep_recorded_conf(s->rec, recorded->conf))
        return dryi_fail_memory(s->err, "the recorded settings");
    enum dry_status status = note_releases(s);
    if (status == DRY_OK)
        status = note_as_recorded(s);
    if (status == DRY_OK)
        status = search(s);
    if (status == DRY_OK)
        status = dryi_recommend_prove(s);
    if (status != DRY_OK)
        return status;
    return dryi_recommend_conclude(s) ? DRY_OK
                                      : dryi_fail_memory(s->err, "a recommendation");
}

static enum dry_status
create(struct dry_recommendation *rec, struct dry_replay *replay,
       const struct dry_recommend_options *options, struct dry_error *err)
{
    struct dryi_recommend_search s = {
        .rec = rec, .replay = replay, .options = *options, .err = err};
    s.demand = dryi_memory_zalloc(&rec->memory, 1, sizeof *s.demand);
    if (!s.demand)
        return dryi_fail_memory(err, "a recommendation");
    enum dry_status status = run_search(&s);
    dryi_memory_free(&rec->memory, s.demand, 1, sizeof *s.demand);
    return status;
}

enum dry_status
dry_recommend_create(struct dry_replay *replay,
                     const struct dry_recommend_options *options,
                     struct dry_recommendation **recommendation, struct dry_error *err)
{
    struct dry_recommend_options o;
    dry_recommend_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if ((unsigned)o.goal >= DRY_GOAL_COUNT)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "goal %u is none", (unsigned)o.goal);
    if (o.without & ~WITHOUT_ALL)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "without %#x holds an unknown bit",
                         (unsigned)o.without);
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_recommendation *rec = dryi_memory_zalloc(&memory, 1, sizeof *rec);
    if (!rec)
        return dryi_fail_memory(err, "a recommendation");
    rec->memory = memory;
    status = create(rec, replay, &o, err);
    if (status == DRY_OK)
        *recommendation = rec;
    else
        dry_recommend_destroy(rec);
    return status;
}

void
dry_recommend_destroy(struct dry_recommendation *rec)
{
    if (!rec)
        return;
    struct dry_memory memory = rec->memory;
    dryi_memory_free(&memory, rec->tried, rec->tried_capacity, sizeof *rec->tried);
    dryi_memory_free(&memory, rec->candidates, rec->candidate_count,
                     sizeof *rec->candidates);
    dryi_memory_free(&memory, rec->recorded_conf, rec->recorded_conf_bytes, 1);
    dryi_memory_free(&memory, rec, 1, sizeof *rec);
}
