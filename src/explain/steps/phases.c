/* SPDX-License-Identifier: Apache-2.0 */

/* The shape of a step is the longest chain of frees in reverse order of birth, found by patience
   sorting. Cost: O(n log n) in a step's allocations. phases.h has the idea. */
#include "explain/steps/phases.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "explain/steps/markers.h"

/* An allocation freed before this many others were made is a temporary. */
#define TEMPORARY_SPAN 8u

/* --- by names ----------------------------------------------------------------------------- */

struct name_counts {
    uint32_t backward, engine, python, bare; /* engine: named so outside Python */
};

/* Return whether the frame is a hook of a dry run, which C++ called. */
static bool
is_of_hook(const struct dry_trace *trace, uint32_t frame)
{
    static const char head[] = "_drystone_";
    uint32_t file = dry_trace_get_view(trace)->frames[frame].file;
    size_t length = 0;
    const char *text = file == DRY_NONE ? "" : dry_trace_string(trace, file, &length);
    size_t base = length;
    while (base > 0 && text[base - 1] != '/')
        base--;
    return length - base >= sizeof head - 1 &&
           memcmp(text + base, head, sizeof head - 1) == 0;
}

bool
dryi_phases_is_bare(const struct dry_timeline_view *v, uint32_t stack)
{
    size_t count = 0;
    const uint32_t *frames = NULL;
    if (stack != DRY_NONE)
        frames = dry_trace_stack(v->trace, stack, &count);
    return count == 0 || is_of_hook(v->trace, frames[count - 1]) ||
           (dry_trace_get_view(v->trace)->frames[frames[0]].flags & DRY_FRAME_FORWARD);
}

static struct name_counts
count_names(const struct dryi_phases *p, const struct dryi_hints *hints)
{
    struct name_counts counts = {0};
    for (uint32_t a = 0; a < p->count; a++) {
        uint32_t stack = p->view->allocations[a].stack;
        uint16_t flags = dryi_hints_get(hints, stack);
        bool is_bare = dryi_phases_is_bare(p->view, stack);
        bool is_outside =
            (flags & (DRYI_HINT_BACKWARD | DRYI_HINT_PYTHON)) == DRYI_HINT_BACKWARD;
        counts.backward += (flags & DRYI_HINT_BACKWARD) != 0;
        counts.engine += is_outside && !is_bare;
        counts.python += (flags & DRYI_HINT_PYTHON) != 0;
        counts.bare += is_bare;
    }
    return counts;
}

static bool
is_percent(uint32_t part, uint32_t all, uint32_t percent)
{
    return part > 0 && (uint64_t)part * 100 >= (uint64_t)all * percent;
}

/*
 * Set phases by names. Returns false if the names do not tell. The engine runs outside
 * Python. So if at least 95 % of the stacks are Python's and none names the engine,
 * there was no backward pass.
 */
static bool
read_names(struct dryi_phases *p, const struct dryi_hints *hints)
{
    struct name_counts counts = count_names(p, hints);
    bool by_engine = is_percent(counts.engine, p->count, 1);
    /* With Python stacks only, allocations without Python frames are the engine's. The call of
       backward() itself is Python's. */
    bool by_thread = !by_engine && counts.python > counts.bare / 4 &&
                     is_percent(counts.bare, p->count, 5);
    bool by_hints = by_engine || by_thread || is_percent(counts.backward, p->count, 1);
    for (uint32_t a = 0; a < p->count; a++) {
        uint32_t stack = p->view->allocations[a].stack;
        uint16_t flags = dryi_hints_get(hints, stack);
        if ((by_hints && (flags & DRYI_HINT_BACKWARD)) ||
            (by_thread && dryi_phases_is_bare(p->view, stack)))
            p->of[a] = DRYI_PHASE_BACKWARD;
        else if (flags & (DRYI_HINT_OPTIMIZER | DRYI_HINT_ZERO_GRAD))
            p->of[a] = DRYI_PHASE_UPDATE;
    }
    p->has_backward = by_hints;
    return p->has_backward || (uint64_t)counts.python * 20 >= (uint64_t)p->count * 19;
}

