/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finish a trace: order its segments, group them by device, free the memory that only
 * building needed.
 *
 * Segments are sorted by device and keep their order within one. Devices are sorted the
 * same way, so that each owns one range of segments. The device number is compared as
 * unsigned, which puts the host (-1) last. A stable radix sort keeps the cost O(n) even
 * for a hostile file. Most files are in order already and cost one comparison per
 * segment.
 */
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"
#include "trace/model/trace.h"

static bool
are_segments_ordered(const struct dry_trace *t)
{
    for (size_t i = 1; i < t->view.segment_count; i++) {
        if ((uint32_t)t->segments[i - 1].device > (uint32_t)t->segments[i].device)
            return false;
    }
    return true;
}

static bool
are_devices_ordered(const struct dry_trace *t)
{
    for (size_t i = 1; i < t->view.device_count; i++) {
        if ((uint32_t)t->devices[i - 1].device > (uint32_t)t->devices[i].device)
            return false;
    }
    return true;
}

static void
order_segments(struct dry_trace *t, struct dryi_sort_item *ranks,
               struct dry_trace_segment *ordered)
{
    size_t count = t->view.segment_count;
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = (struct dryi_sort_item){(uint32_t)t->segments[i].device, i};
    dryi_sort_items(ranks, ranks + count, count);
    for (size_t i = 0; i < count; i++)
        ordered[i] = t->segments[ranks[i].value];
    memcpy(t->segments, ordered, count * sizeof *ordered);
}

static void
order_devices(struct dry_trace *t, struct dryi_sort_item *ranks,
              struct dry_trace_device *ordered)
{
    size_t count = t->view.device_count;
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = (struct dryi_sort_item){(uint32_t)t->devices[i].device, i};
    dryi_sort_items(ranks, ranks + count, count);
    for (size_t i = 0; i < count; i++)
        ordered[i] = t->devices[ranks[i].value];
    memcpy(t->devices, ordered, count * sizeof *ordered);
}

static bool
order_rows(struct dry_trace *t)
{
    const struct dry_memory *m = &t->memory;
    bool segments = !are_segments_ordered(t), devices = !are_devices_ordered(t);
    if (!segments && !devices)
        return true;
    size_t count = t->view.segment_count > t->view.device_count ? t->view.segment_count
                                                                : t->view.device_count;
    size_t row_bytes = sizeof *t->segments > sizeof *t->devices ? sizeof *t->segments
                                                                : sizeof *t->devices;
    struct dryi_sort_item *ranks = dryi_memory_zalloc(m, count, 2 * sizeof *ranks);
    void *ordered = ranks ? dryi_memory_zalloc(m, count, row_bytes) : NULL;
    if (ordered && segments)
        order_segments(t, ranks, ordered);
    if (ordered && devices)
        order_devices(t, ranks, ordered);
    dryi_memory_free(m, ordered, count, row_bytes);
    dryi_memory_free(m, ranks, count, 2 * sizeof *ranks);
    return ordered != NULL;
}

/* Count the devices of the sorted segments and events: an upper bound of the merge. */
static size_t
count_devices(const struct dry_trace *t)
{
    size_t groups = 0;
    for (size_t i = 0; i < t->view.segment_count; i++)
        groups += i == 0 || t->segments[i].device != t->segments[i - 1].device;
    return t->view.device_count + groups; /* a device in both counts twice */
}

/* Return how many segments from `first` on belong to this device. */
static size_t
count_group(const struct dry_trace *t, size_t first, int32_t device)
{
    size_t end = first;
    while (end < t->view.segment_count && t->segments[end].device == device)
        end++;
    return end - first;
}

/* Merge the devices that have events with those that have segments; both are sorted. */
static size_t
merge_devices(const struct dry_trace *t, struct dry_trace_device *merged)
{
    size_t count = 0, device = 0, segment = 0;
    while (device < t->view.device_count || segment < t->view.segment_count) {
        struct dry_trace_device *to = &merged[count++];
        bool has_events =
            device < t->view.device_count && (segment == t->view.segment_count ||
                                              (uint32_t)t->devices[device].device <=
                                                  (uint32_t)t->segments[segment].device);
        if (has_events)
            *to = t->devices[device++];
        else
            *to = (struct dry_trace_device){.device = t->segments[segment].device};
        to->first_segment = segment;
        to->segment_count = count_group(t, segment, to->device);
        segment += to->segment_count;
    }
    return count;
}

