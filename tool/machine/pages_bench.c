/* SPDX-License-Identifier: Apache-2.0 */
/* See pages_bench.h. A round measures one kind of pages once, and rounds alternate
   between the kinds. Each figure is the median over its rounds. */
#include "machine/pages_bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/command.h"
#include "base/now.h"
#include "base/report.h"

#define LOADS 2000000
#define THREADS_MAX 256
#define LOCK_BYTES_MAX                                                                   \
    (UINT64_C(1) << 30) /* more locked memory does not improve the figure, and takes it
                           from other programs */

double
bench_now_ns(void)
{
    return (double)now_ns(CLOCK_MONOTONIC);
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return count % 2 ? values[count / 2]
                     : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* --- one round ---------------------------------------------------------------------------- */

struct part {
    char *begin;
    size_t bytes;
};

static void *
set_part(void *argument)
{
    const struct part *p = argument;
    memset(p->begin, 1, p->bytes);
    return NULL;
}

/* Fill the memory with several threads. If a thread cannot be started, this thread fills
   its range. Returns nanoseconds. */
static double
set_all(void *address, uint64_t bytes, uint32_t thread_count)
{
    pthread_t threads[THREADS_MAX];
    struct part parts[THREADS_MAX];
    uint32_t count = thread_count < THREADS_MAX ? thread_count : THREADS_MAX, started = 0;
    uint64_t each = bytes / count / 4096 * 4096;
    double begin = bench_now_ns();
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (struct part){.begin = (char *)address + each * i,
                                 .bytes = i + 1 < count ? each : bytes - each * i};
    while (started + 1 < count &&
           pthread_create(&threads[started], NULL, set_part, &parts[started]) == 0)
        started++;
    for (uint32_t i = started; i < count; i++)
        set_part(&parts[i]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return bench_now_ns() - begin;
}

/* Map random bits to an index below `count`. Requires count < 2^32. */
static uint64_t
scale(uint64_t x, uint64_t count)
{
    return (x >> 32) * count >> 32;
}

/* Measure independent random loads, in CPU time of this thread: other threads do not
   disturb that clock. */
static double
load_at_random(const uint64_t *words, uint64_t count)
{
    uint64_t x = 88172645463325252, sum = 0;
    uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < LOADS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += words[scale(x, count)];
    }
    double ns = (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
    return sum == 1 ? 0 : ns / LOADS;
}

/* Measure dependent loads: each address is computed from the previously loaded value. */
static double
load_in_chain(const uint64_t *words, uint64_t count)
{
    uint64_t x = 88172645463325252;
    uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < LOADS; i++)
        x = (x ^ words[scale(x, count)]) * UINT64_C(6364136223846793005) +
            1442695040888963407;
    double ns = (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
    return x == 1 ? 0 : ns / LOADS;
}

/* Measure mlock(), the first step of registering memory with a device. The results are 0
   if mlock() is not allowed. */
static void
lock_all(const struct dry_pages_info *info, double *lock_ns, double *unlock_ns)
{
    uint64_t bytes = info->bytes < LOCK_BYTES_MAX ? info->bytes : LOCK_BYTES_MAX;
    double scaled = (double)info->bytes / (double)bytes, begin = bench_now_ns();
    *lock_ns = *unlock_ns = 0;
    if (mlock(info->address, bytes) != 0)
        return;
    *lock_ns = (bench_now_ns() - begin) * scaled;
    begin = bench_now_ns();
    if (munlock(info->address, bytes) == 0)
        *unlock_ns = (bench_now_ns() - begin) * scaled;
}

static int
fill(const struct bench *b, const struct dry_pages_size *size, struct dry_pages **pages)
{
    struct dry_pages_options options;
    struct dry_error err;
    dry_pages_options_init(&options);
    options.bytes = b->bytes;
    options.kind = size->kind;
    options.page_bytes = size->kind == DRY_PAGES_POOL ? size->page_bytes : 0;
    if (dry_pages_create(&options, pages, NULL, &err) != DRY_OK)
        return report_error("pages", NULL, &err);
    return EXIT_FINE;
}

/*
 * Run one round. A hypervisor may reclaim memory within seconds after its guest frees it,
 * and the next fill pays for that. So the memory is filled once before the measurement.
 */
static int
run_round(const struct bench *b, const struct dry_pages_size *size,
          struct bench_pages *round)
{
    struct dry_pages *pages;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    int code = fill(b, size, &pages);
    if (code != EXIT_FINE)
        return code;
    dry_pages_destroy(pages);
    code = fill(b, size, &pages);
    if (code != EXIT_FINE)
        return code;
    dry_pages_get_info(pages, &info);
    uint64_t words = info.bytes / sizeof(uint64_t);
    *round = (struct bench_pages){
        .kind = info.kind,
        .page_bytes = size->page_bytes,
        .huge_bytes = info.kind == DRY_PAGES_POOL ? info.bytes : info.huge_bytes,
        .populate_ns = (double)info.populate_ns,
    };
    round->memset_ns = set_all(info.address, info.bytes, b->thread_count);
    round->load_ns = load_at_random(info.address, words);
    round->chained_ns = load_in_chain(info.address, words);
    lock_all(&info, &round->lock_ns, &round->unlock_ns);
    double begin = bench_now_ns();
    dry_pages_destroy(pages);
    round->unmap_ns = bench_now_ns() - begin;
    bench_measure_pinning(b, size, round);
    return EXIT_FINE;
}

static void *
map_plain(uint64_t bytes)
{
    void *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Measure filling new memory with all threads, the second time, as in run_round(). */
static double
set_new(const struct bench *b)
{
    double ns = 0;
    for (int i = 0; i < 2; i++) {
        void *at = map_plain(b->bytes);
        if (!at)
            return 0;
        ns = set_all(at, b->bytes, b->thread_count);
        munmap(at, b->bytes);
    }
    return ns;
}

static double
touch_new(const struct bench *b)
{
    volatile char *at = map_plain(b->bytes);
    if (!at)
        return 0;
    double begin = bench_now_ns();
    for (uint64_t i = 0; i < b->bytes; i += 4096)
        at[i] = 1;
    double ns = bench_now_ns() - begin;
    munmap((void *)(uintptr_t)at, b->bytes);
    return ns;
}

/* --- all of them -------------------------------------------------------------------------- */

static double
find_median(const struct bench_pages *rounds, size_t count, size_t where)
{
    double values[BENCH_ROUNDS_MAX];
    for (size_t i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&rounds[i] + where, sizeof values[i]);
    return bench_median(values, count);
}

static void
sum_up(struct bench_pages *to, const struct bench_pages *rounds, size_t count)
{
    static const size_t members[] = {offsetof(struct bench_pages, populate_ns),
                                     offsetof(struct bench_pages, memset_ns),
                                     offsetof(struct bench_pages, unmap_ns),
                                     offsetof(struct bench_pages, lock_ns),
                                     offsetof(struct bench_pages, unlock_ns),
                                     offsetof(struct bench_pages, pin_ns),
                                     offsetof(struct bench_pages, unpin_ns),
                                     offsetof(struct bench_pages, load_ns),
                                     offsetof(struct bench_pages, chained_ns)};
    *to = rounds[0];
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        double median = find_median(rounds, count, members[i]);
        memcpy((char *)to + members[i], &median, sizeof median);
    }
    for (size_t i = 1; i < count; i++)
        if (rounds[i].huge_bytes < to->huge_bytes)
            to->huge_bytes = rounds[i].huge_bytes;
}

/* List the page kinds of this machine that can provide `bytes`. */
static size_t
list_kinds(const struct bench *b, struct dry_pages_size kinds[BENCH_KINDS_MAX])
{
    struct dry_pages_size all[DRY_PAGES_SIZES_MAX];
    size_t count = dry_pages_read_sizes(NULL, -1, all), kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].is_off || (all[i].kind == DRY_PAGES_POOL &&
                              all[i].free_count < (b->bytes - 1) / all[i].page_bytes + 1))
            continue;
        kinds[kept++] = all[i];
    }
    return kept;
}

