/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Infer the purpose of allocations from their lifetimes.
 *
 * Born in the forward pass and freed in the backward pass: an activation. Born in the backward pass
 * and freed by the update or in the next step: a gradient. Made by the first update and never
 * freed: optimizer state. Made before the first step and never freed: weights. Born and freed in
 * one pass: a temporary. phases.c finds the passes. Names are the last resort, with two exceptions:
 * blocks from before the window, and caches of keys and values.
 *
 * A graph that is dropped was saved, too. Then allocations of the same code are compared. A life may be cut off by the window's
 * end, or have a doubtful shape. Its allocation gets the category of its stack and size if
 * three of four others agree.
 *
 * Confidences are estimates, in percent, of how often a rule is right. They are at least 85 if
 * birth and free both fit, and names or annotations tell the passes. They are 15 lower if only the
 * step's shape tells the passes, and about 50 if one end of the life is unknown.
 */
#include <drystone/categories.h>

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sized.h"
#include "explain/owners/category_marks.h"
#include "explain/steps/phases.h"
#include "explain/steps/sequence.h"

/* Temporaries are freed before this many other allocations are made: within the same
   operation or the next one. */
#define TEMPORARY_SPAN 8u
/* So many of one forward pass that are freed at once, and are no temporaries, are a graph's. */
#define GRAPH_MIN 6u
/* Inputs are among this many first allocations of a step. */
#define INPUT_PLACES 3u
/* Percent by which confidence falls, at most to DOUBTED_MIN, if only the
   step's shape tells the pass. */
#define SHAPE_DOUBT 15
#define DOUBTED_MIN 50
/*
 * Percent. Guesses from VOTE_CONFIDENCE on vote for other allocations of the same code; guesses
 * from DOUBTFUL on are not outvoted. Guesses by names alone, for blocks from before the window,
 * have NAMES_CONFIDENCE.
 */
#define VOTE_CONFIDENCE 60u
#define DOUBTFUL 80u
#define NAMES_CONFIDENCE 80u
/* Percent, of what the backward pass made and the update or the next step freed. */
#define GRADIENT_CONFIDENCE 75u

struct dry_categories {
    struct dry_memory memory;
    struct dry_category_guess *guesses;
    size_t count;
};

struct judge {
    struct dry_memory memory;
    const struct dry_timeline *timeline;
    const struct dry_timeline_view *v;
    const struct dry_step *rows;
    uint32_t step_count;
    uint32_t first_step; /* the first whole step: allocations born
                            up to its end are early */
    bool head_has_backward;
    bool has_backward_end; /* a backward pass has ended, so no older activations remain */
    uint32_t horizon;      /* frees after this moment do not count: the
                              block lived until the end */
    uint32_t last_birth;   /* the moment of the last allocation */
    uint32_t first_call;   /* first allocation under a model's call; DRY_NONE */
    struct dryi_hints hints;
    struct dryi_phases phases;
    struct dryi_map weight_sizes; /* requested sizes of presumed weights */
    uint32_t *dropped; /* [a]: forward lives that end before the birth of a + 1 */
    struct dry_category_guess *guesses;
};

/* The properties of one life that the rules use. */
struct life {
    const struct dry_allocation *row;
    uint32_t number, step;
    enum dryi_phase born, freed;
    uint32_t span;       /* other allocations made before its free */
    bool is_open;        /* alive at the end, and the next step is not complete */
    bool is_long;        /* outlived the step after its own */
    bool is_early;       /* born in the first whole step or before */
    bool in_same_step;   /* freed in the step in which it was born */
    bool is_last_of_run; /* freed when its pass made no more allocations */
    bool is_of_graph;    /* freed with many others at once, as a graph that is dropped */
};

const char *
dry_pass_name(enum dry_pass pass)
{
    static const char *const names[DRY_PASS_COUNT] = {"unknown", "forward", "backward",
                                                      "update"};
    return names[pass];
}

const char *
dry_category_name(enum dry_category category)
{
    static const char *const names[DRY_CATEGORY_COUNT] = {
        "unknown",     "weights",     "optimizer", "gradients",
        "activations", "temporaries", "inputs",    "kv-cache"};
    return (unsigned)category < DRY_CATEGORY_COUNT ? names[category] : "unknown";
}

