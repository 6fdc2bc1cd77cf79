/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place/paged: each rule with the smallest program that shows it; random programs, whose
 * blocks never overlap and whose invariants hold after every step; and all of it where every
 * request for memory and every call of the device fails in turn.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged/paged.h"
#include "place/torch/torch.h"
#include "support/failing_memory.h"
#include "support/random.h"
#include "support/rounds.h"

#define MIB DRYI_MIB
#define GIB (UINT64_C(1) << 30)
#define KIB DRYI_KIB

/* --- a place on a simulated device -------------------------------------------------------- */

struct rig {
    struct dry_sim *sim;
    struct dryi_place place;
};

static enum dry_status
open_rig(struct rig *rig, const char *conf, const struct dry_sim_options *sim_options,
         const struct dry_memory *memory)
{
    struct dryi_paged_options options = {.memory = memory};
    struct dry_error err;
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_conf_parse(conf, strlen(conf), dryi_torch_conf_has,
                                           &options.conf, &err),
                     DRY_OK);
    enum dry_status status = dry_sim_create(sim_options, &rig->sim, &err);
    if (status != DRY_OK)
        return status;
    options.device = dry_sim_get_device(rig->sim);
    status = dryi_paged_create(&options, &rig->place, &err);
    if (status != DRY_OK)
        dry_sim_destroy(rig->sim);
    return status;
}

static void
init_rig(struct rig *rig, const char *conf, uint64_t capacity)
{
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.capacity_bytes = capacity;
    assert_int_equal(open_rig(rig, conf, &options, NULL), DRY_OK);
}

