/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TEXT_READ_H
#define DRYI_TEXT_READ_H

/*
 * The readers of the text formats, and their shared steps. A reader starts at the first
 * line and reads to the end. Its events belong to device 0. text_format.h chooses the
 * reader.
 */

#include <drystone/memory.h>
#include <drystone/trace.h>

#include "trace/text/text.h"

/* A text, and the builder that receives its events. */
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

/* Search a log for dumps of the BFC allocator. Returns DRY_END if no dump is in it. */
enum dry_status dryi_bfc_read(struct dryi_text_read *r);

/* Add an event to the builder. */
enum dry_status dryi_text_add_event(struct dryi_text_read *r,
                                    const struct dry_event *event);

/* Return the lane of a stream and a private pool (0: the default pool). */
enum dry_status dryi_text_add_lane(struct dryi_text_read *r, uint64_t stream,
                                   uint64_t pool, uint32_t *lane);

#define DRYI_COLUMNS_MAX 64u

/* A column that a CSV must have, and its index in the header. */
struct dryi_column {
    const char *name;
    size_t index;
};

/*
 * Find every column in the current line, the header. *cell_count is set to the cells that
 * each row must have.
 */
enum dry_status dryi_text_read_header(struct dryi_text_read *r,
                                      struct dryi_column *columns, size_t column_count,
                                      size_t *cell_count);

/* Split the current line into `count` cells. More or fewer are refused. */
enum dry_status dryi_text_read_row(struct dryi_text_read *r, struct dryi_word *cells,
                                   size_t count);

#endif
