/* SPDX-License-Identifier: Apache-2.0 */

/*
 * drawing: what is stacked on what, what slides, what is too small to show, columns in which
 * nothing happened, the peak that must be seen, and no memory.
 */
#include "support/cmocka.h"

#include <drystone/drystone.h>

#include "prop/timeline_model.h"
#include "support/failing_memory.h"
#include "support/record_builder.h"

#define BASE UINT64_C(0x7f0000000000)

static const struct dry_axis no_axis = {.to = 0};

static void
allocate(struct record_builder *s, uint64_t place, uint64_t size)
{
    record_builder_event(s, DRY_ACTION_ALLOC, BASE + place * 65536, size);
}

static void
give_back(struct record_builder *s, uint64_t place)
{
    record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE + place * 65536, 512);
}

/* Checked against the model; `axis` of no length: a column for each moment. */
static struct dry_drawing *
draw(struct record_builder *s, struct dry_axis axis, enum dry_stacking stacking,
     uint64_t min_bytes)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    if (axis.to == 0) {
        axis.to = v->dump_moment + 1;
        axis.column_count = axis.to;
    }
    struct timeline_model model;
    timeline_model_init(&model, s->timeline);
    const char *problem =
        timeline_model_check_drawing(&model, &axis, stacking, min_bytes);
    timeline_model_finish(&model);
    if (problem)
        fail_msg("%s", problem);
    struct dry_drawing_bounds bounds = {.min_bytes = min_bytes, .run_max = SIZE_MAX};
    struct dry_drawing *drawing;
    assert_int_equal(
        dry_drawing_create(s->timeline, &axis, stacking, &bounds, &drawing, NULL),
        DRY_OK);
    return drawing;
}

static void
expect_runs(const struct dry_drawing *d, const struct dry_drawing_run *runs, size_t count)
{
    assert_int_equal(d->run_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(d->runs[i].allocation, runs[i].allocation);
        assert_int_equal(d->runs[i].column, runs[i].column);
        assert_int_equal(d->runs[i].column_end, runs[i].column_end);
        assert_int_equal(d->runs[i].bottom, runs[i].bottom);
    }
}

/* Three are born, the first goes, the others slide down; below lies what was carried over. */
static void
build_a_slide(struct record_builder *s)
{
    record_builder_begin(s);
    allocate(s, 0, 1024);
    allocate(s, 1, 2048);
    allocate(s, 2, 4096);
    give_back(s, 0);
    give_back(s, 9); /* a carried-over allocation of 512 bytes: number 3 */
    record_builder_timeline(s);
}

static void
the_oldest_lie_at_the_bottom(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_slide(&s);
    struct dry_drawing *d = draw(&s, no_axis, DRY_STACKING_BIRTH, 0);
    static const struct dry_drawing_run runs[] = {
        {3, 0, 5, 0}, {0, 1, 4, 512},  {1, 2, 4, 1536}, {1, 4, 5, 512},
        {1, 5, 7, 0}, {2, 3, 4, 3584}, {2, 4, 5, 2560}, {2, 5, 7, 2048},
    };
    expect_runs(d, runs, sizeof runs / sizeof *runs);
    static const uint64_t active[] = {512, 1536, 3584, 7680, 6656, 6144, 6144};
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(d->columns[i].moment, i);
        assert_int_equal(d->columns[i].active_bytes, active[i]);
        assert_int_equal(d->columns[i].undrawn_count, 0);
    }
    dry_drawing_destroy(d);
    record_builder_end(&s);
}

static void
the_longest_lives_lie_at_the_bottom_on_demand(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_slide(&s);
    struct dry_drawing *d = draw(&s, no_axis, DRY_STACKING_LONG_LIVED, 0);
    static const struct dry_drawing_run runs[] = {
        {3, 0, 5, 0},    {1, 2, 5, 512}, {1, 5, 7, 0},    {2, 3, 5, 2560},
        {2, 5, 7, 2048}, {0, 1, 2, 512}, {0, 2, 3, 2560}, {0, 3, 4, 6656},
    };
    expect_runs(d, runs, sizeof runs / sizeof *runs);
    dry_drawing_destroy(d);
    record_builder_end(&s);
}

