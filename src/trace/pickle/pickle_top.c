/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turn the final value of a pickle into a trace.
 *
 *     {segments, device_traces[, allocator_settings, external_annotations,
 *      host_segments, host_traces]}          torch.cuda.memory._snapshot()
 *     {segments, traces}                     older and other writers
 *     [segment, ...]                         memory_snapshot()
 *
 * Events are already in the columns, in the order of the file. The lists here tell which
 * rows belong to which device; at the end, every row must belong to one. A row that was
 * written and then dropped, or put where no snapshot has such rows, is an error: it must
 * not be lost silently.
 */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_extra.h"
#include "trace/pickle/pickle_object.h"
#include "trace/pickle/pickle_record.h"

static const struct dryi_owner snapshot = {"the snapshot", DRYI_NO_ROW,
                                           DRY_UNKNOWN_TOP_KEY};
static const struct dryi_owner new_setting = {"allocator_settings", DRYI_NO_ROW,
                                              DRY_UNKNOWN_TOP_KEY};
static const struct dryi_owner old_setting = {"allocator_settings", DRYI_NO_ROW,
                                              DRY_NONE};

static enum dry_status
take_device_events(struct dryi_pickle_walk *w, enum dryi_key key, uint64_t value,
                   int32_t device)
{
    struct dryi_rows rows;
    enum dry_status status =
        dryi_field_take_rows(w, &snapshot, key, value, DRYI_VALUE_EVENT, &rows);
    if (status != DRY_OK)
        return status;
    w->covered.events += rows.count;
    if (dryi_builder_add_device(w->builder, device, rows.first, rows.count) != DRY_OK)
        return dryi_builder_check(w->builder, w->err);
    return DRY_OK;
}

/* Take a list with the events of each device. A plain list of events is device 0's. */
static enum dry_status
take_traces(struct dryi_pickle_walk *w, enum dryi_key key, uint64_t value)
{
    const uint64_t *items;
    size_t count;
    w->trace->view.has_traces = true;
    if (dryi_object_is_empty_list(w, value))
        return DRY_OK;
    if (!dryi_value_is(value, DRYI_VALUE_LIST))
        return dryi_field_refuse(w, &snapshot, key, value, "a list");
    if (!dryi_object_items(w, value, DRYI_VALUE_LIST, &items, &count))
        return take_device_events(w, key, value, 0);
    enum dry_status status = DRY_OK;
    for (size_t i = 0; status == DRY_OK && i < count; i++)
        status = take_device_events(w, key, items[i], (int32_t)i);
    return status;
}

/* Take a list of host events, or a list that holds only that list. */
static enum dry_status
take_host_traces(struct dryi_pickle_walk *w, uint64_t value)
{
    const uint64_t *items;
    size_t count;
    w->trace->view.has_host = true;
    if (dryi_object_items(w, value, DRYI_VALUE_LIST, &items, &count) && count == 1)
        value = items[0];
    return take_device_events(w, DRYI_KEY_HOST_TRACES, value, DRY_DEVICE_HOST);
}

static enum dry_status
take_segments(struct dryi_pickle_walk *w, enum dryi_key key, uint64_t value, bool is_host)
{
    struct dryi_rows rows;
    enum dry_status status =
        dryi_field_take_rows(w, &snapshot, key, value, DRYI_VALUE_SEGMENT, &rows);
    if (status != DRY_OK)
        return status;
    w->covered.segments += rows.count;
    struct dry_trace_segment *segments = w->trace->segments;
    for (size_t i = rows.first; i < rows.first + rows.count; i++) {
        if (is_host)
            segments[i].device = DRY_DEVICE_HOST;
        else if (segments[i].device == DRY_DEVICE_HOST)
            return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                                "segment %zu: `device` is -1 outside host_segments", i);
    }
    return DRY_OK;
}

static enum dry_status
take_annotations(struct dryi_pickle_walk *w, uint64_t value)
{
    struct dryi_rows rows;
    enum dry_status status = dryi_field_take_rows(
        w, &snapshot, DRYI_KEY_EXTERNAL_ANNOTATIONS, value, DRYI_VALUE_ANNOTATION, &rows);
    w->covered.annotations += rows.count;
    w->trace->view.has_annotations = true;
    return status;
}

/* Return the power of two that these decimal digits spell, below 2^16; -1 for others. */
static int
power_of_two(const struct dryi_pickle_walk *w, uint64_t key)
{
    size_t length;
    if (!dryi_value_is(key, DRYI_VALUE_STRING))
        return -1;
    const char *text =
        dryi_intern_get(&w->trace->strings, (uint32_t)dryi_value_payload(key), &length);
    unsigned number = 0;
    if (length == 0 || length > 5 || text[0] == '0')
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = number * 10 + (unsigned)(text[i] - '0');
    }
    return (number & (number - 1)) == 0 && number < 1u << 16 ? __builtin_ctz(number) : -1;
}

