/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool as a trace: what a walk shows is what a reader of the file finds, and the record
 * replays exactly.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drystone/explanation.h>
#include <drystone/replay.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/pool_run.h"
#include "support/same_trace.h"

#define MIB (UINT64_C(1) << 20)
#define HISTORY 100000

static struct dry_trace *
trace_of(struct pool_run *run)
{
    struct dry_pool_trace_options options;
    struct dry_trace *trace = NULL;
    struct dry_error err;
    dry_pool_trace_options_init(&options);
    options.get_frames = pool_run_frames;
    if (dry_trace_from_pool(run->pool, &options, &trace, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return trace;
}

/* --- the layout --------------------------------------------------------------------------- */

struct comparing {
    const struct dry_trace *trace;
    size_t segment, block;
    bool is_shared; /* streams share segments: all are the default stream's */
};

static void
compare_part(const struct comparing *c, const struct dry_pool_part *part)
{
    const struct dry_trace_block *b = &dry_trace_get_view(c->trace)->blocks[c->block];
    assert_true(b->address == part->address);
    assert_true(b->size == part->size);
    assert_true(b->requested_size == part->requested);
    assert_int_equal(b->state == DRY_BLOCK_ACTIVE, part->is_active);
    assert_int_equal(b->state == DRY_BLOCK_PENDING_FREE, part->is_pending);
    size_t count;
    dry_trace_stack(c->trace, b->stack, &count);
    assert_int_equal(count, part->context == DRY_NONE ? 0 : part->context % 5);
}

static enum dry_status
compare_segment(void *self, const struct dry_pool_segment *segment,
                const struct dry_pool_part *parts, size_t count)
{
    struct comparing *c = self;
    const struct dry_trace_view *v = dry_trace_get_view(c->trace);
    assert_true(c->segment < v->segment_count);
    const struct dry_trace_segment *s = &v->segments[c->segment++];
    assert_true(s->address == segment->address);
    assert_true(s->total_size == segment->size);
    assert_true(v->lanes[s->lane].stream == (c->is_shared ? 0 : segment->stream));
    assert_true(v->lanes[s->lane].pool_b == segment->pool.b);
    assert_int_equal(s->is_large, segment->is_large);
    assert_int_equal(s->is_expandable, segment->is_expandable);
    assert_int_equal(s->block_count, count);
    uint64_t allocated = 0, active = 0, requested = 0;
    for (size_t i = 0; i < count; i++, c->block++) {
        compare_part(c, &parts[i]);
        allocated += parts[i].is_active ? parts[i].size : 0;
        active += parts[i].is_active || parts[i].is_pending ? parts[i].size : 0;
        requested += parts[i].requested;
    }
    assert_true(s->allocated_size == allocated);
    assert_true(s->active_size == active);
    assert_true(s->requested_size == requested);
    return DRY_OK;
}

static struct dry_trace *
write_and_read(const struct dry_trace *trace)
{
    struct bytes_sink to;
    struct bytes_source from;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_error err;
    struct dry_trace *again = NULL;
    if (dry_trace_write(trace, &sink, &err) != DRY_OK)
        fail_msg("%s", err.text);
    struct dry_source source = bytes_source_init(&from, to.bytes, to.count);
    if (dry_trace_read(&source, NULL, &again, &err) != DRY_OK)
        fail_msg("%s", err.text);
    bytes_sink_finish(&to);
    return again;
}

static void
check_layout(struct pool_run *run, const struct dry_trace *trace, bool is_shared)
{
    struct comparing c = {.trace = trace, .is_shared = is_shared};
    assert_int_equal(dry_pool_walk(run->pool, compare_segment, &c), DRY_OK);
    assert_int_equal(c.segment, dry_trace_get_view(trace)->segment_count);
    assert_int_equal(c.block, dry_trace_get_view(trace)->block_count);
}

static const char *const confs[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:25",
    "roundup_power2_divisions:4,garbage_collection_threshold:0.5",
};
#define CONF_COUNT (sizeof confs / sizeof *confs)

static void
file_shows_what_a_walk_shows(void **state)
{
    (void)state;
    for (size_t i = 0; i <= CONF_COUNT; i++) { /* the last one is paged */
        struct pool_run run;
        if (i < CONF_COUNT)
            pool_run_begin(&run, DRY_PLACEMENT_TORCH, confs[i], 256 * MIB, NULL);
        else
            pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 256 * MIB, NULL);
        pool_run_record(&run, HISTORY);
        for (uint64_t seed = 1; seed <= 5; seed++) {
            pool_run_steps(&run, seed, 400);
            struct dry_trace *trace = trace_of(&run);
            struct dry_trace *again = write_and_read(trace);
            check_layout(&run, trace, i == CONF_COUNT);
            check_layout(&run, again, i == CONF_COUNT);
            dry_trace_destroy(trace);
            dry_trace_destroy(again);
        }
        pool_run_end(&run);
    }
}

/* --- the events --------------------------------------------------------------------------- */

struct counting {
    const struct dry_trace *trace;
    size_t at;
};

static enum dry_status
compare_event(void *self, const struct dry_pool_event *e)
{
    struct counting *c = self;
    const struct dry_trace_view *v = dry_trace_get_view(c->trace);
    size_t i = c->at++;
    assert_true(i < v->event_count);
    assert_int_equal(v->action[i], e->action);
    assert_true(v->addr[i] == e->address);
    assert_true(v->size[i] == e->size);
    assert_true(v->time_us[i] == (int64_t)e->time_us);
    assert_true(v->lanes[v->lane[i]].stream == e->stream);
    assert_true(v->lanes[v->lane[i]].pool_b == e->pool.b);
    size_t count;
    dry_trace_stack(c->trace, v->stack[i], &count);
    assert_int_equal(count, e->context == DRY_NONE ? 0 : e->context % 5);
    return DRY_OK;
}

static void
file_has_the_history(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    pool_run_record(&run, 300);
    pool_run_steps(&run, 3, 1000);
    assert_true(run.ooms > 0);
    struct dry_trace *trace = trace_of(&run);
    struct dry_trace *again = write_and_read(trace);
    struct counting c = {.trace = again};
    assert_int_equal(dry_pool_walk_history(run.pool, compare_event, &c), DRY_OK);
    assert_int_equal(c.at, 300);
    assert_int_equal(dry_trace_get_view(again)->event_count, 300);
    assert_true(dry_trace_get_view(trace)->frame_count <= 4 * POOL_RUN_CONTEXTS);
    dry_trace_destroy(trace);
    dry_trace_destroy(again);
    pool_run_end(&run);
}

static void
pool_without_history_has_segments_alone(void **state)
{
    (void)state;
    struct pool_run run;
    struct dry_trace *trace;
    struct dry_error err;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    assert_int_equal(dry_trace_from_pool(run.pool, NULL, &trace, &err), DRY_OK);
    assert_int_equal(dry_trace_get_view(trace)->segment_count, 0);
    dry_trace_destroy(write_and_read(trace));
    dry_trace_destroy(trace);
    pool_run_steps(&run, 3, 100);
    assert_int_equal(dry_trace_from_pool(run.pool, NULL, &trace, &err), DRY_OK);
    assert_int_equal(dry_trace_get_view(trace)->event_count, 0);
    check_layout(&run, trace, false);
    dry_trace_destroy(trace);
    pool_run_end(&run);
}

/* --- replay ------------------------------------------------------------------------------- */

/* The self-check of `drystone replay`: each address, each segment, the final layout. */
static void
expect_exact(const struct dry_trace *trace, const char *what)
{
    struct dry_replay *replay;
    struct dry_error err;
    if (dry_replay_create(trace, NULL, &replay, &err) != DRY_OK)
        fail_msg("%s: %s", what, err.text);
    const struct dry_replay_check *check = dry_replay_get_check(replay);
    if (!check->possible)
        fail_msg("%s: %s", what, check->reason);
    if (!check->exact)
        fail_msg("%s: event %zu: %s", what, check->first_mismatch.event,
                 check->first_mismatch.what);
    assert_int_equal(check->alloc_matched, check->alloc_count);
    dry_replay_destroy(replay);
}

/*
 * Full devices only where the record tells all: what a failing request waited for or reserved
 * in vain is not in it.
 */
static void
record_replays_exactly(void **state)
{
    (void)state;
    uint32_t ooms = 0;
    for (size_t i = 0; i < CONF_COUNT; i++) {
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct pool_run run;
            bool is_simple = seed % 2, is_full = seed % 4 == 1 && i != 1;
            pool_run_begin(&run, DRY_PLACEMENT_TORCH, confs[i],
                           (is_full ? 64 : 1024) * MIB, NULL);
            run.is_simple = is_simple;
            pool_run_record(&run, HISTORY);
            pool_run_steps(&run, seed, 600);
            struct dry_trace *made = trace_of(&run);
            struct dry_trace *trace = write_and_read(made);
            char what[100];
            snprintf(what, sizeof what, "\"%s\", seed %d", confs[i], (int)seed);
            expect_exact(trace, what);
            ooms += run.ooms;
            dry_trace_destroy(made);
            dry_trace_destroy(trace);
            pool_run_end(&run);
        }
    }
    assert_true(ooms > 10);
}

