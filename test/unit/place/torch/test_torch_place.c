/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PyTorch's decisions as a place among others: what the record of a program never shows and
 * the model of its rules (prop/torch_model.c) therefore does not know. Pools with flags,
 * scopes of some streams, captures, limits, trimming, counters.
 */
#include "support/cmocka.h"

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/torch/torch.h"

#define MIB DRYI_MIB

struct fixture {
    struct dry_sim *sim;
    struct dryi_place place;
};

static void
init(struct fixture *f, const char *conf, const char *release)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.capacity_bytes = DRYI_GIB;
    assert_int_equal(dry_sim_create(&o, &f->sim, NULL), DRY_OK);
    struct dryi_torch_options options = {.device = dry_sim_get_device(f->sim)};
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count);
    options.rules = release ? dryi_torch_rules_find(release) : &all[count - 1];
    dryi_torch_conf_init(&options.conf);
    size_t length = 0;
    while (conf[length])
        length++;
    assert_int_equal(
        dryi_torch_conf_parse(conf, length, options.rules, &options.conf, NULL), DRY_OK);
    struct dryi_torch *torch;
    assert_int_equal(dryi_torch_create(&options, &torch, NULL), DRY_OK);
    f->place = dryi_torch_as_place(torch);
}

static void
finish(struct fixture *f)
{
    struct dry_error err;
    if (f->place.ops->check(f->place.self, &err) != DRY_OK)
        fail_msg("%s", err.text);
    f->place.ops->destroy(f->place.self);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(f->sim, &account);
    assert_true(account.used_bytes == 0 && account.events_live == 0);
    assert_true(account.reserved_address_bytes == 0);
    dry_sim_destroy(f->sim);
}

static dryi_block
take(struct fixture *f, uint64_t size, uint64_t stream)
{
    dryi_block block;
    assert_int_equal(f->place.ops->alloc(f->place.self, size, stream, &block), DRY_OK);
    return block;
}

static void
give(struct fixture *f, dryi_block block)
{
    assert_int_equal(f->place.ops->free(f->place.self, block), DRY_OK);
}

static struct dryi_block_info
info_of(struct fixture *f, dryi_block block)
{
    struct dryi_block_info info;
    f->place.ops->get_block(f->place.self, block, &info);
    return info;
}

static uint64_t
reserved(struct fixture *f)
{
    struct dry_stats stats;
    f->place.ops->get_stats(f->place.self, &stats);
    return (uint64_t)stats.reserved_bytes.all.current;
}

static void
open_pool(struct fixture *f, uint64_t number, unsigned flags)
{
    struct dryi_pool_id id = {0, number};
    assert_int_equal(f->place.ops->open_pool(f->place.self, id, flags), DRY_OK);
}

static void
begin_pool(struct fixture *f, uint64_t number, struct dryi_stream_filter filter)
{
    struct dryi_pool_id id = {0, number};
    assert_int_equal(f->place.ops->begin_pool(f->place.self, id, filter), DRY_OK);
}

static void
end_pool(struct fixture *f, uint64_t number)
{
    struct dryi_pool_id id = {0, number};
    assert_int_equal(f->place.ops->end_pool(f->place.self, id), DRY_OK);
}

static bool
covers_one(void *self, uint64_t stream)
{
    return stream == *(uint64_t *)self;
}

static const struct dryi_stream_filter everything = {0};

/* --- pools with flags --------------------------------------------------------------------- */

static void
no_split_gives_whole_segments(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "", NULL);
    open_pool(&f, 1, DRYI_POOL_NO_SPLIT);
    begin_pool(&f, 1, everything);
    dryi_block a = take(&f, 512, 0), b = take(&f, 3 * MIB, 0);
    assert_true(info_of(&f, a).size == 2 * MIB && info_of(&f, a).requested == 512);
    assert_true(info_of(&f, b).size == 20 * MIB);
    end_pool(&f, 1);
    dryi_block c = take(&f, 512, 0);
    assert_true(info_of(&f, c).size == 512);
    finish(&f);
}

