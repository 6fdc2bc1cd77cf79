/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLAN_H
#define DRY_PLAN_H

/*
 * Plan what a chain's forward pass keeps and what it recomputes, so that the training
 * step fits into memory.
 *
 *     struct dry_plan_options options;
 *     dry_plan_options_init(&options);
 *     options.budget_bytes = UINT64_C(40) << 30;
 *     struct dry_plan *plan;
 *     if (dry_plan_create(chain, &options, &plan, &err) == DRY_OK) {
 *         const struct dry_plan_summary *s = dry_plan_get_summary(plan);
 *         printf("%.1f %% more time\n", 100.0 * s->cost.extra_ns / s->cost.base_ns);
 *         dry_plan_destroy(plan);
 *     }
 *
 * A plan is a list of items that cover the stages in order. A saved stage keeps what its
 * backward needs. A checkpointed range keeps only its last output; when the backward
 * reaches it, it runs forward again. In this second run it keeps what its own items say
 * (nested), or everything (one level). This is what torch.utils.checkpoint does, nested
 * or not.
 *
 * Every plan is evaluated in exact bytes by the same rules, dry_plan_evaluate(), for
 * every planner:
 *
 *   H   bytes held: frame.persistent_bytes + frame.input_bytes at first
 *   G   gradients that are held: of the output that the backward starts from (for the
 *       whole chain the last stage's, given from outside and charged from the beginning;
 *       for a range the gradient of its output), and the grads_bytes of stages whose
 *       backward is over
 *
 *   forward, saved stage i      needs H + G + saved(i) + forward_tmp(i); holds saved(i); both
 *                               are the option's, as are backward_tmp(i) and what it recomputes
 *   forward, range i to j       stage q of it needs H + G + output(q-1) + output(q) +
 *                               forward_tmp(q), without output(q-1) for q = i; holds output(j)
 *   backward, saved stage i     needs H + G' + gradient(i) + gradient(i-1) + backward_tmp(i) +
 *                               grads(i), G' being the grads_bytes of stages above; then
 *                               saved(i) is freed. gradient(-1) is frame.input_gradient_bytes
 *   backward, range i to j      output(j) is freed; the range runs forward by its own items
 *                               with G = gradient(j) + the grads_bytes above; then backward
 *   the optimizer's step        needs persistent + all grads_bytes + step_bytes
 *
 * These are Rotor's rules (arXiv:1911.13214, section 3), with both gradients charged.
 * Bytes that an option offloads are held during the next stage's forward and during its
 * backward, and not in between. If no other stage runs before the stage's own backward,
 * they stay on the device. The time is the sum over all forwards that run, all backwards,
 * and all options' recompute_ns.
 *
 * Ownership  create / destroy; a plan holds no pointer to its chain.
 * Errors     DRY_ERR_NO_SPACE: no plan of the class fits the budget; err has the least
 *            budget, and the stage that needs it. DRY_ERR_LIMIT: tables beyond
 *            table_bytes_max. DRY_ERR_CANCELLED: options.progress returned true; no
 *            result is kept. DRY_ERR_ARGUMENT: items that do not cover the chain in
 *            order. DRY_ERR_MEMORY.
 * Threads    Any number at a time; nothing is shared. The same input gives the same plan,
 *            on every machine.
 * Units      Bytes, nanoseconds.
 */

#include <drystone/chain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- plans ------------------------------------------------------------------------------- */

/* The numbers of all enums here never change; new ones are appended. */
enum dry_plan_kind {
    DRY_PLAN_SAVE,       /* stages first to last keep their saved bytes */
    DRY_PLAN_CHECKPOINT, /* only the output of stage last is kept */
};

/* An item of a plan: saved stages, or a checkpointed range. */
struct dry_plan_item {
    uint32_t kind;        /* enum dry_plan_kind */
    uint32_t first, last; /* stage numbers, from 0 */
    uint32_t option; /* saved stages: 0, the stage's own fields; k, its k-th option */
    /* For a range: the number of following items that say what its second run keeps,
       including items nested in them. 0: the second run keeps everything. */
    uint32_t inner_count;
};

enum dry_plan_phase {
    DRY_PHASE_FORWARD,
    DRY_PHASE_RECOMPUTE, /* a forward that is not the stage's first */
    DRY_PHASE_BACKWARD,
    DRY_PHASE_STEP, /* the optimizer's step */
};
#define DRY_PHASE_COUNT 4

/* Return the name of a phase: "forward", "recompute", "backward", "step". */
DRY_API const char *dry_phase_name(enum dry_plan_phase phase);