/* Another placement explains nothing about PyTorch's rules, nor they about it. */
static void
paged_record_is_not_taken_for_pytorchs(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 1024 * MIB, NULL);
    pool_run_record(&run, HISTORY);
    pool_run_steps(&run, 1, 600);
    struct dry_trace *made = trace_of(&run);
    struct dry_trace *trace = write_and_read(made);
    struct dry_replay *replay;
    struct dry_error err;
    assert_int_equal(dry_replay_create(trace, NULL, &replay, &err), DRY_OK);
    const struct dry_replay_check *check = dry_replay_get_check(replay);
    assert_false(check->possible);
    assert_string_equal(check->reason,
                        "recorded by an allocator that does not place as PyTorch does");
    dry_replay_destroy(replay);
    dry_trace_destroy(made);
    dry_trace_destroy(trace);
    pool_run_end(&run);
}

static void
check_text(const char *text, size_t length, const char *wanted)
{
    assert_non_null(text);
    assert_int_equal(length, strlen(wanted));
    assert_memory_equal(text, wanted, length);
}

/* What a pool of ours writes is known to our reader. */
static void
file_says_who_placed(void **state)
{
    (void)state;
    static const char *const options[] = {"", "per_process_memory_fraction:0.5"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct pool_run run;
        pool_run_begin(&run, DRY_PLACEMENT_PAGED, options[i], 1024 * MIB, NULL);
        struct dry_trace *made = trace_of(&run), *trace = write_and_read(made);
        size_t length;
        const char *text = dry_trace_placement(trace, &length);
        check_text(text, length, "paged");
        text = dry_trace_placement_conf(trace, &length);
        check_text(text, length, options[i]);
        assert_non_null(dry_trace_placement(trace, NULL));
        assert_ptr_equal(dry_trace_placement_conf(trace, NULL), text);
        assert_int_equal(dry_trace_get_view(trace)->unknown_count, 0);
        dry_trace_destroy(made);
        dry_trace_destroy(trace);
        pool_run_end(&run);
    }
}

