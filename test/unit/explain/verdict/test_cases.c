/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every labelled case is what its label says. The sums are over what the allocator and the
 * device knew at the moment (struct case_truth); whether a setting helps is found by
 * replaying the record under it on the same device. A case of the third set is run anew
 * without its cause, and under settings. Nothing here asks an explanation.
 *
 * test_cases --table prints a line a case first.
 */

#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "base/map.h"
#include "base/memory.h"
#include "cases/cases.h"
#include "support/bytes.h"
#include "support/same_trace.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define CONTEXT (610 * MIB) /* of a device that nobody else uses */
#define EDGE (20 * MIB)     /* what others' memory may leave to spare */

/* What people try. */
static const char *const usual_settings[] = {
    "expandable_segments:True",
    "max_split_size_mb:32",
    "max_split_size_mb:64",
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "roundup_power2_divisions:2",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:0.8",
    "max_split_size_mb:128,garbage_collection_threshold:0.6",
    "large_segment_size_mb:64",
    "expandable_segments:True,roundup_power2_divisions:4",
};
#define SETTING_COUNT (sizeof usual_settings / sizeof *usual_settings)

/* --- one case, made ----------------------------------------------------------------------- */

struct made {
    const struct labelled_case *label;
    struct case_truth truth;
    struct dry_trace *snapshot;
    struct dry_replay *replay;
};

/* fail_msg() alone does not say which case it was. */
#define HOLDS(made, condition)                                                           \
    do {                                                                                 \
        if (!(condition))                                                                \
            fail_msg("case %s: not so: %s", (made)->label->name, #condition);            \
    } while (0)

static void
make(struct made *m, const struct labelled_case *label)
{
    struct dry_error err;
    *m = (struct made){.label = label};
    if (case_make(label, &m->snapshot, &m->truth, &err) != DRY_OK)
        fail_msg("case %s: %s", label->name, err.text);
    struct dry_replay_options options;
    dry_replay_options_init(&options);
    options.device = m->truth.device;
    assert_int_equal(dry_replay_create(m->snapshot, &options, &m->replay, NULL), DRY_OK);
}

static void
drop(struct made *m)
{
    dry_replay_destroy(m->replay);
    dry_trace_destroy(m->snapshot);
}

static void
for_each_case(void (*holds)(struct made *m))
{
    for (size_t i = 0; i < case_count(); i++) {
        struct made m;
        make(&m, case_at(i));
        holds(&m);
        drop(&m);
    }
}

static bool
runs_out(const struct made *m, const char *conf, uint64_t capacity_bytes)
{
    struct dry_run_options options;
    struct dry_run run;
    dry_run_options_init(&options);
    options.conf = conf;
    options.capacity_bytes = capacity_bytes;
    options.begin_anew = true;
    assert_int_equal(dry_replay_run(m->replay, &options, &run, NULL), DRY_OK);
    return run.oom;
}

/* The third set is labelled by what the removal of a cause would have bought. */
static bool
is_by_removal(const struct made *m)
{
    return strncmp(m->label->name, "third-", 6) == 0 ||
           strncmp(m->label->name, "later-", 6) == 0;
}

/* Sums that differ by less are even, in the third set. */
static uint64_t
tie_bytes(const struct made *m)
{
    return is_by_removal(m) ? case_allowed_bytes(&m->truth) / 50 : 0;
}

/* The most that is alive at once where the device is four times as large. */
static uint64_t
demand(const struct labelled_case *label)
{
    struct labelled_case twin = *label;
    twin.total_bytes *= 4;
    struct made m;
    make(&m, &twin);
    uint64_t bytes = m.truth.device_peak_bytes[m.truth.device];
    drop(&m);
    return bytes;
}

/* The steps of a twin before its OOM; SIZE_MAX if it has none. */
static size_t
steps_of(const struct labelled_case *twin)
{
    struct made m;
    make(&m, twin);
    size_t steps = m.truth.has_oom ? m.truth.step_count : SIZE_MAX;
    drop(&m);
    return steps;
}

/* Run anew; a fraction in the case's own settings stays, unless the setting is another. */
static size_t
steps_under(const struct labelled_case *label, const char *setting)
{
    char conf[256];
    struct labelled_case twin = *label;
    bool is_kept =
        label->conf && strstr(label->conf, "fraction") && !strstr(setting, "fraction");
    snprintf(conf, sizeof conf, "%s%s%s", setting, is_kept ? "," : "",
             is_kept ? label->conf : "");
    twin.conf = conf;
    return steps_of(&twin);
}

static size_t
steps_under_the_best(const struct labelled_case *label)
{
    size_t most = 0;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        size_t steps = steps_under(label, usual_settings[i]);
        most = steps > most ? steps : most;
    }
    return most;
}

