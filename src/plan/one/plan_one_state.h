/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_STATE_H
#define DRYI_PLAN_ONE_STATE_H

/*
 * The chain as the one-level planner sees it (plan_one.h): stages with their options,
 * ranges, and the items of a plan.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "plan/chain/chain_state.h"
#include "plan/chain/plan_progress.h"

struct dryi_one_option {
    /* Held bytes after the next stage's forward: saved bytes less the offloaded. */
    uint64_t held;
    /* The larger need of its forward and its backward, beyond what is held before. */
    uint64_t need;
    uint64_t extra;
    size_t row; /* the next stage's row for what this option offloads */
};

struct dryi_one_stage {
    uint64_t forward, output, saved, forward_tmp;
    /* Need of the backward after a second forward, without the saved bytes. */
    uint64_t back;
    /*
     * Gradients in memory while a range that ends here runs again: the stage's own and
     * the grads_bytes above.
     */
    uint64_t end;
    bool is_fixed;
    size_t option; /* index of its first option, which is the stage as it is */
    size_t row;    /* index of its first row, for which nothing is being offloaded */
};

struct dryi_one {
    struct dry_memory memory;
    struct dryi_plan_progress *progress; /* counts rows; NULL: no progress is reported */
    /* One more than `count`; the last has only `row` and `option`. */
    struct dryi_one_stage *stages;
    struct dryi_one_option *options;
    /* Bytes of the stage before that are being offloaded while a row's stage runs. */
    uint64_t *moved;
    uint64_t *floors; /* the least memory that some plan fits from each row on */
    size_t count, option_count, row_count;
    uint64_t final_gradient;
    /* The longest range that is tried, in stages: it limits the time for long chains. */
    size_t longest;
    /* `longest` cut ranges off: bounds hold only for plans without longer ranges */
    bool is_cut;
    /* Times are in 2^shift ns, rounded down, so that sums are exact as doubles. */
    unsigned time_shift;
};

/* Return the index after the last option of a stage. */
static inline size_t
dryi_one_option_end(const struct dryi_one *one, size_t stage)
{
    return one->stages[stage + 1].option;
}

/* A range of stages that run twice; extending it at its end updates its needs. */
struct dryi_one_range {
    /* Bytes of the stage before, being offloaded while the first stage runs. */
    uint64_t moved;
    uint64_t first; /* need of the first forward, which keeps only the last output */
    /* Need of the second forward, without the gradients at the range's end. */
    uint64_t again;
    uint64_t back; /* need of the backward */
    uint64_t sum;  /* saved bytes of all its stages */
    uint64_t need; /* need of the range as a whole */
    /* A lower bound of `need` that also holds for every longer range. */
    uint64_t at_least;
    uint64_t time;
    size_t count;
};

/* Extend the range by one stage; `is_first`: the range was empty and begins there. */
static inline void
dryi_one_range_extend(struct dryi_one_range *r, const struct dryi_one *one, size_t stage,
                      bool is_first)
{
    const struct dryi_one_stage *s = &one->stages[stage];
    uint64_t moved = is_first ? r->moved : 0;
    uint64_t before = is_first ? 0 : s[-1].output;
    r->first = dryi_max(r->first, one->final_gradient + before + s->output +
                                      s->forward_tmp + moved);
    r->again = dryi_max(r->again, r->sum + s->saved + s->forward_tmp);
    r->sum += s->saved;
    r->back = dryi_max(r->back, r->sum + s->back + moved);
    r->at_least = dryi_max(r->first, r->back);
    r->need = dryi_max(r->at_least, r->again + s->end);
    r->time += s->forward;
    r->count++;
}

/*
 * Return whether a range may include this stage. A range that ends with the last stage is useful
 * only if bytes are being offloaded while its first stage runs: by the second run they are gone.
 */
static inline bool
dryi_one_can_repeat(const struct dryi_one *one, size_t stage,
                    const struct dryi_one_range *range)
{
    return stage < one->count && !one->stages[stage].is_fixed &&
           range->count < one->longest && (stage + 1 < one->count || range->moved > 0);
}

/* An item of a plan. */
struct dryi_one_choice {
    size_t option; /* index into dryi_one.options; SIZE_MAX: a range */
    size_t last;   /* last stage of the range, or the saved stage */
};

struct dryi_one_cost {
    uint64_t need; /* the largest need of its items */
    /* Time beyond one forward and backward of all stages, shifted by time_shift. */
    uint64_t extra;
};

#endif
