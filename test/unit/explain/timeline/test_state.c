/* SPDX-License-Identifier: Apache-2.0 */

/*
 * state: the sums of a moment, by hand; what releases by itself and what does not; who pins;
 * blocks that contradict each other; the figures of real recordings; no memory.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <drystone/drystone.h>

#include "prop/timeline_model.h"
#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/record_builder.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)
#define BASE UINT64_C(0x7f0000000000)
#define INACTIVE DRY_BLOCK_INACTIVE
#define ACTIVE DRY_BLOCK_ACTIVE
#define PENDING DRY_BLOCK_PENDING_FREE

/* At the dump; checked against the model, too. */
static struct dry_state *
state_at(struct record_builder *s, uint32_t moment)
{
    struct timeline_model model;
    struct dry_state *state = NULL;
    timeline_model_init(&model, s->timeline);
    const char *problem = timeline_model_check(&model);
    if (!problem)
        problem = timeline_model_check_state(&model, moment, &state);
    timeline_model_finish(&model);
    if (problem)
        fail_msg("%s", problem);
    return state;
}

static struct dry_state *
state_at_dump(struct record_builder *s)
{
    const struct dry_timeline_view *v = record_builder_timeline(s);
    return state_at(s, v->dump_moment);
}

/* --- sums --------------------------------------------------------------------------------- */

static void
nothing_has_an_empty_state(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_OOM, 0, 512);
    struct dry_state *at = state_at_dump(&s);
    assert_int_equal(at->reserved, 0);
    assert_int_equal(at->segment_count + at->block_count + at->pool_count, 0);
    assert_int_equal(at->pinner_count, 0);
    dry_state_destroy(at);
    record_builder_end(&s);
}

/*
 *   small, in part used     2 MiB = 1024 used + 512 pending + 512 free + 1024 used + rest free
 *   large, empty           20 MiB, releasable
 *   large, other stream    30 MiB = 12 MiB used + 18 MiB stranded
 */
static void
sums_are_those_of_the_blocks(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_segment(
        &s, &(struct record_builder_segment){.address = BASE, .size = 2 * MIB});
    record_builder_block(&s, 1024, 1000, ACTIVE);
    record_builder_block(&s, 512, 100, PENDING);
    record_builder_block(&s, 512, 0, INACTIVE);
    record_builder_block(&s, 1024, 600, ACTIVE);
    record_builder_block(&s, 2 * MIB - 3 * KIB, 0, INACTIVE);
    record_builder_segment(
        &s, &(struct record_builder_segment){
                .address = BASE + 40 * MIB, .size = 20 * MIB, .is_large = true});
    record_builder_block(&s, 20 * MIB, 0, INACTIVE);
    record_builder_segment(
        &s,
        &(struct record_builder_segment){
            .address = BASE + 80 * MIB, .size = 30 * MIB, .is_large = true, .stream = 5});
    record_builder_block(&s, 12 * MIB, 12 * MIB, ACTIVE);
    record_builder_block(&s, 18 * MIB, 0, INACTIVE);
    struct dry_state *at = state_at_dump(&s);
    uint64_t hole = 2 * MIB - 3 * KIB;
    assert_int_equal(at->reserved, 52 * MIB);
    assert_int_equal(at->allocated, 12 * MIB + 2048);
    assert_int_equal(at->pending, 512);
    assert_int_equal(at->active, 12 * MIB + 2560);
    assert_int_equal(at->requested, 12 * MIB + 1700);
    assert_int_equal(at->rounding, 860);
    assert_int_equal(at->releasable, 20 * MIB);
    assert_int_equal(at->stranded, hole + 512 + 18 * MIB);
    assert_int_equal(at->private_free, 0);
    assert_int_equal(at->pool_count, 3);
    const struct dry_state_pool *p = at->pools;
    assert_int_equal(p[0].reserved, 30 * MIB);
    assert_int_equal(p[1].reserved, 20 * MIB);
    assert_int_equal(p[2].reserved, 2 * MIB);
    assert_int_equal(p[0].hole_count, 1);
    assert_int_equal(p[0].largest_free, 18 * MIB);
    assert_int_equal(p[0].stranded, 18 * MIB);
    assert_int_equal(p[1].hole_count, 0);
    assert_int_equal(p[1].releasable, 20 * MIB);
    assert_int_equal(p[2].hole_count, 2);
    assert_int_equal(p[2].largest_free, hole);
    assert_int_equal(p[2].requested, 1700);
    assert_true(p[0].is_large && p[1].is_large && !p[2].is_large);
    assert_int_equal(at->segments[0].pool, 2);
    assert_int_equal(at->segments[0].largest_free, hole);
    assert_int_equal(at->segments[0].block_count, 5);
    assert_int_equal(at->segments[2].first_block, 6);
    dry_state_destroy(at);
    record_builder_end(&s);
}