const char *
dry_category_evidence_name(enum dry_category_evidence evidence)
{
    static const char *const names[] = {"none", "mark", "scope", "life", "words"};
    return (unsigned)evidence <= DRY_EVIDENCE_NAMES ? names[evidence] : "none";
}

void
dry_categories_options_init_sized(struct dry_categories_options *options,
                                  size_t struct_size)
{
    const struct dry_categories_options defaults = {0};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- lives -------------------------------------------------------------------------------- */

static struct dry_category_guess
guess(enum dry_category category, unsigned confidence)
{
    return (struct dry_category_guess){
        .category = (uint8_t)category,
        .evidence = category ? DRY_EVIDENCE_LIFE : DRY_EVIDENCE_NONE,
        .confidence = (uint8_t)(category ? confidence : 0)};
}

static const struct dry_category_guess unknown;

/* Return the pass of a free: by the names in its stack if there are any, else by the pass of the
   last allocation before it. */
static enum dryi_phase
find_phase_of_free(const struct judge *j, uint32_t freed, uint32_t last)
{
    const struct dry_trace_view *t = dry_trace_get_view(j->v->trace);
    if (freed > 0 && freed <= j->v->event_count && !j->phases.by_shape) {
        uint16_t hints =
            dryi_hints_get(&j->hints, t->stack[j->v->first_event + freed - 1]);
        if (hints & (DRYI_HINT_ZERO_GRAD | DRYI_HINT_OPTIMIZER))
            return DRYI_PHASE_UPDATE;
        if (hints & DRYI_HINT_BACKWARD)
            return DRYI_PHASE_BACKWARD;
    }
    return last != DRY_NONE ? (enum dryi_phase)j->phases.of[last] : DRYI_PHASE_FORWARD;
}

static struct life
read_life(const struct judge *j, uint32_t a)
{
    const struct dryi_phases *p = &j->phases;
    const struct dry_allocation *row = &j->v->allocations[a];
    struct life l = {.row = row, .number = a, .step = p->steps[a]};
    uint32_t last = dryi_phases_last(p, row->freed);
    uint32_t next = l.step + 1;
    /* A truncated last step proves nothing about the step before it. */
    bool has_next =
        next < j->step_count && (next + 1 < j->step_count || !j->rows[next].is_partial);
    l.born = (enum dryi_phase)p->of[a];
    l.freed = find_phase_of_free(j, row->freed, last);
    l.span = last != DRY_NONE && last > a ? last - a : 0;
    l.is_long = has_next && row->freed > j->rows[next].end;
    l.is_open = !l.is_long && row->freed > j->horizon;
    l.is_early = l.step <= j->first_step;
    l.in_same_step = row->freed <= j->rows[l.step].end;
    l.is_last_of_run = last + 1 >= p->count || p->of[last + 1] != p->of[last] ||
                       p->steps[last + 1] != p->steps[last];
    l.is_of_graph = last != DRY_NONE && j->dropped[last] >= GRAPH_MIN;
    return l;
}

static bool
count_dropped(struct judge *j)
{
    j->dropped =
        dryi_memory_zalloc(&j->memory, (size_t)j->phases.count + 1, sizeof *j->dropped);
    for (uint32_t a = 0; j->dropped && a < j->phases.count; a++) {
        uint32_t last = dryi_phases_last(&j->phases, j->v->allocations[a].freed);
        if (j->phases.of[a] == DRYI_PHASE_FORWARD && last > a + TEMPORARY_SPAN)
            j->dropped[last]++;
    }
    return j->dropped != NULL;
}

static bool
is_input(const struct judge *j, const struct life *l)
{
    uint32_t back = l->number >= INPUT_PLACES ? l->number - INPUT_PLACES : 0;
    bool is_first =
        l->number < INPUT_PLACES || j->phases.steps[back] != j->phases.steps[l->number];
    bool is_loaded = (dryi_hints_get(&j->hints, l->row->stack) & DRYI_HINT_LOADER) != 0;
    return is_loaded || (is_first && j->rows[l->step].begin > 0);
}

/* Return whether an allocation of before the last step stays to the end. A program that ends
   frees its model when nothing is allocated any more: that tells nothing. */
static bool
stays(const struct judge *j, const struct dry_allocation *row)
{
    bool is_older = j->step_count > 1 && row->begin <= j->rows[j->step_count - 1].begin;
    return row->freed > j->horizon || (is_older && row->freed > j->last_birth);
}

static uint32_t
read_count(const struct dryi_map *counts, uint64_t key)
{
    const uint32_t *count = dryi_map_find(counts, key);
    return count ? *count : 0;
}

static bool
has_weight_size(const struct judge *j, const struct dry_allocation *row)
{
    return dryi_map_find(&j->weight_sizes, row->requested) != NULL;
}

/* --- rules by the pass of birth ----------------------------------------------------------- */

static struct dry_category_guess
judge_forward(const struct judge *j, const struct life *l)
{
    bool is_training = j->phases.has_backward;
    if (l->is_long && l->is_early) {
        bool is_before = l->step < j->first_step && !j->head_has_backward;
        return guess(DRY_CATEGORY_WEIGHTS, is_before ? 85 : 60);
    }
    if (l->is_long)
        return unknown; /* a cache or a leak */
    if (l->is_open && j->step_count == 1 && j->v->carried_over_count == 0) {
        if (j->first_call != DRY_NONE && l->number < j->first_call)
            return guess(DRY_CATEGORY_WEIGHTS, 65);
        if (is_training)
            return guess(DRY_CATEGORY_WEIGHTS, 50);
    }
    if (l->is_open)
        return is_training ? guess(DRY_CATEGORY_ACTIVATIONS, 50) : unknown;
    if (l->freed == DRYI_PHASE_BACKWARD)
        return guess(DRY_CATEGORY_ACTIVATIONS, l->span > TEMPORARY_SPAN ? 90 : 65);
    if (l->in_same_step && l->freed == DRYI_PHASE_FORWARD) {
        if (l->span <= TEMPORARY_SPAN)
            return guess(DRY_CATEGORY_TEMPORARIES, 90);
        if (is_input(j, l) && !is_training)
            return guess(DRY_CATEGORY_INPUTS, 55);
        /* Saved for a backward pass that did not come. */
        if (is_training && l->is_of_graph)
            return guess(DRY_CATEGORY_ACTIVATIONS, DOUBTFUL);
        return is_training ? guess(DRY_CATEGORY_TEMPORARIES, 70)
                           : guess(DRY_CATEGORY_ACTIVATIONS, 55);
    }
    /* The training loop holds it: the batch, the loss or the outputs. */
    if (is_input(j, l))
        return guess(DRY_CATEGORY_INPUTS, 75);
    return is_training ? guess(DRY_CATEGORY_ACTIVATIONS, 50) : unknown;
}

static struct dry_category_guess
judge_backward(const struct judge *j, const struct life *l)
{
    bool fits = has_weight_size(j, l->row);
    if (l->is_long) {
        /* Not of the first step, it is a leak, or a gradient that another model's step frees. */
        bool is_gradient = l->is_early || (fits && l->row->freed <= j->last_birth);
        return is_gradient ? guess(DRY_CATEGORY_GRADIENTS, fits ? 75 : 60) : unknown;
    }
    if (l->is_open)
        return guess(DRY_CATEGORY_GRADIENTS, fits ? 70 : 50);
    if (l->in_same_step && l->freed == DRYI_PHASE_BACKWARD) {
        /* An optimizer that allocates nothing leaves no update phase after the backward pass. */
        if (l->is_last_of_run && fits && l->span > TEMPORARY_SPAN)
            return guess(DRY_CATEGORY_GRADIENTS, 65);
        return guess(DRY_CATEGORY_TEMPORARIES, l->span <= TEMPORARY_SPAN ? 90 : 80);
    }
    return guess(DRY_CATEGORY_GRADIENTS, fits ? 90 : GRADIENT_CONFIDENCE);
}

static struct dry_category_guess
judge_update(const struct judge *j, const struct life *l)
{
    bool is_scoped = j->phases.scoped[l->number];
    struct dry_category_guess g = unknown;
    if (l->is_long || l->is_open) {
        bool may_be_first =
            l->is_early || j->step_count == 1 || (is_scoped && l->is_long);
        unsigned confidence = l->is_long ? 85 : 70;
        if (may_be_first)
            g = guess(DRY_CATEGORY_OPTIMIZER, is_scoped ? confidence + 10 : confidence);
        else if (l->is_open)
            g = guess(DRY_CATEGORY_TEMPORARIES, 50);
    } else if (l->in_same_step) {
        g = guess(DRY_CATEGORY_TEMPORARIES, is_scoped ? 95 : 90);
    } else {
        g = l->freed == DRYI_PHASE_UPDATE
                ? guess(DRY_CATEGORY_OPTIMIZER, 75) /* replaced by new state */
                : guess(DRY_CATEGORY_TEMPORARIES, 50);
    }
    if (is_scoped && g.category)
        g.evidence = DRY_EVIDENCE_SCOPE;
    return g;
}

/* Return whether the optimizer's step freed the block, and not zero_grad(): some optimizers
   replace their state by new tensors. */
static bool
is_freed_by_optimizer(const struct judge *j, uint32_t freed)
{
    const struct dry_trace_view *t = dry_trace_get_view(j->v->trace);
    if (freed == 0 || freed > j->v->event_count)
        return false;
    uint16_t hints = dryi_hints_get(&j->hints, t->stack[j->v->first_event + freed - 1]);
    return (hints & DRYI_HINT_OPTIMIZER) && !(hints & DRYI_HINT_ZERO_GRAD);
}

static struct dry_category_guess
guess_by_names(enum dry_category category)
{
    return (struct dry_category_guess){.category = (uint8_t)category,
                                       .evidence = DRY_EVIDENCE_NAMES,
                                       .confidence = NAMES_CONFIDENCE};
}

static bool
is_private(const struct judge *j, const struct dry_allocation *row)
{
    const struct dry_lane *lane = &dry_trace_get_view(j->v->trace)->lanes[row->lane];
    return lane->pool_known && (lane->pool_a || lane->pool_b);
}

/*
 * Judge an allocation from before the window that is never freed: weights, optimizer state, a
 * cache, or an activation of an earlier pass. Names in the stack tell them apart. Without names,
 * only the end of a backward pass excludes activations, and only training excludes a cache.
 */
static struct dry_category_guess
judge_old(const struct judge *j, const struct dry_allocation *row)
{
    uint16_t hints = row->flags & DRY_ALLOCATION_STACK_OF_FREE
                         ? 0
                         : dryi_hints_get(&j->hints, row->stack);
    if (hints & DRYI_HINT_KV_CACHE)
        return guess_by_names(DRY_CATEGORY_KV_CACHE);
    if (hints & DRYI_HINT_OPTIMIZER)
        return guess_by_names(DRY_CATEGORY_OPTIMIZER);
    if (hints & DRYI_HINT_INIT)
        return guess_by_names(DRY_CATEGORY_WEIGHTS);
    if (j->has_backward_end && !is_private(j, row))
        return guess(DRY_CATEGORY_WEIGHTS, 50);
    return unknown;
}

/* Judge an allocation from before the window. */
static struct dry_category_guess
judge_carried(const struct judge *j, const struct dry_allocation *row)
{
    if (stays(j, row))
        return judge_old(j, row);
    uint32_t last = dryi_phases_last(&j->phases, row->freed);
    enum dryi_phase freed = find_phase_of_free(j, row->freed, last);
    if (j->phases.has_backward && freed == DRYI_PHASE_BACKWARD)
        return guess(DRY_CATEGORY_ACTIVATIONS, 60);
    if (is_freed_by_optimizer(j, row->freed))
        return guess(DRY_CATEGORY_OPTIMIZER, 60); /* replaced by the update's result */
    bool may_be_gradient = freed == DRYI_PHASE_UPDATE || last == DRY_NONE;
    if (j->phases.has_backward && may_be_gradient && has_weight_size(j, row))
        return guess(DRY_CATEGORY_GRADIENTS, 60);
    return unknown;
}

/* Return whether it is a cache of keys and values: by its name, and if it
   was made early and stays. */
static bool
is_kv_cache(const struct judge *j, const struct life *l)
{
    bool stays = l->is_long || (l->is_open && l->is_early);
    return stays && (dryi_hints_get(&j->hints, l->row->stack) & DRYI_HINT_KV_CACHE);
}

static struct dry_category_guess
judge_life(const struct judge *j, const struct life *l)
{
    if (is_kv_cache(j, l))
        return guess_by_names(DRY_CATEGORY_KV_CACHE);
    struct dry_category_guess g = l->born == DRYI_PHASE_BACKWARD ? judge_backward(j, l)
                                  : l->born == DRYI_PHASE_UPDATE ? judge_update(j, l)
                                                                 : judge_forward(j, l);
    /* Weights are recognised without the passes, so no doubt about passes applies. */
    if (j->phases.by_shape && g.category != DRY_CATEGORY_WEIGHTS &&
        g.confidence > DOUBTED_MIN)
        g.confidence = g.confidence > DOUBTED_MIN + SHAPE_DOUBT
                           ? (uint8_t)(g.confidence - SHAPE_DOUBT)
                           : DOUBTED_MIN;
    return g;
}

/* --- sizes of weights --------------------------------------------------------------------- */

static bool
note_weight(struct judge *j, const struct dry_allocation *row)
{
    return dryi_map_find(&j->weight_sizes, row->requested) ||
           dryi_map_put(&j->weight_sizes, row->requested, 0);
}

static bool
collect_weight_sizes(struct judge *j)
{
    uint32_t born = j->phases.count;
    for (uint32_t a = 0; a < j->v->allocation_count; a++) {
        const struct dry_allocation *row = &j->v->allocations[a];
        bool is_old = a >= born;
        if (!is_old && j->phases.steps[a] > j->first_step)
            continue;
        if (!stays(j, row) || (!is_old && j->phases.of[a] != DRYI_PHASE_FORWARD))
            continue;
        if (!note_weight(j, row))
            return false;
    }
    return true;
}

/* Return the last moment whose frees are evidence. After a final OOM the program ends and frees
   everything, which tells nothing about purposes. */
static uint32_t
find_horizon(const struct judge *j)
{
    const uint8_t *action = dry_trace_get_view(j->v->trace)->action;
    size_t first = j->v->first_event;
    uint32_t e = j->v->event_count;
    while (j->v->oom_count > 0 && e > 0 && action[first + e - 1] != DRY_ACTION_ALLOC) {
        if (action[first + e - 1] == DRY_ACTION_OOM)
            return e;
        e--;
    }
    return j->v->event_count;
}

static void
find_first_step(struct judge *j)
{
    j->horizon = find_horizon(j);
    j->last_birth = j->phases.count ? j->v->allocations[j->phases.count - 1].begin : 0;
    while (j->first_step + 1 < j->step_count && j->rows[j->first_step].is_partial)
        j->first_step++;
    if (j->rows[j->first_step].is_partial)
        j->first_step = 0;
    const uint16_t call = DRYI_HINT_MODULE | DRYI_HINT_FORWARD | DRYI_HINT_BACKWARD;
    j->first_call = 0;
    while (j->first_call < j->phases.count &&
           !(dryi_hints_get(&j->hints, j->v->allocations[j->first_call].stack) & call))
        j->first_call++;
    if (j->first_call == j->phases.count)
        j->first_call = DRY_NONE;
    for (uint32_t a = 0; a < j->phases.count && j->phases.steps[a] == 0; a++)
        j->head_has_backward |= j->phases.of[a] == DRYI_PHASE_BACKWARD;
    for (uint32_t a = 1; a < j->phases.count; a++)
        j->has_backward_end |= j->phases.of[a - 1] == DRYI_PHASE_BACKWARD &&
                               j->phases.of[a] != DRYI_PHASE_BACKWARD;
}

/* --- weights and state from before the window --------------------------------------------- */

struct old {
    uint64_t requested, address;
    uint32_t number;
};

static int
compare_old(const void *a, const void *b)
{
    const struct old *x = a, *y = b;
    if (x->requested != y->requested)
        return x->requested < y->requested ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Count by size the gradients of the first whole step that has any: a weight has one. A gradient
   that the backward pass itself freed is doubtful, and not counted. */
static bool
count_gradients(const struct judge *j, struct dryi_map *counts)
{
    unsigned sure = GRADIENT_CONFIDENCE - (j->phases.by_shape ? SHAPE_DOUBT : 0);
    uint32_t step = DRY_NONE;
    for (uint32_t a = 0; a < j->phases.count && j->phases.steps[a] <= step; a++) {
        uint64_t size = j->v->allocations[a].requested;
        if (j->guesses[a].category != DRY_CATEGORY_GRADIENTS ||
            j->guesses[a].confidence < sure || j->rows[j->phases.steps[a]].is_partial)
            continue;
        step = j->phases.steps[a];
        if (!dryi_map_put(counts, size, read_count(counts, size) + 1))
            return false;
    }
    return true;
}

/*
 * Tell the optimizer's state from weights among `count` old blocks of a size, by address, of which
 * `weights` have gradients. A model is made in one go, so the weights lie closest together; state
 * alternates, and fills holes. Requires count a multiple of weights, and more.
 */
static void
split_size(const struct judge *j, const struct old *rows, size_t count, size_t weights)
{
    size_t best = 0;
    for (size_t i = 1; i + weights <= count; i++) {
        if (rows[i + weights - 1].address - rows[i].address <
            rows[best + weights - 1].address - rows[best].address)
            best = i;
    }
    for (size_t i = 0; i < count; i++) {
        if (i < best || i >= best + weights)
            j->guesses[rows[i].number] = guess(DRY_CATEGORY_OPTIMIZER, 50);
    }
}

static void
split_sizes(const struct judge *j, struct old *rows, size_t count,
            const struct dryi_map *gradients)
{
    if (count > 0)
        qsort(rows, count, sizeof *rows, compare_old);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && rows[end].requested == rows[i].requested;)
            end++;
        uint32_t weights = read_count(gradients, rows[i].requested);
        if (weights && end - i > weights && (end - i) % weights == 0)
            split_size(j, rows + i, end - i, weights);
    }
}

