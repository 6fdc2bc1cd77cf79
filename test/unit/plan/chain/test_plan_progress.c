/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Planners tell how far they are, and whoever is told may end them at any call: then nothing
 * is left, and nobody is called again.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/graph.h>
#include <drystone/plan.h>

#include "support/failing_memory.h"
#include "support/random.h"

#define STAGES 80u
#define NODES 30u
#define CALLS_TRIED 12u /* of all calls, evenly */

struct calls {
    uint64_t count, cancel_at;
    uint64_t done, total; /* of the last */
    bool is_told_between;
};

static bool
note_call(void *self, uint64_t done, uint64_t total)
{
    struct calls *calls = self;
    assert_true(calls->count <= calls->cancel_at); /* nobody is called again */
    assert_true(calls->count > 0 || done == 0);
    assert_true(done >= calls->done);
    calls->is_told_between = calls->is_told_between || done > calls->done;
    calls->done = done;
    calls->total = total;
    return calls->count++ == calls->cancel_at;
}

/* --- chains ------------------------------------------------------------------------------- */

/* Different stages, or equal ones. */
static struct dry_chain *
make_chain(bool is_equal)
{
    struct random r;
    struct dry_chain *chain;
    struct dry_stage stage = {
        .forward_ns = 5, .backward_ns = 9, .output_bytes = 10, .saved_bytes = 50};
    random_init(&r, 7);
    assert_int_equal(dry_chain_create(NULL, NULL, &chain, NULL), DRY_OK);
    for (unsigned i = 0; i < STAGES; i++) {
        struct dry_stage_option option = {.saved_bytes = 60, .recompute_ns = 2};
        if (!is_equal) {
            stage.forward_ns = 1 + random_below(&r, 1000);
            stage.output_bytes = random_below(&r, 50);
            stage.saved_bytes = stage.output_bytes + 50 + random_below(&r, 100);
            option.saved_bytes = stage.output_bytes + 10;
            stage.options = &option;
            stage.option_count = i % 3 == 0;
        }
        assert_int_equal(dry_chain_add(chain, &stage, 1, NULL), DRY_OK);
    }
    return chain;
}

static struct dry_plan_options
make_options(enum dry_plan_method method, struct calls *calls)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.method = method;
    options.slots = 20;
    options.progress = note_call;
    options.progress_self = calls;
    *calls = (struct calls){.cancel_at = UINT64_MAX};
    return options;
}

/* A third between the least budget and where all is saved. */
static uint64_t
budget_of(const struct dry_chain *chain, enum dry_plan_method method)
{
    struct dry_plan_options options;
    struct dry_plan *plan;
    dry_plan_options_init(&options);
    options.method = method;
    assert_int_equal(dry_plan_create(chain, &options, &plan, NULL), DRY_OK);
    struct dry_plan_summary s = *dry_plan_get_summary(plan);
    dry_plan_destroy(plan);
    return s.floor_bytes + (s.cost.peak_bytes - s.floor_bytes) / 3;
}

static void
require_cancelled(const struct dry_chain *chain, struct dry_plan_options *options,
                  uint64_t call)
{
    struct calls *calls = options->progress_self;
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dry_plan *plan = NULL;
    struct dry_error err = {.text = ""};
    options->memory = &memory;
    *calls = (struct calls){.cancel_at = call};
    assert_int_equal(dry_plan_create(chain, options, &plan, &err), DRY_ERR_CANCELLED);
    assert_int_equal(err.status, DRY_ERR_CANCELLED);
    assert_string_equal(err.text, "cancelled by the progress callback");
    assert_null(plan);
    assert_int_equal(calls->count, call + 1);
    failing_memory_finish(&fm);
    options->memory = NULL;
}

static void
every_method_tells_and_can_be_cancelled(void **state)
{
    (void)state;
    for (unsigned m = 0; m < DRY_METHOD_COUNT; m++) {
        enum dry_plan_method method = (enum dry_plan_method)m;
        struct dry_chain *chain = make_chain(method == DRY_METHOD_REVOLVE);
        struct calls calls;
        struct dry_plan_options options = make_options(method, &calls);
        struct dry_plan *plan;
        bool has_choice = method != DRY_METHOD_NONE && method != DRY_METHOD_BLOCK &&
                          method != DRY_METHOD_EVERY;
        options.budget_bytes = budget_of(chain, method);
        assert_int_equal(dry_plan_create(chain, &options, &plan, NULL), DRY_OK);
        dry_plan_destroy(plan);
        assert_int_equal(calls.total, 0);
        assert_true(calls.is_told_between == has_choice);
        assert_true(has_choice ? calls.count > 2 : calls.count == 1);
        uint64_t count = calls.count, step = 1 + count / CALLS_TRIED;
        for (uint64_t call = 0; call < count; call += step)
            require_cancelled(chain, &options, call);
        require_cancelled(chain, &options, count - 1);
        dry_chain_destroy(chain);
    }
}

