/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_recorded PAIRS FILE...: measure the cost of the calls of recorded programs in a
 * pool.
 * bench_recorded steps FILE EVENT...: measure the same for a program in steps that repeat,
 * which begin at these events.
 *
 * The allocs and frees of a trace run in their order and on their streams, through the C
 * interface on the simulated device. They run again and again until there were PAIRS of
 * them; a pair is an alloc and the free of that block. One line of JSON a file and
 * placement says the mean of a round as a whole. It then says the times of the same calls
 * one by one: p50_ns, p99_9_ns and max_ns, less the cost of reading the clock. At last it
 * says how many requests are of 256 KiB or less. The two rounds before the measured ones
 * are not counted: programs warm up, too.
 *
 * With steps, the first ten are not counted. A break follows each step, in which a plan
 * is packed beside the program: a program takes a tenth of a second for a step. The first
 * half of the other steps is measured as a whole, the second half call by call. The line
 * also says how many requests lay where the plan has them.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <drystone/pool.h>
#include <drystone/sim.h>
#include <drystone/trace.h>

#include "timing.h"

#define SMALL_BYTES ((uint64_t)256 << 10)
#define WARM_ROUNDS 2
#define WARM_STEPS 10
#define BREAK_US 100000
static const char *const placement_names[] = {"paged", "torch"};

/* A call; with a size of 0, the free of the block that call `pair` asked for. */
struct call {
    uint64_t size, stream;
    uint32_t pair;
};

struct calls {
    struct call *calls;
    size_t count, pairs, live_max, small;
    size_t *steps; /* events where they begin, then the calls */
    size_t step_count;
};

struct timing {
    uint64_t *addresses; /* by call */
    uint32_t *times;     /* of pairs */
    size_t count;
    double round_ns;
};

/* --- reading ------------------------------------------------------------------------------ */

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    (void)err;
    ssize_t count = read(*(int *)self, buffer, capacity);
    need(count >= 0, "the file cannot be read");
    *got = (size_t)count;
    return DRY_OK;
}

struct life {
    uint64_t addr;
    uint32_t call; /* 1 + the alloc's; 0: nothing lives there */
};

/* Find the place where the address is or would be, in a table that is never full. */
static struct life *
find_life(struct life *lives, size_t mask, uint64_t addr)
{
    size_t at = (size_t)((addr >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;
    while (lives[at].addr != addr && lives[at].addr != UINT64_MAX)
        at = (at + 1) & mask;
    return &lives[at];
}

/* Collect the calls; blocks that the record does not free are freed at its end. */
static void
collect(const struct dry_trace_view *v, struct calls *c)
{
    size_t slot_count = 1024, live = 0;
    while (slot_count < 4 * v->event_count)
        slot_count *= 2;
    struct life *lives = take(slot_count, sizeof *lives);
    for (size_t i = 0; i < slot_count; i++)
        lives[i].addr = UINT64_MAX;
    c->calls = take(2 * v->event_count, sizeof *c->calls);
    for (size_t i = 0, step = 0; i < v->event_count; i++) {
        if (step < c->step_count && c->steps[step] == i)
            c->steps[step++] = c->count;
        struct life *life = find_life(lives, slot_count - 1, v->addr[i]);
        uint32_t call = (uint32_t)c->count;
        if (v->action[i] == DRY_ACTION_ALLOC && v->size[i] > 0) {
            *life = (struct life){v->addr[i], call + 1};
            c->calls[c->count++] =
                (struct call){v->size[i], v->lanes[v->lane[i]].stream, call};
            c->small += v->size[i] <= SMALL_BYTES;
            live++;
        } else if (v->action[i] == DRY_ACTION_FREE_REQUESTED && life->call > 0) {
            c->calls[c->count++] = (struct call){.pair = life->call - 1};
            life->call = 0;
            live--;
        }
        c->live_max = live > c->live_max ? live : c->live_max;
    }
    c->pairs = live;
    for (size_t i = 0; i < slot_count; i++) {
        if (lives[i].addr != UINT64_MAX && lives[i].call > 0)
            c->calls[c->count++] = (struct call){.pair = lives[i].call - 1};
    }
    c->pairs = c->count / 2;
    free(lives);
}

static void
read_calls(const char *path, struct calls *c)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    need(fd >= 0, path);
    struct dry_source source = {read_file, &fd};
    struct dry_trace *trace;
    struct dry_error err;
    if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK)
        need(0, err.text);
    collect(dry_trace_get_view(trace), c);
    dry_trace_destroy(trace);
    close(fd);
    need(c->pairs > 0, "nothing is allocated in the trace");
}

