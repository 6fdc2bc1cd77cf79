/* SPDX-License-Identifier: Apache-2.0 */

/* Measure allocating, filling and freeing aligned tensors. Other mallocs are measured in
   a child process, started by `drystone run` as any program would be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/child.h"
#include "base/command.h"
#include "base/report.h"
#include "machine/pages_bench.h"

#define ALIGNMENT 64 /* alignment of PyTorch's CPU allocator, in bytes */
#define TIMES_MAX 64
#define CHILD_ROUNDS_MAX 3

uint64_t
bench_malloc_bytes(size_t index)
{
    static const uint64_t mib[BENCH_SIZES] = {1, 6, 32, 64};
    return mib[index] << 20;
}

int
bench_measure_malloc(double ns[BENCH_SIZES])
{
    static const size_t times[BENCH_SIZES] = {TIMES_MAX, 32, 16, 10};
    for (size_t k = 0; k < BENCH_SIZES; k++) {
        double values[TIMES_MAX];
        uint64_t bytes = bench_malloc_bytes(k);
        /* two warm-up iterations, overwritten later */
        for (size_t i = 0; i < times[k] + 2; i++) {
            void *at;
            double begin = bench_now_ns();
            if (posix_memalign(&at, ALIGNMENT, bytes) != 0)
                return report_memory("pages", NULL);
            memset(at, (int)i, bytes);
            /* keeps the compiler from removing the memset() */
            __asm__ volatile("" : : "r"(at) : "memory");
            free(at);
            values[i % times[k]] = bench_now_ns() - begin;
        }
        ns[k] = bench_median(values, times[k]);
    }
    return EXIT_FINE;
}

/* --- children ----------------------------------------------------------------------------- */

#define WORDS_MAX 32

struct arguments {
    char *list[WORDS_MAX + 1];
    size_t count;
};

static void
add_argument(struct arguments *w, const char *word)
{
    if (w->count < WORDS_MAX)
        /* the cast is safe: exec does not modify the words */
        w->list[w->count++] = (char *)(uintptr_t)word;
    w->list[w->count] = NULL;
}

static void
make_arguments(struct arguments *w, const struct bench_malloc *m)
{
    static const char self[] = "/proc/self/exe";
    static const char *const before[] = {"run",  "--quiet",       "--node",
                                         "none", "--omp-threads", "keep"};
    static const char *const measure[] = {"pages",  "--bench", "--only",
                                          "malloc", "--here",  "--json"};
    w->count = 0;
    add_argument(w, self);
    for (size_t i = 0; m->is_run && i < sizeof before / sizeof *before; i++)
        add_argument(w, before[i]);
    for (size_t i = 0; m->is_run && i < 2 && m->options[i]; i++)
        add_argument(w, m->options[i]);
    if (m->is_run) {
        add_argument(w, "--");
        add_argument(w, self);
    }
    for (size_t i = 0; i < sizeof measure / sizeof *measure; i++)
        add_argument(w, measure[i]);
}

/* Clear variables that configure a malloc, so that each child has the defaults. */
static void
clear_variables(void)
{
    static const char *const names[] = {"LD_PRELOAD",
                                        "MALLOC_CONF",
                                        "GLIBC_TUNABLES",
                                        "MALLOC_ARENA_MAX",
                                        "MALLOC_TOP_PAD_",
                                        "MALLOC_MMAP_THRESHOLD_",
                                        "MALLOC_MMAP_MAX_",
                                        "MALLOC_TRIM_THRESHOLD_",
                                        "TCMALLOC_RELEASE_RATE",
                                        "MIMALLOC_PURGE_DELAY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static int
become(void *arguments)
{
    char **argv = arguments;
    clear_variables();
    execv(argv[0], argv);
    return EXIT_MACHINE;
}

/* Run a child and read the figures that it prints. False: it failed. */
static bool
ask_child(const struct bench_malloc *m, double ns[BENCH_SIZES])
{
    struct arguments arguments;
    struct child_work work = {.print = become, .self = arguments.list};
    struct child_output o;
    make_arguments(&arguments, m);
    if (!child_run(&work, &o))
        return false;
    json_t *root = json_loadb(o.text, o.length - o.error_length, 0, NULL);
    const json_t *list = json_object_get(root, "here");
    bool is_whole = o.code == EXIT_FINE && json_array_size(list) == BENCH_SIZES;
    for (size_t i = 0; i < BENCH_SIZES && is_whole; i++) {
        ns[i] = json_number_value(json_object_get(json_array_get(list, i), "ns"));
        is_whole = ns[i] > 0;
    }
    json_decref(root);
    free(o.text);
    return is_whole;
}

static void
measure_child(struct bench_malloc *m, size_t rounds)
{
    double all[BENCH_SIZES][CHILD_ROUNDS_MAX];
    for (size_t r = 0; r < rounds; r++) {
        double ns[BENCH_SIZES];
        if (!ask_child(m, ns))
            return;
        for (size_t i = 0; i < BENCH_SIZES; i++)
            all[i][r] = ns[i];
    }
    for (size_t i = 0; i < BENCH_SIZES; i++)
        m->ns[i] = bench_median(all[i], rounds);
    m->is_measured = true;
}

int
bench_measure_mallocs(struct bench *bench)
{
    static const struct bench_malloc all[BENCH_MALLOCS] = {
        {.name = "as it is"},
        {.name = "run", .is_run = true},
        {.name = "run --profile throughput",
         .is_run = true,
         .options = {"--profile", "throughput"}},
        {.name = "run --profile many-workers",
         .is_run = true,
         .options = {"--profile", "many-workers"}},
        {.name = "run --malloc glibc", .is_run = true, .options = {"--malloc", "glibc"}},
        {.name = "run --malloc jemalloc",
         .is_run = true,
         .options = {"--malloc", "jemalloc"}},
        {.name = "run --malloc tcmalloc",
         .is_run = true,
         .options = {"--malloc", "tcmalloc"}},
        {.name = "run --malloc mimalloc",
         .is_run = true,
         .options = {"--malloc", "mimalloc"}},
    };
    for (size_t i = 0; i < BENCH_MALLOCS; i++) {
        struct bench_malloc *m = &bench->mallocs[bench->malloc_count++];
        *m = all[i];
        measure_child(m, bench->rounds < CHILD_ROUNDS_MAX ? bench->rounds
                                                          : CHILD_ROUNDS_MAX);
        progress_update(&bench->progress, ++bench->step);
    }
    if (bench->mallocs[0].is_measured)
        return EXIT_FINE;
    return report_failure("pages", NULL, EXIT_MACHINE, "cannot start itself as a child");
}
