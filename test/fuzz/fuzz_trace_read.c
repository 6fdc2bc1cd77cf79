/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a trace, whatever the format, in little memory. What is read must hold
 * together: every number points into its table and every range into its columns. Its tables
 * can be exported. Given one byte at a time, the answer must be the same.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/arrow.h>
#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/same_trace.h"

#define MEMORY_BYTES_MAX (64u << 20)
#define STRING_BYTES_MAX (1u << 20)
/* One byte at a time is slow. */
#define SLOW_BYTES_MAX (64u << 10)

static void
require(int condition)
{
    if (!condition)
        abort();
}

static int
is_id(uint32_t id, uint32_t count)
{
    return id < count || id == DRY_NONE;
}

static void
check_events(const struct dry_trace *trace, const struct dry_trace_view *v)
{
    for (size_t i = 0; i < v->event_count; i++) {
        require(v->action[i] < DRY_ACTION_COUNT && v->lane[i] < v->lane_count);
        require(is_id(v->stack[i], v->stack_count) && is_id(v->note[i], v->note_count));
        const struct dry_note *note = dry_trace_note(trace, v->note[i]);
        require(is_id(note->extra, v->string_count));
        require((v->action[i] == DRY_ACTION_OTHER) == (note->action_name != DRY_NONE));
    }
    for (uint32_t i = 0; i < v->stack_count; i++) {
        size_t count;
        const uint32_t *frames = dry_trace_stack(trace, i, &count);
        for (size_t k = 0; k < count; k++)
            require(frames[k] < v->frame_count);
    }
    for (uint32_t i = 0; i < v->frame_count; i++)
        require(is_id(v->frames[i].name, v->string_count) &&
                is_id(v->frames[i].file, v->string_count) &&
                is_id(v->frames[i].extra, v->string_count));
}

static void
check_segments(const struct dry_trace_view *v)
{
    size_t block_count = 0;
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct dry_trace_segment *s = &v->segments[i];
        require(s->lane < v->lane_count && is_id(s->stack, v->stack_count));
        require(s->first_block <= v->block_count &&
                s->block_count <= v->block_count - s->first_block);
        block_count += s->block_count;
    }
    require(block_count == v->block_count);
    for (size_t i = 0; i < v->block_count; i++)
        require(is_id(v->blocks[i].stack, v->stack_count));
    for (size_t i = 0; i < v->annotation_count; i++)
        require(is_id(v->annotations[i].name, v->string_count));
}

static void
check_devices(const struct dry_trace_view *v)
{
    size_t event_count = 0, segment_count = 0;
    for (size_t i = 0; i < v->device_count; i++) {
        const struct dry_trace_device *d = &v->devices[i];
        require(i == 0 || (uint32_t)v->devices[i - 1].device < (uint32_t)d->device);
        require(d->first_event <= v->event_count && d->first_segment == segment_count);
        event_count += d->event_count;
        segment_count += d->segment_count;
        for (size_t k = 0; k < d->segment_count; k++)
            require(v->segments[d->first_segment + k].device == d->device);
    }
    require(event_count == v->event_count && segment_count == v->segment_count);
}

/* Check that each of a column's 32-bit codes has a text, or is a null. */
static void
check_codes(const struct ArrowArray *column)
{
    const uint32_t *codes = column->buffers[1];
    for (int64_t i = 0; i < column->length; i++)
        require(codes[i] < column->dictionary->length || codes[i] == DRY_NONE);
}

static void
check_tables(const struct dry_trace *trace)
{
    for (int table = 0; table < DRY_ARROW_TABLE_COUNT; table++) {
        struct ArrowArrayStream stream;
        struct ArrowArray rows;
        require(dry_arrow_export(trace, (enum dry_arrow_table)table, NULL, &stream,
                                 NULL) == DRY_OK);
        require(stream.get_next(&stream, &rows) == 0 && rows.release);
        for (int64_t i = 0; i < rows.n_children; i++) {
            require(rows.children[i]->length == rows.length);
            int is_action = table == DRY_ARROW_EVENTS && i == 0; /* 8-bit codes */
            if (rows.children[i]->dictionary && !is_action)
                check_codes(rows.children[i]);
        }
        rows.release(&rows);
        stream.release(&stream);
    }
}

static enum dry_status
read_bytes(const uint8_t *data, size_t size, size_t step, struct dry_trace **trace,
           struct dry_error *err)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, data, size);
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory_bytes_max = MEMORY_BYTES_MAX;
    options.string_bytes_max = STRING_BYTES_MAX;
    from.step = step;
    return dry_trace_read(&source, &options, trace, err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dry_trace *whole = NULL, *pieces = NULL;
    struct dry_error err = {0}, err_of_pieces = {0};
    enum dry_status status = read_bytes(data, size, 0, &whole, &err);
    if (status == DRY_OK) {
        const struct dry_trace_view *v = dry_trace_get_view(whole);
        check_events(whole, v);
        check_segments(v);
        check_devices(v);
        check_tables(whole);
    } else {
        require(err.status == status && err.text[0]);
        require(err.offset <= size || err.offset == DRY_NO_OFFSET);
    }
    if (size <= SLOW_BYTES_MAX) {
        require(read_bytes(data, size, 1, &pieces, &err_of_pieces) == status);
        require(status != DRY_OK || !same_trace(whole, pieces));
        require(status == DRY_OK || strcmp(err.text, err_of_pieces.text) == 0);
    }
    dry_trace_destroy(whole);
    dry_trace_destroy(pieces);
    return 0;
}
