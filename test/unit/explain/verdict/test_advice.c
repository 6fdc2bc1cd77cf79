/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is advised on every labelled case. A setting is named where one helps and only there,
 * and helps by the rules of every release that may have made the record. The explanation and
 * the recommendation say the same.
 */

#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "cases/cases.h"
#include "replay/releases.h"
#include "support/failing_memory.h"

#define MIB (UINT64_C(1) << 20)
#define GAIN_MIN (64 * MIB)

struct asked {
    const struct labelled_case *label;
    struct case_truth truth;
    struct dry_trace *snapshot;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct dry_explanation *explanation;
    const struct dry_explanation_view *view;
    struct dry_recommendation *recommendation;
    const struct dry_recommend_summary *summary;
    const struct dry_candidate *candidates;
    size_t count;
};

#define HOLDS(asked, condition)                                                          \
    do {                                                                                 \
        if (!(condition))                                                                \
            fail_msg("case %s: not so: %s", (asked)->label->name, #condition);           \
    } while (0)

static void
explain(struct asked *a)
{
    struct dry_explain_device device = {a->replay, a->timeline};
    struct dry_explain_options options;
    struct dry_error err;
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    if (a->label->cause == DRY_CAUSE_OTHER_MEMORY)
        options.total_bytes = a->label->total_bytes;
    if (dry_explanation_create(&options, &a->explanation, &err) != DRY_OK)
        fail_msg("case %s: %s", a->label->name, err.text);
    a->view = dry_explanation_get_view(a->explanation);
}

static void
ask(struct asked *a, const struct labelled_case *label)
{
    struct dry_error err;
    *a = (struct asked){.label = label};
    if (case_make(label, &a->snapshot, &a->truth, &err) != DRY_OK)
        fail_msg("case %s: %s", label->name, err.text);
    struct dry_replay_options options;
    dry_replay_options_init(&options);
    options.device = a->truth.device;
    assert_int_equal(dry_replay_create(a->snapshot, &options, &a->replay, NULL), DRY_OK);
    assert_int_equal(dry_timeline_create(a->replay, NULL, &a->timeline, NULL), DRY_OK);
    explain(a);
    assert_int_equal(dry_recommend_create(a->replay, NULL, &a->recommendation, NULL),
                     DRY_OK);
    a->summary = dry_recommend_get_summary(a->recommendation);
    a->candidates = dry_recommend_get_candidates(a->recommendation, &a->count);
}

static void
drop(struct asked *a)
{
    dry_recommend_destroy(a->recommendation);
    dry_explanation_destroy(a->explanation);
    dry_timeline_destroy(a->timeline);
    dry_replay_destroy(a->replay);
    dry_trace_destroy(a->snapshot);
}

static void
for_each_case(void (*holds)(const struct asked *a))
{
    for (size_t i = 0; i < case_third_begin(); i++) {
        struct asked a;
        ask(&a, case_at(i));
        holds(&a);
        drop(&a);
    }
}

/* --- named where one helps ---------------------------------------------------------------- */

static size_t
count_changes(const struct asked *a, enum dry_change_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < a->view->change_count; i++)
        count += a->view->changes[i].kind == kind;
    return count;
}

static void
is_advised_as_labelled(const struct asked *a)
{
    const struct labelled_case *label = a->label;
    bool is_limit = label->cause == DRY_CAUSE_LIMIT;
    size_t settings = count_changes(a, DRY_CHANGE_SETTING);
    if (label->is_silent || is_limit)
        HOLDS(a, settings == 0);
    else
        HOLDS(a, (settings > 0) == label->setting_helps);
    HOLDS(a, label->is_silent == (a->summary->outcome == DRY_OUTCOME_NO_EVIDENCE));
    HOLDS(a, label->is_silent == (a->summary->evidence_gap != NULL));
    bool is_wrong = label->cause == DRY_CAUSE_FRAGMENTATION;
    if (label->is_silent && is_wrong)
        HOLDS(a, count_changes(a, DRY_CHANGE_NO_EVIDENCE) == 1);
    HOLDS(a, is_limit == (a->summary->outcome == DRY_OUTCOME_LIMIT));
}

static void
a_setting_is_named_where_one_helps_and_only_there(void **state)
{
    (void)state;
    for_each_case(is_advised_as_labelled);
}

