/* SPDX-License-Identifier: Apache-2.0 */

/*
 * timeline: allocs paired with frees, what is older than the window, what a record lost,
 * segments and pages that come, go and are cut, times, axes, devices, real recordings, and
 * memory that runs out.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "prop/timeline_model.h"
#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/record_builder.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)
#define BASE UINT64_C(0x7f0000000000)
#define NEVER DRY_MOMENT_NEVER
#define INACTIVE DRY_BLOCK_INACTIVE
#define ACTIVE DRY_BLOCK_ACTIVE
#define PENDING DRY_BLOCK_PENDING_FREE
#define DEVICE_MAX (UINT64_C(1) << 47)

static const struct record_builder_segment small_segment = {.address = BASE,
                                                            .size = 2 * MIB};

static void
expect_life(const struct dry_allocation *a, uint32_t begin, uint32_t freed, uint32_t end)
{
    assert_int_equal(a->begin, begin);
    assert_int_equal(a->freed, freed);
    assert_int_equal(a->end, end);
}

static void
expect_piece(const struct dry_timeline_segment *s, uint64_t offset, uint64_t size,
             uint32_t begin, uint32_t end)
{
    assert_int_equal(s->address, BASE + offset);
    assert_int_equal(s->size, size);
    assert_int_equal(s->begin, begin);
    assert_int_equal(s->end, end);
}

static void
expect_heights(const struct record_builder *s, enum dry_curve curve,
               const uint64_t *heights)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    for (uint32_t m = 0; m <= v->dump_moment; m++) {
        if (dry_timeline_height(s->timeline, curve, m) != heights[m])
            fail_msg("%s at moment %u: %llu, expected %llu", dry_curve_name(curve), m,
                     (unsigned long long)dry_timeline_height(s->timeline, curve, m),
                     (unsigned long long)heights[m]);
    }
}

/* Whatever else a test looks at: everything adds up. */
static void
end_checked(struct record_builder *s)
{
    struct timeline_model model;
    timeline_model_init(&model, s->timeline);
    const char *problem = timeline_model_check(&model);
    for (uint32_t m = 0; m <= model.view->dump_moment && !problem; m++)
        problem = timeline_model_check_state(&model, m, NULL);
    if (problem)
        fail_msg("%s", problem);
    timeline_model_finish(&model);
    record_builder_end(s);
}

static void
expect_no_damage(const struct dry_timeline_view *v)
{
    assert_int_equal(v->lost_frees, 0);
    assert_int_equal(v->inferred_frees, 0);
    assert_int_equal(v->unmatched_frees, 0);
    assert_int_equal(v->guessed_sizes, 0);
    assert_int_equal(v->segment_conflicts, 0);
}

/* --- allocations -------------------------------------------------------------------------- */

static void
an_alloc_is_paired_with_its_free(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 1000);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE, 1000);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE, 1000);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 2 * MIB, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->event_count, 4);
    assert_int_equal(v->dump_moment, 5);
    assert_int_equal(v->allocation_count, 1);
    assert_int_equal(v->carried_over_count, 0);
    const struct dry_allocation *a = &v->allocations[0];
    expect_life(a, 2, 3, 4);
    assert_int_equal(a->address, BASE);
    assert_int_equal(a->requested, 1000);
    assert_int_equal(a->size, 1024);
    assert_int_equal(a->flags, 0); /* the replay knows its size */
    static const uint32_t of_events[] = {DRY_NONE, 0, 0, 0};
    assert_memory_equal(v->event_allocation, of_events, sizeof of_events);
    static const uint64_t allocated[] = {0, 0, 1024, 0, 0, 0};
    static const uint64_t active[] = {0, 0, 1024, 1024, 0, 0};
    static const uint64_t requested[] = {0, 0, 1000, 1000, 0, 0};
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    expect_heights(&s, DRY_CURVE_ACTIVE, active);
    expect_heights(&s, DRY_CURVE_REQUESTED, requested);
    static const uint64_t reserved[] = {0, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB};
    expect_heights(&s, DRY_CURVE_RESERVED, reserved);
    assert_int_equal(v->peaks[DRY_CURVE_RESERVED].moment, 1);
    assert_int_equal(v->peaks[DRY_CURVE_ACTIVE].moment, 2);
    assert_int_equal(v->peaks[DRY_CURVE_ACTIVE].bytes, 1024);
    expect_no_damage(v);
    end_checked(&s);
}

static void
a_free_of_something_older_makes_a_carried_over_allocation(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    uint32_t stack = record_builder_stack(&s, "gives_back");
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE, 600);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE, 600);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 2 * MIB, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->allocation_count, 1);
    assert_int_equal(v->carried_over_count, 1);
    const struct dry_allocation *a = &v->allocations[0];
    expect_life(a, 0, 1, 2);
    assert_int_equal(a->size, 1024);
    assert_int_equal(a->requested, 600);
    assert_int_equal(a->stack, stack);
    assert_int_equal(a->flags & ~DRY_ALLOCATION_SIZE_GUESSED,
                     DRY_ALLOCATION_CARRIED_OVER | DRY_ALLOCATION_STACK_OF_FREE);
    assert_int_equal(v->event_allocation[0], 0);
    assert_int_equal(v->event_allocation[1], 0);
    assert_int_equal(v->unmatched_frees, 1); /* one block, however many events */
    end_checked(&s);
}

static void
blocks_at_the_end_that_nobody_allocated_are_carried_over(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 4096, 512);
    uint32_t stack = record_builder_stack(&s, "made_it");
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 2048, 1900, ACTIVE);
    record_builder_block(&s, 2048, 2048, PENDING);
    record_builder_block(&s, 512, 512, ACTIVE);
    record_builder_block(&s, 2 * MIB - 4608, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->allocation_count, 3);
    assert_int_equal(v->carried_over_count, 2);
    const struct dry_allocation *a = &v->allocations[1], *b = &v->allocations[2];
    expect_life(a, 0, NEVER, NEVER);
    assert_int_equal(a->size, 2048);
    assert_int_equal(a->requested, 1900);
    assert_int_equal(a->stack, stack);
    assert_int_equal(a->flags, DRY_ALLOCATION_CARRIED_OVER);
    expect_life(b, 0, 0, NEVER); /* its free was asked for before the window, too */
    expect_no_damage(v);
    end_checked(&s);
}

