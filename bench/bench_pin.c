/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_pin [MIB]: measure the cost of pinning on this machine, with mlock() in the place
 * of a driver's registration.
 *
 * The figures are medians of some rounds, by kind of pages, in pieces of at most 1 GiB.
 * They are filling by one thread, filling by all threads that help, locking the filled
 * memory, and giving it back. Beside them stands a program without this library: its
 * memory is not there yet, and the one call has to fault it in. The last column says how
 * much longer that takes. One untimed round of each comes first: under a hypervisor the
 * first use of memory pays for the host's pages.
 */
#include <sys/mman.h>

#include "host/pinned/pin_make.h"
#include "timing.h"

#define ROUNDS 7
#define PIECE (UINT64_C(1) << 30)
#define MIB_MAX 65536
#define PIECES_MAX (MIB_MAX / 1024)

struct round {
    uint32_t fill_us, lock_us, give_us, all_us;
};

static uint32_t
us_since(uint64_t begin_ns)
{
    return (uint32_t)((now_ns() - begin_ns) / 1000);
}

static struct round
run_round(const struct dryi_pin *pin, uint64_t bytes)
{
    struct dryi_pin_range ranges[PIECES_MAX];
    struct round round = {0};
    size_t count = 0;
    uint64_t fill_ns = 0, begin = now_ns();
    for (uint64_t done = 0; done < bytes; done += ranges[count++].bytes) {
        uint64_t part = bytes - done < PIECE ? bytes - done : PIECE;
        struct dry_error err;
        if (count == PIECES_MAX ||
            pin->take(pin->self, part, -1, &ranges[count], &err) != DRY_OK)
            need(0, count == PIECES_MAX ? "pieces are too small" : err.text);
        struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
        dry_pages_get_info(ranges[count].handle, &info);
        fill_ns += info.populate_ns;
    }
    round.all_us = us_since(begin);
    round.fill_us = (uint32_t)(fill_ns / 1000);
    round.lock_us = round.all_us > round.fill_us ? round.all_us - round.fill_us : 0;
    begin = now_ns();
    while (count > 0)
        pin->give(pin->self, &ranges[--count]);
    round.give_us = us_since(begin);
    return round;
}

/*
 * Time memory that is faulted in by the call that locks it, in one thread, as by
 * cudaHostAlloc.
 */
static struct round
run_plain(uint64_t bytes)
{
    struct round round = {0};
    uint64_t begin = now_ns();
    void *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(at != MAP_FAILED && mlock(at, bytes) == 0, "mlock is refused");
    round.all_us = us_since(begin);
    begin = now_ns();
    munmap(at, bytes);
    round.give_us = us_since(begin);
    return round;
}

static double
median_ms(const struct round *rounds, size_t offset, double per_gib)
{
    uint32_t values[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++)
        values[i] = *(const uint32_t *)(const void *)((const char *)&rounds[i] + offset);
    qsort(values, ROUNDS, sizeof *values, compare_times);
    return values[ROUNDS / 2] / 1000.0 * per_gib;
}

#define COLUMN(rounds, member) median_ms(rounds, offsetof(struct round, member), per_gib)

static void
measure(enum dry_pages_kind kind, uint32_t thread_count, uint64_t bytes)
{
    struct dryi_pin_lock_options o = {.pages = {.kind = kind,
                                                .policy = DRY_PAGES_STRICT,
                                                .thread_count = thread_count}};
    if (kind == DRY_PAGES_TRANSPARENT)
        o.pages.policy = DRY_PAGES_PREFER; /* a few small pages do not matter here */
    struct dryi_pin pin;
    struct dryi_pin_range probe;
    struct round ours[ROUNDS], plain[ROUNDS];
    double per_gib = (double)PIECE / (double)bytes;
    need(dryi_pin_make_lock(&o, &pin, NULL) == DRY_OK, "no memory");
    const char *threads = thread_count ? "one" : "all";
    if (pin.take(pin.self, 2 << 20, -1, &probe, NULL) != DRY_OK) {
        printf("%-13s%8s  there are none\n", dry_pages_kind_name(kind), threads);
        pin.finish(pin.self);
        return;
    }
    pin.give(pin.self, &probe);
    (void)run_round(&pin, bytes);
    (void)run_plain(bytes);
    for (size_t i = 0; i < ROUNDS; i++) {
        ours[i] = run_round(&pin, bytes);
        plain[i] = run_plain(bytes);
    }
    double all = COLUMN(ours, all_us);
    printf("%-13s%8s%10.0f%10.1f%10.1f%10.1f%12.0f%8.1f\n", dry_pages_kind_name(kind),
           threads, COLUMN(ours, fill_us), COLUMN(ours, lock_us), all,
           COLUMN(ours, give_us), COLUMN(plain, all_us), COLUMN(plain, all_us) / all);
    pin.finish(pin.self);
}

int
main(int count, char **arguments)
{
    uint64_t mib = count > 1 ? strtoull(arguments[1], NULL, 10) : 1024;
    if (mib < 64 || mib > MIB_MAX)
        return 2;
    printf("%llu MiB, medians of %d rounds; ms are a GiB\n", (unsigned long long)mib,
           ROUNDS);
    printf("%-13s%8s%10s%10s%10s%10s%12s%8s\n", "pages", "threads", "fill ms", "lock ms",
           "both ms", "give ms", "plain ms", "times");
    for (uint32_t threads = 0; threads < 2; threads++) {
        measure(DRY_PAGES_BASE, threads, mib << 20);
        measure(DRY_PAGES_TRANSPARENT, threads, mib << 20);
        measure(DRY_PAGES_POOL, threads, mib << 20);
    }
    return 0;
}
