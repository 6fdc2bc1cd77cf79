/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-level plans against all plans of one level, on random small chains, at every budget
 * where something changes; and what must be true of plans of larger chains.
 *
 * DRY_TEST_SEED=N replays from one seed, DRY_TEST_ROUNDS=N makes that many chains. The seed
 * of a chain that fails is printed.
 */
#include "support/cmocka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <drystone/plan.h>

#include "support/chains.h"

#define ROUNDS 12000
#define EQUAL_ROUNDS 1000
#define FAT_ROUNDS 100

static uint64_t seed_now;

static uint64_t
number_or(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void
require(bool condition, const char *what)
{
    if (condition)
        return;
    print_error("DRY_TEST_SEED=%" PRIu64 " DRY_TEST_ROUNDS=1: %s\n", seed_now, what);
    fail();
}

struct result {
    enum dry_status status;
    struct dry_plan_summary summary;
};

static struct result
plan_for(const struct dry_chain *chain, uint64_t budget, uint32_t slots)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.budget_bytes = budget;
    options.slots = slots;
    struct dry_plan *plan = NULL;
    struct result result = {dry_plan_create(chain, &options, &plan, NULL), {0}};
    if (result.status == DRY_OK)
        result.summary = *dry_plan_get_summary(plan);
    dry_plan_destroy(plan);
    return result;
}

/* --- small chains ------------------------------------------------------------------------- */

static struct chains_form
random_form(struct random *r)
{
    uint64_t bits = random_next(r);
    struct chains_form form = {.stages_min = 1,
                               .stages_max = bits & 7 ? 7 : 10,
                               .options_max = bits & 8 ? 2 : 0,
                               .has_frame = bits & 16,
                               .has_tmp = bits & 32,
                               .has_grads = bits & 64,
                               .has_fixed = (bits & 384) == 0,
                               .has_offload = bits & 512,
                               .has_own_tmp = bits & 4096};
    form.bytes_max = bits & 1024 ? 1000000 : 0;
    form.ns_max = bits & 2048 ? 1000000 : 0;
    return form;
}

static void
check_budget(const struct dry_chain *chain, const struct chains_point *points,
             size_t count, uint64_t budget, uint32_t slots)
{
    uint64_t least = chains_least_time(points, count, budget);
    struct result result = plan_for(chain, budget, slots);
    require(result.status == (least == UINT64_MAX ? DRY_ERR_NO_SPACE : DRY_OK),
            "what fits");
    if (result.status != DRY_OK)
        return;
    const struct dry_plan_summary *s = &result.summary;
    require(s->cost.time_ns == least, "the least time");
    require(s->bound_ns == least, "the bound");
    require(s->floor_bytes == points[0].peak_bytes, "the floor");
    require(s->cost.peak_bytes <= budget, "the budget");
}

static void
every_plan_of_one_level_is_no_better(void **state)
{
    (void)state;
    uint64_t first = number_or("DRY_TEST_SEED", 1),
             rounds = number_or("DRY_TEST_ROUNDS", ROUNDS);
    static struct chains_point points[CHAINS_POINTS_MAX];
    uint64_t budgets = 0;
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        seed_now = seed;
        struct random r;
        random_init(&r, seed);
        struct chains_form form = random_form(&r);
        struct dry_chain *chain = chains_make(&r, &form);
        size_t count = chains_one_level(chain, points);
        uint32_t slots = random_below(&r, 2) ? 500 : 1 + (uint32_t)random_below(&r, 40);
        for (size_t k = 0; k < 4; k++) {
            size_t at = k ? (size_t)random_below(&r, count) : 0;
            check_budget(chain, points, count, points[at].peak_bytes, slots);
            check_budget(chain, points, count, points[at].peak_bytes - 1, slots);
            budgets += 2;
        }
        dry_chain_destroy(chain);
    }
    print_message("%" PRIu64 " chains, %" PRIu64 " budgets\n", rounds, budgets);
}

/* --- equal stages ------------------------------------------------------------------------- */

/* Equal ones, and another at the end; is_disguised: with an option that nobody wants. */
static struct dry_chain *
make_equal(struct random *r, size_t count, bool is_disguised)
{
    struct dry_chain_frame frame = {.input_gradient_bytes = random_below(r, 12)};
    struct dry_stage stage = {.forward_ns = 1 + random_below(r, 5),
                              .backward_ns = 3,
                              .output_bytes = random_below(r, 6),
                              .gradient_bytes = random_below(r, 6),
                              .forward_tmp_bytes = random_below(r, 6),
                              .backward_tmp_bytes = random_below(r, 6)};
    stage.saved_bytes = stage.output_bytes + random_below(r, 12);
    if (random_below(r, 2))
        stage.grads_bytes = random_below(r, stage.saved_bytes + 1);
    struct dry_stage_option useless = {.saved_bytes = stage.saved_bytes,
                                       .recompute_ns = 1000,
                                       .backward_tmp_bytes = stage.backward_tmp_bytes,
                                       .forward_tmp_bytes = 1000,
                                       .has_forward_tmp = random_below(r, 2)};
    stage.option_count = is_disguised;
    stage.options = &useless;
    struct dry_stage_option less = {.recompute_ns = 1 + random_below(r, 20)};
    struct dry_stage last = {.backward_ns = 1,
                             .output_bytes = random_below(r, 3),
                             .gradient_bytes = random_below(r, 12),
                             .grads_bytes = random_below(r, 12),
                             .options = &less,
                             .option_count = random_below(r, 2)};
    less.saved_bytes = last.output_bytes;
    last.saved_bytes = last.output_bytes + random_below(r, 12);
    struct dry_chain *chain;
    require(dry_chain_create(&frame, NULL, &chain, NULL) == DRY_OK, "a chain");
    require(dry_chain_add(chain, &stage, count, NULL) == DRY_OK, "equal stages");
    require(dry_chain_add(chain, &last, 1, NULL) == DRY_OK, "the last stage");
    return chain;
}

