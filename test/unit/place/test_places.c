/* SPDX-License-Identifier: Apache-2.0 */

/*
 * replay in other places than PyTorch's: paged runs and the device they need, packings
 * against their floor, decisions that never overlap, the steady part, what is refused, and
 * memory that runs out.
 */
#include "support/cmocka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)
#define IDS_MAX 4096

static const char *const places[] = {"torch", "paged", "offline"};

/* --- programs ----------------------------------------------------------------------------- */

static struct dry_replay *
replay_of(const struct dry_trace *trace)
{
    struct dry_replay *replay;
    struct dry_error err;
    if (dry_replay_create(trace, NULL, &replay, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return replay;
}

/* A trace and its replay. */
struct subject {
    struct dry_trace *trace;
    struct dry_replay *replay;
};

static struct subject
subject_of(const char *text)
{
    struct subject s = {.trace = bytes_read_trace(text, strlen(text))};
    s.replay = replay_of(s.trace);
    return s;
}

static void
finish_subject(struct subject *s)
{
    dry_replay_destroy(s->replay);
    dry_trace_destroy(s->trace);
}

static uint64_t
live_peak_of(const struct subject *s)
{
    return dry_replay_get_recorded(s->replay)->live_peak_bytes;
}

static struct dry_run_options
options_for(const char *place, uint64_t capacity)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.place = place;
    options.capacity_bytes = capacity;
    options.begin_anew = true;
    return options;
}

static struct dry_run
run_with(const struct subject *s, const struct dry_run_options *options)
{
    struct dry_run run;
    struct dry_error err;
    if (dry_replay_run(s->replay, options, &run, &err) != DRY_OK)
        fail_msg("%s: %s", options->place ? options->place : "torch", err.text);
    return run;
}

static struct dry_run
run_in(const struct subject *s, const char *place, uint64_t capacity)
{
    struct dry_run_options options = options_for(place, capacity);
    return run_with(s, &options);
}

/*
 * Blocks of 3 MiB of which every second stays, then one as large as all the holes: no
 * range without moving pages serves it from them.
 */
static const char comb[] = "a 1 3145728 0 1\na 2 3145728 0 2\na 3 3145728 0 3\n"
                           "a 4 3145728 0 4\na 5 3145728 0 5\na 6 3145728 0 6\n"
                           "a 7 3145728 0 7\na 8 3145728 0 8\n"
                           "f 1\nf 3\nf 5\nf 7\n"
                           "a 9 12582912 0 9\nf 9\na 10 512 0 10\n";

/* Two streams, a block that both use, a private pool, the cache given back. */
static const char streams[] = "i 1 20971520 0 0\n"
                              "a 2 8388608 0 10\na 3 8388608 0 25\nr 3 7\nf 2\n"
                              "a 4 1000 7 30\nf 3\ns 7\np 5\na 5 3000000 0 40\nq 5\n"
                              "f 5\nf 4\ne\na 6 16777216 0 50\nf 6\nf 1\n";

/* --- runs --------------------------------------------------------------------------------- */

static void
pytorch_is_the_default_place(void **state)
{
    (void)state;
    const char *const texts[] = {comb, streams};
    for (size_t i = 0; i < 2; i++) {
        struct subject s = subject_of(texts[i]);
        struct dry_run named = run_in(&s, "torch", DRY_SIM_UNLIMITED);
        struct dry_run meant = run_in(&s, NULL, DRY_SIM_UNLIMITED);
        assert_string_equal(named.place, "torch");
        assert_string_equal(meant.place, "torch");
        assert_memory_equal(&named.stats, &meant.stats, sizeof named.stats);
        assert_int_equal(named.driver_time_ns, meant.driver_time_ns);
        assert_int_equal(named.driver_calls, meant.driver_calls);
        assert_int_equal(named.driver_calls,
                         named.stats.num_device_alloc + named.stats.num_device_free);
        finish_subject(&s);
    }
}

static void
the_peak_of_what_lives_is_told(void **state)
{
    (void)state;
    struct subject s = subject_of(comb);
    assert_int_equal(live_peak_of(&s), 24 * MIB);
    finish_subject(&s);
    s = subject_of(streams); /* 1, 5, 4 and 6 at most: a pending free lives no more */
    assert_int_equal(live_peak_of(&s), 20971520 + 2 * 8388608 + 0);
    finish_subject(&s);
    s = subject_of("a 1 9223372036854775807 0 0\na 2 9223372036854775807 0 0\n"
                   "a 3 9223372036854775807 0 0\n");
    assert_int_equal(live_peak_of(&s), 0);
    struct dry_run run = run_in(&s, "torch", DRY_SIM_UNLIMITED);
    assert_true(run.oom);
    finish_subject(&s);
}

static void
every_place_runs_on_the_device_it_asks_for(void **state)
{
    (void)state;
    const char *const texts[] = {comb, streams};
    for (size_t i = 0; i < 6; i++) {
        struct subject s = subject_of(texts[i / 3]);
        const char *place = places[i % 3];
        struct dry_run_options options = options_for(place, DRY_SIM_UNLIMITED);
        options.find_capacity = true;
        struct dry_run run = run_with(&s, &options);
        assert_string_equal(run.place, place);
        assert_false(run.oom);
        assert_true(run.capacity_bytes >= live_peak_of(&s));
        assert_true(run.capacity_bytes % (2 * MIB) == 0);
        assert_false(run_in(&s, place, run.capacity_bytes).oom);
        struct dry_run small = run_in(&s, place, run.capacity_bytes - 2 * MIB);
        assert_true(small.oom && small.oom_size > 0);
        finish_subject(&s);
    }
}

/* What lies in pieces is no loss to pages that move, and nothing to who knows the future. */
static void
pages_that_move_need_no_more_than_what_lives(void **state)
{
    (void)state;
    struct subject s = subject_of(comb);
    struct dry_run_options options = options_for("paged", DRY_SIM_UNLIMITED);
    options.find_capacity = true;
    struct dry_run run = run_with(&s, &options);
    assert_true(run.capacity_bytes < 36 * MIB);
    options.place = "torch";
    assert_true(run.capacity_bytes < run_with(&s, &options).capacity_bytes);
    finish_subject(&s);
}

static void
a_packing_is_held_against_its_floor(void **state)
{
    (void)state;
    struct subject s = subject_of(comb);
    struct dry_run run = run_in(&s, "offline", DRY_SIM_UNLIMITED);
    assert_int_equal(run.floor_bytes, 24 * MIB);
    assert_int_equal(run.packed_bytes, run.floor_bytes);
    assert_true(run.is_optimal);
    assert_non_null(run.method);
    assert_int_equal(run.reserved_peak_bytes, 24 * MIB);
    assert_int_equal(run.reserved_end_bytes, 24 * MIB); /* it is kept */
    assert_int_equal(run.driver_calls, 1);
    assert_int_equal(run.requested_peak_bytes, live_peak_of(&s));
    const struct dry_stat *blocks = &run.stats.allocation.all;
    const struct dry_stat *bytes = &run.stats.allocated_bytes.all;
    assert_true(blocks->allocated > 0);
    assert_int_equal(blocks->current, blocks->allocated - blocks->freed);
    assert_int_equal(bytes->peak, run.floor_bytes);
    assert_int_equal(bytes->current, bytes->allocated - bytes->freed);
    assert_int_equal(run.stats.requested_bytes.all.peak, live_peak_of(&s));
    assert_int_equal(run.stats.reserved_bytes.all.current, 24 * MIB);
    run = run_in(&s, "offline", 20 * MIB);
    assert_true(run.oom);
    finish_subject(&s);
}

static void
nothing_to_pack_takes_nothing(void **state)
{
    (void)state;
    struct subject s = subject_of("e\n");
    struct dry_run_options options = options_for("offline", DRY_SIM_UNLIMITED);
    options.find_capacity = true;
    struct dry_run run = run_with(&s, &options);
    assert_int_equal(run.packed_bytes, 0);
    assert_int_equal(run.driver_calls, 0);
    assert_int_equal(run.capacity_bytes, 2 * MIB);
    finish_subject(&s);
}

/* Lives that no greedy order packs to the floor; no search of these is over soon. */
static struct dry_trace *
program_hard_to_pack(void)
{
    enum { ALIVE = 70, LIVES = 400 };
    char text[LIVES * 40];
    uint64_t alive[ALIVE];
    size_t length = 0;
    struct random r;
    random_init(&r, 5);
    for (uint64_t i = 0; i < LIVES; i++) {
        size_t slot = i < ALIVE ? i : random_below(&r, ALIVE);
        if (i >= ALIVE)
            length += (size_t)sprintf(text + length, "f %" PRIu64 "\n", alive[slot]);
        alive[slot] = i;
        length += (size_t)sprintf(text + length, "a %" PRIu64 " %" PRIu64 " 0 0\n", i,
                                  (1 + random_below(&r, 3000)) * 512);
    }
    return bytes_read_trace(text, length);
}

struct watch {
    uint64_t calls, calls_max;
    bool is_in_order; /* told 1, 2, 3 ... */
};

static bool
count_searches(void *self, uint64_t count)
{
    struct watch *w = self;
    w->calls++;
    w->is_in_order = w->is_in_order && count == w->calls;
    return w->calls > w->calls_max;
}

static void
a_packing_tells_its_searches_and_can_be_cancelled(void **state)
{
    (void)state;
    struct dry_trace *trace = program_hard_to_pack();
    struct watch watch = {.calls_max = UINT64_MAX};
    struct dry_replay_options replay_options;
    struct dry_replay *replay;
    dry_replay_options_init(&replay_options);
    replay_options.progress = count_searches;
    replay_options.progress_self = &watch;
    assert_int_equal(dry_replay_create(trace, &replay_options, &replay, NULL), DRY_OK);
    struct dry_run_options options = options_for("offline", DRY_SIM_UNLIMITED);
    for (uint64_t calls_max = 0; calls_max < 3; calls_max++) {
        struct dry_run run = {.op_count = 4711};
        struct dry_error err = {.text = ""};
        watch = (struct watch){.calls_max = calls_max, .is_in_order = true};
        assert_int_equal(dry_replay_run(replay, &options, &run, &err), DRY_ERR_CANCELLED);
        assert_string_equal(err.text, "cancelled");
        assert_int_equal(run.op_count, 4711);
        assert_int_equal(watch.calls, calls_max + 1);
        assert_true(watch.is_in_order);
    }
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

/* --- the steady part ---------------------------------------------------------------------- */

static void
the_steady_part_is_reported_alone(void **state)
{
    (void)state;
    struct subject s = subject_of("a 1 52428800 0 1\na 2 52428800 0 2\nf 1\nf 2\ne\n"
                                  "a 3 31457280 0 3\nf 3\n"
                                  "a 4 31457280 0 4\nf 4\n");
    struct dry_run_options options = options_for("torch", DRY_SIM_UNLIMITED);
    assert_false(run_with(&s, &options).has_steady);
    options.steady_from = 5;
    struct dry_run run = run_with(&s, &options);
    assert_true(run.has_steady);
    assert_int_equal(run.reserved_peak_bytes, 100 * MIB);
    assert_int_equal(run.steady_reserved_peak_bytes, 30 * MIB);
    assert_int_equal(run.steady_driver_calls, 1);
    options.steady_from = 7;
    run = run_with(&s, &options);
    assert_int_equal(run.steady_reserved_peak_bytes, 30 * MIB);
    assert_int_equal(run.steady_driver_calls, 0);
    assert_int_equal(run.steady_driver_time_ns, 0);
    options.steady_from = 9; /* there is no such event */
    assert_false(run_with(&s, &options).has_steady);
    finish_subject(&s);
}

/* --- order -------------------------------------------------------------------------------- */

/* On the smallest device, too, where memory is taken from wherever it lies. */
static void
nothing_is_used_before_its_last_use_is_over(void **state)
{
    (void)state;
    const char *const texts[] = {comb, streams};
    for (size_t i = 0; i < 4; i++) {
        struct subject s = subject_of(texts[i / 2]);
        struct dry_run_options options = options_for(places[i % 2], DRY_SIM_UNLIMITED);
        assert_false(run_with(&s, &options).has_order);
        options.find_capacity = true;
        options.capacity_bytes = run_with(&s, &options).capacity_bytes;
        options.find_capacity = false;
        struct dry_run run = run_with(&s, &options);
        options.check_order = true;
        struct dry_run checked = run_with(&s, &options);
        assert_true(checked.has_order && !checked.oom);
        assert_string_equal(checked.first_order_fault, "");
        assert_int_equal(checked.order_fault_count, 0);
        assert_int_equal(checked.driver_calls, run.driver_calls); /* it only looks */
        assert_memory_equal(&checked.stats, &run.stats, sizeof run.stats);
        finish_subject(&s);
    }
}

/* --- decisions ---------------------------------------------------------------------------- */

struct block {
    uint64_t segment, offset, size;
    bool is_live;
};

static void
check_line(const char *line, struct block blocks[IDS_MAX])
{
    uint64_t id, segment, offset, size;
    if (sscanf(line, "alloc %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &id, &segment,
               &offset, &size) == 4) {
        assert_true(id < IDS_MAX && !blocks[id].is_live);
        for (size_t i = 0; i < IDS_MAX; i++)
            assert_false(blocks[i].is_live && blocks[i].segment == segment &&
                         blocks[i].offset < offset + size &&
                         offset < blocks[i].offset + blocks[i].size);
        blocks[id] = (struct block){segment, offset, size, true};
    } else if (sscanf(line, "free %" SCNu64, &id) == 1) {
        assert_true(id < IDS_MAX && blocks[id].is_live);
        blocks[id].is_live = false;
    }
}

static void
check_decisions(const char *text, const char *place)
{
    struct subject s = subject_of(text);
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_run_options options = options_for(place, DRY_SIM_UNLIMITED);
    struct dry_decision_sink decisions = bytes_sink_decisions(&sink);
    options.decisions = &decisions;
    run_with(&s, &options);
    struct block *blocks = calloc(IDS_MAX, sizeof *blocks);
    assert_non_null(blocks);
    size_t begin = 0, lines = 0;
    for (size_t i = 0; i < to.count; i++) {
        if (to.bytes[i] != '\n')
            continue;
        char line[200];
        assert_true(i - begin < sizeof line);
        memcpy(line, to.bytes + begin, i - begin);
        line[i - begin] = '\0';
        check_line(line, blocks);
        begin = i + 1;
        lines++;
    }
    assert_true(lines >= 12);
    free(blocks);
    bytes_sink_finish(&to);
    finish_subject(&s);
}

static void
decisions_of_every_place_never_overlap(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        check_decisions(comb, places[i]);
        check_decisions(streams, places[i]);
    }
}

static void
decisions_of_a_packing_are_written_in_order(void **state)
{
    (void)state;
    struct subject s = subject_of("a 1 1000 0 1\na 2 0 0 2\nf 1\nf 2\na 3 600 0 3\n");
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_run_options options = options_for("offline", DRY_SIM_UNLIMITED);
    struct dry_decision_sink decisions = bytes_sink_decisions(&sink);
    options.decisions = &decisions;
    run_with(&s, &options);
    static const char expected[] = "segment_alloc 0 2097152 0\n"
                                   "alloc 1 0 0 1024\n"
                                   "free 1\n"
                                   "alloc 3 0 0 1024\n";
    assert_int_equal(to.count, strlen(expected));
    assert_memory_equal(to.bytes, expected, to.count);
    bytes_sink_finish(&to);
    sink = bytes_sink_init(&to, 0);
    struct dry_run run = {.op_count = 4711};
    assert_int_equal(dry_replay_run(s.replay, &options, &run, NULL), DRY_ERR_SYSTEM);
    assert_int_equal(run.op_count, 4711);
    bytes_sink_finish(&to);
    finish_subject(&s);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void
refuse(const struct subject *s, const char *place, const char *conf, const char *words)
{
    struct dry_run_options options = options_for(place, DRY_SIM_UNLIMITED);
    struct dry_run run = {.op_count = 4711};
    struct dry_error err = {.text = ""};
    options.conf = conf;
    assert_int_equal(dry_replay_run(s->replay, &options, &run, &err), DRY_ERR_ARGUMENT);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", expected \"%s\"", err.text, words);
    assert_int_equal(run.op_count, 4711);
}

static void
what_a_place_cannot_do_is_refused(void **state)
{
    (void)state;
    struct subject s = subject_of(comb);
    refuse(&s, "attic", NULL, "'attic' is no place");
    refuse(&s, "", NULL, "is no place");
    refuse(&s, "offline", "budget:1.1", "no settings");
    refuse(&s, "paged", "no_such_option:1", "no_such_option");
    refuse(&s, "paged", "per_process_memory_fraction:0.5", "state its capacity");
    struct dry_run_options options = options_for("paged", DRY_SIM_UNLIMITED);
    struct dry_trace *recorded = NULL;
    assert_int_equal(dry_replay_record(s.replay, &options, &recorded, NULL),
                     DRY_ERR_UNSUPPORTED);
    assert_null(recorded);
    finish_subject(&s);
}

static void
sizes_beyond_every_device_are_an_oom_or_refused(void **state)
{
    (void)state;
    struct subject s = subject_of("a 1 9223372036854775807 0 0\na 2 4096 0 0\n");
    assert_true(run_in(&s, "paged", DRY_SIM_UNLIMITED).oom);
    struct dry_run_options options = options_for("offline", DRY_SIM_UNLIMITED);
    struct dry_run run;
    struct dry_error err;
    assert_int_equal(dry_replay_run(s.replay, &options, &run, &err), DRY_ERR_LIMIT);
    finish_subject(&s);
}

/* --- memory runs out ---------------------------------------------------------------------- */

static void
check_failing(const char *text, const char *place, int checks_order)
{
    struct dry_trace *trace = bytes_read_trace(text, strlen(text));
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_replay_options replay_options;
        dry_replay_options_init(&replay_options);
        replay_options.memory = &memory;
        struct dry_replay *replay = NULL;
        struct dry_run run;
        enum dry_status status = dry_replay_create(trace, &replay_options, &replay, NULL);
        struct dry_run_options options = options_for(place, 64 * MIB);
        options.check_order = checks_order;
        if (status == DRY_OK)
            status = dry_replay_run(replay, &options, &run, NULL);
        dry_replay_destroy(replay);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            assert_true(n > 10);
            break;
        }
        /* An event that cannot be recorded is no failure where another way is open. */
        assert_true(status == DRY_ERR_MEMORY ||
                    (status == DRY_OK && strcmp(place, "paged") == 0));
    }
    dry_trace_destroy(trace);
}

