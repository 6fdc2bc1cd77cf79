/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every place under random programs, see place_ops.h.
 *
 * DRY_TEST_SEED=N begins with that seed, DRY_TEST_ROUNDS=N makes that many programs. The
 * seed of the round that runs is printed when it fails (the process ends by abort()).
 *
 *     prop_paged --ops 100000000 --seed 1 [--place torch]
 *
 * is the long run: sessions of a million calls each, everything looked at now and then,
 * the overlap of blocks and the order of streams at every call; progress and a summary on
 * standard output.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "prop/place_ops.h"
#include "support/random.h"

#define ROUNDS 1500
#define STEPS_MAX 600
#define SESSION_CALLS 1000000
#define SURVEY_EVERY 1021 /* in the long run */

static uint64_t seed_now;

static void
print_seed(int signal_number)
{
    char text[64];
    int n = snprintf(text, sizeof text, "DRY_TEST_SEED=%llu DRY_TEST_ROUNDS=1\n",
                     (unsigned long long)seed_now);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(2);
    signal(signal_number, SIG_DFL); /* and end by it */
    raise(signal_number);
}

static void
watch_signals(void (*handler)(int))
{
    signal(SIGABRT, handler);
    signal(SIGSEGV, handler);
    signal(SIGFPE, handler);
    signal(SIGBUS, handler);
}

static uint64_t
number_or(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void
make_header(struct random *random, uint8_t header[PLACE_OPS_HEADER])
{
    for (int i = 0; i < PLACE_OPS_HEADER; i++)
        header[i] = (uint8_t)(random_next(random) >> 24);
}

static void
make_step(struct random *random, uint8_t step[PLACE_OPS_STEP])
{
    uint64_t bits = random_next(random);
    for (int i = 0; i < PLACE_OPS_STEP; i++)
        step[i] = (uint8_t)(bits >> (8 * i));
}

static void
run_session(const struct place_ops_options *options, struct random *random,
            uint64_t calls, struct place_ops_tally *tally)
{
    uint8_t header[PLACE_OPS_HEADER], step[PLACE_OPS_STEP];
    make_header(random, header);
    struct place_ops *ops = place_ops_create(options, header);
    for (uint64_t i = 0; i < calls; i++) {
        make_step(random, step);
        place_ops_step(ops, step);
    }
    place_ops_destroy(ops, tally);
}

static void
run_rounds(enum place_kind kind)
{
    uint64_t first = number_or("DRY_TEST_SEED", 1),
             rounds = number_or("DRY_TEST_ROUNDS", ROUNDS);
    struct place_ops_options options = {.kind = kind, .survey_every = 1};
    watch_signals(print_seed);
    for (seed_now = first; seed_now < first + rounds; seed_now++) {
        struct random random;
        random_init(&random, seed_now);
        struct place_ops_tally tally;
        run_session(&options, &random, random_below(&random, STEPS_MAX), &tally);
    }
    watch_signals(SIG_DFL);
}

static void
torch_keeps_the_contract(void **state)
{
    (void)state;
    run_rounds(PLACE_TORCH);
}

static void
paged_keeps_the_contract(void **state)
{
    (void)state;
    run_rounds(PLACE_PAGED);
}

/* The same program, the same addresses: nothing depends on where our records lie. */
static void
places_are_deterministic(void **state)
{
    (void)state;
    for (int kind = PLACE_TORCH; kind <= PLACE_PAGED; kind++) {
        struct place_ops_options options = {.kind = (enum place_kind)kind,
                                            .survey_every = 100};
        for (uint64_t seed = 1; seed <= 50; seed++) {
            struct place_ops_tally tallies[2];
            for (int i = 0; i < 2; i++) {
                struct random random;
                random_init(&random, seed);
                run_session(&options, &random, 1000, &tallies[i]);
            }
            assert_int_equal(tallies[0].allocs, tallies[1].allocs);
            assert_true(tallies[0].digest == tallies[1].digest);
        }
    }
}

/* ---- the long run ---- */

static void
add_tally(struct place_ops_tally *sum, const struct place_ops_tally *one)
{
    sum->calls += one->calls;
    sum->allocs += one->allocs;
    sum->frees += one->frees;
    sum->no_space += one->no_space;
    sum->finals += one->finals;
    sum->pool_allocs += one->pool_allocs;
    sum->faults += one->faults;
    sum->surveys += one->surveys;
    sum->findings += one->findings;
    if (sum->record_bytes < one->record_bytes)
        sum->record_bytes = one->record_bytes;
    if (sum->address_bytes < one->address_bytes)
        sum->address_bytes = one->address_bytes;
    sum->remapped += one->remapped;
    sum->reused_ordered += one->reused_ordered;
    sum->reused_passed += one->reused_passed;
    sum->reused_waiting += one->reused_waiting;
}

static void
print_tally(const struct place_ops_tally *t, double seconds)
{
    printf("records at most %" PRIu64 " KiB, addresses at most %" PRIu64 " GiB\n",
           t->record_bytes >> 10, t->address_bytes >> 30);
    printf("%" PRIu64 " calls in %.0f s (%.2f us each): %" PRIu64 " allocs (%" PRIu64
           " in private\npools), %" PRIu64 " frees, %" PRIu64 " out of memory, %" PRIu64
           " of them asked again, %" PRIu64 " faults,\n%" PRIu64
           " pages remapped, reused across streams: %" PRIu64 " ordered, %" PRIu64
           " passed,\n%" PRIu64 " waiting; looked at everything %" PRIu64
           " times; %" PRIu64 " findings\n",
           t->calls, seconds, t->calls ? seconds * 1e6 / (double)t->calls : 0.0,
           t->allocs, t->pool_allocs, t->frees, t->no_space, t->finals, t->faults,
           t->remapped, t->reused_ordered, t->reused_passed, t->reused_waiting,
           t->surveys, t->findings);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
run_long(enum place_kind kind, uint64_t calls, uint64_t seed)
{
    struct place_ops_options options = {.kind = kind, .survey_every = SURVEY_EVERY};
    struct place_ops_tally sum = {0};
    double begin = now();
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    watch_signals(print_seed);
    for (seed_now = seed; sum.calls < calls; seed_now++) {
        struct random random;
        random_init(&random, seed_now);
        uint64_t left = calls - sum.calls;
        struct place_ops_tally one;
        run_session(&options, &random, left < SESSION_CALLS ? left : SESSION_CALLS, &one);
        add_tally(&sum, &one);
        if (is_terminal) {
            printf("\r%5.1f %%", 100.0 * (double)sum.calls / (double)calls);
            fflush(stdout);
        }
    }
    if (is_terminal)
        printf("\r");
    print_tally(&sum, now() - begin);
    return 0;
}

static int
usage(void)
{
    fputs("usage: prop_paged [--ops N [--seed N] [--place paged|torch]]\n", stderr);
    return 2;
}

int
main(int argc, char **argv)
{
    uint64_t calls = 0, seed = 1;
    enum place_kind kind = PLACE_PAGED;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return usage();
        if (strcmp(argv[i], "--ops") == 0)
            calls = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--place") == 0)
            kind = strcmp(argv[i + 1], "torch") == 0 ? PLACE_TORCH : PLACE_PAGED;
        else
            return usage();
    }
    if (calls > 0)
        return run_long(kind, calls, seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paged_keeps_the_contract),
        cmocka_unit_test(torch_keeps_the_contract),
        cmocka_unit_test(places_are_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
