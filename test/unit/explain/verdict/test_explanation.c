/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The verdict on every labelled case, its sums against what the allocator knew, and what it
 * says to change against what a replay does.
 *
 * test_explanation --table prints what is said of each case of the third set first.
 */

#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "cases/cases.h"
#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/record_builder.h"

#define DEVICES_MAX 8

struct made {
    const struct labelled_case *label;
    struct case_truth truth;
    struct dry_trace *snapshot;
    struct dry_explain_device devices[DEVICES_MAX];
    struct dry_timeline *timelines[DEVICES_MAX];
    size_t device_count;
    struct dry_explain_options options;
    struct dry_explanation *explanation;
    const struct dry_explanation_view *view;
};

#define HOLDS(made, condition)                                                           \
    do {                                                                                 \
        if (!(condition))                                                                \
            fail_msg("case %s: not so: %s", (made)->label->name, #condition);            \
    } while (0)

static void
open_devices(struct made *m)
{
    const struct dry_trace_view *v = dry_trace_get_view(m->snapshot);
    for (size_t i = 0; i < v->device_count; i++) {
        struct dry_replay_options options;
        dry_replay_options_init(&options);
        options.device = v->devices[i].device;
        struct dry_explain_device *d = &m->devices[m->device_count];
        assert_true(m->device_count < DEVICES_MAX);
        assert_int_equal(dry_replay_create(m->snapshot, &options, &d->replay, NULL),
                         DRY_OK);
        assert_int_equal(
            dry_timeline_create(d->replay, NULL, &m->timelines[m->device_count], NULL),
            DRY_OK);
        d->timeline = m->timelines[m->device_count];
        if (options.device == m->truth.device)
            m->options.subject = m->device_count;
        m->device_count++;
    }
}

static void
make(struct made *m, const struct labelled_case *label)
{
    struct dry_error err;
    *m = (struct made){.label = label};
    if (case_make(label, &m->snapshot, &m->truth, &err) != DRY_OK)
        fail_msg("case %s: %s", label->name, err.text);
    dry_explain_options_init(&m->options);
    open_devices(m);
    m->options.devices = m->devices;
    m->options.device_count = m->device_count;
    /* A snapshot does not say how large the device is; only here does it matter. */
    if (label->cause == DRY_CAUSE_OTHER_MEMORY)
        m->options.total_bytes = label->total_bytes;
    if (dry_explanation_create(&m->options, &m->explanation, &err) != DRY_OK)
        fail_msg("case %s: %s", label->name, err.text);
    m->view = dry_explanation_get_view(m->explanation);
}

static void
drop(struct made *m)
{
    dry_explanation_destroy(m->explanation);
    for (size_t i = 0; i < m->device_count; i++) {
        dry_timeline_destroy(m->timelines[i]);
        dry_replay_destroy(m->devices[i].replay);
    }
    dry_trace_destroy(m->snapshot);
}

static void
for_each_between(size_t begin, size_t end, void (*holds)(const struct made *m))
{
    for (size_t i = begin; i < end; i++) {
        struct made m;
        make(&m, case_at(i));
        holds(&m);
        drop(&m);
    }
}

static void
for_each_case(void (*holds)(const struct made *m))
{
    for_each_between(0, case_count(), holds);
}

/* --- the verdict -------------------------------------------------------------------------- */

static bool
has_finding(const struct dry_explanation_view *v, enum dry_cause cause)
{
    for (size_t i = 0; i < v->finding_count; i++) {
        if (v->findings[i].cause == cause)
            return true;
    }
    return false;
}

static void
is_labelled(const struct made *m)
{
    const struct dry_explanation_view *v = m->view;
    if (v->findings[0].cause != m->label->cause)
        fail_msg("case %s: the verdict is %s, not %s", m->label->name,
                 dry_cause_name(v->findings[0].cause), dry_cause_name(m->label->cause));
    if (m->label->second != DRY_CAUSE_NONE)
        HOLDS(m, has_finding(v, m->label->second));
}

static void
the_verdict_is_the_label(void **state)
{
    (void)state;
    for_each_between(0, case_third_begin(), is_labelled);
}

static const struct dry_change *
find_change(const struct dry_explanation_view *v, enum dry_change_kind kind)
{
    for (size_t i = 0; i < v->change_count; i++) {
        if (v->changes[i].kind == kind)
            return &v->changes[i];
    }
    return NULL;
}

/* Neither cause is claimed of a case that has the other. */
static void
has_no_foreign_finding(const struct made *m)
{
    for (size_t i = 0; i < m->view->finding_count; i++) {
        enum dry_cause cause = m->view->findings[i].cause;
        bool is_sure = m->view->findings[i].confidence >= 80;
        if (is_sure && cause != m->label->cause && cause != m->label->second &&
            m->label->second != DRY_CAUSE_NONE)
            fail_msg("case %s: %s is claimed besides", m->label->name,
                     dry_cause_name(cause));
    }
}

static void
nothing_else_is_claimed(void **state)
{
    (void)state;
    for_each_between(0, case_third_begin(), has_no_foreign_finding);
}

/* --- the third set ------------------------------------------------------------------------ */

#define FIRST 1U  /* another cause comes first */
#define SECOND 2U /* the second is not told */
#define ADVICE 4U /* a setting is named that does not help, or none though one does */

/* Sums that differ by less than a fiftieth: either cause may come first. */
static bool
is_tie(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    const struct labelled_case *l = m->label;
    uint64_t room = case_allowed_bytes(t), need = t->live_bytes + t->rounded_bytes;
    uint64_t distance = need > room ? need - room : room - need;
    return distance <= room / 50 &&
           ((l->cause == DRY_CAUSE_CAPACITY && l->second == DRY_CAUSE_FRAGMENTATION) ||
            (l->cause == DRY_CAUSE_FRAGMENTATION && l->second == DRY_CAUSE_CAPACITY));
}

/* Run anew under the setting, the program makes a step more or does not fail. */
static bool
lasts_longer(const struct made *m, const char *setting)
{
    struct labelled_case twin = *m->label;
    struct case_truth truth;
    struct dry_trace *snapshot;
    twin.conf = setting;
    assert_int_equal(case_make(&twin, &snapshot, &truth, NULL), DRY_OK);
    dry_trace_destroy(snapshot);
    return !truth.has_oom || truth.step_count > m->truth.step_count;
}

/* A limit has a change of its own, and needs no setting beside it. What only puts the failure off is
   no advice. */
static bool
is_advised_rightly(const struct made *m)
{
    const struct labelled_case *l = m->label;
    const struct dry_change *c = find_change(m->view, DRY_CHANGE_SETTING);
    bool is_limit = l->cause == DRY_CAUSE_LIMIT || l->second == DRY_CAUSE_LIMIT;
    if (c && c->effect.lasting == DRY_LASTING_LITTLE)
        c = NULL;
    if (is_limit || !l->setting_helps)
        return c == NULL;
    return c && lasts_longer(m, c->setting);
}

static unsigned
find_wrong(const struct made *m)
{
    const struct labelled_case *l = m->label;
    enum dry_cause said = m->view->findings[0].cause;
    bool is_first = said == l->cause || (is_tie(m) && said == l->second);
    bool is_second = (l->second == DRY_CAUSE_NONE || has_finding(m->view, l->second)) &&
                     (!is_tie(m) || has_finding(m->view, l->cause));
    return (is_first ? 0 : FIRST) | (is_second ? 0 : SECOND) |
           (is_advised_rightly(m) ? 0 : ADVICE);
}

static void
print_third(const struct made *m)
{
    unsigned wrong = find_wrong(m);
    const struct dry_change *setting = find_change(m->view, DRY_CHANGE_SETTING);
    printf("%-24s %s/%s, %s:", m->label->name, dry_cause_name(m->label->cause),
           dry_cause_name(m->label->second), m->label->helps ? m->label->helps : "-");
    for (size_t i = 0; i < m->view->finding_count; i++)
        printf(" %s", dry_cause_name(m->view->findings[i].cause));
    printf(", %s%s%s%s\n", setting ? setting->setting : "-",
           wrong & FIRST ? " FIRST" : "", wrong & SECOND ? " SECOND" : "",
           wrong & ADVICE ? " ADVICE" : "");
}

static void
is_nowhere_wrong(const struct made *m)
{
    unsigned wrong = find_wrong(m);
    if (wrong != 0)
        fail_msg("case %s: wrong are %u", m->label->name, wrong);
}

static void
the_third_set_is_as_labelled(void **state)
{
    (void)state;
    for_each_between(case_third_begin(), case_count(), is_nowhere_wrong);
}

/* --- what changes buy --------------------------------------------------------------------- */

/* The order of a list by what lasts: more steps first, and the end of the record before any. */
static uint64_t
get_steps(const struct dry_effect *effect)
{
    if (!effect->is_known || effect->headroom_bytes < 0)
        return 0;
    if (effect->lasting == DRY_LASTING_LITTLE)
        return 0;
    return effect->lasting == DRY_LASTING_STEPS ? effect->steps : UINT64_MAX;
}

static void
changes_last_in_order(const struct made *m)
{
    const struct dry_explanation_view *v = m->view;
    bool is_brief = v->change_count > 0 && v->changes[0].kind == DRY_CHANGE_OWNERS;
    for (size_t i = is_brief ? 2 : 1; i < v->change_count; i++) {
        HOLDS(m, v->changes[i - 1].effect.is_known || !v->changes[i].effect.is_known);
        HOLDS(m,
              get_steps(&v->changes[i - 1].effect) >= get_steps(&v->changes[i].effect));
    }
}

/* What buys less than a step is not the verdict. */
static void
the_first_cause_lasts(const struct made *m)
{
    const struct dry_finding *f = &m->view->findings[0];
    if (f->effect.is_known)
        HOLDS(m, get_steps(&f->effect) > 0);
}

/* A setting passes the failure on a device that is smaller by its headroom. */
static void
headroom_is_what_a_replay_has(const struct made *m)
{
    for (size_t i = 0; i < m->view->change_count; i++) {
        const struct dry_change *c = &m->view->changes[i];
        if (!c->effect.is_replayed || c->kind != DRY_CHANGE_SETTING)
            continue;
        struct dry_run_options options;
        struct dry_run run;
        dry_run_options_init(&options);
        options.conf = c->setting;
        options.begin_anew = true;
        options.past_event = m->view->event;
        uint64_t headroom = (uint64_t)c->effect.headroom_bytes;
        uint64_t capacity = dry_recommend_get_summary(m->view->settings)->capacity_bytes;
        options.capacity_bytes = capacity - headroom;
        assert_int_equal(
            dry_replay_run(m->devices[m->options.subject].replay, &options, &run, NULL),
            DRY_OK);
        HOLDS(m, run.gets_past);
    }
}

static void
is_judged_by_what_it_buys(const struct made *m)
{
    changes_last_in_order(m);
    the_first_cause_lasts(m);
    headroom_is_what_a_replay_has(m);
}

static void
changes_are_judged_by_what_they_buy(void **state)
{
    (void)state;
    for_each_case(is_judged_by_what_it_buys);
}

/* What a leak, others' memory and other pools take is shown by replay. A record whose failure does
   not come back shows nothing. */
static void
is_shown_by_replay(const struct made *m)
{
    const struct dry_explanation_view *v = m->view;
    if (v->moment_kind != DRY_MOMENT_AT_OOM || has_finding(v, DRY_CAUSE_LIMIT) ||
        find_change(v, DRY_CHANGE_NO_EVIDENCE))
        return;
    static const enum dry_change_kind kinds[] = {DRY_CHANGE_LEAK, DRY_CHANGE_OTHER,
                                                 DRY_CHANGE_POOL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct dry_change *c = find_change(v, kinds[i]);
        HOLDS(m, !c || (c->effect.is_known && c->effect.is_replayed));
        HOLDS(m, !c || c->removes_oom == (c->effect.headroom_bytes >= 0));
    }
    const struct dry_change *streams = find_change(v, DRY_CHANGE_STREAMS);
    HOLDS(m, !streams || streams->removes_oom);
}

static void
changes_to_the_program_are_replayed(void **state)
{
    (void)state;
    for_each_case(is_shown_by_replay);
}

/* Return the smallest device on which the program runs that lets go of everything. */
static uint64_t
find_need_without_leak(const struct made *m)
{
    struct labelled_case twin = *m->label;
    struct dry_run_options options;
    struct dry_run run;
    struct dry_trace *snapshot;
    struct dry_replay *replay;
    struct dry_replay_options which;
    dry_replay_options_init(&which);
    which.device = m->truth.device;
    twin.without = DRY_CAUSE_LEAK;
    assert_int_equal(case_make(&twin, &snapshot, NULL, NULL), DRY_OK);
    assert_int_equal(dry_replay_create(snapshot, &which, &replay, NULL), DRY_OK);
    dry_run_options_init(&options);
    options.begin_anew = options.find_capacity = true;
    assert_int_equal(dry_replay_run(replay, &options, &run, NULL), DRY_OK);
    dry_replay_destroy(replay);
    dry_trace_destroy(snapshot);
    return run.capacity_bytes;
}

/* The twin's device holds each step's peak. The failure may lie below that, and blocks elsewhere. */
static void
leaves_what_the_twin_has(const struct made *m)
{
    const struct dry_change *c = find_change(m->view, DRY_CHANGE_LEAK);
    if (m->label->cause != DRY_CAUSE_LEAK || !c || !c->effect.is_replayed)
        return;
    uint64_t device = m->view->budget_bytes - (uint64_t)c->effect.headroom_bytes;
    uint64_t twin = find_need_without_leak(m);
    uint64_t distance = device > twin ? device - twin : twin - device;
    HOLDS(m, distance <= m->view->budget_bytes / 9);
}

static void
a_leak_let_go_leaves_what_its_absence_leaves(void **state)
{
    (void)state;
    for_each_between(case_third_begin(), case_count(), leaves_what_the_twin_has);
}

/* --- the sums ----------------------------------------------------------------------------- */

static void
sums_are_true(const struct made *m)
{
    const struct dry_explanation_view *v = m->view;
    const struct dry_state *s = v->state;
    HOLDS(m, s->reserved == s->active + s->releasable + s->stranded);
    HOLDS(m, s->active == s->allocated + s->pending);
    HOLDS(m, v->unexplained_bytes == 0);
    HOLDS(m, dry_owners_total(v->owners) == s->active);
    if (!m->truth.has_oom || m->label->has_no_events)
        return;
    HOLDS(m, v->moment_kind == DRY_MOMENT_AT_OOM);
    HOLDS(m, v->event == m->truth.oom_event);
    HOLDS(m, s->allocated == m->truth.live_bytes);
    HOLDS(m, s->pending == m->truth.pending_bytes);
    HOLDS(m, s->pending > 0 || s->requested == m->truth.requested_bytes);
    HOLDS(m, s->reserved == m->truth.reserved_bytes);
    HOLDS(m, v->request_bytes == m->truth.rounded_bytes);
    HOLDS(m, v->device_free_bytes == m->truth.device_free_bytes);
    HOLDS(m, v->budget_bytes == v->device_free_bytes + s->reserved);
}

static void
the_sums_are_the_allocators(void **state)
{
    (void)state;
    for_each_case(sums_are_true);
}

static uint64_t
sum(const struct dry_proof_term *terms, unsigned count)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        bytes += terms[i].bytes;
    return bytes;
}