static void
memory_that_runs_out_leaves_nothing_behind(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        check_failing(comb, places[i], 0);
        check_failing(streams, places[i], 0);
        check_failing(streams, places[i], 1);
    }
}

/* --- recordings --------------------------------------------------------------------------- */

/* No place needs less than what lives, and ours no more than PyTorch's. */
static void
recordings_run_in_every_place(void **state)
{
    (void)state;
    size_t count;
    unsigned char *bytes = bytes_of_trace("pytorch/decomfl.pickle", &count);
    if (!bytes)
        skip_because("decomfl is not in $DRY_TEST_TRACES");
    struct subject s = {.trace = bytes_read_trace(bytes, count)};
    s.replay = replay_of(s.trace);
    uint64_t live = live_peak_of(&s);
    struct dry_run torch = run_in(&s, "torch", DRY_SIM_UNLIMITED);
    struct dry_run paged = run_in(&s, "paged", DRY_SIM_UNLIMITED);
    struct dry_run offline = run_in(&s, "offline", DRY_SIM_UNLIMITED);
    assert_true(live > 0 && offline.floor_bytes >= live);
    assert_true(offline.packed_bytes >= offline.floor_bytes);
    assert_true(offline.packed_bytes <= live + live / 50);
    assert_true(paged.reserved_peak_bytes >= live);
    assert_true(paged.reserved_peak_bytes <= torch.reserved_peak_bytes);
    finish_subject(&s);
    free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorch_is_the_default_place),
        cmocka_unit_test(the_peak_of_what_lives_is_told),
        cmocka_unit_test(every_place_runs_on_the_device_it_asks_for),
        cmocka_unit_test(pages_that_move_need_no_more_than_what_lives),
        cmocka_unit_test(a_packing_is_held_against_its_floor),
        cmocka_unit_test(nothing_to_pack_takes_nothing),
        cmocka_unit_test(a_packing_tells_its_searches_and_can_be_cancelled),
        cmocka_unit_test(the_steady_part_is_reported_alone),
        cmocka_unit_test(nothing_is_used_before_its_last_use_is_over),
        cmocka_unit_test(decisions_of_every_place_never_overlap),
        cmocka_unit_test(decisions_of_a_packing_are_written_in_order),
        cmocka_unit_test(what_a_place_cannot_do_is_refused),
        cmocka_unit_test(sizes_beyond_every_device_are_an_oom_or_refused),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing_behind),
        cmocka_unit_test(recordings_run_in_every_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
