/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lower bounds of the bytes and of the time of every sequence.
 *
 * Bytes: a running node needs its inputs, its value, its workspace, and every value that
 * is read later and must not be recomputed. The end needs all outputs.
 *
 * Time: consider the moment when the t-th node of the order runs for the first time. All
 * nodes before it have run, none after it has. A value that is read later is held now, or
 * is recomputed later. If it is recomputed, its inputs are held now or recomputed too.
 * This is the problem of <drystone/knapsack.h>: choose the values to keep in the budget
 * that t leaves, so that recomputing the others takes the least time. Its bound is also a
 * bound of the sequence. The largest over all moments counts.
 *
 * Cost: a knapsack for each moment, VISITS_MAX steps in all or so.
 */
#include <string.h>

#include <drystone/knapsack.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "base/sort.h"
#include "plan/graph/graph_state.h"

#define VISITS_MAX UINT64_C(200000000)
#define VISITS_PER_MOMENT UINT64_C(5000000)

/* --- bytes ---------------------------------------------------------------------------------- */

/* Return whether the value is read after the first run of rank t. */
static bool
is_read_after(const struct dry_graph *g, uint32_t rank, uint32_t t)
{
    uint32_t end = g->user_first[rank + 1];
    return dryi_graph_at(g, rank)->is_output ||
           (end > g->user_first[rank] && g->users[end - 1] > t);
}

static uint64_t
own_need(const struct dry_graph *g, uint32_t rank)
{
    const struct dry_graph_node *node = dryi_graph_at(g, rank);
    uint64_t bytes = node->bytes + node->tmp_bytes;
    for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
        bytes += dryi_graph_at(g, g->inputs[e])->bytes;
    return bytes;
}

/*
 * Return the bytes of a rank's inputs that must not run again: of all of them, or with
 * `is_last` of those that are not read later.
 */
static uint64_t
fixed_inputs(const struct dry_graph *g, uint32_t rank, bool is_last)
{
    uint64_t bytes = 0;
    for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++) {
        const struct dry_graph_node *input = dryi_graph_at(g, g->inputs[e]);
        if (input->is_fixed && !(is_last && is_read_after(g, g->inputs[e], rank)))
            bytes += input->bytes;
    }
    return bytes;
}

uint64_t
dry_graph_get_floor(const struct dry_graph *graph, uint32_t *node)
{
    uint64_t floor = 0, fixed = 0, outputs = 0;
    uint32_t at = 0;
    DRYI_ASSERT(graph->is_sealed && graph->count > 0);
    for (uint32_t rank = 0; rank < graph->count; rank++) {
        const struct dry_graph_node *n = dryi_graph_at(graph, rank);
        uint64_t need = own_need(graph, rank) + fixed - fixed_inputs(graph, rank, false);
        if (need > floor || rank == 0) {
            floor = need;
            at = rank;
        }
        fixed -= fixed_inputs(graph, rank, true);
        fixed += n->is_fixed && is_read_after(graph, rank, rank) ? n->bytes : 0;
        outputs += n->is_output ? n->bytes : 0;
    }
    if (outputs > floor) {
        floor = outputs;
        at = (uint32_t)graph->count - 1;
    }
    if (node)
        *node = graph->order[at];
    return floor;
}

/* --- time ------------------------------------------------------------------------------------- */

struct bounder {
    struct dryi_graph_search *s;
    const struct dry_graph *g;
    struct dry_keep_item *items;   /* the values before a moment, in order of rank */
    struct dry_keep_input *inputs; /* inputs of all nodes, grouped by user */
    bool *is_kept;                 /* indexed by rank; scratch */
    struct dryi_sort_item *moments, *scratch;
    uint64_t *needed; /* need of each rank in the order without reruns */
    uint32_t *runs;   /* the order without reruns */
};

static void
fill_items(struct bounder *b, uint32_t t)
{
    const struct dry_graph *g = b->g;
    for (uint32_t rank = 0; rank < t; rank++) {
        const struct dry_graph_node *node = dryi_graph_at(g, rank);
        bool is_read = is_read_after(g, rank, t);
        b->items[rank] = (struct dry_keep_item){
            .bytes = node->bytes,
            .time_ns = node->time_ns,
            .rule = is_read && node->is_fixed ? DRY_KEEP_ALWAYS : DRY_KEEP_FREE,
            .is_unread = !is_read,
        };
    }
    for (uint32_t e = g->input_first[t]; e < g->input_first[t + 1]; e++) {
        b->items[g->inputs[e]].rule = DRY_KEEP_ALWAYS;
        b->items[g->inputs[e]].bytes = 0; /* own_need() has them */
    }
}

