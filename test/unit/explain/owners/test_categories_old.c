/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Categories of what is older than the window and stays: told by names, and otherwise only
 * by a backward pass that has ended. What cannot be known is unknown.
 */
#include "support/cmocka.h"

#include <drystone/drystone.h>

#include "support/record_builder.h"

#define MIB (UINT64_C(1) << 20)
#define BASE (UINT64_C(1) << 32)
#define OLD (UINT64_C(2) << 32)
#define NONE NULL
#define SIZE (2 * MIB)

/* The window's own allocations: each lives until the next one is made. */
enum window { EMPTY, INFERENCE, TRAINING, CUT_IN_BACKWARD };

static void
run(struct record_builder *s, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        record_builder_stack(s, names[i]);
        record_builder_event(s, DRY_ACTION_ALLOC, BASE + i * MIB, MIB);
        if (i > 0) {
            record_builder_event(s, DRY_ACTION_FREE_REQUESTED, BASE + (i - 1) * MIB, MIB);
            record_builder_event(s, DRY_ACTION_FREE_COMPLETED, BASE + (i - 1) * MIB, MIB);
        }
    }
    s->stack = DRY_NONE;
}

static void
run_window(struct record_builder *s, enum window window)
{
    static const char *const inference[] = {"embed", "mix", "norm", "mix", "norm"};
    static const char *const training[] = {"embed", "mix", "autograd::Engine::run",
                                           "autograd::Engine::run", "embed"};
    if (window == INFERENCE)
        run(s, inference, 5);
    else if (window == TRAINING)
        run(s, training, 5);
    else if (window == CUT_IN_BACKWARD)
        run(s, training, 4);
}

/* The guess for one old block in a pool, with a stack of one name, or none. */
static struct dry_category_guess
judge(enum window window, const char *name, uint64_t pool)
{
    struct record_builder s;
    struct dry_steps *steps;
    struct dry_categories *categories;
    record_builder_begin(&s);
    record_builder_device(&s, 0);
    run_window(&s, window);
    record_builder_segment(
        &s, &(struct record_builder_segment){
                .address = OLD, .size = 40 * MIB, .pool = pool, .is_large = true});
    if (name)
        record_builder_stack(&s, name);
    record_builder_block(&s, 40 * MIB, 40 * MIB, DRY_BLOCK_ACTIVE);
    const struct dry_timeline_view *v = record_builder_timeline(&s);
    assert_int_equal(dry_steps_create(s.timeline, NULL, &steps, NULL), DRY_OK);
    assert_int_equal(dry_categories_create(s.timeline, steps, NULL, &categories, NULL),
                     DRY_OK);
    assert_int_equal(v->carried_over_count, 1);
    struct dry_category_guess g = dry_categories_get(categories)[v->allocation_count - 1];
    dry_categories_destroy(categories);
    dry_steps_destroy(steps);
    record_builder_end(&s);
    return g;
}

static void
what_cannot_be_known_is_unknown(void **state)
{
    (void)state;
    static const struct {
        enum window window;
        const char *name;
        uint64_t pool;
    } cases[] = {
        {EMPTY, NONE, 0},           /* a snapshot without a history */
        {INFERENCE, NONE, 0},       /* weights, a cache, a diffusion step's activations */
        {INFERENCE, NONE, 7},       /* a cache in the pool of a graph */
        {INFERENCE, "run_step", 0}, /* a name that tells nothing */
        {TRAINING, NONE, 7},        /* in a private pool, whatever it is */
        {CUT_IN_BACKWARD, NONE, 0}, /* activations that are still needed */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_category_guess g =
            judge(cases[i].window, cases[i].name, cases[i].pool);
        print_message("%zu\n", i);
        assert_string_equal(dry_category_name((enum dry_category)g.category), "unknown");
        assert_int_equal(g.confidence, 0);
        assert_int_equal(g.evidence, DRY_EVIDENCE_NONE);
    }
}

static void
names_tell_what_is_old(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum dry_category category;
    } cases[] = {
        {"_allocate_kv_cache_tensors", DRY_CATEGORY_KV_CACHE},
        {"initialize_kv_cache", DRY_CATEGORY_KV_CACHE},
        {"StaticCache.__init__", DRY_CATEGORY_KV_CACHE},
        {"load_weights", DRY_CATEGORY_WEIGHTS},
        {"Linear.__init__", DRY_CATEGORY_WEIGHTS},
        {"Adam.step", DRY_CATEGORY_OPTIMIZER},
    };
    for (int window = EMPTY; window <= CUT_IN_BACKWARD; window++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct dry_category_guess g =
                judge((enum window)window, cases[i].name, i == 0 ? 7 : 0);
            print_message("%d %s\n", window, cases[i].name);
            assert_int_equal(g.category, cases[i].category);
            assert_int_equal(g.evidence, DRY_EVIDENCE_NAMES);
            assert_int_equal(g.confidence, 80);
        }
    }
}