static void
check_rig(const struct rig *rig)
{
    struct dry_error err = {.text = ""};
    if (rig->place.ops->check(rig->place.self, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

/* Nothing may be left on the device. */
static void
finish_rig(struct rig *rig)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    check_rig(rig);
    rig->place.ops->destroy(rig->place.self);
    dry_sim_get_account(rig->sim, &account);
    assert_int_equal(account.used_bytes, 0);
    assert_int_equal(account.pages_live, 0);
    assert_int_equal(account.events_live, 0);
    assert_int_equal(account.reserved_address_bytes, 0);
    dry_sim_destroy(rig->sim);
}

static dryi_block
get(struct rig *rig, uint64_t size, uint64_t stream)
{
    dryi_block block;
    assert_int_equal(rig->place.ops->alloc(rig->place.self, size, stream, &block),
                     DRY_OK);
    check_rig(rig);
    return block;
}

static enum dry_status
try_get(struct rig *rig, uint64_t size, uint64_t stream)
{
    dryi_block block;
    enum dry_status status = rig->place.ops->alloc(rig->place.self, size, stream, &block);
    check_rig(rig);
    return status;
}

static void
put(struct rig *rig, dryi_block block)
{
    assert_int_equal(rig->place.ops->free(rig->place.self, block), DRY_OK);
    check_rig(rig);
}

static struct dryi_block_info
info_of(const struct rig *rig, dryi_block block)
{
    struct dryi_block_info info;
    rig->place.ops->get_block(rig->place.self, block, &info);
    return info;
}

static struct dry_stats
stats_of(const struct rig *rig)
{
    struct dry_stats stats;
    rig->place.ops->get_stats(rig->place.self, &stats);
    return stats;
}

static struct dry_pool_counters
counters_of(const struct rig *rig)
{
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    rig->place.ops->get_counters(rig->place.self, &counters);
    return counters;
}

static uint64_t
reserved(const struct rig *rig)
{
    return (uint64_t)stats_of(rig).reserved_bytes.all.current;
}

static uint64_t
driver_calls(const struct rig *rig)
{
    return counters_of(rig).driver_calls;
}

/* --- rules: one stream -------------------------------------------------------------------- */

static void
freed_memory_serves_again_without_the_driver(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    dryi_block a = get(&rig, 3 * MIB, 0);
    uint64_t addr = info_of(&rig, a).addr;
    put(&rig, a);
    uint64_t calls = driver_calls(&rig);
    a = get(&rig, 3 * MIB, 0);
    assert_int_equal(info_of(&rig, a).addr, addr);
    assert_int_equal(driver_calls(&rig), calls);
    finish_rig(&rig);
}

static void
neighbours_share_pages(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    get(&rig, 3 * MIB, 0);
    get(&rig, 3 * MIB, 0);
    assert_int_equal(reserved(&rig), 6 * MIB);
    finish_rig(&rig);
}

static void
sizes_of_zero_and_beyond_all_bounds(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    assert_int_equal(get(&rig, 0, 0), DRYI_NO_BLOCK);
    put(&rig, DRYI_NO_BLOCK);
    assert_int_equal(try_get(&rig, UINT64_C(1) << 60, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(try_get(&rig, UINT64_C(1) << 59, 0), DRY_ERR_NO_SPACE);
    finish_rig(&rig);
}

static void
full_device_gets_pages_from_under_free_blocks(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", 16 * MIB);
    dryi_block blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = get(&rig, 2 * MIB, 0);
    for (int i = 0; i < 8; i += 2)
        put(&rig, blocks[i]);
    dryi_block large = get(&rig, 8 * MIB, 0);
    assert_int_equal(info_of(&rig, large).size, 8 * MIB);
    assert_int_equal(counters_of(&rig).pages_remapped, 4);
    assert_int_equal(reserved(&rig), 16 * MIB);
    finish_rig(&rig);
}

static void
full_device_refuses_and_refuses_again(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", 16 * MIB);
    get(&rig, 9 * MIB, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(try_get(&rig, 8 * MIB, 0), DRY_ERR_NO_SPACE);
    assert_int_equal(stats_of(&rig).num_ooms, 3);
    get(&rig, 7 * MIB, 0);
    finish_rig(&rig);
}

static void
note_oom(void *self, const struct dryi_place_event *event)
{
    uint64_t *free_bytes = self;
    if (event->action == DRY_ACTION_OOM)
        *free_bytes = event->addr;
}

static enum dry_status
add_segment(void *self, const struct dryi_segment_info *segment,
            const struct dryi_block_info *blocks, size_t count)
{
    (void)blocks;
    (void)count;
    *(uint64_t *)self += segment->size;
    return DRY_OK;
}

/* Its segments and what it tells of as free are the whole device, wherever pages lie. */
static void
oom_tells_of_pages_without_an_address(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", 64 * MIB);
    const struct dryi_place_ops *ops = rig.place.ops;
    uint64_t free_bytes = 0, mapped = 0;
    struct dryi_place_observer observer = {.event = note_oom, .self = &free_bytes};
    ops->set_observer(rig.place.self, observer);
    dryi_block a = get(&rig, 20 * MIB, 0);
    get(&rig, 10 * MIB, 0);
    dryi_block b = get(&rig, 20 * MIB, 0);
    put(&rig, a);
    put(&rig, b);
    assert_int_equal(try_get(&rig, 60 * MIB, 0), DRY_ERR_NO_SPACE);
    assert_int_equal(ops->walk(rig.place.self, add_segment, &mapped), DRY_OK);
    assert_true(mapped < 54 * MIB && free_bytes == 64 * MIB - mapped);
    finish_rig(&rig);
}

static void
limit_is_registered(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    rig.place.ops->set_limit(rig.place.self, 8 * MIB, UINT64_MAX);
    dryi_block a = get(&rig, 8 * MIB, 0);
    assert_int_equal(try_get(&rig, 512 * KIB, 0), DRY_ERR_NO_SPACE);
    put(&rig, a);
    get(&rig, 512 * KIB, 0);
    finish_rig(&rig);
}

static void
small_and_large_share_pages_when_they_must(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", 4 * MIB);
    dryi_block a = get(&rig, 4 * MIB, 0);
    put(&rig, a);
    dryi_block b = get(&rig, 1000, 0);
    assert_false(info_of(&rig, b).is_large);
    put(&rig, b);
    get(&rig, 4 * MIB, 0);
    finish_rig(&rig);
}

static void
empty_cache_gives_everything_back(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    put(&rig, get(&rig, 30 * MIB, 0));
    put(&rig, get(&rig, 1000, 0));
    assert_int_equal(
        rig.place.ops->empty_cache(rig.place.self, (struct dryi_pool_id){0, 0}), DRY_OK);
    assert_int_equal(reserved(&rig), 0);
    get(&rig, 30 * MIB, 0);
    finish_rig(&rig);
}

#define SCATTERED 1000

/* However many free blocks the pages lie under, one at a time. */
static void
empty_cache_finds_every_scattered_page(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    dryi_block blocks[2 * SCATTERED];
    for (int i = 0; i < 2 * SCATTERED; i++)
        blocks[i] = get(&rig, 2 * MIB, 0);
    for (int i = 0; i < 2 * SCATTERED; i += 2)
        put(&rig, blocks[i]);
    assert_int_equal(
        rig.place.ops->empty_cache(rig.place.self, (struct dryi_pool_id){0, 0}), DRY_OK);
    assert_int_equal(reserved(&rig), SCATTERED * 2 * MIB);
    finish_rig(&rig);
}

static void
trim_keeps_what_is_asked_for(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    put(&rig, get(&rig, 30 * MIB, 0));
    assert_int_equal(rig.place.ops->trim(rig.place.self, 10 * MIB), DRY_OK);
    assert_int_equal(reserved(&rig), 10 * MIB);
    finish_rig(&rig);
}

static void
budget_holds_reserved_memory_down(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "budget:1.0", DRY_SIM_UNLIMITED);
    dryi_block blocks[64];
    for (int i = 0; i < 64; i++)
        blocks[i] = get(&rig, 4 * MIB, 0);
    for (int i = 0; i < 64; i += 2)
        put(&rig, blocks[i]);
    for (int i = 0; i < 16; i++)
        get(&rig, 8 * MIB, 0);
    assert_true(reserved(&rig) <= 260 * MIB);
    finish_rig(&rig);
}

static void
without_remap_the_budget_is_no_reason_to_move_pages(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "budget:1.0,remap:False", DRY_SIM_UNLIMITED);
    dryi_block a = get(&rig, 4 * MIB, 0);
    get(&rig, 4 * MIB, 0);
    put(&rig, a);
    get(&rig, 8 * MIB, 0);
    assert_int_equal(counters_of(&rig).pages_remapped, 0);
    finish_rig(&rig);
}

/* --- rules: streams ----------------------------------------------------------------------- */

static void
no_event_is_recorded_for_one_stream(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "budget:4", DRY_SIM_UNLIMITED);
    for (int i = 0; i < 100; i++)
        put(&rig, get(&rig, (uint64_t)(i + 1) * 100 * KIB, 7));
    assert_int_equal(counters_of(&rig).events_recorded, 0);
    finish_rig(&rig);
}

static void
another_stream_gets_no_block_that_may_be_in_use(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "budget:4,reuse_waiting:False", DRY_SIM_UNLIMITED);
    dryi_block a = get(&rig, 4 * MIB, 1);
    uint64_t addr = info_of(&rig, a).addr;
    put(&rig, a);
    a = get(&rig, 4 * MIB, 2);
    assert_int_not_equal(info_of(&rig, a).addr, addr);
    finish_rig(&rig);
}

static void
another_stream_gets_a_block_it_comes_behind(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    dryi_block a = get(&rig, 4 * MIB, 1);
    uint64_t addr = info_of(&rig, a).addr;
    put(&rig, a);
    assert_int_equal(rig.place.ops->stream_waits(rig.place.self, 2, 1), DRY_OK);
    a = get(&rig, 4 * MIB, 2);
    assert_int_equal(info_of(&rig, a).addr, addr);
    assert_int_equal(counters_of(&rig).reused_ordered, 1);
    finish_rig(&rig);
}

static void
what_is_freed_after_the_wait_is_not_known_by_it(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "budget:4,reuse_waiting:False", DRY_SIM_UNLIMITED);
    dryi_block a = get(&rig, 4 * MIB, 1);
    uint64_t addr = info_of(&rig, a).addr;
    assert_int_equal(rig.place.ops->stream_waits(rig.place.self, 2, 1), DRY_OK);
    put(&rig, a);
    a = get(&rig, 4 * MIB, 2);
    assert_int_not_equal(info_of(&rig, a).addr, addr);
    finish_rig(&rig);
}