static void
holds_by_its_sums(const struct made *m, const struct dry_proof *p)
{
    HOLDS(m, p->left_count > 0 && p->right_count > 0);
    HOLDS(m, p->left_sum == sum(p->left, p->left_count));
    HOLDS(m, p->right_sum == sum(p->right, p->right_count));
    HOLDS(m, p->relation != '=' || p->left_sum == p->right_sum);
    HOLDS(m, p->relation != '<' || p->left_sum < p->right_sum);
    HOLDS(m, p->relation != '>' || p->left_sum > p->right_sum);
}

static void
proofs_hold(const struct made *m)
{
    for (size_t i = 0; i < m->view->finding_count; i++) {
        const struct dry_finding *f = &m->view->findings[i];
        for (unsigned k = 0; k < f->proof_count; k++)
            holds_by_its_sums(m, &f->proofs[k]);
    }
}

static void
every_proof_adds_up(void **state)
{
    (void)state;
    for_each_case(proofs_hold);
}

/* --- options and errors ------------------------------------------------------------------- */

static void
nothing_is_replayed_if_told_so(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("fragmentation-varlen"));
    dry_explanation_destroy(m.explanation);
    m.options.run_max = 0;
    assert_int_equal(dry_explanation_create(&m.options, &m.explanation, NULL), DRY_OK);
    m.view = dry_explanation_get_view(m.explanation);
    assert_null(m.view->settings);
    assert_int_equal(m.view->findings[0].cause, DRY_CAUSE_FRAGMENTATION);
    drop(&m);
}

