/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The changes to recommend, each with its effect in bytes. Settings are replayed, unless the sums
 * prove that no setting helps: the requested bytes, unrounded and packed without gaps, exceed the
 * budget. Other changes follow from the findings.
 */

#include <string.h>

#include "base/ascii.h"
#include "base/bits.h"
#include "base/option_text.h"
#include "explain/verdict/explanation_inside.h"
#include "replay/inside.h"
#include "trace/from_pool.h"

#define FRACTION "per_process_memory_fraction"
#define SETTINGS_SHOWN 3
#define CHECKPOINT_CONFIDENCE_MIN 60
#define CHECKPOINT_SHARE 5 /* recompute activations from 1/5 of the active bytes on */

static struct dry_change *
add_change(struct dry_explanation *e, enum dry_change_kind kind, uint64_t bytes)
{
    if (e->view.change_count == CHANGES_MAX)
        return &e->changes[CHANGES_MAX - 1];
    struct dry_change *c = &e->changes[e->view.change_count++];
    *c = (struct dry_change){
        .kind = kind, .bytes = bytes, .oom_event = DRY_EVENT_NONE, .since = ""};
    return c;
}

static const struct dry_finding *
find_cause(const struct dry_explanation *e, enum dry_cause cause)
{
    for (size_t i = 0; i < e->view.finding_count; i++) {
        if (e->findings[i].cause == cause)
            return &e->findings[i];
    }
    return NULL;
}

static bool
is_at_oom(const struct dry_explanation *e)
{
    return e->view.moment_kind == DRY_MOMENT_AT_OOM;
}

/* --- settings ----------------------------------------------------------------------------- */

uint64_t
dryi_explain_missing(const struct dry_explanation *e)
{
    const struct dry_explanation_view *w = &e->view;
    uint64_t wanted = w->state->requested + w->request_bytes;
    return is_at_oom(e) && wanted > w->budget_bytes ? wanted - w->budget_bytes : 0;
}

static bool
is_worth_running(const struct dry_explanation *e)
{
    if (e->options.run_max == 0 || find_cause(e, DRY_CAUSE_LIMIT) ||
        find_cause(e, DRY_CAUSE_UNKNOWN))
        return false;
    if (dryi_trace_is_foreign(dryi_replay_trace(e->subject.replay)))
        return false; /* the settings are PyTorch's; another allocator made the record */
    return dryi_explain_missing(e) == 0;
}

/* Search as dry_recommend_create() does alone, so that both agree. At an OOM the
   goal is to get past it. */
static enum dry_status
run_settings(struct dry_explanation *e, struct dry_error *err)
{
    struct dry_recommend_options options;
    dry_recommend_options_init(&options);
    options.memory = &e->memory;
    options.run_max = e->options.run_max == DRY_RUNS_AUTO ? 0 : e->options.run_max;
    options.progress = e->options.progress;
    options.progress_self = e->options.progress_self;
    if (is_at_oom(e)) {
        options.past_event = e->view.event;
        /* The capacity at the first OOM is recorded; other processes may
           have taken memory since. */
        if (e->view.event != dry_replay_get_recorded(e->subject.replay)->oom_event)
            options.capacity_bytes = e->view.budget_bytes;
    }
    return dry_recommend_create(e->subject.replay, &options, &e->settings, err);
}

/* Return whether a setting gets past the OOM, or, without an OOM, is judged to help. Later requests
   may still fail: that is another OOM. */
static bool
helps(const struct dry_explanation *e, const struct dry_candidate *c,
      const struct dry_candidate *recorded)
{
    const struct dry_recommend_summary *s = dry_recommend_get_summary(e->settings);
    if (!c->is_allowed || c->is_recorded || !c->is_proved || s->evidence_gap)
        return false;
    if (is_at_oom(e))
        return c->run.gets_past && !recorded->run.gets_past;
    return s->outcome == DRY_OUTCOME_CHANGE && c->verdict <= DRY_VERDICT_GOOD;
}

static void
add_setting(struct dry_explanation *e, const struct dry_candidate *c,
            const struct dry_candidate *recorded)
{
    uint64_t peak = c->run.reserved_peak_bytes;
    uint64_t before = recorded->run.reserved_peak_bytes;
    struct dry_change *change =
        add_change(e, DRY_CHANGE_SETTING, before > peak ? before - peak : 0);
    change->setting = c->conf;
    change->since = c->since;
    change->caveats = c->caveats;
    change->removes_oom = is_at_oom(e);
    change->peak_bytes = peak;
    change->oom_event = c->run.oom ? c->run.oom_event : DRY_EVENT_NONE;
    change->recorded_peak_bytes = before;
    change->runs_on_bytes = c->runs_on_bytes;
    change->recorded_runs_on_bytes = recorded->runs_on_bytes;
    change->retries = (uint64_t)c->run.stats.num_alloc_retries;
    change->recorded_retries = (uint64_t)recorded->run.stats.num_alloc_retries;
    change->recorded_fails = is_at_oom(e) ? !recorded->run.gets_past : recorded->run.oom;
    change->has_gain = c->has_gain;
    change->gain_bytes = c->gain_bytes;
}

