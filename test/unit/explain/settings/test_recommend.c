/* SPDX-License-Identifier: Apache-2.0 */

/*
 * recommend: programs that one setting helps, that none can, that need none; what is never
 * proposed; what is claimed of a candidate must come out of a replay of its own; the budget,
 * cancelling and memory that runs out.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "explain/settings/demand.h"
#include "explain/settings/setting.h"
#include "replay/releases.h"
#include "support/bytes.h"
#include "support/failing_memory.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define UNLIMITED UINT64_MAX

/* --- programs ----------------------------------------------------------------------------- */

static struct dry_trace *
read_text(const char *text)
{
    return bytes_read_trace(text, strlen(text));
}

static struct dry_trace *
read_recording(const char *name)
{
    size_t count;
    unsigned char *bytes = bytes_of_trace(name, &count);
    if (!bytes)
        skip_because("%s is not in $DRY_TEST_TRACES", name);
    struct dry_trace *trace = bytes_read_trace(bytes, count);
    free(bytes);
    return trace;
}

/*
 * Two blocks of 40 MiB of which 11 MiB are kept each, then 50 MiB: on 100 MiB too much for
 * whole segments, and just enough for expandable ones.
 */
static const char pinned_program[] = "a 1 41943040 0 1\na 2 41943040 0 1\nf 1\n"
                                     "a 3 11534336 0 1\na 4 30408704 0 1\nf 2\n"
                                     "a 5 11534336 0 1\nf 4\na 6 52428800 0 1\n"
                                     "f 6\na 7 512 0 1\n";

/* A block, and everything given back: nothing to win. */
static const char plain_program[] = "a 1 104857600 0 1\nf 1\na 2 104857600 0 2\nf 2\n";

/*
 * 200 MiB in turn, each time 110 MiB are kept that were cut off the large block: with a split
 * size between them the large block stays whole.
 */
static struct dry_trace *
pinning_program(void)
{
    char text[4096];
    size_t used = 0;
    for (int i = 0; i < 8; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "a %d 209715200 0 1\nf %d\na %d 115343360 0 2\n",
                                 100 + i, 100 + i, 200 + i);
    return read_text(text);
}

