/* SPDX-License-Identifier: Apache-2.0 */

/*
 * replay: real recordings come out address by address, runs under other settings, the
 * smallest device, decisions as text, a recorded OOM and how to avoid it, records that
 * contradict themselves, and memory that runs out.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "replay/initial_layout.h"
#include "replay/inside.h"
#include "support/bytes.h"
#include "support/failing_memory.h"

#define MIB (UINT64_C(1) << 20)

/* --- traces and replays ------------------------------------------------------------------- */

static struct dry_trace *
read_text(const char *text)
{
    return bytes_read_trace(text, strlen(text));
}

/* A file of the recordings; a test that needs an absent one is skipped. */
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

static struct dry_replay *
replay_of(const struct dry_trace *trace)
{
    struct dry_replay *replay;
    struct dry_error err;
    if (dry_replay_create(trace, NULL, &replay, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return replay;
}

static struct dry_run_options
options_for(const char *conf, uint64_t capacity)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.conf = conf;
    options.capacity_bytes = capacity;
    return options;
}

static struct dry_run
run_with(struct dry_replay *replay, const struct dry_run_options *options)
{
    struct dry_run run;
    struct dry_error err;
    if (dry_replay_run(replay, options, &run, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return run;
}

static struct dry_run
run_at(struct dry_replay *replay, const char *conf, uint64_t capacity)
{
    struct dry_run_options options = options_for(conf, capacity);
    options.begin_anew = true;
    return run_with(replay, &options);
}

/* The run must fail with this status and these words, and leave its output alone. */
static void
refuse(struct dry_replay *replay, const struct dry_run_options *options,
       enum dry_status status, const char *words)
{
    struct dry_run run = {.op_count = 4711};
    struct dry_error err = {.text = ""};
    assert_int_equal(dry_replay_run(replay, options, &run, &err), status);
    assert_int_equal(err.status, status);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", expected \"%s\"", err.text, words);
    assert_int_equal(run.op_count, 4711);
}

/*
 * Three segments of six 3 MiB blocks, of which one each is kept, then 50 MiB: on 100 MiB
 * too much for whole segments, and just enough for expandable ones.
 */
static struct dry_trace *
fragmented_program(void)
{
    char text[4096];
    size_t used = 0;
    for (int i = 1; i <= 18; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "a %d 3145728 0 %d\n",
                                 i, i);
    for (int i = 1; i <= 18; i++) {
        if (i % 6 != 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "f %d\n", i);
    }
    snprintf(text + used, sizeof text - used,
             "a 19 52428800 0 40\nf 19\na 20 512 0 41\n");
    return read_text(text);
}

static struct dry_trace *
record_of(const struct dry_trace *program, const char *conf, uint64_t capacity)
{
    struct dry_replay *replay = replay_of(program);
    struct dry_run_options options = options_for(conf, capacity);
    struct dry_trace *recorded;
    struct dry_error err;
    if (dry_replay_record(replay, &options, &recorded, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_replay_destroy(replay);
    return recorded;
}

/* --- real recordings ---------------------------------------------------------------------- */

struct expected {
    const char *name;
    size_t alloc_count, segment_event_count, segment_count, block_count;
    size_t live_before, sizes_inferred, frees_inferred;
};

static void
check_exact(const struct expected *e)
{
    struct dry_trace *trace = read_recording(e->name);
    struct dry_replay *replay = replay_of(trace);
    const struct dry_replay_check *c = dry_replay_get_check(replay);
    assert_true(c->possible);
    if (!c->exact)
        fail_msg("%s: event %zu: %s", e->name, c->first_mismatch.event,
                 c->first_mismatch.what);
    assert_false(c->has_mismatch);
    assert_int_equal(c->alloc_count, e->alloc_count);
    assert_int_equal(c->alloc_matched, e->alloc_count);
    assert_int_equal(c->segment_event_count, e->segment_event_count);
    assert_int_equal(c->segment_event_matched, e->segment_event_count);
    assert_int_equal(c->segment_count, e->segment_count);
    assert_int_equal(c->segment_matched, e->segment_count);
    assert_int_equal(c->block_count, e->block_count);
    assert_int_equal(c->block_matched, e->block_count);
    assert_int_equal(c->live_before, e->live_before);
    assert_int_equal(c->sizes_inferred, e->sizes_inferred);
    assert_int_equal(c->frees_inferred, e->frees_inferred);
    struct dry_run run = run_with(replay, NULL);
    assert_true(run.as_recorded && !run.oom);
    const struct dry_replay_recorded *r = dry_replay_get_recorded(replay);
    assert_int_equal(run.reserved_peak_bytes, r->reserved_peak_bytes);
    assert_int_equal(run.reserved_end_bytes, r->reserved_end_bytes);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
real_recordings_are_exact(void **state)
{
    (void)state;
    static const struct expected all[] = {
        {"pytorch/decomfl.pickle", 7946, 61, 61, 468, 0, 0, 0},
        {"pytorch/transformer-medium-512-train.pickle", 7591, 1, 400, 1041, 664, 3, 0},
        {"pytorch/late-start.pickle", 2162, 0, 96, 550, 447, 5, 0},
        {"pytorch/python-stacks-only.pickle", 1721, 0, 216, 455, 229, 0, 0},
        {"pytorch/transformer-medium-128-infer.pickle", 1280, 0, 98, 230, 223, 0, 0},
        {"pytorch/tiny-cs336.pickle", 36, 9, 9, 20, 0, 0, 0},
        {"pytorch/compile-context.pickle", 28, 14, 14, 14, 0, 0, 24},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_exact(&all[i]);
}

/* A block of 4 MiB that kept a rest too small to be split off: found, not recorded. */
static void
a_rest_behind_an_old_block_is_inferred(void **state)
{
    (void)state;
    struct dry_trace *trace =
        read_recording("pytorch/transformer-medium-512-train.pickle");
    struct dryi_torch_conf conf;
    struct dryi_program program;
    struct dryi_initial_layout layout;
    dryi_torch_conf_init(&conf);
    assert_int_equal(dryi_program_init(&program, trace,
                                       &dry_trace_get_view(trace)->devices[0], &conf,
                                       NULL, NULL),
                     DRY_OK);
    assert_int_equal(dryi_initial_layout_init(&layout, &program, &conf, NULL), DRY_OK);
    assert_int_equal(layout.sizes_inferred, 3);
    size_t found = 0;
    for (size_t i = 0; i < program.carried_count; i++) {
        const struct carried *c = &program.carried[i];
        uint64_t rounded = dryi_torch_round_size(&conf, c->requested);
        found +=
            c->is_inferred && rounded == 4 * MIB && c->block_size - rounded == 983040;
    }
    assert_int_equal(found, 1);
    dryi_initial_layout_finish(&layout);
    dryi_program_finish(&program);
    dry_trace_destroy(trace);
}

static void
what_cannot_be_checked_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *name, *reason;
    } all[] = {
        {"pytorch/synthetic-inconsistent.pickle",
         "event 0: an allocation lies in no segment"},
        {"pytorch/segments-only-fragmented.pickle", "holds no events"},
        {"pytorch/old-format-full-card.pickle", "holds no events"},
        {"plain/decomfl.trace", "records no addresses"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct dry_trace *trace = read_recording(all[i].name);
        struct dry_replay *replay = replay_of(trace);
        const struct dry_replay_check *c = dry_replay_get_check(replay);
        assert_false(c->possible || c->exact || c->has_mismatch);
        if (!strstr(c->reason, all[i].reason))
            fail_msg("\"%s\", expected \"%s\"", c->reason, all[i].reason);
        assert_false(run_with(replay, NULL).as_recorded); /* and yet it runs */
        dry_replay_destroy(replay);
        dry_trace_destroy(trace);
    }
}

static const char *const confs[] = {
    "", /* and the recorded one */
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:8",
    "large_segment_size_mb:64",
    "expandable_segments:True,roundup_power2_divisions:[1:4,64:2,>:1]",
};

static void
compare_peaks(const char *pickle, const char *plain)
{
    struct dry_trace *a = read_recording(pickle), *b = read_recording(plain);
    struct dry_replay *of_pickle = replay_of(a), *of_plain = replay_of(b);
    assert_int_equal(run_at(of_pickle, NULL, DRY_SIM_UNLIMITED).reserved_peak_bytes,
                     run_at(of_plain, NULL, DRY_SIM_UNLIMITED).reserved_peak_bytes);
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        struct dry_run x = run_at(of_pickle, confs[i], DRY_SIM_UNLIMITED);
        struct dry_run y = run_at(of_plain, confs[i], DRY_SIM_UNLIMITED);
        assert_int_equal(x.reserved_peak_bytes, y.reserved_peak_bytes);
        assert_int_equal(x.allocated_peak_bytes, y.allocated_peak_bytes);
        assert_int_equal(x.requested_peak_bytes, y.requested_peak_bytes);
    }
    dry_replay_destroy(of_pickle);
    dry_replay_destroy(of_plain);
    dry_trace_destroy(a);
    dry_trace_destroy(b);
}

static void
a_pickle_and_its_plain_trace_agree(void **state)
{
    (void)state;
    static const char *const names[] = {"decomfl", "late-start", "python-stacks-only",
                                        "transformer-medium-512-train"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char pickle[64], plain[64];
        snprintf(pickle, sizeof pickle, "pytorch/%s.pickle", names[i]);
        snprintf(plain, sizeof plain, "plain/%s.trace", names[i]);
        compare_peaks(pickle, plain);
    }
}

/* --- runs --------------------------------------------------------------------------------- */

static void
a_device_that_is_too_small_is_an_oom(void **state)
{
    (void)state;
    struct dry_trace *trace = fragmented_program();
    struct dry_replay *replay = replay_of(trace);
    assert_false(run_at(replay, "", DRY_SIM_UNLIMITED).oom);
    struct dry_run run = run_at(replay, "", 100 * MIB);
    assert_true(run.oom);
    assert_int_equal(run.oom_event, 33);
    assert_int_equal(run.oom_size, 50 * MIB);
    assert_int_equal(run.op_count, 34);
    assert_int_equal(run.stats.num_ooms, 1);
    assert_int_equal(run.reserved_peak_bytes, 60 * MIB);
    assert_false(run_at(replay, "expandable_segments:True", 100 * MIB).oom);
    run = run_at(replay, "", 10 * MIB);
    assert_true(run.oom && run.oom_event == 0);
    assert_int_equal(run.reserved_peak_bytes, 0);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
check_capacity(struct dry_replay *replay, const char *conf)
{
    struct dry_run_options options = options_for(conf, DRY_SIM_UNLIMITED);
    options.begin_anew = options.find_capacity = true;
    struct dry_run found = run_with(replay, &options);
    assert_true(found.capacity_bytes >= found.allocated_peak_bytes);
    assert_false(run_at(replay, conf, found.capacity_bytes).oom);
    assert_true(run_at(replay, conf, found.capacity_bytes - 2 * MIB).oom);
    options.capacity_bytes =
        2 * found.capacity_bytes; /* the search does not depend on it */
    if (!strstr(conf, "expandable"))
        assert_int_equal(run_with(replay, &options).capacity_bytes, found.capacity_bytes);
}

static void
the_capacity_found_is_the_smallest(void **state)
{
    (void)state;
    struct dry_trace *trace = fragmented_program();
    struct dry_replay *replay = replay_of(trace);
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++)
        check_capacity(replay, confs[i]);
    struct dry_run_options options = options_for("", DRY_SIM_UNLIMITED);
    options.find_capacity = true;
    assert_int_equal(run_with(replay, &options).capacity_bytes, 110 * MIB);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

/* A peak of exactly so many steps may run on just that: the cached rest is given back. */
static void
the_capacity_may_be_the_peak_itself(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("a 1 512 0 0\nf 1 0 0 1\na 2 20971520 0 2\n");
    struct dry_replay *replay = replay_of(trace);
    check_capacity(replay, "");
    struct dry_run_options options = options_for("", DRY_SIM_UNLIMITED);
    options.find_capacity = true;
    assert_int_equal(run_with(replay, &options).capacity_bytes, 20 * MIB);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
the_capacity_of_a_recording_is_the_smallest(void **state)
{
    (void)state;
    struct dry_trace *trace = read_recording("pytorch/decomfl.pickle");
    struct dry_replay *replay = replay_of(trace);
    check_capacity(replay, "");
    check_capacity(replay, "expandable_segments:True");
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

/* Nothing was asked for: the smallest device is the smallest step. */
static void
an_empty_program_fits_anywhere(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("e\n");
    struct dry_replay *replay = replay_of(trace);
    struct dry_run_options options = options_for("", DRY_SIM_UNLIMITED);
    options.find_capacity = true;
    struct dry_run run = run_with(replay, &options);
    assert_int_equal(run.capacity_bytes, 2 * MIB);
    assert_int_equal(run.reserved_peak_bytes, 0);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
bad_options_are_refused(void **state)
{
    (void)state;
    struct dry_trace *trace = fragmented_program();
    struct dry_replay *replay = replay_of(trace);
    struct dry_run_options o = options_for("max_split_size_mb:1", DRY_SIM_UNLIMITED);
    refuse(replay, &o, DRY_ERR_ARGUMENT,
           "CachingAllocator option max_split_size_mb too small, must be >= 20, got 1");
    o.conf = "no_such_option:1";
    refuse(replay, &o, DRY_ERR_ARGUMENT, "no_such_option");
    o.conf = "backend:cudaMallocAsync";
    refuse(replay, &o, DRY_ERR_UNSUPPORTED, "cudaMallocAsync");
    o.conf = "per_process_memory_fraction:0.5";
    refuse(replay, &o, DRY_ERR_ARGUMENT, "state its capacity");
    o.capacity_bytes = 400 * MIB;
    assert_false(run_with(replay, &o).oom);
    o.capacity_bytes = 200 * MIB;
    assert_true(run_with(replay, &o).oom);
    o = options_for(NULL, DRY_SIM_UNLIMITED);
    o.compat = "two";
    refuse(replay, &o, DRY_ERR_ARGUMENT, "compat 'two' is not a release");
    o.compat = NULL;
    o.struct_size = 1;
    refuse(replay, &o, DRY_ERR_ARGUMENT, "");
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
bad_options_of_a_replay_are_refused(void **state)
{
    (void)state;
    struct dry_trace *trace = fragmented_program();
    struct dry_replay *replay = NULL;
    struct dry_replay_options o;
    struct dry_error err;
    dry_replay_options_init(&o);
    o.compat = "1.13";
    assert_int_equal(dry_replay_create(trace, &o, &replay, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "compat '1.13'"));
    o.compat = NULL;
    o.device = 7;
    assert_int_equal(dry_replay_create(trace, &o, &replay, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "device"));
    assert_null(replay);
    assert_int_equal(dry_replay_create(trace, &o, &replay, NULL), DRY_ERR_ARGUMENT);
    dry_replay_destroy(NULL);
    dry_trace_destroy(trace);
}

static void
releases_are_found_by_their_rules(void **state)
{
    (void)state;
    struct dry_replay_release first = DRY_INIT(struct dry_replay_release);
    struct dry_replay_release r = DRY_INIT(struct dry_replay_release);
    size_t index = 99, last;
    assert_true(dry_replay_get_release(0, &first));
    assert_string_equal(first.version, "2.0");
    assert_string_equal(first.change, "");
    assert_true(dry_replay_find_release("2.9.1", &index));
    assert_true(dry_replay_get_release(index, &r));
    assert_string_equal(r.version, "2.6");
    assert_true(dry_replay_find_release("2.15", &last));
    assert_false(dry_replay_get_release(last + 1, &r));
    assert_false(dry_replay_find_release("2.16", &index));
    assert_false(dry_replay_find_release("1.13", &index));
    assert_false(dry_replay_find_release("two", &index));
    assert_false(dry_replay_find_release(NULL, &index));
    for (size_t i = 1; i <= last; i++) {
        assert_true(dry_replay_get_release(i, &r) && r.change[0] != '\0');
        assert_true(dry_replay_find_release(r.version, &index) && index == i);
    }
}

static bool
cancel_at(void *self, uint64_t event_count)
{
    int *calls_left = self;
    (void)event_count;
    return --*calls_left < 0;
}

static void
progress_can_cancel(void **state)
{
    (void)state;
    struct dry_trace *trace = fragmented_program();
    struct dry_replay *replay;
    struct dry_replay_options o;
    int calls_left = 0;
    dry_replay_options_init(&o);
    o.progress = cancel_at;
    o.progress_self = &calls_left;
    assert_int_equal(dry_replay_create(trace, &o, &replay, NULL), DRY_OK);
    struct dry_run_options options = options_for("", DRY_SIM_UNLIMITED);
    refuse(replay, &options, DRY_ERR_CANCELLED, "cancelled");
    struct dry_trace *recorded = NULL;
    assert_int_equal(dry_replay_record(replay, &options, &recorded, NULL),
                     DRY_ERR_CANCELLED);
    assert_null(recorded);
    calls_left = 3; /* into the search for a capacity */
    options.find_capacity = true;
    refuse(replay, &options, DRY_ERR_CANCELLED, "cancelled");
    calls_left = 1000;
    assert_true(run_with(replay, &options).capacity_bytes > 0);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static struct dry_trace *
two_devices(void)
{
    struct dry_trace_builder_options options;
    struct dry_trace_builder *b;
    struct dry_trace *trace;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_PLAIN;
    assert_int_equal(dry_trace_builder_create(&options, &b, NULL), DRY_OK);
    for (int32_t device = 0; device < 2; device++) {
        dry_trace_begin_device(b, device);
        for (uint64_t i = 0; i < 1 + 2 * (uint64_t)device; i++)
            dry_trace_add_event(b, &(struct dry_event){.action = DRY_ACTION_ALLOC,
                                                       .addr = i,
                                                       .size = 12 * MIB,
                                                       .lane = dry_trace_add_lane(
                                                           b, &(struct dry_lane){0}),
                                                       .stack = DRY_NONE,
                                                       .note = DRY_NONE});
    }
    assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
    return trace;
}

static void
the_busiest_device_is_replayed(void **state)
{
    (void)state;
    struct dry_trace *trace = two_devices();
    struct dry_replay_options o;
    struct dry_replay *replay = replay_of(trace);
    assert_int_equal(dry_replay_get_recorded(replay)->device, 1);
    struct dry_run run = run_at(replay, "", 30 * MIB);
    assert_true(run.oom);
    assert_int_equal(run.oom_event, 3); /* counted in the trace, not in the device */
    dry_replay_destroy(replay);
    dry_replay_options_init(&o);
    o.device = 0;
    assert_int_equal(dry_replay_create(trace, &o, &replay, NULL), DRY_OK);
    assert_int_equal(dry_replay_get_check(replay)->event_count, 1);
    assert_int_equal(run_at(replay, "", DRY_SIM_UNLIMITED).reserved_peak_bytes, 12 * MIB);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
each_device_is_found_by_its_number(void **state)
{
    (void)state;
    static const int32_t begun[] = {7, 0, DRY_DEVICE_HOST, 3};
    struct dry_trace_builder *b;
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_create(NULL, &b, NULL), DRY_OK);
    for (size_t i = 0; i < 4; i++)
        dry_trace_begin_device(b, begun[i]);
    assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
    for (int32_t device = -1; device < 9; device++) {
        struct dry_replay *replay = NULL;
        struct dry_replay_options o;
        dry_replay_options_init(&o);
        o.device = device;
        bool is_there = device == 0 || device == 3 || device == 7;
        enum dry_status expected = is_there                    ? DRY_OK
                                   : device == DRY_DEVICE_HOST ? DRY_ERR_UNSUPPORTED
                                                               : DRY_ERR_ARGUMENT;
        assert_int_equal(dry_replay_create(trace, &o, &replay, NULL), expected);
        if (is_there)
            assert_int_equal(dry_replay_get_recorded(replay)->device, device);
        dry_replay_destroy(replay);
    }
    dry_trace_destroy(trace);
}

/* --- decisions ---------------------------------------------------------------------------- */

static const char small_program[] = "a 1 1000 0 1\n"
                                    "a 2 3000000 0 2\n"
                                    "f 1\n"
                                    "f 2\n"
                                    "e\n"
                                    "a 3 100 7 5\n"
                                    "f 3\n"
                                    "a 4 50000000 0 6\n"
                                    "a 5 600 0 7\n";

static void
check_decisions(const char *conf, uint64_t capacity, const char *expected)
{
    struct dry_trace *trace = read_text(small_program);
    struct dry_replay *replay = replay_of(trace);
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_run_options options = options_for(conf, capacity);
    struct dry_decision_sink decisions = bytes_sink_decisions(&sink);
    options.decisions = &decisions;
    struct dry_run run = run_with(replay, &options);
    assert_int_equal(run.oom, capacity != DRY_SIM_UNLIMITED);
    assert_int_equal(to.count, strlen(expected));
    assert_memory_equal(to.bytes, expected, to.count);
    bytes_sink_finish(&to);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
decisions_are_written_in_order(void **state)
{
    (void)state;
    check_decisions("", DRY_SIM_UNLIMITED,
                    "segment_alloc 0 2097152 0\n"
                    "alloc 1 0 0 1024\n"
                    "segment_alloc 1 20971520 0\n"
                    "alloc 2 1 0 3000320\n"
                    "free 1\n"
                    "free 2\n"
                    "segment_free 1\n"
                    "segment_free 0\n"
                    "segment_alloc 2 2097152 7\n"
                    "alloc 3 2 0 512\n"
                    "free 3\n"
                    "segment_alloc 3 50331648 0\n"
                    "alloc 4 3 0 50331648\n"
                    "segment_alloc 4 2097152 0\n"
                    "alloc 5 4 0 1024\n");
}

/* The run ends there, after giving back all that was cached. */
static void
decisions_end_with_an_oom(void **state)
{
    (void)state;
    check_decisions("", 24 * MIB,
                    "segment_alloc 0 2097152 0\n"
                    "alloc 1 0 0 1024\n"
                    "segment_alloc 1 20971520 0\n"
                    "alloc 2 1 0 3000320\n"
                    "free 1\n"
                    "free 2\n"
                    "segment_free 1\n"
                    "segment_free 0\n"
                    "segment_alloc 2 2097152 7\n"
                    "alloc 3 2 0 512\n"
                    "free 3\n"
                    "segment_free 2\n"
                    "oom 50000384\n");
}

static void
decisions_of_expandable_segments(void **state)
{
    (void)state;
    check_decisions("expandable_segments:True", DRY_SIM_UNLIMITED,
                    "segment_map 0 0 2097152\n"
                    "alloc 1 0 0 1024\n"
                    "segment_map 1 0 20971520\n"
                    "alloc 2 1 0 3000320\n"
                    "free 1\n"
                    "free 2\n"
                    "segment_unmap 1 0 20971520\n"
                    "segment_unmap 0 0 2097152\n"
                    "segment_map 2 0 2097152\n"
                    "alloc 3 2 0 512\n"
                    "free 3\n"
                    "segment_map 3 0 62914560\n"
                    "alloc 4 3 0 50000384\n"
                    "segment_map 4 0 2097152\n"
                    "alloc 5 4 0 1024\n");
}

static void
a_failing_sink_ends_the_run(void **state)
{
    (void)state;
    struct dry_trace *program = fragmented_program();
    struct dry_trace *recorded = record_of(program, "", DRY_SIM_UNLIMITED);
    const struct dry_trace *traces[] = {program, recorded};
    for (size_t i = 0; i < 2; i++) { /* anew, and as recorded */
        struct dry_replay *replay = replay_of(traces[i]);
        struct bytes_sink to;
        struct dry_sink sink = bytes_sink_init(&to, 0);
        struct dry_run_options options = options_for(NULL, DRY_SIM_UNLIMITED);
        struct dry_decision_sink decisions = bytes_sink_decisions(&sink);
        options.decisions = &decisions;
        refuse(replay, &options, DRY_ERR_SYSTEM, "no room left");
        assert_int_equal(to.calls, 1);
        bytes_sink_finish(&to);
        dry_replay_destroy(replay);
    }
    dry_trace_destroy(recorded);
    dry_trace_destroy(program);
}

/* --- records ------------------------------------------------------------------------------ */

static void
a_recorded_oom_and_a_setting_that_avoids_it(void **state)
{
    (void)state;
    struct dry_trace *program = fragmented_program();
    struct dry_trace *recorded = record_of(program, "", 100 * MIB);
    const struct dry_trace_view *v = dry_trace_get_view(recorded);
    size_t oom_event = 0;
    while (oom_event < v->event_count && v->action[oom_event] != DRY_ACTION_OOM)
        oom_event++;
    assert_true(oom_event < v->event_count);
    struct dry_replay *replay = replay_of(recorded);
    const struct dry_replay_recorded *r = dry_replay_get_recorded(replay);
    assert_true(dry_replay_get_check(replay)->exact);
    assert_int_equal(dry_replay_get_check(replay)->oom_count, 1);
    assert_true(r->oom);
    assert_int_equal(r->oom_event, oom_event);
    assert_int_equal(r->capacity_bytes, 100 * MIB);
    assert_int_equal(r->reserved_peak_bytes, 60 * MIB);
    struct dry_run run = run_with(replay, NULL);
    assert_true(run.as_recorded && run.oom);
    assert_int_equal(run.oom_event, oom_event);
    assert_int_equal(run.oom_size, 50 * MIB);
    run = run_at(replay, "", 0); /* 0: the recorded capacity */
    assert_true(run.oom && run.oom_event == oom_event);
    assert_false(run_at(replay, "expandable_segments:True", 0).oom);
    assert_true(run_at(replay, "expandable_segments:True", 90 * MIB).oom);
    dry_replay_destroy(replay);
    dry_trace_destroy(recorded);
    dry_trace_destroy(program);
}

/* The same record, in which whatever lay at one address lies at another. */
static struct dry_trace *
move_address(const struct dry_trace *trace, uint64_t from, uint64_t to)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    struct dry_trace_builder_options options;
    struct dry_trace_builder *b;
    struct dry_trace *moved;
    dry_trace_builder_options_init(&options);
    assert_int_equal(dry_trace_builder_create(&options, &b, NULL), DRY_OK);
    for (uint32_t i = 0; i < v->lane_count; i++)
        assert_int_equal(dry_trace_add_lane(b, &v->lanes[i]), i);
    dry_trace_begin_device(b, 0);
    for (size_t i = 0; i < v->event_count; i++)
        dry_trace_add_event(
            b, &(struct dry_event){.action = v->action[i],
                                   .addr = v->addr[i] == from ? to : v->addr[i],
                                   .size = v->size[i],
                                   .lane = v->lane[i],
                                   .stack = DRY_NONE,
                                   .note = DRY_NONE});
    for (size_t i = 0; i < v->segment_count; i++)
        dry_trace_add_segment(b, &v->segments[i], &v->blocks[v->segments[i].first_block],
                              v->segments[i].block_count);
    assert_int_equal(dry_trace_builder_finish(b, &moved, NULL), DRY_OK);
    return moved;
}

static void
a_changed_address_is_found(void **state)
{
    (void)state;
    struct dry_trace *program = read_text("a 1 1000 0 1\n"
                                          "a 2 2000 0 2\n"
                                          "f 2\n"
                                          "a 3 5000000 0 4\n");
    struct dry_trace *recorded = record_of(program, "", DRY_SIM_UNLIMITED);
    const struct dry_trace_view *v = dry_trace_get_view(recorded);
    assert_int_equal(v->action[2], DRY_ACTION_ALLOC); /* behind a segment and an alloc */
    assert_int_equal(v->size[2], 2000);
    struct dry_trace *moved = move_address(recorded, v->addr[2], v->addr[2] + 4096);
    struct dry_replay *replay = replay_of(moved);
    const struct dry_replay_check *c = dry_replay_get_check(replay);
    assert_true(c->possible);
    assert_false(c->exact);
    assert_true(c->has_mismatch);
    assert_int_equal(c->first_mismatch.event, 2);
    assert_non_null(strstr(c->first_mismatch.what, "alloc of 2000: recorded at 0x"));
    assert_int_equal(c->alloc_count, 3);
    assert_int_equal(c->alloc_matched, 2);
    assert_int_equal(c->segment_matched, c->segment_count);
    dry_replay_destroy(replay);
    dry_trace_destroy(moved);
    replay = replay_of(recorded);
    assert_true(dry_replay_get_check(replay)->exact);
    dry_replay_destroy(replay);
    dry_trace_destroy(recorded);
    dry_trace_destroy(program);
}

/* --- records that no allocator made ------------------------------------------------------- */

struct record {
    struct dry_trace_builder *builder;
    uint32_t lane;
};

static struct record
begin_record(void)
{
    struct record r;
    struct dry_lane lane = {.pool_known = true};
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    assert_int_equal(dry_trace_builder_create(&options, &r.builder, NULL), DRY_OK);
    r.lane = dry_trace_add_lane(r.builder, &lane);
    dry_trace_begin_device(r.builder, 0);
    return r;
}

static void
add_event(struct record *r, enum dry_action action, uint64_t addr, uint64_t size)
{
    dry_trace_add_event(r->builder, &(struct dry_event){.action = action,
                                                        .addr = addr,
                                                        .size = size,
                                                        .lane = r->lane,
                                                        .stack = DRY_NONE,
                                                        .note = DRY_NONE});
}

static void
add_segment(struct record *r, uint64_t addr, uint64_t size, uint64_t used)
{
    struct dry_trace_segment segment = {.address = addr,
                                        .total_size = size,
                                        .lane = r->lane,
                                        .stack = DRY_NONE,
                                        .extra = DRY_NONE};
    struct dry_trace_block blocks[2] = {
        {addr, used, used, DRY_NONE, DRY_NONE, DRY_BLOCK_ACTIVE},
        {addr + used, size - used, 0, DRY_NONE, DRY_NONE, DRY_BLOCK_INACTIVE},
    };
    dry_trace_add_segment(r->builder, &segment, blocks, 2);
}

/* Whatever it says: a verdict other than exact, and runs that end. */
static void
end_record(struct record *r, const char *reason)
{
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_finish(r->builder, &trace, NULL), DRY_OK);
    struct dry_replay *replay = replay_of(trace);
    const struct dry_replay_check *c = dry_replay_get_check(replay);
    assert_false(c->exact);
    assert_int_equal(c->possible, reason == NULL);
    if (reason && !strstr(c->reason, reason))
        fail_msg("\"%s\", expected \"%s\"", c->reason, reason);
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++)
        (void)run_at(replay, confs[i], DRY_SIM_UNLIMITED);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

/* An option of a later release: the values exported beside the string still count. */
static void
unknown_settings_are_told(void **state)
{
    (void)state;
    static const char conf[] = "max_split_size_mb:64,future_option:1";
    struct record r = begin_record();
    struct dry_trace_settings settings = {
        .known = true,
        .conf = dry_trace_add_string(r.builder, conf, sizeof conf - 1),
        .max_split_size = 64 * (int64_t)MIB,
        .extra = DRY_NONE,
    };
    dry_trace_set_settings(r.builder, &settings);
    add_event(&r, DRY_ACTION_SEGMENT_ALLOC, 2048 * MIB, 2 * MIB);
    add_event(&r, DRY_ACTION_ALLOC, 2048 * MIB, 512);
    add_segment(&r, 2048 * MIB, 2 * MIB, 512);
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_finish(r.builder, &trace, NULL), DRY_OK);
    struct dry_replay *replay = replay_of(trace);
    const struct dry_replay_recorded *recorded = dry_replay_get_recorded(replay);
    assert_string_equal(recorded->conf, conf);
    assert_non_null(recorded->conf_problem);
    assert_non_null(strstr(recorded->conf_problem, "future_option"));
    assert_true(dry_replay_get_check(replay)->exact);
    struct dry_run run;
    assert_int_equal(dry_replay_run(replay, NULL, &run, NULL), DRY_OK);
    assert_int_equal(run.stats.max_split_size, 64 * MIB);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

/* What PyTorch's parser refuses, a snapshot cannot have been recorded with. */
static void
impossible_thresholds_are_off(void **state)
{
    (void)state;
    static const double thresholds[] = {1e300, 1.0, -0.5, 0.0 / 0.0, 0.75};
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
        struct record r = begin_record();
        dry_trace_set_settings(
            r.builder,
            &(struct dry_trace_settings){.known = true,
                                         .conf = DRY_NONE,
                                         .max_split_size = -1,
                                         .garbage_collection_threshold = thresholds[i],
                                         .extra = DRY_NONE});
        add_event(&r, DRY_ACTION_SEGMENT_ALLOC, 2048 * MIB, 2 * MIB);
        add_event(&r, DRY_ACTION_ALLOC, 2048 * MIB, 512);
        add_segment(&r, 2048 * MIB, 2 * MIB, 512);
        struct dry_trace *trace;
        assert_int_equal(dry_trace_builder_finish(r.builder, &trace, NULL), DRY_OK);
        struct dry_replay *replay = replay_of(trace);
        double taken = dryi_replay_conf(replay)->garbage_collection_threshold;
        assert_true(taken >= (i == 4 ? 0.75 : 0.0) && taken <= (i == 4 ? 0.75 : 0.0));
        dry_replay_destroy(replay);
        dry_trace_destroy(trace);
    }
}

static void
contradictions_are_named(void **state)
{
    (void)state;
    const uint64_t base = 2048 * MIB;
    struct record r = begin_record();
    add_event(&r, DRY_ACTION_ALLOC, base, 512);
    add_event(&r, DRY_ACTION_ALLOC, base, 512);
    end_record(&r, "event 1: an address is handed out that is still in use");
    r = begin_record();
    add_event(&r, DRY_ACTION_FREE_REQUESTED, base, 512);
    add_event(&r, DRY_ACTION_FREE_REQUESTED, base, 512);
    end_record(&r, "event 1: a block is given back twice");
    r = begin_record();
    add_event(&r, DRY_ACTION_ALLOC, base, 512);
    add_segment(&r, base, 2 * MIB, 512);
    add_segment(&r, base + MIB, 2 * MIB, 512);
    end_record(&r, "two segments overlap");
    r = begin_record();
    add_event(&r, DRY_ACTION_SEGMENT_ALLOC, base, UINT64_MAX);
    end_record(&r, "larger than any device");
    r = begin_record();
    add_event(&r, DRY_ACTION_ALLOC, base + 512, 100);
    add_segment(&r, base, UINT64_C(3) << 61, 512);
    end_record(&r, "more than any device");
    r = begin_record();
    add_event(&r, DRY_ACTION_ALLOC, UINT64_MAX - 511, 100);
    add_segment(&r, UINT64_MAX - 2 * MIB + 2, 2 * MIB, 512);
    end_record(&r, "empty or wraps around");
    r = begin_record();
    add_event(&r, DRY_ACTION_SEGMENT_ALLOC, base, 2 * MIB);
    add_event(&r, DRY_ACTION_SEGMENT_ALLOC, base, 2 * MIB);
    add_segment(&r, base, 2 * MIB, 512);
    end_record(&r, "taken from the device twice");
}

/* Blocks of odd sizes and misaligned addresses, carried-over and new ones of no bytes. */
static void
layouts_of_no_allocator_are_refused(void **state)
{
    (void)state;
    const uint64_t base = 2048 * MIB;
    struct record r = begin_record();
    add_event(&r, DRY_ACTION_ALLOC, base + 512, 100);
    add_segment(&r, base, 2 * MIB, 100);
    end_record(&r, "its blocks do not fill it");
    r = begin_record();
    add_event(&r, DRY_ACTION_ALLOC, base + 512, 0);
    add_segment(&r, base, 2 * MIB, 512);
    end_record(&r, NULL);
    r = begin_record();
    add_event(&r, DRY_ACTION_ALLOC, base + 7, UINT64_MAX);
    add_segment(&r, base, 2 * MIB, 512);
    end_record(&r, "event 0: an allocation is negative or larger than any device");
    r = begin_record();
    add_event(&r, DRY_ACTION_OOM, UINT64_MAX, UINT64_MAX);
    add_event(&r, DRY_ACTION_ALLOC, base + 4096, 512);
    add_segment(&r, base, 2 * MIB, 512);
    end_record(&r, NULL);
}

/*
 * Pages of the large pool are mapped some GiB below those of the small one, as on a card of
 * 80 GiB: they are a reservation of their own, not the front of the other.
 */
static void
reservations_of_two_pools_stay_apart(void **state)
{
    (void)state;
    const uint64_t large = UINT64_C(64) << 30, small = UINT64_C(154) << 30,
                   half = MIB / 2;
    struct record r = begin_record();
    add_event(&r, DRY_ACTION_SEGMENT_MAP, large, 20 * MIB);
    add_event(&r, DRY_ACTION_ALLOC, large, 20 * MIB);
    add_event(&r, DRY_ACTION_SEGMENT_MAP, small + 2 * MIB, 2 * MIB);
    add_event(&r, DRY_ACTION_ALLOC, small + 2 * MIB, half);
    dry_trace_set_settings(r.builder,
                           &(struct dry_trace_settings){.known = true,
                                                        .conf = DRY_NONE,
                                                        .max_split_size = -1,
                                                        .expandable_segments = true,
                                                        .extra = DRY_NONE});
    struct dry_trace_segment segment = {.address = large,
                                        .total_size = 20 * MIB,
                                        .lane = r.lane,
                                        .stack = DRY_NONE,
                                        .extra = DRY_NONE,
                                        .is_large = true,
                                        .is_expandable = true};
    struct dry_trace_block blocks[5] = {{.address = large, .size = 20 * MIB}};
    uint64_t sizes[5] = {half, half, MIB, half, MIB + half}, at = small;
    blocks[0].requested_size = blocks[0].size;
    blocks[0].state = DRY_BLOCK_ACTIVE;
    for (size_t i = 0; i < 5; i++)
        blocks[i].stack = blocks[i].extra = DRY_NONE;
    dry_trace_add_segment(r.builder, &segment, blocks, 1);
    for (size_t i = 0; i < 5; at += sizes[i++]) {
        blocks[i].address = at;
        blocks[i].size = blocks[i].requested_size = sizes[i];
        blocks[i].state = i < 4 ? DRY_BLOCK_ACTIVE : DRY_BLOCK_INACTIVE;
    }
    segment.address = small;
    segment.total_size = 4 * MIB;
    segment.is_large = false;
    dry_trace_add_segment(r.builder, &segment, blocks, 5);
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_finish(r.builder, &trace, NULL), DRY_OK);
    struct dry_replay *replay = replay_of(trace);
    const struct dry_replay_check *c = dry_replay_get_check(replay);
    if (!c->exact)
        fail_msg("%s%s", c->reason, c->first_mismatch.what);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

/* --- memory that runs out ----------------------------------------------------------------- */

static void
check_status(enum dry_status status, const struct dry_error *err)
{
    if (status != DRY_OK && (status != DRY_ERR_MEMORY || err->status != DRY_ERR_MEMORY))
        fail_msg("%s: %s", dry_status_name(status), err->text);
}

/* Every call on a replay, until one finds no memory. */
static void
use_replay(const struct dry_trace *trace, const struct dry_memory *memory)
{
    struct dry_replay_options o;
    struct dry_replay *replay;
    struct dry_error err;
    struct dry_run run;
    dry_replay_options_init(&o);
    o.memory = memory;
    enum dry_status status = dry_replay_create(trace, &o, &replay, &err);
    check_status(status, &err);
    if (status != DRY_OK)
        return;
    for (size_t i = 0; i < 2 && status == DRY_OK; i++) {
        struct bytes_sink to;
        struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
        struct dry_run_options options = options_for(NULL, DRY_SIM_UNLIMITED);
        options.conf = i ? "expandable_segments:True" : NULL;
        struct dry_decision_sink decisions = bytes_sink_decisions(&sink);
        options.decisions = &decisions;
        status = dry_replay_run(replay, &options, &run, &err);
        check_status(status, &err);
        bytes_sink_finish(&to);
        struct dry_trace *recorded;
        options.decisions = NULL;
        if (status == DRY_OK)
            status = dry_replay_record(replay, &options, &recorded, &err);
        check_status(status, &err);
        if (status == DRY_OK)
            dry_trace_destroy(recorded);
    }
    dry_replay_destroy(replay);
}

static void
each_request_for_memory_may_fail(void **state)
{
    (void)state;
    struct dry_trace *program = read_text("i 1 5000000 0 0\n"
                                          "p 1\na 2 100 1 1 here\nq 1\n"
                                          "a 3 30000000 0 2\nr 3 1\nf 3\n"
                                          "a 4 700000 1 3\ns 1\nf 1\nf 2\n"
                                          "e\na 5 100 0 4\n");
    struct dry_trace *recorded = record_of(program, "", DRY_SIM_UNLIMITED);
    struct dry_trace *expandable =
        record_of(program, "expandable_segments:True", DRY_SIM_UNLIMITED);
    const struct dry_trace *traces[] = {program, recorded, expandable};
    for (size_t i = 0; i < 3; i++) {
        size_t n = 0;
        for (bool failed = true; failed; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            use_replay(traces[i], &memory);
            failed = fm.failed;
            failing_memory_finish(&fm);
        }
        assert_true(n > 50);
    }
    dry_trace_destroy(expandable);
    dry_trace_destroy(recorded);
    dry_trace_destroy(program);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_recordings_are_exact),
        cmocka_unit_test(a_rest_behind_an_old_block_is_inferred),
        cmocka_unit_test(what_cannot_be_checked_says_why),
        cmocka_unit_test(a_pickle_and_its_plain_trace_agree),
        cmocka_unit_test(a_device_that_is_too_small_is_an_oom),
        cmocka_unit_test(the_capacity_found_is_the_smallest),
        cmocka_unit_test(the_capacity_may_be_the_peak_itself),
        cmocka_unit_test(the_capacity_of_a_recording_is_the_smallest),
        cmocka_unit_test(an_empty_program_fits_anywhere),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(bad_options_of_a_replay_are_refused),
        cmocka_unit_test(progress_can_cancel),
        cmocka_unit_test(the_busiest_device_is_replayed),
        cmocka_unit_test(each_device_is_found_by_its_number),
        cmocka_unit_test(decisions_are_written_in_order),
        cmocka_unit_test(decisions_end_with_an_oom),
        cmocka_unit_test(decisions_of_expandable_segments),
        cmocka_unit_test(a_failing_sink_ends_the_run),
        cmocka_unit_test(a_recorded_oom_and_a_setting_that_avoids_it),
        cmocka_unit_test(a_changed_address_is_found),
        cmocka_unit_test(unknown_settings_are_told),
        cmocka_unit_test(impossible_thresholds_are_off),
        cmocka_unit_test(contradictions_are_named),
        cmocka_unit_test(layouts_of_no_allocator_are_refused),
        cmocka_unit_test(reservations_of_two_pools_stay_apart),
        cmocka_unit_test(releases_are_found_by_their_rules),
        cmocka_unit_test(each_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