/* Capacity and overflow are what is left if no removal helps. */
static size_t
steps_without(const struct labelled_case *label, enum dry_cause cause)
{
    struct labelled_case twin = *label;
    if (cause == DRY_CAUSE_FRAGMENTATION || cause == DRY_CAUSE_STRANDED)
        return steps_under_the_best(label);
    twin.without = cause;
    if (cause == DRY_CAUSE_OTHER_MEMORY && twin.other_bytes > CONTEXT)
        twin.other_bytes = CONTEXT;
    if (cause == DRY_CAUSE_LIMIT) {
        twin.fraction = 0;
        if (twin.conf && strstr(twin.conf, "fraction"))
            twin.conf = NULL;
    }
    return steps_of(&twin);
}

/* --- the record --------------------------------------------------------------------------- */

static void
is_recorded_exactly(struct made *m)
{
    const struct dry_replay_check *check = dry_replay_get_check(m->replay);
    if (m->label->has_no_events || check->alloc_count == 0) {
        HOLDS(m, !check->possible); /* no address can be right or wrong */
        return;
    }
    HOLDS(m, check->possible);
    if (!check->exact)
        fail_msg("case %s: %s", m->label->name, check->first_mismatch.what);
}

static void
records_replay_exactly(void **state)
{
    (void)state;
    for_each_case(is_recorded_exactly);
}

static const struct dry_trace_device *
device_of(const struct dry_trace_view *v, int32_t device)
{
    size_t i = 0;
    while (i < v->device_count && v->devices[i].device != device)
        i++;
    assert_true(i < v->device_count);
    return &v->devices[i];
}

/* Requested bytes of what the events before `end` took and did not give back. */
static uint64_t
sum_live(const struct dry_trace_view *v, const struct dry_trace_device *d, size_t end)
{
    struct dry_memory memory = dryi_memory_or_default(NULL);
    struct dryi_map live;
    uint64_t sum = 0;
    dryi_map_init(&live, &memory);
    for (size_t i = d->first_event; i < end; i++) {
        const uint32_t *taken = dryi_map_find(&live, v->addr[i]);
        if (v->action[i] == DRY_ACTION_ALLOC) {
            assert_true(dryi_map_put(&live, v->addr[i], (uint32_t)i));
            sum += v->size[i];
        } else if (v->action[i] == DRY_ACTION_FREE_REQUESTED && taken) {
            sum -= v->size[*taken];
            dryi_map_take(&live, v->addr[i]);
        }
    }
    dryi_map_finish(&live);
    return sum;
}

static bool
is_well(const struct labelled_case *label)
{
    return label->cause == DRY_CAUSE_NONE || label->cause == DRY_CAUSE_UNKNOWN;
}

