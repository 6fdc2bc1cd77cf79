/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_GRAPH_H
#define DRY_GRAPH_H

/*
 * A computation as a graph of operations, and a planner that orders their runs so that
 * memory fits at every moment. Some operations run more than once.
 *
 *     struct dry_graph *graph;
 *     struct dry_graph_plan *plan;
 *     if (dry_graph_create(NULL, &graph, &err) != DRY_OK) ...
 *     dry_graph_add(graph, &(struct dry_graph_node){.name = "conv1", .time_ns = 900,
 *                                                   .bytes = 1 << 20}, &err);
 *     ...
 *     dry_graph_connect(graph, 0, 1, &err);           node 1 reads what node 0 makes
 *     dry_graph_seal(graph, NULL, &err);
 *     struct dry_graph_options options;
 *     dry_graph_options_init(&options);
 *     options.budget_bytes = UINT64_C(8) << 30;
 *     if (dry_graph_plan_create(graph, &options, &plan, &err) == DRY_OK)
 *         runs = dry_graph_plan_get_runs(plan, &count);
 *
 * A node's value is the result of its run. A sequence is a list of runs with every node
 * at least once, after its inputs. A plan is a sequence within a budget.
 *
 * A value is held from its run to the last run that reads it before its node runs again.
 * An output's value is held from its last run to the end. Exactly, run p of node v needs
 *
 *     bytes of all values held after p's beginning: inputs of v, the value of v, and
 *     values made before p and read after it (or outputs)  +  tmp_bytes(v)
 *
 * and the peak is the most that any run needs. It is Checkmate's account of memory (Jain
 * et al., MLSys 2020), without memory that is always held: subtract that from the budget.
 *
 * Unlike a chain's plan (<drystone/plan.h>) this may drop a value and keep another made
 * of it, which a program can do and PyTorch's autograd cannot.
 *
 * Ownership  create / destroy; names are copied. A plan holds no pointer to its graph.
 * Errors     ARGUMENT: a cycle, an edge to a missing node, an invalid order, a sequence
 *            that runs a node before its inputs; err names the node. LIMIT: sums above 63
 *            bits, more nodes or edges than the limits below. NO_SPACE: see
 *            dry_graph_plan_create(). MEMORY.
 * Threads    One at a time until the graph is sealed; then any number may read.
 * Units      Bytes, nanoseconds. Any other unit of time also works.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- graphs ------------------------------------------------------------------------------ */

struct dry_graph;

#define DRY_GRAPH_NODES_MAX 100000u
#define DRY_GRAPH_EDGES_MAX 1000000u

struct dry_graph_node {
    const char *name;   /* NULL: none */
    uint64_t time_ns;   /* time of one run */
    uint64_t bytes;     /* size of its value */
    uint64_t tmp_bytes; /* temporary bytes of a run, beyond inputs and value */
    bool is_fixed;      /* must not run twice */
    bool is_output;     /* its value is held to the end */
};

/* Make an empty graph. A `memory` of NULL is malloc. Errors: MEMORY. */
DRY_API enum dry_status dry_graph_create(const struct dry_memory *memory,
                                         struct dry_graph **graph, struct dry_error *err);
/* End the graph. NULL is fine. */
DRY_API void dry_graph_destroy(struct dry_graph *graph);
/* Add `node`, which gets the next number, from 0. Errors: ARGUMENT (the graph is sealed),
   LIMIT, MEMORY. */
DRY_API enum dry_status dry_graph_add(struct dry_graph *graph,
                                      const struct dry_graph_node *node,
                                      struct dry_error *err);
/* Let node `to` read the value of node `from`. Both must exist; an edge added twice
   counts once. Errors: ARGUMENT, LIMIT, MEMORY. */
DRY_API enum dry_status dry_graph_connect(struct dry_graph *graph, uint32_t from,
                                          uint32_t to, struct dry_error *err);
/*
 * Seal the graph: no more nodes and edges can be added. `order` lists every node once,
 * after its inputs; it is the order of first runs. An `order` of NULL always takes the
 * lowest-numbered node next whose inputs have run. A failed call leaves the graph as it
 * was. Errors: ARGUMENT, MEMORY.
 */