/* Return how high allocation `number` lies at a moment; UINT64_MAX: it is not drawn there. */
static uint64_t
bottom_of(const struct dry_drawing *d, uint32_t number, uint32_t moment)
{
    for (size_t i = 0; i < d->run_count; i++) {
        const struct dry_drawing_run *run = &d->runs[i];
        for (uint32_t k = run->column; k < run->column_end; k++) {
            if (run->allocation == number && d->columns[k].moment == moment)
                return run->bottom;
        }
    }
    return UINT64_MAX;
}

static void
adjacent_drawings_fit_together(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_slide(&s);
    struct dry_drawing *whole = draw(&s, no_axis, DRY_STACKING_LONG_LIVED, 0);
    for (uint32_t cut = 1; cut < 7; cut++) {
        struct dry_axis parts[] = {{.to = cut, .column_count = cut},
                                   {.from = cut, .to = 7, .column_count = 7 - cut}};
        for (size_t i = 0; i < 2; i++) {
            struct dry_drawing *d = draw(&s, parts[i], DRY_STACKING_LONG_LIVED, 0);
            for (uint32_t m = parts[i].from; m < parts[i].to; m++) {
                for (uint32_t k = 0; k < 4; k++)
                    assert_int_equal(bottom_of(d, k, m), bottom_of(whole, k, m));
            }
            dry_drawing_destroy(d);
        }
    }
    dry_drawing_destroy(whole);
    record_builder_end(&s);
}

static void
small_ones_are_summed_up(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_slide(&s);
    struct dry_drawing *d = draw(&s, no_axis, DRY_STACKING_BIRTH, 2048);
    static const struct dry_drawing_run runs[] = {{1, 2, 7, 0}, {2, 3, 7, 2048}};
    expect_runs(d, runs, 2);
    static const uint32_t counts[] = {1, 2, 2, 2, 1, 0, 0};
    static const uint64_t bytes[] = {512, 1536, 1536, 1536, 512, 0, 0};
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(d->columns[i].undrawn_count, counts[i]);
        assert_int_equal(d->columns[i].undrawn_bytes, bytes[i]);
    }
    dry_drawing_destroy(d);
    d = draw(&s, no_axis, DRY_STACKING_BIRTH, UINT64_MAX);
    assert_int_equal(d->run_count, 0);
    assert_int_equal(d->columns[3].undrawn_count, 4);
    dry_drawing_destroy(d);
    record_builder_end(&s);
}

/* One moment of a thousand is the peak: in any number of columns, one is that high. */
static void
the_peak_is_always_drawn(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (uint64_t i = 0; i < 500; i++) {
        allocate(&s, i, i == 311 ? 40960 : 1024);
        give_back(&s, i);
    }
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    for (uint32_t count = 1; count < 1500; count += 37) {
        struct dry_axis axis = {.to = v->dump_moment + 1, .column_count = count};
        struct dry_drawing *d = draw(&s, axis, DRY_STACKING_BIRTH, 2048);
        assert_int_equal(d->run_count, 1);
        assert_int_equal(d->runs[0].allocation, 311);
        assert_int_equal(d->columns[d->runs[0].column].active_bytes, 40960);
        dry_drawing_destroy(d);
    }
    record_builder_end(&s);
}

/* By time, with a long pause: empty columns show what was alive before them. */
static void
a_pause_shows_what_lives_through_it(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    allocate(&s, 0, 1024);
    allocate(&s, 1, 2048);
    give_back(&s, 0);
    record_builder_at(&s, 100000, DRY_ACTION_ALLOC, BASE + 2 * 65536, 512);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    struct dry_axis axis = {
        .to = v->dump_moment + 1, .column_count = 10, .is_time = true};
    struct dry_drawing *d = draw(&s, axis, DRY_STACKING_BIRTH, 0);
    static const struct dry_drawing_run runs[] = {
        {0, 0, 1, 0}, {1, 0, 1, 1024}, {1, 1, 10, 0}, {2, 9, 10, 2048}};
    expect_runs(d, runs, 4);
    dry_drawing_destroy(d);
    record_builder_end(&s);
}