/* What a snapshot of 2023 does not say. */
static void
a_block_that_says_no_request_asked_for_its_size(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 2048, 0, ACTIVE);
    record_builder_block(&s, 2 * MIB - 2048, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->event_count, 0);
    assert_int_equal(v->allocations[0].requested, 2048);
    assert_int_equal(dry_timeline_height(s.timeline, DRY_CURVE_REQUESTED, 0), 2048);
    assert_int_equal(dry_timeline_time(s.timeline, 0), 0);
    assert_int_equal(dry_timeline_find_time(s.timeline, INT64_MIN), v->dump_moment);
    end_checked(&s);
}

static void
a_carried_over_allocation_may_be_pending_all_the_time(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    expect_life(&v->allocations[0], 0, 0, 1);
    static const uint64_t allocated[] = {0, 0, 0}, active[] = {512, 0, 0};
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    expect_heights(&s, DRY_CURVE_ACTIVE, active);
    end_checked(&s);
}

/* Asked for in the window, not done: the stack of the block is better than that of the free. */
static void
a_pending_free_keeps_its_bytes(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_stack(&s, "gives_back");
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE, 512);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE + 2 * MIB, 512);
    uint32_t stack = record_builder_stack(&s, "made_it");
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 512, 512, PENDING);
    record_builder_block(&s, 2 * MIB - 512, 0, INACTIVE);
    record_builder_segment(
        &s, &(struct record_builder_segment){.address = BASE + 2 * MIB, .size = 2 * MIB});
    record_builder_block(&s, 512, 500, PENDING);
    record_builder_block(&s, 2 * MIB - 512, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    expect_life(&v->allocations[0], 2, 3, NEVER);
    expect_life(&v->allocations[1], 0, 4, NEVER);
    assert_int_equal(v->allocations[1].stack, stack);
    assert_int_equal(v->allocations[1].flags, DRY_ALLOCATION_CARRIED_OVER);
    assert_int_equal(v->allocations[1].requested, 500);
    static const uint64_t allocated[] = {512, 512, 1024, 512, 0, 0};
    static const uint64_t active[] = {512, 512, 1024, 1024, 1024, 1024};
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    expect_heights(&s, DRY_CURVE_ACTIVE, active);
    end_checked(&s);
}

/* The file says pending, and no event asked: the program did so after the last one. */
static void
a_free_asked_for_after_the_last_event_is_of_the_dump(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 512, 512, PENDING);
    record_builder_block(&s, 2 * MIB - 512, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    expect_life(&v->allocations[0], 2, v->dump_moment, NEVER);
    static const uint64_t allocated[] = {0, 0, 512, 0}, active[] = {0, 0, 512, 512};
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    expect_heights(&s, DRY_CURVE_ACTIVE, active);
    end_checked(&s);
}

static void
an_address_handed_out_twice_was_freed_between(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 1024);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE, 1024);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 2048);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE + MIB,
                         512); /* carried over */
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + MIB, 4096);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->lost_frees, 3);
    assert_int_equal(v->allocation_count, 5);
    const struct dry_allocation *a = v->allocations;
    expect_life(&a[0], 1, 2, 2);
    expect_life(&a[1], 2, 3, 4);
    expect_life(&a[2], 4, NEVER, NEVER);
    expect_life(&a[3], 6, NEVER, NEVER);
    expect_life(&a[4], 0, 5, 6);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal((a[i].flags & DRY_ALLOCATION_FREE_LOST) != 0, i != 2 && i != 3);
    static const uint32_t of_events[] = {0, 1, 1, 2, 4, 3};
    assert_memory_equal(v->event_allocation, of_events, sizeof of_events);
    static const uint64_t active[] = {512,        1024,       1536,        1536,
                                      2048 + 512, 2048 + 512, 2048 + 4096, 2048 + 4096};
    static const uint64_t allocated[] = {512,        1024, 1536,        512,
                                         2048 + 512, 2048, 2048 + 4096, 2048 + 4096};
    expect_heights(&s, DRY_CURVE_ACTIVE, active);
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    end_checked(&s);
}

static void
what_the_segments_no_longer_hold_was_freed(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 512, 1024);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE + 512, 1024);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 2 * MIB, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->inferred_frees, 2);
    expect_life(&v->allocations[0], 2, v->dump_moment, v->dump_moment);
    expect_life(&v->allocations[1], 3, 4, v->dump_moment);
    static const uint64_t active[] = {0, 0, 512, 1536, 1536, 0};
    static const uint64_t allocated[] = {0, 0, 512, 1536, 512, 0};
    expect_heights(&s, DRY_CURVE_ACTIVE, active);
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    end_checked(&s);
}

static void
without_segments_nothing_is_inferred(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->inferred_frees, 0);
    expect_life(&v->allocations[0], 1, NEVER, NEVER);
    end_checked(&s);
}

static void
a_free_may_complete_without_being_asked_for(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE, 512);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 1024); /* another one */
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    expect_life(&v->allocations[0], 1, 2, 2);
    expect_life(&v->allocations[1], 3, NEVER, NEVER);
    assert_int_equal(v->lost_frees, 0);
    assert_int_equal(v->unmatched_frees, 0);
    static const uint64_t allocated[] = {0, 512, 0, 1024, 1024};
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    end_checked(&s);
}

