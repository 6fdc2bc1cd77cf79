/* SPDX-License-Identifier: Apache-2.0 */
/* The tables as data: a row per column, whose fields arrow_table.h explains. */
#include "trace/arrow/arrow_table.h"

#include "base/assert.h"

#if SIZE_MAX > UINT32_MAX
#define SIZE "L"
#else
#define SIZE "I"
#endif

#define ROW(type, field)                                                                 \
    DRYI_ARROW_FROM_ROW, DRYI_ARROW_NO_TEXTS, offsetof(struct type, field)
#define TEXT(type, field)                                                                \
    DRYI_ARROW_FROM_ROW, DRYI_ARROW_STRINGS, offsetof(struct type, field)
#define VIEW(field)                                                                      \
    DRYI_ARROW_FROM_VIEW, DRYI_ARROW_NO_TEXTS, offsetof(struct dry_trace_view, field)
#define LANE(field)                                                                      \
    DRYI_ARROW_FROM_LANE, DRYI_ARROW_NO_TEXTS, offsetof(struct dry_lane, field)
#define NOTE(field)                                                                      \
    DRYI_ARROW_FROM_NOTE, DRYI_ARROW_STRINGS, offsetof(struct dry_note, field)
#define MADE(how) DRYI_ARROW_##how, DRYI_ARROW_NO_TEXTS, 0

static const struct dryi_arrow_column events[] = {
    {"action", "C", DRYI_ARROW_FROM_VIEW, DRYI_ARROW_ACTIONS,
     offsetof(struct dry_trace_view, action), false},
    {"device", "i", MADE(EVENT_DEVICE), false},
    {"address", "L", VIEW(addr), false},
    {"size", "L", VIEW(size), false},
    {"time_us", "l", VIEW(time_us), false},
    {"stream", "L", LANE(stream), false},
    {"pool_a", "L", LANE(pool_a), false},
    {"pool_b", "L", LANE(pool_b), false},
    {"stack", "I", VIEW(stack), true},
    {"user_metadata", "I", NOTE(user_metadata), true},
    {"compile_context", "I", NOTE(compile_context), true},
};

static const struct dryi_arrow_column segments[] = {
    {"device", "i", ROW(dry_trace_segment, device), false},
    {"address", "L", ROW(dry_trace_segment, address), false},
    {"total_size", "L", ROW(dry_trace_segment, total_size), false},
    {"allocated_size", "L", ROW(dry_trace_segment, allocated_size), false},
    {"active_size", "L", ROW(dry_trace_segment, active_size), false},
    {"requested_size", "L", ROW(dry_trace_segment, requested_size), false},
    {"stream", "L", LANE(stream), false},
    {"pool_a", "L", LANE(pool_a), false},
    {"pool_b", "L", LANE(pool_b), false},
    {"is_large", "b", ROW(dry_trace_segment, is_large), false},
    {"is_expandable", "b", ROW(dry_trace_segment, is_expandable), false},
    {"stack", "I", ROW(dry_trace_segment, stack), true},
    {"first_block", SIZE, ROW(dry_trace_segment, first_block), false},
    {"block_count", SIZE, ROW(dry_trace_segment, block_count), false},
};

static const struct dryi_arrow_column blocks[] = {
    {"segment", "I", MADE(BLOCK_SEGMENT), true},
    {"device", "i", MADE(BLOCK_DEVICE), false},
    {"address", "L", ROW(dry_trace_block, address), false},
    {"size", "L", ROW(dry_trace_block, size), false},
    {"requested_size", "L", ROW(dry_trace_block, requested_size), false},
    {"state", "I", DRYI_ARROW_FROM_ROW, DRYI_ARROW_STATES,
     offsetof(struct dry_trace_block, state), false},
    {"stack", "I", ROW(dry_trace_block, stack), true},
};

