/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Choose the moment, compute everything there once (state, steps, categories, owners), judge the
 * trust, then derive findings and changes. Cost: O(events), plus the runs to try settings.
 * <drystone/explanation.h> has the idea.
 */
#include <drystone/explanation.h>

#include <inttypes.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "explain/verdict/explanation_inside.h"

void
dry_explain_options_init_sized(struct dry_explain_options *options, size_t struct_size)
{
    const struct dry_explain_options defaults = {.moment = DRY_MOMENT_AUTO,
                                                 .run_max = DRY_RUNS_AUTO};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- names -------------------------------------------------------------------------------- */

const char *
dry_moment_kind_name(enum dry_moment_kind kind)
{
    static const char *const names[] = {"oom", "peak", "event", "end"};
    return (unsigned)kind < 4 ? names[kind] : "unknown";
}

const char *
dry_change_kind_name(enum dry_change_kind kind)
{
    static const char *const names[] = {"setting", "no-setting", "owners", "checkpoint",
                                        "leak",    "balance",    "limit",  "other",
                                        "streams", "pool",       "record", "no-evidence"};
    return (unsigned)kind < 12 ? names[kind] : "unknown";
}

const char *
dry_trust_name(enum dry_trust trust)
{
    static const char *const names[] = {"high", "medium", "low"};
    return (unsigned)trust < 3 ? names[trust] : "unknown";
}

const char *
dry_lasting_name(enum dry_lasting lasting)
{
    static const char *const names[] = {"unknown", "steps", "recording", "little"};
    return (unsigned)lasting < 4 ? names[lasting] : "unknown";
}

/* --- the moment --------------------------------------------------------------------------- */

static bool
is_oom(const struct dry_timeline_view *t, uint32_t event)
{
    return dry_trace_get_view(t->trace)->action[t->first_event + event] == DRY_ACTION_OOM;
}

static enum dry_moment_kind
get_kind(const struct dry_timeline_view *t, uint32_t moment)
{
    if (moment < t->event_count && is_oom(t, moment))
        return DRY_MOMENT_AT_OOM;
    if (t->event_count == 0 || moment == t->dump_moment)
        return DRY_MOMENT_AT_END;
    if (moment == t->peaks[DRY_CURVE_ACTIVE].moment)
        return DRY_MOMENT_AT_PEAK;
    return DRY_MOMENT_AT_EVENT;
}

static uint32_t
choose_moment(const struct dry_timeline_view *t)
{
    if (t->oom_event != DRY_NONE)
        return t->oom_event; /* the state in which the request failed */
    return dryi_timeline_tells_requests(t) ? t->peaks[DRY_CURVE_ACTIVE].moment
                                           : t->dump_moment;
}

/* Subtract with saturation: the times of a file may be any numbers. */
static int64_t
elapsed_us(int64_t begin, int64_t now)
{
    if (begin < 0 && now > INT64_MAX + begin)
        return INT64_MAX;
    if (begin > 0 && now < INT64_MIN + begin)
        return INT64_MIN;
    return now - begin;
}

/* Read the failed request, its number among all OOMs, and the next one's event. */
static void
read_oom(struct dry_explanation *e)
{
    const struct dry_timeline_view *t = e->timeline;
    const struct dry_trace_view *v = e->subject.timeline->trace;
    struct dry_explanation_view *w = &e->view;
    w->request_bytes = v->size[w->event];
    w->device_free_bytes = v->addr[w->event];
    w->request_stack = v->stack[w->event];
    for (uint32_t i = 0; i <= w->moment; i++)
        w->oom_number += is_oom(t, i);
    for (uint32_t i = t->event_count; i-- > w->moment + 1;) {
        if (is_oom(t, i))
            w->next_oom_event = t->first_event + i;
    }
}

static void
read_moment(struct dry_explanation *e)
{
    const struct dry_timeline_view *t = e->timeline;
    const struct dry_trace_view *v = e->subject.timeline->trace;
    struct dry_explanation_view *w = &e->view;
    uint32_t m =
        e->options.moment == DRY_MOMENT_AUTO ? choose_moment(t) : e->options.moment;
    w->device = t->device;
    w->moment = m;
    w->moment_kind = get_kind(t, m);
    w->event = SIZE_MAX;
    w->request_stack = DRY_NONE;
    w->oom_count = t->oom_count;
    w->next_oom_event = DRY_EVENT_NONE;
    if (t->event_count > 0) {
        uint32_t event = w->moment_kind == DRY_MOMENT_AT_OOM ? m : m ? m - 1 : 0;
        event = event < t->event_count ? event : t->event_count - 1;
        w->event = t->first_event + event;
        w->time_us = elapsed_us(v->time_us[t->first_event], v->time_us[w->event]);
    }
    if (w->moment_kind == DRY_MOMENT_AT_OOM)
        read_oom(e);
}

/* Count blocks freed by the unwinding: after the OOM, before the end of the file. */
static void
count_unwinding(struct dry_explanation *e)
{
    const struct dry_timeline_view *t = e->timeline;
    uint32_t m = e->view.moment;
    for (uint32_t i = 0; i < t->allocation_count; i++) {
        const struct dry_allocation *a = &t->allocations[i];
        e->view.freed_after += a->begin <= m && a->freed > m && a->freed < t->dump_moment;
    }
    e->view.end_active_bytes =
        dry_timeline_height(e->subject.timeline, DRY_CURVE_ACTIVE, t->dump_moment);
    e->view.end_reserved_bytes =
        dry_timeline_height(e->subject.timeline, DRY_CURVE_RESERVED, t->dump_moment);
}

/* --- trust -------------------------------------------------------------------------------- */

static enum dry_status
on_alive(void *self, uint32_t allocation)
{
    struct dry_explanation *e = self;
    const struct dry_allocation *a = &e->timeline->allocations[allocation];
    const struct dry_category_guess *guess = dry_categories_get(e->categories);
    const struct dry_category_guess *g = &guess[allocation];
    e->view.category_bytes[g->category] += a->size;
    e->category_weights[g->category] += (double)a->size * g->confidence;
    if (a->flags & DRY_ALLOCATION_CARRIED_OVER || allocation < e->options.before_count)
        e->view.carried_over_bytes += a->size;
    size_t frame_count;
    dry_trace_stack(e->timeline->trace, a->stack, &frame_count);
    if (frame_count > 0 && !(a->flags & DRY_ALLOCATION_STACK_OF_FREE))
        e->view.covered_bytes += a->size;
    return DRY_OK;
}

static void
judge_categories(struct dry_explanation *e)
{
    for (unsigned i = 0; i < DRY_CATEGORY_COUNT; i++) {
        double bytes = (double)e->view.category_bytes[i];
        if (bytes > 0)
            e->view.category_confidence[i] =
                (uint8_t)(e->category_weights[i] / bytes + 0.5);
    }
}

static void
count_reversals(struct dry_explanation *e)
{
    const struct dry_trace_view *v = e->subject.timeline->trace;
    size_t first = e->timeline->first_event;
    for (size_t i = first + 1; i < first + e->timeline->event_count; i++)
        e->view.time_reversals += v->time_us[i] < v->time_us[i - 1];
}

/* Return the self-check's result. A simulated record was made by the same rules, so
   the check proves nothing. */
static const struct dry_replay_check *
find_check(struct dry_explanation *e)
{
    const struct dry_replay_check *c = dry_replay_get_check(e->subject.replay);
    if (!e->options.is_simulated)
        return c;
    e->check = (struct dry_replay_check){
        .reason = "the trace holds requests alone, no addresses to compare with",
        .compat = c->compat,
        .event_count = c->event_count,
        .live_before = e->options.before_count,
        .oom_count = c->oom_count,
    };
    return &e->check;
}

static void
judge_trust(struct dry_explanation *e)
{
    struct dry_explanation_view *w = &e->view;
    const struct dry_replay_check *c = find_check(e);
    uint64_t active = dry_owners_total(e->owners);
    w->check = c;
    w->unmatched_frees = e->timeline->unmatched_frees;
    /* bytes outside all known segments, or overlapped by another block */
    uint64_t held = dry_owners_total(e->owners);
    w->unexplained_bytes = held > w->state->active ? held - w->state->active : 0;
    bool is_covered = w->covered_bytes >= active - active / 10;
    if (c->possible && c->exact && is_covered && w->unmatched_frees == 0 &&
        c->assumed_count == 0)
        w->trust = DRY_TRUST_HIGH;
    else if (w->unexplained_bytes > active / 10 || (c->possible && !c->exact) ||
             (!c->possible && e->timeline->event_count > 1))
        w->trust = DRY_TRUST_LOW;
    else
        w->trust = DRY_TRUST_MEDIUM;
}

/* --- steps -------------------------------------------------------------------------------- */

static void
read_step(struct dry_explanation *e)
{
    uint32_t count, m = e->view.moment;
    const struct dry_step *steps = dry_steps_get(e->steps, &count);
    e->view.step = DRY_NONE;
    if (dry_steps_get_source(e->steps) == DRY_STEPS_NONE || count == 0)
        return;
    uint32_t step = dry_steps_find(e->steps, m > 0 ? m - 1 : 0);
    if (step == DRY_NONE)
        return;
    e->view.step = step;
    for (uint32_t i = steps[step].begin; i < m && i < e->timeline->event_count; i++) {
        uint32_t a = e->timeline->event_allocation[i];
        e->view.step_done += a != DRY_NONE && e->timeline->allocations[a].begin == i + 1;
    }
    for (uint32_t i = step; i-- > 0 && e->view.step_whole == 0;) {
        if (!steps[i].is_partial) {
            e->view.step_whole = steps[i].alloc_count;
            e->view.step_whole_peak_bytes = steps[i].peak.bytes;
        }
    }
}

/* Find the last allocation before the moment: its pass and its line. */
static void
read_last(struct dry_explanation *e)
{
    const struct dry_timeline_view *t = e->timeline;
    uint32_t a = DRY_NONE;
    e->view.last_line = e->last_line;
    for (uint32_t i = e->view.moment; i-- > 0 && a == DRY_NONE;) {
        uint32_t made = i < t->event_count ? t->event_allocation[i] : DRY_NONE;
        if (made != DRY_NONE && t->allocations[made].begin == i + 1)
            a = made;
    }
    if (a == DRY_NONE)
        return;
    e->view.last_pass = (enum dry_pass)dry_categories_get(e->categories)[a].pass;
    if (t->allocations[a].stack != DRY_NONE)
        dryi_sites_name_stack(&e->sites, t->allocations[a].stack, e->last_line,
                              sizeof e->last_line);
}

/* --- creation ----------------------------------------------------------------------------- */

static enum dry_status
find_moment(struct dry_explanation *e, struct dry_error *err)
{
    const struct dry_timeline *t = e->subject.timeline;
    enum dry_status status = dry_state_create(t, e->view.moment, &e->state, err);
    if (status != DRY_OK)
        return status;
    e->view.state = e->state;
    struct dry_steps_options steps;
    dry_steps_options_init(&steps);
    steps.memory = &e->memory;
    if (e->view.moment_kind == DRY_MOMENT_AT_OOM && e->view.moment > 0)
        steps.until = e->view.moment; /* the unwinding is not a step */
    else if (e->view.moment_kind == DRY_MOMENT_AT_OOM)
        steps.until = 1; /* the OOM is the first event: no earlier steps are known */
    status = dry_steps_create(t, &steps, &e->steps, err);
    struct dry_categories_options categories;
    dry_categories_options_init(&categories);
    categories.memory = &e->memory;
    if (status == DRY_OK)
        status = dry_categories_create(t, e->steps, &categories, &e->categories, err);
    struct dry_owners_options owners;
    dry_owners_options_init(&owners);
    owners.memory = &e->memory;
    owners.key = DRY_OWNER_LINE;
    owners.moment = e->view.moment;
    if (status == DRY_OK)
        status = dryi_sites_init(&e->sites, e->timeline->trace, &e->memory, err);
    if (status == DRY_OK)
        status = dryi_owners_create(t, &owners, &e->sites, &e->owners, err);
    e->view.request_line = e->request_line;
    if (status == DRY_OK && e->view.request_stack != DRY_NONE)
        dryi_sites_name_stack(&e->sites, e->view.request_stack, e->request_line,
                              sizeof e->request_line);
    return status;
}

static enum dry_status
explain(struct dry_explanation *e, struct dry_error *err)
{
    read_moment(e);
    enum dry_status status = find_moment(e, err);
    if (status != DRY_OK)
        return status;
    e->view.steps = e->steps;
    e->view.categories = e->categories;
    e->view.owners = e->owners;
    status = dry_timeline_visit_alive(e->subject.timeline, e->view.moment, on_alive, e);
    judge_categories(e);
    count_reversals(e);
    judge_trust(e);
    if (status == DRY_OK && !e->options.is_simulated && !e->options.skip_releases)
        status = dry_replay_find_releases(e->subject.replay, &e->view.releases, err);
    read_step(e);
    read_last(e);
    if (status == DRY_OK)
        status = dryi_explain_siblings(e, err);
    if (status == DRY_OK && e->view.moment_kind == DRY_MOMENT_AT_OOM) {
        count_unwinding(e);
        status = dryi_explain_shortage(e, err);
        if (status == DRY_OK)
            dryi_explain_oom(e);
    } else if (status == DRY_OK) {
        dryi_explain_waste(e);
    }
    if (status != DRY_OK)
        return status;
    dryi_explain_reasons(e);
    e->view.findings = e->findings;
    status = dryi_explain_changes(e, err);
    if (status == DRY_OK && e->view.moment_kind == DRY_MOMENT_AT_OOM)
        status = dryi_explain_effects(e, err);
    dryi_findings_settle(e);
    e->view.changes = e->changes;
    e->view.settings = e->settings;
    return status;
}

static enum dry_status
check_options(const struct dry_explain_options *o, struct dry_error *err)
{
    if (o->device_count == 0 || o->subject >= o->device_count)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "there is no device to explain");
    const struct dry_timeline_view *t =
        dry_timeline_get_view(o->devices[o->subject].timeline);
    if (o->moment != DRY_MOMENT_AUTO && o->moment > t->dump_moment)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "moment %u: the last is %u", o->moment,
                         t->dump_moment);
    uint64_t reserved = t->peaks[DRY_CURVE_RESERVED].bytes;
    if (o->total_bytes > 0 && o->total_bytes < reserved)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "a device of %" PRIu64 " bytes: %" PRIu64
                         " are reserved at the peak; expected as many or more",
                         o->total_bytes, reserved);
    return DRY_OK;
}