static void
a_second_request_to_free_changes_nothing(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE, 512);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE, 512);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    expect_life(&v->allocations[0], 1, 2, 4);
    static const uint64_t allocated[] = {0, 512, 0, 0, 0, 0};
    expect_heights(&s, DRY_CURVE_ALLOCATED, allocated);
    end_checked(&s);
}

static void
a_request_for_nothing_has_a_block(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 0);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->allocations[0].requested, 0);
    assert_int_equal(v->allocations[0].size, 512);
    assert_int_equal(v->allocations[0].flags, DRY_ALLOCATION_SIZE_GUESSED);
    assert_int_equal(v->guessed_sizes, 1);
    end_checked(&s);
}

static void
a_block_without_bytes_is_none(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, MIB, 0, INACTIVE);
    record_builder_block(&s, 0, 0, ACTIVE);
    record_builder_block(&s, MIB, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->allocation_count, 0);
    end_checked(&s);
}

static void
the_first_oom_is_found(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_event(&s, DRY_ACTION_OOM, 100, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 512, 512);
    record_builder_event(&s, DRY_ACTION_OOM, 100, 4 * MIB);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->oom_count, 2);
    assert_int_equal(v->oom_event, 1);
    assert_int_equal(v->event_allocation[1], DRY_NONE);
    end_checked(&s);
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    v = record_builder_timeline(&s);
    assert_int_equal(v->oom_count, 0);
    assert_int_equal(v->oom_event, DRY_NONE);
    end_checked(&s);
}

/* 3 MiB of a segment of 4: the 1 MiB behind it is not worth splitting off. */
static void
a_block_may_be_larger_than_its_request(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 20 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 10 * MIB - 512);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 10 * MIB - 512,
                         10 * MIB - 512 * KIB);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE + 10 * MIB - 512,
                         10 * MIB - 512 * KIB);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE + 10 * MIB - 512,
                         10 * MIB - 512 * KIB);
    record_builder_segment(&s, &(struct record_builder_segment){
                                   .address = BASE, .size = 20 * MIB, .is_large = true});
    record_builder_block(&s, 10 * MIB - 512, 10 * MIB - 512, ACTIVE);
    record_builder_block(&s, 10 * MIB + 512, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->allocations[1].requested, 10 * MIB - 512 * KIB);
    assert_int_equal(v->allocations[1].size, 10 * MIB + 512);
    expect_no_damage(v);
    end_checked(&s);
}

/* --- segments ----------------------------------------------------------------------------- */

static const struct record_builder_segment pages = {
    .address = BASE, .size = 60 * MIB, .is_large = true, .is_expandable = true};

static void
pages_join_and_are_cut(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_MAP, BASE, 40 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_MAP, BASE + 40 * MIB, 60 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_UNMAP, BASE + 20 * MIB, 60 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_MAP, BASE + 20 * MIB, 20 * MIB);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->segment_conflicts, 0);
    assert_int_equal(v->segment_count, 5);
    expect_piece(&v->segments[0], 0, 40 * MIB, 1, 3);
    expect_piece(&v->segments[1], 40 * MIB, 60 * MIB, 2, 3);
    expect_piece(&v->segments[2], 0, 20 * MIB, 3, NEVER);
    expect_piece(&v->segments[3], 80 * MIB, 20 * MIB, 3, NEVER);
    expect_piece(&v->segments[4], 20 * MIB, 20 * MIB, 4, NEVER);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(v->segments[i].is_expandable && v->segments[i].is_large);
    static const uint64_t reserved[] = {0,        40 * MIB, 100 * MIB,
                                        40 * MIB, 60 * MIB, 60 * MIB};
    expect_heights(&s, DRY_CURVE_RESERVED, reserved);
    struct dry_state *at;
    assert_int_equal(dry_state_create(s.timeline, 2, &at, NULL), DRY_OK);
    assert_int_equal(at->segment_count, 1); /* as a snapshot lists it */
    dry_state_destroy(at);
    assert_int_equal(dry_state_create(s.timeline, 4, &at, NULL), DRY_OK);
    assert_int_equal(at->segment_count, 2);
    assert_int_equal(at->segments[0].size, 40 * MIB);
    dry_state_destroy(at);
    end_checked(&s);
}

static void
what_is_given_back_was_there_before(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_FREE, BASE + 200 * MIB, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_MAP, BASE + 20 * MIB, 20 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_UNMAP, BASE, 60 * MIB);
    record_builder_segment(
        &s, &(struct record_builder_segment){
                .address = BASE + 300 * MIB, .size = 20 * MIB, .is_large = true});
    record_builder_block(&s, 20 * MIB, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->segment_conflicts, 0);
    assert_int_equal(v->segment_count, 5);
    expect_piece(&v->segments[0], 20 * MIB, 20 * MIB, 2, 3);
    expect_piece(&v->segments[1], 200 * MIB, 2 * MIB, 0, 1);
    expect_piece(&v->segments[2], 0, 20 * MIB, 0, 3);
    expect_piece(&v->segments[3], 40 * MIB, 20 * MIB, 0, 3);
    expect_piece(&v->segments[4], 300 * MIB, 20 * MIB, 0, NEVER);
    assert_false(v->segments[1].is_large || v->segments[1].is_expandable);
    assert_true(v->segments[2].is_expandable && v->segments[4].is_large);
    static const uint64_t reserved[] = {62 * MIB, 60 * MIB, 80 * MIB, 20 * MIB, 20 * MIB};
    expect_heights(&s, DRY_CURVE_RESERVED, reserved);
    end_checked(&s);
}