static void
record_agrees_with_truth(struct made *m)
{
    const struct case_truth *t = &m->truth;
    const struct dry_trace_view *v = dry_trace_get_view(m->snapshot);
    const struct dry_replay_recorded *recorded = dry_replay_get_recorded(m->replay);
    HOLDS(m, t->has_oom == (!is_well(m->label) && !m->label->survives));
    HOLDS(m, t->reserved_bytes + t->device_free_bytes == t->capacity_bytes);
    if (t->oom_event == SIZE_MAX) {
        HOLDS(m, !recorded->oom);
        return;
    }
    HOLDS(m, recorded->oom && recorded->oom_event == t->oom_event);
    HOLDS(m, v->action[t->oom_event] == DRY_ACTION_OOM);
    HOLDS(m, v->size[t->oom_event] == t->rounded_bytes);
    HOLDS(m, v->addr[t->oom_event] == t->device_free_bytes);
    HOLDS(m, v->lanes[v->lane[t->oom_event]].stream == t->request_stream);
    const struct dry_trace_device *d = device_of(v, t->device);
    if (m->label->ring_entries == 0)
        HOLDS(m, sum_live(v, d, t->oom_event) == t->requested_bytes);
    if (t->limit_bytes == UINT64_MAX)
        HOLDS(m, recorded->capacity_bytes == t->capacity_bytes);
}

static void
records_agree_with_the_truth(void **state)
{
    (void)state;
    for_each_case(record_agrees_with_truth);
}

static void
survives_a_file(struct made *m)
{
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    assert_int_equal(dry_trace_write(m->snapshot, &sink, NULL), DRY_OK);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, to.bytes, to.count);
    struct dry_trace *again;
    assert_int_equal(dry_trace_read(&source, NULL, &again, NULL), DRY_OK);
    const char *difference = same_trace(m->snapshot, again);
    if (difference)
        fail_msg("case %s: %s differs", m->label->name, difference);
    dry_trace_destroy(again);
    bytes_sink_finish(&to);
}

static void
is_made_the_same_again(struct made *m)
{
    struct made again;
    make(&again, m->label);
    HOLDS(m, same_trace(m->snapshot, again.snapshot) == NULL);
    HOLDS(m, again.truth.live_bytes == m->truth.live_bytes);
    drop(&again);
}

static void
snapshots_survive_a_file(void **state)
{
    (void)state;
    for_each_case(survives_a_file);
}

static void
cases_are_the_same_every_time(void **state)
{
    (void)state;
    for_each_case(is_made_the_same_again);
}

/* --- what the classes mean ---------------------------------------------------------------- */

/* The sums of capacity, fragmentation, stranded, pending and limit exclude one another. */

/* What is alive and what was asked for exceed all that PyTorch could have had. */
static bool
exceeds(const struct case_truth *t, uint64_t bytes)
{
    return t->live_bytes + t->rounded_bytes > bytes;
}

static void
is_capacity(const struct made *m)
{
    const struct labelled_case *label = m->label;
    bool asks_for_more = is_by_removal(m) && label->cause == DRY_CAUSE_CAPACITY &&
                         demand(label) > m->truth.capacity_bytes;
    HOLDS(m, asks_for_more || exceeds(&m->truth, m->truth.capacity_bytes - tie_bytes(m)));
    HOLDS(m, m->truth.pending_before_bytes == 0);
    HOLDS(m, !label->setting_helps || is_by_removal(m));
}

/* It would fit, it would fit into the holes of its own lane, and into no single one. */
static void
is_fragmentation(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    uint64_t tie = tie_bytes(m);
    uint64_t device = is_by_removal(m) ? t->device_free_bytes : 0;
    HOLDS(m, !exceeds(t, case_allowed_bytes(t) + tie));
    HOLDS(m, t->lane_free_bytes + device + tie >= t->rounded_bytes);
    HOLDS(m, t->lane_hole_bytes < t->rounded_bytes);
    HOLDS(m, t->device_free_bytes < t->driver_bytes);
    HOLDS(m, t->releasable_bytes == 0);
    HOLDS(m, t->pending_before_bytes == 0);
}

/*
 * It would fit, but what is eligible is too little even in one piece; or, in the third set,
 * more lies elsewhere.
 */
static void
is_stranded(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    uint64_t eligible = t->lane_free_bytes + t->device_free_bytes;
    HOLDS(m, !exceeds(t, case_allowed_bytes(t)));
    uint64_t elsewhere =
        t->other_class_bytes + t->other_stream_bytes + t->other_pool_bytes;
    HOLDS(m, eligible < t->rounded_bytes || (is_by_removal(m) && eligible < elsewhere));
    HOLDS(m, eligible + elsewhere >= t->rounded_bytes);
    HOLDS(m, t->releasable_bytes == 0);
    HOLDS(m, t->pending_before_bytes == 0);
}

