/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_pool PAIRS [LIVE_MAX [PLACEMENT]]: measure the cost of an alloc and a free,
 * through the C interface, on the simulated device.
 *
 * A pool is filled with live blocks. It then does PAIRS pairs as a whole (mean_ns), and as
 * many one by one (p50_ns, p99_9_ns, max_ns, less the cost of reading the clock). The figure
 * `reserved` is the most that was reserved, by the most in use. There is one line of JSON for
 * each
 *
 *     placement  paged, torch
 *     sizes      small (most below 64 KiB), training (a few sizes, again and again), wide
 *                (512 bytes to 16 MiB, every octave alike)
 *     order      lifo (bursts of 16, freed backwards), random (a live block goes, another
 *                comes)
 *     live       blocks in use meanwhile: 10^3 to 10^6
 *     streams    of each thread, in turn
 *     threads    each with streams and its share of the live blocks; mean_ns is a pair of
 *                one thread, all of them at work, cpu_ns the processor time it spent on it
 *
 * and for the floor: the C library's mutex beside the pool's lock, taken and given by one
 * thread (a pair needs two of them); a look into a table of so many addresses, and one at
 * a record.
 *
 * Locks are not atomic as long as a process has one thread. So the rows with threads come
 * last, and the row of a single thread is among them: its locks are atomic, too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#include "os/lock.h"
#include "timing.h"

#define BURST 16u
#define THREADS_MAX 4
#define STREAMS_MAX 64
/*
 * The number of sizes drawn before the clock starts, a power of two: more than a period
 * may have (place/forecast/forecast.h).
 */
#define SIZES_COUNT (1u << 21)

enum sizes { SIZES_SMALL, SIZES_TRAINING, SIZES_WIDE };
static const char *const size_names[] = {"small", "training", "wide"};
static const char *const placement_names[] = {"paged", "torch"};

struct setting {
    enum dry_placement placement;
    enum sizes sizes;
    int is_random;
    size_t live, pairs;
    unsigned threads;
    int is_threaded;  /* in a process that has had several, however many work */
    unsigned streams; /* of each, in turn */
};

/* One thread's part. */
struct worker {
    struct dry_pool *pool;
    const struct setting *setting;
    uint64_t random, stream;
    uint64_t *addresses;
    size_t live, next;
    uint64_t *sizes;
    uint32_t *victims;
    uint32_t *times;
    double seconds, cpu_seconds;
    pthread_barrier_t *begin;
    char apart[128]; /* threads do not meet in the lines of their workers */
};

/* splitmix64 */
static uint64_t
random_below(uint64_t *state, uint64_t limit)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % limit;
}

/* --- sizes -------------------------------------------------------------------------------- */

static uint64_t
octaves(uint64_t *random, unsigned from, unsigned to)
{
    uint64_t base = UINT64_C(1) << (from + random_below(random, to - from));
    return base + random_below(random, base);
}

static uint64_t
training_size(uint64_t *random)
{
    static const uint64_t known[] = {
        512,     2048,    4096,    12288,   65536,    786432,
        1048576, 2097152, 3145728, 6291456, 12582912, 25165824,
    };
    uint64_t kind = random_below(random, 100);
    if (kind < 55)
        return known[random_below(random, 5)];
    if (kind < 95)
        return known[5 + random_below(random, 5)];
    return known[10 + random_below(random, 2)];
}

static uint64_t
draw_size(uint64_t *random, enum sizes sizes)
{
    if (sizes == SIZES_TRAINING)
        return training_size(random);
    if (sizes == SIZES_WIDE)
        return octaves(random, 9, 24);
    uint64_t kind = random_below(random, 100);
    if (kind < 90)
        return octaves(random, 9, 16);
    return kind < 99 ? octaves(random, 16, 20) : octaves(random, 20, 24);
}

/* --- pairs -------------------------------------------------------------------------------- */

