/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Find the cause of an OOM from where the bytes were.
 *
 * The allocator had already waited for streams and released whole free segments. The budget is the
 * most that it could use: its reserved bytes plus the free bytes of the device. If live memory and
 * the request exceed the budget, no layout would have helped. Otherwise the place of the free
 * bytes decides the cause.
 */

#include <stdio.h>

#include "base/bits.h"
#include "base/fail.h"
#include "explain/verdict/explanation_inside.h"

#define SMALL_REQUEST_MAX DRYI_MIB /* rounded requests up to 1 MiB use the small pool */
/* 1 EiB: more than any device has. */
#define REQUEST_BYTES_MAX (UINT64_C(1) << 60)
/* Without an OOM, waste is reported from this many bytes on. */
#define WASTE_BYTES_MIN (64 * DRYI_MIB)
#define NEARLY_FULL 0.95
#define WASTE_SHARE 20 /* waste is reported from 1/20 of the reserved bytes on */
#define CACHED_SHARE 5 /* and from 1/5 on where more is free as whole segments */
/* About what a context, cuBLAS's workspaces and NCCL's buffers take on any device. */
#define USUAL_OTHER_BYTES (2 * DRYI_GIB)

/* Capacities of cards on sale, in GiB. The driver reports slightly less. */
static const uint64_t nominal_gib[] = {4,  6,  8,  10, 11, 12, 16,  20,  22,  24,  32, 40,
                                       44, 48, 64, 80, 94, 96, 141, 180, 192, 256, 288};

/* --- the sums ----------------------------------------------------------------------------- */

static bool
is_same_lane(const struct dry_lane *a, const struct dry_lane *b)
{
    return a->stream == b->stream && a->pool_a == b->pool_a && a->pool_b == b->pool_b;
}

static void
sum_up_pools(struct dryi_shortage *s, const struct dry_state *state,
             const struct dry_lane *lanes, const struct dry_lane *lane, bool is_large)
{
    for (size_t i = 0; i < state->pool_count; i++) {
        const struct dry_state_pool *pool = &state->pools[i];
        const struct dry_lane *other = &lanes[pool->lane];
        uint64_t free_bytes = pool->stranded + pool->releasable;
        if (is_same_lane(lane, other) && pool->is_large == is_large) {
            s->lane_free += free_bytes;
            s->lane_hole = pool->largest_free;
        } else if (is_same_lane(lane, other)) {
            s->class_free += free_bytes;
        } else if (lane->pool_a != other->pool_a || lane->pool_b != other->pool_b) {
            s->private_free += free_bytes;
        } else {
            s->stream_free += free_bytes;
        }
    }
}

/* Return the moment before the events that a failing request causes: completed frees
   and released segments. */
static uint32_t
find_ladder(const struct dry_explanation *e)
{
    const struct dry_trace_view *v = e->subject.timeline->trace;
    uint32_t m = e->view.moment;
    while (m > 0) {
        size_t i = e->timeline->first_event + m - 1;
        enum dry_action action = v->action[i];
        bool is_completion = action == DRY_ACTION_FREE_COMPLETED &&
                             !(m > 1 && v->action[i - 1] == DRY_ACTION_FREE_REQUESTED &&
                               v->addr[i - 1] == v->addr[i]);
        if (!is_completion && action != DRY_ACTION_SEGMENT_FREE &&
            action != DRY_ACTION_SEGMENT_UNMAP)
            break;
        m--;
    }
    return m;
}

/* Set the largest free block and the pending bytes as they were before the request's retry. */
static enum dry_status
measure_before_ladder(struct dry_explanation *e, const struct dry_lane *lane,
                      bool is_large, struct dry_error *err)
{
    uint32_t before = find_ladder(e);
    struct dryi_shortage *s = &e->shortage;
    s->hole_before = s->lane_hole;
    s->pending_before = e->state->pending;
    if (before == e->view.moment)
        return DRY_OK;
    struct dry_state *state;
    enum dry_status status = dry_state_create(e->subject.timeline, before, &state, err);
    if (status != DRY_OK)
        return status;
    struct dryi_shortage then = {0};
    sum_up_pools(&then, state, e->subject.timeline->trace->lanes, lane, is_large);
    s->hole_before = then.lane_hole;
    s->pending_before = state->pending;
    dry_state_destroy(state);
    return DRY_OK;
}