/* It would have been served at once, had the streams been done when it was asked. */
static void
is_pending(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    HOLDS(m, !exceeds(t, case_allowed_bytes(t)));
    HOLDS(m, t->hole_before_bytes < t->rounded_bytes);
    HOLDS(m, t->pending_before_bytes >= t->rounded_bytes);
    HOLDS(m, t->hole_if_done_bytes >= t->rounded_bytes);
    HOLDS(m, t->device_free_bytes < t->driver_bytes);
}

/* The device has room, the limit has not. */
static void
is_limit(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    HOLDS(m, t->limit_bytes < t->capacity_bytes);
    HOLDS(m, t->device_free_bytes >= t->driver_bytes);
    HOLDS(m, t->reserved_bytes + t->driver_bytes > t->limit_bytes);
    HOLDS(m, exceeds(t, t->limit_bytes));
    HOLDS(m, !exceeds(t, t->capacity_bytes));
}

/* The card is large enough, what others leave of it is not. */
static void
is_other_memory(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    uint64_t other = t->total_bytes - t->device_free_bytes - t->reserved_bytes;
    HOLDS(m, exceeds(t, t->capacity_bytes - (is_by_removal(m) ? EDGE + 1 : 0)));
    HOLDS(m, !exceeds(t, t->total_bytes));
    HOLDS(m, other == m->label->other_bytes);
    HOLDS(m, other > t->total_bytes / 2);
}

/* What the steps after the first left. */
static uint64_t
grown_bytes(const struct case_truth *t)
{
    return t->step_live_bytes[t->step_count - 1] - t->step_live_bytes[0];
}

/* Every step ends with more than the one before, and the sum is most of what is short. */
static void
is_leak(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    bool is_new = is_by_removal(m);
    HOLDS(m, t->step_count >= (is_new ? 4 : 10));
    for (size_t i = is_new ? 1 : 2; i < t->step_count; i++)
        HOLDS(m, t->step_live_bytes[i] >=
                     t->step_live_bytes[i - 1] + (is_new ? 1 : 64) * MIB);
    HOLDS(m, is_new || grown_bytes(t) > t->rounded_bytes);
}

/* Without what earlier steps left it fits, with more steps to spare than settings buy. */
static void
outlasts_settings(const struct made *m, size_t steps)
{
    const struct case_truth *t = &m->truth;
    uint64_t grown = grown_bytes(t);
    HOLDS(m, !exceeds(t, case_allowed_bytes(t) + grown));
    uint64_t spare = case_allowed_bytes(t) + grown - t->live_bytes - t->rounded_bytes;
    HOLDS(m, steps < t->step_count ||
                 spare * (t->step_count - 1) > grown * (steps - t->step_count));
}

/* The stack that holds most of what lives at `end` and was taken from `begin` on. */
static uint64_t
largest_owner(const struct dry_trace_view *v, size_t begin, size_t end)
{
    uint64_t largest = 0;
    uint64_t *owned = calloc(v->stack_count, sizeof *owned);
    assert_non_null(owned);
    for (size_t i = begin; i < end; i++) {
        bool is_live = v->action[i] == DRY_ACTION_ALLOC;
        for (size_t j = i + 1; is_live && j < end; j++)
            is_live =
                v->action[j] != DRY_ACTION_FREE_REQUESTED || v->addr[j] != v->addr[i];
        if (is_live)
            owned[v->stack[i]] += v->size[i];
    }
    for (uint32_t s = 0; s < v->stack_count; s++)
        largest = owned[s] > largest ? owned[s] : largest;
    free(owned);
    return largest;
}

