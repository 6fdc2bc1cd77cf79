/* SPDX-License-Identifier: Apache-2.0 */

/* Loops whose steps make tensors, give them back, and leave some behind. */

#include "cases/scripts_third.h"
#include "cases/model.h"

#define SETUP "setup@task/build.py:19; main@task/main.py:27; <module>@task/main.py:70"
#define STEP "step@task/loop.py:41; main@task/main.py:48; <module>@task/main.py:70"
#define TENSORS_MAX 64
#define BOUND_MAX 12

void
third_load(struct program *p, unsigned count, unsigned mib)
{
    program_in(p, SETUP);
    program_at(p, "to@task/build.py:33");
    for (unsigned i = 0; i < count; i++)
        program_keep(p, program_take(p, mib * MIB));
    program_in(p, STEP);
}

void
third_pass(struct program *p, const char *frames, unsigned count, unsigned mib)
{
    uint32_t made[TENSORS_MAX];
    program_at(p, frames);
    for (unsigned i = 0; i < count; i++)
        made[i] = program_take(p, mib * MIB);
    program_give_all(p, made, count);
    program_wait(p, 6000);
}

/* When a step takes what it leaves: before it gives back the rest, after, or in between. */
enum place { BEFORE_FREES, IN_HOLES, AMONG };

struct loop {
    unsigned weights, weight_mib;
    unsigned steps;
    unsigned made, made_mib, vary_mib; /* a step makes, and gives back at its end */
    unsigned left, left_kib;           /* bytes that a step leaves behind */
    unsigned bound;                    /* for so many steps; 0: for ever */
    enum place place;
    bool has_scopes;
    uint64_t stream;   /* of what is left */
    const char *where; /* the frames of what is left */
    /* After `last_at` steps, and before the next: */
    unsigned last_at, last, last_mib;
};

static unsigned
vary(struct program *p, const struct loop *l)
{
    uint64_t choices = l->vary_mib / 2 + 1;
    return l->made_mib + 2 * (unsigned)random_below(program_random(p), choices);
}

static void
leave(struct program *p, const struct loop *l, unsigned count, uint32_t *left)
{
    program_on(p, l->stream);
    program_at(p, l->where);
    for (unsigned i = 0; i < count; i++) {
        left[i] = program_take(p, l->left_kib * KIB);
        if (l->bound == 0 && !program_is_without(p, DRY_CAUSE_LEAK))
            program_keep(p, left[i]);
    }
    program_on(p, 0);
}

static void
step(struct program *p, const struct loop *l, uint32_t *left)
{
    uint32_t made[TENSORS_MAX];
    unsigned mib = vary(p, l);
    if (l->has_scopes)
        program_begin_scope(p, "ProfilerStep");
    for (unsigned i = 0; i < l->made; i++) {
        program_at(p, "forward@task/net.py:64; __call__@task/net.py:12");
        made[i] = program_take(p, mib * MIB);
        if (l->place == AMONG && i < l->left)
            leave(p, l, 1, &left[i]);
    }
    if (l->left > 0 && l->place == BEFORE_FREES)
        leave(p, l, l->left, left);
    program_give_all(p, made, l->made);
    program_wait(p, 8000);
    if (l->left > 0 && l->place == IN_HOLES)
        leave(p, l, l->left, left);
    if (l->has_scopes)
        program_end_scope(p, "ProfilerStep");
}

static void
run_loop(struct program *p, const struct loop *l)
{
    uint32_t left[BOUND_MAX][TENSORS_MAX];
    third_load(p, l->weights, l->weight_mib);
    for (unsigned i = 0; i < l->steps && !program_is_over(p); i++) {
        uint32_t *mine = left[l->bound ? i % l->bound : 0];
        if (l->bound && i >= l->bound)
            program_give_all(p, mine, l->left);
        if (l->last && i == l->last_at && !program_is_without(p, DRY_CAUSE_SPIKE))
            third_pass(p, "forward@task/net.py:64; evaluate@task/loop.py:77", l->last,
                       l->last_mib);
        step(p, l, mine);
        if (!l->bound && program_is_without(p, DRY_CAUSE_LEAK))
            program_give_all(p, mine, l->left);
        program_end_step(p);
    }
    program_unwind(p, false);
}

void
script_third_small_leak(struct program *p)
{
    static const struct loop loops[] = {
        {20, 300, 200, 12, 400, 0, 3, 72 << 10, .where = "append@task/metrics.py:22"},
        {28, 300, 250, 6, 250, 0, 2, 16 << 10, .where = "remember@task/prompts.py:9"},
        {40, 1000, 60, 16, 1200, 0, 1, 1500 << 10, .where = "cat@task/replay.py:31",
         .has_scopes = true},
        {20, 200, 200, 10, 200, 0, 16, 1000, .where = "clone@task/hooks.py:14"},
        {24, 500, 120, 20, 600, 0, 4, 100 << 10, .where = "stage@task/export.py:40",
         .stream = SIDE_STREAM, .has_scopes = true},
    };
    run_loop(p, &loops[program_variant(p)]);
}

/* An evaluation that sums its losses with their graphs: nothing saved is ever given back. */
static void
sum_losses(struct program *p)
{
    struct model m = {.layers = 16,
                      .heads = 32,
                      .hidden = 4096,
                      .vocab = 32000,
                      .batch = 2,
                      .length = 2048};
    model_load(p, &m);
    for (unsigned i = 0; i < 40 && !program_is_over(p); i++) {
        model_forward(p, &m);
        if (program_is_without(p, DRY_CAUSE_LEAK)) {
            for (unsigned l = m.layers; l-- > 0;)
                program_give_all(p, m.saved[l], SAVED_MAX);
            program_give(p, m.logits);
            program_give(p, m.input);
        }
        program_end_step(p);
    }
    program_unwind(p, false);
}

