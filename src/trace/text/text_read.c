/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steps shared by all text readers: add events and lanes, find columns in a header, split
 * rows into as many cells as the header has. Cost: O(cells * columns) for a header,
 * O(bytes) for a row.
 */
#include "trace/text/text_read.h"

#include "trace/model/trace.h"

enum dry_status
dryi_text_add_event(struct dryi_text_read *r, const struct dry_event *event)
{
    if (dry_trace_add_event(r->builder, event) == DRY_OK)
        return DRY_OK;
    return dryi_builder_check(r->builder, r->err);
}

enum dry_status
dryi_text_add_lane(struct dryi_text_read *r, uint64_t stream, uint64_t pool,
                   uint32_t *lane)
{
    *lane = dry_trace_add_lane(
        r->builder,
        &(struct dry_lane){.stream = stream, .pool_b = pool, .pool_known = true});
    return *lane == DRY_NONE ? dryi_builder_check(r->builder, r->err) : DRY_OK;
}

/* Store the index of a column. A name that occurs twice is refused. */
static enum dry_status
match_cell(struct dryi_text_read *r, const struct dryi_word *cell, size_t index,
           struct dryi_column *columns, size_t column_count)
{
    for (size_t i = 0; i < column_count; i++) {
        if (!dryi_word_is(cell, columns[i].name))
            continue;
        if (columns[i].index != DRYI_COLUMNS_MAX)
            return dryi_text_fail(&r->text, cell->at, "a second column %s",
                                  columns[i].name);
        columns[i].index = index;
    }
    return DRY_OK;
}

enum dry_status
dryi_text_read_header(struct dryi_text_read *r, struct dryi_column *columns,
                      size_t column_count, size_t *cell_count)
{
    struct dryi_word cell;
    size_t count = 0;
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < column_count; i++)
        columns[i].index = DRYI_COLUMNS_MAX;
    while (status == DRY_OK && dryi_text_next_cell(&r->text, &cell)) {
        if (count == DRYI_COLUMNS_MAX)
            return dryi_text_fail(&r->text, cell.at, "more than %u columns",
                                  DRYI_COLUMNS_MAX);
        status = match_cell(r, &cell, count++, columns, column_count);
    }
    for (size_t i = 0; i < column_count && status == DRY_OK; i++) {
        if (columns[i].index == DRYI_COLUMNS_MAX)
            status = dryi_text_fail(&r->text, 0, "the header lacks a column %s",
                                    columns[i].name);
    }
    *cell_count = count;
    return status;
}

enum dry_status
dryi_text_read_row(struct dryi_text_read *r, struct dryi_word *cells, size_t count)
{
    struct dryi_word extra;
    for (size_t i = 0; i < count; i++) {
        if (!dryi_text_next_cell(&r->text, &cells[i]))
            return dryi_text_fail(&r->text, r->text.length,
                                  "expected %zu cells as in the header, found %zu", count,
                                  i);
    }
    if (dryi_text_next_cell(&r->text, &extra))
        return dryi_text_fail(&r->text, extra.at,
                              "expected %zu cells as in the header, found more", count);
    return DRY_OK;
}