/* Among old blocks that were taken for weights by their lives alone, find the optimizer's state.
   Returns false if memory ran out. */
static bool
split_old(struct judge *j)
{
    size_t count = 0, capacity = (size_t)j->v->carried_over_count + 1;
    struct old *rows = dryi_memory_zalloc(&j->memory, capacity, sizeof *rows);
    struct dryi_map gradients;
    dryi_map_init(&gradients, &j->memory);
    for (uint32_t a = j->phases.count; rows && a < j->v->allocation_count; a++) {
        const struct dry_allocation *row = &j->v->allocations[a];
        if (j->guesses[a].category == DRY_CATEGORY_WEIGHTS &&
            j->guesses[a].evidence == DRY_EVIDENCE_LIFE)
            rows[count++] = (struct old){row->requested, row->address, a};
    }
    bool is_ok = rows && count_gradients(j, &gradients);
    if (is_ok)
        split_sizes(j, rows, count, &gradients);
    dryi_map_finish(&gradients);
    dryi_memory_free(&j->memory, rows, capacity, sizeof *rows);
    return is_ok;
}

/* --- caches that grow ---------------------------------------------------------------------- */

/* Return whether a step made the allocation, and the next one freed it and went on. */
static bool
is_handed_on(const struct judge *j, const struct life *l)
{
    return !l->in_same_step && !l->is_long && l->row->freed <= j->last_birth;
}

