/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The timeline against the truth. A random program is run on PyTorch's rules, and after each
 * of its operations the place itself is asked what lies where; the record of the run, whole or
 * a window of it, is read back as a timeline, and its state at each of those moments must be
 * what the place said. At every moment, of these records and of nonsense, everything the
 * timeline shows must be what adding up its lives gives (prop/timeline_model.h).
 *
 * DRY_TEST_SEED=N runs one program and says what differs; DRY_TEST_ROUNDS=N runs so many.
 */

#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "prop/random_program.h"
#include "prop/timeline_model.h"
#include "replay/inside.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)

/* --- a run that is followed --------------------------------------------------------------- */

/* What the place said at one moment. */
struct truth {
    uint32_t moment;
    size_t first_segment, segment_count;
};

struct true_segment {
    struct dryi_segment_info info;
    size_t first_block, block_count;
};

struct followed {
    struct random random;
    struct dryi_place_event *events;
    struct truth *truths;
    struct true_segment *segments;
    struct dryi_block_info *blocks;
    size_t event_count, event_capacity, truth_count, truth_capacity;
    size_t segment_count, segment_capacity, block_count, block_capacity;
};

static void *
grown(void *array, size_t *capacity, size_t needed, size_t bytes)
{
    if (needed <= *capacity)
        return array;
    *capacity = needed * 2;
    void *larger = realloc(array, *capacity * bytes);
    assert_non_null(larger);
    return larger;
}

static void
on_event(void *self, const struct dryi_place_event *event)
{
    struct followed *f = self;
    f->events =
        grown(f->events, &f->event_capacity, f->event_count + 1, sizeof *f->events);
    f->events[f->event_count++] = *event;
}

static enum dry_status
on_segment(void *self, const struct dryi_segment_info *info,
           const struct dryi_block_info *blocks, size_t count)
{
    struct followed *f = self;
    f->segments = grown(f->segments, &f->segment_capacity, f->segment_count + 1,
                        sizeof *f->segments);
    f->blocks =
        grown(f->blocks, &f->block_capacity, f->block_count + count, sizeof *f->blocks);
    memcpy(f->blocks + f->block_count, blocks, count * sizeof *blocks);
    f->segments[f->segment_count++] = (struct true_segment){
        .info = *info, .first_block = f->block_count, .block_count = count};
    f->block_count += count;
    return DRY_OK;
}

static void
note_truth(struct followed *f, const struct dryi_execution *execution)
{
    struct truth truth = {.moment = (uint32_t)f->event_count,
                          .first_segment = f->segment_count};
    assert_int_equal(dryi_torch_walk(execution->torch, on_segment, f), DRY_OK);
    truth.segment_count = f->segment_count - truth.first_segment;
    f->truths =
        grown(f->truths, &f->truth_capacity, f->truth_count + 1, sizeof *f->truths);
    f->truths[f->truth_count++] = truth;
}

/* Out of memory ends nothing: the program goes on without the block. */
static bool
is_possible(const struct dryi_execution *x, const struct dryi_program *p, size_t op)
{
    bool needs_block = p->kinds[op] == OP_FREE || p->kinds[op] == OP_RECORD_STREAM;
    return !needs_block || x->handles[p->args[op]] != DRYI_NO_BLOCK;
}

static void
follow(struct followed *f, const struct dry_trace *program, const char *conf,
       uint64_t capacity)
{
    size_t rules_count;
    const struct dryi_torch_rules *rules = dryi_torch_rules_find("2.11");
    assert_non_null(dryi_torch_rules_all(&rules_count));
    struct dryi_execution_options options = {.rules = rules,
                                             .capacity_bytes = capacity,
                                             .observer = {.event = on_event, .self = f}};
    struct dry_replay *replay;
    struct dryi_execution execution;
    dryi_torch_conf_init(&options.conf);
    assert_int_equal(
        dryi_torch_conf_parse(conf, strlen(conf), rules, &options.conf, NULL), DRY_OK);
    assert_int_equal(dry_replay_create(program, NULL, &replay, NULL), DRY_OK);
    const struct dryi_program *p = dryi_replay_program(replay);
    assert_int_equal(dryi_execution_init(&execution, p, &options, NULL, NULL), DRY_OK);
    note_truth(f, &execution);
    for (size_t op = 0; op < p->op_count; op++) {
        if (!is_possible(&execution, p, op))
            continue;
        enum dry_status status = dryi_execution_do(&execution, op);
        assert_true(status == DRY_OK || status == DRY_ERR_NO_SPACE);
        note_truth(f, &execution);
    }
    dryi_execution_finish(&execution);
    dry_replay_destroy(replay);
}