static uint64_t
alloc(struct worker *w)
{
    uint64_t address = 0;
    uint64_t size = w->sizes[w->next & (SIZES_COUNT - 1)];
    uint64_t stream = w->stream;
    if (w->setting->streams > 1) /* without this, a division is timed, too */
        stream += w->next % w->setting->streams;
    need(dry_pool_alloc(w->pool, size, stream, &address) == DRY_OK, "out of memory");
    return address;
}

static void
give(struct worker *w, uint64_t address)
{
    need(dry_pool_free(w->pool, address) == DRY_OK, "a free was refused");
}

/* Free a live block and take another. */
static void
random_pair(struct worker *w)
{
    uint64_t *at = &w->addresses[w->victims[w->next & (SIZES_COUNT - 1)]];
    give(w, *at);
    *at = alloc(w);
    w->next++;
}

static void
burst(struct worker *w)
{
    uint64_t held[BURST];
    for (unsigned i = 0; i < BURST; i++, w->next++)
        held[i] = alloc(w);
    for (unsigned i = BURST; i-- > 0;)
        give(w, held[i]);
}

static void
do_pairs(struct worker *w, size_t pairs)
{
    for (size_t i = 0; w->setting->is_random && i < pairs; i++)
        random_pair(w);
    for (size_t i = 0; !w->setting->is_random && i < pairs; i += BURST)
        burst(w);
}

/*
 * Time pairs one by one: at its depth in the burst, a pair of lifo is its alloc and its
 * free.
 */
static void
time_pairs(struct worker *w, size_t pairs)
{
    uint64_t held[BURST];
    uint32_t spent[BURST];
    for (size_t i = 0; i < pairs;) {
        if (w->setting->is_random) {
            uint64_t begin = now_ns();
            random_pair(w);
            w->times[i++] = (uint32_t)(now_ns() - begin);
            continue;
        }
        for (unsigned k = 0; k < BURST; k++, w->next++) {
            uint64_t begin = now_ns();
            held[k] = alloc(w);
            spent[k] = (uint32_t)(now_ns() - begin);
        }
        for (unsigned k = BURST; k-- > 0;) {
            uint64_t begin = now_ns();
            give(w, held[k]);
            spent[k] += (uint32_t)(now_ns() - begin);
        }
        for (unsigned k = 0; k < BURST && i < pairs; k++)
            w->times[i++] = spent[k];
    }
}

static void *
work(void *self)
{
    struct worker *w = self;
    for (size_t i = 0; i < w->live; i++, w->next++)
        w->addresses[i] = alloc(w);
    do_pairs(w, w->setting->pairs / 4 + BURST); /* warm */
    pthread_barrier_wait(w->begin);
    uint64_t begin = now_ns(), cpu_begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    do_pairs(w, w->setting->pairs);
    w->cpu_seconds = (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_begin) * 1e-9;
    w->seconds = (double)(now_ns() - begin) * 1e-9;
    return NULL;
}

/* --- one setting -------------------------------------------------------------------------- */

static void
init_worker(struct worker *w, struct dry_pool *pool, const struct setting *s,
            unsigned number, pthread_barrier_t *begin)
{
    *w = (struct worker){.pool = pool,
                         .setting = s,
                         .random = number + 1,
                         .stream = number,
                         .live = s->live / s->threads,
                         .begin = begin};
    w->addresses = take(w->live, sizeof *w->addresses);
    w->sizes = take(SIZES_COUNT, sizeof *w->sizes);
    w->victims = take(SIZES_COUNT, sizeof *w->victims);
    for (size_t i = 0; i < SIZES_COUNT; i++) {
        w->sizes[i] = draw_size(&w->random, s->sizes);
        w->victims[i] = (uint32_t)random_below(&w->random, w->live);
    }
}

static void
finish_worker(struct worker *w)
{
    for (size_t i = 0; i < w->live; i++)
        give(w, w->addresses[i]);
    free(w->addresses);
    free(w->sizes);
    free(w->victims);
}