static void
waits_are_known_through_others(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    dryi_block a = get(&rig, 4 * MIB, 1);
    uint64_t addr = info_of(&rig, a).addr;
    put(&rig, a);
    assert_int_equal(rig.place.ops->stream_waits(rig.place.self, 2, 1), DRY_OK);
    assert_int_equal(rig.place.ops->stream_waits(rig.place.self, 3, 2), DRY_OK);
    a = get(&rig, 4 * MIB, 3);
    assert_int_equal(info_of(&rig, a).addr, addr);
    finish_rig(&rig);
}

static void
a_wait_is_put_in_where_memory_is_short(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "remap:False", 8 * MIB);
    put(&rig, get(&rig, 8 * MIB, 1));
    get(&rig, 8 * MIB, 2);
    assert_int_equal(counters_of(&rig).reused_waiting, 1);
    finish_rig(&rig);
}

static void
recorded_stream_keeps_a_block_back(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    dryi_block a = get(&rig, 4 * MIB, 1);
    uint64_t addr = info_of(&rig, a).addr;
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig.place.ops->record_stream(rig.place.self, a, 9), DRY_OK);
    assert_int_equal(rig.place.ops->record_stream(rig.place.self, a, 1), DRY_OK);
    put(&rig, a);
    assert_int_equal(stats_of(&rig).active.all.current, 1);
    assert_int_equal(stats_of(&rig).allocation.all.current, 0);
    dryi_block b = get(&rig, 4 * MIB, 1);
    assert_int_not_equal(info_of(&rig, b).addr, addr);
    dry_sim_complete_stream(rig.sim, 9);
    rig.place.ops->process_events(rig.place.self);
    assert_int_equal(stats_of(&rig).active.all.current, 1);
    b = get(&rig, 4 * MIB, 1);
    assert_int_equal(info_of(&rig, b).addr, addr);
    finish_rig(&rig);
}

static void
full_device_waits_for_what_is_pending(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", 8 * MIB);
    dryi_block a = get(&rig, 8 * MIB, 1);
    assert_int_equal(rig.place.ops->record_stream(rig.place.self, a, 9), DRY_OK);
    put(&rig, a);
    get(&rig, 8 * MIB, 1);
    finish_rig(&rig);
}

/* --- rules: pools and captures ------------------------------------------------------------ */

static const struct dryi_pool_id pool_one = {0, 1};
static const struct dryi_stream_filter all_streams = {0};