/* Return whether just before its free an allocation was made that is larger and of its stack, or
   of a stack that `growing` counts more than once a step. */
static bool
is_replaced(const struct judge *j, const struct life *l, const struct dryi_map *growing)
{
    uint32_t last = dryi_phases_last(&j->phases, l->row->freed);
    for (uint32_t b = last; b > l->number && last - b < TEMPORARY_SPAN; b--) {
        const struct dry_allocation *next = &j->v->allocations[b];
        if (growing ? read_count(growing, next->stack) > j->step_count
                    : next->stack == l->row->stack && next->requested > l->row->requested)
            return true;
    }
    return false;
}

/*
 * Find caches of keys and values that have no name, in inference: code that in each step replaces
 * what it made by something larger, more than once. Other code may have made what is replaced
 * first. Returns false if memory ran out.
 */
static bool
find_caches(struct judge *j)
{
    struct dryi_map growing; /* stack -> how often it replaced its own */
    bool is_ok = true;
    dryi_map_init(&growing, &j->memory);
    for (uint32_t a = 0; is_ok && a < j->phases.count; a++) {
        struct life l = read_life(j, a);
        if (is_handed_on(j, &l) && !dryi_phases_is_bare(j->v, l.row->stack) &&
            is_replaced(j, &l, NULL))
            is_ok = dryi_map_put(&growing, l.row->stack,
                                 read_count(&growing, l.row->stack) + 1);
    }
    for (uint32_t a = 0; is_ok && growing.count > 0 && a < j->phases.count; a++) {
        struct life l = read_life(j, a);
        bool is_own = read_count(&growing, l.row->stack) > j->step_count;
        if ((is_own && !l.in_same_step) ||
            (is_handed_on(j, &l) && is_replaced(j, &l, &growing)))
            j->guesses[a] = guess(DRY_CATEGORY_KV_CACHE, 70);
    }
    dryi_map_finish(&growing);
    return is_ok;
}