/* --- calling ------------------------------------------------------------------------------ */

static void
do_call(struct dry_pool *pool, const struct call *call, uint64_t *addresses, size_t at)
{
    enum dry_status status =
        call->size ? dry_pool_alloc(pool, call->size, call->stream, &addresses[at])
                   : dry_pool_free(pool, addresses[call->pair]);
    need(status == DRY_OK, "a call failed");
}

/* Do the calls from one to another. */
static void
do_calls(struct dry_pool *pool, const struct calls *c, size_t from, size_t to,
         const struct timing *t)
{
    for (size_t i = from; i < to; i++)
        do_call(pool, &c->calls[i], t->addresses, i);
}

/* Do the calls, and take the times of pairs both calls of which are among them. */
static void
time_calls(struct dry_pool *pool, const struct calls *c, size_t from, size_t to,
           struct timing *t, uint32_t *spent)
{
    for (size_t i = from; i < to; i++) {
        uint64_t begin = now_ns();
        do_call(pool, &c->calls[i], t->addresses, i);
        uint32_t ns = (uint32_t)(now_ns() - begin);
        if (c->calls[i].size)
            spent[i] = ns;
        else if (c->calls[i].pair >= from)
            t->times[t->count++] = spent[c->calls[i].pair] + ns;
    }
}

static void
measure(struct dry_pool *pool, const struct calls *c, size_t rounds, struct timing *t)
{
    uint32_t *spent = take(c->count, sizeof *spent);
    for (int i = 0; i < WARM_ROUNDS; i++)
        do_calls(pool, c, 0, c->count, t);
    uint64_t begin = now_ns();
    for (size_t i = 0; i < rounds; i++)
        do_calls(pool, c, 0, c->count, t);
    t->round_ns = (double)(now_ns() - begin) / (double)rounds;
    for (size_t i = 0; i < rounds; i++)
        time_calls(pool, c, 0, c->count, t, spent);
    free(spent);
}

/*
 * Return the time of a pair, and in *hinted how many requests of the steps lay where a
 * plan had them.
 */
static double
measure_steps(struct dry_pool *pool, const struct calls *c, struct timing *t,
              double *hinted)
{
    uint32_t *spent = take(c->count, sizeof *spent);
    size_t from = 0, last = c->steps[c->step_count - 1];
    size_t middle = c->steps[(WARM_STEPS + c->step_count) / 2];
    struct dry_pool_counters before = DRY_INIT(struct dry_pool_counters);
    struct dry_pool_counters after = DRY_INIT(struct dry_pool_counters);
    for (size_t step = 0; step <= WARM_STEPS; from = c->steps[step++]) {
        do_calls(pool, c, from, c->steps[step], t);
        usleep(BREAK_US);
    }
    dry_pool_get_counters(pool, &before);
    uint64_t begin = now_ns();
    do_calls(pool, c, from, middle, t);
    double ns = (double)(now_ns() - begin) / ((double)(middle - from) / 2);
    time_calls(pool, c, middle, last, t, spent);
    dry_pool_get_counters(pool, &after);
    *hinted =
        (double)(after.hints_taken - before.hints_taken) / ((double)(last - from) / 2);
    free(spent);
    return ns;
}

static const char *
name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void
print_result(const char *path, enum dry_placement placement, const struct calls *c,
             const struct timing *t)
{
    const char *name = name_of(path);
    printf("{\"bench\":\"recorded\",\"placement\":\"%s\",\"name\":\"%.*s\","
           "\"pairs\":%zu,\"live\":%zu,\"small_share\":%.2f,\"mean_ns\":%.1f",
           placement_names[placement], (int)strcspn(name, "."), name, c->pairs,
           c->live_max, (double)c->small / (double)c->pairs,
           t->round_ns / (double)c->pairs);
    print_times(t->times, t->count, 2);
    printf("}\n");
    fflush(stdout);
}