DRY_API enum dry_status dry_graph_seal(struct dry_graph *graph, const uint32_t *order,
                                       struct dry_error *err);

/* Return the number of nodes. */
DRY_API size_t dry_graph_get_count(const struct dry_graph *graph);
/* Return node `index`; NULL beyond the last. It is valid until the next add. */
DRY_API const struct dry_graph_node *dry_graph_get_node(const struct dry_graph *graph,
                                                        uint32_t index);
/* Return the order of first runs; NULL before the graph is sealed. */
DRY_API const uint32_t *dry_graph_get_order(const struct dry_graph *graph);

/* --- sequences --------------------------------------------------------------------------- */

/* Time and memory of a sequence, by the account at the head of this header. */
struct dry_graph_cost {
    uint64_t peak_bytes;
    uint64_t peak_run;  /* index of the first run that needs peak_bytes */
    uint32_t peak_node; /* the node of that run */
    uint64_t time_ns;   /* time of all runs */
    uint64_t base_ns;   /* time of all nodes, once each */
    uint64_t extra_ns;  /* time_ns - base_ns */
    uint64_t run_count, rerun_count;
};

/* One run, as reported to an observer. */
struct dry_graph_step {
    uint32_t node;
    bool is_rerun;
    uint64_t time_ns;      /* start time */
    uint64_t needed_bytes; /* bytes needed while it runs */
    uint64_t held_bytes;   /* bytes held after it ends */
};

/* Receives the runs of a sequence. */
struct dry_graph_observer {
    void (*step)(void *self, const struct dry_graph_step *step); /* NULL: no calls */
    void *self;
};

/*
 * Check that the `count` runs are a sequence, and compute its cost into *cost. If
 * `observer` is not NULL, it is called for every run in order. Requires a sealed graph.
 * Time: O(runs and their inputs). Errors: ARGUMENT, LIMIT, MEMORY.
 */
DRY_API enum dry_status dry_graph_evaluate(const struct dry_graph *graph,
                                           const uint32_t *runs, size_t count,
                                           const struct dry_graph_observer *observer,
                                           struct dry_graph_cost *cost,
                                           struct dry_error *err);

/* --- planning ---------------------------------------------------------------------------- */

struct dry_graph_options {
    size_t struct_size;    /* set by dry_graph_options_init() */
    uint64_t budget_bytes; /* UINT64_MAX, the default: no limit */
    /*
     * Rounds of the local search, each with at most 100,000 steps through runs on
     * average. Default 10,000, which takes up to 5 seconds. The limit is a count and not
     * a time, so the same options give the same plan on every machine.
     */
    uint64_t steps;
    uint64_t seed; /* seed of the local search's random choices; default 1 */
    /* Maximum number of states of the exact search, some 100 bytes each; default 2^20; 0:
       no exact search. Only graphs of at most 32 nodes are searched exactly. */
    uint64_t state_max;
    /*
     * Called after every round with the least time so far; UINT64_MAX: no plan yet.
     * Before the first round ends, while bounds and first plans are made, it is called
     * occasionally with a `step` of 0. A result of true ends the search with the best
     * plan so far.
     */
    bool (*progress)(void *self, uint64_t step, uint64_t best_ns);
    void *progress_self;
};

/* Set all options to their defaults. */
DRY_API void dry_graph_options_init_sized(struct dry_graph_options *options,
                                          size_t struct_size);
#define dry_graph_options_init(options)                                                  \
    dry_graph_options_init_sized(options, sizeof *(options))

/* The numbers of all enums here never change; new ones are appended. */
enum dry_graph_method {
    DRY_GRAPH_ORDER,  /* the order itself fits */
    DRY_GRAPH_EXACT,  /* the exact search, run to its end */
    DRY_GRAPH_SEARCH, /* the local search */
};
#define DRY_GRAPH_METHOD_COUNT 3

/* Return the name of a method: "order", "exact", "search". */
DRY_API const char *dry_graph_method_name(enum dry_graph_method method);

