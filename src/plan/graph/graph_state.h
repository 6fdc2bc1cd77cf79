/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_GRAPH_STATE_H
#define DRYI_PLAN_GRAPH_STATE_H

/*
 * A graph, and what the planners share. Planners know nodes by rank: the place in the order.
 * So inputs of a node are always of a lower rank.
 *
 * A run is one execution of a node; a sequence is a list of runs.
 *
 *   G1  of a sealed graph: order and rank are inverse permutations; inputs and users are the
 *       same edges from both sides, ascending, each once
 */

#include <drystone/graph.h>

struct dryi_edge {
    uint32_t from, to; /* node numbers */
};

struct dry_graph {
    struct dry_memory memory;
    struct dry_graph_node *nodes; /* by number; names are ours */
    size_t count, node_capacity;
    struct dryi_edge *edges;
    size_t edge_count, edge_capacity;
    uint64_t bytes_sum, base_ns;
    /* A sealed graph has these; all are by rank but `rank`. */
    bool is_sealed;
    uint32_t *order;                    /* node number */
    uint32_t *rank;                     /* by node number */
    uint32_t *input_first, *user_first; /* count + 1 */
    uint32_t *inputs, *users;           /* ranks */
    size_t link_count;                  /* of inputs, of users */
};

static inline const struct dry_graph_node *
dryi_graph_at(const struct dry_graph *g, uint32_t rank)
{
    return &g->nodes[g->order[rank]];
}

/* --- sequences ---------------------------------------------------------------------------- */

/* The findings of a look at a sequence; `needed` and `last_use` have room for all runs. */
struct dryi_look {
    bool *is_wanted;  /* by rank; scratch */
    uint64_t *needed; /* by run, bytes */
    uint32_t
        *last_use;   /* by run: the last that reads it before it is made again; itself, if
                           none does; the number of runs: it stays to the end. NULL: not wanted */
    uint32_t *until; /* by rank: its last_use; scratch. NULL: last_use is not wanted */
    uint64_t peak;   /* filled */
    uint32_t peak_run; /* the first of the peak */
    uint64_t time;     /* saturates */
    uint32_t missing;  /* rank of a value that is read and not there; UINT32_MAX: none */
};

/* Look at a sequence of ranks. Time: O(runs and their inputs). */
void dryi_graph_look(const struct dry_graph *g, const uint32_t *runs, size_t count,
                     struct dryi_look *look);

/*
 * A sequence that grows and shrinks; it is all zero to begin with, and memory is the
 * caller's.
 */
struct dryi_graph_runs {
    uint32_t *runs;
    size_t count, capacity;
};

#define DRYI_RUNS_PER_NODE 64u /* on average, at most: where planners give up */

bool dryi_graph_runs_insert(const struct dry_memory *memory, struct dryi_graph_runs *s,
                            size_t at, uint32_t run);
void dryi_graph_runs_remove(struct dryi_graph_runs *s, size_t at);
bool dryi_graph_runs_copy(const struct dry_memory *memory, struct dryi_graph_runs *to,
                          const struct dryi_graph_runs *from);
void dryi_graph_runs_finish(const struct dry_memory *memory, struct dryi_graph_runs *s);

/* --- planners ------------------------------------------------------------------------------ */

/*
 * A plan in the making. Planners that find a sequence within the budget that takes less time
 * than `best_ns` put it into `best`.
 */
struct dryi_graph_search {
    const struct dry_graph *graph;
    struct dry_memory memory;
    struct dry_graph_options options;
    struct dryi_graph_runs best;
    uint64_t best_ns;  /* UINT64_MAX: there is none */
    uint64_t bound_ns; /* nothing takes less */
    uint64_t steps, states;
    bool is_infeasible; /* proved */
    bool is_cancelled;
    enum dry_graph_method method; /* of best */
};

/*
 * Tell the caller's progress, before the rounds, which tell by themselves. False: the caller
 * wants no more; from then on it always is.
 */
DRY_CHECK_RESULT bool dryi_graph_go_on(struct dryi_graph_search *s);

/* Keep the sequence if it is better. The planners offer only those within the budget. */
DRY_CHECK_RESULT enum dry_status dryi_graph_offer(struct dryi_graph_search *s,
                                                  const struct dryi_graph_runs *sequence,
                                                  uint64_t time,
                                                  enum dry_graph_method method);

/*
 * Search by A*; set bound_ns or is_infeasible if the search ends. Only for graphs of
 * DRYI_EXACT_NODES_MAX.
 */
#define DRYI_EXACT_NODES_MAX 32u
DRY_CHECK_RESULT enum dry_status dryi_graph_exact(struct dryi_graph_search *s);

/*
 * Raise bound_ns, or prove that nothing fits. Requires that no node alone needs more than the
 * budget.
 */
DRY_CHECK_RESULT enum dry_status dryi_graph_bound(struct dryi_graph_search *s);

/* Go through the order and evict what is least worth keeping; variant 0, 1 or 2. */
#define DRYI_EVICT_VARIANTS 3
DRY_CHECK_RESULT enum dry_status dryi_graph_evict(struct dryi_graph_search *s,
                                                  unsigned variant,
                                                  struct dryi_graph_runs *sequence,
                                                  bool *is_found);

/* Improve by greedy repair, eviction, then rounds of the local search. */
DRY_CHECK_RESULT enum dry_status dryi_graph_improve(struct dryi_graph_search *s);

#endif