static void
private_pools_do_not_mix(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    const struct dryi_place_ops *ops = rig.place.ops;
    dryi_block a = get(&rig, 4 * MIB, 0);
    uint64_t addr = info_of(&rig, a).addr;
    put(&rig, a);
    assert_int_equal(ops->begin_pool(rig.place.self, pool_one, all_streams),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(ops->open_pool(rig.place.self, pool_one, 0), DRY_OK);
    assert_int_equal(ops->begin_pool(rig.place.self, pool_one, all_streams), DRY_OK);
    assert_int_equal(ops->begin_pool(rig.place.self, pool_one, all_streams),
                     DRY_ERR_ARGUMENT);
    a = get(&rig, 4 * MIB, 0);
    assert_int_not_equal(info_of(&rig, a).addr, addr);
    assert_int_equal(info_of(&rig, a).pool.b, 1);
    assert_int_equal(ops->end_pool(rig.place.self, pool_one), DRY_OK);
    assert_int_equal(ops->end_pool(rig.place.self, pool_one), DRY_ERR_ARGUMENT);
    assert_int_equal(info_of(&rig, get(&rig, 4 * MIB, 0)).addr, addr);
    put(&rig, a);
    assert_int_equal(ops->release_pool(rig.place.self, pool_one), DRY_OK);
    assert_int_equal(ops->release_pool(rig.place.self, pool_one), DRY_ERR_ARGUMENT);
    assert_int_equal(ops->empty_cache(rig.place.self, (struct dryi_pool_id){0, 0}),
                     DRY_OK);
    assert_int_equal(reserved(&rig), 4 * MIB);
    finish_rig(&rig);
}

/* Pools of one use each, on two streams that share a page: their pages go to the next ones. */
static void
pile_up_pools(bool amid_captures)
{
    struct rig rig;
    init_rig(&rig, "segment_mb:1024", DRY_SIM_UNLIMITED);
    const struct dryi_place_ops *ops = rig.place.ops;
    struct dry_device device = dry_sim_get_device(rig.sim);
    put(&rig, get(&rig, 512 * MIB, 0));
    for (uint64_t i = 1; i <= 40; i++) {
        struct dryi_pool_id pool = {0, i};
        if (amid_captures)
            assert_int_equal(ops->begin_capture(rig.place.self, all_streams), DRY_OK);
        assert_int_equal(ops->open_pool(rig.place.self, pool, 0), DRY_OK);
        if (amid_captures)
            assert_int_equal(ops->end_capture(rig.place.self), DRY_OK);
        assert_int_equal(ops->begin_pool(rig.place.self, pool, all_streams), DRY_OK);
        dryi_block a = get(&rig, 5 * MIB, 0), b = get(&rig, 5 * MIB, 1);
        dryi_block small = get(&rig, 4096, 1);
        assert_int_equal(ops->end_pool(rig.place.self, pool), DRY_OK);
        put(&rig, a);
        put(&rig, b);
        put(&rig, small);
        assert_int_equal(ops->release_pool(rig.place.self, pool), DRY_OK);
        for (uint64_t stream = 0; stream <= 1; stream++)
            device.ops->stream_wait(device.self, stream);
        struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
        dry_sim_get_account(rig.sim, &account);
        assert_true(account.reserved_address_bytes <= 12 * 1024 * MIB); /* each two GiB */
        assert_true(reserved(&rig) <= 540 * MIB);
    }
    finish_rig(&rig);
}

static void
pools_that_nobody_uses_do_not_pile_up(void **state)
{
    (void)state;
    pile_up_pools(false);
}

/* Opened when nothing may be waited for: what they would have looked at is when that ends. */
static void
pools_of_captures_do_not_pile_up(void **state)
{
    (void)state;
    pile_up_pools(true);
}

/* `count` private pools, each with a free block of so many bytes. */
static void
leave_pools(struct rig *rig, uint64_t count, uint64_t bytes)
{
    const struct dryi_place_ops *ops = rig->place.ops;
    for (uint64_t i = 1; i <= count; i++) {
        struct dryi_pool_id pool = {0, i};
        assert_int_equal(ops->open_pool(rig->place.self, pool, 0), DRY_OK);
        assert_int_equal(ops->begin_pool(rig->place.self, pool, all_streams), DRY_OK);
        dryi_block block = get(rig, bytes, 0);
        assert_int_equal(ops->end_pool(rig->place.self, pool), DRY_OK);
        put(rig, block);
    }
}

/* Not all of them are looked at at once, but before an out-of-memory. */
static void
a_request_gets_the_pages_of_many_pools_that_nobody_uses(void **state)
{
    (void)state;
    enum { MANY = 200 };
    struct rig rig;
    init_rig(&rig, "segment_mb:1024", MANY * 2 * MIB);
    const struct dryi_place_ops *ops = rig.place.ops;
    leave_pools(&rig, MANY, 2 * MIB);
    for (uint64_t i = 1; i <= MANY; i++)
        assert_int_equal(
            ops->release_pool(rig.place.self, (struct dryi_pool_id){0, MANY + 1 - i}),
            DRY_OK);
    get(&rig, (MANY - 1) * 2 * MIB, 0);
    get(&rig, 2 * MIB, 0);
    finish_rig(&rig);
}

/* One that comes back to life meanwhile keeps its pages, and is the same one. */
static void
a_pool_that_is_used_again_gives_no_pages(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", 6 * MIB);
    const struct dryi_place_ops *ops = rig.place.ops;
    leave_pools(&rig, 3, 2 * MIB);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(ops->release_pool(rig.place.self, (struct dryi_pool_id){0, i}),
                         DRY_OK);
    struct dryi_pool_id second = {0, 2};
    assert_int_equal(ops->open_pool(rig.place.self, second, 0), DRY_OK);
    assert_int_equal(try_get(&rig, 6 * MIB, 0), DRY_ERR_NO_SPACE);
    get(&rig, 4 * MIB, 0);
    assert_int_equal(ops->begin_pool(rig.place.self, second, all_streams), DRY_OK);
    get(&rig, 2 * MIB, 0);
    finish_rig(&rig);
}

/* Each would ask the device: a request does so 32 times at most, and one that misses for all. */
static void
many_frees_that_are_over_cost_a_request_little(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    struct rig rig;
    init_rig(&rig, "plan:False", DRY_SIM_UNLIMITED);
    dryi_block blocks[MANY];
    for (int i = 0; i < MANY; i++) {
        blocks[i] = get(&rig, 2048, 1);
        assert_int_equal(rig.place.ops->record_stream(rig.place.self, blocks[i], 2),
                         DRY_OK);
    }
    for (int i = 0; i < MANY; i++)
        put(&rig, blocks[i]);
    dry_sim_complete_stream(rig.sim, 2);
    int64_t left = MANY;
    for (int i = 0; left > 0; i++) {
        dryi_block block = get(&rig, 2048, 1);
        struct dry_stats stats = stats_of(&rig);
        int64_t now = stats.active.all.current - stats.allocation.all.current;
        assert_true(now < left && now >= left - 32 && i < MANY);
        left = now;
        put(&rig, block);
    }
    finish_rig(&rig);
}

/* Free memory of a private pool, and a request the default pool has no room for. */
static enum dry_status
ask_beside_private_memory(unsigned flags)
{
    struct rig rig;
    init_rig(&rig, "", 8 * MIB);
    const struct dryi_place_ops *ops = rig.place.ops;
    assert_int_equal(ops->open_pool(rig.place.self, pool_one, flags), DRY_OK);
    assert_int_equal(ops->begin_pool(rig.place.self, pool_one, all_streams), DRY_OK);
    dryi_block a = get(&rig, 8 * MIB, 0);
    assert_int_equal(ops->end_pool(rig.place.self, pool_one), DRY_OK);
    put(&rig, a);
    enum dry_status status = try_get(&rig, 4 * MIB, 0);
    finish_rig(&rig);
    return status;
}

static void
private_memory_serves_others_only_if_lent(void **state)
{
    (void)state;
    assert_int_equal(ask_beside_private_memory(0), DRY_ERR_NO_SPACE);
    assert_int_equal(ask_beside_private_memory(DRYI_POOL_USE_ON_OOM), DRY_OK);
    assert_int_equal(ask_beside_private_memory(DRYI_POOL_USE_ON_OOM | DRYI_POOL_NO_REMAP),
                     DRY_OK);
}

static void
blocks_of_a_pool_without_splits_are_whole(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    const struct dryi_place_ops *ops = rig.place.ops;
    assert_int_equal(ops->open_pool(rig.place.self, pool_one, DRYI_POOL_NO_SPLIT),
                     DRY_OK);
    assert_int_equal(ops->begin_pool(rig.place.self, pool_one, all_streams), DRY_OK);
    put(&rig, get(&rig, 8 * MIB, 0));
    dryi_block a = get(&rig, 3 * MIB, 0);
    assert_int_equal(info_of(&rig, a).size, 8 * MIB);
    assert_int_equal(info_of(&rig, a).requested, 3 * MIB);
    finish_rig(&rig);
}

static void
captures_hold_frees_back(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    const struct dryi_place_ops *ops = rig.place.ops;
    dryi_block a = get(&rig, 4 * MIB, 1);
    assert_int_equal(ops->record_stream(rig.place.self, a, 9), DRY_OK);
    assert_int_equal(ops->begin_capture(rig.place.self, all_streams), DRY_OK);
    put(&rig, a);
    assert_int_equal(counters_of(&rig).events_recorded, 0);
    dry_sim_complete_stream(rig.sim, 9);
    ops->process_events(rig.place.self);
    assert_int_equal(stats_of(&rig).active.all.current, 1);
    assert_int_equal(ops->end_capture(rig.place.self), DRY_OK);
    assert_int_equal(ops->end_capture(rig.place.self), DRY_ERR_ARGUMENT);
    assert_int_equal(counters_of(&rig).events_recorded, 1);
    dry_sim_complete_stream(rig.sim, 9);
    ops->process_events(rig.place.self);
    assert_int_equal(stats_of(&rig).active.all.current, 0);
    finish_rig(&rig);
}

/* All requests are of a private pool from here on. */
static void
begin_pool_one(struct rig *rig)
{
    const struct dryi_place_ops *ops = rig->place.ops;
    assert_int_equal(ops->open_pool(rig->place.self, pool_one, 0), DRY_OK);
    assert_int_equal(ops->begin_pool(rig->place.self, pool_one, all_streams), DRY_OK);
}

/*
 * Free memory that is complete and memory that the capture's stream freed lie side by side: nothing
 * more is needed.
 */
static void
captured_requests_are_put_together(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "plan:False", DRY_SIM_UNLIMITED);
    const struct dryi_place_ops *ops = rig.place.ops;
    void *place = rig.place.self;
    begin_pool_one(&rig);
    get(&rig, 2 * MIB, 2); /* another stream's, which stays */
    put(&rig, get(&rig, 1022 * MIB, 1));
    assert_int_equal(ops->trim(place, 0), DRY_OK);
    for (int graph = 0; graph < 3; graph++) {
        assert_int_equal(ops->begin_capture(place, all_streams), DRY_OK);
        put(&rig, get(&rig, 400 * MIB, 1));
        put(&rig, get(&rig, 700 * MIB, 1));
        assert_int_equal(ops->end_capture(place), DRY_OK);
        assert_int_equal(ops->trim(place, 0), DRY_OK);
    }
    assert_true(reserved(&rig) == 1024 * MIB);
    finish_rig(&rig);
}

