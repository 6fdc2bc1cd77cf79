/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests for what is there, and can be had, while the driver refuses what comes before it or
 * the host has no memory: no out-of-memory, for nobody knows; and the same again is served.
 */

#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#include "pool/pool_state.h"

#define MIB (UINT64_C(1) << 20)
#define CAPACITY (64 * MIB)
#define MOST (40 * MIB)

static const enum dry_placement placements[] = {DRY_PLACEMENT_PAGED, DRY_PLACEMENT_TORCH};

/* A device full of what stream 1 has freed, whose calls the pool has copied: device_ops. */
struct setup {
    struct dry_sim *sim;
    struct dry_device inner;
    struct failing_memory memory;
    struct dry_memory memory_of_pool;
    struct dry_pool *pool;
};

static void
begin(struct setup *s, enum dry_placement placement, const char *conf)
{
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = CAPACITY;
    so.check = true;
    assert_int_equal(dry_sim_create(&so, &s->sim, NULL), DRY_OK);
    s->inner = dry_sim_get_device(s->sim);
    s->memory_of_pool = failing_memory_init(&s->memory, SIZE_MAX);
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = s->inner;
    o.memory = &s->memory_of_pool;
    o.placement = placement;
    o.conf = conf;
    assert_int_equal(dry_pool_create(&o, &s->pool, NULL), DRY_OK);
}

static void
end(struct setup *s)
{
    struct dry_error err;
    if (dry_pool_check(s->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_pool_destroy(s->pool);
    failing_memory_finish(&s->memory);
    assert_int_equal(dry_sim_get_finding_count(s->sim), 0);
    dry_sim_destroy(s->sim);
}

static uint64_t
take(struct setup *s, uint64_t size, uint64_t stream)
{
    uint64_t address = 1;
    assert_int_equal(dry_pool_alloc(s->pool, size, stream, &address), DRY_OK);
    return address;
}

static enum dry_status
try_to_take(struct setup *s, uint64_t size, uint64_t stream)
{
    uint64_t address;
    return dry_pool_alloc(s->pool, size, stream, &address);
}

static int64_t
ooms_of(struct setup *s)
{
    struct dry_stats stats;
    dry_pool_get_stats(s->pool, &stats);
    return stats.num_ooms;
}

static enum dry_status
refuse_event(void *self, uint64_t stream, uint64_t *event)
{
    (void)self;
    (void)stream;
    (void)event;
    return DRY_ERR_SYSTEM;
}

static enum dry_status
refuse_to_wait(void *self, uint64_t handle)
{
    (void)self;
    (void)handle;
    return DRY_ERR_SYSTEM;
}

static int asked;

static bool
ask(void *self, uint64_t size, uint64_t stream)
{
    (void)self;
    (void)size;
    (void)stream;
    asked++;
    return false;
}

/* The request that was hindered is no failure of memory's, and then it is served. */
static void
require_served_then(struct setup *s, uint64_t stream)
{
    asked = 0;
    assert_int_equal(dry_pool_add_oom_callback(s->pool, ask, NULL), DRY_OK);
    assert_int_equal(try_to_take(s, MOST, stream), DRY_ERR_SYSTEM);
    assert_true(ooms_of(s) == 0 && asked == 0);
    s->pool->device_ops = *s->inner.ops;
    take(s, MOST, stream);
    assert_int_equal(ooms_of(s), 0);
}

static void
event_that_is_refused_is_no_out_of_memory(void **state)
{
    (void)state;
    struct setup s;
    begin(&s, DRY_PLACEMENT_PAGED, "");
    assert_int_equal(dry_pool_free(s.pool, take(&s, MOST, 1)), DRY_OK);
    s.pool->device_ops.event_record = refuse_event;
    require_served_then(&s, 2);
    end(&s);
}

static void
wait_that_is_refused_is_no_out_of_memory(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        struct setup s;
        begin(&s, placements[p], "");
        uint64_t a = take(&s, MOST, 1);
        assert_int_equal(dry_pool_record_stream(s.pool, a, 3), DRY_OK);
        assert_int_equal(dry_pool_free(s.pool, a), DRY_OK);
        s.pool->device_ops.event_wait = refuse_to_wait;
        require_served_then(&s, 1);
        end(&s);
    }
}

/* Its pages stay where they are, for the driver does not say that they may go. */
static void
unmapping_that_is_refused_is_no_out_of_memory(void **state)
{
    (void)state;
    struct setup s;
    begin(&s, DRY_PLACEMENT_TORCH, "expandable_segments:True");
    assert_int_equal(dry_pool_free(s.pool, take(&s, MOST, 1)), DRY_OK);
    s.pool->device_ops.stream_wait = refuse_to_wait;
    require_served_then(&s, 2);
    end(&s);
}

static bool
is_stream_5(void *self, uint64_t stream)
{
    (void)self;
    return stream == 5;
}

static struct setup *refusing;

static enum dry_status
refuse_event_of_5(void *self, uint64_t stream, uint64_t *event)
{
    if (stream == 5)
        return DRY_ERR_SYSTEM;
    return refusing->inner.ops->event_record(self, stream, event);
}

/* Freed amid a capture, and no event was to be had when that was over. */
static void
free_held_back_is_no_out_of_memory(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        struct setup s;
        begin(&s, placements[p], "");
        struct dry_stream_filter filter = {.covers = is_stream_5};
        uint64_t a = take(&s, MOST, 1);
        assert_int_equal(dry_pool_record_stream(s.pool, a, 5), DRY_OK);
        assert_int_equal(dry_pool_begin_capture(s.pool, &filter), DRY_OK);
        assert_int_equal(dry_pool_free(s.pool, a), DRY_OK);
        refusing = &s;
        s.pool->device_ops.event_record = refuse_event_of_5;
        assert_int_equal(dry_pool_end_capture(s.pool), DRY_OK);
        require_served_then(&s, 1);
        end(&s);
    }
}