static void
fallback_takes_from_the_oldest_pool_that_serves(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "", NULL);
    dryi_block of[4];
    for (uint64_t pool = 1; pool <= 3; pool++) {
        open_pool(&f, pool, pool == 1 ? 0 : DRYI_POOL_USE_ON_OOM);
        begin_pool(&f, pool, everything);
        of[pool] = take(&f, 300 * MIB, 0);
        end_pool(&f, pool);
    }
    struct dryi_block_info second = info_of(&f, of[2]);
    for (uint64_t pool = 1; pool <= 3; pool++)
        give(&f, of[pool]);
    dryi_block found = take(&f, 200 * MIB, 0);
    assert_true(info_of(&f, found).addr == second.addr);
    assert_true(info_of(&f, found).pool.b == 2);
    assert_true(info_of(&f, found).size == 200 * MIB); /* split as its pool splits */
    dryi_block other;
    assert_int_equal(f.place.ops->alloc(f.place.self, 200 * MIB, 9, &other),
                     DRY_ERR_NO_SPACE); /* another stream has nothing there */
    give(&f, found);
    assert_true(info_of(&f, take(&f, 300 * MIB, 0)).pool.b == 2);
    finish(&f);
}

/* Where another stream's cache could go back instead: the pool that serves the request. */
static uint64_t
serve_beside_cache(const char *release)
{
    struct fixture f;
    init(&f, "", release);
    open_pool(&f, 1, DRYI_POOL_USE_ON_OOM);
    begin_pool(&f, 1, everything);
    dryi_block of_pool = take(&f, 400 * MIB, 0);
    end_pool(&f, 1);
    dryi_block of_other = take(&f, 400 * MIB, 9);
    give(&f, of_pool);
    give(&f, of_other);
    uint64_t pool = info_of(&f, take(&f, 300 * MIB, 0)).pool.b;
    finish(&f);
    return pool;
}

static void
fallback_was_the_last_resort_before_2_11(void **state)
{
    (void)state;
    assert_true(serve_beside_cache("2.0") == 0);
    assert_true(serve_beside_cache("2.10") == 0);
    assert_true(serve_beside_cache("2.11") == 1);
    assert_true(serve_beside_cache("2.15") == 1);
}

static enum dry_status
fall_back_on_expandable(const char *release)
{
    struct fixture f;
    dryi_block block;
    init(&f, "expandable_segments:True", release);
    open_pool(&f, 1, DRYI_POOL_USE_ON_OOM);
    begin_pool(&f, 1, everything);
    block = take(&f, 900 * MIB, 0);
    end_pool(&f, 1);
    give(&f, block);
    enum dry_status status = f.place.ops->alloc(f.place.self, 300 * MIB, 0, &block);
    if (status == DRY_OK)
        assert_true(info_of(&f, block).pool.b == 1);
    finish(&f);
    return status;
}

static void
fallback_took_expandable_blocks_before_2_10(void **state)
{
    (void)state;
    assert_int_equal(fall_back_on_expandable("2.9"), DRY_OK);
    assert_int_equal(fall_back_on_expandable("2.10"), DRY_ERR_NO_SPACE);
    assert_int_equal(fall_back_on_expandable("2.15"), DRY_ERR_NO_SPACE);
}

static void
pool_without_users_serves_nobody(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "", NULL);
    struct dryi_pool_id id = {0, 1};
    open_pool(&f, 1, DRYI_POOL_USE_ON_OOM);
    open_pool(&f, 1, 0); /* a second user: its flags stay */
    begin_pool(&f, 1, everything);
    dryi_block a = take(&f, 900 * MIB, 0), b;
    end_pool(&f, 1);
    give(&f, a);
    assert_int_equal(f.place.ops->release_pool(f.place.self, id), DRY_OK);
    b = take(&f, 800 * MIB, 0);
    assert_true(info_of(&f, b).pool.b == 1);
    assert_int_equal(f.place.ops->release_pool(f.place.self, id), DRY_OK);
    assert_int_equal(f.place.ops->release_pool(f.place.self, id), DRY_ERR_ARGUMENT);
    assert_int_equal(f.place.ops->begin_pool(f.place.self, id, everything),
                     DRY_ERR_ARGUMENT);
    give(&f, b);
    assert_true(info_of(&f, take(&f, 800 * MIB, 0)).pool.b == 0); /* given back first */
    finish(&f);
}