struct dry_graph_summary {
    enum dry_graph_method method;
    struct dry_graph_cost cost;
    uint64_t budget_bytes;
    /*
     * Lower bound on the time of all sequences with first runs in this order; the plan is
     * within cost.time_ns - bound_ns of the best. The exact search computes it. Otherwise
     * it is the time of all nodes once, plus forced reruns: at some node's first run not
     * all values read later fit.
     */
    uint64_t bound_ns;
    bool is_proved; /* proved: no sequence with first runs in this order is better */
    uint64_t floor_bytes; /* see dry_graph_get_floor() */
    uint32_t floor_node;
    uint64_t order_bytes; /* peak of the order with each node once */
    uint64_t steps, states;
    uint64_t hash; /* hash of the sequence */
};

struct dry_graph_plan;

/*
 * Find a sequence within options->budget_bytes that takes little time, with first runs in
 * the graph's order; the result is *plan. Requires a sealed graph. NO_SPACE: the budget
 * is below floor_bytes, or the exact search proved that no sequence fits, or none was
 * found; the text says which. CANCELLED: progress() ended the search before a plan was
 * found. Also ARGUMENT, MEMORY.
 *
 * If the order does not fit, small graphs are tried by the exact search (A*, by resident
 * sets). Otherwise, a greedy start recomputes values before their next use, where that
 * lowers the peak for the least time. Inputs are recomputed, too, or held if they are
 * small. Another start evicts values that are cheap, large and not used for long. DTR
 * does the same (Kirisame et al., ICLR 2021), but without knowing the future. The local
 * search removes random reruns, repairs the sequence in another way, and keeps the better
 * one. A node may run any number of times. Time: O(steps * runs); 1,000 nodes take
 * seconds.
 */
DRY_API enum dry_status dry_graph_plan_create(const struct dry_graph *graph,
                                              const struct dry_graph_options *options,
                                              struct dry_graph_plan **plan,
                                              struct dry_error *err);
/* End the plan. NULL is fine. */
DRY_API void dry_graph_plan_destroy(struct dry_graph_plan *plan);
/* Return the summary, which lives as long as the plan. */
DRY_API const struct dry_graph_summary *dry_graph_plan_get_summary(
    const struct dry_graph_plan *plan);
/* Return the plan's runs, as node numbers, and their *count. */
DRY_API const uint32_t *dry_graph_plan_get_runs(const struct dry_graph_plan *plan,
                                                size_t *count);

/*
 * Return the bytes below which no sequence exists, the larger of two numbers. One is the
 * most that a node needs: its inputs, value and workspace, and all values that are read
 * later and must not be made twice. The other is the bytes of all outputs. Sets *node to
 * the node with the largest need, or to the last node if the outputs decide; `node` may
 * be NULL. Requires a sealed graph with a node.
 */
DRY_API uint64_t dry_graph_get_floor(const struct dry_graph *graph, uint32_t *node);

/* --- export ------------------------------------------------------------------------------ */

/* Receives text in portions. */
struct dry_graph_writer {
    bool (*write)(void *self, const char *text, size_t length); /* true: stop writing */
    void *self;
};

/*
 * Write the same problem as a mixed integer program in the LP format of CPLEX, for
 * external solvers (cbc, glpsol, highs). It is Checkmate's program (section 4.4), with
 * stages that advance the frontier. Its variables, with i and k as positions in the
 * order:
 *
 *     R_t_i     i is run in stage t
 *     S_t_i     i is held into stage t
 *     F_t_i_k   i is freed in stage t after k
 *     U_t_k     bytes after k of stage t, in units of the greatest common divisor of all sizes
 *
 * Its optimum is the least time of sequences that run no node twice in a stage. So it is
 * an upper bound on the true optimum. LIMIT: more than 300 nodes. CANCELLED: the writer
 * returned true. Also MEMORY.
 */
DRY_API enum dry_status dry_graph_write_lp(const struct dry_graph *graph,
                                           uint64_t budget_bytes,
                                           const struct dry_graph_writer *writer,
                                           struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
