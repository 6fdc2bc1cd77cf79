/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judge causes and changes by what they would have bought at an OOM: bytes of headroom, and how
 * many steps these last. Then put the cause whose removal lasts longest first, and the changes in
 * the same order.
 *
 * A step grows by the slope of the active bytes at the ends of steps, or by the sum of the lines
 * that leave memory behind, whichever is larger. The step of the OOM may still need as much as the
 * last whole step. The rest of the headroom, divided by the growth, is how long a change lasts.
 * Without steps, headroom counts beside the climb: what was added since memory last fell, if the
 * program never held as much before.
 * Cost: O(moments + findings x changes), and the replays.
 */
#include <stdio.h>

#include "base/bits.h"
#include "explain/verdict/explanation_inside.h"

#define WHOLE_STEPS_MIN 3
#define EDGE_SHARE 50 /* 1/50 of the budget: sums that differ by less decide nothing */
#define CLIMB_SHARE                                                                      \
    10 /* memory falls by 1/10: a climb ends; 1/10 of a climb is little more */
#define PIECES_SHARE 4 /* short by 1/4 of the request: the pieces decide as much */

/* --- growth ------------------------------------------------------------------------------- */

static uint64_t
get_wanted(const struct dry_explanation *e)
{
    return e->view.state->active + e->view.request_bytes;
}

/* Measure the climb to the moment; 0 if the program held as much before. */
static uint64_t
measure_climb(const struct dry_explanation *e)
{
    struct dryi_timeline_walk walk;
    dryi_timeline_walk_begin(&walk, e->subject.timeline);
    uint64_t low = walk.height[DRY_CURVE_ACTIVE], top = low, highest = 0, height = low;
    while (walk.moment < e->view.moment) {
        dryi_timeline_walk_advance(&walk);
        height = walk.height[DRY_CURVE_ACTIVE];
        bool has_fallen = height < top && top - height >= top / CLIMB_SHARE;
        if (has_fallen && top > highest)
            highest = top;
        if (has_fallen || height < low)
            low = top = height;
        else if (height > top)
            top = height;
    }
    return height >= highest ? height - low : 0;
}

/* Measure the growth of the steps before the moment, or without steps the climb to it. */
static void
measure_growth(struct dry_explanation *e)
{
    uint32_t count, whole = 0;
    size_t line_count;
    const struct dry_step *steps = dry_steps_get(e->steps, &count);
    const struct dry_growth *lines = dry_steps_get_growth(e->steps, &line_count);
    for (uint32_t i = 0; i < count; i++)
        whole += !steps[i].is_partial;
    e->knows_growth = whole >= WHOLE_STEPS_MIN && dryi_steps_give_back(e);
    if (!e->knows_growth) {
        /* Devices that run the same code tell how much more is needed. */
        e->climb_bytes = e->view.sibling_count > 0 ? 0 : measure_climb(e);
        return;
    }
    uint64_t slope = dry_steps_growth_per_step(e->steps);
    for (size_t i = 0; i < line_count; i++) {
        if (lines[i].confidence >= DRYI_LEAK_CONFIDENCE_MIN)
            e->leak_growth_bytes += lines[i].bytes_per_step;
    }
    e->growth_bytes = slope > e->leak_growth_bytes ? slope : e->leak_growth_bytes;
    uint64_t peak = e->view.step_whole_peak_bytes + e->growth_bytes;
    e->rest_bytes = peak > get_wanted(e) ? peak - get_wanted(e) : 0;
}

/* --- effects ------------------------------------------------------------------------------ */

static int64_t
get_edge(const struct dry_explanation *e)
{
    return (int64_t)(e->view.budget_bytes / EDGE_SHARE);
}

static struct dry_effect
make_effect(const struct dry_explanation *e, int64_t headroom, uint64_t growth)
{
    struct dry_effect effect = {.is_known = true, .headroom_bytes = headroom};
    int64_t rest = dryi_difference(e->rest_bytes, 0);
    bool is_little = headroom < dryi_difference(e->climb_bytes / CLIMB_SHARE, 0);
    if (!e->knows_growth && is_little)
        effect.lasting = DRY_LASTING_LITTLE;
    if (!e->knows_growth)
        return effect;
    bool is_enough = headroom >= rest;
    effect.lasting = is_enough && growth == 0 ? DRY_LASTING_RECORDING : DRY_LASTING_STEPS;
    if (is_enough && growth > 0) {
        uint64_t steps = (uint64_t)(headroom - rest) / growth;
        effect.steps = steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX;
    }
    return effect;
}