/* The same plan, whether somebody watches or not. */
static void
who_is_told_changes_nothing(void **state)
{
    (void)state;
    struct dry_chain *chain = make_chain(false);
    for (unsigned m = 0; m < 2; m++) {
        struct calls calls;
        struct dry_plan_options options = make_options((enum dry_plan_method)m, &calls);
        struct dry_plan *watched, *plain;
        options.budget_bytes = budget_of(chain, options.method);
        assert_int_equal(dry_plan_create(chain, &options, &watched, NULL), DRY_OK);
        options.progress = NULL;
        assert_int_equal(dry_plan_create(chain, &options, &plain, NULL), DRY_OK);
        assert_memory_equal(dry_plan_get_summary(watched), dry_plan_get_summary(plain),
                            sizeof(struct dry_plan_summary));
        dry_plan_destroy(watched);
        dry_plan_destroy(plain);
    }
    dry_chain_destroy(chain);
}

/* Called while a plan is made, too: then with the plans that are there. */
static void
a_curve_counts_plans_and_ends_within_one(void **state)
{
    (void)state;
    struct dry_chain *chain = make_chain(false);
    struct dry_plan_point points[4];
    struct calls calls;
    struct dry_plan_options options = make_options(DRY_METHOD_ONE_LEVEL, &calls);
    size_t count = 7;
    assert_int_equal(dry_plan_curve(chain, &options, points, 4, &count, NULL), DRY_OK);
    assert_int_equal(calls.total, 4);
    assert_int_equal(calls.done, 3);
    assert_true(calls.count > 8);
    uint64_t all = calls.count;
    for (uint64_t call = 0; call < all; call += 1 + all / CALLS_TRIED) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        options.memory = &memory;
        calls = (struct calls){.cancel_at = call};
        count = 7;
        assert_int_equal(dry_plan_curve(chain, &options, points, 4, &count, NULL),
                         DRY_ERR_CANCELLED);
        assert_int_equal(count, 7);
        assert_int_equal(calls.count, call + 1);
        failing_memory_finish(&fm);
    }
    dry_chain_destroy(chain);
}

/* --- graphs ------------------------------------------------------------------------------- */

static bool
note_round(void *self, uint64_t step, uint64_t best_ns)
{
    struct calls *calls = self;
    assert_true(calls->count <= calls->cancel_at && step >= calls->done);
    assert_true(step == 0 || best_ns != 0);
    calls->done = step;
    calls->total = best_ns;
    return calls->count++ == calls->cancel_at;
}

/* A chain forward, and back: every node of the way back reads two. */
static struct dry_graph *
make_graph(const struct dry_memory *memory, uint32_t length)
{
    struct dry_graph *graph;
    assert_int_equal(dry_graph_create(memory, &graph, NULL), DRY_OK);
    for (uint32_t i = 0; i < 2 * length; i++) {
        struct dry_graph_node node = {.time_ns = 3 + i % 5, .bytes = 10 + i % 3};
        assert_int_equal(dry_graph_add(graph, &node, NULL), DRY_OK);
        if (i > 0)
            assert_int_equal(dry_graph_connect(graph, i - 1, i, NULL), DRY_OK);
        if (i >= length)
            assert_int_equal(dry_graph_connect(graph, 2 * length - 1 - i, i, NULL),
                             DRY_OK);
    }
    assert_int_equal(dry_graph_seal(graph, NULL, NULL), DRY_OK);
    return graph;
}

/* What there is when it is ended is a plan, or there is none and that is said. */
static void
end_graph_at(uint32_t length, uint64_t call, struct calls *calls)
{
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dry_graph *graph = make_graph(&memory, length);
    struct dry_graph_options options;
    struct dry_graph_plan *plan = NULL;
    dry_graph_options_init(&options);
    options.budget_bytes = 8 * length;
    options.steps = 5;
    options.progress = note_round;
    options.progress_self = calls;
    *calls = (struct calls){.cancel_at = call};
    enum dry_status status = dry_graph_plan_create(graph, &options, &plan, NULL);
    bool has_plan = calls->total != UINT64_MAX;
    if (status == DRY_OK)
        assert_true(dry_graph_plan_get_summary(plan)->cost.peak_bytes <= 8 * length);
    if (call < calls->count) { /* it was ended there */
        assert_int_equal(calls->count, call + 1);
        assert_true(status == DRY_OK || (!has_plan && status == DRY_ERR_CANCELLED));
        assert_true((plan != NULL) == (status == DRY_OK));
    } else {
        assert_int_equal(status, DRY_OK);
    }
    dry_graph_plan_destroy(plan);
    dry_graph_destroy(graph);
    failing_memory_finish(&fm);
}

static void
graphs_can_be_ended_before_there_is_a_plan(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {10, NODES}; /* by the exact search, by others */
    for (size_t i = 0; i < 2; i++) {
        struct calls calls;
        end_graph_at(lengths[i], UINT64_MAX, &calls);
        uint64_t count = calls.count;
        assert_true(count > 2);
        end_graph_at(lengths[i], 0, &calls);
        assert_int_equal(calls.total, UINT64_MAX);
        for (uint64_t call = 1; call < count; call += 1 + count / CALLS_TRIED)
            end_graph_at(lengths[i], call, &calls);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_tells_and_can_be_cancelled),
        cmocka_unit_test(who_is_told_changes_nothing),
        cmocka_unit_test(a_curve_counts_plans_and_ends_within_one),
        cmocka_unit_test(graphs_can_be_ended_before_there_is_a_plan),
    };
    return cmocka_run_group_tests_name("plan_progress", tests, NULL, NULL);
}