/*
 * No other stream is there that complete memory could be given to: all is one block, and two
 * requests fit in.
 */
static void
a_captured_stream_alone_takes_all_in(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "plan:False", DRY_SIM_UNLIMITED);
    const struct dryi_place_ops *ops = rig.place.ops;
    void *place = rig.place.self;
    begin_pool_one(&rig);
    put(&rig, get(&rig, 1024 * MIB, 1));
    assert_int_equal(ops->trim(place, 0), DRY_OK);
    assert_int_equal(ops->begin_capture(place, all_streams), DRY_OK);
    put(&rig, get(&rig, 400 * MIB, 1));
    get(&rig, 500 * MIB, 1);
    get(&rig, 450 * MIB, 1);
    assert_true(reserved(&rig) == 1024 * MIB);
    assert_int_equal(ops->end_capture(place), DRY_OK);
    finish_rig(&rig);
}

/* The graph orders its nodes; what its streams were given before stays without an order. */
static void
waits_inside_a_capture_are_no_order(void **state)
{
    (void)state;
    struct rig rig;
    init_rig(&rig, "", DRY_SIM_UNLIMITED);
    const struct dryi_place_ops *ops = rig.place.ops;
    put(&rig, get(&rig, 8 * MIB, 1));
    assert_int_equal(ops->begin_capture(rig.place.self, all_streams), DRY_OK);
    assert_int_equal(ops->stream_waits(rig.place.self, 2, 1), DRY_OK);
    assert_int_equal(ops->end_capture(rig.place.self), DRY_OK);
    get(&rig, 8 * MIB, 2);
    assert_int_equal(counters_of(&rig).reused_ordered, 0);
    put(&rig, get(&rig, 8 * MIB, 1));
    assert_int_equal(ops->stream_waits(rig.place.self, 3, 1), DRY_OK);
    get(&rig, 8 * MIB, 3);
    assert_int_equal(counters_of(&rig).reused_ordered, 1);
    finish_rig(&rig);
}

/*
 * Holes a little too small share a bin with the one that fits, and are more than are looked at:
 * addresses are reserved for it once.
 */
static void
segment_made_for_a_request_serves_it(void **state)
{
    (void)state;
    enum { COUNT = 36 };
    struct rig rig;
    init_rig(&rig, "segment_mb:1024", 80 * GIB);
    dryi_block blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = get(&rig, 2 * GIB - 16 * MIB, 1);
    for (size_t i = 0; i < COUNT; i++)
        put(&rig, blocks[i]);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(rig.place.ops->trim(rig.place.self, 1),
                         DRY_OK); /* segments stay */
        put(&rig, get(&rig, 2 * GIB, 1));
        struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
        dry_sim_get_account(rig.sim, &account);
        assert_int_equal(account.reserved_address_bytes,
                         COUNT * (2 * GIB - 16 * MIB) + 2 * GIB);
        assert_int_equal(stats_of(&rig).num_alloc_retries, 0);
    }
    finish_rig(&rig);
}

/* --- devices without pages ---------------------------------------------------------------- */

static void
device_without_pages_is_served_by_segments(void **state)
{
    (void)state;
    struct rig rig;
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.page_bytes = 0;
    options.capacity_bytes = 64 * MIB;
    assert_int_equal(open_rig(&rig, "", &options, NULL), DRY_OK);
    dryi_block a = get(&rig, 3 * MIB, 0);
    assert_int_equal(reserved(&rig), 20 * MIB);
    assert_int_equal(stats_of(&rig).segment.all.current, 1);
    dryi_block b = get(&rig, 40 * MIB, 0);
    put(&rig, a);
    put(&rig, b);
    get(&rig, 50 * MIB, 0);
    assert_int_equal(stats_of(&rig).num_device_free, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(try_get(&rig, 20 * MIB, 0), DRY_ERR_NO_SPACE);
    finish_rig(&rig);
}

/*
 * A block of the largest size, and many a little smaller ones freed after it, which lie before it
 * in the bin that they share; something in use is behind each.
 */
static void
nothing_hides_behind_its_bin(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct rig rig;
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.page_bytes = 0;
    options.capacity_bytes = 60 * MIB;
    assert_int_equal(open_rig(&rig, "", &options, NULL), DRY_OK);
    dryi_block fits = get(&rig, 1000 * KIB, 0), smaller[COUNT];
    get(&rig, 65 * KIB, 0);
    size_t count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        dryi_block block = get(&rig, 994 * KIB, 0);
        uint64_t behind = info_of(&rig, block).addr + 994 * KIB;
        if (info_of(&rig, get(&rig, 65 * KIB, 0)).addr == behind)
            smaller[count++] = block;
    }
    assert_true(count > 30);
    while (try_get(&rig, 70 * KIB, 0) == DRY_OK)
        continue;
    put(&rig, fits);
    for (size_t i = 0; i < count; i++)
        put(&rig, smaller[i]);
    get(&rig, 1000 * KIB, 0);
    assert_int_equal(try_get(&rig, 1000 * KIB, 0), DRY_ERR_NO_SPACE);
    finish_rig(&rig);
}

