/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The evaluation of sequences. A value is held at a run exactly if a later run reads it and no run
 * in between makes it again. So one pass from the last run to the first computes every need, with
 * a flag for each value. The only possible error is a value that is read and never made.
 *
 * Cost: runs and their inputs.
 */
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/graph/graph_state.h"

#define NOBODY UINT32_MAX

/* Mark a value as wanted before run `use`. Returns the bytes that this adds to the held bytes. */
static uint64_t
want(const struct dry_graph *g, struct dryi_sequence_needs *needs, uint32_t rank,
     uint32_t use)
{
    if (needs->is_wanted[rank])
        return 0;
    needs->is_wanted[rank] = true;
    if (needs->until)
        needs->until[rank] = use;
    return dryi_graph_at(g, rank)->bytes;
}

static uint64_t
begin_needs(const struct dry_graph *g, size_t count, struct dryi_sequence_needs *needs)
{
    uint64_t held = 0;
    needs->peak = needs->time = 0;
    needs->peak_run = 0;
    needs->missing = NOBODY;
    memset(needs->is_wanted, 0, g->count);
    for (uint32_t rank = 0; rank < g->count; rank++) {
        if (dryi_graph_at(g, rank)->is_output)
            held += want(g, needs, rank, (uint32_t)count);
    }
    return held;
}

void
dryi_graph_compute_needs(const struct dry_graph *g, const uint32_t *runs, size_t count,
                         struct dryi_sequence_needs *needs)
{
    uint64_t held = begin_needs(g, count, needs); /* after run p */
    for (size_t p = count; p-- > 0;) {
        uint32_t rank = runs[p];
        const struct dry_graph_node *node = dryi_graph_at(g, rank);
        bool is_read = needs->is_wanted[rank];
        if (needs->last_use)
            needs->last_use[p] = is_read ? needs->until[rank] : (uint32_t)p;
        needs->is_wanted[rank] = false;
        held += is_read ? 0 : node->bytes;
        for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
            held += want(g, needs, g->inputs[e], (uint32_t)p);
        needs->needed[p] = held + node->tmp_bytes;
        held -= node->bytes;
        needs->time = dryi_add_saturating(needs->time, node->time_ns);
        if (needs->needed[p] >= needs->peak) {
            needs->peak = needs->needed[p];
            needs->peak_run = (uint32_t)p;
        }
    }
    for (uint32_t rank = 0; rank < g->count && needs->missing == NOBODY; rank++)
        needs->missing = needs->is_wanted[rank] ? rank : NOBODY;
}

/* --- sequences ------------------------------------------------------------------------------- */

bool
dryi_graph_runs_insert(const struct dry_memory *memory, struct dryi_graph_runs *s,
                       size_t at, uint32_t run)
{
    if (!dryi_memory_grow(memory, &s->runs, &s->capacity, s->count + 1, sizeof *s->runs))
        return false;
    memmove(s->runs + at + 1, s->runs + at, (s->count - at) * sizeof *s->runs);
    s->runs[at] = run;
    s->count++;
    return true;
}

void
dryi_graph_runs_remove(struct dryi_graph_runs *s, size_t at)
{
    s->count--;
    memmove(s->runs + at, s->runs + at + 1, (s->count - at) * sizeof *s->runs);
}

bool
dryi_graph_runs_copy(const struct dry_memory *memory, struct dryi_graph_runs *to,
                     const struct dryi_graph_runs *from)
{
    if (!dryi_memory_grow(memory, &to->runs, &to->capacity, from->count,
                          sizeof *to->runs))
        return false;
    if (from->count > 0)
        memcpy(to->runs, from->runs, from->count * sizeof *to->runs);
    to->count = from->count;
    return true;
}

void
dryi_graph_runs_finish(const struct dry_memory *memory, struct dryi_graph_runs *s)
{
    dryi_memory_free(memory, s->runs, s->capacity, sizeof *s->runs);
    *s = (struct dryi_graph_runs){0};
}

/* --- the public evaluation ------------------------------------------------------------------- */

struct evaluation {
    const struct dry_graph *g;
    const uint32_t *nodes; /* the caller's node numbers */
    uint32_t *runs;        /* the same as ranks */
    size_t count;
    struct dryi_sequence_needs needs;
    uint8_t *is_run; /* the rank has run */
};