/* --- votes of the same code --------------------------------------------------------------- */

/* The vote of one stack and size: find the majority's candidate (Boyer and
   Moore), then count its votes. */
struct vote {
    uint32_t lead, voters, agree;
    uint32_t span; /* the longest of those that agree */
    uint8_t category;
};

/* Return whether allocation `a` votes. An empty stack does not tell whether the code is the
   same. */
static bool
is_voter(const struct judge *j, uint32_t a)
{
    return j->guesses[a].confidence >= VOTE_CONFIDENCE &&
           !dryi_phases_is_bare(j->v, j->v->allocations[a].stack);
}

static void
count_votes(const struct judge *j, const struct dryi_sequence *q, struct vote *votes)
{
    for (uint32_t a = 0; a < q->count; a++) {
        struct vote *v = &votes[q->symbols[a]];
        if (!is_voter(j, a))
            continue;
        if (v->lead == 0)
            v->category = j->guesses[a].category;
        v->lead = v->category == j->guesses[a].category ? v->lead + 1 : v->lead - 1;
    }
    for (uint32_t a = 0; a < q->count; a++) {
        struct vote *v = &votes[q->symbols[a]];
        v->voters += is_voter(j, a);
        if (!is_voter(j, a) || v->category != j->guesses[a].category)
            continue;
        uint32_t span = read_life(j, a).span;
        v->agree++;
        v->span = span > v->span ? span : v->span;
    }
}