static void
pages_have_a_size_to_work_with(void **state)
{
    (void)state;
    struct rig rig;
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.page_bytes = UINT64_C(1) << 43;
    assert_int_equal(open_rig(&rig, "", &options, NULL), DRY_ERR_UNSUPPORTED);
    options.page_bytes = UINT64_C(1) << 42;
    assert_int_equal(open_rig(&rig, "", &options, NULL), DRY_OK);
    finish_rig(&rig);
}

/* --- options ------------------------------------------------------------------------------ */

static void
options_are_read(void **state)
{
    (void)state;
    static const char text[] =
        " budget:1.25 ,small_kb:128,remap:False,plan:False,"
        "reuse_ordered:False,reuse_passed:0,reuse_waiting:true,"
        "per_process_memory_fraction:0.5,"
        "roundup_power2_divisions:[256:1,>:4],"
        "expandable_segments_reserve:40G,pinned_max_cached_size_mb:64";
    struct dryi_paged_conf conf;
    struct dry_error err;
    dryi_paged_conf_init(&conf);
    assert_int_equal(
        dryi_paged_conf_parse(text, strlen(text), dryi_torch_conf_has, &conf, &err),
        DRY_OK);
    assert_true(conf.budget == 1.25);
    assert_int_equal(conf.small_max, 128 * KIB);
    assert_false(conf.remap);
    assert_false(conf.plan);
    assert_false(conf.reuse_ordered);
    assert_false(conf.reuse_passed);
    assert_true(conf.reuse_waiting);
    assert_true(conf.per_process_memory_fraction == 0.5);
}

static void
options_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t offset;
    } cases[] = {
        {"budget", 0},
        {"budget:0.9", 0},
        {"budget:", 0},
        {"budget:1.0.5", 0},
        {"remap:maybe", 0},
        {"budget:1.1,backend:native", 11},
        {"small_kb:-1", 0},
        {"small_kb:1.5", 0},
        {"small_kb:99999999999", 0},
        {"a:b", 0},
        {"pinned_background_threads:True", 0},
        {"remap:True, x", 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dryi_paged_conf conf, before;
        struct dry_error err;
        dryi_paged_conf_init(&conf);
        before = conf;
        assert_int_equal(dryi_paged_conf_parse(cases[i].text, strlen(cases[i].text),
                                               dryi_torch_conf_has, &conf, &err),
                         DRY_ERR_ARGUMENT);
        assert_int_equal(err.offset, cases[i].offset);
        assert_true(conf.budget == before.budget && conf.remap == before.remap);
    }
}

/* --- random programs ---------------------------------------------------------------------- */

#define LIVE_MAX 96

struct play {
    struct rig rig;
    struct random random;
    dryi_block blocks[LIVE_MAX];
    uint64_t owners[LIVE_MAX]; /* of the blocks, for the device's checker */
    uint64_t next_owner;
    size_t count;
    size_t captures;
    bool in_pool, has_pool;
    bool is_strict; /* nothing is told to fail */
    size_t failures;
};

static void
note(struct play *play, enum dry_status status)
{
    struct dry_error err = {.text = ""};
    enum dry_status checked = play->rig.place.ops->check(play->rig.place.self, &err);
    if (checked != DRY_OK && checked != DRY_ERR_MEMORY)
        fail_msg("%s", err.text);
    struct dry_sim_finding finding = DRY_INIT(struct dry_sim_finding);
    if (dry_sim_get_finding(play->rig.sim, 0, &finding) == DRY_OK)
        fail_msg("%s", finding.text);
    if (status == DRY_OK)
        return;
    if (status != DRY_ERR_MEMORY && status != DRY_ERR_NO_SPACE &&
        status != DRY_ERR_SYSTEM)
        fail_msg("a failure becomes %s", dry_status_name(status));
    play->failures++;
}

static void
assert_alone(const struct play *play, dryi_block block)
{
    struct dryi_block_info a = info_of(&play->rig, block);
    assert_true(a.allocated && a.mapped);
    for (size_t i = 0; i < play->count; i++) {
        struct dryi_block_info b = info_of(&play->rig, play->blocks[i]);
        assert_true(a.addr + a.size <= b.addr || b.addr + b.size <= a.addr);
    }
}

static uint64_t
random_size(struct random *r)
{
    switch (random_below(r, 4)) {
    case 0:
        return 1 + random_below(r, 4096);
    case 1:
        return 1 + random_below(r, 512 * KIB);
    case 2:
        return MIB * (1 + random_below(r, 6));
    default:
        return 1 + random_below(r, 9 * MIB);
    }
}

/* Work on a block is put on a stream: the device proves that nothing comes too early. */
static void
use(struct play *play, size_t i, uint64_t stream)
{
    struct dryi_block_info info = info_of(&play->rig, play->blocks[i]);
    note(play, dry_sim_use(play->rig.sim, stream, info.addr, info.size, play->owners[i]));
}

static void
play_use(struct play *play)
{
    if (play->count == 0)
        return;
    size_t i = random_below(&play->random, play->count);
    use(play, i, info_of(&play->rig, play->blocks[i]).stream);
}

static void
play_alloc(struct play *play)
{
    const struct dryi_place_ops *ops = play->rig.place.ops;
    if (play->count == LIVE_MAX)
        return;
    uint64_t size = random_size(&play->random), stream = random_below(&play->random, 4);
    dryi_block block;
    enum dry_status status = ops->alloc(play->rig.place.self, size, stream, &block);
    note(play, status);
    if (status == DRY_ERR_NO_SPACE) { /* final, unless a call was told to fail */
        status = ops->alloc(play->rig.place.self, size, stream, &block);
        note(play, status);
        if (play->is_strict)
            assert_int_equal(status, DRY_ERR_NO_SPACE);
    }
    if (status != DRY_OK)
        return;
    assert_alone(play, block);
    struct dryi_block_info info = info_of(&play->rig, block);
    status = dry_sim_own(play->rig.sim, info.addr, info.size, stream, ++play->next_owner);
    note(play, status);
    if (status != DRY_OK) {
        note(play, ops->free(play->rig.place.self, block));
        return;
    }
    play->owners[play->count] = play->next_owner;
    play->blocks[play->count++] = block;
    use(play, play->count - 1, stream);
}

