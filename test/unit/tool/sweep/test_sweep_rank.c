/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks and fronts of random rows against naive models, worst files, rounds, results. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/sweep_rank.h"
#include "sweep/sweep_result.h"

#define ROWS 60

static uint32_t
random_of(uint32_t *seed, uint32_t bound)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % bound;
}

/* Few different numbers, so that many rows are equal in some. */
static void
make_rows(struct sweep_row *rows, size_t count, uint32_t *seed)
{
    static char refused[] = "refused";
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct sweep_row){
            .combination = i + 1 == count ? SWEEP_RECORDED : i,
            .all = {.device_bytes = random_of(seed, 5),
                    .reserved_bytes = random_of(seed, 5),
                    .driver_time_ns = random_of(seed, 5),
                    .fits = random_of(seed, 4) > 0},
            .refused = random_of(seed, 9) == 0 ? refused : NULL,
            .pruned = random_of(seed, 5) == 0 ? 1 + random_of(seed, 3) : 0,
        };
    }
}

static bool
is_naively_better(const struct sweep_row *a, const struct sweep_row *b)
{
    uint64_t left[6] = {a->refused != NULL,    a->pruned ? 10 - a->pruned : 0,
                        !a->all.fits,          a->all.device_bytes,
                        a->all.reserved_bytes, a->all.driver_time_ns};
    uint64_t right[6] = {b->refused != NULL,    b->pruned ? 10 - b->pruned : 0,
                         !b->all.fits,          b->all.device_bytes,
                         b->all.reserved_bytes, b->all.driver_time_ns};
    for (size_t i = 0; i < 6; i++) {
        if (left[i] != right[i])
            return left[i] < right[i];
        if (i == 0 && left[0])
            break;
    }
    if (a->combination == SWEEP_RECORDED || b->combination == SWEEP_RECORDED)
        return a->combination == SWEEP_RECORDED;
    return a->combination < b->combination;
}

static bool
takes_part(const struct sweep_row *row)
{
    return !row->refused && !row->pruned && row->all.fits;
}

static bool
is_naively_dominated(const struct sweep_row *row, const struct sweep_row *by)
{
    const struct sweep_figures *a = &by->all, *b = &row->all;
    bool is_less = a->device_bytes < b->device_bytes ||
                   a->reserved_bytes < b->reserved_bytes ||
                   a->driver_time_ns < b->driver_time_ns;
    return takes_part(by) && is_less && a->device_bytes <= b->device_bytes &&
           a->reserved_bytes <= b->reserved_bytes &&
           a->driver_time_ns <= b->driver_time_ns;
}

static void
rank_and_front_are_those_of_the_models(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        struct sweep_row rows[ROWS];
        size_t count = 1 + random_of(&seed, ROWS);
        make_rows(rows, count, &seed);
        sweep_rank(rows, count);
        sweep_mark_front(rows, count);
        for (size_t i = 0; i < count; i++) {
            bool is_front = takes_part(&rows[i]);
            for (size_t j = 0; j < count; j++)
                is_front = is_front && !is_naively_dominated(&rows[i], &rows[j]);
            assert_int_equal(rows[i].is_front, is_front);
            assert_true(i == 0 || is_naively_better(&rows[i - 1], &rows[i]));
        }
    }
}

static void
the_largest_figures_stand_for_a_row(void **state)
{
    (void)state;
    struct sweep_figures files[3] = {{10, 9, 100, 7, 0, true},
                                     {SWEEP_NO_DEVICE, 8, 1, 9, 2, false},
                                     {30, 30, 30, 3, 3, true}};
    struct sweep_row row = {.files = files};
    sweep_row_conclude(&row, 1);
    assert_int_equal(row.worst_file, 0);
    assert_true(row.all.fits && row.all.device_bytes == 10);
    sweep_row_conclude(&row, 3);
    assert_int_equal(row.worst_file, 1);
    assert_false(row.all.fits);
    assert_true(row.all.device_bytes == SWEEP_NO_DEVICE);
    assert_int_equal(row.all.reserved_bytes, 30);
    assert_int_equal(row.all.driver_time_ns, 100);
    assert_int_equal(row.all.driver_calls, 9);
    assert_int_equal(row.all.retries, 3);
}

static void
rounds_halve_until_the_budget(void **state)
{
    (void)state;
    assert_int_equal(sweep_count_rounds(8, 0), 0);
    assert_int_equal(sweep_count_rounds(8, 8), 0);
    assert_int_equal(sweep_count_rounds(9, 8), 1);
    assert_int_equal(sweep_count_rounds(64, 8), 3);
    assert_int_equal(sweep_count_rounds(65, 8), 4);
    assert_int_equal(sweep_count_rounds(10000, 1), SWEEP_ROUNDS_MAX);
}

static void
results_come_back(void **state)
{
    (void)state;
    char error[SWEEP_ERROR_BYTES];
    struct sweep_figures f;
    struct dry_run run = {.capacity_bytes = 44040192,
                          .reserved_peak_bytes = 44040193,
                          .driver_time_ns = 5,
                          .driver_calls = 6,
                          .stats = {.num_alloc_retries = 7}};
    char *text = sweep_result_write(&run);
    assert_true(sweep_result_is_whole(text) && sweep_result_read(text, &f, error));
    free(text);
    assert_true(f.fits && f.device_bytes == 44040192 && f.reserved_bytes == 44040193 &&
                f.driver_time_ns == 5 && f.driver_calls == 6 && f.retries == 7);
    run.capacity_bytes = 0;
    run.oom = true;
    text = sweep_result_write(&run);
    assert_true(sweep_result_is_whole(text) && sweep_result_read(text, &f, error));
    free(text);
    assert_true(!f.fits && f.device_bytes == SWEEP_NO_DEVICE);
    text = sweep_result_write_error("too many events");
    assert_true(sweep_result_is_whole(text) && !sweep_result_read(text, &f, error));
    assert_string_equal(error, "too many events");
    free(text);
}

static void
damaged_results_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "7",
        "{\"oom\":false}",
        "{\"capacity_bytes\":-1,\"reserved_peak_bytes\":1,\"driver_time_ns\":1,"
        "\"driver_calls\":1,\"num_alloc_retries\":1,\"oom\":false}",
        "{\"capacity_bytes\":1,\"reserved_peak_bytes\":1.5,\"driver_time_ns\":1,"
        "\"driver_calls\":1,\"num_alloc_retries\":1,\"oom\":false}",
        "{\"capacity_bytes\":1,\"reserved_peak_bytes\":1,\"driver_time_ns\":1,"
        "\"driver_calls\":1,\"num_alloc_retries\":1,\"oom\":0}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char error[SWEEP_ERROR_BYTES];
        struct sweep_figures f;
        assert_false(sweep_result_read(bad[i], &f, error));
        assert_non_null(strstr(error, "damaged"));
        assert_false(sweep_result_is_whole(bad[i]));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_and_front_are_those_of_the_models),
        cmocka_unit_test(the_largest_figures_stand_for_a_row),
        cmocka_unit_test(rounds_halve_until_the_budget),
        cmocka_unit_test(results_come_back),
        cmocka_unit_test(damaged_results_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
