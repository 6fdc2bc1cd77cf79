/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of prop/place_adversary.h on every place: nothing breaks, nothing is lost, and
 * what a request makes the device do is bounded.
 */
#include "support/cmocka.h"

#include <inttypes.h>
#include <stdlib.h>

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged/paged.h"
#include "place/torch/torch.h"
#include "prop/place_adversary.h"
#include "support/failing_memory.h"

#define LIVE_BYTES (256 * DRYI_MIB)
#define REQUESTS 6000
#define CHECK_EVERY 512

struct arena {
    struct dry_sim *sim;
    struct failing_memory memory;
    struct dry_memory memory_of_place;
    struct dryi_place place;
    struct {
        dryi_block handle;
        uint64_t addr, size, stream, owner;
    } blocks[REQUESTS];
    uint32_t requests, refused;
    uint64_t live_bytes, live_peak, owner_last;
};

static void
use(struct arena *a, uint32_t id, uint64_t stream)
{
    assert_int_equal(dry_sim_use(a->sim, stream, a->blocks[id].addr, a->blocks[id].size,
                                 a->blocks[id].owner),
                     DRY_OK);
}

static void
check_arena(struct arena *a)
{
    struct dry_sim_finding finding = DRY_INIT(struct dry_sim_finding);
    if (dry_sim_get_finding(a->sim, 0, &finding) == DRY_OK)
        fail_msg("%s", finding.text);
    struct dry_error err = {.text = ""};
    if (a->place.ops->check(a->place.self, &err) != DRY_OK)
        fail_msg("check: %s", err.text);
    struct dry_stats stats;
    a->place.ops->get_stats(a->place.self, &stats);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(a->sim, &account);
    assert_int_equal(stats.reserved_bytes.all.current, account.used_bytes);
}

static uint64_t
arena_alloc(void *self, uint32_t id, uint64_t size, uint64_t stream)
{
    struct arena *a = self;
    dryi_block handle;
    a->requests++;
    if (a->requests % CHECK_EVERY == 0)
        check_arena(a);
    if (a->place.ops->alloc(a->place.self, size, stream, &handle) != DRY_OK) {
        a->refused++;
        return 0;
    }
    struct dryi_block_info info;
    a->place.ops->get_block(a->place.self, handle, &info);
    assert_true(info.allocated && info.size >= size);
    a->blocks[id].handle = handle;
    a->blocks[id].addr = info.addr;
    a->blocks[id].size = info.size;
    a->blocks[id].stream = stream;
    a->blocks[id].owner = ++a->owner_last;
    assert_int_equal(dry_sim_own(a->sim, info.addr, info.size, stream, a->owner_last),
                     DRY_OK);
    use(a, id, stream);
    a->live_bytes += info.size;
    if (a->live_bytes > a->live_peak)
        a->live_peak = a->live_bytes;
    return info.addr;
}

static void
arena_free(void *self, uint32_t id)
{
    struct arena *a = self;
    dry_sim_disown(a->sim, a->blocks[id].owner);
    assert_int_equal(a->place.ops->free(a->place.self, a->blocks[id].handle), DRY_OK);
    a->live_bytes -= a->blocks[id].size;
}

static void
arena_record_stream(void *self, uint32_t id, uint64_t stream)
{
    struct arena *a = self;
    assert_int_equal(dry_sim_stream_waits(a->sim, stream, a->blocks[id].stream), DRY_OK);
    use(a, id, stream);
    assert_int_equal(
        a->place.ops->record_stream(a->place.self, a->blocks[id].handle, stream), DRY_OK);
}

static void
arena_complete_stream(void *self, uint64_t stream)
{
    struct arena *a = self;
    dry_sim_complete_stream(a->sim, stream);
}

static void
open_torch(struct arena *a)
{
    struct dryi_torch_options options = {.device = dry_sim_get_device(a->sim),
                                         .memory = &a->memory_of_place};
    dryi_torch_conf_init(&options.conf);
    struct dryi_torch *torch;
    assert_int_equal(dryi_torch_create(&options, &torch, NULL), DRY_OK);
    a->place = dryi_torch_as_place(torch);
}

