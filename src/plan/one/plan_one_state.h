/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_STATE_H
#define DRYI_PLAN_ONE_STATE_H

/*
 * The chain of stages as plans of one level see it (plan_one.h): its options, its ranges, and the
 * items of a plan.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/chain/chain_state.h"
#include "plan/chain/plan_progress.h"

struct dryi_one_option {
    uint64_t held; /* after the next stage's forward: saved without what is offloaded */
    uint64_t need; /* its forward's and its backward's, beyond what is held before */
    uint64_t extra;
    size_t row; /* the next stage's, with what this one offloads */
};

struct dryi_one_stage {
    uint64_t forward, output, saved, forward_tmp;
    uint64_t
        back; /* of the backward that follows a second forward: all but what is saved */
    uint64_t
        end; /* its gradient and the grads_bytes above: there while a range runs again
                      that ends here */
    bool is_fixed;
    size_t option; /* its first, which is itself */
    size_t row;    /* its first: nothing is on its way */
};

struct dryi_one {
    struct dry_memory memory;
    struct dryi_plan_progress *progress; /* is told of rows; NULL: nobody is */
    struct dryi_one_stage *stages;       /* one more, for its row */
    struct dryi_one_option *options;
    uint64_t *moved;  /* by row: bytes on their way to the host while the stage runs */
    uint64_t *floors; /* by row: the least memory that some plan from there on fits */
    size_t count, option_count, row_count;
    uint64_t final_gradient;
    size_t longest; /* of ranges that are looked at: so that no chain takes for ever */
    bool
        is_cut; /* by that: what is said of all plans is true of those with such ranges */
    unsigned
        time_shift; /* times are in 2^shift ns, rounded down, so that doubles are exact */
};

/* The end of a stage's options: they go from its first to before this. */
static inline size_t
dryi_one_option_end(const struct dryi_one *one, size_t stage)
{
    return one->stages[stage + 1].option;
}

static inline uint64_t
dryi_one_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A range that grows at its end. */
struct dryi_one_range {
    uint64_t moved; /* bytes of the stage before, on their way while the first one runs */
    uint64_t first; /* the forward pass that keeps the output alone */
    uint64_t again; /* the second, but for the end's gradients */
    uint64_t back;  /* the backward */
    uint64_t sum;   /* saved by all of it */
    uint64_t need;  /* of it as it is */
    uint64_t at_least; /* of it and of every longer one */
    uint64_t time;
    size_t count;
};

/*
 * Make the range one stage longer; `is_first`: the range was empty, and begins with that
 * stage.
 */
static inline void
dryi_one_range_extend(struct dryi_one_range *r, const struct dryi_one *one, size_t stage,
                      bool is_first)
{
    const struct dryi_one_stage *s = &one->stages[stage];
    uint64_t moved = is_first ? r->moved : 0;
    uint64_t before = is_first ? 0 : s[-1].output;
    r->first = dryi_one_max(r->first, one->final_gradient + before + s->output +
                                          s->forward_tmp + moved);
    r->again = dryi_one_max(r->again, r->sum + s->saved + s->forward_tmp);
    r->sum += s->saved;
    r->back = dryi_one_max(r->back, r->sum + s->back + moved);
    r->at_least = dryi_one_max(r->first, r->back);
    r->need = dryi_one_max(r->at_least, r->again + s->end);
    r->time += s->forward;
    r->count++;
}

/*
 * May the range go on to this stage? A range that ends with the last stage is of use only if
 * bytes are on their way while its first stage runs: they are gone when that runs again.
 */
static inline bool
dryi_one_can_repeat(const struct dryi_one *one, size_t stage,
                    const struct dryi_one_range *range)
{
    return stage < one->count && !one->stages[stage].is_fixed &&
           range->count < one->longest && (stage + 1 < one->count || range->moved > 0);
}

/* An item: what a plan does from a stage on. */
struct dryi_one_choice {
    size_t option; /* of dryi_one.options; SIZE_MAX: a range */
    size_t last;   /* of the range; else the stage */
};

struct dryi_one_cost {
    uint64_t need;  /* the most */
    uint64_t extra; /* shifted as times are */
};

#endif
