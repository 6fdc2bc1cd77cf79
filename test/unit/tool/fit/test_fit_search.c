/* SPDX-License-Identifier: Apache-2.0 */
/* The search for changes, against programs whose memory is a formula. */
#include "support/cmocka.h"

#include <string.h>

#include "base/command.h"
#include "fit/fit_search.h"

/* A program: what each step of an offer takes from each of two passes. */
struct program {
    uint64_t backward, step;
    uint64_t from_backward[FIT_OFFERS_MAX], from_step[FIT_OFFERS_MAX];
    double work[FIT_OFFERS_MAX];
    uint64_t link[FIT_OFFERS_MAX];
    bool fails[FIT_OFFERS_MAX], refuses[FIT_OFFERS_MAX];
    const struct fit_search *search;
    int runs;
};

static uint64_t
take(uint64_t bytes, uint64_t less)
{
    return less < bytes ? bytes - less : 0;
}

static uint64_t
measure(const struct program *p, const struct fit_set *set)
{
    uint64_t backward = p->backward, step = p->step;
    for (size_t i = 0; i < FIT_OFFERS_MAX; i++) {
        backward = take(backward, set->value[i] * p->from_backward[i]);
        step = take(step, set->value[i] * p->from_step[i]);
    }
    return backward > step ? backward : step;
}

static int
run(void *self, const struct fit_set *set, struct fit_result *result)
{
    struct program *p = self;
    *result = (struct fit_result){.is_known = true, .is_applied = true, .work = 100};
    for (size_t i = 0; i < p->search->offer_count; i++) {
        assert_true(set->value[i] <= p->search->offers[i].value_count);
        result->is_known &= set->value[i] == 0 || !p->fails[i];
        result->is_applied &= set->value[i] == 0 || !p->refuses[i];
        result->work += (double)set->value[i] * p->work[i];
        result->link_bytes += set->value[i] * p->link[i];
    }
    result->peak = measure(p, set);
    result->fits =
        result->is_known && result->is_applied && result->peak <= p->search->limit;
    p->runs++;
    return EXIT_FINE;
}

static struct fit_search search;

static void
search_in(struct program *p, const struct fit_offer *offers, size_t count, uint64_t limit,
          int runs)
{
    const struct fit_set none = {.value = {0}};
    memset(&search, 0, sizeof search);
    search.offers = offers;
    search.offer_count = count;
    search.limit = limit;
    search.peak = measure(p, &none);
    search.peaks_in_step = p->step > p->backward;
    search.runs_left = runs;
    search.link_work = 4000;
    search.run = run;
    search.self = p;
    p->search = &search;
    assert_int_equal(fit_search_run(&search), EXIT_FINE);
    assert_in_range(p->runs, 0, runs);
}

static const struct fit_offer one_switch = {.value_count = 1};
static const struct fit_offer layers = {.value_count = 32, .helps = FIT_BACKWARD};

static void
test_switch_is_enough(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {one_switch, layers};
    struct program p = {.backward = 1000, .from_backward = {200, 20}, .work = {0, 1}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 2, 850, 15);
    assert_true(fit_search_rank(&search, ranked) >= 1);
    const struct fit_row *best = &search.rows[ranked[0]];
    assert_int_equal(best->set.value[0], 1);
    assert_int_equal(best->set.value[1], 0);
}

/* A strength whose memory is a line is weakened to the last one that fits, in three runs. */
static void
test_weakest_strength(void **state)
{
    (void)state;
    for (uint64_t limit = 360; limit < 1000; limit++) {
        struct program p = {.backward = 1000, .from_backward = {20}, .work = {1}};
        size_t ranked[FIT_RUNS_MAX];
        search_in(&p, &layers, 1, limit, 15);
        assert_in_range(p.runs, 1, 4);
        assert_int_equal(fit_search_rank(&search, ranked), 1);
        assert_int_equal(search.rows[ranked[0]].set.value[0], (1000 - limit + 19) / 20);
    }
}

/* The first strength to try is as strong as what is missing, since stronger ones cost more. */
static void
test_first_strength(void **state)
{
    (void)state;
    struct program p = {.backward = 1000, .from_backward = {30}, .work = {1}};
    search_in(&p, &layers, 1, 800, 15);
    assert_int_equal(p.runs, 2);
    assert_int_equal(search.rows[0].set.value[0], 7);
    assert_int_equal(search.rows[1].set.value[0], 6);
}

