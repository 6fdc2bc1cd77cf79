/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any trace, replayed: whatever the record claims, a replay ends in a check, in runs and in
 * a record of its own, or in one status. Two kinds of input:
 *
 *   a file, as dry_trace_read() takes it;
 *   "FUZZ" and a program in bytes, which is recorded, then spoilt field by field, so that
 *   contradictions lie deep inside a record that is otherwise sound.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "support/bytes.h"

#define INPUT_BYTES_MAX (256u << 10)
#define MEMORY_BYTES_MAX (64u << 20)
#define EVENTS_FOR_CAPACITY_MAX 200
#define MIB (UINT64_C(1) << 20)
#define MAGIC "FUZZ"

static void
require(int condition)
{
    if (!condition)
        abort();
}

/* --- every call on a trace ---------------------------------------------------------------- */

static void
check_run(const struct dry_run *run, const struct dry_trace_view *v)
{
    require(run->reserved_end_bytes <= run->reserved_peak_bytes);
    require(run->allocated_peak_bytes <= run->reserved_peak_bytes);
    require(!run->oom || v->event_count == 0 || run->oom_event < v->event_count);
}

static void
run_with(struct dry_replay *replay, const struct dry_trace_view *v,
         const struct dry_run_options *options)
{
    struct dry_run run;
    struct dry_error err = {0};
    enum dry_status status = dry_replay_run(replay, options, &run, &err);
    if (status == DRY_OK)
        check_run(&run, v);
    else
        require(err.status == status && err.text[0]);
}

static void
record_with(struct dry_replay *replay, const struct dry_run_options *options)
{
    struct dry_trace *recorded;
    struct dry_error err = {0};
    enum dry_status status = dry_replay_record(replay, options, &recorded, &err);
    if (status == DRY_OK)
        dry_trace_destroy(recorded);
    else
        require(err.status == status && err.text[0]);
}

static void
run_all(struct dry_replay *replay, const struct dry_trace_view *v)
{
    static const char *const confs[] = {
        "expandable_segments:True", "max_split_size_mb:32,roundup_power2_divisions:4",
        "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9"};
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.decisions = &sink;
    run_with(replay, v, &options);
    bytes_sink_finish(&to);
    options.decisions = NULL;
    record_with(replay, &options);
    options.begin_anew = 1;
    options.capacity_bytes = 64 * MIB;
    options.find_capacity = v->event_count < EVENTS_FOR_CAPACITY_MAX;
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        options.conf = confs[i];
        run_with(replay, v, &options);
    }
    options.conf = NULL;
    options.compat = "2.15";
    run_with(replay, v, &options);
    record_with(replay, &options);
}

static void
check_result(const struct dry_replay *replay)
{
    const struct dry_replay_check *check = dry_replay_get_check(replay);
    require(check->possible || (check->reason[0] && !check->exact));
    require(!check->exact || !check->has_mismatch);
    require(check->alloc_matched <= check->alloc_count &&
            check->segment_event_matched <= check->segment_event_count &&
            check->segment_matched <= check->segment_count &&
            check->block_matched <= check->block_count);
    require(!check->has_mismatch || check->first_mismatch.what[0]);
}

static void
replay_device(const struct dry_trace *trace, int32_t device)
{
    struct dry_replay_options options;
    struct dry_replay *replay;
    struct dry_error err = {0};
    dry_replay_options_init(&options);
    options.device = device;
    enum dry_status status = dry_replay_create(trace, &options, &replay, &err);
    if (status != DRY_OK) {
        require(err.status == status && err.text[0]);
        return;
    }
    check_result(replay);
    run_all(replay, dry_trace_get_view(trace));
    dry_replay_destroy(replay);
}

/* --- a program in bytes ------------------------------------------------------------------- */

struct reader {
    const uint8_t *data;
    size_t size, at;
};

static unsigned
next_byte(struct reader *r)
{
    return r->at < r->size ? r->data[r->at++] : 0;
}

static uint32_t
lane_of(struct dry_trace_builder *b, uint64_t stream, uint64_t pool)
{
    struct dry_lane lane = {.stream = stream, .pool_b = pool, .pool_known = 1};
    return dry_trace_add_lane(b, &lane);
}

/* Around the limits of the rules, from 0 bytes to more than any device has. */
static uint64_t
size_of(unsigned code)
{
    static const uint64_t sizes[] = {
        0,        1,        512,      700,       MIB,       MIB + 1,   3 * MIB,  10 * MIB,
        12 * MIB, 20 * MIB, 33 * MIB, 100 * MIB, 600 * MIB, MIB << 21, MIB << 39};
    uint64_t size = sizes[code % 15];
    return size + (code / 15) * (size / 16);
}