static void
forget(struct followed *f)
{
    free(f->events);
    free(f->truths);
    free(f->segments);
    free(f->blocks);
}

/* --- its record --------------------------------------------------------------------------- */

static uint32_t
add_lane(struct dry_trace_builder *b, uint64_t stream, struct dryi_pool_id pool)
{
    struct dry_lane lane = {
        .stream = stream, .pool_a = pool.a, .pool_b = pool.b, .pool_known = true};
    return dry_trace_add_lane(b, &lane);
}

/* Mostly forward, sometimes not at all, far, or back. */
static int64_t
next_time(struct random *r, int64_t time)
{
    switch (random_below(r, 12)) {
    case 0:
        return time - (int64_t)random_below(r, 20);
    case 1:
        return time + (int64_t)random_below(r, 2000);
    case 2:
    case 3:
        return time;
    default:
        return time + (int64_t)random_below(r, 10);
    }
}

static void
write_events(struct followed *f, struct dry_trace_builder *b, size_t from)
{
    int64_t time = 1000;
    for (size_t i = from; i < f->event_count; i++) {
        const struct dryi_place_event *e = &f->events[i];
        time = next_time(&f->random, time);
        struct dry_event event = {.action = e->action,
                                  .addr = e->addr,
                                  .size = e->size,
                                  .time_us = time,
                                  .lane = add_lane(b, e->stream, e->pool),
                                  .stack = DRY_NONE,
                                  .note = DRY_NONE};
        dry_trace_add_event(b, &event);
    }
}

static enum dry_block_state
state_of(const struct dryi_block_info *info)
{
    return info->allocated ? DRY_BLOCK_ACTIVE
           : info->pending ? DRY_BLOCK_PENDING_FREE
                           : DRY_BLOCK_INACTIVE;
}

static void
write_segment(const struct followed *f, struct dry_trace_builder *b,
              const struct true_segment *s)
{
    struct dry_trace_block *blocks = calloc(s->block_count, sizeof *blocks);
    assert_non_null(blocks);
    for (size_t i = 0; i < s->block_count; i++) {
        const struct dryi_block_info *info = &f->blocks[s->first_block + i];
        blocks[i] = (struct dry_trace_block){.address = info->addr,
                                             .size = info->size,
                                             .requested_size = info->requested,
                                             .stack = DRY_NONE,
                                             .extra = DRY_NONE,
                                             .state = state_of(info)};
    }
    struct dry_trace_segment segment = {.address = s->info.addr,
                                        .total_size = s->info.size,
                                        .lane = add_lane(b, s->info.stream, s->info.pool),
                                        .stack = DRY_NONE,
                                        .extra = DRY_NONE,
                                        .is_large = s->info.is_large,
                                        .is_expandable = s->info.is_expandable,
                                        .pool_id_known = true,
                                        .expandable_known = true};
    dry_trace_add_segment(b, &segment, blocks, s->block_count);
    free(blocks);
}

/* The record without its first `from` events. */
static struct dry_trace *
write_record(struct followed *f, const char *conf, size_t from)
{
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_SNAPSHOT;
    struct dry_trace_builder *b;
    assert_int_equal(dry_trace_builder_create(&options, &b, NULL), DRY_OK);
    struct dryi_torch_conf parsed;
    dryi_torch_conf_init(&parsed);
    assert_int_equal(dryi_torch_conf_parse(conf, strlen(conf),
                                           dryi_torch_rules_find("2.11"), &parsed, NULL),
                     DRY_OK);
    struct dry_trace_settings settings = {
        .known = true,
        .conf = dry_trace_add_string(b, conf, strlen(conf)),
        .max_split_size =
            parsed.max_split_size == UINT64_MAX ? -1 : (int64_t)parsed.max_split_size,
        .expandable_segments = parsed.expandable_segments,
        .roundup_known = true,
        .extra = DRY_NONE};
    memcpy(settings.roundup_power2_divisions, parsed.roundup_power2_divisions,
           sizeof settings.roundup_power2_divisions);
    dry_trace_set_settings(b, &settings);
    dry_trace_begin_device(b, 0);
    write_events(f, b, from);
    const struct truth *last = &f->truths[f->truth_count - 1];
    for (size_t i = 0; i < last->segment_count; i++)
        write_segment(f, b, &f->segments[last->first_segment + i]);
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
    return trace;
}