/* Time and memory of a plan, by the rules at the head of this header. */
struct dry_plan_cost {
    uint64_t peak_bytes; /* bytes on the device, including the whole frame */
    /* The first stage that needs peak_bytes; for the optimizer's step, the number of
       stages. */
    uint64_t peak_stage;
    enum dry_plan_phase peak_phase;
    uint64_t held_bytes;       /* H + G between forward and backward */
    uint64_t time_ns;          /* time of all runs */
    uint64_t base_ns;          /* time without checkpoints */
    uint64_t extra_ns;         /* time_ns - base_ns */
    uint64_t recomputed_count; /* repeated forwards of stages, each counted */
};

/* One run of the plan, for pictures and for programs that execute the plan. */
struct dry_plan_step {
    enum dry_plan_phase phase;
    uint32_t stage;
    bool is_saved;    /* forwards: the stage keeps what its backward needs */
    uint64_t time_ns; /* start time */
    uint64_t duration_ns;
    uint64_t needed_bytes; /* bytes needed while it runs */
    /*
     * Bytes held afterwards, including gradients; after the optimizer's step, persistent
     * bytes.
     */
    uint64_t held_bytes;
};

/* Receives the steps of a plan. */
struct dry_plan_observer {
    void (*step)(void *self, const struct dry_plan_step *step); /* NULL: no calls */
    void *self;
};

/*
 * Compute the cost of the `count` items into *cost. `observer` may be NULL; it is called
 * for every step in order. Memory comes from the chain's allocator. Time: O(stages that
 * run). Errors: DRY_ERR_ARGUMENT, DRY_ERR_MEMORY, DRY_ERR_LIMIT (more than 2^26 second
 * runs, or 2^63 ns).
 */
DRY_API enum dry_status dry_plan_evaluate(const struct dry_chain *chain,
                                          const struct dry_plan_item *items, size_t count,
                                          const struct dry_plan_observer *observer,
                                          struct dry_plan_cost *cost,
                                          struct dry_error *err);

/*
 * Return the hash of a plan, from the chain's hash and from what the items do.
 * dry_plan_evaluate() must accept the items. Adjacent stages saved alike give the same
 * hash as one item or as several. Names are not hashed.
 */
DRY_API uint64_t dry_plan_hash(const struct dry_chain *chain,
                               const struct dry_plan_item *items, size_t count);

/* --- planners ---------------------------------------------------------------------------- */

enum dry_plan_method {
    /* The default: exact over all plans without nesting, including options. */
    DRY_METHOD_ONE_LEVEL,
    DRY_METHOD_NESTED, /* Rotor: ranges in ranges; the outer ones have at most `window`
                          stages */
    DRY_METHOD_NONE,   /* everything is saved */
    DRY_METHOD_BLOCK,  /* every stage but the last is a range of its own */
    /* Every `every`-th stage but the last is a range of its own; the others save. */
    DRY_METHOD_EVERY,
    /*
     * Equal ranges, the last one saved (Chen et al. 2016, plus the bytes of the range
     * itself). Their number minimizes the time within the budget, or the bytes without
     * one.
     */
    DRY_METHOD_SQRT,
    /*
     * Chen et al. 2016, algorithm 3: a range ends where its outputs exceed a threshold;
     * the last one is saved. The threshold is searched like the number of ranges of
     * DRY_METHOD_SQRT.
     */
    DRY_METHOD_GREEDY,
    /* Griewank and Walther 2000, for stages that are all alike, except the last. It keeps
       snapshots of outputs only, as many as fit. */
    DRY_METHOD_REVOLVE,
};
#define DRY_METHOD_COUNT 8

/* Return the name of a method: "one-level", "nested", "none", "block", "every", "sqrt",
   "greedy", "revolve". */
DRY_API const char *dry_method_name(enum dry_plan_method method);

struct dry_plan_options {
    size_t struct_size; /* set by dry_plan_options_init() */
    const struct dry_memory *memory;
    enum dry_plan_method method;
    /* limit on the device, including the frame; UINT64_MAX, the default: none */
    uint64_t budget_bytes;
    uint32_t every; /* for DRY_METHOD_EVERY; default 2 */
    uint32_t slots; /* the tables divide the budget into this number of slots; default
                       500 */
    /* Most stages of a range that contains ranges. 0, the default: doubled from 16 until
       the plan no longer changes, or until the tables reach their limit. */
    uint32_t window;
    uint64_t table_bytes_max; /* limit on the tables' memory; default 256 MiB */
    /*
     * Called in the caller's thread before the work starts, and then usually every half
     * second; a result of true cancels. `done` never decreases. For dry_plan_create() it
     * counts rows of tables, and `total` is 0 because the number of rows is not known.
     * For dry_plan_curve() it counts plans, out of `total`. NULL, the default: no calls.
     */
    bool (*progress)(void *self, uint64_t done, uint64_t total);
    void *progress_self;
};