/* --- and helps ---------------------------------------------------------------------------- */

static bool
run_by(const struct asked *a, const char *conf, const char *compat,
       uint64_t allowed_bytes, struct dry_run *run)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.conf = conf;
    options.compat = compat;
    options.begin_anew = true;
    options.past_event = a->truth.oom_event;
    options.capacity_bytes = allowed_bytes;
    return dry_replay_run(a->replay, &options, run, NULL) == DRY_OK;
}

/* It gets past the OOM, where the recorded settings do not. */
static bool
rescues(const struct asked *a, const char *setting, const char *compat)
{
    struct dry_run run = {0}, before = {0};
    uint64_t allowed_bytes = case_allowed_bytes(&a->truth);
    return run_by(a, setting, compat, allowed_bytes, &run) &&
           run_by(a, NULL, compat, allowed_bytes, &before) && run.gets_past &&
           !before.gets_past;
}

/* On the room that is proved, with fewer retries, or on less than was needed before. */
static bool
relieves(const struct asked *a, const struct dry_change *c, const char *compat)
{
    struct dry_run run = {0}, before = {0}, less = {0};
    uint64_t allowed_bytes = a->summary->capacity_bytes;
    if (!run_by(a, c->setting, compat, allowed_bytes, &run) || run.oom ||
        !run_by(a, NULL, compat, allowed_bytes, &before))
        return false;
    uint64_t smaller = c->recorded_runs_on_bytes - GAIN_MIN;
    bool is_smaller = c->recorded_runs_on_bytes > GAIN_MIN &&
                      run_by(a, c->setting, compat, smaller, &less) && !less.oom;
    return before.oom || is_smaller ||
           run.stats.num_alloc_retries < before.stats.num_alloc_retries;
}

static bool
saves(const struct asked *a, const char *setting, const char *compat)
{
    struct dry_run run = {0}, before = {0};
    return run_by(a, setting, compat, UINT64_MAX, &run) &&
           run_by(a, NULL, compat, UINT64_MAX, &before) &&
           run.reserved_peak_bytes + GAIN_MIN <= before.reserved_peak_bytes;
}

static void
helps_by(const struct asked *a, const struct dry_change *c, const char *compat)
{
    bool helps = a->truth.has_oom                      ? rescues(a, c->setting, compat)
                 : a->summary->capacity_high_bytes > 0 ? relieves(a, c, compat)
                                                       : saves(a, c->setting, compat);
    if (!helps)
        fail_msg("case %s: %s does not help by the rules of %s", a->label->name,
                 c->setting, compat);
}

static bool
is_possible(const struct dry_releases *r, const char *release)
{
    unsigned number = dryi_release_number(release);
    return number >= dryi_release_number(r->first) &&
           number <= dryi_release_number(r->last);
}

/* The record is reproduced by them, so that the program may have run on them. */
static bool
reproduces(const struct asked *a, const char *release)
{
    struct dry_replay_options options;
    struct dry_replay *replay;
    dry_replay_options_init(&options);
    options.device = a->truth.device;
    options.compat = release;
    assert_int_equal(dry_replay_create(a->snapshot, &options, &replay, NULL), DRY_OK);
    bool is_exact = dry_replay_get_check(replay)->exact;
    dry_replay_destroy(replay);
    return is_exact;
}

static void
settings_help_in_every_release(const struct asked *a)
{
    static const char *const releases[] = {"2.0", "2.1",  "2.2",  "2.5",  "2.6",  "2.8",
                                           "2.9", "2.10", "2.11", "2.12", "2.13", "2.15"};
    for (size_t k = 0; k < sizeof releases / sizeof *releases; k++) {
        if (!is_possible(&a->view->releases, releases[k]) || !reproduces(a, releases[k]))
            continue;
        for (size_t i = 0; i < a->view->change_count; i++) {
            const struct dry_change *c = &a->view->changes[i];
            if (c->kind == DRY_CHANGE_SETTING &&
                dryi_release_number(c->since) <= dryi_release_number(releases[k]))
                helps_by(a, c, releases[k]);
        }
    }
}

static void
named_settings_help_in_every_release(void **state)
{
    (void)state;
    for_each_case(settings_help_in_every_release);
}

/* --- releases ----------------------------------------------------------------------------- */