/* Set the update phase by annotations: allocations born in an Optimizer.step scope
   belong to it for certain. */
static void
read_scopes(struct dryi_phases *p, const struct dryi_scopes *scopes)
{
    uint32_t a = 0;
    for (size_t i = 0; i < scopes->count; i++) {
        const struct dryi_scope *scope = &scopes->rows[i];
        while (a < p->count && p->view->allocations[a].begin <= scope->begin)
            a++;
        for (; a < p->count && p->view->allocations[a].begin <= scope->end; a++) {
            p->of[a] = DRYI_PHASE_UPDATE;
            p->scoped[a] = 1;
        }
    }
}

/* --- by shape ----------------------------------------------------------------------------- */

/* An allocation born in a step before its peak and freed in the same step after it. */
struct across {
    uint32_t born; /* its index among these allocations */
    uint32_t freed;
};

/* The longest chain of such allocations that were freed in reverse order of birth: a backward
   pass. The pass ends when the chain reaches its full length. */
struct shape {
    struct across *rows;
    size_t count, capacity;
    uint32_t *tails; /* [length]: birth index of the end of the best
                   chain of that length */
    uint32_t *grown; /* [length]: the moment at which a chain first reached it */
    size_t tail_capacity, grown_capacity;
    size_t length;
};

static int
compare_across(const void *a, const void *b)
{
    const struct across *x = a, *y = b;
    if (x->freed != y->freed)
        return x->freed < y->freed ? -1 : 1;
    return x->born < y->born ? -1 : x->born > y->born;
}

static bool
collect_across(const struct dryi_phases *p, const struct dry_step *step, uint32_t first,
               struct shape *shape)
{
    shape->count = 0;
    for (uint32_t a = first; a < p->count; a++) {
        const struct dry_allocation *row = &p->view->allocations[a];
        if (row->begin > step->peak.moment)
            break;
        if (row->freed <= step->peak.moment || row->freed > step->end)
            continue;
        if (!dryi_memory_grow(&p->memory, &shape->rows, &shape->capacity,
                              shape->count + 1, sizeof *shape->rows))
            return false;
        shape->rows[shape->count++] = (struct across){.born = a, .freed = row->freed};
    }
    if (shape->count > 0)
        qsort(shape->rows, shape->count, sizeof *shape->rows, compare_across);
    return true;
}

/* Patience sorting: find the longest chain of falling births with rising frees. */
static bool
find_chain(const struct dryi_phases *p, struct shape *shape)
{
    shape->length = 0;
    if (!dryi_memory_grow(&p->memory, &shape->tails, &shape->tail_capacity,
                          shape->count + 1, sizeof *shape->tails) ||
        !dryi_memory_grow(&p->memory, &shape->grown, &shape->grown_capacity,
                          shape->count + 1, sizeof *shape->grown))
        return false;
    for (size_t i = 0; i < shape->count; i++) {
        size_t low = 0, high = shape->length; /* `tails` descends */
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (shape->tails[middle] > shape->rows[i].born)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == shape->length)
            shape->grown[shape->length++] = shape->rows[i].freed;
        shape->tails[low] = shape->rows[i].born;
    }
    return true;
}

/* Return whether the chain proves a backward pass: at least 6 allocations, half of those alive
   across the peak, and 1/20 of the step's. */
static bool
is_training_step(const struct shape *shape, const struct dry_step *step)
{
    return shape->length >= 6 && shape->length * 2 >= shape->count &&
           shape->count * 20 >= step->alloc_count;
}

/*
 * Return the moment when the backward pass ends. The step's inputs were born first and are held
 * until the step's end, so they extend the chain. They differ by the number of allocations before
 * their free, which is far above the chain's average.
 */
