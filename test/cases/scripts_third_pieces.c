/* SPDX-License-Identifier: Apache-2.0 */

/* Programs with pieces, pools and sleep, and programs that meet the end of the device. */

#include "cases/scripts_third.h"

#define TASK "run@engine/core.py:102; main@engine/main.py:35; <module>@engine/main.py:60"
#define FORWARD "forward@engine/net.py:57; execute@engine/worker.py:80"
#define TENSORS_MAX 64

/* Buffers were staged once; in the place of each lies a header that stays, and a hole. */
struct pieces {
    unsigned weights, weight_mib;
    unsigned count, hole_mib, header_mib;
    unsigned steps, made, made_mib;
    unsigned request_mib;
    uint64_t stream; /* of the pieces */
};

static void
leave_pieces(struct program *p, const struct pieces *l)
{
    uint32_t holes[TENSORS_MAX];
    program_on(p, l->stream);
    third_pass(p, "stage@engine/shards.py:25", l->count, l->hole_mib + l->header_mib);
    for (unsigned i = 0; i < l->count; i++) {
        program_at(p, "stage@engine/shards.py:25");
        holes[i] = program_take(p, l->hole_mib * MIB);
        program_at(p, "header@engine/shards.py:31");
        program_keep(p, program_take(p, l->header_mib * MIB));
    }
    program_give_all(p, holes, l->count);
    program_on(p, 0);
}

static void
run_pieces(struct program *p, const struct pieces *l)
{
    third_load(p, l->weights, l->weight_mib);
    program_in(p, TASK);
    leave_pieces(p, l);
    for (unsigned i = 0; i < l->steps; i++) {
        third_pass(p, FORWARD, l->made, l->made_mib);
        program_end_step(p);
    }
    program_at(p, "merge@engine/shards.py:66");
    program_give(p, program_take(p, l->request_mib * MIB));
    program_unwind(p, false);
}

void
script_third_pieces(struct program *p)
{
    static const struct pieces cases[] = {
        {40, 300, 20, 380, 20, 4, 3, 370, 12616, 0},
        {20, 250, 30, 190, 6, 0, 0, 0, 10744, 0},
        {60, 600, 25, 760, 40, 6, 10, 700, 43036, 0},
        {10, 200, 40, 70, 10, 0, 0, 0, 5246, 0},
        {20, 700, 16, 900, 30, 5, 4, 880, 26476, 0},
    };
    run_pieces(p, &cases[program_variant(p)]);
}

void
script_third_neighbour(struct program *p)
{
    static const struct pieces cases[] = {
        {8, 150, 8, 90, 10, 3, 2, 80, 1316, 0},
        {10, 100, 12, 60, 12, 0, 0, 0, 2476, 0},
        {12, 150, 20, 80, 4, 5, 8, 70, 4866, 0},
        {16, 400, 1, 90, 10, 8, 5, 500, 3960, 0},
        {20, 200, 18, 150, 6, 4, 6, 300, 8402, SIDE_STREAM},
    };
    run_pieces(p, &cases[program_variant(p)]);
}

/* Graphs captured into pools of their own, of which something small stays in use. */
struct pools {
    unsigned weights, weight_mib;
    unsigned pools, made, made_mib, left_kib;
    unsigned holes, hole_mib, header_mib; /* in the default pool */
    unsigned request_mib;
    bool asks_in_pool;
};

static void
capture(struct program *p, const struct pools *l, unsigned pool)
{
    uint32_t made[TENSORS_MAX];
    program_begin_pool(p, pool + 1, 0);
    program_at(p, "forward@engine/net.py:57; capture@engine/graphs.py:44");
    for (unsigned i = 0; i < l->made; i++)
        made[i] = program_take(p, l->made_mib * MIB);
    program_give_all(p, made, l->made);
    for (unsigned i = 0; i < l->made; i++) {
        program_at(p, "forward@engine/net.py:57; capture@engine/graphs.py:44");
        made[i] = program_take(p, l->made_mib * MIB - l->left_kib * KIB);
        program_at(p, "output@engine/graphs.py:50");
        program_keep(p, program_take(p, l->left_kib * KIB));
    }
    program_give_all(p, made, l->made);
    program_end_pool(p, pool + 1, 0);
}