/* A change whose work is not known comes behind one whose work is. */
static void
test_unknown_work(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {one_switch, one_switch};
    struct program p = {
        .backward = 1000, .from_backward = {500, 400}, .work = {-100, 50}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 2, 700, 15);
    assert_int_equal(fit_search_rank(&search, ranked), 2);
    assert_int_equal(search.rows[ranked[0]].set.value[1], 1);
}

/* Copies come behind little work, and before much. */
static void
test_copies_have_a_price(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {one_switch, one_switch};
    for (size_t i = 0; i < 2; i++) {
        struct program p = {.backward = 1000,
                            .from_backward = {500, 500},
                            .work = {0, i ? 5000 : 3000},
                            .link = {1}};
        size_t ranked[FIT_RUNS_MAX];
        search_in(&p, offers, 2, 700, 15);
        assert_int_equal(fit_search_rank(&search, ranked), 2);
        assert_int_equal(search.rows[ranked[0]].set.value[i ? 0 : 1], 1);
    }
}

/* An answer that a whole run refuted is followed by the next strength: what was run before takes no
   run from it. */
static void
test_refuted_strength(void **state)
{
    (void)state;
    struct program p = {.backward = 1000, .from_backward = {25}, .work = {1}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, &layers, 1, 790, 15);
    assert_int_equal(fit_search_rank(&search, ranked), 1);
    while (fit_search_rank(&search, ranked) > 0)
        search.rows[ranked[0]].result = (struct fit_result){
            .is_known = true, .is_applied = true, .peak = 791, .work = 109};
    search.runs_left = 1;
    assert_int_equal(fit_search_run(&search), EXIT_FINE);
    assert_int_equal(fit_search_rank(&search, ranked), 1);
    assert_int_equal(search.rows[ranked[0]].set.value[0], 10);
}

/* Each strength has its share of few runs. */
static void
test_shares(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {layers, layers, layers};
    struct program p = {
        .backward = 1000, .from_backward = {1, 20, 25}, .work = {1, 1, 1}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 3, 520, 7);
    assert_int_equal(fit_search_rank(&search, ranked), 2);
}

/* Switches that save too little alone are tried together, whatever one of them does to others. */
static void
test_switches_join(void **state)
{
    (void)state;
    const struct fit_offer saves = {.value_count = 1, .helps = FIT_BACKWARD};
    const struct fit_offer offers[] = {
        one_switch, saves, saves, {.value_count = 1, .numbers = FIT_OTHER}};
    struct program p = {.backward = 702, .from_backward = {0, 140, 86, 300}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 4, 500, 11);
    assert_int_equal(fit_search_rank(&search, ranked), 2);
    assert_int_equal(search.rows[ranked[0]].set.value[1], 1);
    assert_int_equal(search.rows[ranked[0]].set.value[2], 1);
}

/* The update holds the peak; once switches take from it, the backward pass does, and the weakest
   strength that fits is looked for there. */
static void
test_peak_moves(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {{.value_count = 1, .helps = FIT_STEP},
                                       {.value_count = 8, .helps = FIT_BACKWARD},
                                       {.value_count = 1, .helps = FIT_BACKWARD}};
    struct program p = {.backward = 900,
                        .step = 1000,
                        .from_backward = {0, 50, 300},
                        .from_step = {600},
                        .work = {0, 1, 0}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 3, 820, 15);
    assert_true(fit_search_rank(&search, ranked) > 0);
    const struct fit_set *best = &search.rows[ranked[0]].set;
    assert_int_equal(best->value[0], 1);
    assert_int_equal(best->value[1], 2);
    assert_int_equal(best->value[2], 0);
}

/* What the best answer does not need is left out of it. */
static void
test_best_is_thin(void **state)
{
    (void)state;
    const struct fit_offer saves = {.value_count = 1, .helps = FIT_BACKWARD};
    const struct fit_offer offers[] = {saves, saves, saves, saves};
    struct program p = {.backward = 1000, .from_backward = {200, 210, 220, 230}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 4, 600, 15);
    assert_true(fit_search_rank(&search, ranked) > 0);
    assert_int_equal(search.rows[ranked[0]].result.peak, 590);
}

