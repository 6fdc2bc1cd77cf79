/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_TABLE_H
#define DRYI_ARROW_TABLE_H

/* The exported tables: the name, type and source of each column. */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/arrow.h>

/* The place of a column's values in the trace. */
enum dryi_arrow_from {
    DRYI_ARROW_FROM_VIEW, /* a column of the events; `offset` is within dry_trace_view */
    DRYI_ARROW_FROM_ROW,  /* a field of a row; `offset` is within the table's struct */
    DRYI_ARROW_FROM_LANE, /* a field of the row's lane; `offset` is within dry_lane */
    DRYI_ARROW_FROM_NOTE, /* a field of an event's note; `offset` is within dry_note */
    DRYI_ARROW_EVENT_DEVICE,
    DRYI_ARROW_BLOCK_SEGMENT,
    DRYI_ARROW_BLOCK_DEVICE,
    DRYI_ARROW_STACK_FRAMES,
};

/* The dictionary of a column: its values are indices into these texts. */
enum dryi_arrow_texts {
    DRYI_ARROW_NO_TEXTS,
    DRYI_ARROW_ACTIONS,
    DRYI_ARROW_STATES,
    DRYI_ARROW_STRINGS,
};

struct dryi_arrow_column {
    const char *name;
    const char *format; /* in Arrow's notation; of the indices if there is a dictionary */
    enum dryi_arrow_from from;
    enum dryi_arrow_texts texts;
    size_t offset;
    bool is_nullable; /* 32-bit values, of which DRY_NONE is exported as null */
};

/* Return the columns of a table; their number is *count. */
const struct dryi_arrow_column *dryi_arrow_table_columns(enum dry_arrow_table table,
                                                         size_t *count);

/* The rows of a table. If they are not an array of structs, `stride` is 0. */
struct dryi_arrow_rows {
    const void *first;
    size_t stride;
    size_t count;
};
struct dryi_arrow_rows dryi_arrow_table_rows(const struct dry_trace_view *view,
                                             enum dry_arrow_table table);

#endif