static const struct dryi_arrow_column devices[] = {
    {"device", "i", ROW(dry_trace_device, device), false},
    {"first_event", SIZE, ROW(dry_trace_device, first_event), false},
    {"event_count", SIZE, ROW(dry_trace_device, event_count), false},
    {"first_segment", SIZE, ROW(dry_trace_device, first_segment), false},
    {"segment_count", SIZE, ROW(dry_trace_device, segment_count), false},
};

static const struct dryi_arrow_column annotations[] = {
    {"device", "i", ROW(dry_trace_annotation, device), false},
    {"time_us", "l", ROW(dry_trace_annotation, time_us), false},
    {"name", "I", TEXT(dry_trace_annotation, name), true},
    {"stage", "I", TEXT(dry_trace_annotation, stage), true},
};

static const struct dryi_arrow_column stacks[] = {
    {"frames", "+L", MADE(STACK_FRAMES), false},
};

static const struct dryi_arrow_column frames[] = {
    {"name", "I", TEXT(dry_frame, name), true},
    {"file", "I", TEXT(dry_frame, file), true},
    {"line", "I", ROW(dry_frame, line), false},
};

static const struct {
    const char *name;
    const struct dryi_arrow_column *columns;
    size_t count;
} tables[] = {
    [DRY_ARROW_EVENTS] = {"events", events, sizeof events / sizeof *events},
    [DRY_ARROW_SEGMENTS] = {"segments", segments, sizeof segments / sizeof *segments},
    [DRY_ARROW_BLOCKS] = {"blocks", blocks, sizeof blocks / sizeof *blocks},
    [DRY_ARROW_DEVICES] = {"devices", devices, sizeof devices / sizeof *devices},
    [DRY_ARROW_ANNOTATIONS] = {"annotations", annotations,
                               sizeof annotations / sizeof *annotations},
    [DRY_ARROW_STACKS] = {"stacks", stacks, sizeof stacks / sizeof *stacks},
    [DRY_ARROW_FRAMES] = {"frames", frames, sizeof frames / sizeof *frames},
};
_Static_assert(sizeof tables / sizeof *tables == DRY_ARROW_TABLE_COUNT, "a table each");
_Static_assert(sizeof(enum dry_block_state) == 4, "the state is exported as 32 bits");

const char *
dry_arrow_table_name(enum dry_arrow_table table)
{
    return (unsigned)table < DRY_ARROW_TABLE_COUNT ? tables[table].name : "unknown table";
}

const struct dryi_arrow_column *
dryi_arrow_table_columns(enum dry_arrow_table table, size_t *count)
{
    DRYI_ASSERT((unsigned)table < DRY_ARROW_TABLE_COUNT);
    *count = tables[table].count;
    return tables[table].columns;
}

struct dryi_arrow_rows
dryi_arrow_table_rows(const struct dry_trace_view *v, enum dry_arrow_table table)
{
    switch (table) {
    case DRY_ARROW_EVENTS:
        return (struct dryi_arrow_rows){NULL, 0, v->event_count};
    case DRY_ARROW_SEGMENTS:
        return (struct dryi_arrow_rows){v->segments, sizeof *v->segments,
                                        v->segment_count};
    case DRY_ARROW_BLOCKS:
        return (struct dryi_arrow_rows){v->blocks, sizeof *v->blocks, v->block_count};
    case DRY_ARROW_DEVICES:
        return (struct dryi_arrow_rows){v->devices, sizeof *v->devices, v->device_count};
    case DRY_ARROW_ANNOTATIONS:
        return (struct dryi_arrow_rows){v->annotations, sizeof *v->annotations,
                                        v->annotation_count};
    case DRY_ARROW_STACKS:
        return (struct dryi_arrow_rows){NULL, 0, v->stack_count};
    case DRY_ARROW_FRAMES:
        return (struct dryi_arrow_rows){v->frames, sizeof *v->frames, v->frame_count};
    }
    return (struct dryi_arrow_rows){NULL, 0, 0};
}