/* Where the last hundredth of the requests begins; what the ladder gave back is none. */
static size_t
last_hundredth(const struct dry_trace_view *v, const struct dry_trace_device *d,
               size_t end)
{
    size_t count = 0;
    for (size_t i = d->first_event; i < end; i++)
        count += v->action[i] == DRY_ACTION_ALLOC;
    size_t at = end;
    for (size_t left = count / 100; left > 0; left -= v->action[at] == DRY_ACTION_ALLOC)
        at--;
    return at;
}

/* One line of the last hundredth of the requests holds a fifth of what lives, or more. */
static void
is_spike(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    const struct dry_trace_view *v = dry_trace_get_view(m->snapshot);
    const struct dry_trace_device *d = device_of(v, t->device);
    uint64_t owned = largest_owner(v, last_hundredth(v, d, t->oom_event), t->oom_event);
    HOLDS(m, owned * 5 >= t->live_bytes);
    HOLDS(m, t->step_count >= 4);
    uint64_t drift = is_by_removal(m) ? t->step_live_bytes[1] / 20 : 0;
    for (size_t i = 1; i < t->step_count; i++)
        HOLDS(m, t->step_live_bytes[i] >= t->step_live_bytes[1] &&
                     t->step_live_bytes[i] <= t->step_live_bytes[1] + drift);
}

static void
is_imbalance(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    HOLDS(m, t->device_count >= 2);
    for (size_t i = 0; i < t->device_count; i++) {
        if (i != (size_t)t->device)
            HOLDS(m, t->device_peak_bytes[i] * 4 < t->live_bytes);
    }
}

/* Most of what lives was taken before the record begins. */
static void
is_overflow(const struct made *m)
{
    const struct case_truth *t = &m->truth;
    const struct dry_trace_view *v = dry_trace_get_view(m->snapshot);
    const struct dry_trace_device *d = device_of(v, t->device);
    HOLDS(m, d->event_count == m->label->ring_entries);
    HOLDS(m, dry_replay_get_check(m->replay)->live_before > 0);
    HOLDS(m, sum_live(v, d, t->oom_event) < t->requested_bytes / 2);
}

static void
is_nothing(const struct made *m)
{
    HOLDS(m, m->truth.oom_event == SIZE_MAX);
    HOLDS(m, m->truth.device_free_bytes > 0);
    HOLDS(m, m->truth.pending_bytes == 0);
    HOLDS(m, m->truth.retry_count == 0);
}

/* It ran, and met the end of its room. */
static void
is_near_limit(const struct made *m)
{
    HOLDS(m, !m->truth.has_oom);
    HOLDS(m, m->truth.retry_count > 0);
    HOLDS(m, m->label->survives);
}

/* Nothing failed, and more than a twentieth of the memory lies in pieces at the end. */
static void
is_waste(const struct made *m)
{
    const struct dry_trace_view *v = dry_trace_get_view(m->snapshot);
    uint64_t held = 0;
    HOLDS(m, !m->truth.has_oom);
    for (size_t s = 0; s < v->segment_count; s++) {
        if (v->segments[s].active_size > 0)
            held += v->segments[s].total_size - v->segments[s].active_size;
    }
    HOLDS(m, held > 64 * MIB && held > m->truth.end_reserved_bytes / 20);
}

/* Nothing failed, but the record has no event that could tell. */
static void
is_untold(const struct made *m)
{
    HOLDS(m, m->label->has_no_events && !m->truth.has_oom);
}

static void
is_of_class(const struct made *m, enum dry_cause cause)
{
    static void (*const proofs[DRY_CAUSE_COUNT])(const struct made *m) = {
        [DRY_CAUSE_NONE] = is_nothing,
        [DRY_CAUSE_UNKNOWN] = is_untold,
        [DRY_CAUSE_CAPACITY] = is_capacity,
        [DRY_CAUSE_FRAGMENTATION] = is_fragmentation,
        [DRY_CAUSE_STRANDED] = is_stranded,
        [DRY_CAUSE_PENDING] = is_pending,
        [DRY_CAUSE_LIMIT] = is_limit,
        [DRY_CAUSE_OTHER_MEMORY] = is_other_memory,
        [DRY_CAUSE_LEAK] = is_leak,
        [DRY_CAUSE_SPIKE] = is_spike,
        [DRY_CAUSE_IMBALANCE] = is_imbalance,
        [DRY_CAUSE_OVERFLOW] = is_overflow,
        [DRY_CAUSE_NEAR_LIMIT] = is_near_limit,
    };
    if (cause == DRY_CAUSE_FRAGMENTATION && m->label->survives) {
        is_waste(m);
        return;
    }
    HOLDS(m, proofs[cause] != NULL);
    proofs[cause](m);
}