void
script_third_pools(struct program *p)
{
    static const struct pools cases[] = {
        {30, 250, 1, 12, 600, 8 << 10, 0, 0, 0, 10000, false},
        {20, 150, 3, 8, 300, 2 << 10, 0, 0, 0, 6000, false},
        {50, 700, 1, 20, 1000, 20 << 10, 0, 0, 0, 30000, false},
        {15, 200, 10, 2, 300, 4 << 10, 0, 0, 0, 3400, false},
        {4, 100, 1, 1, 40, 2 << 10, 20, 180, 20, 3600, true},
    };
    const struct pools *l = &cases[program_variant(p)];
    struct pieces pieces = {0, 0, l->holes, l->hole_mib, l->header_mib, 0, 0, 0, 0, 0};
    third_load(p, l->weights, l->weight_mib);
    program_in(p, TASK);
    leave_pieces(p, &pieces);
    for (unsigned i = 0; i < l->pools; i++) {
        capture(p, l, i);
        third_pass(p, FORWARD, 2, 100);
        program_end_step(p);
    }
    if (l->asks_in_pool)
        program_begin_pool(p, 1, 0);
    program_at(p, "prefill@engine/worker.py:93");
    program_give(p, program_take(p, l->request_mib * MIB));
    program_unwind(p, false);
}

/* --- an engine that sleeps while a trainer works ------------------------------------------- */

struct engine {
    unsigned weights, weight_mib, blocks, block_mib;
    uint32_t weight[TENSORS_MAX], block[TENSORS_MAX];
};

static void
wake(struct program *p, struct engine *e)
{
    program_at(p, "load_weights@engine/sleep.py:38; wake_up@engine/sleep.py:51");
    for (unsigned i = 0; i < e->weights; i++)
        e->weight[i] = program_take(p, e->weight_mib * MIB);
    program_at(p, "make_kv_cache@engine/kv.py:22; wake_up@engine/sleep.py:53");
    for (unsigned i = 0; i < e->blocks; i++)
        e->block[i] = program_take(p, e->block_mib * MIB);
}

static void
doze(struct program *p, struct engine *e)
{
    program_at(p, "sleep@engine/sleep.py:29");
    program_give_all(p, e->block, e->blocks);
    program_give_all(p, e->weight, e->weights);
}

/* Where weights were, an adapter stays beside each master copy, which does not. */
static void
attach_adapters(struct program *p, const struct engine *e, unsigned adapter_mib)
{
    uint32_t masters[TENSORS_MAX];
    for (unsigned i = 0; i < e->weights; i++) {
        program_at(p, "master@engine/lora.py:14");
        masters[i] = program_take(p, (e->weight_mib - adapter_mib) * MIB);
        program_at(p, "adapter@engine/lora.py:19");
        program_keep(p, program_take(p, adapter_mib * MIB));
    }
    program_give_all(p, masters, e->weights);
}

/* Adapters, made while the engine slept, lie where the weights were. */
static void
sleep_over_adapters(struct program *p)
{
    struct engine e = {24, 300, 28, 500, {0}, {0}};
    wake(p, &e);
    third_pass(p, FORWARD, 6, 60);
    doze(p, &e);
    attach_adapters(p, &e, 10);
    wake(p, &e);
}

/* The engine's memory is a pool of its own, and something of each block stays. */
static void
sleep_in_a_pool(struct program *p)
{
    struct engine e = {20, 350, 0, 0, {0}, {0}};
    third_load(p, 12, 150);
    program_in(p, TASK);
    program_begin_pool(p, 7, 0);
    wake(p, &e);
    doze(p, &e);
    attach_adapters(p, &e, 4);
    program_end_pool(p, 7, 0);
    for (unsigned i = 0; i < 3; i++) {
        third_pass(p, "train@engine/trainer.py:70", 8, 500);
        program_end_step(p);
    }
    third_pass(p, "gather@engine/trainer.py:84", 1, 8000);
}

/* Weights came by a copy stream, which keeps their norms; now the main stream loads. */
static void
sleep_on_a_stream(struct program *p)
{
    struct engine e = {40, 500, 12, 800, {0}, {0}};
    program_on(p, SIDE_STREAM);
    wake(p, &e);
    doze(p, &e);
    attach_adapters(p, &e, 6);
    program_on(p, 0);
    third_pass(p, FORWARD, 4, 700);
    e.blocks = 0;
    wake(p, &e);
    third_pass(p, "prefill@engine/worker.py:93", 1, 4000);
}

/* The trainer's state is not offloaded while the engine wakes. */
static void
sleep_beside_a_trainer(struct program *p)
{
    struct engine e = {40, 800, 30, 1000, {0}, {0}};
    for (unsigned i = 0; i < 2; i++) {
        wake(p, &e);
        third_pass(p, FORWARD, 10, 200);
        doze(p, &e);
        program_at(p, "make_state@engine/adam.py:31");
        for (unsigned k = 0; k < 24 && i == 0; k++)
            program_keep(p, program_take(p, 900 * MIB));
        third_pass(p, "train@engine/trainer.py:70", 12, 1100);
        program_end_step(p);
    }
}