/* --- truth and timeline ------------------------------------------------------------------- */

/* How much of a state a record determines. */
enum exactness {
    EXACT_ADDRESSES, /* not the sizes of what was older than the window, and freed in it */
    EXACT_ALL,
};

static const char *
compare_segment(const struct dry_trace_view *v, const struct dry_state_segment *s,
                const struct dryi_segment_info *info)
{
    const struct dry_lane *lane = &v->lanes[s->lane];
    if (s->address != info->addr || s->size != info->size)
        return "a segment lies elsewhere";
    if (lane->stream != info->stream || lane->pool_a != info->pool.a ||
        lane->pool_b != info->pool.b)
        return "a segment is of another stream or pool";
    if (s->is_expandable != info->is_expandable)
        return "a segment is of another kind";
    return s->is_large != info->is_large ? "a segment is of another size class" : NULL;
}

static const char *
compare_block(const struct dry_state_block *b, const struct dryi_block_info *info,
              const struct dry_timeline_view *view, enum exactness exactness)
{
    if (b->address != info->addr)
        return "a block lies elsewhere";
    if (b->state != state_of(info))
        return "a block is in another state";
    bool is_inferred =
        exactness == EXACT_ADDRESSES && b->allocation != DRY_NONE &&
        view->allocations[b->allocation].flags & DRY_ALLOCATION_CARRIED_OVER &&
        view->allocations[b->allocation].end != DRY_MOMENT_NEVER;
    if (b->size != info->size && !is_inferred)
        return "a block is of another size";
    return b->state != DRY_BLOCK_INACTIVE && b->requested != info->requested
               ? "a block was asked for with another size"
               : NULL;
}

struct true_blocks {
    const struct dryi_block_info *infos;
    size_t count;
};

/* Blocks in use only, if the ends of some are not known. */
static const char *
compare_blocks(const struct dry_state *state, const struct dry_state_segment *s,
               const struct true_blocks *truth, const struct dry_timeline_view *view,
               enum exactness exactness)
{
    const struct dryi_block_info *infos = truth->infos;
    size_t i = 0, k = 0, count = truth->count;
    const struct dry_state_block *blocks = &state->blocks[s->first_block];
    for (;;) {
        if (exactness == EXACT_ADDRESSES) {
            while (i < s->block_count && blocks[i].state == DRY_BLOCK_INACTIVE)
                i++;
            while (k < count && state_of(&infos[k]) == DRY_BLOCK_INACTIVE)
                k++;
        }
        if (i == s->block_count || k == count)
            return i == s->block_count && k == count ? NULL
                                                     : "more blocks, or fewer, than were";
        const char *problem = compare_block(&blocks[i++], &infos[k++], view, exactness);
        if (problem)
            return problem;
    }
}

static const char *
compare_truth(const struct followed *f, const struct truth *truth,
              const struct dry_timeline_view *view, const struct dry_state *state,
              enum exactness exactness)
{
    if (state->segment_count != truth->segment_count)
        return "more segments, or fewer, than were";
    if (state->overlap_count || state->unplaced_count)
        return "a sound record has every block in its place";
    const struct dry_trace_view *v = dry_trace_get_view(view->trace);
    const char *problem = NULL;
    for (size_t i = 0; i < truth->segment_count && !problem; i++) {
        const struct true_segment *s = &f->segments[truth->first_segment + i];
        problem = compare_segment(v, &state->segments[i], &s->info);
        if (!problem)
            problem = compare_blocks(
                state, &state->segments[i],
                &(struct true_blocks){&f->blocks[s->first_block], s->block_count}, view,
                exactness);
    }
    return problem;
}

