/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/random.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#include "pool/pool_state.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct dry_sim *
make_sim(uint64_t capacity_bytes)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.capacity_bytes = capacity_bytes;
    o.check = true;
    struct dry_sim *sim = NULL;
    assert_int_equal(dry_sim_create(&o, &sim, NULL), DRY_OK);
    return sim;
}

static struct dry_pool *
make_pool(struct dry_sim *sim, enum dry_placement placement, const char *conf)
{
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = dry_sim_get_device(sim);
    o.placement = placement;
    o.conf = conf;
    struct dry_pool *pool = NULL;
    struct dry_error err;
    if (dry_pool_create(&o, &pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return pool;
}

static uint64_t
take(struct dry_pool *pool, uint64_t size, uint64_t stream)
{
    uint64_t address = 1;
    assert_int_equal(dry_pool_alloc(pool, size, stream, &address), DRY_OK);
    return address;
}

static void
check(struct dry_pool *pool)
{
    struct dry_error err;
    if (dry_pool_check(pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static const enum dry_placement placements[] = {DRY_PLACEMENT_PAGED, DRY_PLACEMENT_TORCH};
#define PLACEMENTS (sizeof placements / sizeof *placements)

static void
blocks_come_and_go(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct dry_sim *sim = make_sim(GIB);
        struct dry_pool *pool = make_pool(sim, placements[p], "");
        uint64_t a = take(pool, 1000, 0), b = take(pool, 3 * MIB, 0);
        assert_true(a % 512 == 0 && b % 512 == 0 && a != b);
        check(pool);
        assert_int_equal(dry_pool_free(pool, a), DRY_OK);
        assert_true(take(pool, 1000, 0) == a);
        assert_int_equal(dry_pool_free(pool, a), DRY_OK);
        assert_int_equal(dry_pool_free(pool, b), DRY_OK);
        check(pool);
        assert_int_equal(dry_pool_empty_cache(pool), DRY_OK);
        struct dry_stats stats;
        dry_pool_get_stats(pool, &stats);
        assert_int_equal(stats.allocation.all.current, 0);
        assert_int_equal(stats.reserved_bytes.all.current, 0);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

/* Runs one test with a fresh pool of each placement on a device of this size. */
struct fixture {
    struct dry_sim *sim;
    struct dry_pool *pool;
    enum dry_placement placement;
};

static void
with_each(void (*test)(struct fixture *f), uint64_t capacity_bytes)
{
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct fixture f = {.placement = placements[p]};
        f.sim = make_sim(capacity_bytes);
        f.pool = make_pool(f.sim, placements[p], "");
        test(&f);
        check(f.pool);
        dry_pool_destroy(f.pool);
        struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
        dry_sim_get_account(f.sim, &account);
        assert_true(account.used_bytes == 0);
        assert_true(account.reserved_address_bytes == 0);
        assert_true(account.events_live == 0);
        assert_true(account.pages_live == 0);
        dry_sim_destroy(f.sim);
    }
}

static struct dry_stats
stats_of(struct dry_pool *pool)
{
    struct dry_stats stats;
    dry_pool_get_stats(pool, &stats);
    return stats;
}

/* --- addresses ---------------------------------------------------------------------------- */

static void
refuse_what_is_no_block(struct fixture *f)
{
    struct dry_pool *pool = f->pool;
    uint64_t a = take(pool, 4096, 0), other = 77;
    assert_int_equal(dry_pool_free(pool, a + 512), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_free(pool, a + 1), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_free(pool, a - 512), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_free(pool, UINT64_MAX), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_record_stream(pool, a + 512, 1), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_free(pool, a), DRY_OK);
    assert_int_equal(dry_pool_free(pool, a), DRY_ERR_ARGUMENT);
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_get_block(pool, a, &block), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_alloc(pool, UINT64_C(1) << 60, 0, &other),
                     DRY_ERR_ARGUMENT);
    for (unsigned octave = 31; octave < 60; octave++)
        assert_int_equal(dry_pool_alloc(pool, UINT64_C(1) << octave, 0, &other),
                         DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_alloc_aligned(pool, 1, 3, 0, &other), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_alloc_aligned(pool, 1, 2 * GIB, 0, &other),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(
        dry_pool_alloc_aligned(pool, (UINT64_C(1) << 60) - 1, GIB, 0, &other),
        DRY_ERR_ARGUMENT);
    assert_true(other == 77);
}

static void
addresses_of_no_block_are_refused(void **state)
{
    (void)state;
    with_each(refuse_what_is_no_block, GIB);
}

static void
take_nothing(struct fixture *f)
{
    assert_true(take(f->pool, 0, 5) == 0);
    assert_int_equal(dry_pool_free(f->pool, 0), DRY_OK);
    assert_int_equal(dry_pool_free(f->pool, 0), DRY_OK);
    assert_true(dry_pool_round_size(f->pool, 0) == 0);
    assert_true(dry_pool_round_size(f->pool, 1) == 512);
    assert_true(dry_pool_round_size(f->pool, 513) == 1024);
    assert_int_equal(stats_of(f->pool).allocation.all.allocated, 0);
}

static void
nothing_is_address_zero(void **state)
{
    (void)state;
    with_each(take_nothing, GIB);
}

static void
align_blocks(struct fixture *f)
{
    for (uint64_t alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
        uint64_t a = take(f->pool, 512, 0), at = 1;
        assert_int_equal(dry_pool_alloc_aligned(f->pool, 5000, alignment, 0, &at),
                         DRY_OK);
        assert_true(at % alignment == 0 && at % 512 == 0);
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        assert_int_equal(dry_pool_get_block(f->pool, at, &block), DRY_OK);
        assert_true(block.address <= at);
        assert_true(at + 5000 <= block.address + block.size);
        check(f->pool);
        assert_int_equal(dry_pool_record_stream(f->pool, at, 3), DRY_OK);
        if (block.address != at)
            assert_int_equal(dry_pool_free(f->pool, block.address), DRY_ERR_ARGUMENT);
        assert_int_equal(dry_pool_free(f->pool, at), DRY_OK);
        assert_int_equal(dry_pool_free(f->pool, at), DRY_ERR_ARGUMENT);
        assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
        dry_sim_complete_stream(f->sim, 3);
    }
}

static void
addresses_are_aligned_as_asked(void **state)
{
    (void)state;
    with_each(align_blocks, GIB);
}

static void
describe_block(struct fixture *f)
{
    uint64_t a = take(f->pool, 700, 9), b = take(f->pool, 3 * MIB, 9);
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_get_block(f->pool, a, &block), DRY_OK);
    assert_true(block.address == a && block.size >= 1024 && block.requested == 700);
    assert_true(block.stream == 9 && block.pool.a == 0 && block.pool.b == 0);
    assert_true(block.segment_address <= a);
    assert_true(a + block.size <= block.segment_address + block.segment_size);
    assert_true(block.context == DRY_NONE);
    assert_int_equal(dry_pool_get_block(f->pool, b, &block), DRY_OK);
    assert_true(block.address == b && block.requested == 3 * MIB);
    assert_int_equal(dry_pool_get_block(f->pool, b + 512, &block), DRY_ERR_ARGUMENT);
}

static void
blocks_are_described(void **state)
{
    (void)state;
    with_each(describe_block, GIB);
}

/* Many more than the first table holds, given back in another order than taken. */
static void
take_many(struct fixture *f)
{
    enum { COUNT = 5000, STEP = 1871 };
    static uint64_t at[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        at[i] = take(f->pool, 512 + i % 7 * 512, i % 3);
    check(f->pool);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(dry_pool_free(f->pool, at[i * STEP % COUNT]), DRY_OK);
        if (i % 1000 == 0)
            check(f->pool);
    }
    assert_int_equal(stats_of(f->pool).allocation.all.current, 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(dry_pool_free(f->pool, at[i]), DRY_ERR_ARGUMENT);
}

static void
thousands_are_told_apart(void **state)
{
    (void)state;
    with_each(take_many, GIB);
}

/* --- streams ------------------------------------------------------------------------------ */

static void
wait_for_streams(struct fixture *f)
{
    uint64_t a = take(f->pool, 40 * MIB, 1);
    assert_int_equal(dry_pool_record_stream(f->pool, a, 2), DRY_OK);
    assert_int_equal(dry_pool_record_stream(f->pool, a, 2), DRY_OK);
    assert_int_equal(dry_pool_record_stream(f->pool, a, 1), DRY_OK);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
    assert_true(stats_of(f->pool).active.all.current == 1);
    assert_true(stats_of(f->pool).allocation.all.current == 0);
    uint64_t b = take(f->pool, 40 * MIB, 1);
    assert_true(b != a);
    dry_sim_complete_stream(f->sim, 2);
    assert_true(take(f->pool, 40 * MIB, 1) == a);
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    dry_pool_get_counters(f->pool, &counters);
    assert_true(counters.events_recorded >= 1);
    assert_true(counters.driver_calls >= 3);
    assert_int_equal(dry_pool_stream_waits(f->pool, 1, 2), DRY_OK);
}

static void
blocks_wait_for_their_streams(void **state)
{
    (void)state;
    with_each(wait_for_streams, GIB);
}

/* Calls for memory take time; the device's events, and requests that are served without, none. */
static void
spend_time(struct fixture *f)
{
    struct dry_pool_counters before = DRY_INIT(struct dry_pool_counters);
    struct dry_pool_counters made = DRY_INIT(struct dry_pool_counters);
    struct dry_pool_counters warm = DRY_INIT(struct dry_pool_counters);
    dry_pool_get_counters(f->pool, &before);
    uint64_t a = take(f->pool, 40 * MIB, 1);
    dry_pool_get_counters(f->pool, &made);
    assert_int_equal(before.driver_time_ns, 0);
    assert_true(made.driver_calls > 0 && made.driver_time_ns > 0);
    assert_true(made.driver_time_ns < UINT64_C(60) * 1000000000);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
        assert_true(take(f->pool, 40 * MIB, 1) == a);
    }
    dry_pool_get_counters(f->pool, &warm);
    assert_int_equal(warm.driver_calls, made.driver_calls);
    assert_int_equal(warm.driver_time_ns, made.driver_time_ns);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
    assert_int_equal(dry_pool_empty_cache(f->pool), DRY_OK);
    dry_pool_get_counters(f->pool, &warm);
    assert_true(warm.driver_time_ns > made.driver_time_ns);
}

static void
time_of_the_driver_is_told(void **state)
{
    (void)state;
    with_each(spend_time, GIB);
}

/*
 * A device that can tell streams apart: a handle means another stream once it was given
 * away. `number` is what handle 7 means now; all others are their own.
 */
struct told_apart {
    struct dry_device inner;
    struct dry_device_ops ops;
    uint64_t number;
    uint64_t recorded_on; /* the last handle an event was recorded on */
    unsigned waits;       /* for the whole device */
};

static struct told_apart *told;

static uint64_t
number_of(void *self, uint64_t stream)
{
    (void)self;
    return stream == 7 ? told->number : stream;
}

static enum dry_status
record_and_tell(void *self, uint64_t stream, uint64_t *event)
{
    told->recorded_on = stream;
    return told->inner.ops->event_record(self, stream, event);
}

static enum dry_status
wait_and_count(void *self)
{
    for (uint64_t stream = 7; stream <= 8; stream++)
        told->inner.ops->stream_wait(self, stream);
    told->waits++;
    return DRY_OK;
}

static void
begin_told_apart(struct told_apart *device, struct dry_sim *sim)
{
    *device = (struct told_apart){.inner = dry_sim_get_device(sim), .number = 1000};
    device->ops = *device->inner.ops;
    device->ops.stream_id = number_of;
    device->ops.event_record = record_and_tell;
    told = device;
}

static struct dry_pool *
make_told_pool(struct told_apart *device, enum dry_placement placement, const char *conf)
{
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = (struct dry_device){.ops = &device->ops, .self = device->inner.self};
    o.placement = placement;
    o.conf = conf;
    struct dry_pool *pool;
    assert_int_equal(dry_pool_create(&o, &pool, NULL), DRY_OK);
    return pool;
}

static void
handle_used_again_is_another_stream(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct dry_sim *sim = make_sim(GIB);
        struct told_apart device;
        begin_told_apart(&device, sim);
        const char *conf = placements[p] == DRY_PLACEMENT_PAGED
                               ? "reuse_passed:False,reuse_waiting:False"
                               : "";
        struct dry_pool *pool = make_told_pool(&device, placements[p], conf);

        uint64_t a = take(pool, MIB / 2, 7), b = take(pool, MIB / 2, 8);
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        assert_int_equal(dry_pool_get_block(pool, a, &block), DRY_OK);
        assert_true(block.stream == 7);
        assert_int_equal(dry_pool_record_stream(pool, b, 7), DRY_OK);
        assert_int_equal(dry_pool_free(pool, b), DRY_OK);
        assert_int_equal(dry_pool_free(pool, a), DRY_OK);
        if (placements[p] == DRY_PLACEMENT_TORCH)
            assert_true(device.recorded_on == 7);
        dry_sim_complete_stream(sim, 7);
        device.number = 1001; /* destroyed, and its handle given to another */
        assert_true(take(pool, MIB / 2, 7) != a);
        device.number = 1000; /* only to see that it was still there */
        uint64_t again[2] = {take(pool, MIB / 2, 7), take(pool, MIB / 2, 7)};
        assert_true(again[0] == a || again[1] == a);
        /* A stream that is gone and cannot be waited for: the block stays in use. */
        uint64_t c = take(pool, MIB / 2, 8);
        assert_int_equal(dry_pool_record_stream(pool, c, 7), DRY_OK);
        device.number = 1002;
        assert_int_equal(dry_pool_free(pool, c), DRY_ERR_SYSTEM);
        assert_int_equal(dry_pool_get_block(pool, c, &block), DRY_OK);
        device.number = 1000;
        assert_int_equal(dry_pool_free(pool, c), DRY_OK);
        check(pool);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

/* Its driver did not wait when it went: the device is waited for. */
static void
stream_that_is_gone_gives_its_memory_back(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct dry_sim *sim = make_sim(GIB);
        struct told_apart device;
        begin_told_apart(&device, sim);
        device.ops.wait_all = wait_and_count;
        struct dry_pool *pool = make_told_pool(&device, placements[p], "");
        uint64_t a = take(pool, 40 * MIB, 8), b = take(pool, 40 * MIB, 8),
                 c = take(pool, 40 * MIB, 7);
        assert_int_equal(dry_pool_record_stream(pool, a, 7), DRY_OK);
        assert_int_equal(dry_pool_record_stream(pool, b, 7), DRY_OK);
        assert_int_equal(dry_pool_free(pool, c), DRY_OK);
        device.number = 1001; /* destroyed, and its handle given to another */
        assert_int_equal(dry_pool_free(pool, a), DRY_OK);
        assert_int_equal(dry_pool_free(pool, b), DRY_OK);
        assert_true(device.waits == 2 && device.recorded_on != 7); /* for each */
        uint64_t reserved = 1;
        assert_int_equal(dry_pool_trim(pool, 0, &reserved), DRY_OK);
        assert_true(reserved == 0 && device.waits == 2);
        check(pool);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

/* Between the pool's look at whose the handle is and the driver's call. */
static enum dry_status
record_for_another(void *self, uint64_t stream, uint64_t *event)
{
    told->number++;
    return record_and_tell(self, stream, event);
}

static enum dry_status
wait_for_another(void *self, uint64_t stream)
{
    (void)self; /* that one has done all that it was given */
    told->number += stream == 7;
    return DRY_OK;
}

/* Another thread destroys the stream just then, and makes one that gets its handle. */
static void
handle_given_away_meanwhile_is_noticed(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct dry_sim *sim = make_sim(64 * MIB);
        struct told_apart device;
        begin_told_apart(&device, sim);
        device.ops.wait_all = wait_and_count;
        device.ops.event_record = record_for_another;
        struct dry_pool *pool = make_told_pool(&device, placements[p],
                                               placements[p] == DRY_PLACEMENT_TORCH
                                                   ? "expandable_segments:True"
                                                   : "reuse_waiting:False");
        uint64_t a = take(pool, 40 * MIB, 8);
        assert_int_equal(dry_pool_record_stream(pool, a, 7), DRY_OK);
        assert_int_equal(dry_pool_free(pool, a), DRY_OK);
        assert_true(device.waits == 1 && device.recorded_on == 7);
        struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
        dry_sim_get_account(sim, &account);
        assert_true(account.events_live == 0);
        uint64_t b = take(pool, 40 * MIB, 8);
        assert_true(b == a);
        assert_int_equal(dry_pool_free(pool, b), DRY_OK);
        /* The same where the driver is to say that a stream is done: torch unmaps then. */
        pool->device_ops.stream_wait = wait_for_another;
        uint64_t c = take(pool, 40 * MIB, 7);
        assert_int_equal(dry_pool_free(pool, c), DRY_OK);
        unsigned waits = device.waits;
        assert_int_equal(dry_pool_empty_cache(pool), DRY_OK);
        assert_int_equal(device.waits, waits + 1);
        check(pool);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

static bool
is_stream_5(void *self, uint64_t stream)
{
    (void)self;
    return stream == 5;
}

/* To wait for the whole device would end it: what is gone is waited for when it is over. */
static void
capture_is_no_time_to_wait_for_what_is_gone(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct dry_sim *sim = make_sim(64 * MIB);
        struct told_apart device;
        begin_told_apart(&device, sim);
        device.ops.wait_all = wait_and_count;
        struct dry_pool *pool = make_told_pool(&device, placements[p], "");
        uint64_t a = take(pool, 40 * MIB, 8), at;
        assert_int_equal(dry_pool_record_stream(pool, a, 7), DRY_OK);
        assert_int_equal(dry_pool_free(pool, take(pool, 20 * MIB, 7)), DRY_OK);
        device.number = 1001; /* stream 7 is destroyed */
        struct dry_stream_filter filter = {.covers = is_stream_5};
        assert_int_equal(dry_pool_begin_capture(pool, &filter), DRY_OK);
        (void)!dry_pool_free(pool, a);
        assert_int_equal(dry_pool_alloc(pool, 40 * MIB, 3, &at), DRY_ERR_NO_SPACE);
        assert_int_equal(dry_pool_empty_cache(pool), DRY_OK);
        assert_int_equal(device.waits, 0);
        assert_true(stats_of(pool).num_ooms == 1); /* and no failure of the device's */
        /* The device itself waits for what torch gives back whole. */
        assert_int_equal(dry_pool_alloc(pool, 20 * MIB, 3, &at),
                         placements[p] == DRY_PLACEMENT_PAGED ? DRY_ERR_NO_SPACE
                                                              : DRY_OK);
        assert_int_equal(device.waits, 0);
        assert_int_equal(dry_pool_end_capture(pool), DRY_OK);
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        if (dry_pool_get_block(pool, a, &block) == DRY_OK)
            assert_int_equal(dry_pool_free(pool, a), DRY_OK);
        take(pool, 40 * MIB, 3);
        assert_int_equal(device.waits, 1);
        check(pool);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

static enum dry_status
refuse_to_wait(void *self, uint64_t handle)
{
    (void)self;
    (void)handle;
    return DRY_ERR_SYSTEM;
}

/* Work may go on there: what was freed keeps its pages, and they go when the device waits. */
static void
nothing_is_unmapped_where_the_device_does_not_wait(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct dry_sim *sim = make_sim(64 * MIB);
        struct dry_device inner = dry_sim_get_device(sim);
        struct dry_pool_options o;
        dry_pool_options_init(&o);
        o.device = inner;
        o.placement = placements[p];
        o.conf = placements[p] == DRY_PLACEMENT_TORCH ? "expandable_segments:True" : "";
        struct dry_pool *pool;
        assert_int_equal(dry_pool_create(&o, &pool, NULL), DRY_OK);
        uint64_t a = take(pool, 40 * MIB, 7), b = take(pool, 2 * MIB, 7), reserved;
        assert_int_equal(dry_sim_own(sim, a, 40 * MIB, 7, 1), DRY_OK);
        assert_int_equal(dry_sim_use(sim, 7, a, 40 * MIB, 1), DRY_OK);
        dry_sim_disown(sim, 1);
        assert_int_equal(dry_pool_record_stream(pool, b, 8), DRY_OK);
        assert_int_equal(dry_sim_own(sim, b, 2 * MIB, 7, 2), DRY_OK);
        assert_int_equal(dry_sim_use(sim, 8, b, 2 * MIB, 2), DRY_OK);
        dry_sim_disown(sim, 2);
        assert_int_equal(dry_pool_free(pool, b), DRY_OK);
        assert_int_equal(dry_pool_free(pool, a), DRY_OK);
        pool->device_ops.stream_wait = pool->device_ops.event_wait = refuse_to_wait;
        assert_int_equal(dry_pool_trim(pool, 0, &reserved), DRY_OK);
        assert_true(reserved >= 40 * MIB && dry_sim_get_finding_count(sim) == 0);
        check(pool);
        pool->device_ops = *inner.ops;
        assert_int_equal(dry_pool_trim(pool, 0, &reserved), DRY_OK);
        assert_true(reserved == 0 && dry_sim_get_finding_count(sim) == 0);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

/* --- addresses ---------------------------------------------------------------------------- */

/* Addresses of a private pool: as much as its blocks need, by doubling, not the device's size. */
static void
private_pool_begins_small(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(32 * GIB);
    struct dry_pool *pool = make_pool(sim, DRY_PLACEMENT_PAGED, "");
    struct dry_pool_id id = {0, 1};
    assert_int_equal(dry_pool_open_private(pool, id, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(pool, id, NULL), DRY_OK);
    static const uint64_t reserved[] = {1, 2, 4, 4, 8, 8, 8, 8};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        take(pool, GIB, 0);
        struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
        dry_sim_get_account(sim, &account);
        assert_int_equal(account.reserved_address_bytes, reserved[i] * GIB);
    }
    take(pool, 20 * GIB, 0);
    check(pool);
    dry_pool_destroy(pool);
    dry_sim_destroy(sim);
}

/* --- under the race checker --------------------------------------------------------------- */

#define OWNED 200
#define STREAMS 4

struct owned {
    uint64_t address, size, owner;
};

/* A program of several streams: its work is told to the device, which finds what is early. */
struct program {
    struct dry_sim *sim;
    struct dry_pool *pool;
    struct random random;
    struct owned owned[OWNED];
    size_t count;
    uint64_t next_owner;
};

static void
take_and_use(struct program *p)
{
    static const uint64_t sizes[] = {512, 5000, 70000, 700000, 3 * MIB, 12 * MIB};
    struct owned *o = &p->owned[p->count];
    uint64_t stream = random_below(&p->random, STREAMS);
    o->size = sizes[random_below(&p->random, sizeof sizes / sizeof *sizes)];
    enum dry_status status =
        random_below(&p->random, 10)
            ? dry_pool_alloc(p->pool, o->size, stream, &o->address)
            : dry_pool_alloc_aligned(p->pool, o->size, 1 << 16, stream, &o->address);
    if (status == DRY_ERR_NO_SPACE)
        return;
    assert_int_equal(status, DRY_OK);
    o->owner = ++p->next_owner;
    p->count++;
    assert_int_equal(dry_sim_own(p->sim, o->address, o->size, stream, o->owner), DRY_OK);
    assert_int_equal(dry_sim_use(p->sim, stream, o->address, o->size, o->owner), DRY_OK);
    if (random_below(&p->random, 3))
        return;
    uint64_t other = random_below(&p->random, STREAMS);
    assert_int_equal(dry_sim_stream_waits(p->sim, other, stream), DRY_OK);
    if (random_below(&p->random, 2)) /* the pool need not know */
        assert_int_equal(dry_pool_stream_waits(p->pool, other, stream), DRY_OK);
    assert_int_equal(dry_pool_record_stream(p->pool, o->address, other), DRY_OK);
    assert_int_equal(dry_sim_use(p->sim, other, o->address, o->size, o->owner), DRY_OK);
}

static void
give_one_back(struct program *p)
{
    if (p->count == 0)
        return;
    struct owned *o = &p->owned[random_below(&p->random, p->count)];
    dry_sim_disown(p->sim, o->owner);
    assert_int_equal(dry_pool_free(p->pool, o->address), DRY_OK);
    *o = p->owned[--p->count];
}

static void
order_streams(struct program *p)
{
    uint64_t stream = random_below(&p->random, STREAMS);
    uint64_t on = random_below(&p->random, STREAMS);
    switch (random_below(&p->random, 5)) {
    case 0:
        dry_sim_complete_stream(p->sim, stream);
        break;
    case 1:
        dry_sim_advance_stream(p->sim, stream, 2);
        break;
    case 2:
        assert_int_equal(dry_sim_stream_waits(p->sim, stream, on), DRY_OK);
        assert_int_equal(dry_pool_stream_waits(p->pool, stream, on), DRY_OK);
        break;
    case 3:
        assert_int_equal(dry_pool_trim(p->pool, 64 * MIB, NULL), DRY_OK);
        break;
    default:
        assert_int_equal(dry_pool_empty_cache(p->pool), DRY_OK);
    }
}

static void
run_checked(enum dry_placement placement, const char *conf, uint64_t seed)
{
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = 600 * MIB;
    so.check = true;
    struct program p = {0};
    random_init(&p.random, seed);
    assert_int_equal(dry_sim_create(&so, &p.sim, NULL), DRY_OK);
    p.pool = make_pool(p.sim, placement, conf);
    struct dry_pool_id private = {0, 1};
    assert_int_equal(dry_pool_open_private(p.pool, private, seed % 8), DRY_OK);
    for (int i = 0; i < 4000; i++) {
        uint64_t what = random_below(&p.random, 100);
        if (i % 400 == 300)
            assert_int_equal(dry_pool_begin_private(p.pool, private, NULL), DRY_OK);
        else if (i % 400 == 350)
            assert_int_equal(dry_pool_end_private(p.pool, private), DRY_OK);
        if (what < 8)
            order_streams(&p);
        else if (p.count < OWNED && what < 54)
            take_and_use(&p);
        else
            give_one_back(&p);
    }
    check(p.pool);
    while (p.count > 0)
        give_one_back(&p);
    dry_pool_destroy(p.pool);
    struct dry_sim_finding finding = DRY_INIT(struct dry_sim_finding);
    if (dry_sim_get_finding(p.sim, 0, &finding) == DRY_OK)
        fail_msg("seed %u: %s", (unsigned)seed, finding.text);
    dry_sim_destroy(p.sim);
}

static void
nothing_is_used_again_too_early(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run_checked(DRY_PLACEMENT_PAGED, "", seed);
        run_checked(DRY_PLACEMENT_TORCH, "", seed);
        run_checked(DRY_PLACEMENT_TORCH, "expandable_segments:True", seed);
    }
}

/* --- limits ------------------------------------------------------------------------------- */

static void
refuse_beyond_limit(struct fixture *f)
{
    uint64_t at = 0;
    assert_int_equal(dry_pool_set_limit(f->pool, 100 * MIB), DRY_OK);
    assert_int_equal(dry_pool_alloc(f->pool, 102 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    uint64_t a = take(f->pool, 80 * MIB, 0);
    assert_int_equal(dry_pool_alloc(f->pool, 30 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_set_limit(f->pool, UINT64_MAX), DRY_OK);
    uint64_t b = take(f->pool, 300 * MIB, 0);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
    assert_int_equal(dry_pool_free(f->pool, b), DRY_OK);
    assert_int_equal(dry_pool_empty_cache(f->pool), DRY_OK);
    assert_int_equal(dry_pool_set_fraction(f->pool, 0.25), DRY_OK);
    assert_int_equal(dry_pool_alloc(f->pool, 258 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_set_limit(f->pool, 512 * MIB), DRY_OK);
    assert_int_equal(dry_pool_alloc(f->pool, 258 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_set_fraction(f->pool, 1.0), DRY_OK);
    take(f->pool, 258 * MIB, 0);
    assert_int_equal(dry_pool_set_fraction(f->pool, 1.5), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_set_fraction(f->pool, -0.5), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_set_fraction(f->pool, (double)NAN), DRY_ERR_ARGUMENT);
}

static void
limits_hold(void **state)
{
    (void)state;
    with_each(refuse_beyond_limit, GIB);
}

/* What is asked would be within it, but not the pages under it. */
static void
limit_is_of_whole_pages(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(GIB);
    struct dry_pool *pool =
        make_pool(sim, DRY_PLACEMENT_TORCH, "expandable_segments:True");
    uint64_t at;
    assert_int_equal(dry_pool_set_limit(pool, 12 * MIB), DRY_OK);
    assert_int_equal(dry_pool_alloc(pool, 11 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_set_limit(pool, 20 * MIB), DRY_OK);
    take(pool, 11 * MIB, 0);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    assert_true(account.used_bytes == 20 * MIB);
    dry_pool_destroy(pool);
    dry_sim_destroy(sim);
}

static void
fraction_of_the_options_is_lifted(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct dry_sim *sim = make_sim(GIB);
        struct dry_pool *pool =
            make_pool(sim, placements[p], "per_process_memory_fraction:0.25");
        uint64_t at;
        assert_int_equal(dry_pool_alloc(pool, 300 * MIB, 0, &at), DRY_ERR_NO_SPACE);
        assert_int_equal(dry_pool_set_fraction(pool, 1), DRY_OK);
        take(pool, 300 * MIB, 0);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

/* Each page of small blocks has one in use; the holes between large ones serve small requests. */
static void
small_request_takes_what_is_left_of_large_ones(void **state)
{
    (void)state;
    enum { COUNT = 64 * 16 };
    struct dry_sim *sim = make_sim(128 * MIB);
    struct dry_pool *pool = make_pool(sim, DRY_PLACEMENT_PAGED, "");
    uint64_t at[COUNT], small[64];
    for (size_t i = 0; i < COUNT; i++)
        at[i] = take(pool, 128 * KIB, 0);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 16)
            assert_int_equal(dry_pool_free(pool, at[i]), DRY_OK);
    }
    for (size_t i = 0; i < 64; i++) {
        small[i] = take(pool, 1, 0);
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        assert_int_equal(dry_pool_get_block(pool, small[i], &block), DRY_OK);
        assert_true(block.size == 64 * KIB + 512 && block.requested == 1);
    }
    check(pool);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(dry_pool_free(pool, small[i]), DRY_OK);
    for (size_t i = 0; i < COUNT; i += 16)
        assert_int_equal(dry_pool_free(pool, at[i]), DRY_OK);
    check(pool);
    take(pool, 128 * MIB, 0);
    dry_pool_destroy(pool);
    dry_sim_destroy(sim);
}

static void
trim_down(struct fixture *f)
{
    uint64_t kept = take(f->pool, 40 * MIB, 0), at[4], reserved = 0;
    for (size_t i = 0; i < 4; i++)
        at[i] = take(f->pool, (20 + 10 * i) * MIB, 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(dry_pool_free(f->pool, at[i]), DRY_OK);
    assert_int_equal(dry_pool_trim(f->pool, UINT64_MAX, &reserved), DRY_OK);
    assert_true(reserved == (uint64_t)stats_of(f->pool).reserved_bytes.all.current);
    uint64_t before = reserved;
    assert_true(before >= 180 * MIB);
    assert_int_equal(dry_pool_trim(f->pool, 110 * MIB, &reserved), DRY_OK);
    assert_true(reserved <= 110 * MIB && reserved >= 40 * MIB);
    assert_int_equal(dry_pool_trim(f->pool, 0, &reserved), DRY_OK);
    assert_true(reserved >= 40 * MIB && reserved < 64 * MIB);
    assert_int_equal(dry_pool_trim(f->pool, 0, NULL), DRY_OK);
    assert_int_equal(dry_pool_free(f->pool, kept), DRY_OK);
    assert_int_equal(dry_pool_trim(f->pool, 0, &reserved), DRY_OK);
    assert_true(reserved == 0);
}

#define ISLANDS 600

/* More free blocks than a request would look at for its pages, none beside another. */
static void
trim_islands(struct fixture *f)
{
    static const uint64_t bytes = 20 * MIB;
    uint64_t at[ISLANDS], reserved;
    for (size_t i = 0; i < ISLANDS; i++)
        at[i] = take(f->pool, bytes, 0);
    for (size_t i = 0; i < ISLANDS; i += 2)
        assert_int_equal(dry_pool_free(f->pool, at[i]), DRY_OK);
    assert_int_equal(dry_pool_trim(f->pool, 0, &reserved), DRY_OK);
    assert_true(reserved == ISLANDS / 2 * bytes);
}

static void
trim_gives_back_however_much_there_is(void **state)
{
    (void)state;
    with_each(trim_islands, 16 * GIB);
}

static void
trim_gives_back_down_to_its_target(void **state)
{
    (void)state;
    with_each(trim_down, GIB);
}

/* --- callbacks ---------------------------------------------------------------------------- */

struct helper {
    struct dry_pool *pool;
    uint64_t address; /* freed when asked; 0: cannot help */
    unsigned asked;
    uint64_t size, stream;
    bool lies; /* says it helped and did not */
};

static bool
help(void *self, uint64_t size, uint64_t stream)
{
    struct helper *h = self;
    h->asked++;
    h->size = size;
    h->stream = stream;
    if (!h->address)
        return h->lies;
    assert_int_equal(dry_pool_free(h->pool, h->address), DRY_OK);
    h->address = 0;
    return true;
}

static void
ask_callbacks(struct fixture *f)
{
    struct helper useless = {.pool = f->pool}, liar = {.pool = f->pool, .lies = true},
                  good = {.pool = f->pool}, late = {.pool = f->pool};
    good.address = take(f->pool, 600 * MIB, 0);
    late.address = take(f->pool, 100 * MIB, 0);
    assert_int_equal(dry_pool_add_oom_callback(f->pool, NULL, NULL), DRY_ERR_ARGUMENT);
    struct helper *all[] = {&useless, &liar, &good, &late};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(dry_pool_add_oom_callback(f->pool, help, all[i]), DRY_OK);
    assert_int_equal(dry_pool_add_oom_callback(f->pool, help, &good), DRY_ERR_ARGUMENT);
    uint64_t a = take(f->pool, 500 * MIB, 4);
    assert_true(useless.asked == 1 && liar.asked == 1 && good.asked == 1);
    assert_true(late.asked == 0);
    assert_true(good.size == 500 * MIB && good.stream == 4);
    assert_int_equal(stats_of(f->pool).num_ooms, 0);
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    dry_pool_get_counters(f->pool, &counters);
    assert_true(counters.oom_callbacks_helped == 1);

    uint64_t at = 5;
    assert_int_equal(dry_pool_remove_oom_callback(f->pool, help, &liar), DRY_OK);
    assert_int_equal(dry_pool_remove_oom_callback(f->pool, help, &liar),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_alloc(f->pool, 900 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_true(at == 5);
    assert_true(useless.asked == 2 && liar.asked == 1 && good.asked == 2);
    assert_true(late.asked == 1);
    assert_int_equal(stats_of(f->pool).num_ooms, 1);
    assert_int_equal(dry_pool_alloc(f->pool, 900 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(stats_of(f->pool).num_ooms, 2);
    dry_pool_reset_accumulated(f->pool);
    assert_int_equal(stats_of(f->pool).num_ooms, 0);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
}

static void
callbacks_free_and_the_request_succeeds(void **state)
{
    (void)state;
    with_each(ask_callbacks, GIB);
}

static void
fill_callbacks(struct fixture *f)
{
    struct helper helpers[9];
    for (size_t i = 0; i < 9; i++) {
        helpers[i] = (struct helper){.pool = f->pool};
        assert_int_equal(dry_pool_add_oom_callback(f->pool, help, &helpers[i]),
                         i < 8 ? DRY_OK : DRY_ERR_ARGUMENT);
    }
}

static void
eight_callbacks_are_the_most(void **state)
{
    (void)state;
    with_each(fill_callbacks, GIB);
}

/* --- events ------------------------------------------------------------------------------- */

struct heard {
    unsigned counts[DRY_ACTION_OOM + 1];
    struct dry_pool_event last;
};

static void
hear(void *self, const struct dry_pool_event *event)
{
    struct heard *h = self;
    assert_true(event->action <= DRY_ACTION_OOM);
    assert_true(event->time_us > 0);
    h->counts[event->action]++;
    h->last = *event;
}

static void
observer_hears_everything(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct heard heard = {0};
        struct dry_sim *sim = make_sim(100 * MIB);
        struct dry_pool_options o;
        dry_pool_options_init(&o);
        o.device = dry_sim_get_device(sim);
        o.placement = placements[p];
        o.observe = hear;
        o.observe_self = &heard;
        struct dry_pool *pool;
        assert_int_equal(dry_pool_create(&o, &pool, NULL), DRY_OK);
        uint64_t a = take(pool, 30 * MIB, 2);
        assert_true(heard.counts[DRY_ACTION_ALLOC] == 1);
        assert_true(heard.last.action == DRY_ACTION_ALLOC && heard.last.address == a);
        assert_true(heard.last.size == 30 * MIB && heard.last.stream == 2);
        assert_true(heard.last.context == DRY_NONE);
        struct helper helper = {.pool = pool, .address = a};
        assert_int_equal(dry_pool_add_oom_callback(pool, help, &helper), DRY_OK);
        uint64_t b = take(pool, 90 * MIB, 2), at;
        assert_true(heard.counts[DRY_ACTION_OOM] == 0); /* it was helped */
        assert_true(heard.counts[DRY_ACTION_FREE_REQUESTED] == 1);
        assert_int_equal(dry_pool_alloc(pool, 90 * MIB, 2, &at), DRY_ERR_NO_SPACE);
        assert_true(heard.counts[DRY_ACTION_OOM] == 1);
        assert_true(heard.last.action == DRY_ACTION_OOM && heard.last.size == 90 * MIB);
        assert_int_equal(dry_pool_free(pool, b), DRY_OK);
        assert_true(heard.counts[DRY_ACTION_FREE_COMPLETED] == 2);
        dry_pool_destroy(pool);
        dry_sim_destroy(sim);
    }
}

/* A callback that begins the history, and does not help. */
static bool
begin_history(void *self, uint64_t size, uint64_t stream)
{
    (void)size;
    (void)stream;
    struct dry_pool_history_options options;
    dry_pool_history_options_init(&options);
    assert_int_equal(dry_pool_record_history(self, &options), DRY_OK);
    return false;
}

static enum dry_status
hear_history(void *self, const struct dry_pool_event *event)
{
    hear(self, event);
    return DRY_OK;
}

/* Nobody listened when it failed: what is heard from then on is true, and no event is made up. */
static void
listen_too_late(struct fixture *f)
{
    struct heard heard = {0};
    uint64_t at;
    assert_int_equal(dry_pool_add_oom_callback(f->pool, begin_history, f->pool), DRY_OK);
    assert_int_equal(dry_pool_alloc(f->pool, 4 * GIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_walk_history(f->pool, hear_history, &heard), DRY_OK);
    for (size_t i = 0; i < DRY_ACTION_OOM; i++)
        assert_int_equal(heard.counts[i], 0);
    assert_int_equal(stats_of(f->pool).num_ooms, 1);
}

static void
callback_may_begin_a_history(void **state)
{
    (void)state;
    with_each(listen_too_late, GIB);
}

/* --- statistics --------------------------------------------------------------------------- */

static void
reset_statistics(struct fixture *f)
{
    uint64_t a = take(f->pool, 30 * MIB, 0), b = take(f->pool, 1000, 0);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
    assert_int_equal(dry_pool_empty_cache(f->pool), DRY_OK);
    struct dry_stats s = stats_of(f->pool);
    assert_true(s.allocated_bytes.all.peak >= (int64_t)(30 * MIB));
    int64_t reserved_peak = s.reserved_bytes.all.peak;
    dry_pool_reset_peaks(f->pool);
    s = stats_of(f->pool);
    assert_int_equal(s.allocated_bytes.all.peak, s.allocated_bytes.all.current);
    assert_int_equal(s.reserved_bytes.all.peak, s.reserved_bytes.all.current);
    assert_int_equal(s.allocation.all.allocated, 2);
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    dry_pool_get_counters(f->pool, &counters);
    assert_true(counters.reserved_peak_bytes == (uint64_t)reserved_peak);
    dry_pool_reset_accumulated(f->pool);
    s = stats_of(f->pool);
    assert_int_equal(s.allocation.all.allocated, 0);
    assert_int_equal(s.allocation.all.freed, 0);
    assert_int_equal(s.allocation.all.current, 1);
    assert_int_equal(s.num_device_alloc, 0);
    assert_int_equal(s.num_sync_all_streams, 0);
    assert_int_equal(dry_pool_free(f->pool, b), DRY_OK);
}

static void
statistics_are_reset(void **state)
{
    (void)state;
    with_each(reset_statistics, GIB);
}

struct seen {
    size_t segments, active, pending;
    uint64_t bytes, last_end;
};

static enum dry_status
see(void *self, const struct dry_pool_segment *segment, const struct dry_pool_part *parts,
    size_t count)
{
    struct seen *s = self;
    assert_true(segment->address >= s->last_end);
    s->last_end = segment->address + segment->size;
    s->segments++;
    s->bytes += segment->size;
    uint64_t at = segment->address;
    for (size_t i = 0; i < count; i++) {
        assert_true(parts[i].address == at);
        at += parts[i].size;
        s->active += parts[i].is_active;
        s->pending += parts[i].is_pending;
    }
    assert_true(at == s->last_end);
    return DRY_OK;
}

static enum dry_status
stop_at_once(void *self, const struct dry_pool_segment *segment,
             const struct dry_pool_part *parts, size_t count)
{
    (void)segment;
    (void)parts;
    (void)count;
    ++*(unsigned *)self;
    return DRY_ERR_CANCELLED;
}

static void
walk_through(struct fixture *f)
{
    for (uint64_t stream = 0; stream < 3; stream++) {
        take(f->pool, 1000, stream);
        take(f->pool, 3 * MIB, stream);
        uint64_t a = take(f->pool, 30 * MIB, stream);
        assert_int_equal(dry_pool_record_stream(f->pool, a, 99), DRY_OK);
        assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
    }
    struct seen seen = {0};
    assert_int_equal(dry_pool_walk(f->pool, see, &seen), DRY_OK);
    assert_true(seen.active == 6 && seen.pending == 3 && seen.segments >= 2);
    assert_true(seen.bytes == (uint64_t)stats_of(f->pool).reserved_bytes.all.current);
    unsigned visits = 0;
    assert_int_equal(dry_pool_walk(f->pool, stop_at_once, &visits), DRY_ERR_CANCELLED);
    assert_true(visits == 1);
}

static void
walk_shows_segments_in_order(void **state)
{
    (void)state;
    with_each(walk_through, GIB);
}

/* --- private pools and captures ----------------------------------------------------------- */

static bool
covers_one(void *self, uint64_t stream)
{
    return stream == *(uint64_t *)self;
}

static struct dry_pool_block
block_of(struct dry_pool *pool, uint64_t address)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_get_block(pool, address, &block), DRY_OK);
    return block;
}

static void
use_private(struct fixture *f)
{
    struct dry_pool *pool = f->pool;
    struct dry_pool_id id = {0, 7}, inner = {3, 0}, none = {0, 0};
    uint64_t one = 1, two = 2;
    struct dry_stream_filter filter = {covers_one, &one};
    struct dry_stream_filter inner_filter = {covers_one, &two};
    assert_int_equal(dry_pool_begin_private(pool, id, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_release_private(pool, id), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_open_private(pool, none, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_open_private(pool, id, 8), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_open_private(pool, id, 0), DRY_OK);
    assert_int_equal(dry_pool_open_private(pool, inner, DRY_POOL_NO_REMAP), DRY_OK);
    assert_int_equal(dry_pool_begin_private(pool, id, &filter), DRY_OK);
    assert_int_equal(dry_pool_begin_private(pool, id, NULL), DRY_ERR_ARGUMENT);
    uint64_t a = take(pool, MIB / 4, 1), b = take(pool, MIB / 4, 2);
    assert_true(block_of(pool, a).pool.b == 7);
    assert_true(block_of(pool, b).pool.b == 0);
    assert_int_equal(dry_pool_begin_private(pool, inner, &inner_filter), DRY_OK);
    uint64_t c = take(pool, MIB / 4, 2), d = take(pool, MIB / 4, 1);
    assert_true(block_of(pool, c).pool.a == 3);
    assert_true(block_of(pool, d).pool.b == 7);
    assert_int_equal(dry_pool_end_private(pool, id), DRY_OK);
    assert_int_equal(dry_pool_end_private(pool, id), DRY_ERR_ARGUMENT);
    uint64_t e = take(pool, MIB / 4, 1);
    assert_true(block_of(pool, e).pool.b == 0);
    assert_int_equal(dry_pool_end_private(pool, inner), DRY_OK);
    check(pool);
    uint64_t blocks[] = {a, b, c, d, e};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(dry_pool_free(pool, blocks[i]), DRY_OK);
    /* Cached private memory stays while the pool has users, and goes when it has none. */
    assert_int_equal(dry_pool_empty_cache(pool), DRY_OK);
    assert_true(stats_of(pool).reserved_bytes.all.current > 0);
    assert_int_equal(dry_pool_release_private(pool, id), DRY_OK);
    assert_int_equal(dry_pool_release_private(pool, inner), DRY_OK);
    assert_int_equal(dry_pool_release_private(pool, inner), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_empty_cache(pool), DRY_OK);
    assert_true(stats_of(pool).reserved_bytes.all.current == 0);
}

/* The default pool's cache stays where memory belongs to pools: in placement torch. */
static void
empty_one_private(struct fixture *f)
{
    struct dry_pool *pool = f->pool;
    struct dry_pool_id id = {0, 7};
    bool is_torch = f->placement == DRY_PLACEMENT_TORCH;
    assert_int_equal(dry_pool_free(pool, take(pool, MIB, 1)), DRY_OK);
    int64_t cached = stats_of(pool).reserved_bytes.all.current;
    assert_int_equal(dry_pool_open_private(pool, id, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(pool, id, NULL), DRY_OK);
    assert_int_equal(dry_pool_free(pool, take(pool, 30 * MIB, 1)), DRY_OK);
    assert_int_equal(dry_pool_end_private(pool, id), DRY_OK);
    assert_int_equal(dry_pool_empty_private(pool, id), DRY_OK);
    assert_true(stats_of(pool).reserved_bytes.all.current > cached);
    assert_int_equal(dry_pool_release_private(pool, id), DRY_OK);
    assert_int_equal(dry_pool_empty_private(pool, id), DRY_OK);
    assert_true(stats_of(pool).reserved_bytes.all.current == (is_torch ? cached : 0));
    check(pool);
}

static void
end_of_a_private_pool_takes_its_memory(void **state)
{
    (void)state;
    with_each(empty_one_private, GIB);
}

static void
private_pools_take_what_their_filters_cover(void **state)
{
    (void)state;
    with_each(use_private, GIB);
}

static void
serve_on_oom(struct fixture *f)
{
    struct dry_pool_id id = {0, 1};
    assert_int_equal(dry_pool_open_private(f->pool, id, DRY_POOL_USE_ON_OOM), DRY_OK);
    assert_int_equal(dry_pool_begin_private(f->pool, id, NULL), DRY_OK);
    uint64_t a = take(f->pool, 900 * MIB, 0), at;
    assert_int_equal(dry_pool_end_private(f->pool, id), DRY_OK);
    assert_int_equal(dry_pool_alloc(f->pool, 400 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
    uint64_t b = take(f->pool, 400 * MIB, 0); /* as it is, or its pages */
    assert_true(f->placement == DRY_PLACEMENT_PAGED || (b >= a && b < a + 900 * MIB));
    assert_int_equal(dry_pool_free(f->pool, b), DRY_OK);
}

static void
private_memory_serves_before_an_oom(void **state)
{
    (void)state;
    with_each(serve_on_oom, GIB);
}

static void
capture_streams(struct fixture *f)
{
    struct dry_pool *pool = f->pool;
    uint64_t one = 1;
    struct dry_stream_filter filter = {covers_one, &one};
    assert_int_equal(dry_pool_end_capture(pool), DRY_ERR_ARGUMENT);
    uint64_t a = take(pool, 40 * MIB, 1), b = take(pool, 40 * MIB, 3);
    struct dry_sim_account before = DRY_INIT(struct dry_sim_account);
    struct dry_sim_account after = DRY_INIT(struct dry_sim_account);
    assert_int_equal(dry_pool_begin_capture(pool, &filter), DRY_OK);
    assert_int_equal(dry_pool_begin_capture(pool, &filter), DRY_OK);
    dry_sim_get_account(f->sim, &before);
    assert_int_equal(dry_pool_record_stream(pool, a, 2), DRY_OK);
    assert_int_equal(dry_pool_free(pool, a), DRY_OK);
    dry_sim_complete_stream(f->sim, 2);
    assert_true(take(pool, 40 * MIB, 1) != a); /* held until no capture is left */
    assert_int_equal(dry_pool_end_capture(pool), DRY_OK);
    assert_true(take(pool, 40 * MIB, 1) != a);
    dry_sim_get_account(f->sim, &after);
    assert_true(before.calls[DRY_SIM_EVENT_RECORD] == after.calls[DRY_SIM_EVENT_RECORD]);
    assert_true(before.calls[DRY_SIM_EVENT_QUERY] == after.calls[DRY_SIM_EVENT_QUERY]);
    assert_int_equal(dry_pool_end_capture(pool), DRY_OK);
    assert_int_equal(dry_pool_end_capture(pool), DRY_ERR_ARGUMENT);
    uint64_t c = take(pool, 512, 1); /* records the event that was held back */
    dry_sim_complete_stream(f->sim, 2);
    assert_true(take(pool, 40 * MIB, 1) == a);
    assert_int_equal(dry_pool_free(pool, b), DRY_OK);
    assert_int_equal(dry_pool_free(pool, c), DRY_OK);
}

/* No event could be recorded when the capture ended, and no request came in between. */
static void
release_after_capture(struct fixture *f)
{
    uint64_t a = take(f->pool, 40 * MIB, 1);
    assert_int_equal(dry_pool_begin_capture(f->pool, NULL), DRY_OK);
    assert_int_equal(dry_pool_record_stream(f->pool, a, 2), DRY_OK);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
    dry_sim_fail_at(f->sim, 0);
    assert_int_equal(dry_pool_end_capture(f->pool), DRY_OK);
    dry_sim_fail_at(f->sim, UINT64_MAX);
    assert_int_equal(dry_pool_empty_cache(f->pool), DRY_OK);
    struct dry_stats stats;
    dry_pool_get_stats(f->pool, &stats);
    assert_int_equal(stats.reserved_bytes.all.current, 0);
}

static void
captures_hold_frees_back(void **state)
{
    (void)state;
    with_each(capture_streams, GIB);
    with_each(release_after_capture, GIB);
}

/* --- fork --------------------------------------------------------------------------------- */

static int
act_in_child(struct dry_pool *pool, uint64_t address)
{
    struct dry_stats stats;
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    uint64_t at;
    struct dry_pool_id id = {0, 1};
    int wrong = 0;
    wrong += dry_pool_alloc(pool, 512, 0, &at) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_alloc_aligned(pool, 512, 4096, 0, &at) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_free(pool, address) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_record_stream(pool, address, 1) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_stream_waits(pool, 1, 2) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_get_block(pool, address, &block) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_set_fraction(pool, 0.5) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_set_limit(pool, 1) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_empty_cache(pool) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_trim(pool, 0, NULL) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_open_private(pool, id, 0) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_begin_private(pool, id, NULL) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_end_private(pool, id) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_release_private(pool, id) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_begin_capture(pool, NULL) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_end_capture(pool) != DRY_ERR_UNSUPPORTED;
    wrong += dry_pool_check(pool, NULL) != DRY_ERR_UNSUPPORTED;
    dry_pool_get_stats(pool, &stats);
    wrong += stats.allocation.all.current != 0;
    return wrong;
}

static void
fork_with_blocks(struct fixture *f)
{
    uint64_t a = take(f->pool, 40 * MIB, 0), b = take(f->pool, 40 * MIB, 0);
    assert_int_equal(dry_pool_record_stream(f->pool, b, 1), DRY_OK);
    assert_int_equal(dry_pool_free(f->pool, b), DRY_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct dry_sim_account before = DRY_INIT(struct dry_sim_account);
        struct dry_sim_account after = DRY_INIT(struct dry_sim_account);
        dry_sim_get_account(f->sim, &before);
        int wrong = act_in_child(f->pool, a);
        dry_pool_destroy(f->pool);
        dry_sim_get_account(f->sim, &after);
        wrong += memcmp(&before, &after, sizeof before) != 0; /* left alone */
        _exit(wrong);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    assert_int_equal(dry_pool_free(f->pool, a), DRY_OK);
}

static void
child_of_a_fork_may_only_destroy(void **state)
{
    (void)state;
    with_each(fork_with_blocks, GIB);
}

struct forking {
    struct dry_pool *pool;
    struct failing_memory memory;
};

/* Told amid a call: what the pool has noted may be half of it. */
static void
fork_and_destroy(void *self, const struct dry_pool_event *event)
{
    struct forking *f = self;
    (void)event;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        size_t before = f->memory.live_bytes;
        dry_pool_destroy(f->pool);
        _exit(f->memory.live_bytes != before);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

static void
child_of_a_fork_amid_a_call_leaves_the_records(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        struct forking f = {.pool = NULL};
        struct dry_memory memory = failing_memory_init(&f.memory, SIZE_MAX);
        struct dry_sim *sim = make_sim(GIB);
        struct dry_pool_options o;
        dry_pool_options_init(&o);
        o.memory = &memory;
        o.device = dry_sim_get_device(sim);
        o.placement = placements[p];
        o.observe = fork_and_destroy;
        o.observe_self = &f;
        assert_int_equal(dry_pool_create(&o, &f.pool, NULL), DRY_OK);
        uint64_t a = take(f.pool, 40 * MIB, 0);
        assert_int_equal(dry_pool_free(f.pool, a), DRY_OK);
        check(f.pool);
        dry_pool_destroy(f.pool);
        dry_sim_destroy(sim);
        failing_memory_finish(&f.memory);
    }
}

/* --- failures ----------------------------------------------------------------------------- */

#define HELD 12

struct run {
    struct dry_pool *pool;
    uint64_t at[HELD];
    size_t count;
    size_t failures;
};

static void
note(struct run *run, enum dry_status status)
{
    if (status != DRY_OK && status != DRY_ERR_MEMORY && status != DRY_ERR_NO_SPACE &&
        status != DRY_ERR_SYSTEM)
        fail_msg("a failure becomes %s", dry_status_name(status));
    run->failures += status != DRY_OK;
}

static void
try_take(struct run *run, uint64_t size, uint64_t alignment, uint64_t stream)
{
    uint64_t address = 0;
    enum dry_status status =
        alignment ? dry_pool_alloc_aligned(run->pool, size, alignment, stream, &address)
                  : dry_pool_alloc(run->pool, size, stream, &address);
    note(run, status);
    if (status == DRY_OK)
        run->at[run->count++] = address;
}

static enum dry_status
count_segment(void *self, const struct dry_pool_segment *segment,
              const struct dry_pool_part *parts, size_t count)
{
    (void)segment;
    (void)parts;
    *(size_t *)self += count;
    return DRY_OK;
}

/* Where a step fails, the steps that rest on it are left out. */
static void
call_everything(struct run *run)
{
    static const struct dry_pool_id id = {0, 1};
    uint64_t one = 1;
    struct dry_stream_filter filter = {covers_one, &one};
    size_t seen = 0;
    for (int round = 0; round < 2; round++) {
        enum dry_status opened = dry_pool_open_private(run->pool, id, 0);
        note(run, opened);
        enum dry_status begun = DRY_ERR_MEMORY;
        if (opened == DRY_OK)
            note(run, begun = dry_pool_begin_private(run->pool, id, &filter));
        try_take(run, 700, 0, 0);
        try_take(run, 3 * MIB, 0, 1);
        try_take(run, 40 * MIB, 0, 2);
        try_take(run, 100, 65536, 0);
        enum dry_status captured = dry_pool_begin_capture(run->pool, &filter);
        note(run, captured);
        if (run->count > 0) {
            note(run, dry_pool_record_stream(run->pool, run->at[run->count - 1], 5));
            note(run, dry_pool_record_stream(run->pool, run->at[0], 1));
        }
        note(run, dry_pool_walk(run->pool, count_segment, &seen));
        if (captured == DRY_OK)
            note(run, dry_pool_end_capture(run->pool));
        if (begun == DRY_OK)
            note(run, dry_pool_end_private(run->pool, id));
        for (size_t left = run->count; left-- > 0;) {
            enum dry_status status = dry_pool_free(run->pool, run->at[left]);
            note(run, status);
            if (status == DRY_OK)
                run->at[left] = run->at[--run->count];
        }
        if (opened == DRY_OK)
            note(run, dry_pool_release_private(run->pool, id));
        note(run, dry_pool_trim(run->pool, 10 * MIB, NULL));
        note(run, dry_pool_empty_cache(run->pool));
    }
}

/* One run in which the n-th request for memory, or call of the device, is refused. */
static bool
run_and_fail(enum dry_placement placement, size_t n, bool device_fails)
{
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, device_fails ? SIZE_MAX : n);
    struct dry_sim *sim = make_sim(GIB);
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = dry_sim_get_device(sim);
    o.memory = &memory;
    o.placement = placement;
    struct run run = {0};
    struct dry_error err;
    enum dry_status status = dry_pool_create(&o, &run.pool, &err);
    if (status == DRY_OK) {
        if (device_fails)
            dry_sim_fail_at(sim, n);
        call_everything(&run);
        if (device_fails)
            dry_sim_fail_at(sim, UINT64_MAX);
        bool failed = fm.failed; /* to look at it takes memory too */
        fm.left = SIZE_MAX;
        fm.failed = false;
        check(run.pool);
        fm.failed = failed;
        dry_pool_destroy(run.pool);
    } else {
        assert_int_equal(status, DRY_ERR_MEMORY);
        run.failures++;
    }
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    assert_true(account.used_bytes == 0 && account.reserved_address_bytes == 0);
    assert_true(account.events_live == 0 && account.pages_live == 0);
    bool failed = device_fails ? account.failures > 0 : fm.failed;
    failing_memory_finish(&fm);
    dry_sim_destroy(sim);
    return failed;
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        size_t n = 0;
        while (run_and_fail(placements[p], n, false))
            n++;
        assert_true(n > 20);
    }
}

static void
every_call_of_the_device_may_fail(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACEMENTS; p++) {
        size_t n = 0;
        while (run_and_fail(placements[p], n, true))
            n++;
        assert_true(n > 5);
    }
}

/* --- options ------------------------------------------------------------------------------ */

static void
bad_options_are_refused(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(GIB);
    struct dry_pool *pool = NULL;
    struct dry_pool_options o;
    struct dry_error err;
    dry_pool_options_init(&o);
    assert_int_equal(dry_pool_create(&o, &pool, &err), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_create(NULL, &pool, &err), DRY_ERR_ARGUMENT);
    o.device = dry_sim_get_device(sim);
    o.placement = DRY_PLACEMENT_TORCH;
    o.conf = "no_such_option:1";
    assert_int_equal(dry_pool_create(&o, &pool, &err), DRY_ERR_ARGUMENT);
    o.conf = "";
    o.compat = "1.13";
    assert_int_equal(dry_pool_create(&o, &pool, &err), DRY_ERR_ARGUMENT);
    o.compat = "99.0";
    assert_int_equal(dry_pool_create(&o, &pool, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "from 2.0 to 2.15"));
    o.compat = "2.6";
    o.placement = (enum dry_placement)9;
    assert_int_equal(dry_pool_create(&o, &pool, &err), DRY_ERR_UNSUPPORTED);
    o.placement = DRY_PLACEMENT_TORCH;
    assert_int_equal(dry_pool_create(&o, &pool, &err), DRY_OK);
    dry_pool_destroy(pool);
    dry_pool_destroy(NULL);
    dry_sim_destroy(sim);
}

/* Options as PyTorch reads them reach the place: a fraction limits, expandable maps. */
static void
conf_reaches_the_place(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(GIB);
    struct dry_pool *pool =
        make_pool(sim, DRY_PLACEMENT_TORCH,
                  "expandable_segments:True,per_process_memory_fraction:0.5");
    uint64_t a = take(pool, 100 * MIB, 0), at;
    assert_int_equal(dry_pool_alloc(pool, 500 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    assert_true(account.calls[DRY_SIM_MAP] > 0 && account.calls[DRY_SIM_ALLOC] == 0);
    assert_int_equal(dry_pool_set_limit(pool, 2 * GIB), DRY_OK); /* the smaller counts */
    assert_int_equal(dry_pool_alloc(pool, 500 * MIB, 0, &at), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_free(pool, a), DRY_OK);
    dry_pool_destroy(pool);
    dry_sim_destroy(sim);
}

static void
pools_on_several_devices_do_not_mix(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    struct dry_sim *sims[COUNT];
    struct dry_pool *pools[COUNT];
    uint64_t at[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sims[i] = make_sim((i + 1) * 100 * MIB);
        pools[i] = make_pool(sims[i], placements[i % PLACEMENTS], "");
        at[i] = take(pools[i], (i + 1) * 80 * MIB, i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        struct dry_pool *other = pools[(i + 1) % COUNT];
        uint64_t size = block_of(pools[i], at[i]).requested;
        assert_true(size == (i + 1) * 80 * MIB);
        if (at[i] != at[(i + 1) % COUNT]) /* devices may hand out the same addresses */
            assert_int_equal(dry_pool_free(other, at[i]), DRY_ERR_ARGUMENT);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(dry_pool_free(pools[i], at[i]), DRY_OK);
        dry_pool_destroy(pools[i]);
        dry_sim_destroy(sims[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go),
        cmocka_unit_test(addresses_of_no_block_are_refused),
        cmocka_unit_test(nothing_is_address_zero),
        cmocka_unit_test(addresses_are_aligned_as_asked),
        cmocka_unit_test(blocks_are_described),
        cmocka_unit_test(thousands_are_told_apart),
        cmocka_unit_test(blocks_wait_for_their_streams),
        cmocka_unit_test(time_of_the_driver_is_told),
        cmocka_unit_test(handle_used_again_is_another_stream),
        cmocka_unit_test(stream_that_is_gone_gives_its_memory_back),
        cmocka_unit_test(handle_given_away_meanwhile_is_noticed),
        cmocka_unit_test(capture_is_no_time_to_wait_for_what_is_gone),
        cmocka_unit_test(nothing_is_unmapped_where_the_device_does_not_wait),
        cmocka_unit_test(private_pool_begins_small),
        cmocka_unit_test(nothing_is_used_again_too_early),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(limit_is_of_whole_pages),
        cmocka_unit_test(fraction_of_the_options_is_lifted),
        cmocka_unit_test(small_request_takes_what_is_left_of_large_ones),
        cmocka_unit_test(trim_gives_back_down_to_its_target),
        cmocka_unit_test(trim_gives_back_however_much_there_is),
        cmocka_unit_test(callbacks_free_and_the_request_succeeds),
        cmocka_unit_test(eight_callbacks_are_the_most),
        cmocka_unit_test(observer_hears_everything),
        cmocka_unit_test(callback_may_begin_a_history),
        cmocka_unit_test(statistics_are_reset),
        cmocka_unit_test(walk_shows_segments_in_order),
        cmocka_unit_test(end_of_a_private_pool_takes_its_memory),
        cmocka_unit_test(private_pools_take_what_their_filters_cover),
        cmocka_unit_test(private_memory_serves_before_an_oom),
        cmocka_unit_test(captures_hold_frees_back),
        cmocka_unit_test(child_of_a_fork_may_only_destroy),
        cmocka_unit_test(child_of_a_fork_amid_a_call_leaves_the_records),
        cmocka_unit_test(every_request_for_memory_may_fail),
        cmocka_unit_test(every_call_of_the_device_may_fail),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(conf_reaches_the_place),
        cmocka_unit_test(pools_on_several_devices_do_not_mix),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