static void
is_what_its_label_says(struct made *m)
{
    is_of_class(m, m->label->cause);
    if (m->label->second != DRY_CAUSE_NONE)
        is_of_class(m, m->label->second);
}

static void
cases_are_what_their_labels_say(void **state)
{
    (void)state;
    for_each_case(is_what_its_label_says);
}

/*
 * No removal of another cause, and no setting, lasts as long as that of the first cause. If
 * others' memory and a setting last alike, the others' gives back a hundred times the bytes.
 */
static void
lasts_longest_without_its_cause(struct made *m)
{
    static const enum dry_cause causes[] = {DRY_CAUSE_LEAK, DRY_CAUSE_OTHER_MEMORY,
                                            DRY_CAUSE_LIMIT, DRY_CAUSE_IMBALANCE,
                                            DRY_CAUSE_FRAGMENTATION};
    const struct labelled_case *label = m->label;
    const struct case_truth *t = &m->truth;
    if (!is_by_removal(m) || label->survives)
        return;
    size_t first = steps_without(label, label->cause);
    if (label->setting_helps || label->cause == DRY_CAUSE_LEAK)
        HOLDS(m, first > t->step_count);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        size_t steps = steps_without(label, causes[i]);
        bool is_even =
            label->cause == DRY_CAUSE_OTHER_MEMORY &&
            exceeds(t, case_allowed_bytes(t) - (label->other_bytes - CONTEXT) / 100);
        bool is_same =
            causes[i] == label->cause ||
            (causes[i] == DRY_CAUSE_FRAGMENTATION && label->cause == DRY_CAUSE_STRANDED);
        if (!is_same && !is_even && steps >= first && steps > t->step_count)
            fail_msg("case %s: without %s it lasts as long", label->name,
                     dry_cause_name(causes[i]));
    }
    if (label->cause == DRY_CAUSE_LEAK)
        outlasts_settings(m, steps_under_the_best(label));
}

static void
no_other_removal_lasts_as_long(void **state)
{
    (void)state;
    for_each_case(lasts_longest_without_its_cause);
}

/* --- traps -------------------------------------------------------------------------------- */

static void
unwinding_hides_the_moment(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("capacity-expandable"));
    HOLDS(&m, m.truth.live_bytes * 100 > m.truth.reserved_bytes * 99);
    HOLDS(&m, m.truth.end_live_bytes == 0);
    HOLDS(&m, m.truth.end_reserved_bytes == m.truth.reserved_bytes);
    drop(&m);
}

static void
much_reserved_may_be_nothing_wrong(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("cache-only"));
    HOLDS(&m, m.truth.live_bytes * 5 < m.truth.reserved_bytes);
    HOLDS(&m, m.truth.live_bytes + m.truth.releasable_bytes >
                  m.truth.reserved_bytes / 10 * 9);
    drop(&m);
}

/* Free bytes of segments in which something lives, and of those in which nothing does. */
static void
sum_free(const struct dry_trace_view *v, uint64_t *held, uint64_t *releasable)
{
    *held = *releasable = 0;
    for (size_t s = 0; s < v->segment_count; s++) {
        uint64_t free_bytes = v->segments[s].total_size - v->segments[s].active_size;
        *(v->segments[s].active_size ? held : releasable) += free_bytes;
    }
}

static void
an_end_state_shows_fragmentation(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("fragmentation-end-state"));
    const struct dry_trace_view *v = dry_trace_get_view(m.snapshot);
    uint64_t held, releasable;
    sum_free(v, &held, &releasable);
    HOLDS(&m, v->event_count == 0);
    HOLDS(&m, held > m.truth.end_reserved_bytes / 3);
    HOLDS(&m, releasable < held / 5);
    drop(&m);
}