/* Apply votes: at least three voters, of which three of four agree. */
static void
take_votes(struct judge *j, const struct dryi_sequence *q, const struct vote *votes)
{
    for (uint32_t a = 0; a < q->count; a++) {
        const struct vote *v = &votes[q->symbols[a]];
        struct dry_category_guess *g = &j->guesses[a];
        if (v->agree < 3 || (uint64_t)v->agree * 4 < (uint64_t)v->voters * 3 ||
            g->category == v->category || g->confidence >= DOUBTFUL)
            continue;
        /* An allocation that outlived its step differs from the others of its code. So does one
           that lives still, and longer than all temporaries: a line makes several tensors. */
        struct life l = read_life(j, a);
        bool is_older = l.is_open && l.span > v->span;
        if (l.is_long || (v->category == DRY_CATEGORY_TEMPORARIES && is_older))
            continue;
        *g = guess((enum dry_category)v->category, 70);
    }
}

static enum dry_status
vote(struct judge *j, struct dry_error *err)
{
    struct dryi_sequence q;
    enum dry_status status = dryi_sequence_init(&q, j->timeline, DRYI_ALPHABET_STACK_SIZE,
                                                DRY_MOMENT_NEVER, &j->memory, err);
    if (status != DRY_OK)
        return status;
    struct vote *votes = dryi_memory_zalloc(&j->memory, q.symbol_count, sizeof *votes);
    if (votes) {
        count_votes(j, &q, votes);
        take_votes(j, &q, votes);
    }
    dryi_memory_free(&j->memory, votes, q.symbol_count, sizeof *votes);
    dryi_sequence_finish(&q);
    return votes ? DRY_OK : dryi_fail_memory(err, "the categories");
}