enum dry_status
dryi_explain_shortage(struct dry_explanation *e, struct dry_error *err)
{
    const struct dry_trace_view *v = e->subject.timeline->trace;
    struct dry_explanation_view *w = &e->view;
    struct dryi_shortage *s = &e->shortage;
    if (w->request_bytes > REQUEST_BYTES_MAX)
        w->request_bytes = REQUEST_BYTES_MAX;
    if (w->device_free_bytes > DRYI_TIMELINE_BYTES_MAX)
        w->device_free_bytes = DRYI_TIMELINE_BYTES_MAX;
    const struct dry_lane *lane = &v->lanes[v->lane[w->event]];
    bool is_large = w->request_bytes > SMALL_REQUEST_MAX;
    s->need =
        dryi_torch_segment_size(dryi_replay_conf(e->subject.replay), w->request_bytes);
    s->is_limited = w->device_free_bytes >= s->need;
    w->budget_bytes = w->state->reserved + w->device_free_bytes;
    uint64_t wanted = w->state->active + w->request_bytes;
    w->short_bytes = wanted > w->budget_bytes ? wanted - w->budget_bytes : 0;
    if (e->options.total_bytes > w->budget_bytes)
        w->other_bytes = e->options.total_bytes - w->budget_bytes;
    sum_up_pools(s, w->state, v->lanes, lane, is_large);
    return measure_before_ladder(e, lane, is_large, err);
}

/* --- findings ----------------------------------------------------------------------------- */

void
dryi_prove_budget(struct dry_explanation *e, struct dry_finding *f)
{
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "active", e->view.state->active);
    dryi_proof_left(p, "asked for", e->view.request_bytes);
    dryi_proof_right(p, "reserved", e->view.state->reserved);
    dryi_proof_right(p, "free on the device", e->view.device_free_bytes);
}

static void
add_limit(struct dry_explanation *e)
{
    const struct dryi_torch_conf *conf = dryi_replay_conf(e->subject.replay);
    bool is_in_conf = conf->per_process_memory_fraction < 1.0;
    struct dry_finding *f = dryi_finding_add(e, DRY_CAUSE_LIMIT, is_in_conf ? 100 : 85,
                                             e->view.device_free_bytes);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "needed from the device", e->shortage.need);
    dryi_proof_right(p, "free on the device", e->view.device_free_bytes);
    if (is_in_conf)
        snprintf(f->note, sizeof f->note,
                 "per_process_memory_fraction is %.3g in the recorded settings",
                 conf->per_process_memory_fraction);
    else
        snprintf(f->note, sizeof f->note,
                 "the device had room: a memory fraction set by the program "
                 "(set_per_process_memory_fraction), or by who runs the device");
}

/* Guess the card's capacity: the smallest nominal size that is at least the budget. */
static uint64_t
guess_total(uint64_t budget)
{
    for (size_t i = 0; i < sizeof nominal_gib / sizeof *nominal_gib; i++) {
        if (budget <= nominal_gib[i] * DRYI_GIB)
            return nominal_gib[i] * DRYI_GIB;
    }
    return 0;
}

/* Report other memory, if the request would have fit without it. An assumed
   size is no evidence if the request fits in another layout. */
static void
add_other(struct dry_explanation *e)
{
    const struct dry_explanation_view *w = &e->view;
    uint64_t earlier = e->timeline->peaks[DRY_CURVE_RESERVED].bytes;
    uint64_t total = e->options.total_bytes;
    bool is_known = total > 0;
    bool has_shrunk = !is_known && earlier > w->budget_bytes &&
                      e->timeline->peaks[DRY_CURVE_RESERVED].moment < w->moment;
    if (has_shrunk)
        total = earlier; /* lower bound */
    else if (!is_known)
        total = guess_total(w->budget_bytes);
    if (total <= w->budget_bytes)
        return;
    uint64_t other = total - w->budget_bytes;
    uint64_t least = is_known || has_shrunk ? total / 10 : total / 4;
    uint64_t usual = has_shrunk ? 0 : USUAL_OTHER_BYTES;
    if (w->short_bytes == 0 && !is_known && !has_shrunk)
        return;
    if (other < least || other < usual || w->short_bytes > other - usual)
        return;
    unsigned confidence = is_known ? 100 : has_shrunk ? 90 : 30;
    e->shortage.other_bytes = other - usual;
    struct dry_finding *f =
        dryi_finding_add(e, DRY_CAUSE_OTHER_MEMORY, confidence, other);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, has_shrunk ? "reserved earlier" : "the device", total);
    dryi_proof_right(p, "reserved", w->state->reserved);
    dryi_proof_right(p, "free on the device", w->device_free_bytes);
    dryi_proof_right(p, "not PyTorch's", other);
    f->is_assumed = !is_known && !has_shrunk;
    if (f->is_assumed)
        snprintf(f->note, sizeof f->note,
                 "the file does not say how large the device is: the size is assumed");
    else if (w->short_bytes > 0)
        dryi_finding_promote(e);
}