/* A program may run out of memory, catch it, and run on. */
static void
the_first_of_several_ooms_is_the_moment(void **state)
{
    (void)state;
    struct made m;
    make(&m, case_find("capacity-caught"));
    const struct dry_trace_view *v = dry_trace_get_view(m.snapshot);
    HOLDS(&m, dry_replay_get_check(m.replay)->oom_count >= 2);
    for (size_t i = 0; i < m.truth.oom_event; i++)
        HOLDS(&m, v->action[i] != DRY_ACTION_OOM);
    HOLDS(&m, m.truth.oom_event < v->event_count / 2);
    drop(&m);
}

/* --- what helps --------------------------------------------------------------------------- */

/* Where the limit is no setting, the device is taken to be as small. */
static uint64_t
capacity_for_settings(const struct made *m)
{
    return m->label->fraction > 0 ? case_allowed_bytes(&m->truth)
                                  : m->truth.capacity_bytes;
}

/* The setting beside the fraction that the case is about, if it is. */
static bool
runs_out_under(const struct made *m, const char *setting)
{
    char conf[256];
    uint64_t capacity = capacity_for_settings(m);
    snprintf(conf, sizeof conf, "%s", setting);
    if (m->label->cause == DRY_CAUSE_LIMIT && m->label->conf &&
        !strstr(setting, "per_process_memory_fraction")) {
        snprintf(conf, sizeof conf, "%s,%s", setting, m->label->conf);
        capacity = m->truth.total_bytes; /* it is a fraction of all of it */
    }
    return runs_out(m, conf, capacity);
}

/* Without a record nothing can be replayed: the same program, recorded. */
static void
make_with_events(struct made *m, struct labelled_case *twin,
                 const struct labelled_case *label)
{
    *twin = *label;
    twin->has_no_events = false;
    make(m, twin);
}

static void
removes_the_oom_as_stated(const struct made *m)
{
    const struct labelled_case *label = m->label;
    HOLDS(m, runs_out(m, NULL,
                      label->cause == DRY_CAUSE_LIMIT && label->conf
                          ? m->truth.total_bytes
                          : capacity_for_settings(m)));
    if (label->helps)
        HOLDS(m, !runs_out_under(m, label->helps));
    HOLDS(m, runs_out_under(m, usual_settings[0]) == !label->expandable_helps);
    for (size_t i = 0; i < SETTING_COUNT && !label->setting_helps; i++) {
        if (!runs_out_under(m, usual_settings[i]))
            fail_msg("case %s: %s helps", label->name, usual_settings[i]);
    }
}

static struct dry_run
run_within(const struct made *m, const char *conf, uint64_t allowed_bytes)
{
    struct dry_run_options options;
    struct dry_run run;
    dry_run_options_init(&options);
    options.conf = conf;
    options.capacity_bytes = allowed_bytes;
    options.begin_anew = true;
    options.find_capacity = m->truth.retry_count > 0;
    assert_int_equal(dry_replay_run(m->replay, &options, &run, NULL), DRY_OK);
    return run;
}

/* Less is reserved; at the limit a smaller device will do, or half of the retries. */
static bool
saves(const struct made *m, const char *conf)
{
    bool is_full = m->truth.retry_count > 0;
    uint64_t allowed_bytes = is_full ? case_allowed_bytes(&m->truth) : UINT64_MAX;
    struct dry_run before = run_within(m, NULL, allowed_bytes),
                   after = run_within(m, conf, allowed_bytes);
    uint64_t had = is_full ? before.capacity_bytes : before.reserved_peak_bytes;
    uint64_t has = is_full ? after.capacity_bytes : after.reserved_peak_bytes;
    uint64_t least = had / 100 > 64 * MIB ? had / 100 : 64 * MIB;
    bool is_calmer =
        is_full && 2 * after.stats.num_alloc_retries <= before.stats.num_alloc_retries;
    return !after.oom && (has + least <= had || is_calmer);
}