static void
open_paged(struct arena *a)
{
    struct dryi_paged_options options = {.device = dry_sim_get_device(a->sim),
                                         .memory = &a->memory_of_place};
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_create(&options, &a->place, NULL), DRY_OK);
}

/* On an endless device nothing is refused; at the end everything can be given back. */
static void
oppose_place(enum adversary adversary, void (*open)(struct arena *a), struct arena *a)
{
    *a = (struct arena){0};
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.check = true;
    assert_int_equal(dry_sim_create(&options, &a->sim, NULL), DRY_OK);
    a->memory_of_place = failing_memory_init(&a->memory, SIZE_MAX);
    open(a);
    struct adversary_target target = {.alloc = arena_alloc,
                                      .free = arena_free,
                                      .record_stream = arena_record_stream,
                                      .complete_stream = arena_complete_stream,
                                      .self = a};
    adversary_run(adversary, LIVE_BYTES, REQUESTS, &target);
    check_arena(a);
    assert_true(a->requests > REQUESTS / 4);
    assert_int_equal(a->refused, 0);
    assert_int_equal(a->live_bytes, 0);
    struct dryi_pool_id all = {0, 0};
    assert_int_equal(a->place.ops->empty_cache(a->place.self, all), DRY_OK);
    check_arena(a);
}

static void
close_place(struct arena *a)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(a->sim, &account);
    assert_int_equal(account.used_bytes, 0);
    a->place.ops->destroy(a->place.self);
    failing_memory_finish(&a->memory);
    dry_sim_destroy(a->sim);
}

static struct arena arena;

/* Every call that is not a query, a request; bytes taken by bytes alive, both at their peak. */
struct toll {
    double calls, taken;
};

static struct toll
pay(enum adversary adversary, void (*open)(struct arena *a))
{
    oppose_place(adversary, open, &arena);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(arena.sim, &account);
    uint64_t calls = 0;
    for (int call = 0; call < DRY_SIM_CALL_COUNT; call++)
        calls += call == DRY_SIM_EVENT_QUERY ? 0 : account.calls[call];
    struct toll toll = {(double)calls / arena.requests,
                        (double)account.peak_bytes / (double)arena.live_peak};
    print_message("%-14s %5u requests, %.2f driver calls each, taken / alive %.3f\n",
                  adversary_name(adversary), arena.requests, toll.calls, toll.taken);
    close_place(&arena);
    return toll;
}

static void
torch_survives_every_adversary(void **state)
{
    (void)state;
    for (int adversary = 0; adversary < ADVERSARY_COUNT; adversary++)
        pay((enum adversary)adversary, open_torch);
}

/*
 * On a device without an end, at the default budget. Robson's bound for memory that cannot
 * move would be 1 + log2(sizes) / 2, about 6 here; pages that move stay far below it.
 */
static void
paged_bounds_what_adversaries_cost(void **state)
{
    (void)state;
    static const struct toll bounds[ADVERSARY_COUNT] = {
        [ADVERSARY_ROBSON] = {1.0, 3.0},     [ADVERSARY_BEST_FIT] = {0.5, 1.1},
        [ADVERSARY_FIRST_FIT] = {0.5, 1.25}, [ADVERSARY_SIZE_PLUS_ONE] = {0.5, 1.2},
        [ADVERSARY_SURVIVORS] = {0.5, 1.2},  [ADVERSARY_NO_FIT] = {0.5, 1.2},
        [ADVERSARY_SAWTOOTH] = {0.5, 1.05},  [ADVERSARY_RECORD_STORM] = {2 * 16, 5.0},
        [ADVERSARY_STREAMS] = {40.0, 4.0},
    };
    for (int adversary = 0; adversary < ADVERSARY_COUNT; adversary++) {
        struct toll toll = pay((enum adversary)adversary, open_paged);
        assert_true(toll.calls <= bounds[adversary].calls);
        assert_true(toll.taken <= bounds[adversary].taken);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paged_bounds_what_adversaries_cost),
        cmocka_unit_test(torch_survives_every_adversary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