/* Pages of the window between pages of before: the file's segment is one, and knows the lane. */
static void
the_final_segments_say_what_a_piece_is(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    s.stream = 7;
    record_builder_event(&s, DRY_ACTION_SEGMENT_MAP, BASE + 20 * MIB, 2 * MIB);
    struct record_builder_segment segment = pages;
    segment.stream = 7;
    segment.pool = 3;
    record_builder_segment(&s, &segment);
    record_builder_block(&s, 60 * MIB, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->segment_count, 3);
    const struct dry_lane *lanes = dry_trace_get_view(s.trace)->lanes;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lanes[v->segments[i].lane].stream, 7);
        assert_int_equal(lanes[v->segments[i].lane].pool_b, 3);
        assert_int_equal(v->segments[i].lane, v->segments[0].lane);
        assert_true(v->segments[i].is_large); /* whatever its size suggests */
    }
    expect_piece(&v->segments[0], 20 * MIB, 2 * MIB, 1, NEVER);
    expect_piece(&v->segments[1], 0, 20 * MIB, 0, NEVER);
    expect_piece(&v->segments[2], 22 * MIB, 38 * MIB, 0, NEVER);
    end_checked(&s);
}

/* Older events do not name the pool, newer segments do: the default pool all the same. */
static void
a_lane_without_a_pool_is_that_of_the_default_pool(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    s.hides_pools = 1;
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 20 * MIB);
    s.stream = 1;
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + 40 * MIB, 20 * MIB);
    s.hides_pools = 0;
    s.stream = 0;
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + 80 * MIB, 20 * MIB);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(dry_trace_get_view(s.trace)->lane_count, 3);
    assert_int_equal(v->segments[2].lane, v->segments[0].lane);
    assert_int_not_equal(v->segments[1].lane, v->segments[0].lane);
    struct dry_state *at;
    assert_int_equal(dry_state_create(s.timeline, 3, &at, NULL), DRY_OK);
    assert_int_equal(at->pool_count, 2);
    assert_int_equal(at->pools[0].reserved, 40 * MIB);
    dry_state_destroy(at);
    end_checked(&s);
}

static void
ranges_that_are_mapped_twice_are_conflicts(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 20 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + 10 * MIB, 20 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 10 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, UINT64_MAX - MIB,
                         2 * MIB); /* no such end */
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, DEVICE_MAX + 512);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + 90 * MIB, 0); /* nothing */
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->segment_conflicts, 4);
    static const uint64_t reserved[] = {0,        20 * MIB, 30 * MIB, 30 * MIB,
                                        30 * MIB, 30 * MIB, 30 * MIB, 30 * MIB};
    expect_heights(&s, DRY_CURVE_RESERVED, reserved);
    end_checked(&s);
}

/* A segment that the file no longer lists whole: the rest was given back unseen. */
static void
what_the_file_no_longer_lists_ends_with_the_dump(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_MAP, BASE, 100 * MIB);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + 200 * MIB, 20 * MIB);
    struct record_builder_segment part = pages;
    part.address = BASE + 20 * MIB;
    part.size = 40 * MIB;
    record_builder_segment(&s, &part);
    record_builder_block(&s, 40 * MIB, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->segment_conflicts, 2);
    static const uint64_t reserved[] = {0, 100 * MIB, 120 * MIB, 40 * MIB};
    expect_heights(&s, DRY_CURVE_RESERVED, reserved);
    struct dry_state *at;
    assert_int_equal(dry_state_create(s.timeline, v->dump_moment, &at, NULL), DRY_OK);
    assert_int_equal(at->segment_count, 1);
    assert_int_equal(at->segments[0].address, BASE + 20 * MIB);
    assert_int_equal(at->segments[0].size, 40 * MIB);
    dry_state_destroy(at);
    end_checked(&s);
}

static void
final_segments_that_overlap_count_once(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (uint64_t i = 0; i < 3; i++) {
        record_builder_segment(
            &s, &(struct record_builder_segment){
                    .address = BASE + i * 10 * MIB, .size = 20 * MIB, .is_large = true});
        record_builder_block(&s, 20 * MIB, 0, INACTIVE);
    }
    record_builder_segment(&s, &(struct record_builder_segment){
                                   .address = UINT64_MAX - MIB, .size = 20 * MIB});
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->segment_conflicts, 3);
    assert_int_equal(dry_timeline_height(s.timeline, DRY_CURVE_RESERVED, 0), 40 * MIB);
    end_checked(&s);
}

/* Were every one of them walked through for each other, this would take hours. */
static void
many_segments_that_overlap_take_no_longer_than_others(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct record_builder s;
    record_builder_begin(&s);
    for (uint64_t i = 0; i < COUNT; i++)
        record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + i * 4 * MIB, 2 * MIB);
    for (uint64_t i = 0; i < COUNT; i++)
        record_builder_segment(&s, &(struct record_builder_segment){
                                       .address = BASE, .size = COUNT * 4 * MIB});
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(v->segment_conflicts, COUNT - 1);
    assert_int_equal(v->segment_count, 2 * COUNT);
    assert_int_equal(dry_timeline_height(s.timeline, DRY_CURVE_RESERVED, 0),
                     COUNT * 2 * MIB);
    assert_int_equal(dry_timeline_height(s.timeline, DRY_CURVE_RESERVED, v->dump_moment),
                     COUNT * 4 * MIB);
    record_builder_end(&s);
}

/* --- sizes that no device has ------------------------------------------------------------- */

static void
expect_limit(struct record_builder *s)
{
    struct dry_timeline *timeline = NULL;
    struct dry_error err = {.text = ""};
    record_builder_trace(s);
    assert_int_equal(dry_replay_create(s->trace, NULL, &s->replay, NULL), DRY_OK);
    assert_int_equal(dry_timeline_create(s->replay, NULL, &timeline, &err),
                     DRY_ERR_LIMIT);
    assert_int_equal(err.status, DRY_ERR_LIMIT);
    assert_non_null(strstr(err.text, "larger than any device"));
    assert_null(timeline);
    record_builder_end(s);
}