static void
a_state_is_that_of_its_moment(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 1000);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 1024, 512);
    record_builder_event(&s, DRY_ACTION_FREE_REQUESTED, BASE, 1000);
    record_builder_event(&s, DRY_ACTION_FREE_COMPLETED, BASE, 1000);
    record_builder_segment(
        &s, &(struct record_builder_segment){.address = BASE, .size = 2 * MIB});
    record_builder_block(&s, 1024, 0, INACTIVE);
    record_builder_block(&s, 512, 512, ACTIVE);
    record_builder_block(&s, 2 * MIB - 1536, 0, INACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    static const struct {
        uint64_t allocated, pending, releasable, stranded;
        size_t blocks;
    } expected[] = {{0, 0, 0, 0, 0},
                    {0, 0, 2 * MIB, 0, 1},
                    {1024, 0, 0, 2 * MIB - 1024, 2},
                    {1536, 0, 0, 2 * MIB - 1536, 3},
                    {512, 1024, 0, 2 * MIB - 1536, 3},
                    {512, 0, 0, 2 * MIB - 512, 3},
                    {512, 0, 0, 2 * MIB - 512, 3}};
    for (uint32_t m = 0; m <= v->dump_moment; m++) {
        struct dry_state *at = state_at(&s, m);
        assert_int_equal(at->moment, m);
        assert_int_equal(at->allocated, expected[m].allocated);
        assert_int_equal(at->pending, expected[m].pending);
        assert_int_equal(at->releasable, expected[m].releasable);
        assert_int_equal(at->stranded, expected[m].stranded);
        assert_int_equal(at->block_count, expected[m].blocks);
        dry_state_destroy(at);
    }
    record_builder_end(&s);
}

/* Whole free pages of 20 MiB go back; parts of pages do not. */
static void
pages_of_expandable_segments_go_back_one_by_one(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_segment(&s, &(struct record_builder_segment){.address = BASE,
                                                                .size = 100 * MIB,
                                                                .is_large = true,
                                                                .is_expandable = true});
    record_builder_block(&s, 4 * MIB, 4 * MIB, ACTIVE);
    record_builder_block(&s, 2 * MIB, 2 * MIB,
                         ACTIVE);                    /* in the same page as a free part */
    record_builder_block(&s, 38 * MIB, 0, INACTIVE); /* 6..44: page 1 is whole */
    record_builder_block(&s, 16 * MIB, 16 * MIB,
                         ACTIVE);                    /* 44..60: to the end of page 2 */
    record_builder_block(&s, 40 * MIB, 0, INACTIVE); /* 60..100: pages 3 and 4 */
    record_builder_segment(
        &s, &(struct record_builder_segment){
                .address = BASE + 200 * MIB, .size = 6 * MIB, .is_expandable = true});
    record_builder_block(&s, 2 * MIB, 0,
                         INACTIVE); /* a page of the small pool is 2 MiB */
    record_builder_block(&s, 512, 512, ACTIVE);
    record_builder_block(&s, 4 * MIB - 512, 0, INACTIVE);
    struct dry_state *at = state_at_dump(&s);
    assert_int_equal(at->page_bytes, 20 * MIB);
    assert_int_equal(at->segments[0].releasable, 60 * MIB);
    assert_int_equal(at->segments[1].releasable, 4 * MIB);
    assert_int_equal(at->releasable, 64 * MIB);
    assert_int_equal(at->stranded, 18 * MIB + 2 * MIB - 512);
    assert_int_equal(at->pinner_count, 2);
    const struct dry_pinner *small = &at->pinners[0], *large = &at->pinners[1];
    assert_int_equal(small->segment, 1);
    assert_int_equal(small->pinned, 2 * MIB - 512);
    assert_int_equal(small->used, 512);
    assert_int_equal(large->pinned, 18 * MIB);
    assert_int_equal(large->used_count, 3); /* also the one with no free neighbour */
    assert_int_equal(large->used, 22 * MIB);
    dry_state_destroy(at);
    record_builder_end(&s);
}