#define MIB (UINT64_C(1) << 20)
#define BASE UINT64_C(0x7f0000000000)

/* Steps that keep 20 MiB each, beside 600 MiB of which only the frees are recorded. */
static void
build_a_leak_beside_carried_over_blocks(struct record_builder *s)
{
    const uint64_t carried = BASE + 3000 * MIB, kept = BASE + 1000 * MIB;
    record_builder_begin(s);
    record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, BASE, 100 * MIB);
    record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, BASE + 200 * MIB, 100 * MIB);
    record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, kept, 240 * MIB);
    record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, carried, 600 * MIB);
    for (unsigned i = 0; i < 12; i++) {
        const char *const code[] = {"forward", "backward"};
        for (unsigned k = 0; k < 2; k++) {
            record_builder_stack(s, code[k]);
            record_builder_event(s, DRY_ACTION_ALLOC, BASE + k * 200 * MIB, 100 * MIB);
            record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE + k * 200 * MIB,
                                 100 * MIB);
            record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE + k * 200 * MIB,
                                 100 * MIB);
        }
        record_builder_stack(s, "append");
        record_builder_event(s, DRY_ACTION_ALLOC, kept + i * 20 * MIB, 20 * MIB);
    }
    record_builder_event(s, DRY_ACTION_FREE_REQUESTED, carried, 600 * MIB);
    record_builder_event(s, DRY_ACTION_FREE_COMPLETED, carried, 600 * MIB);
}