static struct dry_replay *
replay_with(const struct dry_trace *trace, const char *compat)
{
    struct dry_replay_options options;
    dry_replay_options_init(&options);
    options.compat = compat;
    struct dry_replay *replay;
    struct dry_error err;
    if (dry_replay_create(trace, &options, &replay, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return replay;
}

static struct dry_replay *
replay_of(const struct dry_trace *trace)
{
    return replay_with(trace, NULL);
}

/* What PyTorch would have recorded of a program under `conf`. */
static struct dry_trace *
record_of(struct dry_trace *program, const char *conf, uint64_t capacity)
{
    struct dry_replay *replay = replay_of(program);
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.conf = conf;
    options.capacity_bytes = capacity;
    struct dry_trace *recorded;
    struct dry_error err;
    if (dry_replay_record(replay, &options, &recorded, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_replay_destroy(replay);
    dry_trace_destroy(program);
    return recorded;
}

/* --- a recommendation with what it needs -------------------------------------------------- */

struct subject {
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_recommendation *rec;
    const struct dry_recommend_summary *s;
    const struct dry_candidate *c;
    size_t count;
};

static struct dry_recommend_options
options_for(enum dry_goal goal, uint64_t capacity, uint64_t min_gain)
{
    struct dry_recommend_options options;
    dry_recommend_options_init(&options);
    options.goal = goal;
    options.capacity_bytes = capacity;
    options.min_gain_bytes = min_gain;
    return options;
}

static void
recommend(struct subject *t, const struct dry_recommend_options *options)
{
    struct dry_error err;
    if (dry_recommend_create(t->replay, options, &t->rec, &err) != DRY_OK)
        fail_msg("%s", err.text);
    t->s = dry_recommend_get_summary(t->rec);
    t->c = dry_recommend_get_candidates(t->rec, &t->count);
}

/* Of a program whose release is known; NULL: it is not. */
static struct subject
subject_of(struct dry_trace *trace, const char *compat,
           const struct dry_recommend_options *options)
{
    struct subject t = {.trace = trace, .replay = replay_with(trace, compat)};
    recommend(&t, options);
    return t;
}

static struct subject
subject_init(struct dry_trace *trace, const struct dry_recommend_options *options)
{
    return subject_of(trace, NULL, options);
}

static void
subject_finish(struct subject *t)
{
    dry_recommend_destroy(t->rec);
    dry_replay_destroy(t->replay);
    dry_trace_destroy(t->trace);
}

static const struct dry_candidate *
find(const struct subject *t, const char *label)
{
    for (size_t i = 0; i < t->count; i++) {
        if (!t->c[i].is_recorded && strcmp(t->c[i].label, label) == 0)
            return &t->c[i];
    }
    return NULL;
}

static bool
any_has(const struct subject *t, const char *words)
{
    for (size_t i = 0; i < t->count; i++) {
        if (!t->c[i].is_recorded && strstr(t->c[i].conf, words))
            return true;
    }
    return false;
}

/* --- what must hold of every recommendation ----------------------------------------------- */

static bool
fits(const struct subject *t, const struct dry_candidate *c, uint64_t capacity)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.conf = c->is_recorded ? NULL : c->conf;
    options.begin_anew = true;
    options.capacity_bytes = capacity;
    struct dry_run run;
    struct dry_error err;
    if (dry_replay_run(t->replay, &options, &run, &err) != DRY_OK)
        fail_msg("%s: %s", c->conf, err.text);
    if (capacity == t->s->capacity_bytes)
        assert_int_equal(run.reserved_peak_bytes, c->run.reserved_peak_bytes);
    return !run.oom;
}

static void
check_claims(const struct subject *t, const struct dry_candidate *c)
{
    assert_int_equal(fits(t, c, t->s->capacity_bytes), !c->run.oom);
    assert_int_equal(c->verdict == DRY_VERDICT_FAILS, c->run.oom);
    if (c->runs_on_bytes)
        assert_true(fits(t, c, c->runs_on_bytes));
    if (c->fails_on_bytes)
        assert_false(fits(t, c, c->fails_on_bytes));
    if (!c->run.oom)
        assert_true(c->run.reserved_peak_bytes >= t->s->floor_bytes);
    if (c->runs_on_bytes)
        assert_true(c->runs_on_bytes >= t->s->floor_bytes);
}

static void
check_candidate(const struct subject *t, size_t i)
{
    const struct dry_candidate *c = &t->c[i];
    check_claims(t, c);
    assert_int_equal(c->verdict == DRY_VERDICT_BEST, i == t->s->best);
    assert_int_equal(c->is_recorded, i == t->s->recorded);
    if (i > 0)
        assert_true(t->c[i - 1].verdict <= c->verdict);
    if (t->s->goal == DRY_GOAL_FIT && c->has_gain &&
        c->gain_bytes < 0) /* a loss is known */
        assert_true(c->runs_on_bytes - c->fails_on_bytes <= t->s->capacity_step_bytes);
    if (!c->is_recorded) {
        assert_true(c->is_allowed);
        assert_false(strstr(c->conf, "max_split_size_mb") &&
                     strstr(c->conf, "expandable_segments:True"));
    }
    for (size_t j = 0; j < i; j++)
        assert_true(c->is_recorded || t->c[j].is_recorded ||
                    strcmp(c->label, t->c[j].label) != 0);
}

static void
check(const struct subject *t)
{
    assert_true(t->count >= 1 && t->count <= t->s->run_count);
    assert_true(t->s->run_count <= t->s->run_max);
    assert_true(t->s->recorded < t->count);
    for (size_t i = 0; i < t->count; i++)
        check_candidate(t, i);
    bool has_best =
        t->s->outcome == DRY_OUTCOME_CHANGE || t->s->outcome == DRY_OUTCOME_KEEP;
    assert_int_equal(has_best, t->s->best == 0);
    if (!has_best)
        assert_int_equal(t->s->best, SIZE_MAX);
    else
        assert_true(t->c[0].is_allowed);
    assert_int_equal(t->s->outcome == DRY_OUTCOME_KEEP,
                     has_best && t->s->recorded == t->s->best);
    assert_int_equal(t->s->outcome == DRY_OUTCOME_CAPACITY,
                     t->s->floor_bytes > t->s->capacity_bytes);
}

/* --- outcomes ----------------------------------------------------------------------------- */

static void
a_recorded_oom_of_fragments_goes_away(void **state)
{
    (void)state;
    struct dry_trace *trace = record_of(read_text(pinned_program), "", 100 * MIB);
    struct dry_recommend_options options = options_for(DRY_GOAL_AUTO, 0, 0);
    options.without = DRY_WITHOUT_SPLIT;
    struct subject t = subject_init(trace, &options);
    check(&t);
    assert_int_equal(t.s->goal, DRY_GOAL_FIT);
    assert_int_equal(t.s->capacity_bytes, 100 * MIB);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CHANGE);
    assert_string_equal(t.c[0].conf, "expandable_segments:True");
    assert_string_equal(t.c[0].since, "2.1");
    assert_true(t.c[0].caveats & DRY_CAVEAT_IPC);
    assert_true(t.s->oom_recorded && t.s->oom_comes_back);
    assert_int_equal(t.s->oom_live_bytes, 22 * MIB);
    assert_int_equal(t.s->oom_request_bytes, 50 * MIB);
    assert_int_equal(t.s->floor_bytes, 80 * MIB);
    assert_int_equal(t.s->margin_bytes, 100 * MIB - t.c[0].runs_on_bytes);
    assert_false(t.s->approximate);
    const struct dry_candidate *recorded = &t.c[t.s->recorded];
    assert_true(recorded->is_default && recorded->run.oom);
    assert_int_equal(recorded->fails_on_bytes + t.s->capacity_step_bytes,
                     recorded->runs_on_bytes); /* searched, though it does not fit */
    subject_finish(&t);
}

static void
events_after_an_oom_are_counted_not_projected(void **state)
{
    (void)state;
    struct dry_trace *trace = record_of(read_text(pinned_program), "", 100 * MIB);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    size_t after = 0;
    for (size_t i = v->event_count; i-- > 0 && v->action[i] != DRY_ACTION_OOM;)
        after++;
    struct subject t = subject_init(trace, NULL);
    assert_int_equal(t.s->events_after_oom, after);
    subject_finish(&t);
}

/* The record without its first events, as a ring that overflowed leaves it. */
static struct dry_trace *
tail_of(const struct dry_trace *trace, size_t first)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    struct dry_trace_builder *b;
    struct dry_trace *tail;
    struct dry_error err;
    assert_int_equal(dry_trace_builder_create(NULL, &b, NULL), DRY_OK);
    for (uint32_t i = 0; i < v->lane_count; i++)
        assert_int_equal(dry_trace_add_lane(b, &v->lanes[i]), i);
    dry_trace_begin_device(b, v->devices[0].device);
    for (size_t i = first; i < v->event_count; i++) {
        struct dry_event e = {.action = (enum dry_action)v->action[i],
                              .addr = v->addr[i],
                              .size = v->size[i],
                              .time_us = v->time_us[i],
                              .lane = v->lane[i],
                              .stack = DRY_NONE,
                              .note = DRY_NONE};
        dry_trace_add_event(b, &e);
    }
    for (size_t i = 0; i < v->segment_count; i++) {
        struct dry_trace_segment s = v->segments[i];
        s.stack = s.extra = DRY_NONE;
        struct dry_trace_block blocks[8];
        assert_true(s.block_count <= 8);
        for (size_t j = 0; j < s.block_count; j++) {
            blocks[j] = v->blocks[s.first_block + j];
            blocks[j].stack = blocks[j].extra = DRY_NONE;
        }
        dry_trace_add_segment(b, &s, blocks, s.block_count);
    }
    if (dry_trace_builder_finish(b, &tail, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return tail;
}

static void
an_oom_older_than_its_window_does_not_come_back(void **state)
{
    (void)state;
    struct dry_trace *whole = record_of(read_text(pinned_program), "", 100 * MIB);
    const struct dry_trace_view *v = dry_trace_get_view(whole);
    size_t oom = 0;
    while (oom < v->event_count && v->action[oom] != DRY_ACTION_OOM)
        oom++;
    assert_true(oom > 1 && oom < v->event_count);
    struct subject t = subject_init(tail_of(whole, oom), NULL);
    dry_trace_destroy(whole);
    check(&t);
    assert_int_equal(t.s->capacity_bytes, 100 * MIB);
    assert_true(t.s->begins_warm && t.s->oom_recorded);
    assert_false(t.s->oom_comes_back);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_NO_EVIDENCE);
    assert_non_null(t.s->evidence_gap);
    assert_int_equal(t.s->floor_bytes, 72 * MIB);
    subject_finish(&t);
}

static void
a_full_device_is_told_by_a_sum(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_AUTO, 79 * MIB, 0);
    struct subject t = subject_init(read_text(pinned_program), &options);
    check(&t);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CAPACITY);
    assert_int_equal(t.s->floor_bytes, 80 * MIB);
    assert_int_equal(t.count, 1); /* no run settles more than the sum */
    assert_int_equal(t.s->margin_bytes, 0);
    assert_true(t.c[0].runs_on_bytes > 100 * MIB);
    subject_finish(&t);
}