enum dry_status
dryi_trace_group(struct dry_trace *t, struct dry_error *err)
{
    if (!order_rows(t))
        return dryi_budget_fail(&t->budget, "the order of the segments", err);
    for (size_t i = 1; i < t->view.device_count; i++) {
        if (t->devices[i - 1].device == t->devices[i].device)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "device %d was begun twice",
                             t->devices[i].device);
    }
    size_t capacity = count_devices(t);
    if (capacity == 0)
        return DRY_OK;
    struct dry_trace_device *merged =
        dryi_memory_zalloc(&t->memory, capacity, sizeof *merged);
    if (!merged)
        return dryi_budget_fail(&t->budget, "the devices", err);
    size_t count = merge_devices(t, merged);
    DRYI_ASSERT(count <= capacity);
    dryi_memory_free(&t->memory, t->devices, t->device_capacity, sizeof *t->devices);
    t->devices = merged;
    t->device_capacity = capacity;
    t->view.device_count = count;
    return DRY_OK;
}

/* Copy a table's entries into an array that callers index: the table pads them. */
static void *
flatten(const struct dry_memory *m, const struct dryi_intern *table, size_t row_bytes)
{
    char *rows = dryi_memory_zalloc(m, table->count, row_bytes);
    for (uint32_t i = 0; rows && i < table->count; i++)
        memcpy(rows + i * row_bytes, dryi_intern_get(table, i, NULL), row_bytes);
    return rows;
}

static bool
flatten_tables(struct dry_trace *t)
{
    struct dry_trace_view *v = &t->view;
    t->lane_rows = flatten(&t->memory, &t->lanes, sizeof *t->lane_rows);
    if (!t->lane_rows && t->lanes.count)
        return false;
    v->lane_count = t->lanes.count;
    t->frame_rows = flatten(&t->memory, &t->frames, sizeof *t->frame_rows);
    if (!t->frame_rows && t->frames.count)
        return false;
    v->frame_count = t->frames.count;
    dryi_intern_finish(&t->lanes);
    dryi_intern_finish(&t->frames);
    dryi_intern_finish(&t->unknowns);
    dryi_intern_seal(&t->strings);
    dryi_intern_seal(&t->stacks);
    dryi_intern_seal(&t->notes);
    return true;
}

/* Shrink an array to its length. If the resize fails, the larger array stays. */
static void
shrink(const struct dry_memory *m, void *array, size_t *capacity, size_t count,
       size_t element_bytes)
{
    void *old;
    memcpy(&old, array, sizeof old);
    if (count == *capacity || count == 0)
        return;
    void *fitted =
        m->resize(m->self, old, *capacity * element_bytes, count * element_bytes);
    if (!fitted)
        return;
    memcpy(array, &fitted, sizeof fitted);
    *capacity = count;
}

static void
shrink_events(struct dryi_events *e, const struct dry_memory *m)
{
    size_t n = e->count;
    shrink(m, &e->action, &e->action_capacity, n, sizeof *e->action);
    shrink(m, &e->addr, &e->addr_capacity, n, sizeof *e->addr);
    shrink(m, &e->size, &e->size_capacity, n, sizeof *e->size);
    shrink(m, &e->time_us, &e->time_capacity, n, sizeof *e->time_us);
    shrink(m, &e->lane, &e->lane_capacity, n, sizeof *e->lane);
    shrink(m, &e->stack, &e->stack_capacity, n, sizeof *e->stack);
    shrink(m, &e->note, &e->note_capacity, n, sizeof *e->note);
}

static void
fill_view(struct dry_trace *t)
{
    struct dry_trace_view *v = &t->view;
    const struct dryi_events *e = &t->events;
    v->event_count = e->count;
    v->action = e->action;
    v->addr = e->addr;
    v->size = e->size;
    v->time_us = e->time_us;
    v->lane = e->lane;
    v->stack = e->stack;
    v->note = e->note;
    v->devices = t->devices;
    v->segments = t->segments;
    v->blocks = t->blocks;
    v->annotations = t->annotations;
    v->unknowns = t->unknown_rows;
    v->lanes = t->lane_rows;
    v->frames = t->frame_rows;
    v->stack_count = t->stacks.count;
    v->string_count = t->strings.count;
    v->note_count = t->notes.count;
}

enum dry_status
dry_trace_builder_finish(struct dry_trace_builder *builder, struct dry_trace **trace,
                         struct dry_error *err)
{
    struct dry_trace *t = builder->trace;
    enum dry_status status = dryi_builder_check(builder, err);
    if (status == DRY_OK)
        status = dryi_trace_group(t, err);
    if (status == DRY_OK && !flatten_tables(t))
        status = dryi_budget_fail(&t->budget, "the lanes and frames", err);
    if (status != DRY_OK) {
        dry_trace_builder_destroy(builder);
        return status;
    }
    shrink_events(&t->events, &t->memory);
    shrink(&t->memory, &t->blocks, &t->block_capacity, t->view.block_count,
           sizeof *t->blocks);
    fill_view(t);
    dryi_memory_free(&t->parent, builder, 1, sizeof *builder);
    *trace = t;
    return DRY_OK;
}