/* Find *bound: recomputation after the first run of t takes at least that long. */
static enum dry_status
bound_at(struct bounder *b, uint32_t t, uint64_t *bound, uint64_t *visits)
{
    struct dry_keep_problem problem = {.items = b->items,
                                       .item_count = t,
                                       .inputs = b->inputs,
                                       .input_count = b->g->input_first[t]};
    struct dry_keep_options options;
    struct dry_keep_result result;
    dry_keep_options_init(&options);
    options.memory = &b->s->memory;
    options.budget_bytes = b->s->options.budget_bytes - own_need(b->g, t);
    options.effort = VISITS_PER_MOMENT;
    fill_items(b, t);
    enum dry_status status =
        dry_keep_solve(&problem, &options, b->is_kept, &result, NULL);
    *visits += t + b->g->input_first[t];
    if (status == DRY_OK) { /* each node of that search computes a flow: some 20 passes */
        uint64_t most = result.nodes * 20 * (t + b->g->input_first[t]);
        *visits +=
            result.is_proved && most < VISITS_PER_MOMENT ? most : VISITS_PER_MOMENT;
        *bound = result.bound_ns;
    }
    return status;
}

/* Sort the moments by their need in the order, the largest last. */
static void
sort_moments(struct bounder *b)
{
    struct dryi_sequence_needs needs = {.is_wanted = b->is_kept, .needed = b->needed};
    for (uint32_t t = 0; t < b->g->count; t++)
        b->runs[t] = t;
    dryi_graph_compute_needs(b->g, b->runs, b->g->count, &needs);
    for (uint32_t t = 0; t < b->g->count; t++)
        b->moments[t] = (struct dryi_sort_item){b->needed[t], t};
    dryi_sort_items(b->moments, b->scratch, b->g->count);
}

static void
fill_inputs(struct bounder *b)
{
    const struct dry_graph *g = b->g;
    for (uint32_t rank = 0; rank < g->count; rank++) {
        for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
            b->inputs[e] = (struct dry_keep_input){g->inputs[e], rank};
    }
}

/*
 * Bound the moments with the largest needs first, within VISITS_MAX. Moments that fit add nothing.
 */
static enum dry_status
bound_all(struct bounder *b)
{
    struct dryi_graph_search *s = b->s;
    uint64_t visits = 0, most = 0, bound;
    fill_inputs(b);
    sort_moments(b);
    for (size_t n = b->g->count; n-- > 0 && visits < VISITS_MAX && dryi_graph_go_on(s);) {
        uint32_t t = b->moments[n].value;
        if (b->moments[n].key <= s->options.budget_bytes)
            break;
        enum dry_status status = bound_at(b, t, &bound, &visits);
        if (status == DRY_ERR_NO_SPACE)
            s->is_infeasible = true;
        if (status != DRY_OK)
            return status == DRY_ERR_MEMORY ? status : DRY_OK;
        most = bound > most ? bound : most;
    }
    s->bound_ns = dryi_add_saturating(b->g->base_ns, most);
    return DRY_OK;
}

enum dry_status
dryi_graph_bound(struct dryi_graph_search *s)
{
    const struct dry_memory *m = &s->memory;
    size_t count = s->graph->count, links = s->graph->link_count + 1;
    struct bounder b = {.s = s, .g = s->graph};
    b.items = dryi_memory_zalloc(m, count, sizeof *b.items);
    b.inputs = dryi_memory_zalloc(m, links, sizeof *b.inputs);
    b.is_kept = dryi_memory_zalloc(m, count, sizeof *b.is_kept);
    b.moments = dryi_memory_zalloc(m, count, sizeof *b.moments);
    b.scratch = dryi_memory_zalloc(m, count, sizeof *b.scratch);
    b.needed = dryi_memory_zalloc(m, count, sizeof *b.needed);
    b.runs = dryi_memory_zalloc(m, count, sizeof *b.runs);
    bool is_fine =
        b.items && b.inputs && b.is_kept && b.moments && b.scratch && b.needed && b.runs;
    enum dry_status status = is_fine ? bound_all(&b) : DRY_ERR_MEMORY;
    dryi_memory_free(m, b.runs, count, sizeof *b.runs);
    dryi_memory_free(m, b.needed, count, sizeof *b.needed);
    dryi_memory_free(m, b.scratch, count, sizeof *b.scratch);
    dryi_memory_free(m, b.moments, count, sizeof *b.moments);
    dryi_memory_free(m, b.is_kept, count, sizeof *b.is_kept);
    dryi_memory_free(m, b.inputs, links, sizeof *b.inputs);
    dryi_memory_free(m, b.items, count, sizeof *b.items);
    return status;
}
