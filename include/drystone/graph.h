/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_GRAPH_H
#define DRY_GRAPH_H

/*
 * A computation as a graph of operations, and an order to run them in, some of them more than
 * once, so that what is in memory at a time fits.
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
 * A plan is a sequence of runs: every node at least once, after its inputs. What a run makes is
 * there from the run to the last run that reads it before its node runs again, and not longer;
 * what an output makes, from its last run to the end. Exactly, run p of node v needs
 *
 *     bytes of all values that are there after p's beginning: inputs of v, what v makes, and
 *     what was made before p and is read after it (or is an output)  +  tmp_bytes(v)
 *
 * and the peak is the most that any run needs. It is Checkmate's account of memory (Jain et
 * al., MLSys 2020), without what is always there: take that off the budget.
 *
 * Unlike a chain's plan (<drystone/plan.h>) this may drop a value and keep what was made of it,
 * which a program can do and PyTorch's autograd cannot.
 *
 * Ownership  create / destroy; names are copied. A plan holds no pointer to its graph.
 * Errors     ARGUMENT: a cycle, an edge to nowhere, an order that is none, a sequence that runs
 *            a node before its inputs; the text names the node. LIMIT: sums beyond 63 bits,
 *            more nodes or edges than below. NO_SPACE: see dry_graph_plan_create().
 * Threads    One at a time until the graph is sealed; then any number may read.
 * Units      Bytes, nanoseconds; any other unit of time does as well.
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
    uint64_t time_ns;   /* of a run */
    uint64_t bytes;     /* of what it makes */
    uint64_t tmp_bytes; /* while it runs, beyond that */
    bool is_fixed;      /* must not run twice */
    bool is_output;     /* what it makes stays to the end */
};

