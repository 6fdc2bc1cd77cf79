/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a series: where points lie, what is crossed out, what is named. */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "dryrun/series.h"

#define GIB (UINT64_C(1) << 30)
#define FITTING "<path fill=\"#332288\" d=\"M"

struct text {
    char *bytes;
    size_t used;
};

static enum dry_status
take(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    (void)err;
    struct text *t = self;
    t->bytes = realloc(t->bytes, t->used + count + 1);
    assert_non_null(t->bytes);
    memcpy(t->bytes + t->used, bytes, count);
    t->used += count;
    t->bytes[t->used] = '\0';
    return DRY_OK;
}

/* Draw rows of a series on an H100, of which PyTorch has 10 GiB. */
static char *
draw(struct series_row *rows, size_t count)
{
    const struct launch_request request = {.card = dry_card_find("h100-80")};
    const struct series series = {
        .request = &request, .heading = "run", .rows = rows, .count = count};
    struct text text = {0};
    struct writer w;
    const struct dry_sink sink = {.write = take, .self = &text};
    writer_init(&w, &sink, NULL);
    assert_true(series_write_svg(&series, &w));
    assert_int_equal(writer_finish(&w, NULL), DRY_OK);
    return text.bytes;
}

static struct series_row
make_row(const char *label, enum trial_outcome outcome, uint64_t gib)
{
    struct series_row row = {.outcome = outcome,
                             .torch_bytes = 10 * GIB,
                             .reserved = gib * GIB,
                             .allocated = gib * GIB / 2};
    snprintf(row.label, sizeof row.label, "%s", label);
    return row;
}

/* Read the left edges of the marks of reserved memory. Returns how many there are. */
static size_t
read_marks(const char *svg, double x[8], double y[8])
{
    size_t count = 0;
    for (const char *at = svg; (at = strstr(at, FITTING)) != NULL && count < 8; count++) {
        at += strlen(FITTING);
        assert_int_equal(sscanf(at, "%lf %lf", &x[count], &y[count]), 2);
    }
    return count;
}

static void
assert_near(double a, double b)
{
    assert_true(a - b < 0.3 && b - a < 0.3);
}

static void
test_numbers_lie_at_their_distance(void **state)
{
    (void)state;
    struct series_row rows[] = {make_row("BATCH=32", TRIAL_FITS, 8),
                                make_row("BATCH=8", TRIAL_FITS, 2),
                                make_row("BATCH=16", TRIAL_FITS, 4)};
    double x[8], y[8];
    char *svg = draw(rows, 3);
    assert_int_equal(read_marks(svg, x, y), 3);
    assert_true(x[0] < x[1] && x[1] < x[2]); /* in the order of the numbers */
    assert_near(x[2] - x[1], 2 * (x[1] - x[0]));
    assert_near(y[1] - y[2], 2 * (y[0] - y[1])); /* 4 GiB up after 2 */
    assert_non_null(strstr(svg, ">8</text>"));
    assert_non_null(strstr(svg, ">BATCH</text>"));
    assert_non_null(strstr(svg, "h100-80 leaves 10.00 GiB to PyTorch"));
    free(svg);
}

static void
test_words_lie_side_by_side(void **state)
{
    (void)state;
    struct series_row rows[] = {make_row("MODEL=small LENGTH=9", TRIAL_FITS, 1),
                                make_row("MODEL=large LENGTH=1", TRIAL_FITS, 2),
                                make_row("MODEL=<b> LENGTH=5", TRIAL_FITS, 3)};
    double x[8], y[8];
    char *svg = draw(rows, 3);
    assert_int_equal(read_marks(svg, x, y), 3);
    assert_near(x[1] - x[0], x[2] - x[1]);
    assert_non_null(strstr(svg, ">MODEL=small LENGTH=9</text>"));
    assert_non_null(strstr(svg, "MODEL=&lt;b"));
    assert_null(strstr(svg, "<b>"));
    free(svg);
}

static size_t
count_crosses(const char *svg)
{
    size_t lines = 0;
    for (const char *at = svg; (at = strstr(at, "stroke-width=\"2.5\"")) != NULL; at++)
        lines++;
    return lines / 2;
}

static void
test_what_does_not_fit_is_crossed_out(void **state)
{
    (void)state;
    struct series_row rows[] = {make_row("N=1", TRIAL_FITS, 4),
                                make_row("N=2", TRIAL_FITS_NOT, 9),
                                make_row("N=3", TRIAL_NOT_KNOWN, 0)};
    double x[8], y[8];
    char *svg = draw(rows, 3);
    assert_int_equal(read_marks(svg, x, y), 1);
    assert_int_equal(count_crosses(svg), 2);
    assert_non_null(strstr(svg, "1 of 3 fit"));
    free(svg);
}

static void
test_a_large_card_does_not_press_the_curve_down(void **state)
{
    (void)state;
    struct series_row rows[] = {make_row("N=1", TRIAL_FITS, 1),
                                make_row("N=nan", TRIAL_FITS, 2)};
    double x[8], y[8];
    char *svg = draw(rows, 2);
    assert_int_equal(read_marks(svg, x, y), 2);
    assert_true(y[0] - y[1] > 150); /* a GiB is near half of the plot */
    assert_null(strstr(svg, "stroke-dasharray"));
    assert_non_null(strstr(svg, "leaves 10.00 GiB"));
    free(svg);
}

static void
test_long_names_do_not_overlap(void **state)
{
    (void)state;
    struct series_row *rows = calloc(200, sizeof *rows);
    assert_non_null(rows);
    size_t named = 0;
    for (size_t i = 0; i < 200; i++) {
        char label[64];
        snprintf(label, sizeof label, "MODEL=a_model_with_a_long_name_%zu", i);
        rows[i] = make_row(label, TRIAL_FITS, 1);
    }
    char *svg = draw(rows, 200);
    for (const char *at = svg; (at = strstr(at, ">a_model")) != NULL; at++)
        named++;
    assert_in_range(named, 2, 5);
    free(svg);
    free(rows);
}

static void
test_without_runs_nothing_is_drawn(void **state)
{
    (void)state;
    char *svg = draw(NULL, 0);
    assert_null(svg);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_lie_at_their_distance),
        cmocka_unit_test(test_words_lie_side_by_side),
        cmocka_unit_test(test_what_does_not_fit_is_crossed_out),
        cmocka_unit_test(test_a_large_card_does_not_press_the_curve_down),
        cmocka_unit_test(test_long_names_do_not_overlap),
        cmocka_unit_test(test_without_runs_nothing_is_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