static uint32_t
find_end_of_backward(const struct dryi_phases *p, const struct shape *shape)
{
    size_t last = shape->length - 1;
    for (unsigned inputs = 0; inputs < 3 && last >= 4; inputs++) {
        uint32_t first = dryi_phases_last(p, shape->grown[0]);
        uint32_t before = dryi_phases_last(p, shape->grown[last - 1]);
        uint32_t end = dryi_phases_last(p, shape->grown[last]);
        if ((end - before) <= 2 * (before - first) / (uint32_t)(last - 1) + 2)
            break;
        last--;
    }
    return shape->grown[last];
}

/* Return the moment when the step's update begins; UINT32_MAX: no scope tells. *scope goes on
   from step to step. */
static uint32_t
find_update(const struct dryi_scopes *scopes, const struct dry_step *step, size_t *scope)
{
    while (*scope < scopes->count && scopes->rows[*scope].begin <= step->begin)
        (*scope)++;
    return *scope < scopes->count && scopes->rows[*scope].begin <= step->end
               ? scopes->rows[*scope].begin
               : UINT32_MAX;
}

/* Collect what the step makes from `first` on and frees before its update, without temporaries.
   Gradients are not among them: the update reads these. */
static bool
collect_passing(const struct dryi_phases *p, uint32_t first, uint32_t update,
                struct shape *shape)
{
    shape->count = 0;
    for (uint32_t a = first; a < p->count && p->view->allocations[a].begin <= update;
         a++) {
        uint32_t freed = p->view->allocations[a].freed;
        if (freed > update || dryi_phases_last(p, freed) <= a + TEMPORARY_SPAN)
            continue;
        if (!dryi_memory_grow(&p->memory, &shape->rows, &shape->capacity,
                              shape->count + 1, sizeof *shape->rows))
            return false;
        shape->rows[shape->count++] = (struct across){.born = a, .freed = freed};
    }
    return true;
}

/* Set *turn to the moment when most of these bytes are alive: a backward pass only frees them.
   Returns false if memory ran out. */
static bool
find_turn(const struct dryi_phases *p, uint32_t first, uint32_t update,
          struct shape *shape, uint32_t *turn)
{
    const struct dry_allocation *rows = p->view->allocations;
    uint64_t alive = 0, most = 0;
    if (!collect_passing(p, first, update, shape) ||
        !dryi_memory_grow(&p->memory, &shape->tails, &shape->tail_capacity,
                          shape->count + 1, sizeof *shape->tails))
        return false;
    for (size_t i = 0; i < shape->count; i++)
        shape->tails[i] = shape->rows[i].born;
    if (shape->count > 0)
        qsort(shape->rows, shape->count, sizeof *shape->rows, compare_across);
    *turn = update;
    for (size_t born = 0, freed = 0; born < shape->count; born++) {
        const struct dry_allocation *row = &rows[shape->tails[born]];
        for (; freed < born && shape->rows[freed].freed <= row->begin; freed++)
            alive -= rows[shape->rows[freed].born].size;
        alive = dryi_add_saturating(alive, row->size);
        if (alive > most) {
            most = alive;
            *turn = row->begin;
        }
    }
    return true;
}

/* Moments when a step's backward pass begins and ends; UINT32_MAX: it has none. */
struct turn {
    uint32_t begin, end;
};

/* Find the backward pass. On entry both moments are that of an update that a scope tells, which
   proves the pass, or UINT32_MAX. Returns false if memory ran out. */
static bool
find_backward(const struct dryi_phases *p, const struct dry_step *step, uint32_t first,
              struct shape *shape, struct turn *turn)
{
    if (turn->end != UINT32_MAX)
        return find_turn(p, first, turn->end, shape, &turn->begin);
    if (!collect_across(p, step, first, shape) || !find_chain(p, shape))
        return false;
    if (is_training_step(shape, step))
        *turn = (struct turn){step->peak.moment, find_end_of_backward(p, shape)};
    return true;
}