/* Return whether the options of `option` are a part of `conf`. */
static bool
has_option(const char *conf, const char *option)
{
    size_t length = strlen(option);
    for (const char *at = conf; length > 0 && (at = strstr(at, option)); at++) {
        if ((at == conf || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return true;
    }
    return false;
}

/* Return whether `conf` only adds options to a setting that was already recommended. */
static bool
only_adds(const struct dry_explanation *e, const char *conf)
{
    for (size_t i = 0; i < e->view.change_count; i++) {
        if (e->changes[i].kind == DRY_CHANGE_SETTING &&
            has_option(conf, e->changes[i].setting))
            return true;
    }
    return false;
}

static bool
add_settings(struct dry_explanation *e)
{
    size_t count, shown = 0;
    const struct dry_candidate *c = dry_recommend_get_candidates(e->settings, &count);
    const struct dry_recommend_summary *s = dry_recommend_get_summary(e->settings);
    for (size_t i = 0; i < count && shown < SETTINGS_SHOWN; i++) {
        if (!helps(e, &c[i], &c[s->recorded]) || only_adds(e, c[i].conf))
            continue;
        add_setting(e, &c[i], &c[s->recorded]);
        shown++;
    }
    return shown > 0;
}

/* Return whether there is a problem that a setting could fix, and not only memory to save. */
static bool
is_about_settings(const struct dry_explanation *e)
{
    return is_at_oom(e) || find_cause(e, DRY_CAUSE_FRAGMENTATION) ||
           find_cause(e, DRY_CAUSE_NEAR_LIMIT);
}

/* Return whether the record says too little for a verdict, or of settings. */
static bool
lacks_evidence(const struct dry_explanation *e)
{
    if (!e->settings)
        return !dryi_timeline_tells_requests(e->timeline) &&
               find_cause(e, DRY_CAUSE_UNKNOWN);
    return dry_recommend_get_summary(e->settings)->evidence_gap && is_about_settings(e);
}

/* Report what the search lacked: evidence, or a setting that helps. */
static void
conclude_settings(struct dry_explanation *e, bool is_helped, uint64_t missing)
{
    const struct dry_recommend_summary *s =
        e->settings ? dry_recommend_get_summary(e->settings) : NULL;
    if (dryi_trace_is_foreign(dryi_replay_trace(e->subject.replay)))
        return; /* no setting of PyTorch is about another allocator */
    if (missing > 0)
        add_change(e, DRY_CHANGE_NO_SETTING, missing);
    else if (lacks_evidence(e) && !is_helped)
        add_change(e, DRY_CHANGE_NO_EVIDENCE, 0);
    else if (s && !is_helped && is_about_settings(e))
        add_change(e, DRY_CHANGE_NO_SETTING, 0);
}

/* --- the program -------------------------------------------------------------------------- */

static void
change_balance(struct dry_explanation *e)
{
    uint64_t sum = 0;
    if (e->view.sibling_count == 0)
        return;
    for (size_t i = 0; i < e->view.sibling_count; i++) {
        const struct dry_sibling *s = &e->view.siblings[i];
        sum += s->is_subject ? 0 : s->peak_bytes;
    }
    uint64_t subject = e->view.projected_bytes
                           ? e->view.projected_bytes
                           : e->view.state->active + e->view.request_bytes;
    uint64_t each = (sum + subject) / e->view.sibling_count;
    struct dry_change *c = add_change(e, DRY_CHANGE_BALANCE, each);
    c->removes_oom = each < e->view.budget_bytes;
}

/* Copy an option string without one option. Returns false if it does not fit. */
static bool
copy_without(char *to, size_t capacity, const char *conf, const char *option)
{
    size_t used = 0;
    while (*conf) {
        size_t end = dryi_option_length(conf, strlen(conf));
        const char *name = conf + strspn(conf, " ");
        if (!dryi_text_is(name, strcspn(name, ": ,"), option)) {
            if (used + end + 2 > capacity)
                return false;
            if (used > 0)
                to[used++] = ',';
            memcpy(to + used, conf, end);
            used += end;
        }
        conf += end + (conf[end] == ',');
    }
    to[used] = '\0';
    return true;
}

/* Recommend removing the memory fraction. Replay without it, at the budget as capacity. A limit set
   by a call is not in the recorded settings; then the free bytes of the device decide. */
static enum dry_status
change_limit(struct dry_explanation *e, struct dry_error *err)
{
    struct dry_change *c = add_change(e, DRY_CHANGE_LIMIT, e->view.device_free_bytes);
    struct dry_run_options options;
    struct dry_run run;
    bool is_in_conf =
        dryi_replay_conf(e->subject.replay)->per_process_memory_fraction < 1.0;
    c->removes_oom = e->view.device_free_bytes >= e->shortage.need;
    if (!is_in_conf || e->options.run_max == 0)
        return DRY_OK;
    const char *recorded = dry_replay_get_recorded(e->subject.replay)->conf;
    if (!copy_without(e->limit_conf, sizeof e->limit_conf, recorded, FRACTION))
        return DRY_OK;
    dry_run_options_init(&options);
    options.conf = e->limit_conf;
    options.capacity_bytes = e->view.budget_bytes;
    options.past_event = e->view.event;
    enum dry_status status = dry_replay_run(e->subject.replay, &options, &run, err);
    if (status == DRY_OK) {
        c->setting = e->limit_conf;
        c->removes_oom = run.gets_past;
        c->peak_bytes = run.reserved_peak_bytes;
        c->oom_event = run.oom ? run.oom_event : DRY_EVENT_NONE;
    }
    return status == DRY_ERR_ARGUMENT ? DRY_OK : status;
}

static void
add_program_changes(struct dry_explanation *e)
{
    const struct dry_explanation_view *w = &e->view;
    const struct dry_finding *leak = find_cause(e, DRY_CAUSE_LEAK);
    if (find_cause(e, DRY_CAUSE_IMBALANCE))
        change_balance(e);
    if (leak) {
        struct dry_change *c = add_change(e, DRY_CHANGE_LEAK, leak->bytes);
        c->removes_oom =
            is_at_oom(e) &&
            w->state->active - leak->bytes + w->request_bytes <= w->budget_bytes;
    }
    const struct dry_finding *other = find_cause(e, DRY_CAUSE_OTHER_MEMORY);
    if (other && !other->is_assumed)
        add_change(e, DRY_CHANGE_OTHER,
                   w->short_bytes ? w->short_bytes
                                  : e->shortage.need - w->device_free_bytes)
            ->removes_oom = true;
    const struct dry_finding *pending = find_cause(e, DRY_CAUSE_PENDING);
    if (pending)
        add_change(e, DRY_CHANGE_STREAMS, pending->bytes);
    const struct dry_finding *stranded = find_cause(e, DRY_CAUSE_STRANDED);
    if (stranded)
        add_change(e, DRY_CHANGE_POOL, stranded->bytes);
    const struct dry_finding *overflow = find_cause(e, DRY_CAUSE_OVERFLOW);
    if (overflow && !e->subject.timeline->trace->is_of_driver) /* by PyTorch's recorder */
        add_change(e, DRY_CHANGE_RECORD, overflow->bytes);
    uint64_t activations = w->category_bytes[DRY_CATEGORY_ACTIVATIONS];
    if (w->short_bytes > 0 && activations > w->state->active / CHECKPOINT_SHARE &&
        w->category_confidence[DRY_CATEGORY_ACTIVATIONS] >= CHECKPOINT_CONFIDENCE_MIN)
        add_change(e, DRY_CHANGE_CHECKPOINT, activations)->removes_oom = false;
    if (w->short_bytes > 0)
        add_change(e, DRY_CHANGE_OWNERS, w->short_bytes);
}

void
dryi_change_owners_first(struct dry_explanation *e, uint64_t bytes)
{
    struct dry_change c = *add_change(e, DRY_CHANGE_OWNERS, bytes);
    memmove(e->changes + 1, e->changes, (e->view.change_count - 1) * sizeof c);
    e->changes[0] = c;
}

enum dry_status
dryi_explain_changes(struct dry_explanation *e, struct dry_error *err)
{
    uint64_t missing = dryi_explain_missing(e);
    bool is_helped = false;
    enum dry_status status = DRY_OK;
    if (find_cause(e, DRY_CAUSE_LIMIT))
        status = change_limit(e, err);
    if (status != DRY_OK)
        return status;
    if (is_worth_running(e)) {
        status = run_settings(e, err);
        if (status != DRY_OK)
            return status;
        is_helped = add_settings(e);
    }
    add_program_changes(e);
    conclude_settings(e, is_helped, missing);
    return status;
}