static struct dry_trace *
trace_with(const char *conf, const char *extra, size_t count)
{
    struct dry_trace_builder *builder;
    assert_int_equal(dry_trace_builder_create(NULL, &builder, NULL), DRY_OK);
    struct dry_trace_settings settings = {.known = true, .conf = DRY_NONE};
    if (conf)
        settings.conf = dry_trace_add_string(builder, conf, strlen(conf));
    settings.extra = dry_trace_add_string(builder, extra, count);
    assert_int_equal(dry_trace_set_settings(builder, &settings), DRY_OK);
    struct dry_lane lane = {0};
    struct dry_event event = {.action = DRY_ACTION_ALLOC,
                              .addr = UINT64_C(1) << 30,
                              .size = MIB,
                              .lane = dry_trace_add_lane(builder, &lane),
                              .stack = DRY_NONE,
                              .note = DRY_NONE};
    assert_int_equal(dry_trace_begin_device(builder, 0), DRY_OK);
    assert_int_equal(dry_trace_add_event(builder, &event), DRY_OK);
    struct dry_trace *trace;
    struct dry_error err;
    assert_int_equal(dry_trace_builder_finish(builder, &trace, &err), DRY_OK);
    return trace;
}

static struct dry_trace *
trace_with_extra(const char *extra, size_t count)
{
    return trace_with(NULL, extra, count);
}

static void
check_no_placement(const char *extra, size_t count)
{
    struct dry_trace *trace = trace_with_extra(extra, count);
    size_t length = 1;
    assert_null(dry_trace_placement(trace, &length));
    assert_int_equal(length, 0);
    dry_trace_destroy(trace);
}

