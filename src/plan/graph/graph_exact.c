/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The optimal sequence of a small graph by A*. A state is the number of nodes that have
 * run for the first time, and the set of values that are held. A step drops a value at no
 * cost, or runs a node whose inputs are held: the next of the order, or one that has run
 * before. The estimate of the remaining time is the first runs that are left, which never
 * overestimates. So the first state in which the last node has run is optimal.
 *
 * States are reached in a fixed order, so the sequence is the same on every machine. If
 * no state is left and the last node has not run, no sequence fits.
 *
 * Cost: states x nodes, each with an entry in a hash table and in a heap.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/map.h"
#include "base/memory.h"
#include "plan/graph/graph_heap.h"
#include "plan/graph/graph_state.h"

#define NOBODY UINT32_MAX
#define TOLD_EVERY 1024u /* states between two progress reports */
#define DROP UINT32_MAX  /* value of `run`: the step dropped a value */

struct state {
    uint32_t there;  /* held values, a bit for each rank */
    uint32_t done;   /* number of first runs */
    uint32_t parent; /* state before; NOBODY: the first state */
    uint32_t run;    /* the step to it: a rank, or DROP */
    uint64_t time;   /* the least found so far */
    bool is_closed;
};

struct exact {
    struct dryi_graph_search *s;
    const struct dry_graph *g;
    uint32_t inputs[DRYI_EXACT_NODES_MAX];   /* bit sets, by rank */
    uint64_t rest[DRYI_EXACT_NODES_MAX + 1]; /* time of first runs from a rank on */
    uint32_t outputs;
    struct state *states;
    size_t count, capacity;
    struct dryi_heap_item *heap; /* see push() */
    size_t heap_count, heap_capacity;
    struct dryi_map found; /* maps (done, there) to its state */
    bool has_memory, is_full;
};

/* --- states ----------------------------------------------------------------------------------- */

/* Open a state: the least time + rest leaves first, then most nodes done, then the older state. */
static void
push(struct exact *x, uint32_t at)
{
    const struct state *state = &x->states[at];
    uint64_t key = dryi_add_saturating(state->time, x->rest[state->done]);
    uint64_t value = (uint64_t)(UINT32_MAX - state->done) << 32 | at;
    if (dryi_memory_grow(&x->s->memory, &x->heap, &x->heap_capacity, x->heap_count + 1,
                         sizeof *x->heap))
        dryi_heap_push(x->heap, x->heap_count++, (struct dryi_heap_item){key, value});
    else
        x->has_memory = false;
}

static void
reach(struct exact *x, const struct state *next)
{
    uint64_t key = (uint64_t)next->done << 32 | next->there;
    const uint32_t *known = dryi_map_find(&x->found, key);
    uint32_t at = known ? *known : (uint32_t)x->count;
    if (known && x->states[at].time <= next->time)
        return;
    if (!known) {
        if (x->count >= x->s->options.state_max) {
            x->is_full = true;
            return;
        }
        if (!dryi_map_put(&x->found, key, at) ||
            !dryi_memory_grow(&x->s->memory, &x->states, &x->capacity, x->count + 1,
                              sizeof *x->states)) {
            x->has_memory = false;
            return;
        }
        x->count++;
    }
    x->states[at] = *next;
    push(x, at);
}

static uint64_t
bytes_there(const struct exact *x, uint32_t there)
{
    uint64_t bytes = 0;
    for (; there; there &= there - 1)
        bytes += dryi_graph_at(x->g, (uint32_t)__builtin_ctz(there))->bytes;
    return bytes;
}

/* Return whether the step may drop the value. Outputs that must not run again are never dropped. */
static bool
may_drop(const struct exact *x, const struct state *from, uint32_t rank)
{
    bool is_output = x->outputs >> rank & 1;
    bool is_fixed = dryi_graph_at(x->g, rank)->is_fixed;
    return (from->there >> rank & 1) && !(is_output && is_fixed);
}

/* Return whether the node may run: its inputs are held, its value is not, and it may run again. */
static bool
may_run(const struct exact *x, const struct state *from, uint32_t rank)
{
    const struct dry_graph_node *node = dryi_graph_at(x->g, rank);
    return !(from->there >> rank & 1) &&
           (from->there & x->inputs[rank]) == x->inputs[rank] &&
           !(node->is_fixed && rank < from->done);
}

static bool
has_room(const struct exact *x, uint32_t rank, uint64_t held)
{
    const struct dry_graph_node *node = dryi_graph_at(x->g, rank);
    uint64_t budget = x->s->options.budget_bytes;
    return node->bytes + node->tmp_bytes <= budget &&
           held <= budget - node->bytes - node->tmp_bytes;
}

/*
 * Reach all states that run a node. Returns true if one could not run for lack of memory:
 * only then is there a reason to drop a value.
 */
