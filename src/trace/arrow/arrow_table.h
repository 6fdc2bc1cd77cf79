/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_TABLE_H
#define DRYI_ARROW_TABLE_H

/* The tables that are exported: of each column its name, its type, and where it comes from. */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/arrow.h>

/* Where the values of a column stand. */
enum dryi_arrow_from {
    DRYI_ARROW_FROM_VIEW, /* a column of the events; `offset` is in dry_trace_view */
    DRYI_ARROW_FROM_ROW,  /* a field; `offset` is in the table's struct */
    DRYI_ARROW_FROM_LANE, /* of an event or a segment; `offset` is in dry_lane */
    DRYI_ARROW_FROM_NOTE, /* of an event; `offset` is in dry_note */
    DRYI_ARROW_EVENT_DEVICE,
    DRYI_ARROW_BLOCK_SEGMENT,
    DRYI_ARROW_BLOCK_DEVICE,
    DRYI_ARROW_STACK_FRAMES,
};

/* The texts that the codes of a column stand for. */
enum dryi_arrow_texts {
    DRYI_ARROW_NO_TEXTS,
    DRYI_ARROW_ACTIONS,
    DRYI_ARROW_STATES,
    DRYI_ARROW_STRINGS,
};

struct dryi_arrow_column {
    const char *name;
    const char *format; /* as Arrow writes it: of the codes, where there are texts */
    enum dryi_arrow_from from;
    enum dryi_arrow_texts texts;
    size_t offset;
    bool is_nullable; /* 32-bit values; DRY_NONE is a null */
};

/* The columns of a table, *count of them. */
const struct dryi_arrow_column *dryi_arrow_table_columns(enum dry_arrow_table table,
                                                         size_t *count);

/* The rows of a table: `stride` is 0 where they are no structs. */
struct dryi_arrow_rows {
    const void *first;
    size_t stride;
    size_t count;
};
struct dryi_arrow_rows dryi_arrow_table_rows(const struct dry_trace_view *view,
                                             enum dry_arrow_table table);

#endif
