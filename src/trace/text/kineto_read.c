/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The JSON is scanned token by token; only rows of memory events are kept, 56 bytes each. The
 * profiler writes events by thread, so the rows are sorted by time. Then each device is told
 * from its first event on:
 *
 *   1. A free without its allocation is of one from before the window: a LIVE event. What is
 *      allocated before the first event beyond those is one more LIVE event.
 *   2. Allocations and frees follow by time. An allocation at a live address ends the one
 *      before, whose free was lost. A free of nothing is passed over.
 *
 * Cost: O(bytes), and O(rows) for each device. Source: PyTorch's
 * torch/csrc/profiler/kineto_shim.cpp and collection.cpp.
 */
#include "trace/text/kineto_read.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"
#include "trace/model/live.h"
#include "trace/model/trace.h"
#include "trace/text/json_scan.h"

#define PEEKED_BYTES ((size_t)32 << 10)
#define EVENT_DEPTH 3u /* {"traceEvents": [{ */
#define DEVICES_MAX 64u
#define ROWS_MAX UINT32_MAX
#define OLDER_ADDRESS UINT64_MAX /* the id of what is older and was never freed */

enum field {
    NAME,
    CATEGORY,
    TIME,
    DURATION,
    ADDR,
    BYTES,
    ALLOCATED,
    RESERVED,
    DEVICE_ID,
    DEVICE_TYPE,
    NONE
};
#define NEEDED /* by a memory event */                                                   \
    (1u << TIME | 1u << ADDR | 1u << BYTES | 1u << ALLOCATED | 1u << RESERVED |          \
     1u << DEVICE_ID | 1u << DEVICE_TYPE)

static const struct {
    const char *key;
    bool is_argument; /* a key of the event's args */
} fields[NONE] = {
    [NAME] = {"name", false},
    [CATEGORY] = {"cat", false},
    [TIME] = {"ts", false},
    [DURATION] = {"dur", false},
    [ADDR] = {"Addr", true},
    [BYTES] = {"Bytes", true},
    [ALLOCATED] = {"Total Allocated", true},
    [RESERVED] = {"Total Reserved", true},
    [DEVICE_ID] = {"Device Id", true},
    [DEVICE_TYPE] = {"Device Type", true},
};

static const char step_name[] = "ProfilerStep#";

struct row {
    uint64_t addr, bytes, allocated;
    enum dry_action action;
    uint32_t device;
};

struct kineto {
    struct dryi_json_scan scan;
    struct dry_memory memory;
    struct dry_trace_builder *builder;
    struct dry_error *err;
    bool is_in_events, is_in_args;
    enum field field;       /* the key that was read, NONE if no value of it is wanted */
    bool is_memory, is_oom; /* the event's name says so */
    uint32_t step;          /* the name, if it is that of a step */
    bool is_range;          /* the category says that the program named it */
    uint32_t seen;          /* bit f: the event has field f */
    int64_t values[NONE];   /* time in nanoseconds */
    uint64_t cpu_count;     /* memory events of the CPU */
    uint64_t devices;       /* bit d: rows of device d */
    struct row *rows;
    size_t row_count, row_capacity;
    struct dryi_sort_item *order; /* key: time in nanoseconds */
    size_t order_capacity;
    struct dryi_sort_item *scratch;
    uint32_t lane;
};

enum dry_status
dryi_kineto_peek(struct dryi_input *in, bool *is_it, struct dry_error *err)
{
    static const char key[] = "\"traceEvents\"";
    enum dry_status status = dryi_input_fill(in, PEEKED_BYTES, err);
    const unsigned char *bytes = in->window + in->at;
    size_t unread = dryi_input_unread(in), i = 0;
    size_t count = unread < PEEKED_BYTES ? unread : PEEKED_BYTES;
    while (i < count && (bytes[i] == ' ' || bytes[i] == '\n' || bytes[i] == '\r'))
        i++;
    *is_it = status == DRY_OK && i < count && bytes[i] == '{' &&
             memmem(bytes + i, count - i, key, sizeof key - 1) != NULL;
    return status;
}

/* --- one event ------------------------------------------------------------------------- */

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Append a digit to *sum; another byte counts as 0. Returns false if the sum is too large. */
static bool
add_digit(uint64_t *sum, char c)
{
    uint64_t digit = is_digit(c) ? (uint64_t)(c - '0') : 0;
    return !__builtin_mul_overflow(*sum, 10, sum) &&
           !__builtin_add_overflow(*sum, digit, sum) && *sum <= INT64_MAX;
}

