/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lifetimes: a CSV with the columns id, lower, upper and size, in any order; other
 * columns are ignored. A buffer lives in [lower, upper), so its memory may be reused at
 * `upper`.
 *
 * Rows become events in order of time. At equal times frees precede allocations, and
 * otherwise the order of the file is kept. Each row gives two sort keys: 2 * lower + 1
 * for its allocation and 2 * upper for its free. base/sort.h sorts them.
 *
 * Cost: O(rows), at most eight passes; 80 bytes a row.
 */
#include "trace/text/text_read.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"
#include "trace/model/live.h"

#define ROW_COUNT_MAX UINT32_MAX /* the value of a sort item */

enum lifetimes_column { ID, LOWER, UPPER, SIZE, COLUMN_COUNT };

struct row {
    uint64_t id, size;
    uint64_t offset, number; /* position of its line, for errors after the sort */
};

struct lifetimes {
    struct dryi_text_read *r;
    struct dryi_column columns[COLUMN_COUNT];
    struct dryi_word cells[DRYI_COLUMNS_MAX];
    size_t cell_count;
    struct row *rows;
    size_t row_count, row_capacity;
    /* Two a row. key: 2 * time, + 1 for an allocation; value: the row. */
    struct dryi_sort_item *edges;
    size_t edge_capacity;
    struct dryi_sort_item *scratch; /* allocated while sorting, edge_capacity items */
};

static enum dry_status
read_cell(struct lifetimes *l, enum lifetimes_column column, const char *what,
          uint64_t max, uint64_t *value)
{
    const struct dryi_word *word = &l->cells[l->columns[column].index];
    return dryi_text_number(&l->r->text, word, what, max, value);
}

static enum dry_status
add_row(struct lifetimes *l, const struct row *row, uint64_t lower, uint64_t upper)
{
    const struct dry_memory *m = &l->r->memory;
    size_t i = l->row_count;
    if (i >= ROW_COUNT_MAX ||
        !dryi_memory_grow(m, &l->rows, &l->row_capacity, i + 1, sizeof *l->rows) ||
        !dryi_memory_grow(m, &l->edges, &l->edge_capacity, 2 * i + 2, sizeof *l->edges))
        return dryi_fail_memory(l->r->err, "lifetimes");
    l->rows[i] = *row;
    l->edges[2 * i] = (struct dryi_sort_item){2 * lower + 1, (uint32_t)i};
    l->edges[2 * i + 1] = (struct dryi_sort_item){2 * upper, (uint32_t)i};
    l->row_count++;
    return DRY_OK;
}

static enum dry_status
read_row(struct lifetimes *l)
{
    struct dryi_text *t = &l->r->text;
    struct row row = {.offset = t->offset, .number = t->number};
    uint64_t lower, upper;
    enum dry_status status = dryi_text_read_row(l->r, l->cells, l->cell_count);
    if (status == DRY_OK)
        status = read_cell(l, ID, "an id", UINT64_MAX, &row.id);
    if (status == DRY_OK)
        status = read_cell(l, LOWER, "a begin", INT64_MAX, &lower);
    if (status == DRY_OK)
        status = read_cell(l, UPPER, "an end", INT64_MAX, &upper);
    if (status == DRY_OK)
        status = read_cell(l, SIZE, "a size in bytes", UINT64_MAX, &row.size);
    if (status == DRY_OK && upper <= lower)
        return dryi_text_fail_word(t, &l->cells[l->columns[UPPER].index],
                                   "an end after the begin");
    return status == DRY_OK ? add_row(l, &row, lower, upper) : status;
}

static enum dry_status
sort_edges(struct lifetimes *l)
{
    size_t count = 2 * l->row_count;
    if (count == 0)
        return DRY_OK;
    l->scratch = dryi_memory_zalloc(&l->r->memory, l->edge_capacity, sizeof *l->scratch);
    if (!l->scratch)
        return dryi_fail_memory(l->r->err, "sorting lifetimes");
    dryi_sort_items(l->edges, l->scratch, count);
    return DRY_OK;
}

/* Update the live ids: two rows of one id may not overlap. */
static enum dry_status
follow_edge(struct lifetimes *l, struct dryi_live *live, const struct row *row,
            bool begins)
{
    const struct dryi_live_entry *entry = dryi_live_find(live, row->id);
    if (!begins) {
        dryi_live_remove(live, entry);
        return DRY_OK;
    }
    if (entry)
        return dryi_fail_at(l->r->err, DRY_ERR_FORMAT, row->offset,
                            "line %llu: expected an id that is not alive already, "
                            "found '%llu'",
                            (unsigned long long)row->number, (unsigned long long)row->id);
    if (!dryi_live_put(live, row->id, row->size, 0))
        return dryi_fail_memory(l->r->err, "live allocations");
    return DRY_OK;
}

static enum dry_status
add_edges(struct lifetimes *l, struct dryi_live *live)
{
    uint32_t lane;
    enum dry_status status = dryi_text_add_lane(l->r, 0, 0, &lane);
    for (size_t i = 0; i < 2 * l->row_count && status == DRY_OK; i++) {
        const struct row *row = &l->rows[l->edges[i].value];
        bool begins = l->edges[i].key & 1;
        struct dry_event event = {.action = begins ? DRY_ACTION_ALLOC
                                                   : DRY_ACTION_FREE_REQUESTED,
                                  .addr = row->id,
                                  .size = row->size,
                                  .time_us = (int64_t)(l->edges[i].key >> 1),
                                  .lane = lane,
                                  .stack = DRY_NONE,
                                  .note = DRY_NONE};
        status = follow_edge(l, live, row, begins);
        if (status == DRY_OK)
            status = dryi_text_add_event(l->r, &event);
    }
    return status;
}

static void
finish(struct lifetimes *l)
{
    const struct dry_memory *m = &l->r->memory;
    dryi_memory_free(m, l->rows, l->row_capacity, sizeof *l->rows);
    dryi_memory_free(m, l->edges, l->edge_capacity, sizeof *l->edges);
    dryi_memory_free(m, l->scratch, l->edge_capacity, sizeof *l->scratch);
}

enum dry_status
dryi_lifetimes_read(struct dryi_text_read *r)
{
    struct lifetimes l = {.r = r,
                          .columns = {[ID] = {"id", 0},
                                      [LOWER] = {"lower", 0},
                                      [UPPER] = {"upper", 0},
                                      [SIZE] = {"size", 0}}};
    struct dryi_live live;
    dryi_live_init(&live, &r->memory);
    enum dry_status status =
        dryi_text_read_header(r, l.columns, COLUMN_COUNT, &l.cell_count);
    while (status == DRY_OK) {
        status = dryi_text_next_filled(&r->text, '#');
        if (status == DRY_OK)
            status = read_row(&l);
    }
    if (status == DRY_END)
        status = sort_edges(&l);
    if (status == DRY_OK)
        status = add_edges(&l, &live);
    dryi_live_finish(&live);
    finish(&l);
    return status;
}