/* What takes the place of "nothing is wrong" drops nothing else that was found. */
static void
a_leak_leaves_the_other_findings(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_leak_beside_carried_over_blocks(&s);
    record_builder_timeline(&s);
    struct dry_explain_device device = {.replay = s.replay, .timeline = s.timeline};
    struct dry_explain_options options;
    struct dry_explanation *e;
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    assert_int_equal(dry_explanation_create(&options, &e, NULL), DRY_OK);
    const struct dry_explanation_view *v = dry_explanation_get_view(e);
    assert_int_equal(v->findings[0].cause, DRY_CAUSE_LEAK);
    assert_true(has_finding(v, DRY_CAUSE_OVERFLOW));
    assert_false(has_finding(v, DRY_CAUSE_NONE));
    dry_explanation_destroy(e);
    record_builder_end(&s);
}

/* Most carried-over bytes of this case have lines: only the others are lost. */
static void
an_overflow_and_its_change_have_one_figure(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("ring-overflow"));
    const struct dry_finding *f = &m.view->findings[0];
    assert_int_equal(f->cause, DRY_CAUSE_OVERFLOW);
    assert_true(f->bytes < m.view->carried_over_bytes);
    assert_string_equal(f->proofs[0].right[1].name, "of unknown lines");
    assert_int_equal(f->proofs[0].right[1].bytes, f->bytes);
    size_t i = 0;
    while (i < m.view->change_count && m.view->changes[i].kind != DRY_CHANGE_RECORD)
        i++;
    assert_true(i < m.view->change_count);
    assert_int_equal(m.view->changes[i].bytes, f->bytes);
    drop(&m);
}

