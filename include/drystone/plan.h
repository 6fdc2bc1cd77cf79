/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLAN_H
#define DRY_PLAN_H

/*
 * What to keep of a chain's forward pass and what to make again, so that it fits.
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
 * backward needs. A checkpointed range keeps its last output alone; when the backward comes
 * to it, it runs forward again, and what is kept then is said by items of its own (nested),
 * or all (one level). This is what torch.utils.checkpoint does, nested or not.
 *
 * Every plan is judged in exact bytes by the same rules, dry_plan_judge(), whoever made it:
 *
 *   H   what is held: frame.persistent_bytes + frame.input_bytes at first
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
 * The same rules as Rotor's (arXiv:1911.13214, section 3), with both gradients charged; the
 * bytes an option offloads are held during the next stage's forward and backward, and not
 * between, but where no other stage runs before its own backward: there they stay. Time:
 * every forward that runs, every backward, every option's recompute_ns.
 *
 * Ownership  create / destroy; a plan holds no pointer to its chain.
 * Errors     DRY_ERR_NO_SPACE: no plan of the class fits the budget; the text says what the
 *            least budget is, and which stage wants it. DRY_ERR_LIMIT: tables beyond
 *            table_bytes_max. DRY_ERR_CANCELLED: options.progress asked for it, and nothing is
 *            left of the work. DRY_ERR_ARGUMENT: items that do not cover the chain in order.
 * Threads    Any number at a time; nothing is shared. The same input gives the same plan, on
 *            every machine.
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

struct dry_plan_item {
    uint32_t kind;        /* enum dry_plan_kind */
    uint32_t first, last; /* stages, from 0 */
    uint32_t option;      /* of saved ones: 0, as the stage has it; k, its k-th option */
    /*
     * Of a range: so many of the items that follow, those inside those counted too, say what
     * its second run keeps; 0: all of it.
     */
    uint32_t inner_count;
};

enum dry_plan_phase {
    DRY_PHASE_FORWARD,
    DRY_PHASE_RECOMPUTE, /* a forward for the second time or more */
    DRY_PHASE_BACKWARD,
    DRY_PHASE_STEP, /* the optimizer's */
};
#define DRY_PHASE_COUNT 4

/* "forward", "recompute", "backward", "step". */
DRY_API const char *dry_phase_name(enum dry_plan_phase phase);

struct dry_plan_cost {
    uint64_t peak_bytes; /* of the device: with all that the frame has */
    uint64_t peak_stage; /* where, the first time; the number of stages for the step */
    enum dry_plan_phase peak_phase;
    uint64_t held_bytes;       /* H + G between forward and backward */
    uint64_t time_ns;          /* all */
    uint64_t base_ns;          /* what it takes without checkpoints */
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
    uint64_t held_bytes;   /* after it, gradients too; after the step: what persists */
};

struct dry_plan_observer {
    void (*step)(void *self, const struct dry_plan_step *step); /* NULL: nobody watches */
    void *self;
};

/*
 * What a list of items costs. observer may be NULL; it hears of every step in order. Memory
 * comes from where the chain's does. Time: one look at every stage that runs; DRY_ERR_LIMIT:
 * that are more than 2^26 second runs, or 2^63 ns.
 */
DRY_API enum dry_status dry_plan_judge(const struct dry_chain *chain,
                                       const struct dry_plan_item *items, size_t count,
                                       const struct dry_plan_observer *observer,
                                       struct dry_plan_cost *cost, struct dry_error *err);

/*
 * Of the chain's hash and of what the items, which dry_plan_judge() takes, do: the same where
 * neighbours that are saved alike are one item or several. Names are no part of it.
 */
DRY_API uint64_t dry_plan_hash(const struct dry_chain *chain,
                               const struct dry_plan_item *items, size_t count);

/* --- planners ---------------------------------------------------------------------------- */

enum dry_plan_method {
    DRY_METHOD_ONE_LEVEL, /* the default: exact over all plans without nesting, options too */
    DRY_METHOD_NESTED, /* Rotor: ranges in ranges, those at most `window` stages */
    DRY_METHOD_NONE,   /* everything is saved */
    DRY_METHOD_BLOCK,  /* every stage is a range of its own, but the last */
    DRY_METHOD_EVERY,  /* every `every`-th stage is a range of its own, but the last; the
                             others save */
    DRY_METHOD_SQRT,   /* equal ranges, the last one saved; how many: the fewest bytes, or
                             within the budget the least time; Chen et al. 2016 with the
                             bytes of the range itself */
    DRY_METHOD_GREEDY, /* Chen et al. 2016, algorithm 3: a range ends where the outputs in it
                             pass a threshold, the last one saved; the threshold is searched
                             as above */
    DRY_METHOD_REVOLVE, /* Griewank and Walther 2000: for stages that are all alike (but the
                             last), snapshots of the outputs alone, as many as fit */
};
#define DRY_METHOD_COUNT 8