static bool
read_shapes(struct dryi_phases *p, const struct dry_steps *steps,
            const struct dryi_scopes *scopes)
{
    uint32_t count;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    struct shape shape = {0};
    bool is_ok = true;
    size_t scope = 0;
    for (uint32_t a = 0; a < p->count;) {
        const struct dry_step *step = &rows[p->steps[a]];
        uint32_t first = a, update = find_update(scopes, step, &scope);
        struct turn turn = {update, update};
        is_ok = find_backward(p, step, first, &shape, &turn);
        if (!is_ok)
            break;
        p->has_backward |= turn.begin != UINT32_MAX;
        for (; a < p->count && p->steps[a] == p->steps[first]; a++) {
            uint32_t begin = p->view->allocations[a].begin;
            if (p->of[a] == DRYI_PHASE_UPDATE)
                continue; /* set by its name */
            p->of[a] = begin <= turn.begin ? DRYI_PHASE_FORWARD
                       : begin <= turn.end ? DRYI_PHASE_BACKWARD
                                           : DRYI_PHASE_UPDATE;
        }
    }
    dryi_memory_free(&p->memory, shape.rows, shape.capacity, sizeof *shape.rows);
    dryi_memory_free(&p->memory, shape.tails, shape.tail_capacity, sizeof *shape.tails);
    dryi_memory_free(&p->memory, shape.grown, shape.grown_capacity, sizeof *shape.grown);
    return is_ok;
}

/* --- public calls ------------------------------------------------------------------------- */

static bool
find_phases(struct dryi_phases *p, const struct dry_steps *steps,
            const struct dryi_hints *hints, const struct dryi_scopes *scopes)
{
    uint32_t count, step = 0;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    for (uint32_t a = 0; a < p->count; a++) {
        while (step + 1 < count && p->view->allocations[a].begin > rows[step].end)
            step++;
        p->steps[a] = step;
    }
    p->by_shape = !read_names(p, hints);
    if (p->by_shape && !read_shapes(p, steps, scopes))
        return false;
    read_scopes(p, scopes);
    return true;
}

enum dry_status
dryi_phases_init(struct dryi_phases *p, const struct dry_timeline *timeline,
                 const struct dry_steps *steps, const struct dryi_hints *hints,
                 const struct dry_memory *memory, struct dry_error *err)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    *p = (struct dryi_phases){.memory = *memory,
                              .view = v,
                              .count = v->allocation_count - v->carried_over_count};
    struct dryi_scopes scopes;
    enum dry_status status =
        dryi_scopes_init(&scopes, timeline, "Optimizer.step", memory, err);
    if (status != DRY_OK)
        return status;
    size_t slot_count = (size_t)p->count + 1;
    p->of = dryi_memory_zalloc(memory, slot_count, 1);
    p->scoped = dryi_memory_zalloc(memory, slot_count, 1);
    p->steps = dryi_memory_zalloc(memory, slot_count, sizeof *p->steps);
    bool is_ok = p->of && p->scoped && p->steps && find_phases(p, steps, hints, &scopes);
    dryi_scopes_finish(&scopes);
    if (is_ok)
        return DRY_OK;
    dryi_phases_finish(p);
    return dryi_fail_memory(err, "the phases of steps");
}

void
dryi_phases_finish(struct dryi_phases *p)
{
    size_t slot_count = (size_t)p->count + 1;
    dryi_memory_free(&p->memory, p->of, slot_count, 1);
    dryi_memory_free(&p->memory, p->scoped, slot_count, 1);
    dryi_memory_free(&p->memory, p->steps, slot_count, sizeof *p->steps);
    *p = (struct dryi_phases){.memory = p->memory};
}

uint32_t
dryi_phases_last(const struct dryi_phases *p, uint32_t moment)
{
    uint32_t low = 0, high = p->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->view->allocations[middle].begin <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : DRY_NONE;
}