static void
says_what_it_needs(const struct asked *a)
{
    unsigned first = dryi_release_number(a->view->releases.first);
    for (size_t i = 0; i < a->view->change_count; i++) {
        const struct dry_change *c = &a->view->changes[i];
        bool is_younger = dryi_release_number(c->since) > first;
        if (c->kind != DRY_CHANGE_SETTING)
            continue;
        HOLDS(a, is_younger == ((c->caveats & DRY_CAVEAT_RELEASE) != 0));
    }
    if (a->label->shape_minor > 0)
        HOLDS(a, first == 200 + a->label->shape_minor);
}

static void
a_setting_that_a_release_does_not_know_says_so(void **state)
{
    (void)state;
    for_each_case(says_what_it_needs);
}

/* --- one judgement ------------------------------------------------------------------------ */

static const char *
first_setting(const struct asked *a)
{
    for (size_t i = 0; i < a->view->change_count; i++) {
        if (a->view->changes[i].kind == DRY_CHANGE_SETTING)
            return a->view->changes[i].setting;
    }
    return NULL;
}

static void
says_the_same_twice(const struct asked *a)
{
    const char *named = first_setting(a);
    bool is_change = a->summary->outcome == DRY_OUTCOME_CHANGE;
    HOLDS(a, is_change == (named != NULL));
    if (named)
        HOLDS(a, strcmp(named, a->candidates[a->summary->best].conf) == 0);
}

static void
explanation_and_recommendation_agree(void **state)
{
    (void)state;
    for_each_case(says_the_same_twice);
}

/* --- order -------------------------------------------------------------------------------- */

static bool
runs_on(const struct asked *a, const struct dry_candidate *c, uint64_t device)
{
    struct dry_run_options options;
    struct dry_run run;
    dry_run_options_init(&options);
    options.conf = c->conf;
    options.begin_anew = true;
    options.capacity_bytes = device;
    assert_int_equal(dry_replay_run(a->replay, &options, &run, NULL), DRY_OK);
    return !run.oom;
}

/* A device is known to the least gain. The best is known better. */
static void
is_in_order_of_devices(const struct asked *a)
{
    struct dry_recommend_options options;
    struct dry_recommendation *r;
    uint64_t before = 0, gain = a->summary->min_gain_bytes;
    size_t count;
    if (a->summary->goal != DRY_GOAL_FIT)
        return;
    dry_recommend_options_init(&options);
    options.run_max = 256;
    assert_int_equal(dry_recommend_create(a->replay, &options, &r, NULL), DRY_OK);
    const struct dry_candidate *c = dry_recommend_get_candidates(r, &count);
    for (size_t i = 0; i < count && c[i].verdict <= DRY_VERDICT_GOOD; i++) {
        HOLDS(a, c[i].runs_on_bytes >= before || i == 1);
        HOLDS(a, c[i].runs_on_bytes - c[i].fails_on_bytes <= gain);
        HOLDS(a, runs_on(a, &c[i], c[i].runs_on_bytes));
        HOLDS(a, !runs_on(a, &c[i], c[i].fails_on_bytes));
        before = c[i].runs_on_bytes;
    }
    dry_recommend_destroy(r);
}

static void
what_helps_is_listed_by_the_device_that_it_needs(void **state)
{
    (void)state;
    for_each_case(is_in_order_of_devices);
}

/* --- the room that retries prove ---------------------------------------------------------- */

static void
bounds_hold(const struct asked *a)
{
    const struct dry_replay_recorded *r = dry_replay_get_recorded(a->replay);
    uint64_t allowed_bytes = case_allowed_bytes(&a->truth);
    bool is_near = a->label->cause == DRY_CAUSE_NEAR_LIMIT ||
                   a->label->second == DRY_CAUSE_NEAR_LIMIT;
    if (is_near) {
        HOLDS(a, r->capacity_low_bytes <= allowed_bytes &&
                     allowed_bytes < r->capacity_high_bytes);
        HOLDS(a, a->summary->capacity_bytes == r->capacity_low_bytes);
        HOLDS(a, a->summary->goal == DRY_GOAL_FIT);
    } else if (!a->truth.has_oom) {
        HOLDS(a, r->capacity_high_bytes == 0);
        HOLDS(a, a->summary->goal == DRY_GOAL_PEAK);
    }
}

static void
retries_bound_the_room(void **state)
{
    (void)state;
    for_each_case(bounds_hold);
}