/* Three bytes an event; ids are given out once more when they are free again. */
static void
add_program(struct dry_trace_builder *b, struct reader *r)
{
    static const enum dry_action actions[] = {
        DRY_ACTION_FREE_REQUESTED, DRY_ACTION_RECORD_STREAM, DRY_ACTION_STREAM_END,
        DRY_ACTION_EMPTY_CACHE,    DRY_ACTION_POOL_BEGIN,    DRY_ACTION_POOL_END};
    uint8_t is_live[32] = {0};
    while (r->at + 3 <= r->size) {
        unsigned what = next_byte(r), which = next_byte(r), code = next_byte(r);
        struct dry_event event = {.addr = which % 32,
                                  .time_us = (int64_t)r->at,
                                  .lane = lane_of(b, which / 32 % 4, 1 + which % 3),
                                  .stack = DRY_NONE,
                                  .note = DRY_NONE};
        if (what % 2 == 0 && !is_live[event.addr]) {
            event.action = DRY_ACTION_ALLOC;
            event.size = size_of(code);
            is_live[event.addr] = 1;
        } else {
            event.action = actions[what / 2 % 16 < 6 ? what / 2 % 16 : 0];
            if (event.action < DRY_ACTION_STREAM_END && !is_live[event.addr])
                continue;
            if (event.action == DRY_ACTION_FREE_REQUESTED)
                is_live[event.addr] = 0;
        }
        dry_trace_add_event(b, &event);
    }
}

static struct dry_trace *
make_program(struct reader *r)
{
    struct dry_trace_builder_options options;
    struct dry_trace_builder *b;
    struct dry_trace *program;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_PLAIN;
    require(dry_trace_builder_create(&options, &b, NULL) == DRY_OK);
    dry_trace_begin_device(b, 0);
    add_program(b, r);
    require(dry_trace_builder_finish(b, &program, NULL) == DRY_OK);
    return program;
}

static struct dry_trace *
record_program(const struct dry_trace *program, unsigned code)
{
    static const char *const confs[] = {"", "expandable_segments:True",
                                        "max_split_size_mb:32",
                                        "roundup_power2_divisions:4"};
    struct dry_replay *replay;
    struct dry_trace *recorded = NULL;
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.conf = confs[code % 4];
    if (code & 4)
        options.capacity_bytes = 300 * MIB;
    options.compat = code & 8 ? "2.15" : "2.4";
    require(dry_replay_create(program, NULL, &replay, NULL) == DRY_OK);
    require(dry_replay_record(replay, &options, &recorded, NULL) == DRY_OK);
    dry_replay_destroy(replay);
    return recorded;
}

/* --- spoiling a record -------------------------------------------------------------------- */

struct spoil {
    uint8_t where[2]; /* which row */
    uint8_t field, how, amount;
};
#define SPOILS_MAX 8

struct spoils {
    struct spoil items[SPOILS_MAX];
    size_t count;
    size_t first_event; /* the window begins here */
};

static uint64_t
spoil_number(uint64_t x, const struct spoil *s)
{
    uint64_t amount = s->amount;
    switch (s->how % 8) {
    case 0:
        return x + amount * 512;
    case 1:
        return x - amount * 512;
    case 2:
        return x + amount * 2 * MIB;
    case 3:
        return x - amount * 2 * MIB;
    case 4:
        return amount;
    case 5:
        return UINT64_MAX - amount;
    case 6:
        return x ^ UINT64_C(1) << (amount % 64);
    default:
        return x * amount;
    }
}

static size_t
row_of(const struct spoil *s, size_t count)
{
    return (s->where[0] | (size_t)s->where[1] << 8) % count;
}

static void
spoil_event(const struct spoil *s, struct dry_event *e, struct dry_trace_builder *b)
{
    if (s->field % 6 == 0)
        e->addr = spoil_number(e->addr, s);
    else if (s->field % 6 == 1)
        e->size = spoil_number(e->size, s);
    else if (s->field % 6 == 2)
        e->action = (enum dry_action)(s->amount % DRY_ACTION_COUNT);
    else
        e->lane =
            lane_of(b, s->how % 8 == 5 ? UINT64_MAX - s->amount : s->amount, s->how);
}

static void
copy_events(const struct dry_trace_view *v, const struct spoils *spoils,
            struct dry_trace_builder *b)
{
    for (size_t i = spoils->first_event; i < v->event_count; i++) {
        const struct dry_lane *lane = &v->lanes[v->lane[i]];
        struct dry_event event = {.action = v->action[i],
                                  .addr = v->addr[i],
                                  .size = v->size[i],
                                  .time_us = v->time_us[i],
                                  .lane = dry_trace_add_lane(b, lane),
                                  .stack = DRY_NONE,
                                  .note = DRY_NONE};
        bool is_gone = false;
        for (size_t k = 0; k < spoils->count; k++) {
            const struct spoil *s = &spoils->items[k];
            if (s->field % 16 >= 6 || row_of(s, v->event_count) != i)
                continue;
            is_gone |= s->field % 16 == 4;
            spoil_event(s, &event, b);
        }
        if (!is_gone)
            dry_trace_add_event(b, &event);
    }
}