static void
add_capacity(struct dry_explanation *e)
{
    uint64_t requested = e->view.state->requested + e->view.request_bytes;
    bool is_certain = requested > e->view.budget_bytes;
    struct dry_finding *f = dryi_finding_add(e, DRY_CAUSE_CAPACITY, is_certain ? 100 : 90,
                                             e->view.short_bytes);
    dryi_prove_budget(e, f);
}

/* Return whether enough was free only after the streams were done: the retry
   tries the device alone. */
static bool
came_too_late(const struct dryi_shortage *s, uint64_t request)
{
    return s->lane_hole >= request && s->hole_before < request;
}

static void
prove_lateness(struct dry_explanation *e, struct dry_finding *f)
{
    const struct dryi_shortage *s = &e->shortage;
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "largest free block before", s->hole_before);
    dryi_proof_right(p, "asked for", e->view.request_bytes);
    p = dryi_finding_prove(f);
    dryi_proof_left(p, "asked for", e->view.request_bytes);
    dryi_proof_right(p, "largest free block once the streams were done", s->lane_hole);
    snprintf(
        f->note, sizeof f->note,
        "the blocks waited for other streams; when they came back the retry asked the "
        "device alone");
}

/* Prove that the request fits with the allocated bytes, but not with pending frees in addition. */
static void
prove_waiting(struct dry_explanation *e, struct dry_finding *f)
{
    dryi_prove_budget(e, f);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "allocated", e->view.state->allocated);
    dryi_proof_left(p, "asked for", e->view.request_bytes);
    dryi_proof_right(p, "reserved", e->view.state->reserved);
    dryi_proof_right(p, "free on the device", e->view.device_free_bytes);
    snprintf(f->note, sizeof f->note,
             "the rest of what is active was given back and still waits for streams");
}

static void
add_pending(struct dry_explanation *e)
{
    const struct dryi_shortage *s = &e->shortage;
    struct dry_finding *f =
        dryi_finding_add(e, DRY_CAUSE_PENDING, 100, s->pending_before);
    if (came_too_late(s, e->view.request_bytes))
        prove_lateness(e, f);
    else
        prove_waiting(e, f);
}

/* Note that without fragmentation the request would fit, but little more. */
static void
note_fullness(const struct dry_explanation *e, struct dry_finding *f)
{
    double budget = (double)e->view.budget_bytes;
    double wanted = (double)(e->view.state->active + e->view.request_bytes);
    if (wanted / budget > NEARLY_FULL)
        snprintf(f->note, sizeof f->note,
                 "what is in use and what was asked for are %.1f %% of all PyTorch could "
                 "have: a little more and it is capacity",
                 wanted / budget * 100);
}

void
dryi_add_fragmentation(struct dry_explanation *e)
{
    const struct dryi_shortage *s = &e->shortage;
    struct dry_finding *f =
        dryi_finding_add(e, DRY_CAUSE_FRAGMENTATION, 100, s->lane_free);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "free in blocks of this pool", s->lane_free);
    dryi_proof_left(p, "free on the device", e->view.device_free_bytes);
    dryi_proof_right(p, "asked for", e->view.request_bytes);
    p = dryi_finding_prove(f);
    dryi_proof_left(p, "largest free block", s->lane_hole);
    dryi_proof_right(p, "asked for", e->view.request_bytes);
    if (s->lane_hole >= e->view.request_bytes) {
        f->confidence = 60;
        snprintf(f->note, sizeof f->note,
                 "a block was large enough, but reserved for larger requests "
                 "(max_split_size_mb), or freed after it was looked for");
    } else {
        note_fullness(e, f);
    }
}

static void
add_stranded(struct dry_explanation *e)
{
    const struct dryi_shortage *s = &e->shortage;
    uint64_t elsewhere = s->class_free + s->stream_free + s->private_free;
    struct dry_finding *f = dryi_finding_add(e, DRY_CAUSE_STRANDED, 100, elsewhere);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "free for this request", s->lane_free);
    dryi_proof_left(p, "free on the device", e->view.device_free_bytes);
    dryi_proof_right(p, "asked for", e->view.request_bytes);
    p = dryi_finding_prove(f);
    dryi_proof_left(p, "free elsewhere", elsewhere);
    if (s->private_free)
        dryi_proof_right(p, "in other pools", s->private_free);
    if (s->stream_free)
        dryi_proof_right(p, "of other streams", s->stream_free);
    if (s->class_free)
        dryi_proof_right(p, "of the other size class", s->class_free);
}

/* Explain an OOM under a limit: the device had space, but only reserved memory
   could serve the request. */
static void
explain_limited(struct dry_explanation *e)
{
    add_limit(e);
    if (e->shortage.lane_free >= e->view.request_bytes)
        dryi_add_fragmentation(e);
}

