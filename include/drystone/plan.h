/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLAN_H
#define DRY_PLAN_H

/*
 * Plan what a chain's forward pass keeps and what it makes again, so that the step fits.
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
 * backward needs. A checkpointed range keeps its last output alone; when the backward
 * comes to it, it runs forward again. In this second run it keeps what items of its own
 * say (nested), or everything (one level). This is what torch.utils.checkpoint does,
 * nested or not.
 *
 * Every plan is evaluated in exact bytes by the same rules, dry_plan_evaluate(), whoever
 * made the plan:
 *
 *   H   bytes held: frame.persistent_bytes + frame.input_bytes at first
 *   G   gradients that are there: of the output the backward starts from (for the whole chain
 *       the last stage's, given from outside and charged from the beginning; for a range the
 *       gradient of its output), and the grads_bytes of stages whose backward is over
 *
 *   forward, saved stage i      needs H + G + saved(i) + forward_tmp(i); holds saved(i); both
 *                               are the option's, as are backward_tmp(i) and what it recomputes
 *   forward, range i to j       stage q of it needs H + G + output(q-1) + output(q) +
 *                               forward_tmp(q), without output(q-1) for q = i; holds output(j)
 *   backward, saved stage i     needs H + G' + gradient(i) + gradient(i-1) + backward_tmp(i) +
 *                               grads(i), G' being the grads_bytes of stages above; then
 *                               saved(i) is gone. gradient(-1) is frame.input_gradient_bytes
 *   backward, range i to j      output(j) is gone; the range runs forward by its own items
 *                               with G = gradient(j) + the grads_bytes above; then backward
 *   the optimizer's step        needs persistent + all grads_bytes + step_bytes
 *
 * These are Rotor's rules (arXiv:1911.13214, section 3), with both gradients charged.
 * Bytes that an option offloads are held during the next stage's forward and during its
 * backward, and not between. If no other stage runs before the stage's own backward, they
 * stay. The time is that of every forward that runs, every backward, and every option's
 * recompute_ns.
 *
 * Ownership  create / destroy; a plan holds no pointer to its chain.
 * Errors     DRY_ERR_NO_SPACE: no plan of the class fits the budget; the text says what
 *            the least budget is, and which stage needs it. DRY_ERR_LIMIT: tables beyond
 *            table_bytes_max. DRY_ERR_CANCELLED: options.progress asked for it, and
 *            nothing is left of the work. DRY_ERR_ARGUMENT: items that do not cover the
 *            chain in order. DRY_ERR_MEMORY.
 * Threads    Any number at a time; nothing is shared. The same input gives the same plan,
 *            on every machine.
 * Units      Bytes, nanoseconds.
 */

#include <drystone/chain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- plans ------------------------------------------------------------------------------- */

/* The numbers of all enums here are fixed for ever; new ones are only appended. */
enum dry_plan_kind {
    DRY_PLAN_SAVE,       /* stages first to last keep what they save */
    DRY_PLAN_CHECKPOINT, /* the range keeps its last output */
};

/* An item of a plan: saved stages, or a checkpointed range. */
struct dry_plan_item {
    uint32_t kind;        /* enum dry_plan_kind */
    uint32_t first, last; /* stages, from 0 */
    uint32_t option; /* of saved stages: 0, as the stage has it; k, its k-th option */
    /*
     * For a range: so many of the items that follow say what its second run keeps; items
     * nested in them count too. 0: it keeps everything.
     */
    uint32_t inner_count;
};

/* The phase that a stage runs in. */
enum dry_plan_phase {
    DRY_PHASE_FORWARD,
    DRY_PHASE_RECOMPUTE, /* a forward for the second time or more */
    DRY_PHASE_BACKWARD,
    DRY_PHASE_STEP, /* the optimizer's */
};
#define DRY_PHASE_COUNT 4

/* Return the name of a phase: "forward", "recompute", "backward", "step". */
DRY_API const char *dry_phase_name(enum dry_plan_phase phase);