/* Set all options to their defaults. */
DRY_API void dry_plan_options_init_sized(struct dry_plan_options *options,
                                         size_t struct_size);
#define dry_plan_options_init(options)                                                   \
    dry_plan_options_init_sized(options, sizeof *(options))

/* How far a plan is proved to be the best. The gap is cost.time_ns - bound_ns. */
enum dry_plan_class {
    DRY_CLASS_RULE,      /* made by a rule, without proof */
    DRY_CLASS_ONE_LEVEL, /* the best plan without nesting, within the gap */
    /* The best persistent plan with ranges up to the window, within the gap. */
    DRY_CLASS_NESTED,
    /* The best of all plans: it recomputes nothing, or it meets the bound. */
    DRY_CLASS_OPTIMAL,
};
#define DRY_CLASS_COUNT 4

/*
 * Return the name of a class: "rule", "one-level-optimal", "nested-optimal", "optimal".
 */
DRY_API const char *dry_plan_class_name(enum dry_plan_class plan_class);

struct dry_plan_summary {
    enum dry_plan_method method;
    enum dry_plan_class plan_class;
    struct dry_plan_cost cost;
    uint64_t budget_bytes;
    /*
     * Lower bound on the time of plans of the class. The bound comes from tables with
     * every size rounded down, from prices for bytes, or from the whole search if that is
     * exact. For rules it is base_ns.
     */
    uint64_t bound_ns;
    uint64_t floor_bytes; /* the least budget with a plan of the class */
    /* The stage that needs floor_bytes; for the optimizer's step, the number of
       stages. */
    uint64_t floor_stage;
    enum dry_plan_phase floor_phase;
    /*
     * The tables that gave the plan; slots 0: no tables. ONE_LEVEL has a window if the
     * chain has more than 8,000 stages. Then only ranges up to this number of stages were
     * tried although longer ones were possible, and the bound comes from prices for
     * bytes.
     */
    uint32_t slots, window;
    uint64_t table_bytes; /* size of the tables at their largest */
    uint64_t hash;        /* see dry_plan_hash() */
};

struct dry_plan;

/*
 * Make a plan for `chain` by options->method within its budget; the result is *plan.
 * `options` NULL: the defaults. Errors: NO_SPACE, LIMIT, CANCELLED, ARGUMENT, MEMORY, as
 * above.
 */
DRY_API enum dry_status dry_plan_create(const struct dry_chain *chain,
                                        const struct dry_plan_options *options,
                                        struct dry_plan **plan, struct dry_error *err);
/* End the plan. NULL is fine. */
DRY_API void dry_plan_destroy(struct dry_plan *plan);
/* Return the summary, which lives as long as the plan. */
DRY_API const struct dry_plan_summary *dry_plan_get_summary(const struct dry_plan *plan);
/* Return the plan's items, and their *count. */
DRY_API const struct dry_plan_item *dry_plan_get_items(const struct dry_plan *plan,
                                                       size_t *count);

/* --- the whole curve --------------------------------------------------------------------- */

/* A Pareto-optimal plan: no other is better in both bytes and time. */
struct dry_plan_point {
    struct dry_plan_cost cost;
    enum dry_plan_method method;
};

/*
 * Compute the curve of plans by options->method, which is ONE_LEVEL or NESTED. It goes
 * from the least budget to the point at which nothing is recomputed; budget_bytes limits
 * it. At most `capacity` points are written to `points`, in ascending bytes and evenly
 * spread; *count is their number. Tables have at most 128 slots. Cost: one plan per
 * point. A failed call may have written to `points`. DRY_ERR_CANCELLED: options->progress
 * returned true. Other errors: those of dry_plan_create().
 */
DRY_API enum dry_status dry_plan_curve(const struct dry_chain *chain,
                                       const struct dry_plan_options *options,
                                       struct dry_plan_point *points, size_t capacity,
                                       size_t *count, struct dry_error *err);

/*
 * Return the number of extra forwards needed to reverse `steps` equal steps with memory
 * for `snapshots` states, including the first (Griewank and Walther 2000, TOMS 799):
 *
 *     r * steps - binomial(snapshots + r, r - 1)
 *
 * for the smallest r with steps <= binomial(snapshots + r, r). UINT64_MAX: the result
 * exceeds 63 bits, or `snapshots` is 0.
 */
DRY_API uint64_t dry_revolve_count(uint64_t steps, uint64_t snapshots);

#ifdef __cplusplus
}
#endif

#endif