/* The last thing known at a moment, or NULL inside an operation. */
static const struct truth *
truth_at(const struct followed *f, uint32_t moment)
{
    size_t low = 0, high = f->truth_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->truths[middle].moment <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && f->truths[low - 1].moment == moment ? &f->truths[low - 1] : NULL;
}

/* --- pictures ----------------------------------------------------------------------------- */

static struct dry_axis
random_axis(struct random *r, const struct dry_timeline_view *v)
{
    uint32_t all = v->dump_moment + 1;
    struct dry_axis axis = {.from = 0, .to = all, .is_time = random_below(r, 2) != 0};
    if (random_below(r, 3) > 0) {
        axis.from = (uint32_t)random_below(r, all);
        axis.to = axis.from + 1 + (uint32_t)random_below(r, all - axis.from);
    }
    axis.column_count = 1 + (uint32_t)random_below(r, random_below(r, 2) ? 12 : 300);
    return axis;
}

static const char *
check_pictures(const struct timeline_model *model, struct random *r)
{
    const char *problem = NULL;
    for (int i = 0; i < 6 && !problem; i++) {
        struct dry_axis axis = random_axis(r, model->view);
        enum dry_curve curve = (enum dry_curve)random_below(r, DRY_CURVE_COUNT);
        problem = timeline_model_check_curve(model, curve, &axis);
        if (problem)
            return problem;
        axis = random_axis(r, model->view);
        axis.column_count = axis.column_count > 60 ? 60 : axis.column_count;
        enum dry_stacking stacking =
            random_below(r, 2) ? DRY_STACKING_BIRTH : DRY_STACKING_LONG_LIVED;
        uint64_t min_bytes = random_below(r, 2) ? random_below(r, 8 * MIB) : 0;
        problem = timeline_model_check_drawing(model, &axis, stacking, min_bytes);
    }
    return problem;
}

/* --- the properties ----------------------------------------------------------------------- */

/* How many records were replayed exactly, and so held against the place. */
struct tally {
    uint64_t record_count, exact_count;
};

struct subject {
    const char *what;
    uint64_t seed;
    const char *conf;
    size_t from; /* events before the window */
};

static bool
has_failed(const struct subject *s, uint32_t moment, const char *problem)
{
    if (problem)
        printf("# %s, seed %llu, conf '%s', moment %u of the window: %s\n", s->what,
               (unsigned long long)s->seed, s->conf, moment, problem);
    return problem != NULL;
}

static bool
states_are_true(const struct subject *s, const struct followed *f,
                const struct timeline_model *model, enum exactness exactness)
{
    for (uint32_t m = 0; m <= model->view->dump_moment; m++) {
        struct dry_state *state;
        const char *problem = timeline_model_check_state(model, m, &state);
        if (has_failed(s, m, problem))
            return false;
        bool is_dump = m == model->view->dump_moment;
        const struct truth *truth =
            is_dump ? &f->truths[f->truth_count - 1] : truth_at(f, m + (uint32_t)s->from);
        if (truth)
            problem = compare_truth(f, truth, model->view, state,
                                    is_dump ? EXACT_ALL : exactness);
        dry_state_destroy(state);
        if (has_failed(s, m, problem))
            return false;
    }
    return true;
}

static bool
is_undamaged(const struct subject *s, const struct dry_timeline_view *v)
{
    bool is_sound = v->lost_frees == 0 && v->inferred_frees == 0 &&
                    v->segment_conflicts == 0 && v->guessed_sizes == 0 &&
                    (s->from > 0 || v->unmatched_frees == 0);
    return !has_failed(s, 0, is_sound ? NULL : "a sound record has no damage");
}