static void
without_what_helps_nothing_does(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_AUTO, 100 * MIB, MIB);
    struct subject helped = subject_init(read_text(pinned_program), &options);
    check(&helped);
    assert_int_equal(helped.s->outcome, DRY_OUTCOME_CHANGE);
    subject_finish(&helped);
    options.without = DRY_WITHOUT_EXPANDABLE | DRY_WITHOUT_SPLIT;
    struct subject t = subject_init(read_text(pinned_program), &options);
    check(&t);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_NONE);
    assert_true(t.count > 5);
    for (size_t i = 0; i < t.count; i++)
        assert_int_equal(t.c[i].verdict, DRY_VERDICT_FAILS);
    subject_finish(&t);
}

static void
where_there_is_nothing_to_win_all_stays(void **state)
{
    (void)state;
    for (enum dry_goal goal = DRY_GOAL_AUTO; goal <= DRY_GOAL_STABLE; goal++) {
        struct dry_recommend_options options = options_for(goal, UNLIMITED, 0);
        struct subject t = subject_init(read_text(plain_program), &options);
        check(&t);
        assert_int_equal(t.s->outcome, DRY_OUTCOME_KEEP);
        assert_true(t.c[0].is_default);
        assert_int_equal(t.s->floor_bytes, 100 * MIB);
        assert_int_equal(t.s->min_gain_bytes, 64 * MIB);
        subject_finish(&t);
    }
}

