/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_plan one|nested|equal|table|full [RUNS] [STAGES] [SHARE]: measure how long
 * planning takes, and how good its plans are.
 *
 * Chains are drawn from a seed. Outputs have 0.3 to 1.3 MB, and 2 to 17 times as much is
 * saved. Forwards take 1 to 3 ms, backwards twice as long. The budget is SHARE of all
 * saved bytes. A line of JSON a measurement; the seconds of every run are those of the
 * process on its processor.
 *
 *     one, nested   dry_plan_create() by these methods, evaluated and with its bound
 *     equal         one, of a chain of equal stages and a loss
 *     table         one table of lower bounds of 500 slots, without a search
 *     full          the plain table over all ranges, O(stages^3 * slots): the yardstick. A
 *                   table alone, without a plan
 */
#include <inttypes.h>
#include <string.h>

#include <drystone/plan.h>

#include "plan/one/plan_one.h"
#include "timing.h"

#define SLOTS 500u
#define EQUAL_OUTPUT UINT64_C(1000000)
#define EQUAL_SAVED UINT64_C(17000000)

struct workload {
    struct dry_chain *chain;
    size_t stages;
    double share;
    uint64_t budget;
    unsigned runs;
};

static double
processor_seconds(void)
{
    return (double)read_clock(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

/* --- chains ------------------------------------------------------------------------------- */

static uint32_t
draw(uint32_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % limit;
}

static void
make_chain(struct workload *w)
{
    uint32_t state = 12345;
    uint64_t base = 1000 * (300 + (uint64_t)draw(&state, 1000)), sum = 0;
    struct dry_chain_frame frame = {.input_gradient_bytes = base};
    need(dry_chain_create(&frame, NULL, &w->chain, NULL) == DRY_OK, "no chain");
    for (size_t i = 0; i < w->stages; i++) {
        base = 1000 * (300 + (uint64_t)draw(&state, 1000));
        uint64_t saved = base * (2 + draw(&state, 16));
        uint64_t forward = 2000 * (500 + (uint64_t)draw(&state, 1000));
        struct dry_stage stage = {.forward_ns = forward,
                                  .backward_ns = 2 * forward,
                                  .output_bytes = base,
                                  .gradient_bytes = base,
                                  .saved_bytes = saved};
        need(dry_chain_add(w->chain, &stage, 1, NULL) == DRY_OK, "no stage");
        sum += saved;
    }
    w->budget = (uint64_t)(w->share * (double)sum);
}

static void
make_equal(struct workload *w)
{
    struct dry_stage stage = {.forward_ns = 1000000,
                              .backward_ns = 2000000,
                              .output_bytes = EQUAL_OUTPUT,
                              .gradient_bytes = EQUAL_OUTPUT,
                              .saved_bytes = EQUAL_SAVED};
    struct dry_stage loss = {.forward_ns = 1000, .backward_ns = 1000};
    need(dry_chain_create(NULL, NULL, &w->chain, NULL) == DRY_OK, "no chain");
    need(dry_chain_add(w->chain, &stage, w->stages, NULL) == DRY_OK, "no stages");
    need(dry_chain_add(w->chain, &loss, 1, NULL) == DRY_OK, "no loss");
    w->budget = (uint64_t)(w->share * (double)(EQUAL_SAVED * w->stages));
}

/* --- lines -------------------------------------------------------------------------------- */

static void
print_head(const struct workload *w, const char *name)
{
    printf("{\"bench\":\"%s\",\"stages\":%zu,\"share\":%g,\"seconds\":[", name, w->stages,
           w->share);
}

static void
print_seconds(unsigned run, double seconds)
{
    printf("%s%.6f", run ? "," : "", seconds);
}

static void
measure_plans(const struct workload *w, const char *name, enum dry_plan_method method)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.method = method;
    options.budget_bytes = w->budget;
    options.slots = SLOTS;
    struct dry_plan_summary s = {.method = method};
    print_head(w, name);
    for (unsigned run = 0; run < w->runs; run++) {
        struct dry_plan *plan;
        struct dry_error err = {.text = ""};
        double begin = processor_seconds();
        enum dry_status status = dry_plan_create(w->chain, &options, &plan, &err);
        print_seconds(run, processor_seconds() - begin);
        need(status == DRY_OK, err.text);
        s = *dry_plan_get_summary(plan);
        dry_plan_destroy(plan);
    }
    double base = (double)s.cost.base_ns;
    printf("],\"slots\":%" PRIu32 ",\"window\":%" PRIu32 ",\"table_bytes\":%" PRIu64
           ",\"time\":%.6f,\"bound\":%.6f,\"used\":%.6f}\n",
           s.slots, s.window, s.table_bytes, (double)s.cost.time_ns / base,
           (double)s.bound_ns / base, (double)s.cost.peak_bytes / (double)w->budget);
}

static void
measure_table(const struct workload *w)
{
    struct dryi_one one;
    need(dryi_one_init(&one, w->chain, NULL, NULL) == DRY_OK, "no stages");
    struct dryi_one_grid grid = {.memory = w->budget,
                                 .slot = (w->budget - 1) / SLOTS + 1};
    print_head(w, "table");
    for (unsigned run = 0; run < w->runs; run++) {
        struct dryi_one_table t;
        double begin = processor_seconds();
        need(dryi_one_table_init(&t, &one, &grid, NULL) == DRY_OK, "no table");
        print_seconds(run, processor_seconds() - begin);
        dryi_one_table_finish(&t);
    }
    printf("],\"slots\":%u}\n", SLOTS);
    dryi_one_finish(&one);
}

/* --- the yardstick ------------------------------------------------------------------------ */

/*
 * The yardstick's table. least[s][t][m] is the extra time of turning back s to t in m
 * slots, sizes rounded up. Either s saves, or a range s to e runs again, with ranges in
 * it.
 */
struct full {
    const struct dry_chain *chain;
    size_t count;
    uint64_t slot;
    float *cells;
};

#define NEVER 1e30f

static float *
cells_of(const struct full *f, size_t s, size_t t)
{
    return f->cells + (s * f->count + t) * (SLOTS + 1);
}

static size_t
up(const struct full *f, uint64_t bytes)
{
    return (size_t)((bytes + f->slot - 1) / f->slot);
}

static void
save_first(const struct full *f, size_t s, size_t t)
{
    const struct dry_stage *stage = dry_chain_get_stage(f->chain, s);
    const struct dry_stage *last = dry_chain_get_stage(f->chain, t);
    uint64_t before = s ? dry_chain_get_stage(f->chain, s - 1)->gradient_bytes
                        : dry_chain_get_frame(f->chain)->input_gradient_bytes;
    size_t held = up(f, stage->saved_bytes);
    size_t back = up(f, stage->gradient_bytes) + up(f, before);
    size_t there = up(f, last->gradient_bytes);
    float *to = cells_of(f, s, t);
    for (size_t m = held + (back > there ? back : there); m <= SLOTS; m++)
        to[m] = s == t ? 0 : cells_of(f, s + 1, t)[m - held];
}

static void
repeat_first(const struct full *f, size_t s, size_t t)
{
    float *to = cells_of(f, s, t), time = 0;
    size_t first = 0, before = 0;
    size_t there = up(f, dry_chain_get_stage(f->chain, t)->gradient_bytes);
    for (size_t e = s; e < t; e++) {
        const struct dry_stage *stage = dry_chain_get_stage(f->chain, e);
        size_t held = up(f, stage->output_bytes);
        time += (float)stage->forward_ns * 1e-6f;
        first = before + held + there > first ? before + held + there : first;
        before = held;
        const float *inner = cells_of(f, s, e), *rest = cells_of(f, e + 1, t);
        for (size_t m = first; m <= SLOTS; m++) {
            float sum = inner[m] + rest[m - held] + time;
            to[m] = sum < to[m] ? sum : to[m];
        }
    }
}

static void
fill_full(const struct full *f)
{
    for (size_t length = 1; length <= f->count; length++) {
        for (size_t s = 0; s + length <= f->count; s++) {
            size_t t = s + length - 1;
            float *to = cells_of(f, s, t);
            for (size_t m = 0; m <= SLOTS; m++)
                to[m] = NEVER;
            save_first(f, s, t);
            repeat_first(f, s, t);
        }
    }
}

static void
measure_full(const struct workload *w)
{
    struct full f = {
        .chain = w->chain, .count = w->stages, .slot = (w->budget - 1) / SLOTS + 1};
    size_t cells = f.count * f.count * (SLOTS + 1);
    f.cells = take(cells, sizeof *f.cells);
    print_head(w, "full");
    double base = (double)dry_chain_get_time(w->chain) * 1e-6, extra = 0;
    for (unsigned run = 0; run < w->runs; run++) {
        double begin = processor_seconds();
        fill_full(&f);
        print_seconds(run, processor_seconds() - begin);
        extra = (double)cells_of(&f, 0, f.count - 1)[SLOTS];
    }
    printf("],\"slots\":%u,\"table_bytes\":%zu,\"time\":%.6f}\n", SLOTS,
           cells * sizeof *f.cells, 1 + extra / base);
    free(f.cells);
}

int
main(int argc, char **argv)
{
    need(argc > 1, "bench_plan one|nested|equal|table|full [RUNS] [STAGES] [SHARE]");
    const char *what = argv[1];
    struct workload w = {.runs = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5,
                         .stages = argc > 3 ? strtoul(argv[3], NULL, 10) : 1000,
                         .share = argc > 4 ? strtod(argv[4], NULL) : 0.15};
    need(w.runs > 0 && w.stages > 0 && w.stages < DRY_CHAIN_STAGES_MAX && w.share > 0,
         "what are these numbers?");
    if (strcmp(what, "equal") == 0)
        make_equal(&w);
    else
        make_chain(&w);
    if (strcmp(what, "nested") == 0)
        measure_plans(&w, what, DRY_METHOD_NESTED);
    else if (strcmp(what, "table") == 0)
        measure_table(&w);
    else if (strcmp(what, "full") == 0)
        measure_full(&w);
    else
        measure_plans(&w, what, DRY_METHOD_ONE_LEVEL);
    dry_chain_destroy(w.chain);
    return 0;
}
