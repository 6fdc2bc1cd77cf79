/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles: the curves and the stacked allocations over a range of moments, in 1,024
 * columns. Each column is drawn at its moment of highest active bytes, so every zoom
 * level shows the true peak.
 */
#include "view/answers.h"

#include <stdlib.h>

/* runs per tile; if there are more, small allocations are left out */
#define RUNS_MAX 60000

uint32_t
tile_begin(const struct view_device *device, uint32_t level, uint32_t index)
{
    return (uint32_t)((uint64_t)device->moments * index >> level);
}

static void
put_columns(struct pack *p, const struct view_device *d,
            const struct dry_drawing *drawing, const struct dry_curve_column *curve)
{
    unsigned begin = pack_column(p, "col_begin", PACK_U32);
    unsigned end = pack_column(p, "col_end", PACK_U32);
    unsigned at = pack_column(p, "col_at", PACK_U32);
    unsigned time = pack_column(p, "col_time", PACK_F64);
    unsigned bytes = pack_column(p, "small_bytes", PACK_F64);
    unsigned count = pack_column(p, "small_count", PACK_U32);
    pack_f64(p, pack_column(p, "small_below", PACK_F64), (double)drawing->min_bytes);
    int64_t first = dry_timeline_time(d->timeline, 0);
    for (uint32_t i = 0; i < drawing->column_count; i++) {
        pack_u32(p, begin, curve[i].begin);
        pack_u32(p, end, curve[i].end);
        pack_u32(p, at, drawing->columns[i].moment);
        pack_f64(p, time,
                 (double)dry_timeline_time(d->timeline, curve[i].begin) - (double)first);
        pack_f64(p, bytes, (double)drawing->columns[i].undrawn_bytes);
        pack_u32(p, count, drawing->columns[i].undrawn_count);
    }
}

struct curve_names {
    const char *min, *max; /* NULL: not in the tile */
};

static const struct curve_names curve_names[DRY_CURVE_COUNT] = {
    [DRY_CURVE_RESERVED] = {"reserved_min", "reserved_max"},
    [DRY_CURVE_ACTIVE] = {"active_min", "active_max"},
    [DRY_CURVE_ALLOCATED] = {NULL, "allocated_max"},
    [DRY_CURVE_REQUESTED] = {NULL, "requested_max"},
};

static void
put_curve(struct pack *p, enum dry_curve curve, const struct dry_curve_column *columns,
          uint32_t count)
{
    const struct curve_names *names = &curve_names[curve];
    unsigned max = pack_column(p, names->max, PACK_F64);
    for (uint32_t i = 0; i < count; i++)
        pack_f64(p, max, (double)columns[i].max);
    if (!names->min)
        return;
    unsigned min = pack_column(p, names->min, PACK_F64);
    for (uint32_t i = 0; i < count; i++)
        pack_f64(p, min, (double)columns[i].min);
}

/* Write the active bytes by category that are not drawn as runs. */
static bool
put_categories(struct pack *p, const struct view_device *d,
               const struct dry_drawing *drawing)
{
    uint32_t count = drawing->column_count;
    size_t cells = (count + (size_t)1) * DRY_CATEGORY_COUNT;
    uint64_t *drawn = calloc(cells, sizeof *drawn);
    const struct dry_category_guess *guesses = dry_categories_get(d->categories);
    if (!drawn)
        return false;
    for (size_t i = 0; i < drawing->run_count; i++) {
        const struct dry_drawing_run *run = &drawing->runs[i];
        unsigned category = guesses[run->allocation].category;
        uint64_t size = d->v->allocations[run->allocation].size;
        for (uint32_t k = run->column; k < run->column_end; k++)
            drawn[(size_t)k * DRY_CATEGORY_COUNT + category] += size;
    }
    unsigned by = pack_column(p, "small_by", PACK_F64);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t active[CATEGORY_SUMS_MAX];
        category_sums_at(&d->category_sums, drawing->columns[i].moment, active);
        for (unsigned c = 0; c < DRY_CATEGORY_COUNT; c++)
            pack_f64(p, by,
                     (double)(active[c] - drawn[(size_t)i * DRY_CATEGORY_COUNT + c]));
    }
    free(drawn);
    return true;
}

static void
put_runs(struct pack *p, struct view_device *d, const struct dry_drawing *drawing)
{
    unsigned alloc = pack_column(p, "run_alloc", PACK_U32);
    unsigned from = pack_column(p, "run_from", PACK_U32);
    unsigned to = pack_column(p, "run_to", PACK_U32);
    unsigned bottom = pack_column(p, "run_bottom", PACK_F64);
    struct alloc_rows rows;
    alloc_rows_begin(&rows, p, d);
    for (size_t i = 0; i < drawing->run_count; i++) {
        const struct dry_drawing_run *run = &drawing->runs[i];
        pack_u32(p, alloc, alloc_rows_find(&rows, run->allocation));
        pack_u32(p, from, run->column);
        pack_u32(p, to, run->column_end);
        pack_f64(p, bottom, (double)run->bottom);
    }
    alloc_rows_end(&rows);
}

static bool
put_tile(struct pack *p, struct view_device *d, const struct dry_axis *axis,
         struct dry_curve_column *columns)
{
    struct dry_curve_column *of[DRY_CURVE_COUNT];
    struct dry_drawing_bounds bounds = {.min_bytes = d->min_bytes, .run_max = RUNS_MAX};
    struct dry_drawing *drawing = NULL;
    for (unsigned i = 0; i < DRY_CURVE_COUNT; i++)
        of[i] = columns + (size_t)i * axis->column_count;
    if (dry_timeline_curves(d->timeline, axis, of, NULL) != DRY_OK ||
        dry_drawing_create(d->timeline, axis, DRY_STACKING_LONG_LIVED, &bounds, &drawing,
                           NULL) != DRY_OK)
        return false;
    put_columns(p, d, drawing, columns);
    for (unsigned i = 0; i < DRY_CURVE_COUNT; i++)
        put_curve(p, (enum dry_curve)i, of[i], axis->column_count);
    bool is_fine = put_categories(p, d, drawing);
    if (is_fine)
        put_runs(p, d, drawing);
    dry_drawing_destroy(drawing);
    return is_fine;
}

bool
answer_tile(struct view_device *device, uint32_t level, uint32_t index,
            struct answer *answer)
{
    struct dry_axis axis = {.from = tile_begin(device, level, index),
                            .to = tile_begin(device, level, index + 1)};
    uint32_t moments = axis.to - axis.from;
    axis.column_count = moments < VIEW_TILE_COLUMNS ? moments : VIEW_TILE_COLUMNS;
    struct dry_curve_column *columns =
        calloc(axis.column_count + (size_t)1, sizeof *columns * DRY_CURVE_COUNT);
    struct pack p = {0};
    bool is_fine =
        columns && put_tile(&p, device, &axis, columns) && pack_write(&p, answer);
    pack_finish(&p);
    free(columns);
    return is_fine;
}