static void
settings_stay_if_the_default_gains_nothing(void **state)
{
    (void)state;
    struct dry_trace *trace =
        record_of(read_text(plain_program), "max_split_size_mb:64", UNLIMITED);
    for (enum dry_goal goal = DRY_GOAL_FIT; goal <= DRY_GOAL_STABLE; goal++) {
        struct dry_recommend_options options = options_for(goal, UNLIMITED, 0);
        struct subject t = {.trace = trace, .replay = replay_of(trace)};
        recommend(&t, &options);
        check(&t);
        assert_int_equal(t.s->outcome, DRY_OUTCOME_KEEP);
        assert_string_equal(t.c[t.s->recorded].conf, "max_split_size_mb:64");
        dry_recommend_destroy(t.rec);
        dry_replay_destroy(t.replay);
    }
    dry_trace_destroy(trace);
}

/* 8 x 200 MiB pinned by 110 MiB each, or one of 200 MiB kept whole. */
static void
a_split_size_is_made_from_the_sizes_asked_for(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_PEAK, UNLIMITED, MIB);
    options.without = DRY_WITHOUT_EXPANDABLE;
    struct subject t = subject_init(pinning_program(), &options);
    check(&t);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CHANGE);
    assert_non_null(strstr(t.c[0].conf, "max_split_size_mb:"));
    assert_true(t.c[0].caveats & DRY_CAVEAT_SYNC);
    assert_true(t.c[0].gain_bytes > (int64_t)(200 * MIB));
    assert_non_null(find(&t, "max_split_size_mb:200"));
    assert_non_null(find(&t, "max_split_size_mb:201"));
    subject_finish(&t);
}

/* That it fits a device of 40 GiB is no loss against recorded settings that need less. */
static void
what_was_not_searched_to_the_end_has_no_loss(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_FIT, 40960 * MIB, MIB);
    options.without = DRY_WITHOUT_EXPANDABLE;
    struct subject t = subject_init(pinning_program(), &options);
    check(&t);
    assert_true(t.c[0].has_gain && t.c[0].gain_bytes > 0);
    size_t unsearched = 0;
    for (size_t i = 0; i < t.count; i++)
        unsearched += !t.c[i].has_gain && t.c[i].verdict == DRY_VERDICT_NO_GAIN;
    assert_true(unsearched > 0);
    subject_finish(&t);
}

/* The same figure for less: what stands against expandable segments need not be borne. */
static void
of_equals_the_one_with_fewer_caveats_wins(void **state)
{
    (void)state;
    char text[2048];
    size_t used = 0;
    for (int i = 0; i < 40; i++) /* fill segments of 12 MiB, or pages of 20 MiB */
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "a %d 3145728 0 1\n", i);
    struct dry_recommend_options options = options_for(DRY_GOAL_PEAK, UNLIMITED, 4 * MIB);
    struct subject t = subject_of(read_text(text), "2.11", &options);
    check(&t);
    const struct dry_candidate *expandable = find(&t, "expandable_segments:True");
    if (!expandable)
        fail_msg("not tried");
    else
        assert_int_equal(expandable->run.reserved_peak_bytes, 120 * MIB);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CHANGE);
    assert_int_equal(t.c[0].run.reserved_peak_bytes, 120 * MIB);
    assert_string_equal(t.c[0].conf, "large_segment_size_mb:12");
    assert_int_equal(t.c[0].caveats, 0);
    subject_finish(&t);
    t = subject_init(read_text(text), &options); /* of any release: most refuse that */
    check(&t);
    assert_string_equal(t.c[0].conf, "expandable_segments:True");
    assert_true(t.c[0].is_proved);
    assert_false(any_has(&t, "large_segment_size_mb"));
    subject_finish(&t);
}

/* --- retries and garbage ------------------------------------------------------------------ */

/* 60 MiB cached in three sizes, then 90 MiB: on 100 MiB everything goes back, once a round. */
static struct dry_trace *
retrying_program(void)
{
    char text[4096];
    size_t used = 0;
    for (int i = 0; i < 12; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "a %d 31457280 0 1\na %d 33554432 0 1\nf %d\nf %d\n"
                             "a %d 94371840 0 2\nf %d\n",
                             3 * i, 3 * i + 1, 3 * i, 3 * i + 1, 3 * i + 2, 3 * i + 2);
    return read_text(text);
}

static void
retries_are_what_stable_counts(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_STABLE, 100 * MIB, MIB);
    struct subject t = subject_of(retrying_program(), "2.11", &options);
    check(&t);
    const struct dry_candidate *recorded = &t.c[t.s->recorded];
    assert_true(recorded->run.stats.num_alloc_retries > 0);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CHANGE);
    assert_true(t.c[0].run.stats.num_alloc_retries <
                recorded->run.stats.num_alloc_retries);
    assert_true(any_has(&t, "garbage_collection_threshold"));
    subject_finish(&t);
}

static void
garbage_is_collected_only_where_a_device_is_full(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_STABLE, UNLIMITED, MIB);
    struct subject t = subject_of(retrying_program(), "2.11", &options);
    check(&t);
    assert_false(any_has(&t, "garbage"));
    subject_finish(&t);
    options.capacity_bytes = 100 * MIB;
    options.without = DRY_WITHOUT_GC;
    t = subject_of(retrying_program(), "2.11", &options);
    check(&t);
    assert_false(any_has(&t, "garbage"));
    subject_finish(&t);
}

