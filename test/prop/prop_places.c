/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random programs, with streams and private pools, in every place: on the smallest device
 * that does, nothing is handed out twice and nothing is reused, unmapped or moved before its
 * last use is over; no place needs less than what lives; one that ran out runs out again.
 *
 * DRY_TEST_SEED=N runs one program; DRY_TEST_ROUNDS=N runs so many.
 */

#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "prop/random_program.h"
#include "support/bytes.h"

#define MIB (UINT64_C(1) << 20)

static uint64_t
rounds_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static struct dry_run
run_with(struct dry_replay *replay, const struct dry_run_options *options)
{
    struct dry_run run;
    struct dry_error err;
    if (dry_replay_run(replay, options, &run, &err) != DRY_OK)
        fail_msg("%s: %s", options->place, err.text);
    return run;
}

/* Says what is wrong; true if nothing is. */
static bool
is_in_order(const char *what, uint64_t seed, const struct dry_run *run)
{
    if (run->order_fault_count == 0)
        return true;
    printf("# seed %llu, %s, %s: %llu faults: %s\n", (unsigned long long)seed, run->place,
           what, (unsigned long long)run->order_fault_count, run->first_order_fault);
    return false;
}

static bool
holds_on_devices(struct dry_replay *replay, const char *place, uint64_t seed)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.place = place;
    options.conf = "";
    /*
     * Releases before took every scope of a private pool for a capture and forgot what was
     * recorded on a block inside: there PyTorch's own reuse is early, and the device says so.
     */
    options.compat = "2.15";
    options.check_order = true;
    options.find_capacity = true;
    struct dry_run run = run_with(replay, &options);
    bool ok = is_in_order("no limit", seed, &run) && !run.oom;
    uint64_t live = dry_replay_get_recorded(replay)->live_peak_bytes;
    ok = ok && run.reserved_peak_bytes >= live && run.capacity_bytes >= live;
    options.find_capacity = false;
    options.capacity_bytes = run.capacity_bytes;
    run = run_with(replay, &options);
    ok = is_in_order("the smallest device", seed, &run) && !run.oom && ok;
    options.capacity_bytes -= 2 * MIB;
    run = run_with(replay, &options);
    ok = is_in_order("a device too small", seed, &run) && run.oom && ok;
    if (!ok)
        printf("# seed %llu, %s\n", (unsigned long long)seed, place);
    return ok;
}

/* PyTorch 2.11 hands a block out again that another stream may still use. */
static void
early_reuse_of_an_old_release_is_found(void **state)
{
    (void)state;
    static const char text[] = "a 1 1248 0 1\np 1\nr 1 1\nf 1\na 2 956775 0 2\nq 1\n"
                               "a 3 1796 0 3\n";
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, text, strlen(text));
    struct dry_trace *trace;
    struct dry_replay *replay;
    assert_int_equal(dry_trace_read(&source, NULL, &trace, NULL), DRY_OK);
    assert_int_equal(dry_replay_create(trace, NULL, &replay, NULL), DRY_OK);
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.check_order = true;
    options.compat = "2.11";
    struct dry_run run = run_with(replay, &options);
    assert_int_equal(run.order_fault_count, 1);
    assert_non_null(strstr(run.first_order_fault, "early reuse"));
    options.compat = "2.15";
    assert_int_equal(run_with(replay, &options).order_fault_count, 0);
    options.place = "paged";
    assert_int_equal(run_with(replay, &options).order_fault_count, 0);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static bool
packing_holds(struct dry_replay *replay)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.place = "offline";
    struct dry_run run = run_with(replay, &options);
    uint64_t live = dry_replay_get_recorded(replay)->live_peak_bytes;
    return run.floor_bytes >= live && run.packed_bytes >= run.floor_bytes &&
           run.reserved_peak_bytes >= run.packed_bytes &&
           run.reserved_peak_bytes < run.packed_bytes + 2 * MIB;
}

static bool
holds(uint64_t seed)
{
    struct dry_trace *program = random_program_make(seed, seed % 4 == 0);
    struct dry_replay *replay;
    assert_int_equal(dry_replay_create(program, NULL, &replay, NULL), DRY_OK);
    bool ok = holds_on_devices(replay, "torch", seed);
    ok = holds_on_devices(replay, "paged", seed) && ok;
    ok = packing_holds(replay) && ok;
    dry_replay_destroy(replay);
    dry_trace_destroy(program);
    return ok;
}

static void
places_hold_on_every_device(void **state)
{
    (void)state;
    if (getenv("DRY_TEST_SEED")) {
        assert_true(holds(rounds_of("DRY_TEST_SEED", 0)));
        return;
    }
    uint64_t failed = 0, rounds = rounds_of("DRY_TEST_ROUNDS", 60);
    for (uint64_t seed = 0; seed < rounds; seed++)
        failed += !holds(seed);
    assert_int_equal(failed, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_hold_on_every_device),
        cmocka_unit_test(early_reuse_of_an_old_release_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