/* The cost of a plan. */
struct dry_plan_cost {
    uint64_t peak_bytes; /* of the device, including the whole frame */
    /* The first stage that needs peak_bytes; the number of stages for the step. */
    uint64_t peak_stage;
    enum dry_plan_phase peak_phase;
    uint64_t held_bytes;       /* H + G between forward and backward */
    uint64_t time_ns;          /* of everything that runs */
    uint64_t base_ns;          /* without checkpoints */
    uint64_t extra_ns;         /* time_ns - base_ns */
    uint64_t recomputed_count; /* stages run forward again, each time counted */
};

/* One thing the plan does, for pictures and for programs that carry it out. */
struct dry_plan_step {
    enum dry_plan_phase phase;
    uint32_t stage;
    bool is_saved;         /* of forwards: what the backward needs stays */
    uint64_t time_ns;      /* when it begins */
    uint64_t duration_ns;  /* how long it takes */
    uint64_t needed_bytes; /* while it runs */
    /*
     * After it, including gradients; after the optimizer's step, the bytes that persist.
     */
    uint64_t held_bytes;
};

/* A listener to the steps of a plan. */
struct dry_plan_observer {
    void (*step)(void *self, const struct dry_plan_step *step); /* NULL: nobody watches */
    void *self;
};

/*
 * Compute the cost of the `count` items into *cost. `observer` may be NULL; it hears of
 * every step in order. Memory comes from the chain's allocator. Time: one look at every
 * stage that runs. Errors: DRY_ERR_ARGUMENT, DRY_ERR_MEMORY, DRY_ERR_LIMIT (more than
 * 2^26 second runs, or 2^63 ns).
 */
DRY_API enum dry_status dry_plan_evaluate(const struct dry_chain *chain,
                                          const struct dry_plan_item *items, size_t count,
                                          const struct dry_plan_observer *observer,
                                          struct dry_plan_cost *cost,
                                          struct dry_error *err);

/*
 * Return the hash of a plan: of the chain's hash, and of what the items do.
 * dry_plan_evaluate() must accept the items. Neighbours that are saved alike have the same
 * hash as one item or as several. Names are no part of it.
 */
DRY_API uint64_t dry_plan_hash(const struct dry_chain *chain,
                               const struct dry_plan_item *items, size_t count);

/* --- planners ---------------------------------------------------------------------------- */

/* The ways to make a plan. */
enum dry_plan_method {
    /* The default: exact over all plans without nesting, including options. */
    DRY_METHOD_ONE_LEVEL,
    DRY_METHOD_NESTED, /* Rotor: ranges in ranges, the outer of at most `window` stages */
    DRY_METHOD_NONE,   /* everything is saved */
    DRY_METHOD_BLOCK,  /* every stage is a range of its own, but the last */
    /* Every `every`-th stage is a range of its own, but the last; the others save. */
    DRY_METHOD_EVERY,
    /*
     * Equal ranges, the last one saved (Chen et al. 2016, with the bytes of the range
     * itself). Their number is that with the fewest bytes, or within the budget the least
     * time.
     */
    DRY_METHOD_SQRT,
    /*
     * Chen et al. 2016, algorithm 3: a range ends where its outputs pass a threshold; the
     * last one is saved. The threshold is searched as the number of DRY_METHOD_SQRT is.
     */
    DRY_METHOD_GREEDY,
    /*
     * Griewank and Walther 2000, for stages that are all alike (but the last): snapshots
     * of the outputs alone, as many as fit.
     */
    DRY_METHOD_REVOLVE,
};
#define DRY_METHOD_COUNT 8

/*
 * Return the name of a method: "one-level", "nested", "none", "block", "every", "sqrt",
 * "greedy", "revolve".
 */
DRY_API const char *dry_method_name(enum dry_plan_method method);