static void
an_allocation_larger_than_any_device_is_refused(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, DEVICE_MAX + 1);
    expect_limit(&s);
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE, UINT64_MAX);
    expect_limit(&s);
    record_builder_begin(&s);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, DEVICE_MAX + 512, 512, ACTIVE);
    expect_limit(&s);
    record_builder_begin(&s);
    record_builder_segment(&s, &small_segment);
    record_builder_block(&s, 512, DEVICE_MAX + 512, ACTIVE);
    expect_limit(&s);
}

/* Each could be; their sum would not fit any height. */
static void
allocations_that_overflow_together_are_refused(void **state)
{
    (void)state;
    enum { SEGMENTS = 2 * ((1 << 17) / RECORD_BUILDER_BLOCKS_MAX) };
    for (int is_request = 0; is_request < 2; is_request++) {
        struct record_builder s;
        record_builder_begin(&s);
        for (uint64_t i = 0; i < SEGMENTS; i++) {
            record_builder_segment(
                &s, &(struct record_builder_segment){.address = BASE + i * 512 * 64,
                                                     .size = 512 * 64});
            for (uint64_t k = 0; k < RECORD_BUILDER_BLOCKS_MAX; k++)
                record_builder_block_at(&s, BASE + (i * 64 + k) * 512,
                                        is_request ? 512 : DEVICE_MAX,
                                        is_request ? DEVICE_MAX : 512, ACTIVE);
        }
        expect_limit(&s);
    }
}

static void
a_trace_without_addresses_is_refused(void **state)
{
    (void)state;
    static const char text[] = "a 1 512 0 1\nf 1\n";
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, text, sizeof text - 1);
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_timeline *timeline = NULL;
    struct dry_error err = {.text = ""};
    assert_int_equal(dry_trace_read(&source, NULL, &trace, NULL), DRY_OK);
    assert_int_equal(dry_replay_create(trace, NULL, &replay, NULL), DRY_OK);
    assert_int_equal(dry_timeline_create(replay, NULL, &timeline, &err),
                     DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no addresses"));
    assert_null(timeline);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

/* --- queries ------------------------------------------------------------------------------ */

struct walk {
    uint32_t numbers[16];
    size_t count, stop_after;
};

static enum dry_status
note_number(void *self, uint32_t number)
{
    struct walk *w = self;
    assert_true(w->count < 16);
    w->numbers[w->count++] = number;
    return w->count == w->stop_after ? DRY_ERR_CANCELLED : DRY_OK;
}

static void
a_walk_visits_who_is_alive_and_can_be_ended(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (uint64_t i = 0; i < 5; i++)
        record_builder_event(&s, DRY_ACTION_ALLOC, BASE + i * 512, 512);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE + 512, 512);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE + 9 * 512,
                         512); /* number 5 */
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    record_builder_timeline(&s);
    struct walk w = {.count = 0};
    assert_int_equal(dry_timeline_visit_alive(s.timeline, 6, note_number, &w), DRY_OK);
    static const uint32_t alive[] = {0, 2, 3, 4, 5};
    assert_int_equal(w.count, 5);
    assert_memory_equal(w.numbers, alive, sizeof alive);
    w = (struct walk){.stop_after = 2};
    assert_int_equal(dry_timeline_visit_alive(s.timeline, 6, note_number, &w),
                     DRY_ERR_CANCELLED);
    assert_int_equal(w.count, 2);
    w = (struct walk){.stop_after = 0};
    assert_int_equal(dry_timeline_visit_segments(s.timeline, 7, note_number, &w), DRY_OK);
    assert_int_equal(w.count, 0);
    assert_int_equal(dry_timeline_visit_segments(s.timeline, 8, note_number, &w), DRY_OK);
    assert_int_equal(w.count, 1);
    end_checked(&s);
}

static void
heights_beyond_the_dump_are_nothing(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(dry_timeline_height(s.timeline, DRY_CURVE_ACTIVE, v->dump_moment),
                     512);
    assert_int_equal(
        dry_timeline_height(s.timeline, DRY_CURVE_ACTIVE, v->dump_moment + 1), 0);
    assert_int_equal(dry_timeline_height(s.timeline, DRY_CURVE_ACTIVE, UINT32_MAX), 0);
    assert_int_equal(dry_timeline_height(s.timeline, DRY_CURVE_COUNT, 1), 0);
    assert_string_equal(dry_curve_name(DRY_CURVE_RESERVED), "reserved");
    assert_string_equal(dry_curve_name(DRY_CURVE_REQUESTED), "requested");
    assert_string_equal(dry_curve_name(DRY_CURVE_COUNT), "unknown");
    end_checked(&s);
}

static void
times_are_found(void **state)
{
    (void)state;
    static const int64_t times[] = {100, 100, 300, 200, 300, 400, 390};
    struct record_builder s;
    record_builder_begin(&s);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        record_builder_at(&s, times[i], DRY_ACTION_ALLOC, BASE + i * 512, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    static const struct {
        int64_t time;
        uint32_t moment;
    } expected[] = {{INT64_MIN, 0}, {100, 0}, {101, 2},
                    {200, 2},       {300, 2}, {301, 5},
                    {391, 5},       {400, 5}, {401, 8 /* dump */},
                    {INT64_MAX, 8}};
    assert_int_equal(v->dump_moment, 8);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(dry_timeline_find_time(s.timeline, expected[i].time),
                         expected[i].moment);
    assert_int_equal(dry_timeline_time(s.timeline, 0), 100);
    assert_int_equal(dry_timeline_time(s.timeline, 1), 100);
    assert_int_equal(dry_timeline_time(s.timeline, 3), 300);
    assert_int_equal(dry_timeline_time(s.timeline, 4), 200);
    assert_int_equal(dry_timeline_time(s.timeline, 7), 390);
    assert_int_equal(dry_timeline_time(s.timeline, v->dump_moment), 390);
    assert_int_equal(dry_timeline_time(s.timeline, UINT32_MAX), 390);
    end_checked(&s);
}

/* Buckets hold 256 moments: the answer may be the last of one, or the first of the next. */
static void
times_are_found_beyond_a_bucket(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (int64_t i = 0; i < 1000; i++)
        record_builder_at(&s, i * 10, DRY_ACTION_ALLOC, BASE + (uint64_t)i * 512, 512);
    record_builder_timeline(&s);
    static const int64_t events[] = {0, 1, 255, 256, 257, 511, 512, 513, 767, 768, 999};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        assert_int_equal(dry_timeline_find_time(s.timeline, events[i] * 10), events[i]);
        assert_int_equal(dry_timeline_find_time(s.timeline, events[i] * 10 - 9),
                         events[i]);
    }
    assert_int_equal(dry_timeline_find_time(s.timeline, 9991), 1001);
    record_builder_end(&s);
}