/* memory NULL: malloc. */
DRY_API enum dry_status dry_graph_create(const struct dry_memory *memory,
                                         struct dry_graph **graph, struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_graph_destroy(struct dry_graph *graph);
/* The node gets the next number, from 0. */
DRY_API enum dry_status dry_graph_add(struct dry_graph *graph,
                                      const struct dry_graph_node *node,
                                      struct dry_error *err);
/* `to` reads what `from` makes. Both must be there; twice is once. */
DRY_API enum dry_status dry_graph_connect(struct dry_graph *graph, uint32_t from,
                                          uint32_t to, struct dry_error *err);
/*
 * No more nodes and edges. `order` has all nodes once, each after its inputs: the order in
 * which they run for the first time. NULL: that of their numbers, or where an edge goes back,
 * of those whose inputs are there the least number first. Failed: as before.
 */
DRY_API enum dry_status dry_graph_seal(struct dry_graph *graph, const uint32_t *order,
                                       struct dry_error *err);

DRY_API size_t dry_graph_get_count(const struct dry_graph *graph);
/* NULL beyond the last; valid until the next add. */
DRY_API const struct dry_graph_node *dry_graph_get_node(const struct dry_graph *graph,
                                                        uint32_t index);
/* The order; NULL before the graph is sealed. */
DRY_API const uint32_t *dry_graph_get_order(const struct dry_graph *graph);

/* --- sequences --------------------------------------------------------------------------- */

struct dry_graph_cost {
    uint64_t peak_bytes;
    uint64_t peak_run;  /* where in the sequence, the first time */
    uint32_t peak_node; /* and what runs there */
    uint64_t time_ns;   /* of all runs */
    uint64_t base_ns;   /* of all nodes, once each */
    uint64_t extra_ns;  /* time_ns - base_ns */
    uint64_t run_count, rerun_count;
};

struct dry_graph_step {
    uint32_t node;
    bool is_rerun;
    uint64_t time_ns;      /* when it begins */
    uint64_t needed_bytes; /* while it runs */
    uint64_t held_bytes;   /* after it */
};

struct dry_graph_observer {
    void (*step)(void *self,
                 const struct dry_graph_step *step); /* NULL: nobody watches */
    void *self;
};

/*
 * What a sequence costs, and whether it is one; the graph must be sealed. observer may be NULL;
 * it hears of every run in order. Time: O(runs and their inputs).
 */
DRY_API enum dry_status dry_graph_judge(const struct dry_graph *graph,
                                        const uint32_t *runs, size_t count,
                                        const struct dry_graph_observer *observer,
                                        struct dry_graph_cost *cost,
                                        struct dry_error *err);

/* --- planning ---------------------------------------------------------------------------- */

struct dry_graph_options {
    size_t struct_size;    /* set by dry_graph_options_init() */
    uint64_t budget_bytes; /* UINT64_MAX, the default: no limit */
    /*
     * Rounds of the local search, of 100,000 looks at runs each on average at most; default
     * 10,000, which is up to 5 seconds. They are counted and not timed, so that the same
     * options give the same plan, on every machine.
     */
    uint64_t steps;
    uint64_t seed; /* of its choices; default 1 */
    uint64_t
        state_max; /* of the exact search, tried on graphs of 32 nodes at most; default
                           2^20, some 100 bytes each; 0: it is not tried */
    /*
     * Called after every round with the least time so far; UINT64_MAX: no plan yet. Before the
     * first one is over, while bounds and first plans are made, it is called now and then with
     * a step of 0. Other than 0 ends the search with what it has.
     */
    int (*progress)(void *self, uint64_t step, uint64_t best_ns);
    void *progress_self;
};

DRY_API void dry_graph_options_init(struct dry_graph_options *options);

/* The numbers of all enums here are fixed for ever; new ones are only appended. */
enum dry_graph_method {
    DRY_GRAPH_ORDER,  /* the order fits as it is */
    DRY_GRAPH_EXACT,  /* the exact search ended */
    DRY_GRAPH_SEARCH, /* the local search */
};
#define DRY_GRAPH_METHOD_COUNT 3

/* "order", "exact", "search". */
DRY_API const char *dry_graph_method_name(enum dry_graph_method method);

struct dry_graph_summary {
    enum dry_graph_method method;
    struct dry_graph_cost cost;
    uint64_t budget_bytes;
    /*
     * No sequence with first runs in the order takes less; the plan is within cost.time_ns -
     * bound_ns of the best. By the exact search; else all nodes once, and what must be run
     * again because at some node's first run not all that is read later has room.
     */
    uint64_t bound_ns;
    bool is_proved;       /* nothing is better */
    uint64_t floor_bytes; /* as dry_graph_get_floor() */
    uint32_t floor_node;
    uint64_t order_bytes; /* what the order needs, each node once */
    uint64_t steps, states;
    uint64_t hash; /* of the sequence */
};

struct dry_graph_plan;

/*
 * A sequence within the budget that takes little time; the graph must be sealed. First runs are
 * in the order. NO_SPACE: the budget is below floor_bytes, or the exact search proved that
 * there is none, or none was found; the text says which. CANCELLED: progress() ended the search
 * before there was one.
 *
 * Where the order does not fit, the exact search (A*, by resident sets) is tried on small
 * graphs. Else values are run again before their next use where they relieve the peak for the
 * least time (greedy), and another start is the eviction of what is cheap, large and not used
 * for long (as DTR does, Kirisame et al., ICLR 2021, but knowing the future). The local search
 * takes some reruns out and repairs the sequence otherwise, by chance, and keeps what is
 * better. Nodes run as often as it takes.
 * Time: O(steps * runs); 1,000 nodes take seconds.
 */
DRY_API enum dry_status dry_graph_plan_create(const struct dry_graph *graph,
                                              const struct dry_graph_options *options,
                                              struct dry_graph_plan **plan,
                                              struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_graph_plan_destroy(struct dry_graph_plan *plan);
DRY_API const struct dry_graph_summary *dry_graph_plan_get_summary(
    const struct dry_graph_plan *plan);
DRY_API const uint32_t *dry_graph_plan_get_runs(const struct dry_graph_plan *plan,
                                                size_t *count);

/*
 * What no sequence can do without: the most that a node needs for itself, its inputs, its
 * workspace and all that is read later and must not run twice; or what all outputs have. *node
 * is that node, or the last. The graph must be sealed and have a node; node may be NULL.
 */
DRY_API uint64_t dry_graph_get_floor(const struct dry_graph *graph, uint32_t *node);

/* --- export ------------------------------------------------------------------------------ */

struct dry_graph_writer {
    int (*write)(void *self, const char *text, size_t length); /* other than 0: stop */
    void *self;
};

/*
 * The same problem as a mixed integer program in the LP format of CPLEX, for solvers from
 * elsewhere (cbc, glpsol, highs): Checkmate's (section 4.4), with stages that advance the
 * frontier. Variables: R_t_i, the i-th of the order is run in stage t; S_t_i, it is held into
 * stage t; F_t_i_k, it is freed in stage t after k; U_t_k, bytes after k of stage t, in units
 * of the greatest common divisor of all sizes. Its optimum is the least time where no node is
 * run twice in a stage, so at least the least time of all.
 * LIMIT: more than 300 nodes. CANCELLED: the writer said stop.
 */
DRY_API enum dry_status dry_graph_write_lp(const struct dry_graph *graph,
                                           uint64_t budget_bytes,
                                           const struct dry_graph_writer *writer,
                                           struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