/* --- two failures in one record ----------------------------------------------------------- */

#define TOO_MUCH (500 * MIB)

/*
 * On 100 MiB: two segments of 40 MiB, 24 MiB in use in each, and 20 MiB on the device. That
 * 30 MiB do not fit is a matter of pieces; that 500 MiB do not is none.
 */
static void
build_pieces(struct record_builder *s)
{
    record_builder_begin(s);
    for (unsigned i = 0; i < 2; i++) {
        record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, BASE + i * 100 * MIB, 40 * MIB);
        record_builder_event(s, DRY_ACTION_ALLOC, BASE + i * 100 * MIB, 40 * MIB);
    }
    for (unsigned i = 0; i < 2; i++) {
        record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE + i * 100 * MIB,
                             40 * MIB);
        record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE + i * 100 * MIB,
                             40 * MIB);
        record_builder_event(s, DRY_ACTION_ALLOC, BASE + i * 100 * MIB, 24 * MIB);
    }
}

/* The two requests that fail, at the events 10 and 11, and the segments. */
static void
build_failures(struct record_builder *s, uint64_t first, uint64_t second)
{
    record_builder_event(s, DRY_ACTION_OOM, 20 * MIB, first);
    record_builder_event(s, DRY_ACTION_OOM, 20 * MIB, second);
    for (unsigned i = 0; i < 2; i++) {
        record_builder_segment(
            s, &(struct record_builder_segment){
                   .address = BASE + i * 100 * MIB, .size = 40 * MIB, .is_large = true});
        record_builder_block(s, 24 * MIB, 24 * MIB, DRY_BLOCK_ACTIVE);
        record_builder_block(s, 16 * MIB, 0, DRY_BLOCK_INACTIVE);
    }
    record_builder_timeline(s);
}

static struct dry_explanation *
explain_record(const struct record_builder *s, uint32_t moment)
{
    struct dry_explain_device device = {.replay = s->replay, .timeline = s->timeline};
    struct dry_explain_options options;
    struct dry_explanation *e;
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    options.moment = moment;
    assert_int_equal(dry_explanation_create(&options, &e, NULL), DRY_OK);
    return e;
}

/* And a later failure that nothing helps with is told beside it. */
static void
a_setting_helps_if_it_gets_past_the_failure(void **state)
{
    (void)state;
    struct record_builder s;
    build_pieces(&s);
    build_failures(&s, 30 * MIB, TOO_MUCH);
    struct dry_explanation *e = explain_record(&s, DRY_MOMENT_AUTO);
    const struct dry_explanation_view *v = dry_explanation_get_view(e);
    assert_int_equal(v->event, 10);
    assert_int_equal(v->findings[0].cause, DRY_CAUSE_FRAGMENTATION);
    const struct dry_change *setting = find_change(v, DRY_CHANGE_SETTING);
    assert_true(setting && setting->removes_oom && setting->oom_event == 11);
    assert_null(find_change(v, DRY_CHANGE_NO_SETTING));
    dry_explanation_destroy(e);
    record_builder_end(&s);
}