/* Read a number times 10^places. Further digits of its fraction are cut off. */
static bool
parse_number(const char *text, unsigned places, int64_t *value)
{
    bool is_negative = *text == '-', is_fine = is_digit(text[is_negative]);
    uint64_t sum = 0;
    for (text += is_negative; is_digit(*text); text++)
        is_fine = is_fine && add_digit(&sum, *text);
    text += *text == '.';
    for (; places > 0; places--) {
        is_fine = is_fine && add_digit(&sum, *text);
        text += is_digit(*text);
    }
    while (is_digit(*text))
        text++;
    *value = is_negative ? -(int64_t)sum : (int64_t)sum;
    return is_fine && *text == '\0';
}

/* A value that is no number is as good as none: the name that decides may come later. */
static void
take_literal(struct kineto *k)
{
    enum field f = k->field;
    k->field = NONE;
    if (f == NONE || f == NAME || f == CATEGORY)
        return;
    k->seen &= ~(1u << f);
    if (k->scan.length <= DRYI_JSON_WORD_BYTES &&
        parse_number(k->scan.word, f == TIME || f == DURATION ? 3 : 0, &k->values[f]))
        k->seen |= 1u << f;
}

static void
take_string(struct kineto *k)
{
    const char *word = k->scan.word;
    bool is_step = strncmp(word, step_name, sizeof step_name - 1) == 0;
    if (k->field == NAME) {
        k->is_memory = strcmp(word, "[memory]") == 0;
        k->is_oom = strcmp(word, "[OutOfMemory]") == 0;
        k->step =
            is_step ? dry_trace_add_string(k->builder, word, strlen(word)) : DRY_NONE;
    } else if (k->field == CATEGORY) {
        k->is_range = strcmp(word, "user_annotation") == 0; /* not the GPU's copy */
    }
    k->field = NONE;
}

static void
take_key(struct kineto *k)
{
    const char *word = k->scan.word;
    bool is_inner = k->is_in_args && k->scan.depth == EVENT_DEPTH + 1;
    k->field = NONE;
    if (k->scan.depth == 1)
        k->is_in_events = strcmp(word, "traceEvents") == 0;
    if (!k->is_in_events || (k->scan.depth != EVENT_DEPTH && !is_inner))
        return;
    if (!is_inner)
        k->is_in_args = strcmp(word, "args") == 0;
    for (enum field f = 0; f < NONE; f++) {
        if (fields[f].is_argument == is_inner && strcmp(word, fields[f].key) == 0)
            k->field = f;
    }
}

static enum dry_status
add_row(struct kineto *k, const struct row *row)
{
    size_t i = k->row_count;
    if (i >= ROWS_MAX ||
        !dryi_memory_grow(&k->memory, &k->rows, &k->row_capacity, i + 1,
                          sizeof *k->rows) ||
        !dryi_memory_grow(&k->memory, &k->order, &k->order_capacity, i + 1,
                          sizeof *k->order))
        return dryi_fail_memory(k->err, "memory events");
    k->rows[i] = *row;
    k->order[i] = (struct dryi_sort_item){(uint64_t)k->values[TIME], (uint32_t)i};
    k->row_count++;
    k->devices |= UINT64_C(1) << row->device;
    struct dry_trace_view *v = &k->builder->trace->view;
    if ((uint64_t)k->values[RESERVED] > v->reserved_peak_bytes)
        v->reserved_peak_bytes = (uint64_t)k->values[RESERVED];
    return DRY_OK;
}

/* Add the begin and the end of a step, which the program marked for the profiler. */
static enum dry_status
add_step(struct kineto *k)
{
    const uint32_t needed = 1u << TIME | 1u << DURATION;
    int64_t begin = k->values[TIME], duration = k->values[DURATION];
    if (!k->is_range || (k->seen & needed) != needed || begin < 0 || duration < 0 ||
        duration > INT64_MAX - begin)
        return DRY_OK;
    struct dry_trace_annotation mark = {.time_us = begin / 1000,
                                        .name = k->step,
                                        .stage =
                                            dry_trace_add_string(k->builder, "START", 5),
                                        .extra = DRY_NONE};
    dry_trace_add_annotation(k->builder, &mark);
    mark.time_us = (begin + duration) / 1000;
    mark.stage = dry_trace_add_string(k->builder, "END", 3);
    dry_trace_add_annotation(k->builder, &mark);
    return dryi_builder_check(k->builder, k->err);
}