static void
play_free(struct play *play)
{
    if (play->count == 0)
        return;
    size_t i = random_below(&play->random, play->count);
    enum dry_status status =
        play->rig.place.ops->free(play->rig.place.self, play->blocks[i]);
    note(play, status);
    if (status != DRY_OK)
        return;
    dry_sim_disown(play->rig.sim, play->owners[i]);
    play->count--;
    play->blocks[i] = play->blocks[play->count];
    play->owners[i] = play->owners[play->count];
}

static void
play_record(struct play *play)
{
    if (play->count == 0)
        return;
    size_t i = random_below(&play->random, play->count);
    uint64_t stream = random_below(&play->random, 6);
    uint64_t own = info_of(&play->rig, play->blocks[i]).stream;
    enum dry_status status =
        play->rig.place.ops->record_stream(play->rig.place.self, play->blocks[i], stream);
    note(play, status);
    if (status == DRY_OK) /* who uses another's block comes behind him */
        status = dry_sim_stream_waits(play->rig.sim, stream, own);
    if (status == DRY_OK)
        use(play, i, stream);
}

/* The program orders two streams, and says so. */
static void
play_wait(struct play *play)
{
    uint64_t stream = random_below(&play->random, 4);
    uint64_t on = random_below(&play->random, 4);
    enum dry_status status = dry_sim_stream_waits(play->rig.sim, stream, on);
    note(play, status);
    if (status == DRY_OK)
        note(play, play->rig.place.ops->stream_waits(play->rig.place.self, stream, on));
}

static void
play_pool(struct play *play)
{
    const struct dryi_place_ops *ops = play->rig.place.ops;
    void *self = play->rig.place.self;
    enum dry_status status = DRY_OK;
    if (!play->has_pool) {
        status = ops->open_pool(self, pool_one, (unsigned)random_below(&play->random, 8));
        play->has_pool = status == DRY_OK;
    } else if (play->in_pool) {
        status = ops->end_pool(self, pool_one);
        play->in_pool = status != DRY_OK;
    } else if (random_below(&play->random, 3) == 0) {
        status = ops->release_pool(self, pool_one);
        play->has_pool = status != DRY_OK;
    } else {
        status = ops->begin_pool(self, pool_one, all_streams);
        play->in_pool = status == DRY_OK;
    }
    note(play, status);
}

static void
play_rarely(struct play *play)
{
    const struct dryi_place_ops *ops = play->rig.place.ops;
    void *self = play->rig.place.self;
    switch (random_below(&play->random, 6)) {
    case 0:
        note(play, ops->empty_cache(self, (struct dryi_pool_id){0, 0}));
        break;
    case 1:
        note(play, ops->trim(self, random_below(&play->random, 64) * MIB));
        break;
    case 2:
        play_pool(play);
        break;
    case 3:
        if (play->captures > 0) {
            note(play, ops->end_capture(self));
            play->captures--;
        } else {
            enum dry_status status = ops->begin_capture(self, all_streams);
            note(play, status);
            play->captures += status == DRY_OK;
        }
        break;
    case 4:
        ops->process_events(self);
        note(play, DRY_OK);
        break;
    default:
        play_use(play);
    }
}

static void
play_steps(struct play *play, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        uint64_t die = random_below(&play->random, 32);
        if (die < 15)
            play_alloc(play);
        else if (die < 27)
            play_free(play);
        else if (die < 28)
            play_record(play);
        else if (die < 29)
            play_use(play);
        else if (die < 30)
            play_wait(play);
        else if (die < 31)
            dry_sim_advance_stream(play->rig.sim, random_below(&play->random, 6),
                                   1 + random_below(&play->random, 3));
        else
            play_rarely(play);
    }
}

static const char *const confs[] = {
    "",
    "budget:1.0",
    "reuse_waiting:False,reuse_passed:False",
    "remap:False",
};
#define CONFS (sizeof confs / sizeof *confs)

static bool
open_play(struct play *play, uint64_t seed, const struct dry_memory *memory)
{
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.memory = memory;
    options.check = true;
    *play = (struct play){0};
    random_init(&play->random, seed);
    options.capacity_bytes = (8 + random_below(&play->random, 120)) * MIB;
    if (seed % 7 == 6)
        options.page_bytes = 0;
    return open_rig(&play->rig, confs[seed % CONFS], &options, memory) == DRY_OK;
}

/* Whatever has failed: with the device in order it gives memory again. */
static void
still_serves(struct play *play)
{
    const struct dryi_place_ops *ops = play->rig.place.ops;
    dry_sim_fail_at(play->rig.sim, UINT64_MAX);
    while (play->captures > 0) {
        assert_int_equal(ops->end_capture(play->rig.place.self), DRY_OK);
        play->captures--;
    }
    while (play->count > 0) {
        size_t before = play->count;
        play_free(play);
        assert_int_equal(play->count, before - 1);
    }
    if (play->in_pool)
        assert_int_equal(ops->end_pool(play->rig.place.self, pool_one), DRY_OK);
    if (play->has_pool)
        assert_int_equal(ops->release_pool(play->rig.place.self, pool_one), DRY_OK);
    put(&play->rig, get(&play->rig, 4 * MIB, 0));
}

#define SEEDS 84
#define STEPS 400

static void
random_programs_keep_all_invariants(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct play play;
        assert_true(open_play(&play, seed, NULL));
        play.is_strict = true;
        play_steps(&play, STEPS);
        still_serves(&play);
        finish_rig(&play.rig);
    }
}

/* --- failures ----------------------------------------------------------------------------- */

/* One seed for each set of options; the last one's device has no pages. */
static const uint64_t failing_seeds[] = {0, 1, 3, 6};
#define FAILING_SEEDS (sizeof failing_seeds / sizeof *failing_seeds)
#define FAILING_STEPS 120
/* With a sanitizer each seed has every fourth failure, another one than the others. */
#define FAILING_STRIDE (IS_SANITIZED ? FAILING_SEEDS : 1)
#define FIRST_FAILURE(i) (IS_SANITIZED ? (i) : 0)