/* --- what is never proposed --------------------------------------------------------------- */

static void
what_is_excluded_is_not_tried(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_PEAK, UNLIMITED, MIB);
    options.without = DRY_WITHOUT_EXPANDABLE | DRY_WITHOUT_SPLIT | DRY_WITHOUT_GC;
    struct subject t = subject_init(pinning_program(), &options);
    check(&t);
    assert_false(any_has(&t, "expandable"));
    assert_false(any_has(&t, "split"));
    assert_true(any_has(&t, "roundup"));
    subject_finish(&t);
}

static void
recorded_settings_that_are_excluded_do_not_stay(void **state)
{
    (void)state;
    struct dry_trace *trace =
        record_of(read_text(plain_program), "expandable_segments:True", UNLIMITED);
    struct dry_recommend_options options = options_for(DRY_GOAL_FIT, UNLIMITED, 0);
    options.without = DRY_WITHOUT_EXPANDABLE;
    struct subject t = subject_init(trace, &options);
    check(&t);
    assert_false(t.c[t.s->recorded].is_allowed);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CHANGE);
    assert_true(t.c[0].is_default);
    subject_finish(&t);
}

static void
the_combination_that_grows_does_not_stay(void **state)
{
    (void)state;
    struct dry_trace *trace =
        record_of(read_text(plain_program),
                  "expandable_segments:True,max_split_size_mb:128", UNLIMITED);
    struct subject t = subject_init(trace, NULL);
    check(&t);
    assert_false(t.c[t.s->recorded].is_allowed);
    assert_true(t.c[t.s->recorded].caveats & DRY_CAVEAT_GROWS);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CHANGE);
    subject_finish(&t);
}

static void
older_releases_get_what_they_have(void **state)
{
    (void)state;
    static const char *const releases[] = {"2.0", "2.6", "2.10", "2.11"};
    for (size_t i = 0; i < 4; i++) {
        struct dry_trace *trace = pinning_program();
        struct subject t = {.trace = trace, .replay = replay_with(trace, releases[i])};
        struct dry_recommend_options options = options_for(DRY_GOAL_PEAK, UNLIMITED, MIB);
        recommend(&t, &options);
        check(&t);
        assert_int_equal(any_has(&t, "expandable"), i >= 1);
        assert_int_equal(any_has(&t, "large_segment"), i >= 3);
        subject_finish(&t);
    }
}

/* --- what is kept ------------------------------------------------------------------------- */

static void
options_that_are_not_searched_are_kept(void **state)
{
    (void)state;
    struct dry_trace *trace = record_of(
        read_text(pinned_program),
        " pinned_use_background_threads:True, max_split_size_mb:128", 100 * MIB);
    struct dry_recommend_options options = options_for(DRY_GOAL_AUTO, 0, 0);
    options.without = DRY_WITHOUT_SPLIT;
    struct subject t = subject_init(trace, &options);
    check(&t);
    assert_string_equal(t.s->kept, "pinned_use_background_threads:True");
    assert_false(t.s->kept_is_lost);
    assert_string_equal(t.c[0].conf,
                        "pinned_use_background_threads:True,expandable_segments:True");
    assert_string_equal(t.c[0].label, "expandable_segments:True");
    subject_finish(&t);
}

/* Without a capacity a fraction means nothing, but whoever set it wants it to stay. */
static void
a_memory_fraction_stays_without_being_replayed(void **state)
{
    (void)state;
    struct dry_trace *trace = record_of(read_text(pinned_program),
                                        "per_process_memory_fraction:0.5", 400 * MIB);
    struct dry_recommend_options options =
        options_for(DRY_GOAL_PEAK, UNLIMITED, 10 * MIB);
    struct subject t = subject_init(trace, &options);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_CHANGE);
    const char *begin = "per_process_memory_fraction:0.5,expandable_segments:True";
    assert_memory_equal(t.c[0].conf, begin, strlen(begin));
    subject_finish(&t);
}

struct kept_case {
    const char *recorded;
    const char *kept; /* NULL: lost */
};

static void
what_is_kept_is_safe_to_paste(void **state)
{
    (void)state;
    static const struct kept_case cases[] = {
        {"", ""},
        {"max_split_size_mb:64", ""},
        {"backend:native,expandable_segments:True", "backend:native"},
        {"roundup_power2_divisions:[256:1,512:2,>:4],backend:native", "backend:native"},
        {"expandable_segments_reserve_by_class:[a:1,b:2]",
         "expandable_segments_reserve_by_class:[a:1,b:2]"},
        {"per_process_memory_fraction:0.5,backend:native", "backend:native"},
        {"a:1;rm -rf", NULL},
        {"a:'$(x)'", NULL},
        {"a:1\x01", NULL},
        {"backend", NULL},
        {":native", ":native"}, /* PyTorch refuses the key; the caller asks it */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char kept[DRYI_KEPT_BYTES];
        bool ok = dryi_setting_keep(cases[i].recorded, false, kept);
        assert_int_equal(ok, cases[i].kept != NULL);
        assert_string_equal(kept, cases[i].kept ? cases[i].kept : "");
    }
    char kept[DRYI_KEPT_BYTES], text[2000];
    memset(text, 'a', sizeof text);
    memcpy(text, "key:", 4);
    text[sizeof text - 1] = '\0';
    assert_false(dryi_setting_keep(text, true, kept));
    text[DRYI_KEPT_BYTES] = '\0';
    assert_false(dryi_setting_keep(text, true, kept));
    assert_string_equal(kept, "");
    text[DRYI_KEPT_BYTES - 2] = '\0';
    assert_true(dryi_setting_keep(text, true, kept));
    assert_string_equal(kept, text);
}

