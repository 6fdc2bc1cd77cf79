/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of the graph planners: in which order they are tried, and how good the result is.
 *
 * The order without reruns comes first. If it does not fit, small graphs are searched by A*. The
 * bound follows, which may prove that nothing fits, then the local search.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "plan/graph/graph_state.h"

#define STEPS_DEFAULT 10000u
#define STATES_DEFAULT (UINT64_C(1) << 20)

struct dry_graph_plan {
    struct dry_memory memory;
    struct dry_graph_summary summary;
    uint32_t *runs; /* node numbers */
    size_t count;
};

void
dry_graph_options_init_sized(struct dry_graph_options *options, size_t struct_size)
{
    const struct dry_graph_options defaults = {.budget_bytes = UINT64_MAX,
                                               .steps = STEPS_DEFAULT,
                                               .seed = 1,
                                               .state_max = STATES_DEFAULT};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

const char *
dry_graph_method_name(enum dry_graph_method method)
{
    static const char *const names[DRY_GRAPH_METHOD_COUNT] = {"order", "exact", "search"};
    return method < DRY_GRAPH_METHOD_COUNT ? names[method] : "unknown method";
}

/* --- the order without reruns -------------------------------------------------------------------- */

static enum dry_status
try_order(struct dryi_graph_search *s, uint64_t *order_bytes)
{
    const struct dry_graph *g = s->graph;
    struct dryi_graph_runs order = {0};
    struct dryi_sequence_needs needs = {0};
    needs.is_wanted = dryi_memory_zalloc(&s->memory, g->count, 1);
    needs.needed = dryi_memory_zalloc(&s->memory, g->count, sizeof *needs.needed);
    bool is_fine = needs.is_wanted && needs.needed;
    for (uint32_t rank = 0; rank < g->count && is_fine; rank++)
        is_fine = dryi_graph_runs_insert(&s->memory, &order, order.count, rank);
    enum dry_status status = is_fine ? DRY_OK : DRY_ERR_MEMORY;
    if (is_fine) {
        dryi_graph_compute_needs(g, order.runs, order.count, &needs);
        *order_bytes = needs.peak;
        if (needs.peak <= s->options.budget_bytes)
            status = dryi_graph_offer(s, &order, needs.time, DRY_GRAPH_ORDER);
    }
    dryi_graph_runs_finish(&s->memory, &order);
    dryi_memory_free(&s->memory, needs.needed, g->count, sizeof *needs.needed);
    dryi_memory_free(&s->memory, needs.is_wanted, g->count, 1);
    return status;
}

/* --- planning ------------------------------------------------------------------------------------- */

static enum dry_status
fail_space(const struct dryi_graph_search *s, const struct dry_graph_summary *summary,
           struct dry_error *err)
{
    const char *name = s->graph->nodes[summary->floor_node].name;
    unsigned long long budget = s->options.budget_bytes, floor = summary->floor_bytes;
    if (summary->floor_bytes > summary->budget_bytes)
        return dryi_fail(err, DRY_ERR_NO_SPACE,
                         "node %u (%.60s) cannot run in less than %llu bytes, the budget "
                         "is %llu",
                         summary->floor_node, name ? name : "no name", floor, budget);
    if (s->is_cancelled)
        return dryi_fail(err, DRY_ERR_CANCELLED, "the search was ended without a plan");
    if (s->is_infeasible)
        return dryi_fail(err, DRY_ERR_NO_SPACE,
                         "no sequence needs %llu bytes or less: that is proved", budget);
    return dryi_fail(
        err, DRY_ERR_NO_SPACE,
        "no sequence of %llu bytes was found; none needs less than %llu, and "
        "the order %llu",
        budget, floor, (unsigned long long)summary->order_bytes);
}

/* Return whether a plan is still missing and may exist. */
static bool
is_open(const struct dryi_graph_search *s)
{
    return s->best_ns == UINT64_MAX && !s->is_infeasible && !s->is_cancelled;
}

static enum dry_status
search(struct dryi_graph_search *s, struct dry_graph_summary *summary,
       struct dry_error *err)
{
    enum dry_status status = try_order(s, &summary->order_bytes);
    summary->floor_bytes = dry_graph_get_floor(s->graph, &summary->floor_node);
    if (summary->floor_bytes > summary->budget_bytes)
        return fail_space(s, summary, err);
    if (status == DRY_OK && s->best_ns == UINT64_MAX && s->options.state_max > 0 &&
        s->graph->count <= DRYI_EXACT_NODES_MAX)
        status = dryi_graph_exact(s);
    if (status == DRY_OK && is_open(s))
        status = dryi_graph_bound(s);
    if (status == DRY_OK && is_open(s))
        status = dryi_graph_improve(s);
    if (status == DRY_ERR_MEMORY)
        return dryi_fail_memory(err, "a graph's plan");
    return s->best_ns == UINT64_MAX ? fail_space(s, summary, err) : status;
}

static uint64_t
compute_hash(const uint32_t *runs, size_t count)
{
    uint64_t hash = dryi_mix64(count);
    for (size_t p = 0; p < count; p++)
        hash = dryi_mix64(hash + runs[p] + 1);
    return hash;
}

/* Evaluate the sequence again: the public evaluation decides its cost. */
static enum dry_status
report(struct dryi_graph_search *s, struct dry_graph_plan *plan, struct dry_error *err)
{
    struct dry_graph_summary *summary = &plan->summary;
    plan->count = s->best.count;
    plan->runs = dryi_memory_zalloc(&s->memory, plan->count + 1, sizeof *plan->runs);
    if (!plan->runs)
        return dryi_fail_memory(err, "a graph's plan");
    for (size_t p = 0; p < plan->count; p++)
        plan->runs[p] = s->graph->order[s->best.runs[p]];
    enum dry_status status =
        dry_graph_evaluate(s->graph, plan->runs, plan->count, NULL, &summary->cost, err);
    if (status != DRY_OK)
        return status;
    DRYI_ASSERT(summary->cost.peak_bytes <= summary->budget_bytes);
    DRYI_ASSERT(summary->cost.time_ns == s->best_ns && s->bound_ns <= s->best_ns);
    summary->method = s->method;
    summary->bound_ns = s->bound_ns;
    summary->is_proved = s->bound_ns == s->best_ns;
    summary->steps = s->steps;
    summary->states = s->states;
    summary->hash = compute_hash(plan->runs, plan->count);
    return DRY_OK;
}

static enum dry_status
make_plan(struct dryi_graph_search *s, struct dry_graph_plan *plan, struct dry_error *err)
{
    plan->summary.budget_bytes = s->options.budget_bytes;
    if (s->graph->count == 0) {
        plan->summary.is_proved = true;
        plan->summary.hash = compute_hash(NULL, 0);
        return DRY_OK;
    }
    enum dry_status status = search(s, &plan->summary, err);
    return status == DRY_OK ? report(s, plan, err) : status;
}

enum dry_status
dry_graph_plan_create(const struct dry_graph *graph,
                      const struct dry_graph_options *options,
                      struct dry_graph_plan **plan, struct dry_error *err)
{
    struct dryi_graph_search s = {.graph = graph,
                                  .memory = graph->memory,
                                  .best_ns = UINT64_MAX,
                                  .bound_ns = graph->base_ns};
    dry_graph_options_init(&s.options);
    enum dry_status status = dryi_sized_take(&s.options, sizeof s.options, options, err);
    if (status != DRY_OK)
        return status;
    if (!graph->is_sealed)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the graph is not sealed");
    struct dry_graph_plan *made = dryi_memory_zalloc(&s.memory, 1, sizeof *made);
    if (!made)
        return dryi_fail_memory(err, "a graph's plan");
    made->memory = s.memory;
    status = make_plan(&s, made, err);
    dryi_graph_runs_finish(&s.memory, &s.best);
    if (status == DRY_OK)
        *plan = made;
    else
        dry_graph_plan_destroy(made);
    return status;
}

void
dry_graph_plan_destroy(struct dry_graph_plan *plan)
{
    if (!plan)
        return;
    struct dry_memory m = plan->memory;
    dryi_memory_free(&m, plan->runs, plan->count + 1, sizeof *plan->runs);
    dryi_memory_free(&m, plan, 1, sizeof *plan);
}

const struct dry_graph_summary *
dry_graph_plan_get_summary(const struct dry_graph_plan *plan)
{
    return &plan->summary;
}

const uint32_t *
dry_graph_plan_get_runs(const struct dry_graph_plan *plan, size_t *count)
{
    *count = plan->count;
    return plan->runs;
}