static void
saves_as_stated(const struct made *m)
{
    const struct labelled_case *label = m->label;
    if (label->helps)
        HOLDS(m, saves(m, label->helps));
    for (size_t i = 0; i < SETTING_COUNT && !label->setting_helps; i++) {
        if (saves(m, usual_settings[i]))
            fail_msg("case %s: %s helps", label->name, usual_settings[i]);
    }
}

/* Run anew under a setting that helps, a program lasts a step longer or more. */
static void
lasts_as_stated(const struct made *m)
{
    const struct labelled_case *label = m->label;
    size_t steps = m->truth.step_count;
    if (label->helps)
        HOLDS(m, steps_under(label, label->helps) > steps);
    HOLDS(m, (steps_under(label, usual_settings[0]) > steps) == label->expandable_helps);
    if (!label->setting_helps)
        HOLDS(m, steps_under_the_best(label) <= steps);
}

/* Of a record that is silent no replay tells anything; its longer twin is a case of its own. */
static void
settings_help_as_stated(struct made *m)
{
    const struct labelled_case *label = m->label;
    HOLDS(m, (label->helps != NULL) == label->setting_helps);
    if (label->is_silent && label->ring_entries > 0)
        return;
    if (label->survives || is_well(label))
        saves_as_stated(m);
    else if (is_by_removal(m))
        lasts_as_stated(m);
    else
        removes_the_oom_as_stated(m);
}

static void
settings_help_where_labels_say_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < case_count(); i++) {
        struct labelled_case twin;
        struct made m;
        make_with_events(&m, &twin, case_at(i));
        settings_help_as_stated(&m);
        drop(&m);
    }
}

/* --- the table ---------------------------------------------------------------------------- */

static void
every_class_has_a_case(void **state)
{
    (void)state;
    unsigned counts[DRY_CAUSE_COUNT] = {0};
    for (size_t i = 0; i < case_count(); i++) {
        const struct labelled_case *c = case_at(i);
        counts[c->cause]++;
        assert_ptr_equal(case_find(c->name), c); /* names are unique */
    }
    for (size_t cause = 0; cause <= DRY_CAUSE_UNKNOWN; cause++)
        assert_true(counts[cause] > 0);
    assert_null(case_find("no such case"));
}

static void
print_row(struct made *m)
{
    const struct case_truth *t = &m->truth;
    printf("%-24s %-13s %-13s %6zu  %6.2f %6.2f %6.2f %6.2f  %s\n", m->label->name,
           dry_cause_name(m->label->cause), dry_cause_name(m->label->second),
           dry_trace_get_view(m->snapshot)->event_count,
           (double)t->live_bytes / (double)GIB, (double)t->reserved_bytes / (double)GIB,
           (double)case_allowed_bytes(t) / (double)GIB,
           (double)t->request_bytes / (double)GIB,
           m->label->helps ? m->label->helps : "-");
}

static void
print_table(void)
{
    printf("%-24s %-13s %-13s %6s  %6s %6s %6s %6s  %s\n", "case", "cause", "second",
           "events", "live", "resrvd", "room", "asked", "helps (sizes in GiB)");
    for_each_case(print_row);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_has_a_case),
        cmocka_unit_test(records_replay_exactly),
        cmocka_unit_test(records_agree_with_the_truth),
        cmocka_unit_test(snapshots_survive_a_file),
        cmocka_unit_test(cases_are_the_same_every_time),
        cmocka_unit_test(cases_are_what_their_labels_say),
        cmocka_unit_test(no_other_removal_lasts_as_long),
        cmocka_unit_test(unwinding_hides_the_moment),
        cmocka_unit_test(much_reserved_may_be_nothing_wrong),
        cmocka_unit_test(an_end_state_shows_fragmentation),
        cmocka_unit_test(the_first_of_several_ooms_is_the_moment),
        cmocka_unit_test(settings_help_where_labels_say_so),
    };
    if (argc == 2 && strcmp(argv[1], "--table") == 0)
        print_table();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