/* Take {"1": v, "2": v, ..., "32768": v}. Returns false if a key is missing or added. */
static bool
take_roundup(const struct dryi_pickle_walk *w, uint64_t value,
             struct dry_trace_settings *to)
{
    const uint64_t *items;
    size_t count;
    unsigned seen = 0;
    if (!dryi_object_items(w, value, DRYI_VALUE_DICT, &items, &count) || count != 32)
        return false;
    uint64_t divisions[16];
    for (size_t i = 0; i < count; i += 2) {
        int power = power_of_two(w, items[i]);
        if (power < 0 || !dryi_field_int(w, items[i + 1], &divisions[power]))
            return false;
        seen |= 1u << power;
    }
    if (seen != 0xffff)
        return false;
    memcpy(to->roundup_power2_divisions, divisions, sizeof divisions);
    to->roundup_known = true;
    return true;
}

/* Take a known setting. False if its value has another type: it is kept as it is. */
static bool
take_setting(const struct dryi_pickle_walk *w, uint64_t key, uint64_t value,
             struct dry_trace_settings *to)
{
    uint64_t bits;
    uint64_t payload = dryi_value_payload(value);
    enum dryi_value_kind kind = dryi_value_kind(value);
    switch ((int)dryi_value_key(key)) {
    case DRYI_KEY_CONF:
        to->conf = kind == DRYI_VALUE_STRING ? (uint32_t)payload : to->conf;
        return kind == DRYI_VALUE_STRING;
    case DRYI_KEY_MAX_SPLIT_SIZE:
        if (!dryi_field_int(w, value, &bits))
            return false;
        to->max_split_size = (int64_t)bits;
        return true;
    case DRYI_KEY_GC_THRESHOLD:
        if (kind == DRYI_VALUE_FLOAT)
            memcpy(&to->garbage_collection_threshold, &w->wides[payload],
                   sizeof to->garbage_collection_threshold);
        return kind == DRYI_VALUE_FLOAT;
    case DRYI_KEY_EXPANDABLE_SEGMENTS:
        to->expandable_segments = kind == DRYI_VALUE_BOOL && payload;
        return kind == DRYI_VALUE_BOOL;
    case DRYI_KEY_ROUNDUP:
        return take_roundup(w, value, to);
    default:
        return false;
    }
}

/*
 * Return true for settings that are kept but not counted as unknown. They do not decide
 * where memory is placed, or Drystone's pool writes them.
 */
static bool
is_old_setting(const struct dryi_pickle_walk *w, uint64_t key)
{
    static const char *const names[] = {
        "pinned_num_register_threads",
        "release_lock_on_cudamalloc",
        "pinned_use_cuda_host_register",
        "graph_capture_record_stream_reuse",
        "max_round_threshold",
        "max_cached_size",
        "trace_alloc_overflowed",
        "trace_alloc_max_entries",
        "drystone_placement",
        "drystone_conf",
    };
    if (!dryi_value_is(key, DRYI_VALUE_STRING))
        return false;
    const char *text =
        dryi_intern_get(&w->trace->strings, (uint32_t)dryi_value_payload(key), NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0)
            return true;
    }
    return false;
}

static enum dry_status
take_settings(struct dryi_pickle_walk *w, uint64_t value)
{
    struct dry_trace_settings settings = {
        .known = true,
        .conf = DRY_NONE,
        .extra = DRY_NONE,
        .max_split_size = -1,
    };
    const uint64_t *items;
    size_t count;
    if (!dryi_object_items(w, value, DRYI_VALUE_DICT, &items, &count))
        return dryi_field_refuse(w, &snapshot, DRYI_KEY_ALLOCATOR_SETTINGS, value,
                                 "a dict");
    enum dry_status status = DRY_OK;
    dryi_extra_begin(w);
    for (size_t i = 0; status == DRY_OK && i < count; i += 2) {
        if (!take_setting(w, items[i], items[i + 1], &settings))
            status = dryi_extra_add(
                w, is_old_setting(w, items[i]) ? &old_setting : &new_setting, items[i],
                items[i + 1]);
    }
    if (status == DRY_OK)
        status = dryi_extra_end(w, &settings.extra);
    w->trace->view.settings = settings;
    w->trace->view.has_settings = true;
    return status;
}

