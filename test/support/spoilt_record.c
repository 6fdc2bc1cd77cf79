/* SPDX-License-Identifier: Apache-2.0 */
#include "support/spoilt_record.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/bytes.h"

#define MIB (UINT64_C(1) << 20)
#define MEMORY_BYTES_MAX (64u << 20)

static void
require(int condition)
{
    if (!condition)
        abort();
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
    struct dry_lane lane = {.stream = stream, .pool_b = pool, .pool_known = true};
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

/* --- any input --------------------------------------------------------------------------- */

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

struct dry_trace *
spoilt_record_read(const uint8_t *data, size_t size)
{
    size_t magic = strlen(SPOILT_RECORD_MAGIC);
    if (size >= magic && memcmp(data, SPOILT_RECORD_MAGIC, magic) == 0)
        return make_spoilt_record(data + magic, size - magic);
    return read_trace(data, size);
}