/* By the number of its event; what failed before it may fail again. */
static void
every_failure_can_be_explained(void **state)
{
    (void)state;
    struct record_builder s;
    build_pieces(&s);
    build_failures(&s, TOO_MUCH, 30 * MIB);
    struct dry_explanation *e = explain_record(&s, 11);
    const struct dry_explanation_view *v = dry_explanation_get_view(e);
    assert_int_equal(v->moment_kind, DRY_MOMENT_AT_OOM);
    assert_int_equal(v->event, 11);
    assert_int_equal(v->oom_number, 2);
    assert_int_equal(v->next_oom_event, DRY_EVENT_NONE);
    assert_int_equal(v->request_bytes, 30 * MIB);
    assert_int_equal(v->findings[0].cause, DRY_CAUSE_FRAGMENTATION);
    const struct dry_change *setting = find_change(v, DRY_CHANGE_SETTING);
    assert_true(setting && setting->removes_oom && setting->oom_event == 10);
    dry_explanation_destroy(e);
    e = explain_record(&s, DRY_MOMENT_AUTO);
    v = dry_explanation_get_view(e);
    assert_int_equal(v->event, 10);
    assert_int_equal(v->oom_number, 1);
    assert_int_equal(v->next_oom_event, 11);
    assert_int_equal(v->findings[0].cause, DRY_CAUSE_CAPACITY);
    dry_explanation_destroy(e);
    record_builder_end(&s);
}

/* --- a history that begins with the failure ----------------------------------------------- */

/* Of 40 MiB that were there before, 30 are in use; `early` events come before the OOM. */
static void
build_a_late_start(struct record_builder *s, bool early)
{
    record_builder_begin(s);
    if (early) {
        record_builder_event(s, DRY_ACTION_ALLOC, BASE + 30 * MIB, 10 * MIB);
        record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE + 30 * MIB, 10 * MIB);
        record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE + 30 * MIB, 10 * MIB);
    }
    record_builder_event(s, DRY_ACTION_OOM, 20 * MIB, 200 * MIB);
    record_builder_segment(s, &(struct record_builder_segment){
                                  .address = BASE, .size = 40 * MIB, .is_large = true});
    record_builder_block(s, 30 * MIB, 30 * MIB, DRY_BLOCK_ACTIVE);
    record_builder_block(s, 10 * MIB, 0, DRY_BLOCK_INACTIVE);
    record_builder_timeline(s);
}

/* Begun late, or a ring overwritten up to it: the sums are there all the same. */
static void
a_failure_that_comes_first_is_explained(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct record_builder s;
        build_a_late_start(&s, i == 2);
        struct dry_explanation *e = explain_record(&s, i == 1 ? 0 : DRY_MOMENT_AUTO);
        const struct dry_explanation_view *v = dry_explanation_get_view(e);
        assert_int_equal(v->moment_kind, DRY_MOMENT_AT_OOM);
        assert_int_equal(v->moment, i == 2 ? 3 : 0);
        assert_int_equal(v->oom_number, 1);
        assert_int_equal(v->findings[0].cause, DRY_CAUSE_CAPACITY);
        assert_int_equal(v->short_bytes, 170 * MIB);
        assert_int_equal(v->step, DRY_NONE);
        dry_explanation_destroy(e);
        record_builder_end(&s);
    }
}

/* --- how far it can be trusted ------------------------------------------------------------ */

/* What a file holds where nothing was recorded: it covers nothing. */
static void
a_stack_without_frames_is_none(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_stack(&s, "load");
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 40 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 40 * MIB);
    s.stack = dry_trace_add_stack(s.builder, NULL, 0);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + 100 * MIB, 24 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 100 * MIB, 24 * MIB);
    record_builder_timeline(&s);
    struct dry_explanation *e = explain_record(&s, DRY_MOMENT_AUTO);
    const struct dry_explanation_view *v = dry_explanation_get_view(e);
    assert_int_equal(v->state->active, 64 * MIB);
    assert_int_equal(v->covered_bytes, 40 * MIB);
    dry_explanation_destroy(e);
    record_builder_end(&s);
}

/* It agrees with the rules that made it, and nothing is known by that. */
static void
a_simulations_record_is_not_called_exact(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (unsigned i = 0; i < 2; i++) {
        record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + i * 100 * MIB,
                             40 * MIB);
        record_builder_event(&s, DRY_ACTION_ALLOC, BASE + i * 100 * MIB, 40 * MIB);
        record_builder_segment(
            &s, &(struct record_builder_segment){
                    .address = BASE + i * 100 * MIB, .size = 40 * MIB, .is_large = true});
        record_builder_block(&s, 40 * MIB, 40 * MIB, DRY_BLOCK_ACTIVE);
    }
    record_builder_timeline(&s);
    struct dry_explain_device device = {.replay = s.replay, .timeline = s.timeline};
    struct dry_explain_options options;
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    for (uint32_t before = 0; before <= 2; before++) {
        struct dry_explanation *e;
        options.is_simulated = before > 0;
        options.before_count = before;
        assert_int_equal(dry_explanation_create(&options, &e, NULL), DRY_OK);
        const struct dry_explanation_view *v = dry_explanation_get_view(e);
        assert_int_equal(v->check->possible, before == 0);
        assert_int_equal(v->check->reason[0] != '\0', before > 0);
        assert_true(before == 0 || (!v->check->exact && v->trust == DRY_TRUST_LOW));
        assert_int_equal(v->carried_over_bytes, before * 40 * MIB);
        dry_explanation_destroy(e);
    }
    record_builder_end(&s);
}