/* Take a known key of the snapshot. Returns DRY_END for other keys. */
static enum dry_status
take_key(struct dryi_pickle_walk *w, uint64_t key, uint64_t value)
{
    enum dryi_key known = dryi_value_key(key);
    switch ((int)known) {
    case DRYI_KEY_SEGMENTS:
        return take_segments(w, known, value, false);
    case DRYI_KEY_DEVICE_TRACES:
    case DRYI_KEY_TRACES:
        return take_traces(w, known, value);
    case DRYI_KEY_ALLOCATOR_SETTINGS:
        return take_settings(w, value);
    case DRYI_KEY_EXTERNAL_ANNOTATIONS:
        return take_annotations(w, value);
    case DRYI_KEY_HOST_SEGMENTS:
        w->trace->view.has_host = true;
        return take_segments(w, known, value, true);
    case DRYI_KEY_HOST_TRACES:
        return take_host_traces(w, value);
    default:
        return DRY_END;
    }
}

static bool
is_known(enum dryi_key key)
{
    return key >= DRYI_KEY_SEGMENTS && key <= DRYI_KEY_HOST_TRACES;
}

/* Refuse keys that occur twice; `traces` and `device_traces` count as one. */
static enum dry_status
check_keys(struct dryi_pickle_walk *w, const uint64_t *items, size_t count)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < count; i += 2) {
        enum dryi_key key = dryi_value_key(items[i]);
        if (!is_known(key))
            continue;
        uint64_t bit = UINT64_C(1)
                       << (key == DRYI_KEY_TRACES ? DRYI_KEY_DEVICE_TRACES : key);
        if (seen & bit)
            return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                                "the snapshot: `%s` stands twice", dryi_key_text(key));
        seen |= bit;
    }
    return DRY_OK;
}

/* Take known keys first: settings collect their own unknown keys in the same buffer. */
static enum dry_status
take_pairs(struct dryi_pickle_walk *w, const uint64_t *items, size_t count)
{
    enum dry_status status = check_keys(w, items, count);
    for (size_t i = 0; status >= DRY_OK && i < count; i += 2)
        status = take_key(w, items[i], items[i + 1]);
    if (status < DRY_OK)
        return status;
    status = DRY_OK;
    dryi_extra_begin(w);
    for (size_t i = 0; status == DRY_OK && i < count; i += 2) {
        if (!is_known(dryi_value_key(items[i])))
            status = dryi_extra_add(w, &snapshot, items[i], items[i + 1]);
    }
    return status == DRY_OK ? dryi_extra_end(w, &w->trace->view.top_extra) : status;
}

static enum dry_status
refuse_top(struct dryi_pickle_walk *w, uint64_t value)
{
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "the file holds %s%s, expected a memory snapshot: a dict with "
                        "`segments` and `device_traces`, or a list of segments",
                        dryi_value_noun(value),
                        dryi_value_is(value, DRYI_VALUE_DICT) ? " with other keys" : "");
}

static bool
is_snapshot(const uint64_t *items, size_t count)
{
    for (size_t i = 0; i < count; i += 2) {
        enum dryi_key key = dryi_value_key(items[i]);
        if (key == DRYI_KEY_SEGMENTS || key == DRYI_KEY_DEVICE_TRACES)
            return true;
    }
    return false;
}

static enum dry_status
check_row_count(struct dryi_pickle_walk *w, const char *noun, size_t covered,
                size_t count, const char *place)
{
    if (covered == count)
        return DRY_OK;
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "%zu of %zu %s stand outside %s", count - covered, count, noun,
                        place);
}

static enum dry_status
check_rows(struct dryi_pickle_walk *w)
{
    const struct dryi_covered *c = &w->covered;
    const struct dry_trace_view *v = &w->trace->view;
    enum dry_status status =
        check_row_count(w, "events", c->events, w->trace->events.count, "device_traces");
    if (status == DRY_OK)
        status =
            check_row_count(w, "segments", c->segments, v->segment_count, "segments");
    if (status == DRY_OK)
        status = check_row_count(w, "blocks", c->blocks, v->block_count, "segments");
    if (status == DRY_OK)
        status = check_row_count(w, "annotations", c->annotations, v->annotation_count,
                                 "external_annotations");
    return status;
}

enum dry_status
dryi_top_take(struct dryi_pickle_walk *w, uint64_t value)
{
    const uint64_t *items;
    size_t count = 0;
    enum dry_status status;
    if (dryi_value_is(value, DRYI_VALUE_LIST) || dryi_object_is_empty_list(w, value)) {
        w->trace->view.is_bare_list = true;
        status = take_segments(w, DRYI_KEY_SEGMENTS, value, false);
    } else if (dryi_object_items(w, value, DRYI_VALUE_DICT, &items, &count) &&
               is_snapshot(items, count)) {
        status = take_pairs(w, items, count);
    } else {
        return refuse_top(w, value);
    }
    return status == DRY_OK ? check_rows(w) : status;
}