static void
blocks_that_share_no_page_pin_nothing(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_segment(&s, &(struct record_builder_segment){.address = BASE,
                                                                .size = 80 * MIB,
                                                                .is_large = true,
                                                                .is_expandable = true});
    record_builder_block(&s, 20 * MIB, 20 * MIB, ACTIVE); /* a whole page: pins nothing */
    record_builder_block(&s, 20 * MIB, 0, INACTIVE);
    record_builder_block(&s, 20 * MIB, 20 * MIB, ACTIVE);
    record_builder_block(&s, 12 * MIB, 12 * MIB, ACTIVE);
    record_builder_block(&s, 8 * MIB, 0, INACTIVE);
    struct dry_state *at = state_at_dump(&s);
    assert_int_equal(at->pinner_count, 1);
    assert_int_equal(at->pinners[0].pinned, 8 * MIB);
    assert_int_equal(at->pinners[0].used, 12 * MIB);
    assert_int_equal(at->pinners[0].used_count, 1);
    dry_state_destroy(at);
    record_builder_end(&s);
}

/* A run that ends inside a page: what is known of the page is all there is. */
static void
the_end_of_a_run_is_the_end_of_its_page(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_segment(&s, &(struct record_builder_segment){.address = BASE,
                                                                .size = 30 * MIB,
                                                                .is_large = true,
                                                                .is_expandable = true});
    record_builder_block(&s, 20 * MIB, 20 * MIB, ACTIVE);
    record_builder_block(&s, 10 * MIB, 0, INACTIVE);
    struct dry_state *at = state_at_dump(&s);
    assert_int_equal(at->releasable, 10 * MIB);
    assert_int_equal(at->pinner_count, 0);
    dry_state_destroy(at);
    record_builder_end(&s);
}

/* They touch, but neither can use what is free in the other. */
static void
runs_of_other_streams_pools_and_sizes_stay_apart(void **state)
{
    (void)state;
    struct record_builder s;
    static const struct {
        uint64_t stream, pool;
        bool is_large, is_expandable;
    } runs[] = {{0, 0, 1, 1}, {1, 0, 1, 1}, {1, 2, 1, 1},
                {1, 2, 0, 1}, {1, 2, 0, 0}, {1, 2, 0, 0}};
    record_builder_begin(&s);
    for (uint64_t i = 0; i < 6; i++) {
        record_builder_segment(
            &s, &(struct record_builder_segment){.address = BASE + i * 20 * MIB,
                                                 .size = 20 * MIB,
                                                 .stream = runs[i].stream,
                                                 .pool = runs[i].pool,
                                                 .is_large = runs[i].is_large,
                                                 .is_expandable = runs[i].is_expandable});
        record_builder_block(&s, 20 * MIB, 0, INACTIVE);
    }
    struct dry_state *at = state_at_dump(&s);
    assert_int_equal(at->segment_count, 6);
    assert_int_equal(at->block_count, 6);
    assert_int_equal(at->pool_count, 4);
    dry_state_destroy(at);
    record_builder_end(&s);
}

