/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Export a trace as an Arrow stream of one batch. All data is copied at export, so the
 * stream and its arrays do not depend on the trace.
 */
#include <drystone/arrow.h>

#include <errno.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trace/arrow/arrow_fill.h"
#include "trace/arrow/arrow_hold.h"
#include "trace/arrow/arrow_texts.h"

struct stream_hold {
    struct dry_memory memory;
    enum dry_arrow_table table;
    struct ArrowArray batch; /* its release is NULL once the consumer has taken it */
};

/* --- schemas --- */

static bool
make_column_schema(struct ArrowSchema *schema, const struct dryi_arrow_column *column,
                   const struct dry_memory *memory)
{
    if (!dryi_arrow_schema_begin(schema, column->format, column->name, memory))
        return false;
    schema->flags = column->is_nullable ? ARROW_FLAG_NULLABLE : 0;
    if (column->from == DRYI_ARROW_STACK_FRAMES)
        return dryi_arrow_schema_begin(dryi_arrow_schema_add(schema), "I", "item",
                                       memory);
    return column->texts == DRYI_ARROW_NO_TEXTS ||
           dryi_arrow_schema_begin(dryi_arrow_schema_add_dictionary(schema), "U", "",
                                   memory);
}

static bool
make_schema(struct ArrowSchema *schema, enum dry_arrow_table table,
            const struct dry_memory *memory)
{
    size_t count;
    const struct dryi_arrow_column *columns = dryi_arrow_table_columns(table, &count);
    if (!dryi_arrow_schema_begin(schema, "+s", "", memory))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!make_column_schema(dryi_arrow_schema_add(schema), &columns[i], memory))
            return false;
    return true;
}

/* --- batches --- */

static bool
make_column(struct ArrowArray *array, const struct dry_trace *trace,
            enum dry_arrow_table table, const struct dryi_arrow_column *column,
            const struct dry_memory *memory)
{
    if (!dryi_arrow_fill(array, trace, table, column, memory))
        return false;
    return column->texts == DRYI_ARROW_NO_TEXTS ||
           dryi_arrow_texts_add(array, trace, column->texts, memory);
}

static bool
make_batch(struct ArrowArray *batch, const struct dry_trace *trace,
           enum dry_arrow_table table, const struct dry_memory *memory)
{
    size_t count;
    const struct dryi_arrow_column *columns = dryi_arrow_table_columns(table, &count);
    struct dryi_arrow_rows rows = dryi_arrow_table_rows(dry_trace_get_view(trace), table);
    if (!dryi_arrow_array_begin(batch, rows.count, 1, memory))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!make_column(dryi_arrow_array_add(batch), trace, table, &columns[i], memory))
            return false;
    return true;
}

/* --- the stream --- */

static int
get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema)
{
    const struct stream_hold *hold = stream->private_data;
    struct ArrowSchema made = {.release = NULL};
    if (!make_schema(&made, hold->table, &hold->memory)) {
        if (made.release)
            made.release(&made);
        return ENOMEM;
    }
    *schema = made;
    return 0;
}

static int
get_next(struct ArrowArrayStream *stream, struct ArrowArray *array)
{
    struct stream_hold *hold = stream->private_data;
    *array = hold->batch;
    hold->batch = (struct ArrowArray){.release = NULL};
    return 0;
}

/* Return the text of the only possible failure. */
static const char *
get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "no memory for a schema";
}

static void
release_stream(struct ArrowArrayStream *stream)
{
    struct stream_hold *hold = stream->private_data;
    struct dry_memory memory = hold->memory;
    if (hold->batch.release)
        hold->batch.release(&hold->batch);
    stream->release = NULL;
    dryi_memory_free(&memory, hold, 1, sizeof *hold);
}

enum dry_status
dry_arrow_export(const struct dry_trace *trace, enum dry_arrow_table table,
                 const struct dry_memory *given, struct ArrowArrayStream *stream,
                 struct dry_error *err)
{
    if ((unsigned)table >= DRY_ARROW_TABLE_COUNT)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "table %d, expected 0 to %d", (int)table,
                         DRY_ARROW_TABLE_COUNT - 1);
    struct dry_memory memory = dryi_memory_or_default(given);
    struct stream_hold *hold = dryi_memory_zalloc(&memory, 1, sizeof *hold);
    if (!hold)
        return dryi_fail_memory(err, "a table");
    *hold = (struct stream_hold){.memory = memory, .table = table};
    struct ArrowArrayStream made = {get_schema, get_next, get_last_error, release_stream,
                                    hold};
    if (!make_batch(&hold->batch, trace, table, &memory)) {
        made.release(&made);
        return dryi_fail_memory(err, "a table");
    }
    *stream = made;
    return DRY_OK;
}
