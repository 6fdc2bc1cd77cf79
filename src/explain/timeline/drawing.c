/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The stack of live allocations at sampled columns. Every column is sampled at its highest
 * moment, so the true peak is drawn. Allocations are laid from the bottom up, one after the
 * other over all columns they are alive in; a column's height so far is all that must be
 * remembered. The cost follows the cells that can be seen, not the events.
 */

#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "explain/timeline/timeline_inside.h"

/* One allocation worth drawing. */
struct layer {
    uint64_t order; /* from the bottom up */
    uint32_t allocation;
    uint32_t column, column_end;
};

struct canvas {
    struct dry_drawing drawing; /* first: what the caller sees */
    struct dry_memory memory;
    const struct dry_timeline *t;
    enum dry_stacking stacking;
    uint64_t min_bytes;
    struct dry_drawing_column *columns;
    struct dry_drawing_run *runs;
    size_t run_capacity;
    uint64_t *heights; /* by column: drawn so far */
    struct layer *layers;
    size_t layer_count, layer_capacity;
};

static bool
sample_columns(struct canvas *c, const struct dry_axis *axis, struct dry_error *err)
{
    uint32_t count = axis->column_count;
    struct dry_curve_column *curve = dryi_memory_zalloc(&c->memory, count, sizeof *curve);
    c->columns = dryi_memory_zalloc(&c->memory, count, sizeof *c->columns);
    c->heights = dryi_memory_zalloc(&c->memory, count, sizeof *c->heights);
    bool is_done = curve && c->columns && c->heights &&
                   dry_timeline_curve(c->t, DRY_CURVE_ACTIVE, axis, curve, err) == DRY_OK;
    for (uint32_t i = 0; is_done && i < count; i++) {
        c->columns[i].moment = curve[i].max_moment;
        c->columns[i].active_bytes = curve[i].max;
    }
    dryi_memory_free(&c->memory, curve, count, sizeof *curve);
    return is_done;
}