enum dry_status
dry_explanation_create(const struct dry_explain_options *options,
                       struct dry_explanation **explanation, struct dry_error *err)
{
    struct dry_explain_options o;
    dry_explain_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status == DRY_OK)
        status = check_options(&o, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_explanation *e = dryi_memory_zalloc(&memory, 1, sizeof *e);
    if (!e)
        return dryi_fail_memory(err, "an explanation");
    e->memory = memory;
    e->options = o;
    e->subject = o.devices[o.subject];
    e->timeline = dry_timeline_get_view(e->subject.timeline);
    status = explain(e, err);
    if (status == DRY_OK)
        *explanation = e;
    else
        dry_explanation_destroy(e);
    return status;
}

void
dry_explanation_destroy(struct dry_explanation *e)
{
    if (!e)
        return;
    struct dry_memory memory = e->memory;
    dry_recommend_destroy(e->settings);
    dry_categories_destroy(e->categories);
    dry_steps_destroy(e->steps);
    dry_owners_destroy(e->owners);
    dryi_sites_finish(&e->sites);
    dry_state_destroy(e->state);
    dryi_memory_free(&memory, e->siblings, e->options.device_count, sizeof *e->siblings);
    dryi_memory_free(&memory, e, 1, sizeof *e);
}

const struct dry_explanation_view *
dry_explanation_get_view(const struct dry_explanation *explanation)
{
    return &explanation->view;
}
