/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which text format it is, and what the readers share. The first line that says anything
 * decides: RMM's header, the header of lifetimes, or an event of a plain trace.
 */
#include "trace/text/text_read.h"

#include <string.h>

#include "base/fail.h"
#include "trace/model/trace.h"

static const char byte_order_mark[] = "\xef\xbb\xbf";

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

/* Note where a column stands; a name that comes twice is refused. */
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

/* True if the current line's cells include this one; the cursor stays. */
static bool
has_cell(struct dryi_text *t, const char *name)
{
    struct dryi_word cell;
    size_t before = t->at;
    bool found = false;
    while (!found && dryi_text_next_cell(t, &cell))
        found = dryi_word_is(&cell, name);
    t->at = before;
    return found;
}

static bool
is_plain(struct dryi_text *t)
{
    struct dryi_word word;
    size_t before = t->at;
    bool found = dryi_text_next_word(t, &word) && word.length == 1 &&
                 strchr("iafrsepq", word.bytes[0]);
    t->at = before;
    return found;
}

/* Spreadsheets begin a text with a mark; the first line begins behind it. */
static enum dry_status
skip_byte_order_mark(struct dryi_input *in, struct dry_error *err)
{
    size_t length = sizeof byte_order_mark - 1;
    enum dry_status status = dryi_input_fill(in, length, err);
    if (status == DRY_OK && dryi_input_unread(in) >= length &&
        memcmp(in->window + in->at, byte_order_mark, length) == 0)
        in->at += length;
    return status;
}

/* An op comes first: a label may look like a header, no header begins like an op. */
static enum dry_status
read_format(struct dryi_text_read *r)
{
    struct dryi_text *t = &r->text;
    if (is_plain(t)) {
        dryi_builder_set_kind(r->builder, DRY_TRACE_PLAIN);
        return dryi_plain_read(r);
    }
    if (has_cell(t, "Action") && has_cell(t, "Pointer")) {
        dryi_builder_set_kind(r->builder, DRY_TRACE_RMM);
        return dryi_rmm_read(r);
    }
    if (has_cell(t, "lower") || has_cell(t, "upper")) {
        dryi_builder_set_kind(r->builder, DRY_TRACE_LIFETIMES);
        return dryi_lifetimes_read(r);
    }
    return dryi_text_fail(t, 0,
                          "no trace that is known: expected a pickle, a line `op id size "
                          "stream time_us` (op one of i a f r s e p q), RMM's header, or "
                          "the header id,lower,upper,size");
}

enum dry_status
dryi_text_read(struct dryi_input *in, struct dry_trace_builder *builder,
               struct dry_error *err)
{
    struct dryi_text_read r = {
        .memory = builder->trace->memory, .builder = builder, .err = err};
    dryi_text_init(&r.text, in, err);
    enum dry_status status = skip_byte_order_mark(in, err);
    if (status == DRY_OK && dry_trace_begin_device(builder, 0) != DRY_OK)
        status = dryi_builder_check(builder, err);
    if (status == DRY_OK)
        status = dryi_text_next_filled(&r.text, '#');
    if (status == DRY_OK)
        return read_format(&r);
    if (status != DRY_END)
        return status;
    /* A plain trace may hold nothing but comments: its program took no memory. */
    dryi_builder_set_kind(builder, DRY_TRACE_PLAIN);
    return DRY_OK;
}