/* --- hints by names ----------------------------------------------------------------------- */

static struct dry_category_guess
judge_names(const struct judge *j, const struct life *l)
{
    uint16_t hints = dryi_hints_get(&j->hints, l->row->stack);
    enum dry_category category = DRY_CATEGORY_UNKNOWN;
    if ((hints & DRYI_HINT_OPTIMIZER) && l->is_early)
        category = DRY_CATEGORY_OPTIMIZER;
    else if ((hints & DRYI_HINT_INIT) && l->is_early)
        category = DRY_CATEGORY_WEIGHTS;
    else if ((hints & DRYI_HINT_LOADER) && !l->is_long)
        category = DRY_CATEGORY_INPUTS;
    else if ((hints & (DRYI_HINT_MODULE | DRYI_HINT_FORWARD)) && l->is_open &&
             j->v->oom_count > 0)
        category = DRY_CATEGORY_ACTIVATIONS; /* kept by the pass that ran out of memory */
    struct dry_category_guess g = guess(category, 40);
    g.evidence = category ? DRY_EVIDENCE_NAMES : DRY_EVIDENCE_NONE;
    return g;
}

/* --- public call -------------------------------------------------------------------------- */

static enum dry_status
judge_all(struct judge *j, struct dry_error *err)
{
    find_first_step(j);
    if (!collect_weight_sizes(j) || !count_dropped(j))
        return dryi_fail_memory(err, "the categories");
    for (uint32_t a = 0; a < j->phases.count; a++) {
        struct life l = read_life(j, a);
        j->guesses[a] = judge_life(j, &l);
    }
    for (uint32_t a = j->phases.count; a < j->v->allocation_count; a++)
        j->guesses[a] = judge_carried(j, &j->v->allocations[a]);
    if (!split_old(j) || (!j->phases.has_backward && !find_caches(j)))
        return dryi_fail_memory(err, "the categories");
    enum dry_status status = vote(j, err);
    for (uint32_t a = 0; status == DRY_OK && a < j->phases.count; a++) {
        struct life l = read_life(j, a);
        if (j->guesses[a].category == DRY_CATEGORY_UNKNOWN)
            j->guesses[a] = judge_names(j, &l);
    }
    if (status == DRY_OK &&
        !dryi_category_read_marks(j->timeline, j->guesses, &j->memory))
        status = dryi_fail_memory(err, "the marks of categories");
    return status;
}