static uint64_t
calls_made(const struct dry_sim *sim)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    uint64_t made = 0;
    dry_sim_get_account(sim, &account);
    for (int i = 0; i < DRY_SIM_CALL_COUNT; i++)
        made += account.calls[i];
    return made;
}

static void
every_device_call_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < FAILING_SEEDS; i++) {
        uint64_t made = UINT64_MAX;
        for (uint64_t call = FIRST_FAILURE(i); call <= made; call += FAILING_STRIDE) {
            struct play play;
            assert_true(open_play(&play, failing_seeds[i], NULL));
            dry_sim_fail_at(play.rig.sim, call);
            play_steps(&play, FAILING_STEPS);
            made = calls_made(play.rig.sim);
            still_serves(&play);
            finish_rig(&play.rig);
        }
    }
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < FAILING_SEEDS; i++) {
        for (size_t n = FIRST_FAILURE(i);; n += FAILING_STRIDE) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            struct play play;
            bool opened = open_play(&play, failing_seeds[i], &memory), failed = false;
            if (opened) {
                play_steps(&play, FAILING_STEPS);
                failed = fm.failed;
                fm.failed = false; /* from here on there is memory again */
                fm.left = SIZE_MAX;
                still_serves(&play);
                finish_rig(&play.rig);
            }
            failing_memory_finish(&fm);
            if (opened && !failed)
                break;
        }
    }
}

/*
 * A request reclaims a page from the middle of a block, which splits the block twice. It is cut
 * then from a block of its own stream that came free meanwhile. There is a record for that cut,
 * too, however few there were at first.
 */
static void
make_room_with_few_records(unsigned records, bool is_shared)
{
    struct rig rig;
    init_rig(&rig, "plan:False", 16 * MIB);
    const struct dryi_place_ops *ops = rig.place.ops;
    if (is_shared) {
        assert_non_null(rig.place.caches->ask(rig.place.self, 7));
        rig.place.caches->share(rig.place.self, true);
    }
    (void)get(&rig, 512, 1);
    (void)get(&rig, 256 * KIB, 1);
    dryi_block stolen = get(&rig, 4 * MIB, 2);
    (void)get(&rig, 256 * KIB, 1);
    dryi_block pending = get(&rig, 6 * MIB, 1);
    (void)get(&rig, 512 * KIB, 1);
    dryi_block last = get(&rig, 3 * MIB, 1);
    assert_int_equal(ops->record_stream(rig.place.self, pending, 2), DRY_OK);
    for (unsigned i = 0; i < records; i++)
        (void)get(&rig, 512, 1);
    assert_int_equal(ops->free(rig.place.self, pending), DRY_OK);
    assert_int_equal(ops->free(rig.place.self, stolen), DRY_OK);
    assert_int_equal(ops->free(rig.place.self, last), DRY_OK);
    (void)get(&rig, 4 * MIB + 256 * KIB, 1);
    finish_rig(&rig);
}

static void
records_last_for_the_whole_request(void **state)
{
    (void)state;
    for (unsigned records = 90; records < 135; records++) { /* they grow by half */
        make_room_with_few_records(records, false);
        make_room_with_few_records(records, true);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_memory_serves_again_without_the_driver),
        cmocka_unit_test(neighbours_share_pages),
        cmocka_unit_test(sizes_of_zero_and_beyond_all_bounds),
        cmocka_unit_test(full_device_gets_pages_from_under_free_blocks),
        cmocka_unit_test(full_device_refuses_and_refuses_again),
        cmocka_unit_test(oom_tells_of_pages_without_an_address),
        cmocka_unit_test(limit_is_registered),
        cmocka_unit_test(small_and_large_share_pages_when_they_must),
        cmocka_unit_test(empty_cache_gives_everything_back),
        cmocka_unit_test(empty_cache_finds_every_scattered_page),
        cmocka_unit_test(trim_keeps_what_is_asked_for),
        cmocka_unit_test(budget_holds_reserved_memory_down),
        cmocka_unit_test(without_remap_the_budget_is_no_reason_to_move_pages),
        cmocka_unit_test(no_event_is_recorded_for_one_stream),
        cmocka_unit_test(another_stream_gets_no_block_that_may_be_in_use),
        cmocka_unit_test(another_stream_gets_a_block_it_comes_behind),
        cmocka_unit_test(what_is_freed_after_the_wait_is_not_known_by_it),
        cmocka_unit_test(waits_are_known_through_others),
        cmocka_unit_test(a_wait_is_put_in_where_memory_is_short),
        cmocka_unit_test(recorded_stream_keeps_a_block_back),
        cmocka_unit_test(full_device_waits_for_what_is_pending),
        cmocka_unit_test(private_pools_do_not_mix),
        cmocka_unit_test(pools_that_nobody_uses_do_not_pile_up),
        cmocka_unit_test(pools_of_captures_do_not_pile_up),
        cmocka_unit_test(private_memory_serves_others_only_if_lent),
        cmocka_unit_test(a_request_gets_the_pages_of_many_pools_that_nobody_uses),
        cmocka_unit_test(a_pool_that_is_used_again_gives_no_pages),
        cmocka_unit_test(blocks_of_a_pool_without_splits_are_whole),
        cmocka_unit_test(captures_hold_frees_back),
        cmocka_unit_test(captured_requests_are_put_together),
        cmocka_unit_test(a_captured_stream_alone_takes_all_in),
        cmocka_unit_test(waits_inside_a_capture_are_no_order),
        cmocka_unit_test(device_without_pages_is_served_by_segments),
        cmocka_unit_test(nothing_hides_behind_its_bin),
        cmocka_unit_test(segment_made_for_a_request_serves_it),
        cmocka_unit_test(pages_have_a_size_to_work_with),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(options_that_are_none_are_refused),
        cmocka_unit_test(records_last_for_the_whole_request),
        cmocka_unit_test(random_programs_keep_all_invariants),
        cmocka_unit_test(every_device_call_may_fail),
        cmocka_unit_test(many_frees_that_are_over_cost_a_request_little),
        cmocka_unit_test(every_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
