/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place/torch against the naive model, on random programs.
 *
 * DRY_TEST_SEED=N replays from one seed, DRY_TEST_ROUNDS=N makes that many programs. The
 * seed of the round that runs is printed when it fails (the process ends by abort()).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/bits.h"
#include "prop/torch_ops.h"

#define ROUNDS 8000
#define STEPS_MAX 400

static uint64_t seed_now;

static void
print_seed(int signal_number)
{
    (void)signal_number;
    char text[64];
    int n = snprintf(text, sizeof text, "DRY_TEST_SEED=%llu DRY_TEST_ROUNDS=1\n",
                     (unsigned long long)seed_now);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(2);
}

static uint64_t
number_or(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t
next_random(uint64_t *state)
{
    return dryi_mix64(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Most options off, most of the time: two bits in three of a random word are taken out.
 */
static void
make_program(uint64_t seed, uint8_t *data, size_t *size)
{
    uint64_t state = seed;
    *size = OPS_HEADER + 3 * (next_random(&state) % STEPS_MAX);
    for (size_t i = 0; i < *size; i++)
        data[i] = (uint8_t)(next_random(&state) >> 24);
    data[1] &= (uint8_t)(next_random(&state) >> 24);
    data[2] &= (uint8_t)(next_random(&state) >> 24);
    data[2] &= (uint8_t)(next_random(&state) >> 24);
}

static void
place_and_model_agree(void **state)
{
    (void)state;
    uint64_t first = number_or("DRY_TEST_SEED", 1),
             rounds = number_or("DRY_TEST_ROUNDS", ROUNDS);
    static uint8_t data[OPS_HEADER + 3 * STEPS_MAX];
    signal(SIGABRT, print_seed);
    for (seed_now = first; seed_now < first + rounds; seed_now++) {
        size_t size;
        make_program(seed_now, data, &size);
        torch_ops_run(data, size);
    }
    signal(SIGABRT, SIG_DFL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(place_and_model_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
