/* SPDX-License-Identifier: Apache-2.0 */

/* The course of a source against a list that keeps every sample, and what a rate must say. */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "live/trend.h"

#define GAP_NS (TREND_WINDOW_NS / TREND_SAMPLES)
#define SAMPLES_MAX 4000u
#define S UINT64_C(1000000000)

/* --- the naive one ------------------------------------------------------------------------ */

struct list {
    struct trend_sample samples[SAMPLES_MAX];
    size_t count;
};

static void
remove_first(struct list *list)
{
    memmove(list->samples, list->samples + 1, --list->count * sizeof *list->samples);
}

static void
list_add(struct list *list, struct trend_sample sample)
{
    size_t n = list->count;
    if (n >= 2 && sample.at_ns - list->samples[n - 2].at_ns < GAP_NS) {
        uint64_t before = list->samples[n - 1].reserved;
        sample.reserved = sample.reserved > before ? sample.reserved : before;
        list->samples[n - 1] = sample;
        return;
    }
    while (list->count && (sample.at_ns - list->samples[0].at_ns > TREND_WINDOW_NS ||
                           list->count >= TREND_SAMPLES))
        remove_first(list);
    list->samples[list->count++] = sample;
}

static uint64_t
most_of(const struct list *list, uint64_t after_ns, uint64_t until_ns)
{
    uint64_t most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct trend_sample *s = &list->samples[i];
        if (s->at_ns >= after_ns && s->at_ns <= until_ns && s->reserved > most)
            most = s->reserved;
    }
    return most;
}

static struct trend_rates
list_rates(const struct list *list)
{
    struct trend_rates rates = {0};
    if (list->count < 4)
        return rates;
    const struct trend_sample *first = list->samples;
    const struct trend_sample *last = first + list->count - 1;
    uint64_t window = last->at_ns - first->at_ns, middle = first->at_ns + window / 2;
    if (window < TREND_LEAST_NS)
        return rates;
    double seconds = (double)window / 1e9;
    double older = (double)most_of(list, 0, middle);
    double younger = (double)most_of(list, middle + 1, last->at_ns);
    uint64_t end_of_older = first->at_ns;
    for (size_t i = 0; i < list->count; i++)
        if (list->samples[i].at_ns <= middle)
            end_of_older = list->samples[i].at_ns;
    uint64_t retries =
        last->retries - (last->retries >= first->retries ? first->retries : 0);
    uint64_t ooms = last->ooms - (last->ooms >= first->ooms ? first->ooms : 0);
    rates.is_known = true;
    rates.reserved_per_s = (younger - older) * 1e9 / (double)(last->at_ns - end_of_older);
    rates.retries_per_min = (double)retries * 60 / seconds;
    rates.ooms_per_min = (double)ooms * 60 / seconds;
    return rates;
}

static void
expect_near(double a, double b)
{
    assert_true(fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-12);
}

static uint64_t
chance(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static void
any_course_is_that_of_a_list(void **state)
{
    (void)state;
    static struct list list;
    for (uint64_t round = 1; round <= 60; round++) {
        uint64_t seed = round, longest = round % 3 ? GAP_NS * 2 : S * 20;
        struct trend trend = {0};
        struct trend_sample sample = {.at_ns = round * S};
        list.count = 0;
        for (int i = 0; i < 600; i++) {
            struct trend_rates rates, expected;
            sample.at_ns += chance(&seed, longest);
            sample.reserved = chance(&seed, 1000) << 20;
            sample.retries += chance(&seed, 3);
            sample.ooms = chance(&seed, 100) ? sample.ooms + chance(&seed, 2) : 0;
            trend_add(&trend, &sample);
            list_add(&list, sample);
            trend_rates(&trend, &rates);
            expected = list_rates(&list);
            assert_int_equal(rates.is_known, expected.is_known);
            expect_near(rates.reserved_per_s, expected.reserved_per_s);
            expect_near(rates.retries_per_min, expected.retries_per_min);
            expect_near(rates.ooms_per_min, expected.ooms_per_min);
        }
    }
}

/* --- what it means ------------------------------------------------------------------------ */

static struct trend_rates
rates_of(uint64_t (*reserved)(uint64_t second), uint64_t seconds)
{
    struct trend trend = {0};
    struct trend_rates rates;
    for (uint64_t i = 0; i <= 10 * seconds; i++) {
        struct trend_sample sample = {i * S / 10, reserved(i), i / 20, 0};
        trend_add(&trend, &sample);
    }
    trend_rates(&trend, &rates);
    return rates;
}

static uint64_t
step_by_step(uint64_t tenth)
{
    return (tenth % 10 < 5 ? 100u : 1000u) << 20;
}

static uint64_t
growing(uint64_t tenth)
{
    return step_by_step(tenth) + (tenth << 20);
}

static uint64_t
shrinking(uint64_t tenth)
{
    return (uint64_t)(10000 - tenth) << 20;
}

static void
a_step_that_repeats_is_no_growth(void **state)
{
    (void)state;
    struct trend_rates rates = rates_of(step_by_step, 60);
    assert_true(rates.is_known);
    assert_true(fabs(rates.reserved_per_s) < 1);
    assert_true(trend_seconds_left(&rates, 1) < 0);
    assert_true(fabs(rates.retries_per_min - 30) < 1);
}

static void
growth_of_10_MiB_a_second_is_found(void **state)
{
    (void)state;
    struct trend_rates rates = rates_of(growing, 60);
    assert_true(fabs(rates.reserved_per_s / (10 << 20) - 1) < 0.05);
    double left = trend_seconds_left(&rates, UINT64_C(600) << 20);
    assert_true(left > 57 && left < 64);
    rates = rates_of(shrinking, 20);
    assert_true(rates.reserved_per_s < 0);
    assert_true(trend_seconds_left(&rates, 5) < 0);
}

static void
even_growth_of_few_samples_has_its_rate(void **state)
{
    (void)state;
    for (uint64_t jitter = 0; jitter < 5; jitter++) {
        struct trend trend = {0};
        struct trend_rates rates;
        for (uint64_t i = 0; i < 7; i++) {
            struct trend_sample sample = {i * S + (i * jitter % 3) * S / 50, 0, 0, 0};
            sample.reserved = sample.at_ns / 1000;
            trend_add(&trend, &sample);
        }
        trend_rates(&trend, &rates);
        assert_true(fabs(rates.reserved_per_s / 1e6 - 1) < 1e-6);
    }
}

static void
short_looks_say_nothing(void **state)
{
    (void)state;
    struct trend_rates rates = rates_of(growing, 3);
    assert_false(rates.is_known);
    assert_true(trend_seconds_left(&rates, 0) < 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_course_is_that_of_a_list),
        cmocka_unit_test(a_step_that_repeats_is_no_growth),
        cmocka_unit_test(growth_of_10_MiB_a_second_is_found),
        cmocka_unit_test(even_growth_of_few_samples_has_its_rate),
        cmocka_unit_test(short_looks_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