static void
a_part_shows_what_was_born_before_it(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_slide(&s);
    struct dry_axis axis = {.from = 4, .to = 6, .column_count = 2};
    struct dry_drawing *d = draw(&s, axis, DRY_STACKING_BIRTH, 0);
    static const struct dry_drawing_run runs[] = {
        {3, 0, 1, 0}, {1, 0, 1, 512}, {1, 1, 2, 0}, {2, 0, 1, 2560}, {2, 1, 2, 2048}};
    expect_runs(d, runs, 5);
    dry_drawing_destroy(d);
    record_builder_end(&s);
}

static void
a_drawing_stays_within_its_runs(void **state)
{
    (void)state;
    struct record_builder s;
    build_a_slide(&s);
    struct dry_axis axis = {.to = 7, .column_count = 7};
    static const struct {
        size_t run_max, run_count;
        uint64_t min_bytes;
    } cases[] = {{8, 8, 100},  {7, 5, 807},  {5, 5, 807},       {4, 2, 1615},
                 {1, 1, 3231}, {0, 0, 6463}, {SIZE_MAX, 8, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_drawing_bounds bounds = {.min_bytes = 100,
                                            .run_max = cases[i].run_max};
        struct dry_drawing *d;
        assert_int_equal(
            dry_drawing_create(s.timeline, &axis, DRY_STACKING_BIRTH, &bounds, &d, NULL),
            DRY_OK);
        assert_int_equal(d->run_count, cases[i].run_count);
        assert_int_equal(d->min_bytes, cases[i].min_bytes);
        dry_drawing_destroy(d);
    }
    record_builder_end(&s);
}

static void
nothing_is_drawn_of_nothing(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    record_builder_event(&s, DRY_ACTION_OOM, 0, 512);
    record_builder_timeline(&s);
    struct dry_drawing *d = draw(&s, no_axis, DRY_STACKING_BIRTH, 0);
    assert_int_equal(d->column_count, 3);
    assert_int_equal(d->run_count, 0);
    assert_int_equal(d->columns[2].active_bytes, 0);
    dry_drawing_destroy(d);
    record_builder_end(&s);
}

static void
without_memory_there_is_no_drawing(void **state)
{
    (void)state;
    struct record_builder s;
    record_builder_begin(&s);
    for (uint64_t i = 0; i < 60; i++)
        allocate(&s, i, 1024);
    for (uint64_t i = 0; i < 60; i++)
        give_back(&s, i * 7 % 60);
    record_builder_timeline(&s);
    struct dry_axis axis = {.to = 122, .column_count = 122};
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dry_timeline_options options;
        struct dry_timeline *timeline;
        struct dry_drawing *d = NULL;
        struct dry_error err = {.status = DRY_OK};
        dry_timeline_options_init(&options);
        options.memory = &memory;
        assert_int_equal(dry_timeline_create(s.replay, &options, &timeline, NULL),
                         DRY_OK);
        fm.left = n;
        struct dry_drawing_bounds bounds = {.run_max = 100};
        enum dry_status status = dry_drawing_create(
            timeline, &axis, DRY_STACKING_LONG_LIVED, &bounds, &d, &err);
        bool is_done = !fm.failed;
        assert_int_equal(status, is_done ? DRY_OK : DRY_ERR_MEMORY);
        assert_int_equal(err.status, status);
        assert_true(is_done == (d != NULL));
        dry_drawing_destroy(d);
        dry_timeline_destroy(timeline);
        failing_memory_finish(&fm);
        if (is_done)
            break;
    }
    record_builder_end(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_lie_at_the_bottom),
        cmocka_unit_test(the_longest_lives_lie_at_the_bottom_on_demand),
        cmocka_unit_test(adjacent_drawings_fit_together),
        cmocka_unit_test(small_ones_are_summed_up),
        cmocka_unit_test(the_peak_is_always_drawn),
        cmocka_unit_test(a_pause_shows_what_lives_through_it),
        cmocka_unit_test(a_part_shows_what_was_born_before_it),
        cmocka_unit_test(a_drawing_stays_within_its_runs),
        cmocka_unit_test(nothing_is_drawn_of_nothing),
        cmocka_unit_test(without_memory_there_is_no_drawing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