static void
private_pools_give_nothing_back(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_segment(
        &s, &(struct record_builder_segment){
                .address = BASE, .size = 20 * MIB, .is_large = true, .pool = 1});
    record_builder_block(&s, 20 * MIB, 0, INACTIVE);
    record_builder_segment(
        &s,
        &(struct record_builder_segment){
            .address = BASE + 40 * MIB, .size = 20 * MIB, .is_large = true, .pool = 1});
    record_builder_block(&s, 8 * MIB, 8 * MIB, ACTIVE);
    record_builder_block(&s, 12 * MIB, 0, INACTIVE);
    record_builder_segment(&s,
                           &(struct record_builder_segment){.address = BASE + 80 * MIB,
                                                            .size = 20 * MIB,
                                                            .is_large = true,
                                                            .is_expandable = true,
                                                            .pool = 2});
    record_builder_block(&s, 20 * MIB, 0, INACTIVE);
    struct dry_state *at = state_at_dump(&s);
    assert_int_equal(at->releasable, 0);
    assert_int_equal(at->stranded, 52 * MIB);
    assert_int_equal(at->private_free, 52 * MIB);
    assert_int_equal(at->pool_count, 2);
    assert_true(at->pools[0].is_private && at->pools[1].is_private);
    assert_int_equal(at->pools[0].hole_count, 1);
    assert_int_equal(at->pinner_count, 1);
    assert_int_equal(at->pinners[0].segment, 1);
    assert_int_equal(at->pinners[0].pinned, 12 * MIB);
    dry_state_destroy(at);
    record_builder_end(&s);
}

/* Equal yields: the more pinned first; then the lower address. */
static void
pinners_come_by_what_a_byte_frees(void **state)
{
    (void)state;
    struct record_builder s;
    static const struct {
        uint64_t size, used;
    } segments[] = {{20, 10}, {40, 4}, {20, 2}, {40, 20}, {20, 2}};
    static const size_t order[] = {1, 2, 4, 3, 0};
    record_builder_begin(&s);
    for (size_t i = 0; i < 5; i++) {
        record_builder_segment(
            &s, &(struct record_builder_segment){.address = BASE + i * 100 * MIB,
                                                 .size = segments[i].size * MIB,
                                                 .is_large = true});
        record_builder_block(&s, segments[i].used * MIB, 0, i % 2 ? PENDING : ACTIVE);
        record_builder_block(&s, (segments[i].size - segments[i].used) * MIB, 0,
                             INACTIVE);
    }
    struct dry_state *at = state_at_dump(&s);
    assert_int_equal(at->pinner_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(at->pinners[i].segment, order[i]);
        assert_int_equal(at->pinners[i].used, segments[order[i]].used * MIB);
        assert_int_equal(at->pinners[i].used_count, 1);
    }
    dry_state_destroy(at);
    record_builder_end(&s);
}

/* --- contradictions ----------------------------------------------------------------------- */

/* A, B inside A, C over the end of A and of the segment, D behind it, E before it. */
static void
blocks_that_overlap_are_bent_to_fit(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 20 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 4 * MIB, 4 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 5 * MIB, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 7 * MIB, 14 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 30 * MIB, 3 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE - 2 * MIB, 4 * MIB);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    struct dry_state *at = state_at(&s, v->event_count);
    assert_int_equal(at->reserved, 20 * MIB);
    assert_int_equal(at->overlap_count, 2);
    assert_int_equal(at->unplaced_count, 3); /* B, too: nothing of it is left */
    assert_int_equal(at->unplaced_bytes, 9 * MIB);
    assert_int_equal(at->active, 16 * MIB);
    assert_int_equal(at->stranded, 4 * MIB);
    assert_int_equal(at->block_count, 3);
    assert_int_equal(at->blocks[1].size, 4 * MIB);
    assert_int_equal(at->blocks[2].address, BASE + 8 * MIB);
    assert_int_equal(at->blocks[2].size, 12 * MIB);
    assert_int_equal(at->blocks[2].requested, 12 * MIB);
    dry_state_destroy(at);
    record_builder_end(&s);
}

