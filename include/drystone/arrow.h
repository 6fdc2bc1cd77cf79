/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_ARROW_H
#define DRY_ARROW_H

/*
 * The tables of a trace for data frames, by Apache Arrow's C stream interface: pandas,
 * Polars, DuckDB, R, Julia and others import them without an intermediate file.
 *
 *     struct ArrowArrayStream stream;
 *     if (dry_arrow_export(trace, DRY_ARROW_EVENTS, NULL, &stream, &err) != DRY_OK) ...
 *     stream.get_schema(&stream, &schema);
 *     stream.get_next(&stream, &batch);       all rows; a second call returns the end
 *     stream.release(&stream);
 *
 * A text column is dictionary-encoded with its distinct texts. A null has DRY_NONE as its
 * value. Texts are strict UTF-8: an invalid byte or lone surrogate appears as an escape
 * such as "\udc80".
 *
 * Ownership  All data is copied; no pointer leads into the trace. A stream, a schema and
 *            an array each have their own `release`, as Arrow specifies.
 * Errors     See dry_arrow_export(). get_schema may return ENOMEM.
 * Threads    An exported struct may be released on any thread, one at a time; `memory`
 *            must allow that.
 * Units      See <drystone/trace.h>.
 * Cost       O(rows + their texts + strings of the trace).
 */

#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names and guards are Arrow's own, for another header may have declared the same
   structs. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

/* The type of a column, or of a table: a struct of columns. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *schema); /* NULL: released */
    void *private_data;
};

/* The rows of a column, or of a table. */
struct ArrowArray {
    int64_t length, null_count, offset;
    int64_t n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *array); /* NULL: released */
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/* Batches of rows, one after the other. The calls return 0 or an errno. */
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *stream, struct ArrowSchema *schema);
    int (*get_next)(struct ArrowArrayStream *stream, struct ArrowArray *array);
    const char *(*get_last_error)(struct ArrowArrayStream *stream);
    void (*release)(struct ArrowArrayStream *stream); /* NULL: released */
    void *private_data;
};
#endif

/* The tables. Columns are named as the fields of <drystone/trace.h>, except `address` for
   `addr`. Lanes, notes and strings are expanded into columns. */
enum dry_arrow_table {
    /* action, device, address, size, time_us, stream, pool_a, pool_b, stack,
       user_metadata, compile_context */
    DRY_ARROW_EVENTS,
    /* device, address, total_size, allocated_size, active_size, requested_size, stream,
       pool_a, pool_b, is_large, is_expandable, stack, first_block, block_count */
    DRY_ARROW_SEGMENTS,
    /* segment, device, address, size, requested_size, state, stack */
    DRY_ARROW_BLOCKS,
    /* device, first_event, event_count, first_segment, segment_count */
    DRY_ARROW_DEVICES,
    DRY_ARROW_ANNOTATIONS, /* device, time_us, name, stage */
    DRY_ARROW_STACKS,      /* frames: a list, innermost first */
    DRY_ARROW_FRAMES,      /* name, file, line */
};
#define DRY_ARROW_TABLE_COUNT 7

/*
 * Return the name of a table, "events", "segments" ...; "unknown table" for other numbers.
 */
DRY_API const char *dry_arrow_table_name(enum dry_arrow_table table);

/* Export a table of `trace` as *stream, with one batch of all rows, even if it has no
   rows. `memory` NULL: malloc. Errors: ARGUMENT (no such table), MEMORY. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_arrow_export(const struct dry_trace *trace,
                                                          enum dry_arrow_table table,
                                                          const struct dry_memory *memory,
                                                          struct ArrowArrayStream *stream,
                                                          struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
