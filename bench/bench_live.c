/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_live MODE PLACEMENT LIVE MS: a page that is updated 1,000 times a second, beside none.
 *
 * A pool on the simulated device has LIVE blocks, and pairs of a free and an alloc of random ones
 * are made for MS milliseconds. One line of JSON has the pairs, the time of a pair by the clock, and
 * the processor time of the whole process a pair, the updating thread's included.
 *
 *     alone    nothing else
 *     self     the program updates its page itself
 *     idle     a second thread that sleeps: locks are atomic now
 *     tick     a second thread that wakes as often as the next one, and does nothing
 *     thread   dry_live_start() updates the page
 *
 * The clock is read as often in all of them. A process has one mode, for it never is of one thread
 * again.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <drystone/live.h>
#include <drystone/sim.h>

#include "timing.h"

#define PAIRS_PER_ROUND 32
#define INTERVAL_NS 1000000

struct bench {
    const char *mode;
    struct dry_sim *sim;
    struct dry_pool *pool;
    struct dry_live *live;
    uint64_t *addresses;
    size_t count;
    uint64_t random;
};

/* splitmix64 */
static uint64_t
random_below(struct bench *b, uint64_t limit)
{
    uint64_t x = b->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % limit;
}

static uint64_t
alloc(struct bench *b)
{
    static const uint64_t sizes[] = {512,   2048,   4096,    12288,
                                     65536, 786432, 1048576, 2097152};
    uint64_t address = 0;
    need(dry_pool_alloc(b->pool, sizes[random_below(b, 8)], 0, &address) == DRY_OK,
         "out of memory");
    return address;
}

static void
do_pairs(struct bench *b)
{
    for (unsigned i = 0; i < PAIRS_PER_ROUND; i++) {
        uint64_t *at = &b->addresses[random_below(b, b->count)];
        need(dry_pool_free(b->pool, *at) == DRY_OK, "a free was refused");
        *at = alloc(b);
    }
}

/* --- modes -------------------------------------------------------------------------------- */

static void
show(struct bench *b)
{
    uint32_t number;
    need(dry_live_create(NULL, &b->live, NULL) == DRY_OK, "no page in /dev/shm");
    need(dry_live_add_pool(b->live, "bench", 0, b->pool, &number, NULL) == DRY_OK,
         "no source");
}

static void *
sleep_on(void *self)
{
    (void)self;
    pause();
    return NULL;
}

static void *
tick(void *self)
{
    (void)self;
    struct timespec rest = {.tv_nsec = INTERVAL_NS};
    for (;;)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    return NULL;
}

static void
begin_mode(struct bench *b)
{
    pthread_t thread;
    if (strcmp(b->mode, "self") == 0)
        show(b);
    if (strcmp(b->mode, "idle") == 0)
        need(pthread_create(&thread, NULL, sleep_on, NULL) == 0, "no thread");
    if (strcmp(b->mode, "tick") == 0)
        need(pthread_create(&thread, NULL, tick, NULL) == 0, "no thread");
    if (strcmp(b->mode, "thread") == 0) {
        show(b);
        need(dry_live_start(b->live, INTERVAL_NS / 1000, NULL) == DRY_OK, "no thread");
    }
}

static uint64_t
run_for(struct bench *b, uint64_t ns)
{
    bool updates = strcmp(b->mode, "self") == 0;
    uint64_t pairs = 0, now = now_ns(), end = now + ns, due = now;
    for (; now < end; now = now_ns(), pairs += PAIRS_PER_ROUND) {
        if (now >= due) {
            due = now + INTERVAL_NS;
            if (updates)
                dry_live_update(b->live);
        }
        do_pairs(b);
    }
    return pairs;
}

/* --- one run ------------------------------------------------------------------------------ */

static void
make_pool(struct bench *b, const char *placement)
{
    struct dry_sim_options sim_options;
    struct dry_pool_options options;
    dry_sim_options_init(&sim_options);
    need(dry_sim_create(&sim_options, &b->sim, NULL) == DRY_OK, "no device");
    dry_pool_options_init(&options);
    options.device = dry_sim_get_device(b->sim);
    if (strcmp(placement, "torch") == 0)
        options.placement = DRY_PLACEMENT_TORCH;
    need(dry_pool_create(&options, &b->pool, NULL) == DRY_OK, "no pool");
    b->addresses = take(b->count, sizeof *b->addresses);
    for (size_t i = 0; i < b->count; i++)
        b->addresses[i] = alloc(b);
}

static void
finish(struct bench *b)
{
    dry_live_destroy(b->live);
    for (size_t i = 0; i < b->count; i++)
        need(dry_pool_free(b->pool, b->addresses[i]) == DRY_OK, "a free was refused");
    dry_pool_destroy(b->pool);
    dry_sim_destroy(b->sim);
    free(b->addresses);
}

int
main(int argc, char **argv)
{
    need(argc == 5, "usage: bench_live MODE PLACEMENT LIVE MS");
    struct bench b = {.mode = argv[1], .count = strtoull(argv[3], NULL, 10)};
    uint64_t ns = strtoull(argv[4], NULL, 10) * 1000000;
    make_pool(&b, argv[2]);
    begin_mode(&b);
    run_for(&b, ns / 8); /* warm */
    uint64_t begun = now_ns(), cpu_begun = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t pairs = run_for(&b, ns);
    double cpu = (double)(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_begun);
    double wall = (double)(now_ns() - begun);
    printf("{\"mode\":\"%s\",\"pairs\":%llu,\"wall_ns\":%.3f,\"cpu_ns\":%.3f}\n", b.mode,
           (unsigned long long)pairs, wall / (double)pairs, cpu / (double)pairs);
    finish(&b);
    return 0;
}