static void
an_axis_of_all_times_there_are_is_divided(void **state)
{
    (void)state;
    static const int64_t times[] = {INT64_MIN, INT64_MIN, -1, 0, INT64_MAX};
    struct record_builder s;
    record_builder_begin(&s);
    for (size_t i = 0; i < 5; i++)
        record_builder_at(&s, times[i], DRY_ACTION_ALLOC, BASE + i * 512, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    struct dry_axis axis = {
        .from = 0, .to = v->dump_moment + 1, .column_count = 4, .is_time = true};
    struct dry_curve_column columns[4];
    assert_int_equal(
        dry_timeline_curve(s.timeline, DRY_CURVE_ACTIVE, &axis, columns, NULL), DRY_OK);
    static const uint32_t ends[] = {3, 3, 5, 7};
    for (int i = 0; i < 4; i++)
        assert_int_equal(columns[i].end, ends[i]);
    assert_int_equal(columns[1].min, 2 * 512); /* empty: what the one before ended with */
    assert_int_equal(columns[1].max_moment, 2);
    assert_int_equal(columns[3].max, 5 * 512);
    struct timeline_model model;
    timeline_model_init(&model, s.timeline);
    for (axis.column_count = 1; axis.column_count < 300; axis.column_count += 13)
        assert_null(timeline_model_check_curve(&model, DRY_CURVE_ACTIVE, &axis));
    timeline_model_finish(&model);
    end_checked(&s);
}

static void
refuse_axis(const struct record_builder *s, const struct dry_axis *axis,
            const char *words)
{
    struct dry_curve_column column = {.min = 4711};
    struct dry_drawing_bounds bounds = {.run_max = SIZE_MAX};
    struct dry_drawing *drawing = NULL;
    struct dry_error err = {.text = ""};
    assert_int_equal(
        dry_timeline_curve(s->timeline, DRY_CURVE_ACTIVE, axis, &column, &err),
        DRY_ERR_ARGUMENT);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", expected \"%s\"", err.text, words);
    assert_int_equal(column.min, 4711);
    assert_int_equal(dry_drawing_create(s->timeline, axis, DRY_STACKING_BIRTH, &bounds,
                                        &drawing, &err),
                     DRY_ERR_ARGUMENT);
    assert_null(drawing);
}

static void
an_axis_beyond_the_dump_is_refused(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    uint32_t all = v->dump_moment + 1;
    refuse_axis(&s, &(struct dry_axis){.to = all}, "0 columns");
    refuse_axis(&s, &(struct dry_axis){.to = all, .column_count = 65537},
                "65537 columns");
    refuse_axis(&s, &(struct dry_axis){.from = 1, .to = 1, .column_count = 1}, "1 to 1");
    refuse_axis(&s, &(struct dry_axis){.from = 2, .to = 1, .column_count = 1}, "2 to 1");
    refuse_axis(&s, &(struct dry_axis){.to = all + 1, .column_count = 1}, "0 to 4");
    refuse_axis(&s, &(struct dry_axis){.to = UINT32_MAX, .column_count = 1}, "moments 0");
    struct dry_axis good = {.to = all, .column_count = 1};
    struct dry_curve_column column;
    struct dry_error err;
    assert_int_equal(
        dry_timeline_curve(s.timeline, DRY_CURVE_COUNT, &good, &column, &err),
        DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "no curve 4"));
    assert_int_equal(
        dry_timeline_curve(s.timeline, DRY_CURVE_ACTIVE, &good, &column, &err), DRY_OK);
    assert_int_equal(column.max, 512);
    struct dry_state *none = NULL;
    assert_int_equal(dry_state_create(s.timeline, all, &none, &err), DRY_ERR_ARGUMENT);
    assert_null(none);
    end_checked(&s);
}

/* More columns than moments: each moment is in one, most are empty. */
static void
more_columns_than_moments_are_fine(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (uint64_t i = 0; i < 600; i++)
        record_builder_event(&s, i % 3 < 2 ? DRY_ACTION_ALLOC : DRY_ACTION_FREE_COMPLETED,
                             BASE + i / 3 * 1024 + i % 3 % 2 * 512, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    struct timeline_model model;
    timeline_model_init(&model, s.timeline);
    static const uint32_t counts[] = {1, 2, 3, 7, 255, 256, 257, 601, 602, 603, 5000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint32_t from = 0; from <= v->dump_moment; from += 121) {
            struct dry_axis axis = {.from = from,
                                    .to = v->dump_moment + 1,
                                    .column_count = counts[i],
                                    .is_time = (uint32_t)i % 2};
            assert_null(timeline_model_check_curve(&model, DRY_CURVE_ACTIVE, &axis));
        }
    }
    timeline_model_finish(&model);
    end_checked(&s);
}