static void
a_pool_without_users_lasts_while_its_scope_is_open(void **state)
{
    (void)state;
    struct fixture f;
    struct dryi_pool_id id = {0, 1}, all = {0, 0};
    uint64_t users;
    init(&f, "", "2.13");
    open_pool(&f, 1, 0);
    begin_pool(&f, 1, everything);
    assert_int_equal(f.place.ops->release_pool(f.place.self, id), DRY_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(f.place.ops->empty_cache(f.place.self, all), DRY_OK);
        dryi_block block = take(&f, 512, 0);
        assert_true(info_of(&f, block).pool.b == 1);
        give(&f, block);
    }
    end_pool(&f, 1);
    assert_int_equal(f.place.ops->empty_cache(f.place.self, all), DRY_OK);
    assert_int_equal(f.place.ops->count_users(f.place.self, id, &users),
                     DRY_ERR_ARGUMENT);
    open_pool(&f, 1, 0); /* a new one: no record is in two lists */
    open_pool(&f, 2, 0);
    begin_pool(&f, 1, everything);
    assert_true(info_of(&f, take(&f, 512, 0)).pool.b == 1);
    finish(&f);
}

/* --- scopes ------------------------------------------------------------------------------- */

static uint64_t
pool_of(struct fixture *f, uint64_t stream)
{
    dryi_block block = take(f, 512, stream);
    uint64_t pool = info_of(f, block).pool.b;
    give(f, block);
    return pool;
}

static void
nested_scopes(const char *release, uint64_t expected_both)
{
    struct fixture f;
    uint64_t one = 1;
    struct dryi_stream_filter only_one = {covers_one, &one};
    init(&f, "", release);
    open_pool(&f, 1, 0);
    open_pool(&f, 2, 0);
    begin_pool(&f, 1, everything);
    begin_pool(&f, 2, only_one);
    assert_true(pool_of(&f, 1) == expected_both);
    assert_true(pool_of(&f, 5) == 1);
    end_pool(&f, 1);
    assert_true(pool_of(&f, 1) == 2);
    assert_true(pool_of(&f, 5) == 0);
    finish(&f);
}

static void
scopes_are_asked_in_the_order_of_the_release(void **state)
{
    (void)state;
    nested_scopes("2.15", 2);
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count);
    for (size_t i = 0; i < count; i++)
        nested_scopes(all[i].release, all[i].scopes_last_first ? 2 : 1);
}

/* --- captures ----------------------------------------------------------------------------- */

struct calls {
    uint64_t events, returned;
};

static struct calls
calls_of(struct fixture *f)
{
    struct dry_sim_account a = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(f->sim, &a);
    return (struct calls){
        .events = a.calls[DRY_SIM_EVENT_RECORD] + a.calls[DRY_SIM_EVENT_QUERY] +
                  a.calls[DRY_SIM_EVENT_WAIT] + a.calls[DRY_SIM_STREAM_WAIT],
        .returned = a.calls[DRY_SIM_FREE] + a.calls[DRY_SIM_UNMAP],
    };
}

