/* SPDX-License-Identifier: Apache-2.0 */
/* The plan is evaluated twice: once for its duration, once to fill the columns. */
#include "plan/plan_timeline.h"

#include <stdlib.h>

#include "base/fail.h"

uint64_t
plan_held_at_first(const struct dry_chain *chain)
{
    const struct dry_chain_frame *frame = dry_chain_get_frame(chain);
    const struct dry_stage *last =
        dry_chain_get_stage(chain, dry_chain_get_count(chain) - 1);
    return frame->persistent_bytes + frame->input_bytes + last->gradient_bytes;
}

struct filler {
    struct plan_timeline *timeline;
    uint64_t step_count; /* steps counted so far */
    uint64_t held_bytes; /* held when the next step begins */
};

static void
count_step(void *self, const struct dry_plan_step *step)
{
    struct filler *f = self;
    f->step_count += step->phase != DRY_PHASE_STEP;
}

static size_t
get_column(const struct plan_timeline *t, uint64_t at)
{
    size_t column = (size_t)((double)at / (double)t->span * (double)t->column_count);
    return column < t->column_count ? column : t->column_count - 1;
}

/* Return the fraction of a column that [begin, end) covers. */
static double
overlap(const struct plan_timeline *t, size_t column, uint64_t begin, uint64_t end)
{
    double scale = (double)t->column_count / (double)t->span;
    double from = (double)begin * scale - (double)column;
    double to = (double)end * scale - (double)column;
    return (to < 1 ? to : 1) - (from > 0 ? from : 0);
}

static void
put_step(struct plan_column *c, const struct dry_plan_step *step, uint64_t held)
{
    unsigned phase = step->phase;
    if (step->needed_bytes > c->needed_bytes)
        c->needed_bytes = step->needed_bytes;
    if (held > c->held_bytes)
        c->held_bytes = held;
    if (step->stage < c->low[phase])
        c->low[phase] = step->stage;
    if (step->stage > c->high[phase] || c->low[phase] > c->high[phase])
        c->high[phase] = step->stage;
}

static void
fill_step(void *self, const struct dry_plan_step *step)
{
    struct filler *f = self;
    struct plan_timeline *t = f->timeline;
    uint64_t begin = t->is_by_time ? step->time_ns : f->step_count;
    uint64_t end = begin + (t->is_by_time ? step->duration_ns : 1);
    if (step->phase == DRY_PHASE_STEP) {
        t->optimizer_bytes = step->needed_bytes;
        return;
    }
    size_t first = get_column(t, begin),
           last = end > begin ? get_column(t, end - 1) : first;
    if (step->needed_bytes == t->cost.peak_bytes && t->peak_column == t->column_count)
        t->peak_column = first + (last - first) / 2;
    for (size_t i = first; i <= last; i++) {
        put_step(&t->columns[i], step, f->held_bytes);
        t->columns[i].share[step->phase] += overlap(t, i, begin, end);
    }
    f->held_bytes = step->held_bytes;
    f->step_count++;
}

/* Fill columns in which no step begins or continues, because they are narrower than 1 ns,
   from the preceding column. */
static void
close_gaps(struct plan_timeline *t)
{
    for (size_t i = 1; i < t->column_count; i++) {
        if (t->columns[i].needed_bytes == 0)
            t->columns[i] = t->columns[i - 1];
    }
}

static void
clear(struct plan_timeline *t)
{
    for (size_t i = 0; i < t->column_count; i++) {
        for (size_t p = 0; p < PLAN_TIMELINE_PHASES; p++)
            t->columns[i].low[p] = UINT32_MAX;
    }
}

enum dry_status
plan_timeline_init(struct plan_timeline *timeline, const struct dry_chain *chain,
                   const struct dry_plan_item *items, size_t count, size_t column_count,
                   struct dry_error *err)
{
    struct plan_timeline made = {.column_count = column_count,
                                 .peak_column = column_count};
    struct filler f = {.timeline = &made};
    struct dry_plan_observer observer = {.step = count_step, .self = &f};
    enum dry_status status =
        dry_plan_evaluate(chain, items, count, &observer, &made.cost, err);
    if (status != DRY_OK)
        return status;
    made.columns = calloc(column_count, sizeof *made.columns);
    if (!made.columns)
        return fail_memory(err, "no memory for a timeline");
    made.is_by_time = made.cost.time_ns > 0;
    made.span = made.is_by_time ? made.cost.time_ns : f.step_count;
    f = (struct filler){.timeline = &made, .held_bytes = plan_held_at_first(chain)};
    clear(&made);
    observer.step = fill_step;
    status = dry_plan_evaluate(chain, items, count, &observer, &made.cost, err);
    close_gaps(&made);
    if (status == DRY_OK)
        *timeline = made;
    else
        free(made.columns);
    return status;
}

void
plan_timeline_finish(struct plan_timeline *timeline)
{
    free(timeline->columns);
    *timeline = (struct plan_timeline){0};
}