static void
equal_stages_need_no_table(void **state)
{
    (void)state;
    uint64_t first = number_or("DRY_TEST_SEED", 1),
             rounds = number_or("DRY_TEST_ROUNDS", EQUAL_ROUNDS);
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        seed_now = seed;
        struct random r, again;
        random_init(&r, seed);
        size_t count = 1 + (size_t)random_below(&r, seed % 32 ? 40 : 300);
        again = r;
        struct dry_chain *chain = make_equal(&r, count, false);
        struct dry_chain *other = make_equal(&again, count, true);
        struct dry_plan_summary all = plan_for(chain, UINT64_MAX, 500).summary;
        for (uint64_t budget = all.floor_bytes; budget < all.cost.peak_bytes;
             budget += 1 + random_below(&r, count > 40 ? 200 : 20)) {
            struct dry_plan_summary a = plan_for(chain, budget, 9000).summary;
            struct dry_plan_summary b = plan_for(other, budget, 9000).summary;
            require(a.slots == 0 && b.slots > 0, "only one has a table");
            require(a.cost.time_ns == b.cost.time_ns, "the same time");
            require(a.bound_ns == a.cost.time_ns, "the bound");
        }
        dry_chain_destroy(chain);
        dry_chain_destroy(other);
    }
}

/* --- long chains -------------------------------------------------------------------------- */

#define FAT_STAGES_MAX 420
#define FAT_BYTES 10

/*
 * Somewhere a run of stages that save much and take little time: a range goes over all of them,
 * and does not end there. No gradients, so that needs are easily said.
 */
struct fat_run {
    size_t count;
    uint64_t forward[FAT_STAGES_MAX], saved[FAT_STAGES_MAX], output[FAT_STAGES_MAX];
    uint64_t gradient[FAT_STAGES_MAX];
};

static void
draw_fat_run(struct random *r, struct fat_run *n)
{
    size_t begin = 16 + (size_t)random_below(r, 16),
           end = 66 + (size_t)random_below(r, 8);
    n->count = FAT_STAGES_MAX - (size_t)random_below(r, 60);
    for (size_t i = 0; i < n->count; i++) {
        bool is_fat = i >= begin && i < end;
        n->forward[i] = is_fat ? 1 : 3 + random_below(r, 4);
        n->saved[i] = is_fat ? FAT_BYTES : 1 + random_below(r, 2);
        n->output[i] = n->saved[i] - random_below(r, 2);
        n->gradient[i] = 0;
    }
}

/* What comes on top in every memory to `most`, stage by stage from the last. */
static uint64_t *
naive_table(const struct fat_run *n, size_t most)
{
    size_t columns = most + 1;
    uint64_t *table = calloc((n->count + 1) * columns, sizeof *table);
    assert_non_null(table);
    for (size_t i = n->count; i-- > 0;) {
        uint64_t *to = table + i * columns;
        for (size_t m = 0; m <= most; m++)
            to[m] = m < n->saved[i] ? UINT32_MAX : to[columns + m - n->saved[i]];
        uint64_t sum = 0, pass = 0, time = 0;
        for (size_t e = i; e + 1 < n->count; e++) {
            uint64_t both = n->output[e] + (e > i ? n->output[e - 1] : 0);
            const uint64_t *rest = table + (e + 1) * columns;
            sum += n->saved[e];
            time += n->forward[e];
            pass = both > pass ? both : pass;
            for (size_t m = sum > pass ? sum : pass; m <= most; m++) {
                uint64_t all = time + rest[m - n->output[e]];
                to[m] = all < to[m] ? all : to[m];
            }
        }
    }
    return table;
}

static void
ranges_go_over_many_stages(void **state)
{
    (void)state;
    uint64_t first = number_or("DRY_TEST_SEED", 1),
             rounds = number_or("DRY_TEST_ROUNDS", FAT_ROUNDS);
    rounds = rounds < FAT_ROUNDS ? rounds : FAT_ROUNDS;
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        seed_now = seed;
        struct random r;
        static struct fat_run run;
        random_init(&r, seed);
        draw_fat_run(&r, &run);
        struct dry_chain *chain =
            chains_of_rows(&(struct chains_rows){.count = run.count,
                                                 .forward = run.forward,
                                                 .backward = run.forward,
                                                 .output = run.output,
                                                 .saved = run.saved,
                                                 .gradient = run.gradient});
        struct dry_plan_summary all = plan_for(chain, UINT64_MAX, 500).summary;
        uint64_t *table = naive_table(&run, (size_t)all.cost.peak_bytes);
        for (unsigned k = 0; k < 6; k++) {
            uint64_t m =
                all.floor_bytes + random_below(&r, all.cost.peak_bytes - all.floor_bytes);
            struct dry_plan_summary s = plan_for(chain, m, 9000).summary;
            require(s.cost.extra_ns == table[m], "the least time");
            require(s.bound_ns == s.cost.time_ns, "the bound");
        }
        free(table);
        dry_chain_destroy(chain);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_of_one_level_is_no_better),
        cmocka_unit_test(equal_stages_need_no_table),
        cmocka_unit_test(ranges_go_over_many_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