static void
print_result(const struct setting *s, double mean_ns, double cpu_ns, uint32_t *times,
             uint64_t calls, double reserved)
{
    printf("{\"bench\":\"%s\",\"placement\":\"%s\",\"sizes\":\"%s\",\"order\":\"%s\","
           "\"live\":%zu,\"streams\":%u,\"threads\":%u,\"pairs\":%zu,\"mean_ns\":%.1f,"
           "\"cpu_ns\":%.1f",
           s->is_threaded   ? "threads"
           : s->streams > 1 ? "streams"
                            : "pool",
           placement_names[s->placement], size_names[s->sizes],
           s->is_random ? "random" : "lifo", s->live, s->streams, s->threads, s->pairs,
           mean_ns, cpu_ns);
    if (times) {
        /* Lifo reads the clock four times. */
        print_times(times, s->pairs, s->is_random ? 1 : 2);
    }
    printf(",\"driver_calls\":%llu,\"reserved\":%.3f}\n", (unsigned long long)calls,
           reserved);
    fflush(stdout);
}

/* Measure pairs as a whole in all threads, then one by one in this thread. */
static void
measure(struct dry_pool *pool, const struct setting *s)
{
    struct worker workers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    pthread_barrier_t begin;
    pthread_barrier_init(&begin, NULL, s->threads);
    for (unsigned i = 0; i < s->threads; i++)
        init_worker(&workers[i], pool, s, i, &begin);
    for (unsigned i = 1; i < s->threads; i++)
        need(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
    work(&workers[0]);
    double seconds = workers[0].seconds, cpu_seconds = workers[0].cpu_seconds;
    for (unsigned i = 1; i < s->threads; i++) {
        pthread_join(threads[i], NULL);
        seconds += workers[i].seconds;
        cpu_seconds += workers[i].cpu_seconds;
    }
    struct dry_pool_counters before = DRY_INIT(struct dry_pool_counters);
    struct dry_pool_counters after = DRY_INIT(struct dry_pool_counters);
    dry_pool_get_counters(pool, &before);
    uint32_t *times = NULL;
    if (!s->is_threaded) {
        times = workers[0].times = take(s->pairs, sizeof *times);
        time_pairs(&workers[0], s->pairs);
    }
    dry_pool_get_counters(pool, &after);
    struct dry_stats stats;
    dry_pool_get_stats(pool, &stats);
    double done = (double)s->pairs * s->threads * 1e-9;
    print_result(s, seconds / done, cpu_seconds / done, times,
                 after.driver_calls - before.driver_calls,
                 (double)stats.reserved_bytes.all.peak /
                     (double)stats.allocated_bytes.all.peak);
    for (unsigned i = 0; i < s->threads; i++)
        finish_worker(&workers[i]);
    free(times);
    pthread_barrier_destroy(&begin);
}

static void
run(const struct setting *s)
{
    struct dry_sim_options sim_options;
    dry_sim_options_init(&sim_options);
    struct dry_sim *sim;
    need(dry_sim_create(&sim_options, &sim, NULL) == DRY_OK, "no device");
    struct dry_pool_options options;
    dry_pool_options_init(&options);
    options.device = dry_sim_get_device(sim);
    options.placement = s->placement;
    struct dry_pool *pool;
    struct dry_error err;
    if (dry_pool_create(&options, &pool, &err) == DRY_OK) {
        measure(pool, s);
        dry_pool_destroy(pool);
    } else {
        fprintf(stderr, "bench_pool: %s\n", err.text);
    }
    dry_sim_destroy(sim);
}

/* --- locks -------------------------------------------------------------------------------- */

static void
compare_locks(size_t pairs, const char *threads)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct dryi_lock lock;
    dryi_lock_init(&lock);
    uint64_t begin = now_ns();
    for (size_t i = 0; i < pairs; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    uint64_t middle = now_ns();
    for (size_t i = 0; i < pairs; i++) {
        dryi_lock_take(&lock);
        dryi_lock_give(&lock);
    }
    uint64_t end = now_ns();
    dryi_lock_finish(&lock);
    printf("{\"bench\":\"lock\",\"process\":\"%s\",\"pairs\":%zu,\"mutex_ns\":%.1f,"
           "\"own_ns\":%.1f}\n",
           threads, pairs, (double)(middle - begin) / (double)pairs,
           (double)(end - middle) / (double)pairs);
}

/* --- the floor ---------------------------------------------------------------------------- */

#define SLOT_BYTES 32u   /* of the pointer table, for each block alive: it is half full */
#define RECORD_BYTES 64u /* of a block */

/*
 * Time a load that depends on the one before, anywhere in so much memory for each block
 * alive.
 */
static double
chase(size_t live, size_t bytes, size_t loads)
{
    size_t *next = take(live, bytes);
    size_t step = bytes / sizeof *next;
    uint64_t random = 1;
    for (size_t i = 0; i < live; i++)
        next[i * step] = i;
    for (size_t i = live; i-- > 1;) { /* one cycle through all (Sattolo, 1986) */
        size_t other = random_below(&random, i), kept = next[i * step];
        next[i * step] = next[other * step];
        next[other * step] = kept;
    }
    size_t at = 0;
    uint64_t begin = 0;
    for (size_t i = 0; i < 2 * loads; i++) {
        if (i == loads)
            begin = now_ns();
        at = next[at * step];
    }
    double ns = (double)(now_ns() - begin) / (double)loads;
    need(at < live, "the chase left its memory");
    free(next);
    return ns;
}

/*
 * Measure the least that the free of an unforeseeable block needs: a look into a table of
 * so many addresses, and after it one at the block's record.
 */
static void
measure_floor(size_t live, size_t loads)
{
    double lookup = chase(live, SLOT_BYTES, loads);
    double both = 2 * chase(live, SLOT_BYTES + RECORD_BYTES, loads);
    printf("{\"bench\":\"floor\",\"live\":%zu,\"look_ns\":%.1f,"
           "\"look_and_record_ns\":%.1f}\n",
           live, lookup, both);
}

/* --- all of them -------------------------------------------------------------------------- */

static void
run_all(enum dry_placement placement, size_t pairs, size_t live_max)
{
    for (int sizes = SIZES_SMALL; sizes <= SIZES_WIDE; sizes++) {
        for (size_t live = 1000; live <= live_max; live *= 10) {
            for (int is_random = 0; is_random <= 1; is_random++)
                run(&(struct setting){placement, (enum sizes)sizes, is_random, live,
                                      pairs, 1, 0, 1});
        }
    }
    for (unsigned streams = 8; streams <= STREAMS_MAX; streams *= 8)
        run(&(struct setting){placement, SIZES_SMALL, 1, 10000, pairs, 1, 0, streams});
}

static void *
do_nothing(void *self)
{
    return self;
}

/* Make this a program with threads, from here on. */
static void
begin_threads(void)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, do_nothing, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}