static void
releases_are_looked_for_unless_skipped(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 40 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 40 * MIB);
    record_builder_timeline(&s);
    struct dry_explain_device device = {.replay = s.replay, .timeline = s.timeline};
    struct dry_explain_options options;
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    options.run_max = 0;
    for (int skip = 0; skip < 2; skip++) {
        struct dry_explanation *e;
        options.skip_releases = skip;
        assert_int_equal(dry_explanation_create(&options, &e, NULL), DRY_OK);
        const struct dry_explanation_view *v = dry_explanation_get_view(e);
        assert_int_equal(v->releases.first == NULL, skip);
        assert_int_equal(v->findings[0].cause, DRY_CAUSE_NONE);
        dry_explanation_destroy(e);
    }
    record_builder_end(&s);
}

/* Both ways in which frees come too late, each with the sum that shows it. */
static void
what_waits_is_proved(void **state)
{
    (void)state;
    struct made late, waiting;
    make(&late, case_find("pending-frees"));
    make(&waiting, case_find("pending-scope"));
    const struct dry_proof *p = late.view->findings[0].proofs;
    assert_int_equal(late.view->findings[0].proof_count, 2);
    assert_true(p[0].relation == '<' && p[1].relation != '>');
    p = waiting.view->findings[0].proofs;
    assert_int_equal(waiting.view->findings[0].proof_count, 2);
    assert_true(p[0].relation == '>' && p[1].relation == '<');
    assert_int_equal(p[0].left_sum - p[1].left_sum, waiting.truth.pending_bytes);
    drop(&late);
    drop(&waiting);
}

/* 97 % of all there is: in pieces, but soon it would not fit in one either. */
static void
a_nearly_full_device_is_said(void **state)
{
    (void)state;
    struct made full, roomy;
    make(&full, case_find("fragmentation-varlen"));
    make(&roomy, case_find("fragmentation-pinned"));
    assert_non_null(strstr(full.view->findings[0].note, "it is capacity"));
    assert_string_equal(roomy.view->findings[0].note, "");
    drop(&full);
    drop(&roomy);
}

/* A size that was guessed is a finding, and nothing to act on. */
static void
a_guessed_card_is_no_change(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("other-memory"));
    dry_explanation_destroy(m.explanation);
    m.options.total_bytes = 0;
    assert_int_equal(dry_explanation_create(&m.options, &m.explanation, NULL), DRY_OK);
    m.view = dry_explanation_get_view(m.explanation);
    assert_int_equal(m.view->findings[0].cause, DRY_CAUSE_CAPACITY);
    for (size_t i = 0; i < m.view->finding_count; i++)
        assert_true(m.view->findings[i].cause != DRY_CAUSE_OTHER_MEMORY ||
                    m.view->findings[i].is_assumed);
    for (size_t i = 0; i < m.view->change_count; i++)
        assert_true(m.view->changes[i].kind != DRY_CHANGE_OTHER);
    drop(&m);
}

/* A size that was stated is never guessed, whatever it leaves to others. */
static void
a_stated_size_is_taken_or_refused(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_late_start(&s, false); /* 40 MiB are reserved, 20 MiB are free */
    struct dry_explain_device device = {.replay = s.replay, .timeline = s.timeline};
    struct dry_explain_options options;
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    for (uint64_t total = 40 * MIB; total <= 61 * MIB; total += MIB) {
        struct dry_explanation *e;
        options.total_bytes = total;
        assert_int_equal(dry_explanation_create(&options, &e, NULL), DRY_OK);
        const struct dry_explanation_view *v = dry_explanation_get_view(e);
        assert_int_equal(v->other_bytes, total > 60 * MIB ? MIB : 0);
        assert_false(has_finding(v, DRY_CAUSE_OTHER_MEMORY));
        dry_explanation_destroy(e);
    }
    struct dry_explanation *e = NULL;
    struct dry_error err;
    options.total_bytes = 40 * MIB - 1;
    assert_int_equal(dry_explanation_create(&options, &e, &err), DRY_ERR_ARGUMENT);
    assert_string_equal(err.text, "a device of 41943039 bytes: 41943040 are "
                                  "reserved at the peak; expected as many or more");
    assert_null(e);
    options.total_bytes = 0; /* not stated: assumed */
    assert_int_equal(dry_explanation_create(&options, &e, &err), DRY_OK);
    assert_true(has_finding(dry_explanation_get_view(e), DRY_CAUSE_OTHER_MEMORY));
    dry_explanation_destroy(e);
    record_builder_end(&s);
}