/* Make the effect of `bytes` less in use, at the recorded growth. */
static struct dry_effect
make_effect_of_less(const struct dry_explanation *e, uint64_t bytes)
{
    int64_t headroom =
        dryi_difference(dryi_add_saturating(e->view.budget_bytes, bytes), get_wanted(e));
    return make_effect(e, headroom, e->growth_bytes);
}

static struct dry_effect
measure_leak(const struct dry_explanation *e, uint64_t leaked)
{
    uint64_t growth = e->growth_bytes - e->leak_growth_bytes;
    int64_t headroom =
        dryi_difference(dryi_add_saturating(e->view.budget_bytes, leaked), get_wanted(e));
    return make_effect(e, headroom, growth);
}

/* The headroom of a setting is known if a smaller device was tried. */
static struct dry_effect
measure_setting(const struct dry_explanation *e, const struct dry_change *c)
{
    uint64_t capacity = dry_recommend_get_summary(e->settings)->capacity_bytes;
    bool is_known = c->removes_oom && c->runs_on_bytes > 0 && c->runs_on_bytes < capacity;
    if (!is_known)
        return (struct dry_effect){0};
    struct dry_effect effect =
        make_effect(e, dryi_difference(capacity, c->runs_on_bytes), e->growth_bytes);
    effect.is_replayed = true;
    return effect;
}

uint64_t
dryi_explain_device(const struct dry_explanation *e, enum dry_change_kind kind)
{
    uint64_t others = kind == DRY_CHANGE_OTHER ? e->shortage.other_bytes : 0;
    return dryi_add_saturating(e->view.budget_bytes, others);
}

static struct dry_effect
measure_need(const struct dry_explanation *e, enum dry_change_kind kind, uint64_t need)
{
    uint64_t leaked = kind == DRY_CHANGE_LEAK ? e->leak_growth_bytes : 0;
    struct dry_effect effect = make_effect(
        e, dryi_difference(dryi_explain_device(e, kind), need), e->growth_bytes - leaked);
    effect.is_replayed = true;
    return effect;
}

/* Measure a change by sums. */
static struct dry_effect
sum_up_change(const struct dry_explanation *e, const struct dry_change *c)
{
    const struct dryi_shortage *s = &e->shortage;
    const struct dry_explanation_view *w = &e->view;
    switch (c->kind) {
    case DRY_CHANGE_SETTING:
        return measure_setting(e, c);
    case DRY_CHANGE_LEAK:
        return measure_leak(e, c->bytes);
    case DRY_CHANGE_OTHER:
        return make_effect_of_less(e, s->other_bytes);
    case DRY_CHANGE_STREAMS: /* frees that the retry waited for are no longer pending */
        return make_effect_of_less(e, w->state->pending);
    case DRY_CHANGE_CHECKPOINT:
        return make_effect_of_less(e, c->bytes);
    case DRY_CHANGE_LIMIT:
        return c->removes_oom ? make_effect_of_less(e, 0) : (struct dry_effect){0};
    case DRY_CHANGE_POOL:
        return make_effect(e,
                           dryi_difference(s->lane_free + w->device_free_bytes + c->bytes,
                                           w->request_bytes),
                           e->growth_bytes);
    case DRY_CHANGE_BALANCE:
        return make_effect(e, dryi_difference(w->budget_bytes, c->bytes),
                           e->growth_bytes);
    case DRY_CHANGE_NO_SETTING:
    case DRY_CHANGE_OWNERS:
    case DRY_CHANGE_RECORD:
    case DRY_CHANGE_NO_EVIDENCE:
        break;
    }
    return (struct dry_effect){0};
}

/* --- order -------------------------------------------------------------------------------- */

/* How far an effect goes, by which causes are ranked first. */
enum reach {
    REACH_NONE,    /* it does not remove the failure, or not for one more step */
    REACH_UNKNOWN, /* no effect is known */
    REACH_EDGE,    /* it lasts, by less than the sums can decide */
    REACH_FAR,
};

static enum reach
get_reach(const struct dry_explanation *e, const struct dry_effect *effect)
{
    bool is_edge = effect->headroom_bytes < get_edge(e);
    if (!effect->is_known)
        return REACH_UNKNOWN;
    if (effect->headroom_bytes < 0)
        return REACH_NONE;
    switch (effect->lasting) {
    case DRY_LASTING_STEPS:
        return effect->steps > 0 ? REACH_FAR : REACH_NONE;
    case DRY_LASTING_RECORDING:
        return is_edge ? REACH_EDGE : REACH_FAR;
    case DRY_LASTING_LITTLE:
        return REACH_NONE;
    case DRY_LASTING_UNKNOWN:
        break;
    }
    return is_edge ? REACH_NONE : REACH_FAR;
}