static void
spoil_segment(const struct spoil *s, struct dry_trace_segment *segment,
              struct dry_trace_block *blocks)
{
    struct dry_trace_block *block =
        segment->block_count ? &blocks[s->amount % segment->block_count] : NULL;
    unsigned field = s->field % 16;
    if (field == 6)
        segment->address = spoil_number(segment->address, s);
    else if (field == 7)
        segment->total_size = spoil_number(segment->total_size, s);
    else if (field == 8)
        segment->is_large ^= 1;
    else if (field == 9)
        segment->is_expandable ^= 1;
    else if (field == 10)
        segment->block_count -= segment->block_count > 0;
    else if (field == 11 && block)
        block->address = spoil_number(block->address, s);
    else if (field == 12 && block)
        block->size = spoil_number(block->size, s);
    else if (field == 13 && block)
        block->requested_size = spoil_number(block->requested_size, s);
    else if (field == 14 && block)
        block->state = (enum dry_block_state)(s->how % 3);
}

static void
copy_segments(const struct dry_trace_view *v, const struct spoils *spoils,
              struct dry_trace_builder *b)
{
    for (size_t i = 0; i < v->segment_count; i++) {
        struct dry_trace_segment segment = v->segments[i];
        size_t bytes = segment.block_count * sizeof(struct dry_trace_block);
        struct dry_trace_block *blocks = malloc(bytes + 1);
        require(blocks != NULL);
        if (bytes > 0)
            memcpy(blocks, &v->blocks[segment.first_block], bytes);
        segment.lane = dry_trace_add_lane(b, &v->lanes[segment.lane]);
        int times = 1;
        for (size_t k = 0; k < spoils->count; k++) {
            const struct spoil *s = &spoils->items[k];
            if (s->field % 16 < 6 || row_of(s, v->segment_count) != i)
                continue;
            spoil_segment(s, &segment, blocks);
            times = s->field % 16 == 15 ? s->how % 3 : times; /* gone, or there twice */
        }
        for (int n = 0; n < times; n++)
            dry_trace_add_segment(b, &segment, blocks, segment.block_count);
        free(blocks);
    }
}

static struct dry_trace *
spoil_record(const struct dry_trace *recorded, const struct spoils *spoils)
{
    const struct dry_trace_view *v = dry_trace_get_view(recorded);
    struct dry_trace_builder_options options;
    struct dry_trace_builder *b;
    struct dry_trace *spoilt;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_SNAPSHOT;
    require(dry_trace_builder_create(&options, &b, NULL) == DRY_OK);
    struct dry_trace_settings settings = v->settings;
    size_t length;
    const char *conf = dry_trace_string(recorded, settings.conf, &length);
    settings.conf = dry_trace_add_string(b, conf, length);
    dry_trace_set_settings(b, &settings);
    dry_trace_begin_device(b, 0);
    copy_events(v, spoils, b);
    copy_segments(v, spoils, b);
    require(dry_trace_builder_finish(b, &spoilt, NULL) == DRY_OK);
    return spoilt;
}

static struct dry_trace *
make_spoilt_record(const uint8_t *data, size_t size)
{
    struct reader r = {.data = data, .size = size};
    struct spoils spoils = {0};
    unsigned code = next_byte(&r), window = next_byte(&r);
    spoils.count = next_byte(&r) % (SPOILS_MAX + 1);
    for (size_t i = 0; i < spoils.count; i++) {
        struct spoil *s = &spoils.items[i];
        s->where[0] = (uint8_t)next_byte(&r);
        s->where[1] = (uint8_t)next_byte(&r);
        s->field = (uint8_t)next_byte(&r);
        s->how = (uint8_t)next_byte(&r);
        s->amount = (uint8_t)next_byte(&r);
    }
    struct dry_trace *program = make_program(&r);
    struct dry_trace *recorded = record_program(program, code);
    spoils.first_event = dry_trace_get_view(recorded)->event_count * window / 256;
    struct dry_trace *spoilt = spoil_record(recorded, &spoils);
    dry_trace_destroy(recorded);
    dry_trace_destroy(program);
    return spoilt;
}

/* --- the target --------------------------------------------------------------------------- */

static struct dry_trace *
read_trace(const uint8_t *data, size_t size)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, data, size);
    struct dry_trace_options options;
    struct dry_trace *trace = NULL;
    dry_trace_options_init(&options);
    options.memory_bytes_max = MEMORY_BYTES_MAX;
    return dry_trace_read(&source, &options, &trace, NULL) == DRY_OK ? trace : NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t magic = strlen(MAGIC);
    if (size > INPUT_BYTES_MAX)
        return 0;
    struct dry_trace *trace = size >= magic && memcmp(data, MAGIC, magic) == 0
                                  ? make_spoilt_record(data + magic, size - magic)
                                  : read_trace(data, size);
    if (!trace)
        return 0;
    replay_device(trace, DRY_DEVICE_BUSIEST);
    replay_device(trace, 0);
    replay_device(trace, DRY_DEVICE_HOST);
    dry_trace_destroy(trace);
    return 0;
}