/* A program that empties its cache is not taken to have met the end of the device. */
static void
an_emptied_cache_is_no_retry(void **state)
{
    (void)state;
    struct asked a;
    ask(&a, case_find("cache-emptied-for-more"));
    const struct dry_replay_check *check = dry_replay_get_check(a.replay);
    assert_true(check->exact);
    assert_int_equal(check->retry_count, 0);
    assert_int_equal(check->empty_cache_count, 4);
    /* What is emptied in the record is emptied in a run. */
    assert_int_equal(a.candidates[a.summary->recorded].run.reserved_peak_bytes,
                     dry_replay_get_recorded(a.replay)->reserved_peak_bytes);
    drop(&a);
}

/* --- which releases made it --------------------------------------------------------------- */

static void
releases_of(const char *name, const char *compat, struct dry_releases *releases)
{
    struct case_truth truth;
    struct dry_trace *snapshot;
    struct dry_replay *replay;
    struct dry_replay_options options;
    dry_replay_options_init(&options);
    options.compat = compat;
    assert_int_equal(case_make(case_find(name), &snapshot, &truth, NULL), DRY_OK);
    assert_int_equal(dry_replay_create(snapshot, &options, &replay, NULL), DRY_OK);
    assert_int_equal(dry_replay_find_releases(replay, releases, NULL), DRY_OK);
    struct dry_releases again;
    assert_int_equal(dry_replay_find_releases(replay, &again, NULL), DRY_OK);
    assert_ptr_equal(releases->last, again.last);
    dry_replay_destroy(replay);
    dry_trace_destroy(snapshot);
}

static void
fields_and_rules_bound_the_releases(void **state)
{
    (void)state;
    struct dry_releases r;
    releases_of("pending-scope", NULL, &r); /* 2.13 looks at streams in an open scope */
    assert_string_equal(r.first, "2.10");
    assert_string_equal(r.last, "2.12");
    assert_true(r.reproduces && !r.has_gap);
    assert_string_equal(r.not_before, "user_metadata in its events");
    releases_of("old-fragmentation", NULL, &r);
    assert_string_equal(r.first, "2.8");
    releases_of("silent-no-events", NULL, &r);
    assert_string_equal(r.first, "2.1");
    assert_string_equal(r.last, "2.15");
    assert_false(r.reproduces);
}

static void
a_named_release_is_the_only_one(void **state)
{
    (void)state;
    struct dry_releases r;
    releases_of("old-streams", "2.6", &r);
    assert_string_equal(r.first, "2.6");
    assert_string_equal(r.last, "2.6");
    assert_true(r.reproduces);
    releases_of("pending-scope", "2.13", &r);
    assert_false(r.reproduces);
}

/* --- memory that runs out ----------------------------------------------------------------- */

static void
no_memory_is_survived(void **state)
{
    (void)state;
    struct case_truth truth;
    struct dry_trace *snapshot;
    struct failing_memory fm;
    const struct labelled_case *label = case_find("cache-emptied-for-more");
    assert_int_equal(case_make(label, &snapshot, &truth, NULL), DRY_OK);
    for (size_t n = 0;; n++) {
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_replay_options options;
        struct dry_releases releases;
        struct dry_replay *replay = NULL;
        struct dry_error err = {0};
        dry_replay_options_init(&options);
        options.memory = &memory;
        enum dry_status status = dry_replay_create(snapshot, &options, &replay, &err);
        if (status == DRY_OK)
            status = dry_replay_find_releases(replay, &releases, &err);
        dry_replay_destroy(replay);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_int_equal(status, DRY_ERR_MEMORY);
        assert_true(err.text[0]);
    }
    dry_trace_destroy(snapshot);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_named_where_one_helps_and_only_there),
        cmocka_unit_test(named_settings_help_in_every_release),
        cmocka_unit_test(a_setting_that_a_release_does_not_know_says_so),
        cmocka_unit_test(explanation_and_recommendation_agree),
        cmocka_unit_test(what_helps_is_listed_by_the_device_that_it_needs),
        cmocka_unit_test(retries_bound_the_room),
        cmocka_unit_test(an_emptied_cache_is_no_retry),
        cmocka_unit_test(fields_and_rules_bound_the_releases),
        cmocka_unit_test(a_named_release_is_the_only_one),
        cmocka_unit_test(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