/* --- settings as text --------------------------------------------------------------------- */

static void
parses_back(const struct dryi_setting *setting, const char *expected)
{
    char text[DRYI_SETTING_BYTES];
    struct dryi_torch_conf conf, again;
    struct dryi_setting back;
    dryi_setting_format(setting, text);
    if (expected)
        assert_string_equal(text, expected);
    dryi_torch_conf_init(&conf);
    assert_int_equal(dryi_torch_conf_parse(text, strlen(text), NULL, &conf, NULL),
                     DRY_OK);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(conf.roundup_power2_divisions[i], setting->divisions[i]);
    assert_true(dryi_setting_of_conf(&conf, &back));
    dryi_setting_format(&back, text);
    dryi_torch_conf_init(&again);
    assert_int_equal(dryi_torch_conf_parse(text, strlen(text), NULL, &again, NULL),
                     DRY_OK);
    again.per_process_memory_fraction = conf.per_process_memory_fraction; /* kept apart */
    assert_true(dryi_setting_is_same_conf(&conf, &again));
}

static void
settings_mean_what_their_text_says(void **state)
{
    (void)state;
    parses_back(&(struct dryi_setting){0}, "");
    parses_back(&(struct dryi_setting){.expandable = true, .large_mib = 12},
                "expandable_segments:True,large_segment_size_mb:12");
    parses_back(&(struct dryi_setting){.split_mib = 200, .slack_mib = 64},
                "max_split_size_mb:200,max_non_split_rounding_mb:64");
    parses_back(&(struct dryi_setting){.gc_percent = 80, .limit_percent = 95},
                "garbage_collection_threshold:0.8,per_process_memory_fraction:0.95");
    struct dryi_setting s = {0};
    dryi_setting_set_roundup(&s, 8);
    parses_back(&s, "roundup_power2_divisions:8");
    for (unsigned first = 0; first < 16; first++) {
        for (unsigned last = first; last < 16; last++) {
            memset(s.divisions, 0, sizeof s.divisions);
            for (unsigned i = first; i <= last; i++)
                s.divisions[i] = i % 3 ? 4 : 16;
            parses_back(&s, NULL);
        }
    }
    memset(s.divisions, 128, sizeof s.divisions);
    for (unsigned i = 0; i < 16; i += 2)
        s.divisions[i] = 64;
    s.split_mib = s.slack_mib = s.large_mib = UINT32_MAX; /* the longest there is */
    s.expandable = true;
    s.gc_percent = s.limit_percent = 99;
    char text[DRYI_SETTING_BYTES];
    dryi_setting_format(&s, text);
    assert_non_null(strstr(text, "per_process_memory_fraction:0.99"));
}

static void
releases_are_numbers(void **state)
{
    (void)state;
    assert_int_equal(dryi_release_number("2.11"), 211);
    assert_int_equal(dryi_release_number("2.6.1"), 206);
    assert_int_equal(dryi_release_number("2.15.0a0"), 215);
    assert_int_equal(dryi_release_number("new"), 0);
    assert_int_equal(dryi_release_number("2"), 0);
    assert_int_equal(dryi_release_number("2."), 0);
}

/* --- demand ------------------------------------------------------------------------------- */

static void
split_sizes_lie_around_what_is_asked_for(void **state)
{
    (void)state;
    struct dryi_demand *d = calloc(1, sizeof *d);
    uint32_t mib[10];
    assert_non_null(d);
    assert_int_equal(dryi_demand_split_sizes(d, 20, mib, 10), 0);
    free(d);
    struct subject t = subject_init(pinning_program(), NULL);
    assert_int_equal(t.s->floor_bytes, 7 * 110 * MIB + 200 * MIB);
    assert_int_equal(t.s->floor_event, 21);
    subject_finish(&t);
}

static void
the_floor_is_what_blocks_of_512_bytes_take(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pytorch/decomfl.pickle", "pytorch/late-start.pickle",
        "pytorch/transformer-medium-512-train.pickle", "plain/decomfl.trace"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dry_recommend_options options = options_for(DRY_GOAL_PEAK, UNLIMITED, 1);
        struct subject t = subject_init(read_recording(names[i]), &options);
        check(&t);
        const struct dry_candidate *c = find(&t, "expandable_segments:True");
        if (!c)
            fail_msg("not tried");
        else
            assert_int_equal(c->run.allocated_peak_bytes, t.s->floor_bytes);
        subject_finish(&t);
    }
}

