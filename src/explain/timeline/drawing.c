/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Draw the stack of live allocations at sampled columns. Each column shows its highest moment, so
 * the true peak is visible. Allocations are stacked from the bottom up, one at a time over all of
 * their columns. Only each column's height so far is stored. The cost depends on the visible
 * cells, not on the events.
 *
 * Finding the lives is expensive, so each is examined once. If the drawing needs more runs than
 * allowed, small layers are dropped and the rest is laid again. Lives are found in order of birth.
 */

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/sort.h"
#include "explain/timeline/timeline_inside.h"

/* An allocation large enough to be drawn. */
struct layer {
    uint64_t size;
    uint32_t allocation;
    uint32_t column, column_end;
};

struct canvas {
    struct dry_drawing drawing; /* first member: what the caller sees */
    struct dry_memory memory;
    const struct dry_timeline *t;
    size_t run_max;
    struct dry_drawing_column *columns;
    struct dry_drawing_run *runs;
    size_t run_capacity;
    uint64_t *heights;    /* bytes drawn so far in each column */
    struct layer *layers; /* in order of birth, carried-over ones first */
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

/* Return the first column sampled at or after `moment`. It is after column `low`, whose moment is
   earlier. Most lives are short, so search from `low` in doubling steps. */
static uint32_t
find_column_behind(const struct canvas *c, uint32_t moment, uint32_t low)
{
    uint32_t count = c->drawing.column_count, step = 1;
    while (count - low > step && c->columns[low + step].moment < moment) {
        low += step;
        step *= 2;
    }
    uint32_t high = count - low > step ? low + step : count;
    low++;
    return low + (uint32_t)dryi_count_below(
                     c->columns + low, high - low, sizeof *c->columns,
                     offsetof(struct dry_drawing_column, moment), moment);
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

/* Count a small allocation at its first column and after its last; the running
   sum is a column's count. */
static void
count_undrawn(struct canvas *c, uint32_t column, uint32_t column_end)
{
    c->columns[column].undrawn_count++;
    if (column_end < c->drawing.column_count)
        c->columns[column_end].undrawn_count--; /* may wrap; the running sum does not */
}

/* Make a layer of an allocation with a known first column, or count it if it is small. */
static bool
collect(struct canvas *c, uint32_t allocation, uint32_t column)
{
    const struct dry_allocation *a = &c->t->allocations[allocation];
    struct layer layer = {.size = a->size,
                          .allocation = allocation,
                          .column = column,
                          .column_end = find_column_behind(c, a->end, column)};
    if (layer.size >= c->drawing.min_bytes)
        return add_layer(c, &layer);
    count_undrawn(c, layer.column, layer.column_end);
    return true;
}

/* Collect the lives born since the previous column and alive at this column's moment. The tree of
   ends skips the others, nearly all of a long record. */
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

/* Drop layers below the minimum size; keep the order of the others. */
static void
drop_undrawn(struct canvas *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->layer_count; i++) {
        if (c->layers[i].size >= c->drawing.min_bytes)
            c->layers[kept++] = c->layers[i];
        else
            count_undrawn(c, c->layers[i].column, c->layers[i].column_end);
    }
    c->layer_count = kept;
}

/* Return the moments of a whole life, of which the axis may show a part. A life without an end
   lasts to the record's. */
static uint32_t
life_length(const struct canvas *c, const struct layer *layer)
{
    const struct dry_allocation *a = &c->t->allocations[layer->allocation];
    uint32_t last = c->t->view.dump_moment + 1;
    return (a->end < last ? a->end : last) - a->begin;
}

/* Write the layers' indices to `order`, from the bottom up: by birth, or the longest life first.
   Lives have the same order in every drawing, so that adjacent drawings fit together. */
static void
order_layers(const struct canvas *c, enum dry_stacking stacking,
             struct dryi_sort_item *order, struct dryi_sort_item *scratch)
{
    for (size_t i = 0; i < c->layer_count; i++)
        order[i] = (struct dryi_sort_item){
            UINT32_MAX - (uint64_t)life_length(c, &c->layers[i]), (uint32_t)i};
    if (stacking == DRY_STACKING_LONG_LIVED)
        dryi_sort_items(order, scratch, c->layer_count);
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

/* Draw an allocation over its columns. A new run begins where the height below it changes. */
static bool
lay(struct canvas *c, const struct layer *layer)
{
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
        c->heights[i] += layer->size;
    }
    run.column_end = layer->column_end;
    return add_run(c, &run);
}

/* Draw all layers, or stop when the number of runs exceeds the limit. */
static bool
lay_all(struct canvas *c, enum dry_stacking stacking)
{
    size_t capacity = 2 * c->layer_count + 1; /* never zero bytes */
    struct dryi_sort_item *order =
        dryi_memory_zalloc(&c->memory, capacity, sizeof *order);
    bool is_done = order != NULL;
    if (is_done)
        order_layers(c, stacking, order, order + c->layer_count);
    c->drawing.run_count = 0;
    memset(c->heights, 0, c->drawing.column_count * sizeof *c->heights);
    for (size_t i = 0;
         is_done && i < c->layer_count && c->drawing.run_count <= c->run_max; i++)
        is_done = lay(c, &c->layers[order[i].value]);
    dryi_memory_free(&c->memory, order, capacity, sizeof *order);
    return is_done;
}

/* Raise the minimum size until the runs are few enough. Each layer has at least one run, so too
   many layers are not drawn at all. */
static bool
draw(struct canvas *c, enum dry_stacking stacking)
{
    if (!collect_layers(c))
        return false;
    bool is_done = true;
    do {
        while (c->layer_count > c->run_max || c->drawing.run_count > c->run_max) {
            c->drawing.run_count = 0;
            c->drawing.min_bytes = c->drawing.min_bytes * 2 + 1;
            drop_undrawn(c);
        }
        is_done = lay_all(c, stacking);
    } while (is_done && c->drawing.run_count > c->run_max);
    for (uint32_t i = 0; is_done && i < c->drawing.column_count; i++) {
        c->columns[i].undrawn_bytes = c->columns[i].active_bytes - c->heights[i];
        if (i > 0)
            c->columns[i].undrawn_count += c->columns[i - 1].undrawn_count;
    }
    return is_done;
}

enum dry_status
dry_drawing_create(const struct dry_timeline *timeline, const struct dry_axis *axis,
                   enum dry_stacking stacking, const struct dry_drawing_bounds *bounds,
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
    c->run_max = bounds->run_max;
    c->drawing.min_bytes = bounds->min_bytes;
    c->drawing.column_count = axis->column_count;
    bool is_done = sample_columns(c, axis, err) && draw(c, stacking);
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
