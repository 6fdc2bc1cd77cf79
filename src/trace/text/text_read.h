/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TEXT_READ_H
#define DRYI_TEXT_READ_H

/*
 * The readers of the text formats, one each, and what they share. A reader gets the first
 * line as the current one and reads to the end. Its events arrive in the builder as those
 * of device 0. The reader that a text needs is told by text_format.h.
 */

#include <drystone/memory.h>
#include <drystone/trace.h>

#include "trace/text/text.h"

/* The text, and where its events go. */
struct dryi_text_read {
    struct dryi_text text;
    struct dry_memory memory;
    struct dry_trace_builder *builder;
    struct dry_error *err;
};

/* Read all events. Requires that the first line is the current one. */
enum dry_status dryi_plain_read(struct dryi_text_read *r);
enum dry_status dryi_rmm_read(struct dryi_text_read *r);
enum dry_status dryi_lifetimes_read(struct dryi_text_read *r);

/* Hand an event to the builder. */
enum dry_status dryi_text_add_event(struct dryi_text_read *r,
                                    const struct dry_event *event);

/* The lane of a stream and a private pool (0: the default pool). */
enum dry_status dryi_text_add_lane(struct dryi_text_read *r, uint64_t stream,
                                   uint64_t pool, uint32_t *lane);

#define DRYI_COLUMNS_MAX 64u

/* A column a CSV must have, and where its header puts it. */
struct dryi_column {
    const char *name;
    size_t index;
};

/*
 * Find every column in the header, which is the current line. *cell_count is set to the
 * number of cells a row must have.
 */
enum dry_status dryi_text_read_header(struct dryi_text_read *r,
                                      struct dryi_column *columns, size_t column_count,
                                      size_t *cell_count);

/* Split the current line into `count` cells; fewer or more are refused. */
enum dry_status dryi_text_read_row(struct dryi_text_read *r, struct dryi_word *cells,
                                   size_t count);

#endif