static void
what_is_claimed_of_recordings_comes_out_again(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pytorch/decomfl.pickle", "pytorch/late-start.pickle",
        "pytorch/python-stacks-only.pickle", "plain/late-start.trace"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dry_trace *trace = read_recording(names[i]);
        for (unsigned k = 0; k < 4; k++) {
            static const enum dry_goal goals[] = {DRY_GOAL_FIT, DRY_GOAL_STABLE,
                                                  DRY_GOAL_PEAK, DRY_GOAL_FIT};
            struct subject t = {.trace = trace, .replay = replay_of(trace)};
            struct dry_recommend_options options =
                options_for(goals[k], UNLIMITED, 8 * MIB);
            recommend(&t, &options);
            if (k >= 2) { /* once more on a device that is just too small */
                options.capacity_bytes = t.s->floor_bytes + 16 * MIB;
                dry_recommend_destroy(t.rec);
                recommend(&t, &options);
            }
            check(&t);
            dry_recommend_destroy(t.rec);
            dry_replay_destroy(t.replay);
        }
        dry_trace_destroy(trace);
    }
}

/* --- the call ----------------------------------------------------------------------------- */

struct watch {
    size_t calls, stop_at;
};

static bool
count_runs(void *self, size_t run_count, size_t run_max)
{
    struct watch *w = self;
    assert_int_equal(run_count, w->calls);
    assert_true(run_count < run_max);
    return w->calls++ == w->stop_at;
}

static void
the_budget_is_kept(void **state)
{
    (void)state;
    struct dry_trace *trace = pinning_program();
    for (size_t runs = 1; runs <= 40; runs++) {
        for (enum dry_goal goal = DRY_GOAL_FIT; goal <= DRY_GOAL_STABLE; goal++) {
            struct watch w = {.stop_at = SIZE_MAX};
            struct dry_recommend_options options =
                options_for(goal, runs % 2 ? UNLIMITED : 500 * MIB, MIB);
            options.run_max = runs;
            options.progress = count_runs;
            options.progress_self = &w;
            struct subject t = {.trace = trace, .replay = replay_of(trace)};
            recommend(&t, &options);
            check(&t);
            assert_int_equal(t.s->run_max, runs);
            assert_int_equal(t.s->run_count, w.calls);
            dry_recommend_destroy(t.rec);
            dry_replay_destroy(t.replay);
        }
    }
    dry_trace_destroy(trace);
}

static void
a_search_can_be_cancelled(void **state)
{
    (void)state;
    struct dry_trace *trace = pinning_program();
    struct dry_replay *replay = replay_of(trace);
    for (size_t n = 0; n < 10; n++) {
        struct watch w = {.stop_at = n};
        struct dry_recommend_options options = options_for(DRY_GOAL_PEAK, UNLIMITED, MIB);
        options.progress = count_runs;
        options.progress_self = &w;
        struct dry_recommendation *rec = NULL;
        struct dry_error err;
        assert_int_equal(dry_recommend_create(replay, &options, &rec, &err),
                         DRY_ERR_CANCELLED);
        assert_int_equal(err.status, DRY_ERR_CANCELLED);
        assert_null(rec);
        assert_int_equal(w.calls, n + 1);
    }
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
the_same_comes_out_twice(void **state)
{
    (void)state;
    struct dry_recommend_options options = options_for(DRY_GOAL_FIT, 600 * MIB, MIB);
    struct subject a = subject_init(pinning_program(), &options);
    struct subject b = subject_init(pinning_program(), &options);
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        assert_string_equal(a.c[i].conf, b.c[i].conf);
        assert_int_equal(a.c[i].verdict, b.c[i].verdict);
        assert_int_equal(a.c[i].runs_on_bytes, b.c[i].runs_on_bytes);
        assert_int_equal(a.c[i].fails_on_bytes, b.c[i].fails_on_bytes);
    }
    subject_finish(&a);
    subject_finish(&b);
}

static void
what_the_caller_gets_wrong_is_refused(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(plain_program);
    struct dry_replay *replay = replay_of(trace);
    struct dry_recommendation *rec = NULL;
    struct dry_error err;
    struct dry_recommend_options options = options_for((enum dry_goal)17, 0, 0);
    assert_int_equal(dry_recommend_create(replay, &options, &rec, &err),
                     DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "17"));
    options = options_for(DRY_GOAL_FIT, 0, 0);
    options.without = 64;
    assert_int_equal(dry_recommend_create(replay, &options, &rec, NULL),
                     DRY_ERR_ARGUMENT);
    options = (struct dry_recommend_options){0};
    assert_int_equal(dry_recommend_create(replay, &options, &rec, NULL),
                     DRY_ERR_ARGUMENT);
    assert_null(rec);
    dry_recommend_destroy(NULL);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