/* Options of the planners. */
struct dry_plan_options {
    size_t struct_size; /* set by dry_plan_options_init() */
    const struct dry_memory *memory;
    enum dry_plan_method method;
    /* of the device, including the frame; UINT64_MAX, the default: no limit */
    uint64_t budget_bytes;
    uint32_t every; /* for DRY_METHOD_EVERY; default 2 */
    uint32_t slots; /* the tables divide the budget in so many parts; default 500 */
    /*
     * Most stages of a range with ranges inside; 0, the default: doubled from 16 until
     * nothing changes, as far as the tables may go.
     */
    uint32_t window;
    uint64_t table_bytes_max; /* default 256 MiB */
    /*
     * Called in the caller's thread before the work, and then within half a second as a
     * rule; a result of true cancels. `done` never falls. For dry_plan_create() it
     * counts rows of tables, and `total` is 0: nobody knows how many rows it takes. For
     * dry_plan_curve() it counts plans, of `total`. NULL, the default: nobody is told.
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
    DRY_CLASS_RULE,      /* made by a rule; nothing is proved */
    DRY_CLASS_ONE_LEVEL, /* the best of all plans without nesting, within the gap */
    /* The best of all persistent plans with ranges up to the window, within the gap. */
    DRY_CLASS_NESTED,
    /* The best of all plans: nothing is recomputed, or the bound is met. */
    DRY_CLASS_OPTIMAL,
};
#define DRY_CLASS_COUNT 4

/*
 * Return the name of a class: "rule", "one-level-optimal", "nested-optimal", "optimal".
 */
DRY_API const char *dry_plan_class_name(enum dry_plan_class plan_class);

/* A plan's summary. */
struct dry_plan_summary {
    enum dry_plan_method method;
    enum dry_plan_class plan_class;
    struct dry_plan_cost cost;
    uint64_t budget_bytes;
    /*
     * No plan of the class takes less. The bound comes from tables with every size
     * rounded down, from prices for bytes, or from the whole search if that is exact. For
     * rules it is base_ns.
     */
    uint64_t bound_ns;
    uint64_t floor_bytes; /* the least budget that some plan of the class fits */
    /* The stage that needs floor_bytes; the number of stages: the optimizer's step. */
    uint64_t floor_stage;
    enum dry_plan_phase floor_phase;
    /*
     * The tables that the plan came from; 0: no tables. One level has a window if the
     * chain has more than 8,000 stages. Then only ranges of so many stages were tried,
     * longer ones were possible, and the bound is that of a price for bytes.
     */
    uint32_t slots, window;
    uint64_t table_bytes; /* of the tables, at their largest */
    uint64_t hash;        /* as dry_plan_hash() says */
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
/* Return the plan's summary. */
DRY_API const struct dry_plan_summary *dry_plan_get_summary(const struct dry_plan *plan);
/* Return the plan's items, and their *count. */
DRY_API const struct dry_plan_item *dry_plan_get_items(const struct dry_plan *plan,
                                                       size_t *count);

/* --- the whole curve --------------------------------------------------------------------- */

/* A plan that no other beats in both bytes and time. */
struct dry_plan_point {
    struct dry_plan_cost cost;
    enum dry_plan_method method;
};

/*
 * Compute the curve of plans by options->method, which is ONE_LEVEL or NESTED. It goes
 * from the least budget to the point at which nothing is recomputed; budget_bytes is the
 * most that it looks at. At most `capacity` points are written to `points`, spread over
 * the bytes, ascending; *count is their number. Tables have at most 128 slots. Cost: that
 * of as many plans. A failed call may have written to `points`. DRY_ERR_CANCELLED:
 * options->progress asked for it. Other errors: those of dry_plan_create().
 */
DRY_API enum dry_status dry_plan_curve(const struct dry_chain *chain,
                                       const struct dry_plan_options *options,
                                       struct dry_plan_point *points, size_t capacity,
                                       size_t *count, struct dry_error *err);

/*
 * Return the extra forwards that turning back `steps` equal steps takes with room for
 * `snapshots` states, the first counted (Griewank and Walther 2000, TOMS 799):
 *
 *     r * steps - binomial(snapshots + r, r - 1)
 *
 * for the smallest r with steps <= binomial(snapshots + r, r). UINT64_MAX: more than 63
 * bits, or no snapshot.
 */
DRY_API uint64_t dry_revolve_count(uint64_t steps, uint64_t snapshots);

#ifdef __cplusplus
}
#endif

#endif