static void
any_moment_can_be_explained(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("fragmentation-pinned"));
    uint32_t last = dry_timeline_get_view(m.timelines[0])->dump_moment;
    m.options.run_max = 0;
    for (uint32_t moment = 0; moment <= last; moment += last / 7) {
        struct dry_explanation *e;
        m.options.moment = moment;
        assert_int_equal(dry_explanation_create(&m.options, &e, NULL), DRY_OK);
        assert_true(dry_explanation_get_view(e)->finding_count > 0);
        dry_explanation_destroy(e);
    }
    struct dry_error err;
    struct dry_explanation *e = NULL;
    m.options.moment = last + 1;
    assert_int_equal(dry_explanation_create(&m.options, &e, &err), DRY_ERR_ARGUMENT);
    m.options.moment = DRY_MOMENT_AUTO;
    m.options.device_count = 0;
    assert_int_equal(dry_explanation_create(&m.options, &e, &err), DRY_ERR_ARGUMENT);
    assert_null(e);
    drop(&m);
}

static bool
cancel(void *self, size_t run_count, size_t run_max)
{
    (void)self;
    (void)run_max;
    return run_count >= 2;
}

static void
it_can_be_cancelled(void **state)
{
    (void)state;
    struct made m;
    struct dry_explanation *e = NULL;
    make(&m, case_find("fragmentation-varlen"));
    m.options.progress = cancel;
    assert_int_equal(dry_explanation_create(&m.options, &e, NULL), DRY_ERR_CANCELLED);
    assert_null(e);
    drop(&m);
}

/* The options' memory is what the explanation takes; replays take theirs from their own. */
static void
no_memory_is_an_error(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("stranded-stream"));
    m.options.run_max = 3;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_explanation *e = NULL;
        m.options.memory = &memory;
        enum dry_status status = dry_explanation_create(&m.options, &e, NULL);
        dry_explanation_destroy(e);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
    drop(&m);
}

static void
names_are_named(void **state)
{
    (void)state;
    assert_string_equal(dry_cause_name(DRY_CAUSE_OTHER_MEMORY), "other-memory");
    assert_string_equal(dry_cause_name((enum dry_cause)99), "unknown");
    assert_string_equal(dry_change_kind_name(DRY_CHANGE_RECORD), "record");
    assert_string_equal(dry_moment_kind_name(DRY_MOMENT_AT_END), "end");
    assert_string_equal(dry_trust_name(DRY_TRUST_LOW), "low");
    assert_string_equal(dry_lasting_name(DRY_LASTING_RECORDING), "recording");
    assert_string_equal(dry_lasting_name((enum dry_lasting)4), "unknown");
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verdict_is_the_label),
        cmocka_unit_test(nothing_else_is_claimed),
        cmocka_unit_test(the_third_set_is_as_labelled),
        cmocka_unit_test(changes_are_judged_by_what_they_buy),
        cmocka_unit_test(changes_to_the_program_are_replayed),
        cmocka_unit_test(a_leak_let_go_leaves_what_its_absence_leaves),
        cmocka_unit_test(the_sums_are_the_allocators),
        cmocka_unit_test(every_proof_adds_up),
        cmocka_unit_test(nothing_is_replayed_if_told_so),
        cmocka_unit_test(a_leak_leaves_the_other_findings),
        cmocka_unit_test(an_overflow_and_its_change_have_one_figure),
        cmocka_unit_test(a_setting_helps_if_it_gets_past_the_failure),
        cmocka_unit_test(every_failure_can_be_explained),
        cmocka_unit_test(a_failure_that_comes_first_is_explained),
        cmocka_unit_test(a_stack_without_frames_is_none),
        cmocka_unit_test(a_simulations_record_is_not_called_exact),
        cmocka_unit_test(releases_are_looked_for_unless_skipped),
        cmocka_unit_test(what_waits_is_proved),
        cmocka_unit_test(a_nearly_full_device_is_said),
        cmocka_unit_test(a_guessed_card_is_no_change),
        cmocka_unit_test(a_stated_size_is_taken_or_refused),
        cmocka_unit_test(any_moment_can_be_explained),
        cmocka_unit_test(it_can_be_cancelled),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(names_are_named),
    };
    if (argc == 2 && strcmp(argv[1], "--table") == 0)
        for_each_between(case_third_begin(), case_count(), print_third);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
