/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_pages [MIB]: what pages of each kind cost and give on this machine, medians of some
 * rounds: filling by dry_pages_create, destroying, random loads; beside them memset of memory
 * that is there already, by as many threads, which no filling can beat by much, and a plain
 * mmap() touched page by page. One untimed round of each comes first: under a hypervisor the first
 * use of memory pays for the host's pages.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <drystone/pages.h>

#define ROUNDS 7
#define LOADS 4000000
#define THREADS_MAX 64

struct round {
    double fill, set, destroy, load_ns, huge_percent;
};

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

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

static double
set_all(const struct dry_pages_info *info)
{
    pthread_t threads[THREADS_MAX];
    struct part parts[THREADS_MAX];
    uint32_t count = info->thread_count < THREADS_MAX ? info->thread_count : THREADS_MAX;
    double begin = now();
    for (uint32_t i = 0; i < count; i++) {
        parts[i].begin = (char *)info->address + info->bytes / count * i;
        parts[i].bytes = info->bytes / count;
        if (pthread_create(&threads[i], NULL, set_part, &parts[i]) != 0)
            exit(1);
    }
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return now() - begin;
}

/* Nanoseconds a load, each independent of the others. */
static double
load_at_random(const struct dry_pages_info *info)
{
    const uint64_t *words = info->address;
    uint64_t count = info->bytes / sizeof *words, x = 88172645463325252, sum = 0;
    double begin = now();
    for (int i = 0; i < LOADS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += words[(x >> 32) * count >> 32];
    }
    double seconds = now() - begin;
    return sum == 1 ? 0 : seconds / LOADS * 1e9;
}

static struct round
run_round(enum dry_pages_kind kind, uint64_t bytes)
{
    struct dry_pages_options options;
    struct dry_pages *pages;
    struct dry_pages_info info;
    struct dry_error err;
    dry_pages_options_init(&options);
    options.bytes = bytes;
    options.kind = kind;
    if (dry_pages_create(&options, &pages, NULL, &err) != DRY_OK) {
        fprintf(stderr, "bench_pages: %s\n", err.text);
        exit(1);
    }
    dry_pages_get_info(pages, &info);
    struct round r = {
        .fill = (double)info.populate_ns / 1e9,
        .set = set_all(&info),
        .load_ns = load_at_random(&info),
        .huge_percent = 100.0 * (double)info.huge_bytes / (double)info.bytes,
    };
    double begin = now();
    dry_pages_destroy(pages);
    r.destroy = now() - begin;
    return r;
}

static double
touch_plain(uint64_t bytes)
{
    double begin = now();
    volatile char *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(1);
    for (uint64_t i = 0; i < bytes; i += 4096)
        at[i] = 1;
    double seconds = now() - begin;
    munmap((void *)(uintptr_t)at, bytes);
    return seconds;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
median(const struct round *rounds, size_t offset)
{
    double values[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++)
        memcpy(&values[i], (const char *)&rounds[i] + offset, sizeof values[i]);
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void
print_row(const char *name, const struct round *rounds, double per_gib)
{
    printf("%-14s%10.0f%14.0f%12.1f%12.1f%8.0f\n", name,
           median(rounds, offsetof(struct round, fill)) * per_gib,
           median(rounds, offsetof(struct round, set)) * per_gib,
           median(rounds, offsetof(struct round, destroy)) * per_gib,
           median(rounds, offsetof(struct round, load_ns)),
           median(rounds, offsetof(struct round, huge_percent)));
}

int
main(int count, char **arguments)
{
    uint64_t mib = count > 1 ? strtoull(arguments[1], NULL, 10) : 2048;
    if (mib == 0 || mib > 32768) /* words are counted in 32 bits */
        return 2;
    uint64_t bytes = mib << 20;
    struct round base[ROUNDS], huge[ROUNDS];
    double plain[ROUNDS], per_gib = 1024.0 / (double)mib * 1e3;
    (void)run_round(DRY_PAGES_BASE, bytes);
    (void)run_round(DRY_PAGES_TRANSPARENT, bytes);
    for (int i = 0; i < ROUNDS; i++) {
        base[i] = run_round(DRY_PAGES_BASE, bytes);
        huge[i] = run_round(DRY_PAGES_TRANSPARENT, bytes);
        plain[i] = touch_plain(bytes);
    }
    qsort(plain, ROUNDS, sizeof *plain, compare);
    printf("%" PRIu64 " MiB, medians of %d rounds; ms are a GiB\n", mib, ROUNDS);
    printf("%-14s%10s%14s%12s%12s%8s\n", "pages", "fill ms", "memset ms", "destroy ms",
           "load ns", "% huge");
    print_row("base", base, per_gib);
    print_row("transparent", huge, per_gib);
    printf("%-14s%10.0f  (mmap, touched by one thread)\n", "plain",
           plain[ROUNDS / 2] * per_gib);
    return 0;
}