/* "one-level", "nested", "none", "block", "every", "sqrt", "greedy", "revolve". */
DRY_API const char *dry_method_name(enum dry_plan_method method);

struct dry_plan_options {
    size_t struct_size; /* set by dry_plan_options_init() */
    const struct dry_memory *memory;
    enum dry_plan_method method;
    uint64_t
        budget_bytes; /* of the device, the frame included; UINT64_MAX, the default: no
                              limit */
    uint32_t every;   /* of DRY_METHOD_EVERY; default 2 */
    uint32_t slots;   /* of the tables: the budget in so many parts; default 500 */
    uint32_t window;  /* stages of a range that has ranges inside; 0, the default: doubled
                        from 16 until nothing changes, as far as the tables may go */
    uint64_t table_bytes_max; /* default 256 MiB */
    /*
     * Called before the work and then, as a rule, within half a second, in the caller's thread; other
     * than 0 cancels. `done` never falls. Of dry_plan_create() it counts rows of tables, and
     * `total` is 0, for nobody knows how many it will take; of dry_plan_curve() it counts
     * plans, of `total`. NULL, the default: nobody is told.
     */
    int (*progress)(void *self, uint64_t done, uint64_t total);
    void *progress_self;
};

DRY_API void dry_plan_options_init(struct dry_plan_options *options);

/* How far a plan can be trusted to be the best. */
enum dry_plan_class {
    DRY_CLASS_RULE,      /* made by a rule; nothing is proved */
    DRY_CLASS_ONE_LEVEL, /* of all plans without nesting, within the gap */
    DRY_CLASS_NESTED, /* of all persistent plans with ranges to the window, within the gap */
    DRY_CLASS_OPTIMAL, /* of all plans: nothing is recomputed, or the bound is met */
};
#define DRY_CLASS_COUNT 4

/* "rule", "one-level-optimal", "nested-optimal", "optimal". */
DRY_API const char *dry_plan_class_name(enum dry_plan_class plan_class);

struct dry_plan_summary {
    enum dry_plan_method method;
    enum dry_plan_class plan_class;
    struct dry_plan_cost cost;
    uint64_t budget_bytes;
    /*
     * No plan of the class takes less: by tables with every size rounded down, by prices for
     * bytes, or by the whole search where that is exact; for rules, base_ns.
     */
    uint64_t bound_ns;
    uint64_t floor_bytes; /* the least budget that some plan of the class fits */
    uint64_t
        floor_stage; /* and the stage that binds it; the number of stages: the step */
    enum dry_plan_phase floor_phase;
    /*
     * That the plan came of; 0: no tables. A window of one level: of more than 8,000 stages
     * only ranges of so many were looked at, longer ones were possible, and the bound is that
     * of a price for bytes.
     */
    uint32_t slots, window;
    uint64_t table_bytes; /* the largest they were */
    uint64_t hash;        /* of the chain's hash, the items and nothing else */
};

struct dry_plan;

DRY_API enum dry_status dry_plan_create(const struct dry_chain *chain,
                                        const struct dry_plan_options *options,
                                        struct dry_plan **plan, struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_plan_destroy(struct dry_plan *plan);
DRY_API const struct dry_plan_summary *dry_plan_get_summary(const struct dry_plan *plan);
DRY_API const struct dry_plan_item *dry_plan_get_items(const struct dry_plan *plan,
                                                       size_t *count);

/* --- the whole curve --------------------------------------------------------------------- */

/* A plan that no other is better than in both bytes and time. */
struct dry_plan_point {
    struct dry_plan_cost cost;
    enum dry_plan_method method;
};

/*
 * From the least budget to where nothing is recomputed, by options->method, which is
 * ONE_LEVEL or NESTED; budget_bytes is the most looked at. At most `capacity` points, spread
 * over the bytes, ascending; *count says how many. Tables have at most 128 slots. Cost: that of
 * as many plans. `points` may be written to where the call fails. DRY_ERR_CANCELLED:
 * options->progress asked for it.
 */
DRY_API enum dry_status dry_plan_curve(const struct dry_chain *chain,
                                       const struct dry_plan_options *options,
                                       struct dry_plan_point *points, size_t capacity,
                                       size_t *count, struct dry_error *err);

/*
 * Extra forwards that turning back `steps` equal steps takes with room for `snapshots`
 * states, the first counted (Griewank and Walther 2000, TOMS 799): r * steps -
 * binomial(snapshots + r, r - 1) for the smallest r with steps <= binomial(snapshots + r, r).
 * UINT64_MAX: more than 63 bits, or no snapshot.
 */
DRY_API uint64_t dry_revolve_count(uint64_t steps, uint64_t snapshots);

#ifdef __cplusplus
}
#endif

#endif