/* Return whether `a` lasts longer than `b`, of the same reach. */
static bool
lasts_longer(const struct dry_explanation *e, const struct dry_effect *a,
             const struct dry_effect *b)
{
    if (a->lasting == DRY_LASTING_STEPS && b->lasting == DRY_LASTING_STEPS)
        return a->steps > b->steps;
    if (a->lasting != b->lasting)
        return a->lasting == DRY_LASTING_RECORDING;
    return a->lasting != DRY_LASTING_RECORDING && a->headroom_bytes > b->headroom_bytes &&
           (uint64_t)a->headroom_bytes - (uint64_t)b->headroom_bytes >
               (uint64_t)get_edge(e);
}

static bool
is_better(const struct dry_explanation *e, const struct dry_effect *a,
          const struct dry_effect *b)
{
    enum reach of_a = get_reach(e, a), of_b = get_reach(e, b);
    return of_a != of_b ? of_a > of_b : lasts_longer(e, a, b);
}

/* For changes, an unknown effect is the least. */
static bool
is_better_change(const struct dry_explanation *e, const struct dry_change *a,
                 const struct dry_change *b)
{
    if (a->effect.is_known != b->effect.is_known)
        return a->effect.is_known;
    return is_better(e, &a->effect, &b->effect);
}

/* Stable insertion sorts: both lists have at most a dozen rows. */
static void
sort_changes(struct dry_explanation *e)
{
    for (size_t i = 1; i < e->view.change_count; i++) {
        struct dry_change moved = e->changes[i];
        size_t to = i;
        for (; to > 0 && is_better_change(e, &moved, &e->changes[to - 1]); to--)
            e->changes[to] = e->changes[to - 1];
        e->changes[to] = moved;
    }
}

static void
sort_findings(struct dry_explanation *e)
{
    for (size_t i = 1; i < e->view.finding_count; i++) {
        struct dry_finding moved = e->findings[i];
        size_t to = i;
        for (; to > 0 && is_better(e, &moved.effect, &e->findings[to - 1].effect); to--)
            e->findings[to] = e->findings[to - 1];
        e->findings[to] = moved;
    }
}

/* --- causes ------------------------------------------------------------------------------- */

static bool
is_about_layout(enum dry_cause cause)
{
    return cause == DRY_CAUSE_FRAGMENTATION || cause == DRY_CAUSE_STRANDED ||
           cause == DRY_CAUSE_PENDING;
}

static bool
removes(enum dry_change_kind kind, enum dry_cause cause)
{
    switch (kind) {
    case DRY_CHANGE_SETTING:
        return is_about_layout(cause);
    case DRY_CHANGE_LEAK:
        return cause == DRY_CAUSE_LEAK;
    case DRY_CHANGE_OTHER:
        return cause == DRY_CAUSE_OTHER_MEMORY;
    case DRY_CHANGE_STREAMS:
        return cause == DRY_CAUSE_PENDING;
    case DRY_CHANGE_POOL:
        return cause == DRY_CAUSE_STRANDED;
    case DRY_CHANGE_LIMIT:
        return cause == DRY_CAUSE_LIMIT;
    case DRY_CHANGE_BALANCE:
        return cause == DRY_CAUSE_IMBALANCE;
    case DRY_CHANGE_NO_SETTING:
    case DRY_CHANGE_OWNERS:
    case DRY_CHANGE_CHECKPOINT:
    case DRY_CHANGE_RECORD:
    case DRY_CHANGE_NO_EVIDENCE:
        break;
    }
    return false;
}

static void
measure_finding(struct dry_explanation *e, struct dry_finding *f)
{
    if (f->cause == DRY_CAUSE_FRAGMENTATION && !e->settings)
        f->effect = make_effect_of_less(e, 0);
    for (size_t i = 0; i < e->view.change_count; i++) {
        const struct dry_change *c = &e->changes[i];
        if (c->effect.is_known && removes(c->kind, f->cause) &&
            (!f->effect.is_known || is_better(e, &c->effect, &f->effect)))
            f->effect = c->effect;
    }
}

