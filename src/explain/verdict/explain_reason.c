/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Find why the live memory was large. A lack of capacity is not a reason by itself. Memory may
 * grow from step to step, or one step may be larger than those before. Other devices may hold
 * much less, or the record may lack the allocations' owners. Each such reason goes before the
 * capacity that it used up.
 */

#include <stdio.h>

#include "base/bits.h"
#include "explain/steps/steps_inside.h"
#include "explain/verdict/explanation_inside.h"

#define LEAK_BYTES_MIN (16 * DRYI_MIB)
#define LEAK_SHARE 20 /* 1/20 of the active bytes */
#define SPIKE_SHARE 5 /* 1/5 of the budget above all earlier steps */
#define SPIKE_STEPS_MIN 3
#define UNKNOWN_SHARE 4   /* 1/4 of the active bytes */
#define IMBALANCE_RATIO 2 /* times the mean of the other devices */

static bool
is_promoting(const struct dry_explanation *e)
{
    return e->findings[0].cause == DRY_CAUSE_CAPACITY ||
           e->findings[0].cause == DRY_CAUSE_NEAR_LIMIT ||
           e->findings[0].cause == DRY_CAUSE_NONE;
}

/* Move the last finding, a reason, before a lack of capacity. It stays after any other cause, and
   replaces the finding NONE. */
static void
rank(struct dry_explanation *e, bool promotes)
{
    if (!promotes)
        return;
    if (e->findings[0].cause == DRY_CAUSE_NONE)
        e->findings[0] = e->findings[--e->view.finding_count];
    else
        dryi_finding_promote(e);
}

/* --- leak --------------------------------------------------------------------------------- */

bool
dryi_steps_give_back(const struct dry_explanation *e)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(e->steps, &count);
    double rise = 0, fall = 0;
    if (dry_steps_get_source(e->steps) != DRY_STEPS_PERIODICITY ||
        dryi_steps_enclose_models(e->steps))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        const struct dry_step *s = &steps[i];
        uint64_t begin =
            dry_timeline_height(e->subject.timeline, DRY_CURVE_ACTIVE, s->begin);
        if (s->is_partial || s->peak.bytes < begin || s->peak.bytes < s->active_end)
            continue;
        rise += (double)(s->peak.bytes - begin);
        fall += (double)(s->peak.bytes - s->active_end);
    }
    return fall > rise / 2;
}

/* The lines that leave memory behind, and what they left. */
struct leak {
    size_t lines;
    uint64_t bytes;
    double confidence;
};

static struct leak
measure_leak(const struct dry_explanation *e)
{
    struct leak leak = {0};
    size_t count;
    const struct dry_growth *growth = dry_steps_get_growth(e->steps, &count);
    for (size_t i = 0; i < count; i++) {
        if (growth[i].confidence < DRYI_LEAK_CONFIDENCE_MIN)
            continue;
        leak.lines++;
        leak.bytes += growth[i].bytes;
        if (growth[i].confidence > leak.confidence)
            leak.confidence = growth[i].confidence;
    }
    return leak;
}

bool
dryi_add_leak(struct dry_explanation *e)
{
    struct leak leak = measure_leak(e);
    const struct dry_state *s = e->view.state;
    uint32_t step_count;
    dry_steps_get(e->steps, &step_count);
    if (leak.bytes < LEAK_BYTES_MIN || leak.bytes > s->active || !dryi_steps_give_back(e))
        return false;
    struct dry_finding *f = dryi_finding_add(
        e, DRY_CAUSE_LEAK, (unsigned)(leak.confidence * 100.0 + 0.5), leak.bytes);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "active", s->active);
    dryi_proof_right(p, "left behind by earlier steps", leak.bytes);
    dryi_proof_right(p, "everything else", s->active - leak.bytes);
    if (e->view.moment_kind == DRY_MOMENT_AT_OOM) {
        p = dryi_finding_prove(f);
        dryi_proof_left(p, "everything else", s->active - leak.bytes);
        dryi_proof_left(p, "asked for", e->view.request_bytes);
        dryi_proof_right(p, "reserved", s->reserved);
        dryi_proof_right(p, "free on the device", e->view.device_free_bytes);
    }
    snprintf(f->note, sizeof f->note,
             "%zu line%s leave%s memory behind, step after step, in %u steps", leak.lines,
             leak.lines == 1 ? "" : "s", leak.lines == 1 ? "s" : "", step_count);
    return true;
}