/* At the very end of all addresses, sums would begin anew. */
static void
a_block_beyond_all_addresses_is_cut(void **state)
{
    (void)state;
    struct record_builder s;
    uint64_t last = UINT64_MAX - 2 * MIB + 1;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, last - 512, 2 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, last + MIB, 2 * MIB);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    struct dry_state *at = state_at(&s, v->event_count);
    assert_int_equal(at->overlap_count, 1);
    assert_int_equal(at->block_count, 2);
    assert_int_equal(at->blocks[1].address, last + MIB);
    assert_int_equal(at->blocks[1].size, MIB - 512);
    dry_state_destroy(at);
    record_builder_end(&s);
}

static void
what_lies_in_no_segment_is_counted_apart(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 4 * MIB);
    record_builder_event(&s, DRY_ACTION_ALLOC, BASE + 4 * MIB, 100);
    record_builder_timeline(&s);
    struct dry_state *at = state_at(&s, 2);
    assert_int_equal(at->reserved, 0);
    assert_int_equal(at->active, 0);
    assert_int_equal(at->unplaced_count, 2);
    assert_int_equal(at->unplaced_bytes, 4 * MIB + 512);
    dry_state_destroy(at);
    record_builder_end(&s);
}

/* --- memory ------------------------------------------------------------------------------- */

static void
without_memory_there_is_no_state(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (uint64_t i = 0; i < 40; i++) {
        record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE + i * 40 * MIB, 20 * MIB);
        s.stream = i;
        record_builder_event(&s, DRY_ACTION_ALLOC, BASE + i * 40 * MIB, 2 * MIB);
    }
    record_builder_timeline(&s);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dry_timeline_options options;
        struct dry_timeline *timeline;
        struct dry_state *at = NULL;
        struct dry_error err = {.status = DRY_OK};
        dry_timeline_options_init(&options);
        options.memory = &memory;
        assert_int_equal(dry_timeline_create(s.replay, &options, &timeline, NULL),
                         DRY_OK);
        fm.left = n;
        enum dry_status status = dry_state_create(timeline, 80, &at, &err);
        bool is_done = !fm.failed;
        assert_int_equal(status, is_done ? DRY_OK : DRY_ERR_MEMORY);
        assert_int_equal(err.status, status);
        assert_true(is_done == (at != NULL));
        dry_state_destroy(at);
        dry_timeline_destroy(timeline);
        failing_memory_finish(&fm);
        if (is_done)
            break;
    }
    record_builder_end(&s);
}

/* --- real recordings ---------------------------------------------------------------------- */

struct recording {
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct dry_state *state; /* at the dump */
};

static void
read_recording(struct recording *r, const char *name)
{
    size_t count;
    unsigned char *bytes = bytes_of_trace(name, &count);
    if (!bytes)
        skip_because("%s is not in $DRY_TEST_TRACES", name);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    assert_int_equal(dry_trace_read(&source, NULL, &r->trace, NULL), DRY_OK);
    free(bytes);
    assert_int_equal(dry_replay_create(r->trace, NULL, &r->replay, NULL), DRY_OK);
    assert_int_equal(dry_timeline_create(r->replay, NULL, &r->timeline, NULL), DRY_OK);
    uint32_t dump = dry_timeline_get_view(r->timeline)->dump_moment;
    assert_int_equal(dry_state_create(r->timeline, dump, &r->state, NULL), DRY_OK);
}

static void
drop_recording(struct recording *r)
{
    dry_state_destroy(r->state);
    dry_timeline_destroy(r->timeline);
    dry_replay_destroy(r->replay);
    dry_trace_destroy(r->trace);
}