/* Its older activations are gone; weights and optimizer state are left, and look the same. */
static void
the_end_of_a_backward_pass_leaves_weights(void **state)
{
    (void)state;
    struct dry_category_guess g = judge(TRAINING, NONE, 0);
    assert_int_equal(g.category, DRY_CATEGORY_WEIGHTS);
    assert_int_equal(g.confidence, 50);
}

static void
make(struct record_builder *s, const char *name, uint64_t place)
{
    record_builder_stack(s, name);
    record_builder_event(s, DRY_ACTION_ALLOC, BASE + place * SIZE, SIZE);
}

static void
drop(struct record_builder *s, const char *name, uint64_t address)
{
    record_builder_stack(s, name);
    record_builder_event(s, DRY_ACTION_FREE_REQUESTED, address, SIZE);
    record_builder_event(s, DRY_ACTION_FREE_COMPLETED, address, SIZE);
}

/* Two weights that lie together, and four blocks of an optimizer's state around them. */
static const uint64_t old_places[] = {0, 7, 20, 21, 40, 44};
static const enum dry_category old_truth[] = {
    DRY_CATEGORY_OPTIMIZER, DRY_CATEGORY_OPTIMIZER, DRY_CATEGORY_WEIGHTS,
    DRY_CATEGORY_WEIGHTS,   DRY_CATEGORY_OPTIMIZER, DRY_CATEGORY_OPTIMIZER};
#define OLD_COUNT (sizeof old_places / sizeof *old_places)

static void
run_steps(struct record_builder *s)
{
    for (int step = 0; step < 5; step++) {
        make(s, "embed", 0);
        make(s, "mix", 1);
        make(s, "autograd::Engine::run", 2);
        drop(s, "autograd::Engine::run", BASE + SIZE);
        make(s, "autograd::Engine::run", 3);
        drop(s, "autograd::Engine::run", BASE);
        make(s, "Adam.step", 4);
        drop(s, "Adam.step", BASE + 4 * SIZE);
        drop(s, "zero_grad", BASE + 2 * SIZE);
        drop(s, "zero_grad", BASE + 3 * SIZE);
    }
    s->stack = DRY_NONE;
}

/* A weight has a gradient in each step. It does not matter whether the program has ended, and
   freed all. */
static void
old_state_is_told_from_weights(void **state)
{
    (void)state;
    for (int has_ended = 0; has_ended < 2; has_ended++) {
        struct record_builder s;
        struct dry_steps *steps;
        struct dry_categories *categories;
        record_builder_begin(&s);
        record_builder_device(&s, 0);
        run_steps(&s);
        for (size_t i = 0; i < OLD_COUNT; i++) {
            uint64_t address = OLD + old_places[i] * SIZE;
            if (has_ended) {
                drop(&s, "main", address);
                continue;
            }
            record_builder_segment(
                &s, &(struct record_builder_segment){
                        .address = address, .size = SIZE, .is_large = true});
            record_builder_block(&s, SIZE, SIZE, DRY_BLOCK_ACTIVE);
        }
        const struct dry_timeline_view *v = record_builder_timeline(&s);
        assert_int_equal(dry_steps_create(s.timeline, NULL, &steps, NULL), DRY_OK);
        assert_int_equal(
            dry_categories_create(s.timeline, steps, NULL, &categories, NULL), DRY_OK);
        assert_int_equal(v->carried_over_count, OLD_COUNT);
        for (size_t a = v->allocation_count - OLD_COUNT; a < v->allocation_count; a++) {
            size_t i = 0;
            while (OLD + old_places[i] * SIZE != v->allocations[a].address)
                i++;
            assert_int_equal(dry_categories_get(categories)[a].category, old_truth[i]);
        }
        dry_categories_destroy(categories);
        dry_steps_destroy(steps);
        record_builder_end(&s);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_known_is_unknown),
        cmocka_unit_test(names_tell_what_is_old),
        cmocka_unit_test(the_end_of_a_backward_pass_leaves_weights),
        cmocka_unit_test(old_state_is_told_from_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
