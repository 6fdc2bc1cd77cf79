/* SPDX-License-Identifier: Apache-2.0 */

/* Columns are filled one at a time, by one loop each. Cost: O(rows), stacks O(frames). */
#include "trace/arrow/arrow_fill.h"

#include <string.h>

#include "base/assert.h"
#include "trace/arrow/arrow_hold.h"

enum { BITS, VALUES }; /* buffer numbers; lists have offsets in place of values */

static size_t
get_width(const char *format)
{
    switch (*format) {
    case 'C':
        return 1;
    case 'i':
    case 'I':
        return 4;
    default:
        DRYI_ASSERT(*format == 'l' || *format == 'L');
        return 8;
    }
}

/* Copy one field of `count` structs. A loop per known width compiles to single moves. */
static void
gather(void *to, const void *field, size_t stride, size_t width, size_t count)
{
    unsigned char *out = to;
    const unsigned char *in = field;
    if (width == 8)
        for (size_t i = 0; i < count; i++)
            memcpy(out + i * 8, in + i * stride, 8);
    else if (width == 4)
        for (size_t i = 0; i < count; i++)
            memcpy(out + i * 4, in + i * stride, 4);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = in[i * stride];
}

/* Copy a column of the events; the pointer to it is at `offset` in the view. */
static void
copy_column(void *to, const struct dry_trace_view *v, size_t offset, size_t width)
{
    const void *column;
    memcpy(&column, (const char *)v + offset, sizeof column);
    if (v->event_count)
        memcpy(to, column, v->event_count * width);
}

static void
fill_lanes(uint64_t *to, const struct dry_trace_view *v, size_t offset,
           const struct dryi_arrow_rows *rows)
{
    const struct dry_trace_segment *segments = rows->first;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t lane = segments ? segments[i].lane : v->lane[i];
        memcpy(&to[i], (const char *)&v->lanes[lane] + offset, sizeof *to);
    }
}

static void
fill_notes(uint32_t *to, const struct dry_trace *trace, size_t offset)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    for (size_t i = 0; i < v->event_count; i++)
        memcpy(&to[i], (const char *)dry_trace_note(trace, v->note[i]) + offset,
               sizeof *to);
}

static void
fill_event_devices(int32_t *to, const struct dry_trace_view *v)
{
    for (size_t d = 0; d < v->device_count; d++)
        for (size_t i = 0; i < v->devices[d].event_count; i++)
            to[v->devices[d].first_event + i] = v->devices[d].device;
}

static void
fill_block_segments(uint32_t *to, const struct dry_trace_view *v)
{
    memset(to, 0xff, v->block_count * sizeof *to); /* DRY_NONE: not in a segment */
    for (size_t s = 0; s < v->segment_count; s++)
        for (size_t i = 0; i < v->segments[s].block_count; i++)
            to[v->segments[s].first_block + i] = (uint32_t)s;
}

static void
fill_block_devices(int32_t *to, const struct dry_trace_view *v)
{
    for (size_t s = 0; s < v->segment_count; s++)
        for (size_t i = 0; i < v->segments[s].block_count; i++)
            to[v->segments[s].first_block + i] = v->segments[s].device;
}

static void
fill_values(void *to, const struct dry_trace *trace, const struct dryi_arrow_rows *rows,
            const struct dryi_arrow_column *column)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    size_t width = get_width(column->format);
    switch (column->from) {
    case DRYI_ARROW_FROM_VIEW:
        copy_column(to, v, column->offset, width);
        break;
    case DRYI_ARROW_FROM_ROW:
        if (rows->count)
            gather(to, (const char *)rows->first + column->offset, rows->stride, width,
                   rows->count);
        break;
    case DRYI_ARROW_FROM_LANE:
        fill_lanes(to, v, column->offset, rows);
        break;
    case DRYI_ARROW_FROM_NOTE:
        fill_notes(to, trace, column->offset);
        break;
    case DRYI_ARROW_EVENT_DEVICE:
        fill_event_devices(to, v);
        break;
    case DRYI_ARROW_BLOCK_SEGMENT:
        fill_block_segments(to, v);
        break;
    case DRYI_ARROW_BLOCK_DEVICE:
        fill_block_devices(to, v);
        break;
    case DRYI_ARROW_STACK_FRAMES: /* dryi_arrow_fill() handles these itself */
        break;
    }
}

static void
set_bit(uint8_t *bits, size_t i)
{
    bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << i % 8);
}

/* Make the bits of a bool field: Arrow has a bit per value, the trace a byte. */
static bool
fill_bools(struct ArrowArray *array, const struct dryi_arrow_rows *rows, size_t offset)
{
    uint8_t *bits = dryi_arrow_array_take(array, VALUES, (rows->count + 7) / 8, 1);
    if (!bits)
        return false;
    const bool *flag = rows->first; /* NULL if there are no rows */
    for (size_t i = 0; i < rows->count; i++)
        if (flag[i * rows->stride + offset])
            set_bit(bits, i);
    return true;
}

/* Make the validity bits: 0 for DRY_NONE. A column without nulls needs no such buffer. */
static bool
mark_present(struct ArrowArray *array, const uint32_t *values, size_t count)
{
    size_t absent = 0;
    for (size_t i = 0; i < count; i++)
        absent += values[i] == DRY_NONE;
    array->null_count = (int64_t)absent;
    if (absent == 0)
        return true;
    uint8_t *bits = dryi_arrow_array_take(array, BITS, (count + 7) / 8, 1);
    if (!bits)
        return false;
    for (size_t i = 0; i < count; i++)
        if (values[i] != DRY_NONE)
            set_bit(bits, i);
    return true;
}

static int64_t
count_frames(const struct dry_trace *trace, size_t stack_count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < stack_count; i++) {
        size_t length;
        dry_trace_stack(trace, (uint32_t)i, &length);
        sum += (int64_t)length;
    }
    return sum;
}

/* Make a list of frames for each stack. */
static bool
fill_stacks(struct ArrowArray *array, const struct dry_trace *trace, size_t count,
            const struct dry_memory *memory)
{
    int64_t at = 0, *offsets = dryi_arrow_array_take(array, VALUES, count + 1, sizeof at);
    struct ArrowArray *items = dryi_arrow_array_add(array);
    uint64_t frame_count = (uint64_t)count_frames(trace, count);
    if (!offsets || !dryi_arrow_array_begin(items, frame_count, 2, memory))
        return false;
    uint32_t *frames = dryi_arrow_array_take(items, VALUES, frame_count, sizeof *frames);
    if (!frames)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const uint32_t *stack = dry_trace_stack(trace, (uint32_t)i, &length);
        if (length)
            memcpy(frames + at, stack, length * sizeof *frames);
        at += (int64_t)length;
        offsets[i + 1] = at;
    }
    return true;
}

bool
dryi_arrow_fill(struct ArrowArray *array, const struct dry_trace *trace,
                enum dry_arrow_table table, const struct dryi_arrow_column *column,
                const struct dry_memory *memory)
{
    struct dryi_arrow_rows rows = dryi_arrow_table_rows(dry_trace_get_view(trace), table);
    if (!dryi_arrow_array_begin(array, rows.count, 2, memory))
        return false;
    if (column->from == DRYI_ARROW_STACK_FRAMES)
        return fill_stacks(array, trace, rows.count, memory);
    if (*column->format == 'b')
        return fill_bools(array, &rows, column->offset);
    void *to =
        dryi_arrow_array_take(array, VALUES, rows.count, get_width(column->format));
    if (!to)
        return false;
    fill_values(to, trace, &rows, column);
    return !column->is_nullable || mark_present(array, to, rows.count);
}