/* Make a pool; NULL: refused. */
static struct dry_pool *
make_pool(enum dry_placement placement, const char *conf, struct dry_sim **sim)
{
    struct dry_sim_options sim_options;
    dry_sim_options_init(&sim_options);
    need(dry_sim_create(&sim_options, sim, NULL) == DRY_OK, "no device");
    struct dry_pool_options options;
    dry_pool_options_init(&options);
    options.device = dry_sim_get_device(*sim);
    options.placement = placement;
    options.conf = conf;
    struct dry_pool *pool;
    struct dry_error err;
    if (dry_pool_create(&options, &pool, &err) == DRY_OK)
        return pool;
    fprintf(stderr, "bench_recorded: %s\n", err.text);
    dry_sim_destroy(*sim);
    return NULL;
}

static void
run(const char *path, const struct calls *c, enum dry_placement placement, size_t pairs)
{
    struct dry_sim *sim;
    struct dry_pool *pool = make_pool(placement, NULL, &sim);
    if (!pool)
        return;
    size_t rounds = pairs / c->pairs + 1;
    struct timing t = {.addresses = take(c->count, sizeof *t.addresses),
                       .times = take(rounds * c->pairs, sizeof *t.times)};
    measure(pool, c, rounds, &t);
    print_result(path, placement, c, &t);
    dry_pool_destroy(pool);
    dry_sim_destroy(sim);
    free(t.addresses);
    free(t.times);
}

static void
run_steps(const char *path, const struct calls *c, enum dry_placement placement,
          const char *conf)
{
    struct dry_sim *sim;
    struct dry_pool *pool = make_pool(placement, conf, &sim);
    if (!pool)
        return;
    struct timing t = {.addresses = take(c->count, sizeof *t.addresses),
                       .times = take(c->pairs, sizeof *t.times)};
    double hinted, mean_ns = measure_steps(pool, c, &t, &hinted);
    const char *name = name_of(path);
    printf("{\"bench\":\"steps\",\"placement\":\"%s\",\"conf\":\"%s\","
           "\"name\":\"%.*s\",\"pairs\":%zu,\"live\":%zu,\"hinted\":%.3f,"
           "\"mean_ns\":%.1f",
           placement_names[placement], conf ? conf : "", (int)strcspn(name, "."), name,
           c->pairs / c->step_count, c->live_max, hinted, mean_ns);
    print_times(t.times, t.count, 2);
    printf("}\n");
    fflush(stdout);
    dry_pool_destroy(pool);
    dry_sim_destroy(sim);
    free(t.addresses);
    free(t.times);
}

static int
main_of_steps(const char *path, char **events, size_t count)
{
    struct calls c = {.steps = take(count, sizeof *c.steps), .step_count = count};
    for (size_t i = 0; i < count; i++)
        c.steps[i] = strtoul(events[i], NULL, 10);
    read_calls(path, &c);
    run_steps(path, &c, DRY_PLACEMENT_TORCH, NULL);
    run_steps(path, &c, DRY_PLACEMENT_PAGED, "plan:False");
    run_steps(path, &c, DRY_PLACEMENT_PAGED, NULL);
    free(c.steps);
    free(c.calls);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc > 3 + 2 * WARM_STEPS && strcmp(argv[1], "steps") == 0)
        return main_of_steps(argv[2], argv + 3, (size_t)argc - 3);
    size_t pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    if (pairs < 1000 || argc < 3) {
        fputs("usage: bench_recorded PAIRS FILE..., at least 1000\n"
              "       bench_recorded steps FILE EVENT..., at least 21\n",
              stderr);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        struct calls c = {0};
        read_calls(argv[i], &c);
        for (int p = DRY_PLACEMENT_PAGED; p <= DRY_PLACEMENT_TORCH; p++)
            run(argv[i], &c, (enum dry_placement)p, pairs);
        free(c.calls);
    }
    return 0;
}