/* A change that takes from the second peak counts once the first peak is gone. */
static void
test_two_peaks(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {layers, {.value_count = 1, .helps = FIT_STEP}};
    struct program p = {
        .backward = 1000, .step = 900, .from_backward = {20}, .from_step = {0, 300}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 2, 700, 15);
    assert_int_equal(fit_search_rank(&search, ranked), 1);
    assert_int_equal(search.rows[ranked[0]].set.value[1], 1);
}

/* Changes of numbers come after those that keep them, and are tried when those fit, too. */
static void
test_numbers(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {{.value_count = 1, .numbers = FIT_OTHER},
                                       layers,
                                       {.value_count = 4, .numbers = FIT_ROWS}};
    struct program p = {
        .backward = 1000, .from_backward = {500, 20, 200}, .work = {0, 1, 0}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 3, 600, 15);
    assert_int_equal(fit_search_rank(&search, ranked), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fit_set_numbers(&search, &search.rows[ranked[i]].set), i);
}

static void
test_failures(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {one_switch, one_switch, layers};
    struct program p = {.backward = 1000,
                        .from_backward = {900, 900, 20},
                        .fails = {true},
                        .refuses = {false, true}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 3, 500, 15);
    assert_int_equal(fit_search_rank(&search, ranked), 1);
    assert_int_equal(search.rows[ranked[0]].set.value[2], 25);
    search_in(&(struct program){.backward = 1000, .fails = {true}}, &one_switch, 1, 500,
              15);
    assert_true(fit_search_nearest(&search) == SIZE_MAX);
}

static void
test_nothing_fits(void **state)
{
    (void)state;
    const struct fit_offer offers[] = {one_switch, layers};
    struct program p = {.backward = 1000, .from_backward = {50, 20}};
    size_t ranked[FIT_RUNS_MAX];
    search_in(&p, offers, 2, 300, 15);
    assert_int_equal(fit_search_rank(&search, ranked), 0);
    size_t nearest = fit_search_nearest(&search);
    assert_int_equal(search.rows[nearest].result.peak, 310); /* all at their strongest */
}

static uint64_t
draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

/* Random programs: with runs enough, a program that everything together fits is made to fit, and
   each answer fits by the formula. */
static void
test_random(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 5000; round++) {
        uint64_t seed = round;
        struct fit_offer offers[8];
        struct program p = {.backward = 500 + draw(&seed, 500), .step = draw(&seed, 900)};
        size_t count = 1 + draw(&seed, 8), ranked[FIT_RUNS_MAX];
        struct fit_set all = {.value = {0}};
        for (size_t i = 0; i < count; i++) {
            offers[i] = (struct fit_offer){
                .numbers = (enum fit_numbers)draw(&seed, 3),
                .helps = (enum fit_pass)draw(&seed, 4),
                .value_count = draw(&seed, 2) ? 1 : 1 + draw(&seed, 40),
            };
            all.value[i] = offers[i].value_count;
            p.from_backward[i] = draw(&seed, 300) / offers[i].value_count;
            p.from_step[i] = draw(&seed, 300) / offers[i].value_count;
            p.work[i] = (double)draw(&seed, 3);
        }
        uint64_t limit = 100 + draw(&seed, 800);
        search_in(&p, offers, count, limit, 90);
        size_t found = fit_search_rank(&search, ranked);
        if (measure(&p, &all) <= limit)
            assert_true(found > 0);
        for (size_t i = 0; i < found; i++) {
            assert_true(measure(&p, &search.rows[ranked[i]].set) <= limit);
            if (i > 0)
                assert_true(fit_set_numbers(&search, &search.rows[ranked[i - 1]].set) <=
                            fit_set_numbers(&search, &search.rows[ranked[i]].set));
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switch_is_enough),
        cmocka_unit_test(test_weakest_strength),
        cmocka_unit_test(test_first_strength),
        cmocka_unit_test(test_refuted_strength),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_unknown_work),
        cmocka_unit_test(test_copies_have_a_price),
        cmocka_unit_test(test_switches_join),
        cmocka_unit_test(test_peak_moves),
        cmocka_unit_test(test_best_is_thin),
        cmocka_unit_test(test_two_peaks),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_nothing_fits),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