static bool
has_cause(const struct dry_explanation *e, enum dry_cause cause)
{
    for (size_t i = 0; i < e->view.finding_count; i++) {
        if (e->findings[i].cause == cause)
            return true;
    }
    return false;
}

/* Report a lack of capacity beside a layout whose repair buys little: the sums are at the edge, or
   the growth uses up within a step what a change buys. */
static void
add_capacity_at_edge(struct dry_explanation *e)
{
    const struct dry_finding *first = &e->findings[0];
    bool is_first = is_about_layout(first->cause);
    uint64_t kept = get_wanted(e) - e->view.state->pending;
    bool is_edge = dryi_difference(e->view.budget_bytes, kept) < get_edge(e);
    bool is_brief =
        is_first && first->effect.is_known && get_reach(e, &first->effect) == REACH_NONE;
    if (!(is_first || has_cause(e, DRY_CAUSE_FRAGMENTATION)) ||
        has_cause(e, DRY_CAUSE_CAPACITY) || (!is_edge && !is_brief))
        return;
    uint64_t needed = kept + e->rest_bytes + e->growth_bytes;
    int64_t missing = dryi_difference(needed, e->view.budget_bytes);
    uint64_t bytes = missing > 0 ? (uint64_t)missing : 0;
    struct dry_finding *f =
        dryi_finding_add(e, DRY_CAUSE_CAPACITY, is_brief ? 90 : 60, bytes);
    f->is_tied = is_first && is_edge;
    dryi_prove_budget(e, f);
    if (is_brief && e->growth_bytes > 0)
        snprintf(f->note, sizeof f->note,
                 "the request would fit in another layout, but not one step more of the "
                 "recorded growth");
    else if (is_brief && !is_edge)
        snprintf(
            f->note, sizeof f->note,
            "the request would fit in another layout, but the program was still adding: "
            "how much more it needs was not recorded");
    if (!is_brief)
        return;
    dryi_finding_promote(e);
    dryi_change_owners_first(e, bytes);
}

/* Report fragmentation beside a small lack of capacity, if the pieces that are free would nearly
   serve the request. */
static void
add_pieces_at_edge(struct dry_explanation *e)
{
    const struct dry_explanation_view *w = &e->view;
    if (w->findings[0].cause != DRY_CAUSE_CAPACITY || w->short_bytes == 0 ||
        has_cause(e, DRY_CAUSE_FRAGMENTATION) ||
        dryi_difference(w->short_bytes, 0) >= get_edge(e) ||
        w->short_bytes > w->request_bytes / PIECES_SHARE ||
        e->shortage.lane_free < w->request_bytes / 2)
        return;
    dryi_add_fragmentation(e);
    struct dry_finding *f = &e->findings[w->finding_count - 1];
    f->is_tied = true;
    f->confidence = 60;
}

/* Measure a change by replay, else by sums. Growth and peaks of steps count what waits for a stream,
   so a replay without waiting tells whether the request is served, and not for how long. */
static enum dry_status
measure_change(struct dry_explanation *e, struct dry_change *c, struct dry_error *err)
{
    uint64_t need;
    enum dry_status status = dryi_explain_need(e, c->kind, &need, err);
    bool is_served = need > 0 && need <= dryi_explain_device(e, c->kind);
    bool is_sum = need == 0 || (is_served && c->kind == DRY_CHANGE_STREAMS);
    c->effect = is_sum ? sum_up_change(e, c) : measure_need(e, c->kind, need);
    if (need > 0)
        c->removes_oom = is_served;
    return status;
}

/* Report the lines that use up what the first change buys, however little they hold yet. */
static void
add_leak_to_come(struct dry_explanation *e)
{
    const struct dry_effect *first = &e->findings[0].effect;
    if (first->is_known && first->lasting == DRY_LASTING_STEPS && first->steps > 0 &&
        e->leak_growth_bytes > e->growth_bytes / 2 && !has_cause(e, DRY_CAUSE_LEAK))
        dryi_add_leak(e);
}

enum dry_status
dryi_explain_effects(struct dry_explanation *e, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    measure_growth(e);
    for (size_t i = 0; i < e->view.change_count && status == DRY_OK; i++)
        status = measure_change(e, &e->changes[i], err);
    if (status != DRY_OK)
        return status;
    for (size_t i = 0; i < e->view.finding_count; i++)
        measure_finding(e, &e->findings[i]);
    sort_findings(e);
    sort_changes(e);
    add_capacity_at_edge(e);
    add_pieces_at_edge(e);
    add_leak_to_come(e);
    return DRY_OK;
}