static bool
record_is_true(const struct subject *s, struct followed *f, struct tally *tally)
{
    struct dry_trace *trace = write_record(f, s->conf, s->from);
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct timeline_model model;
    assert_int_equal(dry_replay_create(trace, NULL, &replay, NULL), DRY_OK);
    const struct dry_replay_check *check = dry_replay_get_check(replay);
    assert_int_equal(dry_timeline_create(replay, NULL, &timeline, NULL), DRY_OK);
    timeline_model_init(&model, timeline);
    bool is_true = !has_failed(s, 0, timeline_model_check(&model));
    tally->record_count++;
    tally->exact_count += check->exact;
    if (check->exact)
        is_true =
            is_true && is_undamaged(s, model.view) &&
            states_are_true(s, f, &model, s->from > 0 ? EXACT_ADDRESSES : EXACT_ALL);
    is_true = is_true && !has_failed(s, 0, check_pictures(&model, &f->random));
    timeline_model_finish(&model);
    dry_timeline_destroy(timeline);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    return is_true;
}

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void
each_seed(bool (*holds)(uint64_t seed, struct tally *tally), unsigned exact_percent)
{
    struct tally tally = {0};
    if (getenv("DRY_TEST_SEED")) {
        assert_true(holds(number_of("DRY_TEST_SEED", 0), &tally));
        return;
    }
    uint64_t rounds = number_of("DRY_TEST_ROUNDS", 200), failed = 0;
    for (uint64_t seed = 0; seed < rounds; seed++)
        failed += !holds(seed, &tally);
    if (failed)
        printf("# %llu of %llu seeds failed\n", (unsigned long long)failed,
               (unsigned long long)rounds);
    assert_int_equal(failed, 0);
    if (exact_percent == 0)
        return;
    printf("# %llu of %llu records were exact\n", (unsigned long long)tally.exact_count,
           (unsigned long long)tally.record_count);
    assert_true(tally.exact_count * 100 >= tally.record_count * exact_percent);
}

/* The whole record, and a window of it that begins anywhere. */
static bool
run_is_true(struct subject s, uint64_t capacity, struct tally *tally)
{
    uint64_t seed = s.seed;
    s.conf = random_program_conf(seed);
    struct followed f = {0};
    random_init(&f.random, seed);
    struct dry_trace *program = random_program_make(seed, seed % 7 == 0);
    follow(&f, program, s.conf, capacity);
    bool is_true = record_is_true(&s, &f, tally);
    s.from = random_below(&f.random, f.event_count + 1);
    is_true &= record_is_true(&s, &f, tally);
    forget(&f);
    dry_trace_destroy(program);
    return is_true;
}

static bool
states_follow_the_place(uint64_t seed, struct tally *tally)
{
    struct subject s = {.what = "unlimited", .seed = seed};
    return run_is_true(s, DRY_SIM_UNLIMITED, tally);
}

/* Retries and OOMs, several of them: not every such record can be replayed exactly. */
static bool
states_follow_a_full_place(uint64_t seed, struct tally *tally)
{
    struct subject s = {.what = "full device", .seed = seed};
    return run_is_true(s, (200 + seed * 37 % 300) * MIB, tally);
}

static void
states_are_what_the_place_said(void **state)
{
    (void)state;
    each_seed(states_follow_the_place, 95);
}

static void
states_of_full_devices_are_what_the_place_said(void **state)
{
    (void)state;
    each_seed(states_follow_a_full_place, 80);
}

/* --- nonsense ----------------------------------------------------------------------------- */

static uint64_t
nonsense_address(struct random *r)
{
    switch (random_below(r, 8)) {
    case 0:
        return UINT64_MAX - random_below(r, 4096);
    case 1:
        return random_below(r, 3);
    case 2:
        return random_next(r);
    default:
        break;
    }
    uint64_t block = 512 * random_below(r, 16);
    return block + 20 * MIB * random_below(r, 4);
}

static uint64_t
nonsense_size(struct random *r)
{
    switch (random_below(r, 12)) {
    case 0:
        return UINT64_C(1) << random_below(r, 48);
    case 1:
        return random_below(r, 64) ? 0 : random_next(r);
    case 2:
        return 2 * MIB * random_below(r, 30);
    case 3:
        return 20 * MIB;
    default:
        return 512 * random_below(r, 8);
    }
}

/* Fields are set one after the other: in an initializer, a seed would not decide their order. */
static uint32_t
nonsense_lane(struct random *r, struct dry_trace_builder *b)
{
    struct dry_lane lane = {.stream = random_below(r, 2)};
    lane.pool_b = random_below(r, 4) ? 0 : 1;
    lane.pool_known = random_below(r, 2) != 0;
    return dry_trace_add_lane(b, &lane);
}