void
dryi_explain_oom(struct dry_explanation *e)
{
    const struct dryi_shortage *s = &e->shortage;
    const struct dry_explanation_view *w = &e->view;
    uint64_t elsewhere = s->class_free + s->stream_free + s->private_free;
    uint64_t own = s->lane_free + w->device_free_bytes;
    bool is_short = w->short_bytes > 0;
    if (s->is_limited) {
        explain_limited(e);
    } else if (came_too_late(s, w->request_bytes) ||
               (is_short && w->state->pending >= w->short_bytes)) {
        add_pending(e);
    } else if (is_short) {
        add_capacity(e);
        add_other(e);
    } else {
        if (own >= w->request_bytes)
            dryi_add_fragmentation(e);
        if (own < w->request_bytes || elsewhere > s->lane_free)
            add_stranded(e);
        add_other(e);
    }
}

/* Report a program that ran near the limit: each retry reached the device's capacity, and
   the program continued. */
static void
add_near_limit(struct dry_explanation *e)
{
    const struct dry_replay_recorded *r = dry_replay_get_recorded(e->subject.replay);
    size_t retries = dry_replay_get_check(e->subject.replay)->retry_count;
    if (r->oom || r->capacity_high_bytes == 0 || e->options.is_simulated)
        return;
    struct dry_finding *f =
        dryi_finding_add(e, DRY_CAUSE_NEAR_LIMIT, retries > 1 ? 100 : 90,
                         r->capacity_high_bytes - r->capacity_low_bytes);
    struct dry_proof *p = dryi_finding_prove(f);
    dryi_proof_left(p, "refused to a first try", r->capacity_high_bytes);
    dryi_proof_right(p, "most that was ever reserved", r->capacity_low_bytes);
    snprintf(f->note, sizeof f->note,
             "the room for PyTorch lies between the two; %zu retr%s waited for every "
             "stream, gave the cache back to the driver and asked again",
             retries, retries == 1 ? "y" : "ies");
}

void
dryi_explain_waste(struct dry_explanation *e)
{
    const struct dry_state *s = e->view.state;
    add_near_limit(e);
    /* Before the first event pending frees may be done already: the completion is not recorded. */
    if (e->view.moment > 0 && s->pending > WASTE_BYTES_MIN &&
        s->pending > s->active / 10) {
        struct dry_finding *f = dryi_finding_add(e, DRY_CAUSE_PENDING, 80, s->pending);
        struct dry_proof *p = dryi_finding_prove(f);
        dryi_proof_left(p, "active", s->active);
        dryi_proof_right(p, "allocated", s->allocated);
        dryi_proof_right(p, "waiting for streams", s->pending);
    }
    if (s->unplaced_bytes > WASTE_BYTES_MIN && s->unplaced_bytes > s->active / 10)
        dryi_finding_add(e, DRY_CAUSE_UNKNOWN, 0, s->unplaced_bytes);
    uint64_t share =
        s->reserved / (s->releasable > s->stranded ? CACHED_SHARE : WASTE_SHARE);
    if (s->stranded > WASTE_BYTES_MIN && s->stranded > share) {
        struct dry_finding *f =
            dryi_finding_add(e, DRY_CAUSE_FRAGMENTATION, 80, s->stranded);
        struct dry_proof *p = dryi_finding_prove(f);
        dryi_proof_left(p, "reserved", s->reserved);
        dryi_proof_right(p, "active", s->active);
        dryi_proof_right(p, "releasable", s->releasable);
        dryi_proof_right(p, "stranded", s->stranded);
        if (s->releasable > s->stranded)
            snprintf(f->note, sizeof f->note,
                     "most free bytes are whole segments, which go back to the driver "
                     "before anything fails: only what is stranded is in pieces");
    }
    if (e->view.finding_count == 0) {
        bool is_of_driver = e->subject.timeline->trace->is_of_driver;
        bool is_known = !is_of_driver && dryi_timeline_tells_requests(e->timeline);
        enum dry_cause cause = is_known ? DRY_CAUSE_NONE : DRY_CAUSE_UNKNOWN;
        struct dry_finding *f = dryi_finding_add(e, cause, is_known ? 100 : 0, 0);
        if (!is_known)
            snprintf(
                f->note, sizeof f->note,
                is_of_driver
                    ? "the file does not tell whether the driver refused an allocation"
                    : "without events the file does not tell whether a request failed");
        struct dry_proof *p = dryi_finding_prove(f);
        dryi_proof_left(p, "reserved", s->reserved);
        dryi_proof_right(p, "active", s->active);
        dryi_proof_right(p, "releasable", s->releasable);
        dryi_proof_right(p, "stranded", s->stranded);
    }
}