/* End an event. One of memory becomes a row if it has all that a row needs. */
static enum dry_status
end_event(struct kineto *k)
{
    int64_t *value = k->values;
    if (k->step != DRY_NONE)
        return add_step(k);
    if (!k->is_memory && !k->is_oom)
        return DRY_OK;
    if (k->is_oom) { /* it has no address */
        value[ADDR] = 0;
        k->seen |= 1u << ADDR;
    }
    if ((k->seen & NEEDED) != NEEDED || value[TIME] < 0 || value[ALLOCATED] < 0 ||
        value[RESERVED] < 0 || value[BYTES] == INT64_MIN)
        return dryi_json_fail(&k->scan,
                              "a memory event without one of its whole numbers");
    if (value[DEVICE_TYPE] == 0) {
        k->cpu_count++;
        return DRY_OK;
    }
    if (value[DEVICE_ID] < 0 || value[DEVICE_ID] >= (int64_t)DEVICES_MAX)
        return dryi_json_fail(&k->scan, "a memory event of a device beyond 63");
    bool is_free = value[BYTES] < 0 && !k->is_oom;
    struct row row = {.addr = (uint64_t)value[ADDR],
                      .bytes =
                          (uint64_t)(value[BYTES] < 0 ? -value[BYTES] : value[BYTES]),
                      .allocated = (uint64_t)value[ALLOCATED],
                      .action = k->is_oom ? DRY_ACTION_OOM
                                : is_free ? DRY_ACTION_FREE_REQUESTED
                                          : DRY_ACTION_ALLOC,
                      .device = (uint32_t)value[DEVICE_ID]};
    return add_row(k, &row);
}

static enum dry_status
take_token(struct kineto *k, enum dryi_json_token token)
{
    unsigned depth = k->scan.depth;
    switch (token) {
    case DRYI_JSON_KEY:
        take_key(k);
        return DRY_OK;
    case DRYI_JSON_STRING:
        take_string(k);
        return DRY_OK;
    case DRYI_JSON_LITERAL:
        take_literal(k);
        return DRY_OK;
    case DRYI_JSON_BEGIN:
        k->field = NONE;
        if (depth == EVENT_DEPTH) {
            k->seen = 0;
            k->is_memory = k->is_oom = k->is_range = k->is_in_args = false;
            k->step = DRY_NONE;
        }
        return DRY_OK;
    case DRYI_JSON_END:
        k->field = NONE;
        if (depth == EVENT_DEPTH)
            k->is_in_args = false;
        return depth == EVENT_DEPTH - 1 && k->is_in_events ? end_event(k) : DRY_OK;
    }
    return DRY_OK;
}

/* --- rows become events ------------------------------------------------------------------ */

/* A device whose rows become events. */
struct telling {
    struct kineto *k;
    uint32_t device;
    struct dryi_live live;
};

static enum dry_status
add_event(struct kineto *k, enum dry_action action, uint64_t addr, uint64_t bytes,
          uint64_t time_ns)
{
    const struct dry_event event = {.action = action,
                                    .addr = addr,
                                    .size = bytes,
                                    .time_us = (int64_t)(time_ns / 1000),
                                    .lane = k->lane,
                                    .stack = DRY_NONE,
                                    .note = DRY_NONE};
    if (dry_trace_add_event(k->builder, &event) == DRY_OK)
        return DRY_OK;
    return dryi_builder_check(k->builder, k->err);
}

/* Begin an allocation. A LIVE one is added at the time of the first event. */
static enum dry_status
begin_life(struct telling *t, enum dry_action action, uint64_t addr, uint64_t bytes,
           uint64_t time_ns)
{
    if (!dryi_live_put(&t->live, addr, bytes, t->k->lane))
        return dryi_fail_memory(t->k->err, "live allocations");
    return add_event(t->k, action, addr, bytes, time_ns);
}

static enum dry_status
end_life(struct telling *t, const struct dryi_live_entry *entry, uint64_t time_ns)
{
    uint64_t addr = entry->id, bytes = entry->size;
    dryi_live_remove(&t->live, entry);
    return add_event(t->k, DRY_ACTION_FREE_REQUESTED, addr, bytes, time_ns);
}

/* Add a LIVE event for what the window begins with. `started` has the addresses that the window
   allocates before it frees them. */
static enum dry_status
add_older(struct telling *t, struct dryi_live *started)
{
    struct kineto *k = t->k;
    enum dry_status status = DRY_OK;
    uint64_t begin_ns = 0, older = 0;
    bool has_begun = false;
    for (size_t i = 0; i < k->row_count && status == DRY_OK; i++) {
        const struct row *row = &k->rows[k->order[i].value];
        if (row->device != t->device || row->action == DRY_ACTION_OOM)
            continue;
        bool is_alloc = row->action == DRY_ACTION_ALLOC;
        if (!has_begun) {
            begin_ns = k->order[i].key;
            older = row->allocated;
            older += is_alloc ? 0 : row->bytes;
            older -= is_alloc && row->bytes <= older ? row->bytes : 0;
            has_begun = true;
        }
        if (dryi_live_find(started, row->addr))
            continue;
        if (!dryi_live_put(started, row->addr, row->bytes, k->lane))
            return dryi_fail_memory(k->err, "live allocations");
        if (is_alloc)
            continue;
        older -= row->bytes < older ? row->bytes : older;
        status = begin_life(t, DRY_ACTION_LIVE, row->addr, row->bytes, begin_ns);
    }
    if (status == DRY_OK && older > 0 && !dryi_live_find(&t->live, OLDER_ADDRESS))
        status = begin_life(t, DRY_ACTION_LIVE, OLDER_ADDRESS, older, begin_ns);
    return status;
}