static void
capture_asks_nothing_and_gives_nothing_back(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t one = 1;
    struct dryi_stream_filter only_one = {covers_one, &one};
    init(&f, "", NULL);
    dryi_block cached = take(&f, 100 * MIB, 1), waiting = take(&f, 30 * MIB, 5);
    assert_int_equal(f.place.ops->record_stream(f.place.self, waiting, 1), DRY_OK);
    give(&f, waiting); /* an event on stream 1 */
    give(&f, cached);
    assert_int_equal(f.place.ops->begin_capture(f.place.self, only_one), DRY_OK);
    struct calls before = calls_of(&f);
    dryi_block none, b = take(&f, 10 * MIB, 1);
    assert_int_equal(f.place.ops->alloc(f.place.self, DRYI_GIB, 1, &none),
                     DRY_ERR_NO_SPACE);
    f.place.ops->process_events(f.place.self);
    take(&f, 512, 6); /* another stream asks about events, but not about that one's */
    assert_int_equal(f.place.ops->empty_cache(f.place.self, (struct dryi_pool_id){0, 0}),
                     DRY_OK);
    assert_int_equal(f.place.ops->trim(f.place.self, 0), DRY_OK);
    struct calls after = calls_of(&f);
    assert_true(after.events == before.events);
    assert_true(after.returned == before.returned);
    assert_int_equal(f.place.ops->end_capture(f.place.self), DRY_OK);
    give(&f, b);
    assert_int_equal(f.place.ops->empty_cache(f.place.self, (struct dryi_pool_id){0, 0}),
                     DRY_OK);
    assert_true(reserved(&f) == 2 * MIB);
    finish(&f);
}

/* Others go on meanwhile: their events are recorded, their memory goes back. */
static void
streams_not_captured_go_on(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t one = 1;
    struct dryi_stream_filter only_one = {covers_one, &one};
    init(&f, "", NULL);
    dryi_block a = take(&f, 40 * MIB, 2), b = take(&f, 50 * MIB, 2);
    assert_int_equal(f.place.ops->begin_capture(f.place.self, only_one), DRY_OK);
    uint64_t addr = info_of(&f, a).addr;
    assert_int_equal(f.place.ops->record_stream(f.place.self, a, 3), DRY_OK);
    give(&f, a);
    dry_sim_complete_stream(f.sim, 3);
    a = take(&f, 40 * MIB, 2);
    assert_true(info_of(&f, a).addr == addr);
    give(&f, b);
    assert_int_equal(f.place.ops->empty_cache(f.place.self, (struct dryi_pool_id){0, 0}),
                     DRY_OK);
    assert_true(reserved(&f) == 40 * MIB);
    /* Used by the stream that is captured: held, and free as soon as the capture is over. */
    assert_int_equal(f.place.ops->record_stream(f.place.self, a, 1), DRY_OK);
    give(&f, a);
    assert_true(info_of(&f, take(&f, 40 * MIB, 2)).addr != addr);
    assert_int_equal(f.place.ops->end_capture(f.place.self), DRY_OK);
    assert_true(info_of(&f, take(&f, 40 * MIB, 2)).addr == addr);
    finish(&f);
}

/* --- limit and trim ----------------------------------------------------------------------- */

static void
trim_takes_the_largest_first(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "", NULL);
    dryi_block a = take(&f, 20 * MIB, 0), b = take(&f, 60 * MIB, 1),
               c = take(&f, 40 * MIB, 0), split = take(&f, 3 * MIB, 0),
               late = take(&f, 100 * MIB, 0);
    assert_true(reserved(&f) == 240 * MIB);
    assert_int_equal(f.place.ops->record_stream(f.place.self, late, 7), DRY_OK);
    give(&f, late); /* not yet done: the last to go */
    give(&f, a);
    give(&f, b);
    give(&f, c);
    assert_int_equal(f.place.ops->trim(f.place.self, 200 * MIB), DRY_OK);
    assert_true(reserved(&f) == 180 * MIB); /* 60 gone */
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(f.sim, &account);
    assert_true(account.calls[DRY_SIM_EVENT_WAIT] == 0);
    assert_int_equal(f.place.ops->trim(f.place.self, 140 * MIB), DRY_OK);
    assert_true(reserved(&f) == 140 * MIB); /* 40 gone */
    assert_int_equal(f.place.ops->trim(f.place.self, 50 * MIB), DRY_OK);
    assert_true(reserved(&f) == 20 * MIB); /* 20, then what had to be waited for */
    assert_int_equal(f.place.ops->trim(f.place.self, 0), DRY_OK);
    assert_true(reserved(&f) == 20 * MIB); /* a part of it is in use */
    give(&f, split);
    assert_int_equal(f.place.ops->trim(f.place.self, 0), DRY_OK);
    assert_true(reserved(&f) == 0);
    finish(&f);
}