static void
devices_have_timelines_of_their_own(void **state)
{
    (void)state;
    for (int32_t device = 0; device < 2; device++) {
        struct record_builder s;
        record_builder_begin(&s);
        record_builder_device(&s, 0);
        record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 512);
        record_builder_segment(&s, &small_segment);
        record_builder_block(&s, 512, 512, ACTIVE);
        record_builder_block(&s, 2 * MIB - 512, 0, INACTIVE);
        record_builder_device(&s, 1);
        record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 1024);
        record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 1024, 1024);
        record_builder_segment(&s, &small_segment); /* the same addresses */
        record_builder_block(&s, 1024, 1024, ACTIVE);
        record_builder_block(&s, 1024, 1024, ACTIVE);
        record_builder_block(&s, 2 * MIB - 2048, 0, INACTIVE);
        s.device = device;
        const struct dry_timeline_view *v = record_builder_timeline(&s);
        assert_int_equal(v->device, device);
        assert_int_equal(v->event_count, device + 1);
        assert_int_equal(v->first_event, device);
        assert_int_equal(v->allocation_count, device + 1);
        assert_int_equal(v->segment_count, 1);
        assert_int_equal(v->inferred_frees, 0);
        assert_int_equal(
            dry_timeline_height(s.timeline, DRY_CURVE_ACTIVE, v->dump_moment),
            device ? 2048 : 512);
        end_checked(&s);
    }
}

/* --- memory ------------------------------------------------------------------------------- */

static void
build_everything(struct record_builder *s)
{
    record_builder_begin(s);
    for (uint64_t i = 0; i < 40; i++) {
        record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, BASE + i * 4 * MIB, 2 * MIB);
        record_builder_event(s, DRY_ACTION_ALLOC, BASE + i * 4 * MIB, 512);
        if (i % 3 == 0)
            record_builder_event(s, DRY_ACTION_ALLOC, BASE + i * 4 * MIB, 512); /* lost */
        record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE + i * 4 * MIB + MIB, 512);
        record_builder_event(s, DRY_ACTION_SEGMENT_UNMAP, BASE + (1000 + i) * 4 * MIB,
                             2 * MIB);
    }
    for (uint64_t i = 20; i < 60; i++) {
        record_builder_segment(s, &(struct record_builder_segment){
                                      .address = BASE + i * 4 * MIB, .size = 2 * MIB});
        record_builder_block(s, 512, 512, ACTIVE);
        record_builder_block(s, 2 * MIB - 512, 0, INACTIVE);
    }
}

static void
make_without_memory(void (*build)(struct record_builder *s))
{
    struct record_builder s;
    build(&s);
    record_builder_trace(&s);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dry_replay_options replay_options;
        struct dry_timeline_options options;
        struct dry_timeline *timeline = NULL;
        struct dry_error err;
        dry_replay_options_init(&replay_options);
        replay_options.memory = &memory; /* what it does for the timeline fails, too */
        assert_int_equal(dry_replay_create(s.trace, &replay_options, &s.replay, NULL),
                         DRY_OK);
        dry_timeline_options_init(&options);
        options.memory = &memory;
        fm.left = n;
        enum dry_status status = dry_timeline_create(s.replay, &options, &timeline, &err);
        bool is_done = !fm.failed;
        assert_int_equal(status, is_done ? DRY_OK : DRY_ERR_MEMORY);
        assert_true(is_done ? timeline != NULL : err.status == DRY_ERR_MEMORY);
        dry_timeline_destroy(timeline);
        dry_replay_destroy(s.replay);
        s.replay = NULL;
        failing_memory_finish(&fm);
        if (is_done)
            break;
    }
    record_builder_end(&s);
}

/* One whose check is possible, so that sizes are asked of a replay. */
static void
build_soundly(struct record_builder *s)
{
    record_builder_begin(s);
    record_builder_event(s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    record_builder_event(s, DRY_ACTION_ALLOC, BASE, 512);
    record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE, 512);
    record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE, 512);
    record_builder_segment(s, &small_segment);
    record_builder_block(s, 2 * MIB, 0, INACTIVE);
}

static void
without_memory_there_is_no_timeline(void **state)
{
    (void)state;
    make_without_memory(build_everything);
    make_without_memory(build_soundly);
}

static void
options_of_another_size_are_refused(void **state)
{
    (void)state;
    struct record_builder s;
    build_soundly(&s);
    record_builder_timeline(&s);
    struct dry_timeline_options options = {.struct_size = 3};
    struct dry_timeline *timeline = NULL;
    assert_int_equal(dry_timeline_create(s.replay, &options, &timeline, NULL),
                     DRY_ERR_ARGUMENT);
    assert_null(timeline);
    dry_timeline_destroy(NULL);
    dry_state_destroy(NULL);
    dry_drawing_destroy(NULL);
    record_builder_end(&s);
}

/* --- real recordings ---------------------------------------------------------------------- */

/* A file of the recordings; a test that needs an absent one is skipped. */
static struct dry_trace *
read_recording(const char *name)
{
    size_t count;
    unsigned char *bytes = bytes_of_trace(name, &count);
    if (!bytes)
        skip_because("%s is not in $DRY_TEST_TRACES", name);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    struct dry_trace *trace;
    assert_int_equal(dry_trace_read(&source, NULL, &trace, NULL), DRY_OK);
    free(bytes);
    return trace;
}