/* A key without its text, a text that is cut, and another value: whatever a file may hold. */
static void
a_placement_is_a_whole_text(void **state)
{
    (void)state;
    static const char key[] = "\x8c\x12"
                              "drystone_placement";
    char bytes[sizeof key + 8];
    const size_t key_length = sizeof key - 1;
    memcpy(bytes, key, key_length);
    check_no_placement(bytes, 0);
    check_no_placement(bytes + 1, key_length - 1);
    check_no_placement(bytes, key_length);
    memcpy(bytes + key_length,
           "\x8c\x06"
           "paged",
           7);
    check_no_placement(bytes, key_length + 1);
    check_no_placement(bytes, key_length + 2);
    check_no_placement(bytes, key_length + 7);
    bytes[key_length] = 'K';
    check_no_placement(bytes, key_length + 2);
}

/* What a replay takes the record for; the caller gives both back. */
static const struct dry_replay_recorded *
recorded_of(const struct dry_trace *trace, struct dry_replay **replay)
{
    struct dry_error err;
    if (dry_replay_create(trace, NULL, replay, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return dry_replay_get_recorded(*replay);
}

/* Another placement, and options that are none or not there: said, and never PyTorch's. */
static void
a_replay_knows_who_placed(void **state)
{
    (void)state;
    static const struct {
        const char *extra, *place, *conf;
        bool has_problem;
    } cases[] = {
        {"", "torch", "", false},
        {"\x8c\x12"
         "drystone_placement\x8c\x05"
         "other",
         "", "", false},
        {"\x8c\x12"
         "drystone_placement\x8c\x05"
         "paged",
         "paged", "", true},
        {"\x8c\x12"
         "drystone_placement\x8c\x05"
         "paged"
         "\x8c\x0d"
         "drystone_conf\x8c\x09"
         "nothing:1",
         "paged", "nothing:1", true},
        {"\x8c\x12"
         "drystone_placement\x8c\x05"
         "paged"
         "\x8c\x0d"
         "drystone_conf\x8c\x0a"
         "budget:1.5",
         "paged", "budget:1.5", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_trace *trace =
            trace_with_extra(cases[i].extra, strlen(cases[i].extra));
        struct dry_replay *replay;
        const struct dry_replay_recorded *recorded = recorded_of(trace, &replay);
        assert_string_equal(recorded->place, cases[i].place);
        assert_string_equal(recorded->place_conf, cases[i].conf);
        assert_int_equal(recorded->conf_problem != NULL, cases[i].has_problem);
        dry_replay_destroy(replay);
        dry_trace_destroy(trace);
    }
}

/* PyTorch writes the snapshot, and the shim says in the options who placed. */
static void
options_of_pytorch_tell_who_placed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *conf;
        bool has_problem;
    } cases[] = {
        {"drystone_placement:paged,", "paged", "", false},
        {"drystone_placement:paged", "paged", "", false},
        {"drystone_placement:paged,budget:1.5,remap:False", "paged",
         "budget:1.5,remap:False", false},
        {"drystone_placement:paged,nothing:1", "paged", "nothing:1", true},
        {"drystone_placement:page", "", "", false},
        {"drystone_placement:", "", "", false},
        {"drystone_placement", "torch", "", true},
        {"drystone_placements:paged", "torch", "", true},
        {"max_split_size_mb:64,drystone_placement:paged", "torch", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_trace *trace = trace_with(cases[i].text, "", 0);
        struct dry_replay *replay;
        const struct dry_replay_recorded *recorded = recorded_of(trace, &replay);
        assert_string_equal(recorded->place, cases[i].place);
        assert_string_equal(recorded->place_conf, cases[i].conf);
        assert_int_equal(recorded->conf_problem != NULL, cases[i].has_problem);
        dry_replay_destroy(replay);
        dry_trace_destroy(trace);
    }
}

/* The recorded fraction counts on the device that is given, and nobody asks for one. */
static void
paged_is_replayed_under_the_options_it_was_recorded_with(void **state)
{
    (void)state;
    struct pool_run recording;
    pool_run_begin(&recording, DRY_PLACEMENT_PAGED, "per_process_memory_fraction:0.5",
                   1024 * MIB, NULL);
    uint64_t address;
    assert_int_equal(dry_pool_alloc(recording.pool, 40 * MIB, 0, &address), DRY_OK);
    struct dry_trace *trace = trace_of(&recording);
    struct dry_replay *replay;
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.place = recorded_of(trace, &replay)->place;
    static const char *const strings[] = {NULL, ""};
    for (int i = 0; i < 4; i++) {
        struct dry_run run;
        struct dry_error err;
        options.conf = strings[i % 2];
        options.capacity_bytes = i < 2 ? UINT64_MAX : 64 * MIB;
        if (dry_replay_run(replay, &options, &run, &err) != DRY_OK)
            fail_msg("%s", err.text);
        assert_string_equal(run.place, "paged");
        assert_int_equal(run.oom, i == 2);
    }
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    pool_run_end(&recording);
}

/* Most of the device is free in a private pool, where a request for it may not go. */
static void
strand(struct dry_pool *pool)
{
    struct dry_pool_id id = {0, 1};
    uint64_t freed, kept;
    assert_int_equal(dry_pool_open_private(pool, id, DRY_POOL_NO_REMAP), DRY_OK);
    assert_int_equal(dry_pool_begin_private(pool, id, NULL), DRY_OK);
    assert_int_equal(dry_pool_alloc(pool, 40 * MIB, 0, &freed), DRY_OK);
    assert_int_equal(dry_pool_alloc(pool, 2 * MIB, 0, &kept), DRY_OK);
    assert_int_equal(dry_pool_free(pool, freed), DRY_OK);
    assert_int_equal(dry_pool_end_private(pool, id), DRY_OK);
    assert_int_equal(dry_pool_alloc(pool, 30 * MIB, 0, &kept), DRY_ERR_NO_SPACE);
}

static void
paged_failure_is_not_advised_pytorchs_settings(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 64 * MIB, NULL);
    pool_run_record(&run, HISTORY);
    strand(run.pool);
    struct dry_trace *trace = trace_of(&run);
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct dry_explanation *explanation;
    struct dry_explain_options options;
    struct dry_error err;
    assert_int_equal(dry_replay_create(trace, NULL, &replay, &err), DRY_OK);
    assert_int_equal(dry_timeline_create(replay, NULL, &timeline, &err), DRY_OK);
    struct dry_explain_device device = {replay, timeline};
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    assert_int_equal(dry_explanation_create(&options, &explanation, &err), DRY_OK);
    const struct dry_explanation_view *v = dry_explanation_get_view(explanation);
    assert_true(v->moment_kind == DRY_MOMENT_AT_OOM);
    assert_true(v->finding_count > 0 && v->findings[0].cause == DRY_CAUSE_STRANDED);
    assert_true(v->change_count > 0);
    for (size_t i = 0; i < v->change_count; i++)
        assert_true(v->changes[i].kind != DRY_CHANGE_SETTING &&
                    v->changes[i].kind != DRY_CHANGE_NO_SETTING);
    dry_explanation_destroy(explanation);
    dry_timeline_destroy(timeline);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    pool_run_end(&run);
}

/* --- stacks and failures ------------------------------------------------------------------ */

static size_t
deep_frames(void *self, uint32_t context, struct dry_pool_frame *frames, size_t capacity)
{
    size_t *calls = self, count = context == 1 ? 500 : context == 2 ? 100000 : 1;
    ++*calls;
    for (size_t i = 0; i < count && i < capacity; i++)
        frames[i] = (struct dry_pool_frame){.line = (uint32_t)i};
    return count;
}

static void
deep_stacks_are_asked_for_again_and_cut(void **state)
{
    (void)state;
    struct pool_run run;
    size_t calls = 0;
    struct dry_pool_trace_options options;
    struct dry_trace *trace;
    struct dry_error err;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    pool_run_record(&run, 100);
    for (run.request_count = 1; run.request_count <= 3; run.request_count++) {
        uint64_t address;
        assert_int_equal(dry_pool_alloc(run.pool, 5, 0, &address), DRY_OK);
    }
    dry_pool_trace_options_init(&options);
    options.get_frames = deep_frames;
    options.frames_self = &calls;
    assert_int_equal(dry_trace_from_pool(run.pool, &options, &trace, &err), DRY_OK);
    assert_int_equal(calls, 5);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    static const size_t depths[] = {500, DRY_POOL_FRAMES_MAX, 1};
    assert_int_equal(v->event_count, 4); /* the segment's is the first request's */
    for (size_t i = 0; i < 3; i++) {
        size_t count;
        dry_trace_stack(trace, v->stack[i + 1], &count);
        assert_int_equal(count, depths[i]);
    }
    dry_trace_destroy(trace);
    pool_run_end(&run);
}

static void
device_index_is_the_snapshots(void **state)
{
    (void)state;
    static const int32_t devices[] = {0, 3, -1};
    for (size_t i = 0; i < 3; i++) {
        struct pool_run run;
        struct dry_pool_options options;
        struct dry_trace *trace;
        struct dry_error err;
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
        dry_pool_destroy(run.pool);
        dry_pool_options_init(&options);
        options.device = dry_sim_get_device(run.sim);
        options.device_index = devices[i];
        assert_int_equal(dry_pool_create(&options, &run.pool, &err), DRY_OK);
        pool_run_record(&run, 100);
        pool_run_steps(&run, 1, 100);
        enum dry_status status = dry_trace_from_pool(run.pool, NULL, &trace, &err);
        if (devices[i] < 0) {
            assert_int_equal(status, DRY_ERR_ARGUMENT);
        } else {
            struct dry_trace *again = write_and_read(trace);
            const struct dry_trace_view *v = dry_trace_get_view(again);
            const struct dry_trace_device *device = &v->devices[v->device_count - 1];
            assert_int_equal(device->device, devices[i]);
            assert_int_equal(device->event_count, 100);
            assert_int_equal(device->segment_count, v->segment_count);
            dry_trace_destroy(trace);
            dry_trace_destroy(again);
        }
        pool_run_end(&run);
    }
}

/* What may be asked of a pool is not asked of the child's copy of it. */
static int
look_in_child(struct pool_run *run)
{
    struct dry_pool_history_options history;
    struct dry_pool_explanation e = DRY_INIT(struct dry_pool_explanation);
    struct dry_trace *trace;
    struct dry_error err = {0};
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct counting c = {0};
    int wrong = 0;
    dry_pool_history_options_init(&history);
    wrong += dry_pool_record_history(run->pool, &history) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_walk_history(run->pool, compare_event, &c) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_explain(run->pool, MIB, 0, &e) != DRY_ERR_UNSUPPORTED;
    wrong += dry_trace_from_pool(run->pool, NULL, &trace, &err) != DRY_ERR_UNSUPPORTED;
    wrong += err.status != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_write_summary(run->pool, false, &sink, &err) != DRY_ERR_UNSUPPORTED;
    return wrong + (to.count != 0);
}

static void
child_of_a_fork_is_refused(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    pool_run_record(&run, 100);
    pool_run_steps(&run, 1, 100);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(look_in_child(&run));
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    pool_run_end(&run);
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    pool_run_record(&run, 100);
    pool_run_steps(&run, 3, 100);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_pool_trace_options options;
        struct dry_trace *trace = NULL;
        struct dry_error err = {0};
        dry_pool_trace_options_init(&options);
        options.memory = &memory;
        options.get_frames = pool_run_frames;
        enum dry_status status = dry_trace_from_pool(run.pool, &options, &trace, &err);
        dry_trace_destroy(trace);
        failing_memory_finish(&fm);
        if (status == DRY_OK)
            break; /* what is only given back may fail */
        assert_true(fm.failed);
        assert_int_equal(status, DRY_ERR_MEMORY);
        assert_int_equal(err.status, DRY_ERR_MEMORY);
        assert_null(trace);
    }
    pool_run_end(&run);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_shows_what_a_walk_shows),
        cmocka_unit_test(file_has_the_history),
        cmocka_unit_test(pool_without_history_has_segments_alone),
        cmocka_unit_test(record_replays_exactly),
        cmocka_unit_test(paged_record_is_not_taken_for_pytorchs),
        cmocka_unit_test(file_says_who_placed),
        cmocka_unit_test(a_placement_is_a_whole_text),
        cmocka_unit_test(a_replay_knows_who_placed),
        cmocka_unit_test(options_of_pytorch_tell_who_placed),
        cmocka_unit_test(paged_is_replayed_under_the_options_it_was_recorded_with),
        cmocka_unit_test(paged_failure_is_not_advised_pytorchs_settings),
        cmocka_unit_test(deep_stacks_are_asked_for_again_and_cut),
        cmocka_unit_test(device_index_is_the_snapshots),
        cmocka_unit_test(child_of_a_fork_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("pool_trace", tests, NULL, NULL);
}
