/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changed programs on a device of 100 MiB, whose segments are counted by hand: a block that goes
 * early, blocks of another stream that move, a block that no stream keeps, and failures that are
 * left out.
 */
#include "support/cmocka.h"

#include <drystone/drystone.h>

#include "replay/altered/altered.h"
#include "support/failing_memory.h"
#include "support/record_builder.h"

#define MIB (UINT64_C(1) << 20)
#define BASE UINT64_C(0x7f0000000000)
#define DEVICE (100 * MIB)
#define KEPT 9U      /* the event at which the second kept block is made */
#define TOO_MUCH 10U /* the event of a failure before */
#define FAILED 11U   /* the event of the failure */

static void
add_block(struct record_builder *s, unsigned i, uint64_t size)
{
    record_builder_event(s, DRY_ACTION_ALLOC, BASE + i * 100 * MIB, size);
}

/* At the end two segments of 40 MiB have a block of 24 MiB each. */
static void
finish(struct record_builder *s, uint64_t first_stream)
{
    for (unsigned i = 0; i < 2; i++) {
        record_builder_segment(
            s, &(struct record_builder_segment){.address = BASE + i * 100 * MIB,
                                                .size = 40 * MIB,
                                                .stream = i == 0 ? first_stream : 0,
                                                .is_large = true});
        record_builder_block(s, 24 * MIB, 24 * MIB, DRY_BLOCK_ACTIVE);
        record_builder_block(s, 16 * MIB, 0, DRY_BLOCK_INACTIVE);
    }
    record_builder_timeline(s);
    assert_true(dry_replay_get_check(s->replay)->exact);
}

/* Two segments of 40 MiB with a block of 24 MiB in each, the first of another stream; then requests
   of 500 and of 30 MiB fail. */
static void
begin(struct record_builder *s)
{
    record_builder_begin(s);
    for (unsigned i = 0; i < 2; i++) {
        s->stream = i == 0 ? 7 : 0;
        record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, BASE + i * 100 * MIB, 40 * MIB);
        add_block(s, i, 40 * MIB);
        record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE + i * 100 * MIB,
                             40 * MIB);
        record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE + i * 100 * MIB,
                             40 * MIB);
        add_block(s, i, 24 * MIB);
    }
    record_builder_event(s, DRY_ACTION_OOM, 20 * MIB, 500 * MIB);
    record_builder_event(s, DRY_ACTION_OOM, 20 * MIB, 30 * MIB);
    finish(s, 7);
}

static uint64_t
find_need(const struct record_builder *s, const struct dryi_alteration *alteration)
{
    uint64_t need = UINT64_MAX;
    assert_int_equal(dryi_replay_find_need(s->replay, alteration, &need, NULL), DRY_OK);
    return need;
}

/* The unchanged program needs two segments and a third for the request, on any device. */
static void
what_does_not_fit_tells_what_it_takes(void **state)
{
    (void)state;
    struct record_builder s;
    begin(&s);
    struct dryi_alteration a = {.oom_event = FAILED, .device_bytes = DEVICE};
    assert_int_equal(find_need(&s, &a), 110 * MIB);
    a.device_bytes = 110 * MIB;
    assert_int_equal(find_need(&s, &a), 110 * MIB);
    a.oom_event = TOO_MUCH;
    assert_int_equal(find_need(&s, &a), 580 * MIB);
    record_builder_end(&s);
}

/* The request then fits in the segment of the block that went. */
static void
a_block_that_goes_early_makes_room(void **state)
{
    (void)state;
    struct record_builder s;
    begin(&s);
    struct dryi_early_free gone = {.alloc_event = KEPT, .free_event = TOO_MUCH};
    struct dryi_alteration a = {
        .oom_event = FAILED, .device_bytes = DEVICE, .frees = &gone, .free_count = 1};
    assert_int_equal(find_need(&s, &a), 80 * MIB);
    gone.alloc_event = KEPT - 1; /* nothing is allocated there */
    assert_int_equal(find_need(&s, &a), 110 * MIB);
    record_builder_end(&s);
}

/* The other stream's segment goes back; its block and the request get segments of their own. */
static void
blocks_that_move_give_their_segments_back(void **state)
{
    (void)state;
    struct record_builder s;
    begin(&s);
    struct dryi_alteration a = {
        .oom_event = FAILED, .device_bytes = DEVICE, .gathers = true};
    assert_int_equal(find_need(&s, &a), (40 + 24 + 30) * MIB);
    record_builder_end(&s);
}

/* The first block waits for a stream, so the second takes a segment of its own. What they leave
   behind are two segments of 40 MiB with a block of 24 MiB in each. */
static void
begin_waiting(struct record_builder *s)
{
    record_builder_begin(s);
    for (unsigned i = 0; i < 2; i++) {
        record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, BASE + i * 100 * MIB, 40 * MIB);
        add_block(s, i, 40 * MIB);
        record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE + i * 100 * MIB,
                             40 * MIB);
    }
    for (unsigned i = 0; i < 2; i++)
        record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE + i * 100 * MIB,
                             40 * MIB);
    add_block(s, 0, 24 * MIB);
    add_block(s, 1, 24 * MIB);
    record_builder_event(s, DRY_ACTION_OOM, 20 * MIB, 30 * MIB);
    finish(s, 0);
}

/* The second block then gets the first one's segment. */
static void
a_block_that_no_stream_keeps_is_used_again(void **state)
{
    (void)state;
    struct record_builder s;
    begin_waiting(&s);
    struct dryi_alteration a = {.oom_event = 10, .device_bytes = DEVICE};
    assert_int_equal(find_need(&s, &a), 110 * MIB);
    a.ignores_streams = true;
    assert_int_equal(find_need(&s, &a), (40 + 24 + 30) * MIB);
    record_builder_end(&s);
}

static void
no_failure_is_no_answer(void **state)
{
    (void)state;
    struct record_builder s;
    begin(&s);
    struct dryi_alteration a = {.oom_event = KEPT, .device_bytes = DEVICE};
    assert_int_equal(find_need(&s, &a), 0);
    record_builder_end(&s);
}

static void
no_memory_is_an_error(void **state)
{
    (void)state;
    struct record_builder s;
    begin(&s);
    struct dryi_alteration a = {
        .oom_event = FAILED, .device_bytes = DEVICE, .gathers = true};
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dry_replay_options options;
        struct dry_replay *replay;
        uint64_t need;
        dry_replay_options_init(&options);
        options.memory = &memory;
        assert_int_equal(dry_replay_create(s.trace, &options, &replay, NULL), DRY_OK);
        fm.left = n;
        enum dry_status status = dryi_replay_find_need(replay, &a, &need, NULL);
        dry_replay_destroy(replay);
        failing_memory_finish(&fm);
        assert_int_equal(status, fm.failed ? DRY_ERR_MEMORY : DRY_OK);
        if (!fm.failed)
            break;
    }
    record_builder_end(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_tells_what_it_takes),
        cmocka_unit_test(a_block_that_goes_early_makes_room),
        cmocka_unit_test(blocks_that_move_give_their_segments_back),
        cmocka_unit_test(a_block_that_no_stream_keeps_is_used_again),
        cmocka_unit_test(no_failure_is_no_answer),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