static enum dry_status
check_runs(struct evaluation *v, struct dry_error *err)
{
    const struct dry_graph *g = v->g;
    for (size_t p = 0; p < v->count; p++) {
        if (v->nodes[p] >= g->count)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "run %zu is of node %u, of %zu nodes",
                             p, v->nodes[p], g->count);
        uint32_t rank = v->runs[p] = g->rank[v->nodes[p]];
        for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++) {
            if (!v->is_run[g->inputs[e]])
                return dryi_fail(err, DRY_ERR_ARGUMENT,
                                 "run %zu, of node %u, comes before its input, node %u",
                                 p, v->nodes[p], g->order[g->inputs[e]]);
        }
        if (v->is_run[rank] && g->nodes[v->nodes[p]].is_fixed)
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "run %zu is the second of node %u, which must not run twice",
                             p, v->nodes[p]);
        v->is_run[rank] = 1;
    }
    for (uint32_t rank = 0; rank < g->count; rank++) {
        if (!v->is_run[rank])
            return dryi_fail(err, DRY_ERR_ARGUMENT, "node %u never runs", g->order[rank]);
    }
    return DRY_OK;
}

/*
 * Report every run to the observer. held_bytes is what the run needed, less its workspace
 * and the values that it was the last to read.
 */
static void
tell(struct evaluation *v, const struct dry_graph_observer *observer)
{
    const struct dry_graph *g = v->g;
    struct dry_graph_step step = {0};
    uint64_t held = 0;
    memset(v->is_run, 0, g->count);
    for (size_t p = 0; p < v->count; p++) {
        uint32_t rank = v->runs[p];
        const struct dry_graph_node *node = dryi_graph_at(g, rank);
        /* The values that end here are subtracted below. */
        held = v->needs.needed[p] - node->tmp_bytes;
        if (v->needs.last_use[p] == p)
            held -= node->bytes;
        for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++) {
            uint32_t input = g->inputs[e];
            if (v->needs.until[input] == p) /* this run is its last reader */
                held -= dryi_graph_at(g, input)->bytes;
        }
        step = (struct dry_graph_step){g->order[rank], v->is_run[rank], step.time_ns,
                                       v->needs.needed[p], held};
        observer->step(observer->self, &step);
        v->is_run[rank] = 1;
        v->needs.until[rank] = v->needs.last_use[p];
        step.time_ns += node->time_ns;
    }
}

static enum dry_status
evaluate(struct evaluation *v, const struct dry_graph_observer *observer,
         struct dry_graph_cost *cost, struct dry_error *err)
{
    const struct dry_graph *g = v->g;
    enum dry_status status = check_runs(v, err);
    if (status != DRY_OK)
        return status;
    dryi_graph_compute_needs(g, v->runs, v->count, &v->needs);
    if (v->needs.time > (uint64_t)INT64_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "all runs take more than 63 bits");
    *cost = (struct dry_graph_cost){
        .peak_bytes = v->needs.peak,
        .peak_run = v->needs.peak_run,
        .peak_node = v->count > 0 ? v->nodes[v->needs.peak_run] : 0,
        .time_ns = v->needs.time,
        .base_ns = g->base_ns,
        .extra_ns = v->needs.time - g->base_ns,
        .run_count = v->count,
        .rerun_count = v->count - g->count,
    };
    if (observer && observer->step)
        tell(v, observer);
    return DRY_OK;
}

enum dry_status
dry_graph_evaluate(const struct dry_graph *graph, const uint32_t *runs, size_t count,
                   const struct dry_graph_observer *observer, struct dry_graph_cost *cost,
                   struct dry_error *err)
{
    const struct dry_memory *m = &graph->memory;
    struct evaluation v = {.g = graph, .nodes = runs, .count = count};
    if (!graph->is_sealed)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the graph is not sealed");
    if (count > UINT32_MAX - 1)
        return dryi_fail(err, DRY_ERR_LIMIT, "%zu runs", count);
    v.runs = dryi_memory_zalloc(m, count + 1, sizeof *v.runs);
    v.is_run = dryi_memory_zalloc(m, graph->count + 1, 1);
    v.needs.is_wanted = dryi_memory_zalloc(m, graph->count + 1, 1);
    v.needs.needed = dryi_memory_zalloc(m, count + 1, sizeof *v.needs.needed);
    v.needs.last_use = dryi_memory_zalloc(m, count + 1, sizeof *v.needs.last_use);
    v.needs.until = dryi_memory_zalloc(m, graph->count + 1, sizeof *v.needs.until);
    bool is_fine = v.runs && v.is_run && v.needs.is_wanted && v.needs.needed &&
                   v.needs.last_use && v.needs.until;
    enum dry_status status = is_fine ? evaluate(&v, observer, cost, err)
                                     : dryi_fail_memory(err, "a sequence's evaluation");
    dryi_memory_free(m, v.needs.until, graph->count + 1, sizeof *v.needs.until);
    dryi_memory_free(m, v.needs.last_use, count + 1, sizeof *v.needs.last_use);
    dryi_memory_free(m, v.needs.needed, count + 1, sizeof *v.needs.needed);
    dryi_memory_free(m, v.needs.is_wanted, graph->count + 1, 1);
    dryi_memory_free(m, v.is_run, graph->count + 1, 1);
    dryi_memory_free(m, v.runs, count + 1, sizeof *v.runs);
    return status;
}