static void
trim_unmaps_expandable_pages(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "expandable_segments:True", NULL);
    dryi_block a = take(&f, 40 * MIB, 0), b = take(&f, 20 * MIB, 0),
               c = take(&f, 60 * MIB, 0), d = take(&f, 20 * MIB, 0);
    assert_true(reserved(&f) == 140 * MIB);
    give(&f, a);
    give(&f, c);
    assert_int_equal(f.place.ops->trim(f.place.self, 100 * MIB), DRY_OK);
    assert_true(reserved(&f) == 80 * MIB); /* the 60 between b and d */
    assert_int_equal(f.place.ops->trim(f.place.self, 0), DRY_OK);
    assert_true(reserved(&f) == 40 * MIB);
    give(&f, b);
    give(&f, d);
    assert_int_equal(f.place.ops->trim(f.place.self, 0), DRY_OK);
    assert_true(reserved(&f) == 0);
    finish(&f);
}

static void
limit_holds_and_is_lifted(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "", NULL);
    dryi_block none;
    f.place.ops->set_limit(f.place.self, 40 * MIB, UINT64_MAX);
    take(&f, 30 * MIB, 0);
    assert_int_equal(f.place.ops->alloc(f.place.self, 12 * MIB, 0, &none),
                     DRY_ERR_NO_SPACE);
    take(&f, 10 * MIB, 0);
    f.place.ops->set_limit(f.place.self, UINT64_MAX, UINT64_MAX);
    take(&f, 12 * MIB, 0);
    finish(&f);
}

/* --- counters ----------------------------------------------------------------------------- */

static void
counters_are_what_the_device_was_called(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "expandable_segments:True", NULL);
    for (int round = 0; round < 3; round++) {
        dryi_block a = take(&f, 40 * MIB, 0), b = take(&f, 1000, 1);
        assert_int_equal(f.place.ops->record_stream(f.place.self, a, 1), DRY_OK);
        give(&f, a);
        give(&f, b);
        assert_int_equal(
            f.place.ops->empty_cache(f.place.self, (struct dryi_pool_id){0, 0}), DRY_OK);
    }
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(f.sim, &account);
    uint64_t calls = account.calls[DRY_SIM_EVENT_RECORD]; /* each is destroyed too */
    for (int i = 0; i < DRY_SIM_CALL_COUNT; i++) {
        if (i != DRY_SIM_EVENT_QUERY)
            calls += account.calls[i];
    }
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    f.place.ops->get_counters(f.place.self, &counters);
    assert_true(counters.driver_calls == calls);
    assert_true(counters.events_recorded == 3);
    assert_true(counters.reserved_peak_bytes == 42 * MIB);
    finish(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_split_gives_whole_segments),
        cmocka_unit_test(fallback_takes_from_the_oldest_pool_that_serves),
        cmocka_unit_test(fallback_was_the_last_resort_before_2_11),
        cmocka_unit_test(fallback_took_expandable_blocks_before_2_10),
        cmocka_unit_test(pool_without_users_serves_nobody),
        cmocka_unit_test(a_pool_without_users_lasts_while_its_scope_is_open),
        cmocka_unit_test(scopes_are_asked_in_the_order_of_the_release),
        cmocka_unit_test(capture_asks_nothing_and_gives_nothing_back),
        cmocka_unit_test(streams_not_captured_go_on),
        cmocka_unit_test(trim_takes_the_largest_first),
        cmocka_unit_test(trim_unmaps_expandable_pages),
        cmocka_unit_test(limit_holds_and_is_lifted),
        cmocka_unit_test(counters_are_what_the_device_was_called),
    };
    return cmocka_run_group_tests_name("torch_place", tests, NULL, NULL);
}