static void
run_threads(enum dry_placement placement, size_t pairs)
{
    for (int sizes = SIZES_SMALL; sizes <= SIZES_WIDE; sizes++) {
        for (unsigned threads = 1; threads <= THREADS_MAX; threads *= 2)
            run(&(struct setting){placement, (enum sizes)sizes, 1, 10000, pairs, threads,
                                  1, 1});
    }
}

int
main(int argc, char **argv)
{
    size_t pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    size_t live_max = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
    if (pairs < 1000 || argc > 4) {
        fputs("usage: bench_pool PAIRS [LIVE_MAX [PLACEMENT]], at least 1000\n", stderr);
        return 2;
    }
    compare_locks(pairs * 10, "of one thread");
    for (size_t live = 1000; live <= live_max; live *= 10)
        measure_floor(live, pairs);
    for (int p = DRY_PLACEMENT_PAGED; p <= DRY_PLACEMENT_TORCH; p++) {
        if (argc < 4 || strcmp(argv[3], placement_names[p]) == 0)
            run_all((enum dry_placement)p, pairs, live_max);
    }
    begin_threads();
    compare_locks(pairs * 10, "with threads");
    for (int p = DRY_PLACEMENT_PAGED; p <= DRY_PLACEMENT_TORCH; p++) {
        if (argc < 4 || strcmp(argv[3], placement_names[p]) == 0)
            run_threads((enum dry_placement)p, pairs);
    }
    return 0;
}