static void
tell_passes(struct judge *j)
{
    static const uint8_t passes[] = {[DRYI_PHASE_FORWARD] = DRY_PASS_FORWARD,
                                     [DRYI_PHASE_BACKWARD] = DRY_PASS_BACKWARD,
                                     [DRYI_PHASE_UPDATE] = DRY_PASS_UPDATE};
    for (uint32_t a = 0; a < j->phases.count && j->phases.has_backward; a++)
        j->guesses[a].pass = passes[j->phases.of[a]];
}

static enum dry_status
create(struct dry_categories *c, const struct dry_timeline *timeline,
       const struct dry_steps *steps, struct dry_error *err)
{
    struct judge j = {.memory = c->memory,
                      .timeline = timeline,
                      .v = dry_timeline_get_view(timeline),
                      .hints = {.memory = c->memory},
                      .phases = {.memory = c->memory},
                      .guesses = c->guesses};
    j.rows = dry_steps_get(steps, &j.step_count);
    dryi_map_init(&j.weight_sizes, &c->memory);
    enum dry_status status = dryi_hints_init(&j.hints, j.v->trace, &c->memory, err);
    if (status == DRY_OK)
        status = dryi_phases_init(&j.phases, timeline, steps, &j.hints, &c->memory, err);
    if (status == DRY_OK)
        status = judge_all(&j, err);
    tell_passes(&j);
    dryi_memory_free(&j.memory, j.dropped, (size_t)j.phases.count + 1, sizeof *j.dropped);
    dryi_phases_finish(&j.phases);
    dryi_hints_finish(&j.hints);
    dryi_map_finish(&j.weight_sizes);
    return status;
}

enum dry_status
dry_categories_create(const struct dry_timeline *timeline, const struct dry_steps *steps,
                      const struct dry_categories_options *options,
                      struct dry_categories **categories, struct dry_error *err)
{
    struct dry_categories_options o;
    dry_categories_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_categories *c = dryi_memory_zalloc(&memory, 1, sizeof *c);
    if (!c)
        return dryi_fail_memory(err, "categories");
    c->memory = memory;
    c->count = (size_t)dry_timeline_get_view(timeline)->allocation_count + 1;
    c->guesses = dryi_memory_zalloc(&memory, c->count, sizeof *c->guesses);
    const struct dry_trace *trace = dry_timeline_get_view(timeline)->trace;
    if (!c->guesses)
        status = dryi_fail_memory(err, "the categories");
    else if (!dry_trace_get_view(trace)->is_of_driver) /* its blocks are no tensors */
        status = create(c, timeline, steps, err);
    if (status == DRY_OK)
        *categories = c;
    else
        dry_categories_destroy(c);
    return status;
}

void
dry_categories_destroy(struct dry_categories *c)
{
    if (!c)
        return;
    struct dry_memory memory = c->memory;
    dryi_memory_free(&memory, c->guesses, c->count, sizeof *c->guesses);
    dryi_memory_free(&memory, c, 1, sizeof *c);
}

const struct dry_category_guess *
dry_categories_get(const struct dry_categories *categories)
{
    return categories->guesses;
}
