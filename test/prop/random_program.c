/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/random_program.h"

#include "support/cmocka.h"

#include "support/random.h"

#define LIVE_MAX 96
#define MIB (UINT64_C(1) << 20)

const char *
random_program_conf(uint64_t seed)
{
    static const char *const confs[] = {
        "",
        "",
        "expandable_segments:True",
        "max_split_size_mb:32",
        "max_split_size_mb:64,max_non_split_rounding_mb:40",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[1:2,16:8,>:4]",
        "large_segment_size_mb:32",
        "expandable_segments:True,large_segment_size_mb:64",
        "expandable_segments:True,max_split_size_mb:64",
    };
    return confs[seed % (sizeof confs / sizeof *confs)];
}

struct program {
    struct random random;
    struct dry_trace_builder *builder;
    uint64_t live[LIVE_MAX];
    size_t live_count;
    uint64_t next_id;
    int64_t time_us;
    uint64_t pool; /* open, 0: none */
    unsigned stream_count;
    bool uses_pools;
};

static uint64_t
random_size(struct random *r)
{
    switch (random_below(r, 6)) {
    case 0:
        return 1 + random_below(r, 2048);
    case 1:
        return 1 + random_below(r, MIB);
    case 2:
        return MIB - 1024 + random_below(r, 2048);
    case 3:
        return MIB + random_below(r, 9 * MIB);
    case 4:
        return 10 * MIB - 1024 + random_below(r, 2048);
    default:
        return 10 * MIB + random_below(r, 70 * MIB);
    }
}

static uint32_t
lane(struct program *p, uint64_t stream, uint64_t pool)
{
    struct dry_lane lane = {
        .stream = stream, .pool_a = 0, .pool_b = pool, .pool_known = true};
    return dry_trace_add_lane(p->builder, &lane);
}

static void
add(struct program *p, enum dry_action action, uint64_t id, uint64_t size, uint32_t in)
{
    struct dry_event event = {.action = action,
                              .addr = id,
                              .size = size,
                              .time_us = p->time_us++,
                              .lane = in,
                              .stack = DRY_NONE,
                              .note = DRY_NONE};
    dry_trace_add_event(p->builder, &event);
}

static void
free_one(struct program *p)
{
    size_t i = random_below(&p->random, p->live_count);
    uint64_t id = p->live[i];
    if (p->stream_count > 1 && random_below(&p->random, 4) == 0)
        add(p, DRY_ACTION_RECORD_STREAM, id, 0,
            lane(p, random_below(&p->random, p->stream_count), 0));
    add(p, DRY_ACTION_FREE_REQUESTED, id, 0, lane(p, 0, 0));
    p->live[i] = p->live[--p->live_count];
}

static void
switch_pool(struct program *p)
{
    if (p->pool)
        add(p, DRY_ACTION_POOL_END, 0, 0, lane(p, 0, p->pool));
    p->pool = p->pool ? 0 : 1 + random_below(&p->random, 2);
    if (p->pool)
        add(p, DRY_ACTION_POOL_BEGIN, 0, 0, lane(p, 0, p->pool));
}

static void
step(struct program *p)
{
    uint64_t what = random_below(&p->random, 100);
    if (what < 48 && p->live_count < LIVE_MAX) {
        /* one after the other: arguments of a call come in any order */
        uint64_t size = random_size(&p->random);
        uint32_t in = lane(p, random_below(&p->random, p->stream_count), 0);
        p->live[p->live_count++] = p->next_id;
        add(p, DRY_ACTION_ALLOC, p->next_id++, size, in);
    } else if (what < 92 && p->live_count > 0) {
        free_one(p);
    } else if (what < 95 && p->stream_count > 1) {
        add(p, DRY_ACTION_STREAM_END, 0, 0,
            lane(p, random_below(&p->random, p->stream_count), 0));
    } else if (what < 97 && p->uses_pools) {
        switch_pool(p);
    } else if (what == 99 && !p->pool) {
        add(p, DRY_ACTION_EMPTY_CACHE, 0, 0, lane(p, 0, 0));
    }
}

struct dry_trace *
random_program_make(uint64_t seed, bool is_simple)
{
    struct program p = {.next_id = 1};
    random_init(&p.random, seed);
    p.stream_count = 1 + (unsigned)random_below(&p.random, 3);
    p.uses_pools = random_below(&p.random, 3) == 0;
    if (is_simple) {
        p.stream_count = 1;
        p.uses_pools = false;
    }
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_PLAIN;
    assert_int_equal(dry_trace_builder_create(&options, &p.builder, NULL), DRY_OK);
    dry_trace_begin_device(p.builder, 0);
    uint64_t steps = 20 + random_below(&p.random, 600);
    for (uint64_t i = 0; i < steps; i++)
        step(&p);
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_finish(p.builder, &trace, NULL), DRY_OK);
    return trace;
}