static int
compare_addresses(const void *a, const void *b)
{
    const struct dry_trace_segment *const *x = a, *const *y = b;
    return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

static void
expect_block(const struct dry_state_block *b, const struct dry_trace_block *recorded)
{
    assert_int_equal(b->address, recorded->address);
    assert_int_equal(b->size, recorded->size);
    assert_int_equal(b->state, recorded->state);
    if (recorded->state != INACTIVE && recorded->requested_size)
        assert_int_equal(b->requested, recorded->requested_size);
}

/* The state at the dump is the file's segments, block for block. */
static void
expect_segments_of_file(const struct dry_state *s, const struct dry_trace_view *v)
{
    const struct dry_trace_segment **segments =
        calloc(v->segment_count, sizeof(*segments));
    assert_non_null(segments);
    for (size_t i = 0; i < v->segment_count; i++)
        segments[i] = &v->segments[i];
    qsort(segments, v->segment_count, sizeof(*segments), compare_addresses);
    assert_int_equal(s->segment_count, v->segment_count);
    for (size_t i = 0; i < s->segment_count; i++) {
        const struct dry_state_segment *found = &s->segments[i];
        const struct dry_trace_segment *recorded = segments[i];
        assert_int_equal(found->address, recorded->address);
        assert_int_equal(found->size, recorded->total_size);
        assert_int_equal(found->is_large, recorded->is_large);
        assert_int_equal(found->is_expandable, recorded->is_expandable);
        assert_int_equal(v->lanes[found->lane].stream, v->lanes[recorded->lane].stream);
        assert_int_equal(found->allocated, recorded->allocated_size);
        assert_int_equal(found->allocated + found->pending, recorded->active_size);
        assert_int_equal(found->block_count, recorded->block_count);
        for (size_t k = 0; k < found->block_count; k++)
            expect_block(&s->blocks[found->first_block + k],
                         &v->blocks[recorded->first_block + k]);
    }
    free(segments);
}

static void
check_recording(const char *name, bool is_consistent)
{
    struct dry_trace *trace = read_recording(name);
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct dry_state *state = NULL;
    struct timeline_model model;
    assert_int_equal(dry_replay_create(trace, NULL, &replay, NULL), DRY_OK);
    assert_int_equal(dry_timeline_create(replay, NULL, &timeline, NULL), DRY_OK);
    timeline_model_init(&model, timeline);
    const struct dry_timeline_view *v = model.view;
    const char *problem = timeline_model_check(&model);
    for (uint32_t m = 0; m < v->dump_moment && !problem; m += v->dump_moment / 40 + 1)
        problem = timeline_model_check_state(&model, m, NULL);
    if (!problem)
        problem = timeline_model_check_state(&model, v->dump_moment, &state);
    if (problem)
        fail_msg("%s: %s", name, problem);
    assert_non_null(state);
    assert_int_equal(v->guessed_sizes == 0, is_consistent);
    assert_int_equal(v->lost_frees, 0);
    assert_int_equal(v->segment_conflicts, 0);
    assert_int_equal(state->overlap_count + state->unplaced_count, 0);
    if (is_consistent)
        expect_segments_of_file(state, dry_trace_get_view(trace));
    dry_state_destroy(state);
    timeline_model_finish(&model);
    dry_timeline_destroy(timeline);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
real_recordings_end_as_they_say(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pytorch/compile-context.pickle",
        "pytorch/decomfl.pickle",
        "pytorch/late-start.pickle",
        "pytorch/old-format-full-card.pickle",
        "pytorch/python-stacks-only.pickle",
        "pytorch/segments-only-fragmented.pickle",
        "pytorch/tiny-cs336.pickle",
        "pytorch/transformer-medium-128-infer.pickle",
        "pytorch/transformer-medium-512-train.pickle",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_recording(names[i], true);
    check_recording("pytorch/synthetic-inconsistent.pickle", false);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_alloc_is_paired_with_its_free),
        cmocka_unit_test(a_free_of_something_older_makes_a_carried_over_allocation),
        cmocka_unit_test(blocks_at_the_end_that_nobody_allocated_are_carried_over),
        cmocka_unit_test(a_block_that_says_no_request_asked_for_its_size),
        cmocka_unit_test(a_carried_over_allocation_may_be_pending_all_the_time),
        cmocka_unit_test(a_pending_free_keeps_its_bytes),
        cmocka_unit_test(a_free_asked_for_after_the_last_event_is_of_the_dump),
        cmocka_unit_test(an_address_handed_out_twice_was_freed_between),
        cmocka_unit_test(what_the_segments_no_longer_hold_was_freed),
        cmocka_unit_test(without_segments_nothing_is_inferred),
        cmocka_unit_test(a_free_may_complete_without_being_asked_for),
        cmocka_unit_test(a_second_request_to_free_changes_nothing),
        cmocka_unit_test(a_request_for_nothing_has_a_block),
        cmocka_unit_test(a_block_without_bytes_is_none),
        cmocka_unit_test(the_first_oom_is_found),
        cmocka_unit_test(a_block_may_be_larger_than_its_request),
        cmocka_unit_test(pages_join_and_are_cut),
        cmocka_unit_test(what_is_given_back_was_there_before),
        cmocka_unit_test(the_final_segments_say_what_a_piece_is),
        cmocka_unit_test(a_lane_without_a_pool_is_that_of_the_default_pool),
        cmocka_unit_test(ranges_that_are_mapped_twice_are_conflicts),
        cmocka_unit_test(what_the_file_no_longer_lists_ends_with_the_dump),
        cmocka_unit_test(final_segments_that_overlap_count_once),
        cmocka_unit_test(many_segments_that_overlap_take_no_longer_than_others),
        cmocka_unit_test(an_allocation_larger_than_any_device_is_refused),
        cmocka_unit_test(allocations_that_overflow_together_are_refused),
        cmocka_unit_test(a_trace_without_addresses_is_refused),
        cmocka_unit_test(a_walk_visits_who_is_alive_and_can_be_ended),
        cmocka_unit_test(heights_beyond_the_dump_are_nothing),
        cmocka_unit_test(times_are_found),
        cmocka_unit_test(times_are_found_beyond_a_bucket),
        cmocka_unit_test(an_axis_of_all_times_there_are_is_divided),
        cmocka_unit_test(an_axis_beyond_the_dump_is_refused),
        cmocka_unit_test(more_columns_than_moments_are_fine),
        cmocka_unit_test(devices_have_timelines_of_their_own),
        cmocka_unit_test(without_memory_there_is_no_timeline),
        cmocka_unit_test(options_of_another_size_are_refused),
        cmocka_unit_test(real_recordings_end_as_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