/* The first column sampled at or after a moment, not before column `low`. */
static uint32_t
find_column(const struct canvas *c, uint32_t moment, uint32_t low)
{
    uint32_t high = c->drawing.column_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->columns[middle].moment < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t
order_of(enum dry_stacking stacking, const struct layer *l, uint32_t born)
{
    uint64_t length = l->column_end - l->column;
    if (stacking == DRY_STACKING_LONG_LIVED)
        return (uint64_t)(UINT32_MAX - (uint32_t)length) << 32 | born;
    return born;
}

/* Ghosts were there first; their numbers come last. */
static uint32_t
rank_of(const struct dry_timeline *t, uint32_t i)
{
    return i >= t->window_count ? i - t->window_count : t->view.ghost_count + i;
}

static bool
add_layer(struct canvas *c, const struct layer *layer)
{
    if (!dryi_memory_grow(&c->memory, &c->layers, &c->layer_capacity, c->layer_count + 1,
                          sizeof *c->layers))
        return false;
    c->layers[c->layer_count++] = *layer;
    return true;
}

/*
 * An allocation whose first column is known. Large ones become layers; small ones are counted
 * where they begin and end (the count of a column is then a running sum).
 */
static bool
collect(struct canvas *c, uint32_t allocation, uint32_t column)
{
    const struct dry_allocation *a = &c->t->allocations[allocation];
    struct layer layer = {.allocation = allocation,
                          .column = column,
                          .column_end = find_column(c, a->end, column)};
    if (a->size < c->min_bytes) {
        c->columns[column].small_count++;
        if (layer.column_end < c->drawing.column_count)
            c->columns[layer.column_end].small_count--; /* wraps, and back */
        return true;
    }
    layer.order = order_of(c->stacking, &layer, rank_of(c->t, allocation));
    return add_layer(c, &layer);
}

/*
 * Collect the lives born since the column before, and alive at this one's moment. The
 * others, nearly all of a long record, are stepped over by the tree of ends.
 */
static bool
collect_born(struct canvas *c, uint32_t column)
{
    const struct dryi_lives *lives = &c->t->lives;
    uint32_t moment = c->columns[column].moment;
    uint32_t from =
        column > 0 ? dryi_lives_begun(lives, c->columns[column - 1].moment) : 0;
    uint32_t begun = dryi_lives_begun(lives, moment);
    uint32_t i = dryi_lives_next_sorted(lives, moment, from, begun);
    while (i != DRYI_LIVES_NONE) {
        if (!collect(c, i, column))
            return false;
        i = dryi_lives_next_sorted(lives, moment, i + 1, begun);
    }
    return true;
}

static bool
collect_layers(struct canvas *c)
{
    const struct dry_timeline *t = c->t;
    uint32_t first = c->columns[0].moment;
    for (uint32_t i = t->window_count; i < t->view.allocation_count; i++) {
        if (t->allocations[i].end > first && !collect(c, i, 0))
            return false;
    }
    for (uint32_t column = 0; column < c->drawing.column_count; column++) {
        if (!collect_born(c, column))
            return false;
    }
    return true;
}

static int
compare_layers(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

static bool
add_run(struct canvas *c, const struct dry_drawing_run *run)
{
    if (!dryi_memory_grow(&c->memory, &c->runs, &c->run_capacity,
                          c->drawing.run_count + 1, sizeof *c->runs))
        return false;
    c->runs[c->drawing.run_count++] = *run;
    return true;
}

/* Lay an allocation over its columns; a new run wherever the height below it changes. */
static bool
lay(struct canvas *c, const struct layer *layer)
{
    uint64_t size = c->t->allocations[layer->allocation].size;
    struct dry_drawing_run run = {.allocation = layer->allocation,
                                  .column = layer->column,
                                  .bottom = c->heights[layer->column]};
    for (uint32_t i = layer->column; i < layer->column_end; i++) {
        if (c->heights[i] != run.bottom) {
            run.column_end = i;
            if (!add_run(c, &run))
                return false;
            run.column = i;
            run.bottom = c->heights[i];
        }
        c->heights[i] += size;
    }
    run.column_end = layer->column_end;
    return add_run(c, &run);
}

static bool
draw(struct canvas *c)
{
    if (!collect_layers(c))
        return false;
    if (c->layer_count > 0)
        qsort(c->layers, c->layer_count, sizeof *c->layers, compare_layers);
    for (size_t i = 0; i < c->layer_count; i++) {
        if (!lay(c, &c->layers[i]))
            return false;
    }
    for (uint32_t i = 0; i < c->drawing.column_count; i++) {
        c->columns[i].small_bytes = c->columns[i].active_bytes - c->heights[i];
        if (i > 0)
            c->columns[i].small_count += c->columns[i - 1].small_count;
    }
    return true;
}

enum dry_status
dry_drawing_create(const struct dry_timeline *timeline, const struct dry_axis *axis,
                   enum dry_stacking stacking, uint64_t min_bytes,
                   struct dry_drawing **drawing, struct dry_error *err)
{
    enum dry_status status = dryi_axis_check(timeline, axis, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = timeline->memory;
    struct canvas *c = dryi_memory_zalloc(&memory, 1, sizeof *c);
    if (!c)
        return dryi_fail_memory(err, "a drawing");
    c->memory = memory;
    c->t = timeline;
    c->stacking = stacking;
    c->min_bytes = min_bytes;
    c->drawing.column_count = axis->column_count;
    bool is_done = sample_columns(c, axis, err) && draw(c);
    dryi_memory_free(&memory, c->layers, c->layer_capacity, sizeof *c->layers);
    c->layers = NULL;
    c->layer_capacity = 0;
    c->drawing.columns = c->columns;
    c->drawing.runs = c->runs;
    if (!is_done) {
        dry_drawing_destroy(&c->drawing);
        return dryi_fail_memory(err, "a drawing");
    }
    *drawing = &c->drawing;
    return DRY_OK;
}

void
dry_drawing_destroy(struct dry_drawing *drawing)
{
    if (!drawing)
        return;
    struct canvas *c = (struct canvas *)drawing;
    struct dry_memory memory = c->memory;
    uint32_t count = c->drawing.column_count;
    dryi_memory_free(&memory, c->columns, count, sizeof *c->columns);
    dryi_memory_free(&memory, c->heights, count, sizeof *c->heights);
    dryi_memory_free(&memory, c->runs, c->run_capacity, sizeof *c->runs);
    dryi_memory_free(&memory, c, 1, sizeof *c);
}