uint64_t
bench_count_steps(const struct bench *bench, bool has_pages, bool has_mallocs)
{
    struct dry_pages_size kinds[BENCH_KINDS_MAX];
    uint64_t steps = has_pages ? list_kinds(bench, kinds) * bench->rounds : 0;
    return steps + (has_mallocs ? BENCH_MALLOCS : 0);
}

struct rounds {
    struct bench_pages of[BENCH_KINDS_MAX][BENCH_ROUNDS_MAX];
    double set_ns[BENCH_ROUNDS_MAX], touch_ns[BENCH_ROUNDS_MAX];
};

static int
measure_rounds(struct bench *b, struct rounds *all)
{
    struct dry_pages_size kinds[BENCH_KINDS_MAX];
    size_t count = list_kinds(b, kinds);
    int code = EXIT_FINE;
    for (size_t r = 0; r < b->rounds && code == EXIT_FINE; r++) {
        for (size_t k = 0; k < count && code == EXIT_FINE; k++) {
            code = run_round(b, &kinds[k], &all->of[k][r]);
            progress_update(&b->progress, ++b->step);
        }
        all->set_ns[r] = set_new(b);
        all->touch_ns[r] = touch_new(b);
    }
    for (size_t k = 0; k < count && code == EXIT_FINE; k++)
        sum_up(&b->kinds[b->kind_count++], all->of[k], b->rounds);
    b->new_memset_ns = bench_median(all->set_ns, b->rounds);
    b->touch_ns = bench_median(all->touch_ns, b->rounds);
    return code;
}

int
bench_measure_pages(struct bench *bench)
{
    struct rounds *all = calloc(1, sizeof *all);
    if (!all)
        return report_memory("pages", NULL);
    bench_open_driver(bench);
    int code = measure_rounds(bench, all);
    dry_pinned_destroy(bench->driver);
    bench->driver = NULL;
    free(all);
    return code;
}