static enum dry_status
follow_row(struct telling *t, const struct row *row, uint64_t time_ns)
{
    if (row->action == DRY_ACTION_OOM)
        return add_event(t->k, row->action, 0, row->bytes, time_ns);
    const struct dryi_live_entry *entry = dryi_live_find(&t->live, row->addr);
    enum dry_status status = entry ? end_life(t, entry, time_ns) : DRY_OK;
    if (status == DRY_OK && row->action == DRY_ACTION_ALLOC)
        status = begin_life(t, row->action, row->addr, row->bytes, time_ns);
    return status;
}

static enum dry_status
tell_device(struct kineto *k, uint32_t device)
{
    struct telling t = {.k = k, .device = device};
    struct dryi_live started;
    if (dry_trace_begin_device(k->builder, (int32_t)device) != DRY_OK)
        return dryi_builder_check(k->builder, k->err);
    dryi_live_init(&t.live, &k->memory);
    dryi_live_init(&started, &k->memory);
    enum dry_status status = add_older(&t, &started);
    for (size_t i = 0; i < k->row_count && status == DRY_OK; i++) {
        const struct row *row = &k->rows[k->order[i].value];
        if (row->device == device)
            status = follow_row(&t, row, k->order[i].key);
    }
    dryi_live_finish(&started);
    dryi_live_finish(&t.live);
    return status;
}

/* Give the steps to a device: they were read without one. */
static enum dry_status
give_steps(struct kineto *k, size_t step_count, uint32_t device, bool is_first)
{
    struct dry_trace *trace = k->builder->trace;
    for (size_t i = 0; i < step_count; i++) {
        struct dry_trace_annotation step = trace->annotations[i];
        step.device = (int32_t)device;
        if (is_first)
            trace->annotations[i] = step;
        else
            dry_trace_add_annotation(k->builder, &step);
    }
    return dryi_builder_check(k->builder, k->err);
}

static enum dry_status
tell_all(struct kineto *k)
{
    size_t step_count = k->builder->trace->view.annotation_count;
    bool is_first = true;
    if (k->row_count == 0)
        return dryi_json_fail(
            &k->scan, k->cpu_count
                          ? "a profile whose memory events are all of the CPU: profile "
                            "what runs on a GPU"
                          : "a profile without memory events: record it with "
                            "profile_memory=True");
    k->scratch = dryi_memory_zalloc(&k->memory, k->order_capacity, sizeof *k->scratch);
    if (!k->scratch)
        return dryi_fail_memory(k->err, "sorting memory events");
    dryi_sort_items(k->order, k->scratch, k->row_count);
    k->lane = dry_trace_add_lane(k->builder, &(struct dry_lane){.pool_known = true});
    enum dry_status status = dryi_builder_check(k->builder, k->err);
    for (uint32_t d = 0; d < DEVICES_MAX && status == DRY_OK; d++) {
        if (!(k->devices >> d & 1))
            continue;
        status = give_steps(k, step_count, d, is_first);
        if (status == DRY_OK)
            status = tell_device(k, d);
        is_first = false;
    }
    return status;
}

enum dry_status
dryi_kineto_read(struct dryi_input *in, struct dry_trace_builder *builder,
                 struct dry_error *err)
{
    struct kineto k = {.scan = {.in = in, .err = err},
                       .memory = builder->trace->memory,
                       .builder = builder,
                       .err = err,
                       .field = NONE,
                       .step = DRY_NONE};
    enum dryi_json_token token;
    enum dry_status status = dryi_json_next(&k.scan, &token);
    while (status == DRY_OK) {
        status = take_token(&k, token);
        if (status == DRY_OK)
            status = dryi_json_next(&k.scan, &token);
    }
    if (status == DRY_END)
        status = tell_all(&k);
    dryi_builder_set_kind(builder, DRY_TRACE_KINETO);
    dryi_memory_free(&k.memory, k.rows, k.row_capacity, sizeof *k.rows);
    dryi_memory_free(&k.memory, k.scratch, k.order_capacity, sizeof *k.scratch);
    dryi_memory_free(&k.memory, k.order, k.order_capacity, sizeof *k.order);
    return status;
}