static bool
run_all(struct exact *x, uint32_t at, const struct state *from)
{
    uint64_t held = bytes_there(x, from->there);
    uint32_t end = from->done < x->g->count ? from->done + 1 : from->done;
    bool is_short = false;
    for (uint32_t rank = 0; rank < end && x->has_memory; rank++) {
        if (!may_run(x, from, rank))
            continue;
        if (!has_room(x, rank, held)) {
            is_short = true;
            continue;
        }
        uint64_t time = dryi_graph_at(x->g, rank)->time_ns;
        reach(x, &(struct state){.there = from->there | UINT32_C(1) << rank,
                                 .done = from->done + (rank == from->done),
                                 .parent = at,
                                 .run = rank,
                                 .time = dryi_add_saturating(from->time, time)});
    }
    return is_short;
}

/*
 * Reach all states one step away. A drop that no run waits for can come later, so such
 * drops are skipped.
 */
static void
expand(struct exact *x, uint32_t at)
{
    struct state from = x->states[at];
    if (!run_all(x, at, &from))
        return;
    for (uint32_t rank = 0; rank < from.done && x->has_memory; rank++) {
        if (may_drop(x, &from, rank))
            reach(x, &(struct state){.there = from.there & ~(UINT32_C(1) << rank),
                                     .done = from.done,
                                     .parent = at,
                                     .run = DROP,
                                     .time = from.time});
    }
}

static bool
is_goal(const struct exact *x, const struct state *state)
{
    return state->done == x->g->count && (state->there & x->outputs) == x->outputs;
}

/*
 * Find the final state of the optimal sequence. Returns NOBODY if there is none, or if
 * the search was cut off.
 */
static uint32_t
search(struct exact *x)
{
    reach(x, &(struct state){.parent = NOBODY, .run = DROP});
    for (uint64_t n = 0; x->heap_count > 0 && x->has_memory && !x->is_full; n++) {
        if (n % TOLD_EVERY == 0 && !dryi_graph_go_on(x->s))
            return NOBODY;
        uint32_t at = (uint32_t)dryi_heap_pop(x->heap, x->heap_count--).value;
        struct state *state = &x->states[at];
        if (state->is_closed) /* the entry is older than a faster way there */
            continue;
        state->is_closed = true;
        if (is_goal(x, state))
            return at;
        expand(x, at);
    }
    return NOBODY;
}

/* --- the answer --------------------------------------------------------------------------------- */

static bool
collect(const struct exact *x, uint32_t at, struct dryi_graph_runs *sequence)
{
    size_t count = 0;
    for (uint32_t i = at; i != NOBODY; i = x->states[i].parent)
        count += x->states[i].run != DROP;
    if (!dryi_memory_grow(&x->s->memory, &sequence->runs, &sequence->capacity, count,
                          sizeof *sequence->runs))
        return false;
    sequence->count = count;
    for (uint32_t i = at; i != NOBODY; i = x->states[i].parent) {
        if (x->states[i].run != DROP)
            sequence->runs[--count] = x->states[i].run;
    }
    return true;
}

static enum dry_status
conclude(struct exact *x, uint32_t goal)
{
    struct dryi_graph_search *s = x->s;
    struct dryi_graph_runs sequence = {0};
    enum dry_status status = DRY_OK;
    if (!x->has_memory)
        return DRY_ERR_MEMORY;
    s->states = x->count;
    if (goal == NOBODY) {
        s->is_infeasible = !x->is_full && !s->is_cancelled;
        return DRY_OK;
    }
    uint64_t time = x->states[goal].time;
    if (!collect(x, goal, &sequence))
        status = DRY_ERR_MEMORY;
    else
        status = dryi_graph_offer(s, &sequence, time, DRY_GRAPH_EXACT);
    dryi_graph_runs_finish(&s->memory, &sequence);
    s->bound_ns = time;
    return status;
}

static void
prepare(struct exact *x)
{
    const struct dry_graph *g = x->g;
    for (uint32_t rank = (uint32_t)g->count; rank-- > 0;) {
        x->rest[rank] = x->rest[rank + 1] + dryi_graph_at(g, rank)->time_ns;
        x->outputs |= (uint32_t)dryi_graph_at(g, rank)->is_output << rank;
        for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
            x->inputs[rank] |= UINT32_C(1) << g->inputs[e];
    }
}

enum dry_status
dryi_graph_exact(struct dryi_graph_search *s)
{
    struct exact x = {.s = s, .g = s->graph, .has_memory = true};
    DRYI_ASSERT(s->graph->count <= DRYI_EXACT_NODES_MAX);
    dryi_map_init(&x.found, &s->memory);
    prepare(&x);
    uint32_t goal = search(&x);
    enum dry_status status = conclude(&x, goal);
    dryi_map_finish(&x.found);
    dryi_memory_free(&s->memory, x.heap, x.heap_capacity, sizeof *x.heap);
    dryi_memory_free(&s->memory, x.states, x.capacity, sizeof *x.states);
    return status;
}