static int64_t
nonsense_time(struct random *r)
{
    switch (random_below(r, 4)) {
    case 0:
        return INT64_MIN + (int64_t)random_below(r, 3);
    case 1:
        return INT64_MAX - (int64_t)random_below(r, 3);
    default:
        return (int64_t)random_below(r, 100) - 50;
    }
}

static void
add_nonsense_segment(struct random *r, struct dry_trace_builder *b)
{
    struct dry_trace_block blocks[8];
    size_t count = random_below(r, 9);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = (struct dry_trace_block){.stack = DRY_NONE, .extra = DRY_NONE};
        blocks[i].address = nonsense_address(r);
        blocks[i].size = nonsense_size(r);
        blocks[i].requested_size = nonsense_size(r);
        blocks[i].state = (enum dry_block_state)random_below(r, 3);
    }
    struct dry_trace_segment segment = {.stack = DRY_NONE, .extra = DRY_NONE};
    segment.address = nonsense_address(r);
    segment.total_size = nonsense_size(r);
    segment.lane = nonsense_lane(r, b);
    segment.is_large = random_below(r, 2) != 0;
    segment.is_expandable = random_below(r, 2) != 0;
    dry_trace_add_segment(b, &segment, blocks, count);
}

static void
add_nonsense_event(struct random *r, struct dry_trace_builder *b)
{
    static const enum dry_action likely[] = {
        DRY_ACTION_ALLOC,         DRY_ACTION_FREE_REQUESTED, DRY_ACTION_FREE_COMPLETED,
        DRY_ACTION_SEGMENT_ALLOC, DRY_ACTION_SEGMENT_FREE,   DRY_ACTION_SEGMENT_MAP,
        DRY_ACTION_SEGMENT_UNMAP};
    struct dry_event event = {.stack = DRY_NONE, .note = DRY_NONE};
    event.action = random_below(r, 20)
                       ? likely[random_below(r, 7)]
                       : (enum dry_action)random_below(r, DRY_ACTION_COUNT);
    event.addr = nonsense_address(r);
    event.size = nonsense_size(r);
    event.time_us = nonsense_time(r);
    event.lane = nonsense_lane(r, b);
    dry_trace_add_event(b, &event);
}

static struct dry_trace *
make_nonsense(struct random *r)
{
    struct dry_trace_builder_options options;
    struct dry_trace_builder *b;
    struct dry_trace *trace;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_SNAPSHOT;
    assert_int_equal(dry_trace_builder_create(&options, &b, NULL), DRY_OK);
    dry_trace_begin_device(b, 0);
    for (uint64_t i = random_below(r, random_below(r, 4) ? 60 : 1000); i > 0; i--)
        add_nonsense_event(r, b);
    for (uint64_t i = random_below(r, 6); i > 0; i--)
        add_nonsense_segment(r, b);
    assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
    return trace;
}

static bool
nonsense_adds_up(uint64_t seed, struct tally *tally)
{
    tally->record_count++;
    struct subject s = {.what = "nonsense", .seed = seed, .conf = ""};
    struct random r;
    random_init(&r, seed ^ UINT64_C(0x6e6f6e73656e7365));
    struct dry_trace *trace = make_nonsense(&r);
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct dry_error err;
    assert_int_equal(dry_replay_create(trace, NULL, &replay, &err), DRY_OK);
    enum dry_status status = dry_timeline_create(replay, NULL, &timeline, &err);
    bool is_sound = status == DRY_OK || status == DRY_ERR_LIMIT;
    if (status == DRY_OK) {
        struct timeline_model model;
        timeline_model_init(&model, timeline);
        is_sound = !has_failed(&s, 0, timeline_model_check(&model));
        for (uint32_t m = 0; m <= model.view->dump_moment && is_sound; m++)
            is_sound = !has_failed(&s, m, timeline_model_check_state(&model, m, NULL));
        is_sound = is_sound && !has_failed(&s, 0, check_pictures(&model, &r));
        timeline_model_finish(&model);
        dry_timeline_destroy(timeline);
    }
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    return is_sound;
}

static void
nonsense_still_adds_up(void **state)
{
    (void)state;
    each_seed(nonsense_adds_up, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_what_the_place_said),
        cmocka_unit_test(states_of_full_devices_are_what_the_place_said),
        cmocka_unit_test(nonsense_still_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