void
script_third_large_leak(struct program *p)
{
    static const struct loop loops[] = {
        {20, 200, 60, 4, 300, 0, 14, 150 << 10,
         .where = "forward@task/net.py:58; compute_loss@task/loop.py:33"},
        {0},
        {16, 300, 60, 5, 400, 0, 1, 900 << 10, .where = "append@task/history.py:18",
         .has_scopes = true},
        {10, 150, 60, 6, 100, 0, 2, 260 << 10, .where = "gather@task/rollout.py:52",
         .stream = SIDE_STREAM},
        {60, 700, 60, 10, 1500, 0, 8, 1400 << 10, .where = "checkpoint@task/graph.py:71"},
    };
    if (program_variant(p) == 1)
        sum_losses(p);
    else
        run_loop(p, &loops[program_variant(p)]);
}

void
script_third_ragged_leak(struct program *p)
{
    static const struct loop loops[] = {
        {20, 200, 120, 10, 300, 300, 4, 70 << 10, .place = IN_HOLES,
         .where = "append@task/metrics.py:22"},
        {24, 150, 120, 8, 200, 0, 4, 150 << 10, .place = IN_HOLES,
         .where = "grad@task/plot.py:15"},
        {32, 200, 250, 3, 400, 400, 2, 12 << 10, .place = IN_HOLES, .has_scopes = true,
         .where = "insert@task/prefix.py:44"},
        {30, 400, 120, 12, 500, 800, 6, 100 << 10, .place = IN_HOLES,
         .where = "detach@task/teacher.py:61"},
        {10, 200, 250, 16, 120, 120, 1, 40 << 10, .place = IN_HOLES,
         .where = "clone@task/hooks.py:14", .has_scopes = true},
    };
    run_loop(p, &loops[program_variant(p)]);
}

void
script_third_steady(struct program *p)
{
    static const struct loop loops[] = {
        {20, 200, 60, 10, 200, 400, 4, 6 << 10, 6, AMONG,
         .where = "mean@task/norm.py:12"},
        {24, 200, 120, 6, 300, 400, 6, 8 << 10, 8, AMONG,
         .where = "insert@task/lru.py:30"},
        {16, 150, 60, 12, 100, 300, 12, 12 << 10, 3, AMONG, .has_scopes = true,
         .where = "queue@task/averages.py:25"},
        {30, 250, 60, 8, 300, 500, 8, 4 << 10, 2, AMONG,
         .where = "hold@task/window.py:17"},
        {12, 300, 60, 20, 60, 200, 20, 2 << 10, 2, AMONG, .has_scopes = true,
         .where = "insert@task/lru.py:30"},
    };
    run_loop(p, &loops[program_variant(p)]);
}

void
script_third_limit(struct program *p)
{
    static const struct loop loops[] = {
        {50, 500, 20, 12, 800, 0, .has_scopes = true},
        {30, 300, 200, 10, 400, 0, 3, 120 << 10, .where = "append@task/metrics.py:22"},
        {16, 150, 200, 8, 150, 0, 2, 60 << 10, .where = "remember@task/prompts.py:9",
         .has_scopes = true},
        {20, 200, 20, 16, 250, 0, 2, 100 << 10, 3, .where = "hold@task/window.py:17"},
        {30, 300, 40, 8, 300, 0, 1, 20 << 10, .where = "append@task/metrics.py:22",
         .last_at = 14, .last = 20, .last_mib = 600},
    };
    run_loop(p, &loops[program_variant(p)]);
}

/* Shares of rows, by device; one rank that gathers what the others send. */
static void
run_replicas(struct program *p, unsigned count, unsigned heavy, bool gathers)
{
    bool is_even = program_is_without(p, DRY_CAUSE_IMBALANCE);
    for (unsigned device = 0; device < count; device++) {
        bool is_heavy = device == heavy && !is_even;
        struct loop l = {4, 200, 20, 10, is_heavy ? 1800 : 150, 0, .has_scopes = true};
        unsigned share = is_heavy ? count : is_even ? 1 : 0;
        if (gathers)
            l = (struct loop){4,     200,       150,
                              4,     300,       0,
                              share, 100 << 10, .where = "gather@task/collect.py:28"};
        if (device > 0)
            program_next_device(p);
        run_loop(p, &l);
    }
}

/* A ring that remembers the end of one long pass. */
static void
run_long_pass(struct program *p)
{
    third_load(p, 60, 500);
    for (unsigned i = 0; i < 6; i++)
        third_pass(p, "forward@task/net.py:64", 20, 500);
    third_pass(p, "forward@task/net.py:64; evaluate@task/loop.py:77", 60, 900);
    program_unwind(p, false);
}

void
script_third_mixed(struct program *p)
{
    static const struct loop spikes[] = {
        {20, 300, 40, 10, 200, 0, 1, 10 << 10, .where = "append@task/metrics.py:22",
         .last_at = 20, .last = 6, .last_mib = 3500},
        {12, 300, 40, 6, 300, 200, 2, 8 << 10, 6, true, .where = "insert@task/lru.py:30",
         .last_at = 16, .last = 3, .last_mib = 5000},
    };
    unsigned variant = program_variant(p);
    if (variant < 2)
        run_loop(p, &spikes[variant]);
    else if (variant == 2)
        run_replicas(p, 6, 4, false);
    else if (variant == 3)
        run_replicas(p, 3, 0, true);
    else
        run_long_pass(p);
}