/* Each time, a copy of the first weights stays with the one who compares them. */
static void
sleep_and_forget(struct program *p)
{
    struct engine e = {30, 500, 20, 600, {0}, {0}};
    uint32_t copies[8];
    for (unsigned i = 0; i < 40 && !program_is_over(p); i++) {
        wake(p, &e);
        program_at(p, "snapshot@engine/compare.py:17");
        for (unsigned k = 0; k < 8; k++) {
            copies[k] = program_take(p, 300 * MIB);
            if (!program_is_without(p, DRY_CAUSE_LEAK))
                program_keep(p, copies[k]);
        }
        doze(p, &e);
        if (program_is_without(p, DRY_CAUSE_LEAK))
            program_give_all(p, copies, 8);
        third_pass(p, "train@engine/trainer.py:70", 16, 700);
        program_end_step(p);
    }
}

void
script_third_sleep(struct program *p)
{
    static void (*const stories[])(struct program * p) = {
        sleep_over_adapters, sleep_in_a_pool, sleep_on_a_stream, sleep_beside_a_trainer,
        sleep_and_forget};
    program_in(p, TASK);
    stories[program_variant(p)](p);
    program_unwind(p, false);
}

/* --- rounds that meet the end of the device ------------------------------------------------ */

/* Kinds of work in turn, each of which cannot use what the others cached. */
struct phases {
    unsigned weights, weight_mib, rounds;
    struct {
        unsigned count, mib, more_mib; /* more in each round */
        uint64_t stream;
    } kinds[3];
    unsigned left_mib; /* a round leaves behind */
    unsigned pins, pin_hole_mib,
        pin_mib;                   /* kept by each round, in place of the last kind */
    unsigned last_count, last_mib; /* after all rounds */
};

static void
run_round(struct program *p, const struct phases *l, unsigned round)
{
    static const char *const frames[] = {FORWARD, "evaluate@engine/evaluate.py:26",
                                         "sample@engine/sampler.py:48"};
    for (unsigned k = 0; k < 3; k++) {
        program_on(p, l->kinds[k].stream);
        third_pass(p, frames[k], l->kinds[k].count,
                   l->kinds[k].mib + round * l->kinds[k].more_mib);
    }
    program_on(p, 0);
    if (l->left_mib == 0)
        return;
    program_at(p, "append@engine/trace.py:12");
    uint32_t left = program_take(p, l->left_mib * MIB);
    if (program_is_without(p, DRY_CAUSE_LEAK))
        program_give(p, left);
    else
        program_keep(p, left);
}

static void
run_phases(struct program *p, const struct phases *l)
{
    third_load(p, l->weights, l->weight_mib);
    program_in(p, TASK);
    for (unsigned round = 0; round < l->rounds && !program_is_over(p); round++) {
        run_round(p, l, round);
        struct pieces pins = {
            .count = l->pins, .hole_mib = l->pin_hole_mib, .header_mib = l->pin_mib};
        if (round == 1)
            leave_pieces(p, &pins);
        program_end_step(p);
    }
    third_pass(p, "evaluate@engine/evaluate.py:26", l->last_count, l->last_mib);
    program_unwind(p, false);
}

void
script_third_phases(struct program *p)
{
    static const struct phases cases[] = {
        {30, 250, 8, {{14, 300, 0, 0}, {8, 520, 0, 0}}, 0, 0, 0, 0, 0, 0},
        {20,
         600,
         6,
         {{10, 800, 0, 0}, {6, 1300, 0, 0}, {20, 410, 4, 0}},
         0,
         0,
         0,
         0,
         0,
         0},
        {36, 300, 12, {{1, 400, 30, 0}}, 0, 0, 0, 0, 0, 0},
        {24,
         200,
         7,
         {{9, 300, 0, 0}, {9, 300, 0, SIDE_STREAM}, {9, 300, 0, SIDE_STREAM + 64}},
         0,
         0,
         0,
         0,
         0,
         0},
        {16, 250, 10, {{12, 180, 0, 0}, {5, 450, 0, SIDE_STREAM}}, 0, 0, 0, 0, 0, 0},
    };
    run_phases(p, &cases[program_variant(p)]);
}

void
script_third_ladder(struct program *p)
{
    static const struct phases cases[] = {
        {24, 250, 60, {{12, 300, 0, 0}, {7, 520, 0, 0}}, 150, 0, 0, 0, 0, 0},
        {30, 300, 200, {{4, 600, 0, 0}, {2, 1250, 0, 0}}, 40, 0, 0, 0, 0, 0},
        {30, 250, 6, {{14, 300, 0, 0}, {8, 520, 0, 0}}, 0, 0, 0, 0, 12, 900},
        {20, 300, 6, {{12, 400, 0, 0}, {8, 610, 0, 0}}, 0, 10, 380, 20, 2, 2500},
        {24, 300, 60, {{12, 400, 0, 0}, {12, 400, 0, SIDE_STREAM}}, 300, 0, 0, 0, 0, 0},
    };
    run_phases(p, &cases[program_variant(p)]);
}