/* In hundredths, as people write them. */
static long
hundredths(uint64_t bytes, uint64_t unit)
{
    return lround(100.0 * (double)bytes / (double)unit);
}

static void
expect_gib(uint64_t bytes, long expected)
{
    assert_int_equal(hundredths(bytes, UINT64_C(1) << 30), expected);
}

static void
a_fragmented_cache_has_its_known_figures(void **state)
{
    (void)state;
    struct recording r;
    read_recording(&r, "pytorch/segments-only-fragmented.pickle");
    expect_gib(r.state->reserved, 1512);
    expect_gib(r.state->active, 796);
    expect_gib(r.state->releasable, 588);
    expect_gib(r.state->stranded, 128);
    assert_int_equal(r.state->pools[0].largest_free, 516 * MIB);
    assert_int_equal(hundredths(r.state->rounding, MIB), 2533);
    drop_recording(&r);
}

static void
a_cache_of_whole_segments_has_its_known_figures(void **state)
{
    (void)state;
    struct recording r;
    read_recording(&r, "pytorch/python-stacks-only.pickle");
    expect_gib(r.state->reserved, 1321);
    expect_gib(r.state->active, 128);
    expect_gib(r.state->releasable, 1096);
    expect_gib(r.state->stranded, 96);
    drop_recording(&r);
}

/*
 * "20 hold 0.98 GiB; 4 of them hold 0.50 GiB for 15.6 MiB in 7 blocks": those that pin 10 MiB
 * or more (from there on a request is large to PyTorch), and of them those of which at most
 * a tenth is used. The four are the first four of the list, too.
 */
static void
pinners_of_a_fragmented_cache_are_the_known_ones(void **state)
{
    (void)state;
    struct recording r;
    read_recording(&r, "pytorch/segments-only-fragmented.pickle");
    size_t count = 0, loose_count = 0, blocks = 0;
    uint64_t pinned = 0, loose_pinned = 0, used = 0;
    for (size_t i = 0; i < r.state->pinner_count; i++) {
        const struct dry_pinner *p = &r.state->pinners[i];
        if (p->pinned < 10 * MIB)
            continue;
        count++;
        pinned += p->pinned;
        if (p->used > p->pinned / 9)
            continue;
        assert_true(i < 4);
        loose_count++;
        loose_pinned += p->pinned;
        used += p->used;
        blocks += p->used_count;
    }
    assert_int_equal(count, 20);
    expect_gib(pinned, 98);
    assert_int_equal(loose_count, 4);
    expect_gib(loose_pinned, 50);
    assert_int_equal(lround(10.0 * (double)used / (double)MIB), 156);
    assert_int_equal(blocks, 7);
    drop_recording(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_an_empty_state),
        cmocka_unit_test(sums_are_those_of_the_blocks),
        cmocka_unit_test(a_state_is_that_of_its_moment),
        cmocka_unit_test(pages_of_expandable_segments_go_back_one_by_one),
        cmocka_unit_test(blocks_that_share_no_page_pin_nothing),
        cmocka_unit_test(the_end_of_a_run_is_the_end_of_its_page),
        cmocka_unit_test(runs_of_other_streams_pools_and_sizes_stay_apart),
        cmocka_unit_test(private_pools_give_nothing_back),
        cmocka_unit_test(pinners_come_by_what_a_byte_frees),
        cmocka_unit_test(blocks_that_overlap_are_bent_to_fit),
        cmocka_unit_test(a_block_beyond_all_addresses_is_cut),
        cmocka_unit_test(what_lies_in_no_segment_is_counted_apart),
        cmocka_unit_test(without_memory_there_is_no_state),
        cmocka_unit_test(a_fragmented_cache_has_its_known_figures),
        cmocka_unit_test(a_cache_of_whole_segments_has_its_known_figures),
        cmocka_unit_test(pinners_of_a_fragmented_cache_are_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