static void
find_leak(struct dry_explanation *e)
{
    bool promotes = is_promoting(e);
    if (measure_leak(e).bytes >= e->view.state->active / LEAK_SHARE && dryi_add_leak(e))
        rank(e, promotes);
}

/* --- spike -------------------------------------------------------------------------------- */

/* Return the highest peak of the steps before the moment's. Returns 0 if there are too few to
   compare: the first step also makes caches and optimizer state. */
static uint64_t
earlier_peak(const struct dry_explanation *e)
{
    uint32_t count, whole = 0;
    const struct dry_step *steps = dry_steps_get(e->steps, &count);
    uint64_t peak = 0;
    for (uint32_t i = 0; i < count && i < e->view.step; i++) {
        whole += !steps[i].is_partial;
        if (steps[i].peak.bytes > peak)
            peak = steps[i].peak.bytes;
    }
    return whole >= SPIKE_STEPS_MIN ? peak : 0;
}

static void
add_spike(struct dry_explanation *e)
{
    uint64_t wanted = e->view.state->active + e->view.request_bytes;
    if (e->view.moment_kind != DRY_MOMENT_AT_OOM || e->view.step == DRY_NONE ||
        /* too large even for an empty device */
        e->view.request_bytes > e->view.budget_bytes)
        return;
    uint64_t before = earlier_peak(e);
    /* A step that holds no more than others did is like them: the request alone is large. */
    if (before == 0 || e->view.state->active <= before ||
        wanted - before < e->view.budget_bytes / SPIKE_SHARE)
        return;
    bool promotes = is_promoting(e);
    struct dry_finding *f = dryi_finding_add(e, DRY_CAUSE_SPIKE, 90, wanted - before);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "active", e->view.state->active);
    dryi_proof_left(p, "asked for", e->view.request_bytes);
    dryi_proof_right(p, "the most of any step before", before);
    dryi_proof_right(p, "more than ever", wanted - before);
    rank(e, promotes);
}

/* --- imbalance ---------------------------------------------------------------------------- */

static void
add_imbalance(struct dry_explanation *e)
{
    uint64_t sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < e->view.sibling_count; i++) {
        const struct dry_sibling *s = &e->view.siblings[i];
        sum += s->is_subject ? 0 : s->peak_bytes;
        count += !s->is_subject;
    }
    uint64_t wanted = e->view.state->active + e->view.request_bytes;
    if (count == 0 || sum == 0 || wanted / IMBALANCE_RATIO < sum / count ||
        e->findings[0].cause == DRY_CAUSE_NONE)
        return;
    bool promotes = is_promoting(e);
    struct dry_finding *f =
        dryi_finding_add(e, DRY_CAUSE_IMBALANCE, 95, wanted - sum / count);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "active", e->view.state->active);
    if (e->view.request_bytes)
        dryi_proof_left(p, "asked for", e->view.request_bytes);
    dryi_proof_right(p, "mean of the other devices' peaks", sum / count);
    snprintf(f->note, sizeof f->note, "%.1f times the mean of %zu other device%s",
             (double)wanted / ((double)sum / (double)count), count,
             count == 1 ? "" : "s");
    rank(e, promotes);
}

/* --- overflow ----------------------------------------------------------------------------- */

static void
add_overflow(struct dry_explanation *e)
{
    const struct dry_explanation_view *w = &e->view;
    uint64_t active = w->state->active;
    uint64_t known = w->covered_bytes < active ? w->covered_bytes : active;
    if (w->unmatched_frees == 0 || active - known <= active / UNKNOWN_SHARE)
        return;
    /* Without an OOM the finding is reported, but not as the verdict. */
    bool promotes = is_promoting(e) && e->view.moment_kind == DRY_MOMENT_AT_OOM;
    struct dry_finding *f = dryi_finding_add(e, DRY_CAUSE_OVERFLOW, 90, active - known);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "active", active);
    dryi_proof_right(p, "of known lines", known);
    dryi_proof_right(p, "of unknown lines", active - known);
    snprintf(f->note, sizeof f->note,
             "%u free%s whose allocation is not in the recording: its beginning was "
             "overwritten, or recording began late",
             w->unmatched_frees,
             w->unmatched_frees == 1 ? " is of a block" : "s are of blocks");
    rank(e, promotes);
}

void
dryi_explain_reasons(struct dry_explanation *e)
{
    add_overflow(e);
    add_spike(e);
    find_leak(e);
    add_imbalance(e);
}
