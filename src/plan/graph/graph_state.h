/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_GRAPH_STATE_H
#define DRYI_PLAN_GRAPH_STATE_H

/*
 * A graph, and the state that its planners share. Planners identify nodes by rank, which is their
 * position in the order of first runs. So a node's inputs always have lower ranks.
 *
 * A run is one execution of a node; a sequence is a list of runs.
 *
 *   G1  order and rank of a sealed graph are inverse permutations; inputs and users are the
 *       same edges from both sides, ascending, each once
 */

#include <drystone/graph.h>

struct dryi_edge {
    uint32_t from, to; /* node numbers */
};

struct dry_graph {
    struct dry_memory memory;
    struct dry_graph_node *nodes; /* [number]; the graph owns their names */
    size_t count, node_capacity;
    struct dryi_edge *edges;
    size_t edge_count, edge_capacity;
    uint64_t bytes_sum, base_ns;
    /* A sealed graph has these arrays; all but `rank` are indexed by rank. */
    bool is_sealed;
    uint32_t *order; /* the rank's node number */
    uint32_t *rank;  /* the node's rank; indexed by number */
    /* Indices into `inputs` and `users`; count + 1 elements. */
    uint32_t *input_first, *user_first;
    uint32_t *inputs, *users; /* ranks */
    size_t link_count;        /* number of elements of `inputs`, and of `users` */
};

static inline const struct dry_graph_node *
dryi_graph_at(const struct dry_graph *g, uint32_t rank)
{
    return &g->nodes[g->order[rank]];
}

/* --- sequences ---------------------------------------------------------------------------- */

/* The result of a pass over a sequence. `needed` and `last_use` have an element for each run. */
struct dryi_sequence_needs {
    bool *is_wanted;  /* indexed by rank; scratch */
    uint64_t *needed; /* bytes that each run needs */
    /*
     * The last run that reads a run's value before the node runs again; the run itself, if
     * none does; the number of runs, if the value stays to the end. NULL: not computed.
     */
    uint32_t *last_use;
    uint32_t *until;   /* current last_use, by rank; scratch. NULL if last_use is NULL */
    uint64_t peak;     /* the largest of `needed` */
    uint32_t peak_run; /* the first run that needs `peak` */
    uint64_t time;     /* sum over all runs; saturates at UINT64_MAX */
    uint32_t missing;  /* rank of a value that is read but missing; UINT32_MAX: none */
};

/* Compute the needs of a sequence of ranks. Time: O(runs and their inputs). */
void dryi_graph_compute_needs(const struct dry_graph *g, const uint32_t *runs,
                              size_t count, struct dryi_sequence_needs *needs);

/*
 * A sequence of runs that can be edited. It starts zeroed; its memory comes from the
 * caller's allocator.
 */
struct dryi_graph_runs {
    uint32_t *runs;
    size_t count, capacity;
};

#define DRYI_RUNS_PER_NODE 64u /* average; planners give up longer sequences */

bool dryi_graph_runs_insert(const struct dry_memory *memory, struct dryi_graph_runs *s,
                            size_t at, uint32_t run);
void dryi_graph_runs_remove(struct dryi_graph_runs *s, size_t at);
bool dryi_graph_runs_copy(const struct dry_memory *memory, struct dryi_graph_runs *to,
                          const struct dryi_graph_runs *from);
void dryi_graph_runs_finish(const struct dry_memory *memory, struct dryi_graph_runs *s);

/* --- planners ------------------------------------------------------------------------------ */

/*
 * A plan in progress. A planner that finds a faster sequence within the budget than
 * `best` puts it there.
 */
struct dryi_graph_search {
    const struct dry_graph *graph;
    struct dry_memory memory;
    struct dry_graph_options options;
    struct dryi_graph_runs best;
    uint64_t best_ns;  /* UINT64_MAX: `best` is empty */
    uint64_t bound_ns; /* no sequence takes less time */
    uint64_t steps, states;
    bool is_infeasible; /* proved that no sequence fits */
    bool is_cancelled;
    enum dry_graph_method method; /* the planner that found `best` */
};

/*
 * Report progress before the rounds, which report by themselves. Returns false if the
 * caller cancelled, now or before.
 */
DRY_CHECK_RESULT bool dryi_graph_go_on(struct dryi_graph_search *s);

/*
 * Keep the sequence if it is faster. Requires that it is within the budget. Errors:
 * DRY_ERR_MEMORY.
 */
DRY_CHECK_RESULT enum dry_status dryi_graph_offer(struct dryi_graph_search *s,
                                                  const struct dryi_graph_runs *sequence,
                                                  uint64_t time,
                                                  enum dry_graph_method method);

/*
 * Search by A*. If the search is complete, sets bound_ns or is_infeasible. Requires at
 * most DRYI_EXACT_NODES_MAX nodes.
 */
#define DRYI_EXACT_NODES_MAX 32u
DRY_CHECK_RESULT enum dry_status dryi_graph_exact(struct dryi_graph_search *s);

/*
 * Raise bound_ns, or prove that nothing fits. Requires that no node alone needs more than
 * the budget.
 */
DRY_CHECK_RESULT enum dry_status dryi_graph_bound(struct dryi_graph_search *s);

/*
 * Run the order and evict the values that are least worth keeping. `variant` selects the
 * measure of worth: 0, 1 or 2. *is_found: the sequence fits the budget.
 */
#define DRYI_EVICT_VARIANTS 3
DRY_CHECK_RESULT enum dry_status dryi_graph_evict(struct dryi_graph_search *s,
                                                  unsigned variant,
                                                  struct dryi_graph_runs *sequence,
                                                  bool *is_found);

/* Search by greedy repair, by eviction, then by rounds of local search. */
DRY_CHECK_RESULT enum dry_status dryi_graph_improve(struct dryi_graph_search *s);

#endif