static unsigned refusals; /* that are left */

static enum dry_status
refuse_some_events(void *self, uint64_t stream, uint64_t *event)
{
    if (refusals > 0) {
        refusals--;
        return DRY_ERR_SYSTEM;
    }
    return refusing->inner.ops->event_record(self, stream, event);
}

/* Refused until the request has begun: before it gives up it asks again. */
static void
free_held_back_is_asked_for_again(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        struct setup s;
        begin(&s, placements[p], "");
        refusing = &s;
        refusals = placements[p] == DRY_PLACEMENT_PAGED ? 2 : 1; /* torch asks later */
        struct dry_stream_filter filter = {.covers = is_stream_5};
        uint64_t a = take(&s, MOST, 1);
        assert_int_equal(dry_pool_record_stream(s.pool, a, 5), DRY_OK);
        assert_int_equal(dry_pool_begin_capture(s.pool, &filter), DRY_OK);
        assert_int_equal(dry_pool_free(s.pool, a), DRY_OK);
        s.pool->device_ops.event_record = refuse_some_events;
        assert_int_equal(dry_pool_end_capture(s.pool), DRY_OK);
        take(&s, MOST, 1);
        assert_true(refusals == 0 && ooms_of(&s) == 0);
        end(&s);
    }
}

static void
begin_lent(struct setup *s)
{
    struct dry_pool_id lent = {0, 1};
    begin(s, DRY_PLACEMENT_PAGED, "");
    assert_int_equal(
        dry_pool_open_private(s->pool, lent, DRY_POOL_USE_ON_OOM | DRY_POOL_NO_REMAP),
        DRY_OK);
    assert_int_equal(dry_pool_begin_private(s->pool, lent, NULL), DRY_OK);
    uint64_t a = take(s, MOST, 1);
    assert_int_equal(dry_pool_end_private(s->pool, lent), DRY_OK);
    assert_int_equal(dry_pool_free(s->pool, a), DRY_OK);
}

/* Wherever the host's memory ends on the way to what another pool lends. */
static void
host_memory_that_ends_is_no_out_of_memory(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (size_t n = 0;; n++) {
        struct setup s;
        begin_lent(&s);
        s.memory.left = n;
        enum dry_status status = try_to_take(&s, MOST, 2);
        bool has_failed = s.memory.failed;
        s.memory.failed = false;
        s.memory.left = SIZE_MAX;
        if (status != DRY_OK) {
            assert_true(has_failed);
            assert_int_equal(status, DRY_ERR_MEMORY);
            take(&s, MOST, 2);
            refused++;
        }
        assert_int_equal(ooms_of(&s), 0);
        end(&s);
        if (!has_failed)
            break;
    }
    assert_true(refused > 2);
}

static uint64_t
never_ask_for_a_number(void *self, uint64_t stream)
{
    (void)self;
    fail_msg("stream %" PRIu64 ": the device has no such call", stream);
    return 0;
}

static enum dry_status
take_a_block(struct dry_device device, struct dry_error *err)
{
    struct dry_pool_options o;
    struct dry_pool *pool;
    uint64_t address;
    dry_pool_options_init(&o);
    o.device = device;
    enum dry_status status = dry_pool_create(&o, &pool, err);
    if (status != DRY_OK)
        return status;
    assert_int_equal(dry_pool_alloc(pool, 4096, 7, &address), DRY_OK);
    dry_pool_destroy(pool);
    return DRY_OK;
}

/* A device of another release has more calls, which are never made here, or fewer. */
static void
a_device_says_how_many_calls_it_has(void **state)
{
    (void)state;
    struct dry_sim *sim;
    struct dry_error err;
    assert_int_equal(dry_sim_create(NULL, &sim, NULL), DRY_OK);
    struct dry_device inner = dry_sim_get_device(sim);
    struct {
        struct dry_device_ops ops;
        void (*later)(void);
    } its = {*inner.ops, abort};
    struct dry_device device = {&its.ops, inner.self};
    its.ops.struct_size = sizeof its;
    assert_int_equal(take_a_block(device, &err), DRY_OK);
    its.ops.stream_id = never_ask_for_a_number;
    its.ops.struct_size = offsetof(struct dry_device_ops, stream_id);
    assert_int_equal(take_a_block(device, &err), DRY_OK);
    its.ops.struct_size = 0;
    assert_int_equal(take_a_block(device, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "struct_size"));
    dry_sim_destroy(sim);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_that_is_refused_is_no_out_of_memory),
        cmocka_unit_test(wait_that_is_refused_is_no_out_of_memory),
        cmocka_unit_test(unmapping_that_is_refused_is_no_out_of_memory),
        cmocka_unit_test(free_held_back_is_asked_for_again),
        cmocka_unit_test(free_held_back_is_no_out_of_memory),
        cmocka_unit_test(a_device_says_how_many_calls_it_has),
        cmocka_unit_test(host_memory_that_ends_is_no_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