an_empty_program_needs_nothing(void **state)
{
    (void)state;
    struct subject t = subject_init(read_text("i 0 1048576 0 0\n"), NULL);
    check(&t);
    assert_int_equal(t.s->outcome, DRY_OUTCOME_NO_EVIDENCE);
    assert_int_equal(t.s->floor_bytes, MIB);
    assert_int_equal(t.s->floor_event, SIZE_MAX);
    assert_true(t.s->begins_warm);
    subject_finish(&t);
}

/* The search's own memory, and that of the runs, which is the replay's. */
static void
no_memory_is_survived(void **state)
{
    (void)state;
    struct dry_trace *trace = record_of(read_text(pinned_program), "", 100 * MIB);
    struct failing_memory fm;
    for (size_t n = 0;; n++) {
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_replay *replay = replay_of(trace);
        struct dry_recommend_options options = options_for(DRY_GOAL_FIT, 0, MIB);
        options.memory = &memory;
        struct dry_recommendation *rec = NULL;
        struct dry_error err = {0};
        enum dry_status status = dry_recommend_create(replay, &options, &rec, &err);
        assert_int_equal(rec != NULL, status == DRY_OK);
        dry_recommend_destroy(rec);
        dry_replay_destroy(replay);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_int_equal(status, DRY_ERR_MEMORY);
        assert_true(err.text[0]);
    }
    dry_trace_destroy(trace);
}

static void
no_memory_in_a_run_is_survived(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("a 1 3145728 0 1\na 2 99 0 1\nf 1\n");
    struct failing_memory fm;
    for (size_t n = 0;; n++) {
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_replay_options replay_options;
        dry_replay_options_init(&replay_options);
        replay_options.memory = &memory;
        struct dry_replay *replay = NULL;
        struct dry_error err = {0};
        enum dry_status status = dry_replay_create(trace, &replay_options, &replay, &err);
        struct dry_recommend_options options = options_for(DRY_GOAL_FIT, 0, MIB);
        options.run_max = 8;
        struct dry_recommendation *rec = NULL;
        if (status == DRY_OK)
            status = dry_recommend_create(replay, &options, &rec, &err);
        assert_int_equal(rec != NULL, status == DRY_OK);
        dry_recommend_destroy(rec);
        dry_replay_destroy(replay);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
    dry_trace_destroy(trace);
}

static void
names_are_stable(void **state)
{
    (void)state;
    assert_string_equal(dry_goal_name(DRY_GOAL_STABLE), "stable");
    assert_string_equal(dry_goal_name((enum dry_goal)9), "unknown");
    assert_string_equal(dry_outcome_name(DRY_OUTCOME_CAPACITY), "capacity");
    assert_string_equal(dry_verdict_name(DRY_VERDICT_NO_GAIN), "no-gain");
    assert_string_equal(dry_caveat_name(DRY_CAVEAT_GROWS), "grows");
    assert_string_equal(dry_caveat_name(3), "unknown");
    for (uint32_t bit = 1; bit < 1u << DRY_CAVEAT_COUNT; bit <<= 1)
        assert_true(strlen(dry_caveat_text(bit)) > 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recorded_oom_of_fragments_goes_away),
        cmocka_unit_test(events_after_an_oom_are_counted_not_projected),
        cmocka_unit_test(an_oom_older_than_its_window_does_not_come_back),
        cmocka_unit_test(a_full_device_is_told_by_a_sum),
        cmocka_unit_test(without_what_helps_nothing_does),
        cmocka_unit_test(where_there_is_nothing_to_win_all_stays),
        cmocka_unit_test(settings_stay_if_the_default_gains_nothing),
        cmocka_unit_test(a_split_size_is_made_from_the_sizes_asked_for),
        cmocka_unit_test(what_was_not_searched_to_the_end_has_no_loss),
        cmocka_unit_test(of_equals_the_one_with_fewer_caveats_wins),
        cmocka_unit_test(retries_are_what_stable_counts),
        cmocka_unit_test(garbage_is_collected_only_where_a_device_is_full),
        cmocka_unit_test(what_is_excluded_is_not_tried),
        cmocka_unit_test(recorded_settings_that_are_excluded_do_not_stay),
        cmocka_unit_test(the_combination_that_grows_does_not_stay),
        cmocka_unit_test(older_releases_get_what_they_have),
        cmocka_unit_test(options_that_are_not_searched_are_kept),
        cmocka_unit_test(a_memory_fraction_stays_without_being_replayed),
        cmocka_unit_test(what_is_kept_is_safe_to_paste),
        cmocka_unit_test(settings_mean_what_their_text_says),
        cmocka_unit_test(releases_are_numbers),
        cmocka_unit_test(split_sizes_lie_around_what_is_asked_for),
        cmocka_unit_test(the_floor_is_what_blocks_of_512_bytes_take),
        cmocka_unit_test(what_is_claimed_of_recordings_comes_out_again),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(a_search_can_be_cancelled),
        cmocka_unit_test(the_same_comes_out_twice),
        cmocka_unit_test(what_the_caller_gets_wrong_is_refused),
        cmocka_unit_test(an_empty_program_needs_nothing),
        cmocka_unit_test(no_memory_is_survived),
        cmocka_unit_test(no_memory_in_a_run_is_survived),
        cmocka_unit_test(names_are_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
