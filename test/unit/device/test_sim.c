/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <drystone/sim.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct dry_sim *
make_sim(uint64_t capacity_bytes)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.capacity_bytes = capacity_bytes;
    struct dry_sim *sim = NULL;
    assert_int_equal(dry_sim_create(&o, &sim, NULL), DRY_OK);
    return sim;
}

static struct dry_sim_account
get_account(const struct dry_sim *sim)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    return account;
}

static void
addresses_rise_and_never_return(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t address;
        assert_int_equal(d.ops->alloc(d.self, 3 * MIB, &address), DRY_OK);
        assert_true(address > last);
        assert_true(address % (2 * MIB) == 0);
        if (last)
            assert_true(address - last == 4 * MIB);
        d.ops->free(d.self, address, 3 * MIB);
        last = address;
    }
    uint64_t reserved;
    assert_int_equal(d.ops->reserve(d.self, GIB, &reserved), DRY_OK);
    assert_true(reserved > last);
    assert_true(get_account(sim).used_bytes == 0);
    assert_true(get_account(sim).peak_bytes == 4 * MIB);
    assert_true(get_account(sim).reserved_address_bytes == GIB);
    d.ops->unreserve(d.self, reserved, GIB);
    assert_true(get_account(sim).reserved_address_bytes == 0);
    dry_sim_destroy(sim);
}

static void
million_large_segments_fit(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t address = 0;
    for (int i = 0; i < 1000000; i++)
        assert_int_equal(d.ops->alloc(d.self, GIB, &address), DRY_OK);
    assert_true(address < (UINT64_C(1) << 52));
    dry_sim_destroy(sim);
}

static void
full_device_refuses(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(10 * MIB);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t a, b = 7, free_bytes, total_bytes;
    assert_int_equal(d.ops->alloc(d.self, 6 * MIB, &a), DRY_OK);
    assert_int_equal(d.ops->alloc(d.self, 6 * MIB, &b), DRY_ERR_NO_SPACE);
    assert_true(b == 7);
    assert_int_equal(d.ops->map(d.self, 0, 6 * MIB, 2 * MIB), DRY_ERR_NO_SPACE);
    d.ops->get_info(d.self, &free_bytes, &total_bytes);
    assert_true(free_bytes == 4 * MIB && total_bytes == 10 * MIB);
    assert_int_equal(d.ops->map(d.self, 0, 4 * MIB, 2 * MIB), DRY_OK);
    assert_true(get_account(sim).failures == 2);
    d.ops->unmap(d.self, 0, 2 * MIB, 2 * MIB);
    assert_int_equal(d.ops->alloc(d.self, 2 * MIB, &b), DRY_OK);
    assert_true(get_account(sim).used_bytes == 10 * MIB);
    dry_sim_destroy(sim);
}

static void
capacity_may_shrink_below_what_is_taken(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(10 * MIB);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t a, free_bytes, total_bytes;
    assert_int_equal(d.ops->alloc(d.self, 8 * MIB, &a), DRY_OK);
    dry_sim_set_capacity(sim, 4 * MIB);
    d.ops->get_info(d.self, &free_bytes, &total_bytes);
    assert_true(free_bytes == 0 && total_bytes == 4 * MIB);
    uint64_t b;
    assert_int_equal(d.ops->alloc(d.self, 1, &b), DRY_ERR_NO_SPACE);
    dry_sim_set_capacity(sim, 16 * MIB);
    assert_int_equal(d.ops->alloc(d.self, 1, &b), DRY_OK);
    dry_sim_destroy(sim);
}

static void
huge_sizes_are_refused_without_overflow(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t a, used = 0;
    assert_int_equal(d.ops->alloc(d.self, UINT64_MAX, &a), DRY_ERR_NO_SPACE);
    assert_int_equal(d.ops->alloc(d.self, UINT64_MAX - 4 * MIB, &a), DRY_ERR_NO_SPACE);
    assert_int_equal(d.ops->reserve(d.self, UINT64_MAX, &a), DRY_ERR_NO_SPACE);
    assert_int_equal(d.ops->map(d.self, 0, UINT64_MAX, 2 * MIB), DRY_ERR_NO_SPACE);
    assert_true(get_account(sim).used_bytes == used);
    assert_int_equal(d.ops->alloc(d.self, 0, &a), DRY_ERR_ARGUMENT);
    assert_int_equal(d.ops->reserve(d.self, 0, &a), DRY_ERR_ARGUMENT);
    assert_int_equal(d.ops->map(d.self, 0, MIB, 0), DRY_ERR_ARGUMENT);
    dry_sim_adopt(sim, UINT64_MAX);
    dry_sim_adopt(sim, UINT64_MAX);
    assert_true(get_account(sim).used_bytes == UINT64_MAX);
    for (int i = 0; i < 3; i++)
        assert_int_equal(d.ops->map(d.self, 0, UINT64_MAX, 1), DRY_ERR_NO_SPACE);
    assert_true(get_account(sim).time_ns == UINT64_MAX);
    dry_sim_destroy(sim);
}

static void
adopted_memory_counts_and_is_given_back(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(10 * MIB);
    struct dry_device d = dry_sim_get_device(sim);
    dry_sim_adopt(sim, 8 * MIB);
    assert_true(get_account(sim).peak_bytes == 8 * MIB);
    uint64_t a;
    assert_int_equal(d.ops->alloc(d.self, 4 * MIB, &a), DRY_ERR_NO_SPACE);
    d.ops->free(d.self, 12345, 4 * MIB);
    assert_int_equal(d.ops->alloc(d.self, 4 * MIB, &a), DRY_OK);
    d.ops->unmap(d.self, 0, 400 * MIB, 20 * MIB); /* more than there is: stops at 0 */
    assert_true(get_account(sim).used_bytes == 0);
    dry_sim_destroy(sim);
}

static uint64_t
choose(void *self, enum dry_sim_call call, uint64_t size)
{
    (void)size;
    const uint64_t *addresses = self;
    return addresses[call == DRY_SIM_RESERVE];
}

static void
callers_addresses_are_used(void **state)
{
    (void)state;
    uint64_t addresses[2] = {UINT64_C(0x7f0000000000), 0};
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.choose_address = choose;
    o.choose_self = addresses;
    struct dry_sim *sim;
    assert_int_equal(dry_sim_create(&o, &sim, NULL), DRY_OK);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t a, r;
    assert_int_equal(d.ops->alloc(d.self, 3 * MIB, &a), DRY_OK);
    assert_true(a == addresses[0]);
    assert_int_equal(d.ops->reserve(d.self, MIB, &r), DRY_OK);
    assert_true(r == a + 4 * MIB); /* our own lie above what was chosen */
    addresses[0] = UINT64_MAX - 5; /* a mad choice is the caller's, and harmless */
    assert_int_equal(d.ops->alloc(d.self, 3 * MIB, &a), DRY_OK);
    assert_true(a == UINT64_MAX - 5);
    assert_int_equal(d.ops->reserve(d.self, MIB, &r), DRY_OK);
    dry_sim_destroy(sim);
}

static void
events_complete_in_stream_order(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t e[4], other;
    for (int i = 0; i < 4; i++)
        assert_int_equal(d.ops->event_record(d.self, 42, &e[i]), DRY_OK);
    assert_int_equal(d.ops->event_record(d.self, 43, &other), DRY_OK);
    for (int i = 0; i < 4; i++)
        assert_false(d.ops->event_query(d.self, e[i]));
    d.ops->event_wait(d.self, e[1]);
    assert_true(d.ops->event_query(d.self, e[0]));
    assert_true(d.ops->event_query(d.self, e[1]));
    assert_false(d.ops->event_query(d.self, e[2]));
    d.ops->event_wait(d.self, e[0]); /* behind us: nothing moves back */
    assert_true(d.ops->event_query(d.self, e[1]));
    dry_sim_complete_stream(sim, 42);
    assert_true(d.ops->event_query(d.self, e[3]));
    assert_false(d.ops->event_query(d.self, other));
    dry_sim_complete_stream(sim, 99); /* never seen */
    uint64_t later;
    assert_int_equal(d.ops->event_record(d.self, 42, &later), DRY_OK);
    assert_false(d.ops->event_query(d.self, later));
    d.ops->stream_wait(d.self, 42);
    assert_true(d.ops->event_query(d.self, later));
    assert_true(get_account(sim).events_live == 6);
    for (int i = 0; i < 4; i++)
        d.ops->event_destroy(d.self, e[i]);
    d.ops->event_destroy(d.self, other);
    d.ops->event_destroy(d.self, later);
    assert_true(get_account(sim).events_live == 0);
    dry_sim_destroy(sim);
}

static void
event_slots_are_recycled(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.memory = &memory;
    struct dry_sim *sim;
    assert_int_equal(dry_sim_create(&o, &sim, NULL), DRY_OK);
    struct dry_device d = dry_sim_get_device(sim);
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t e;
        assert_int_equal(d.ops->event_record(d.self, i % 3, &e), DRY_OK);
        d.ops->event_destroy(d.self, e);
    }
    assert_true(fm.peak_bytes < 16384);
    dry_sim_destroy(sim);
    failing_memory_finish(&fm);
}

static void
nth_call_fails_once(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t x;
    dry_sim_fail_at(sim, 0);
    assert_int_equal(d.ops->alloc(d.self, MIB, &x), DRY_ERR_NO_SPACE);
    assert_int_equal(d.ops->alloc(d.self, MIB, &x), DRY_OK);
    dry_sim_fail_at(sim, 2);
    assert_int_equal(d.ops->alloc(d.self, MIB, &x), DRY_OK);
    d.ops->free(d.self, x, MIB); /* cannot fail, so is not counted */
    assert_int_equal(d.ops->map(d.self, 0, 2 * MIB, 2 * MIB), DRY_OK);
    assert_int_equal(d.ops->event_record(d.self, 0, &x), DRY_ERR_SYSTEM);
    dry_sim_fail_at(sim, 0);
    assert_int_equal(d.ops->reserve(d.self, MIB, &x), DRY_ERR_NO_SPACE);
    dry_sim_fail_at(sim, 0);
    dry_sim_fail_at(sim, UINT64_MAX);
    assert_int_equal(d.ops->reserve(d.self, MIB, &x), DRY_OK);
    assert_true(get_account(sim).failures == 3);
    dry_sim_destroy(sim);
}

static void
driver_time_is_modelled(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t a;
    assert_int_equal(d.ops->alloc(d.self, MIB, &a), DRY_OK);
    assert_true(get_account(sim).time_ns == 50000);
    d.ops->free(d.self, a, MIB);
    assert_true(get_account(sim).time_ns == 60000);
    assert_int_equal(d.ops->map(d.self, 0, 20 * MIB, 2 * MIB), DRY_OK);
    assert_true(get_account(sim).time_ns == 60000 + 36000 + 10 * 194450);
    d.ops->unmap(d.self, 0, 20 * MIB, 20 * MIB);
    assert_true(get_account(sim).time_ns == 60000 + 36000 + 10 * 194450 + 25600);
    assert_true(get_account(sim).calls[DRY_SIM_MAP] == 1);
    assert_true(get_account(sim).calls[DRY_SIM_UNMAP] == 1);
    dry_sim_destroy(sim);
}

static void
a_stream_passes_no_event_it_follows_too_early(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t first, second, before, behind, later;
    assert_int_equal(d.ops->event_record(d.self, 1, &first), DRY_OK);
    assert_int_equal(d.ops->event_record(d.self, 1, &second), DRY_OK);
    assert_int_equal(d.ops->event_record(d.self, 2, &before), DRY_OK);
    assert_int_equal(d.ops->stream_follow(d.self, 2, first), DRY_OK);
    assert_int_equal(d.ops->event_record(d.self, 2, &behind), DRY_OK);
    d.ops->event_wait(d.self, before);
    assert_false(d.ops->event_query(d.self, first));
    d.ops->event_wait(d.self, behind);
    assert_true(d.ops->event_query(d.self, first));
    assert_false(d.ops->event_query(d.self, second));
    /* The end of a stream is behind what it follows last. */
    assert_int_equal(d.ops->stream_follow(d.self, 2, second), DRY_OK);
    dry_sim_advance_stream(sim, 2, 5);
    assert_false(d.ops->event_query(d.self, second));
    dry_sim_complete_stream(sim, 2);
    assert_true(d.ops->event_query(d.self, second));
    /* Following oneself, or what is over, means nothing. */
    assert_int_equal(d.ops->stream_follow(d.self, 1, second), DRY_OK);
    assert_int_equal(d.ops->stream_follow(d.self, 2, second), DRY_OK);
    assert_int_equal(d.ops->event_record(d.self, 2, &later), DRY_OK);
    assert_false(d.ops->event_query(d.self, later));
    dry_sim_complete_stream(sim, 1);
    assert_false(d.ops->event_query(d.self, later));
    dry_sim_destroy(sim);
}

static void
a_chain_of_streams_is_passed_to_its_end(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t first, event;
    assert_int_equal(d.ops->event_record(d.self, 0, &first), DRY_OK);
    event = first;
    for (uint64_t i = 1; i < COUNT; i++) {
        assert_int_equal(d.ops->stream_follow(d.self, i, event), DRY_OK);
        assert_int_equal(d.ops->event_record(d.self, i, &event), DRY_OK);
    }
    dry_sim_complete_stream(sim, COUNT / 2);
    assert_true(d.ops->event_query(d.self, first));
    assert_false(d.ops->event_query(d.self, event));
    d.ops->event_wait(d.self, event);
    assert_true(d.ops->event_query(d.self, event));
    dry_sim_destroy(sim);
}

static void
a_stream_advances_by_events(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t e[4], other;
    assert_int_equal(d.ops->event_record(d.self, 2, &other), DRY_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(d.ops->event_record(d.self, 1, &e[i]), DRY_OK);
        if (i == 1)
            assert_int_equal(dry_sim_stream_waits(sim, 1, 2), DRY_OK);
    }
    dry_sim_advance_stream(sim, 1, 2);
    assert_true(d.ops->event_query(d.self, e[1]));
    assert_false(d.ops->event_query(d.self, e[2]));
    assert_false(d.ops->event_query(d.self, other));
    dry_sim_advance_stream(sim, 1, 1);
    assert_true(d.ops->event_query(d.self, e[2]));
    assert_false(d.ops->event_query(d.self, e[3]));
    assert_true(d.ops->event_query(d.self, other));
    dry_sim_advance_stream(sim, 1, UINT64_MAX);
    assert_true(d.ops->event_query(d.self, e[3]));
    dry_sim_advance_stream(sim, 99, 1); /* never seen */
    dry_sim_destroy(sim);
}

/* A stream that is never completed follows others for ever: passed events are forgotten. */
static void
following_takes_bounded_memory(void **state)
{
    (void)state;
    for (int check = 0; check < 2; check++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dry_sim_options o;
        dry_sim_options_init(&o);
        o.memory = &memory;
        o.check = check;
        struct dry_sim *sim;
        assert_int_equal(dry_sim_create(&o, &sim, NULL), DRY_OK);
        struct dry_device d = dry_sim_get_device(sim);
        size_t begin_bytes = fm.live_bytes;
        for (uint64_t i = 0; i < 100000; i++) {
            uint64_t e, own;
            assert_int_equal(d.ops->event_record(d.self, 1 + i % 3, &e), DRY_OK);
            assert_int_equal(d.ops->stream_follow(d.self, 0, e), DRY_OK);
            assert_int_equal(d.ops->event_record(d.self, 0, &own), DRY_OK);
            dry_sim_complete_stream(sim, 1 + i % 3);
            d.ops->event_destroy(d.self, e);
            d.ops->event_destroy(d.self, own);
        }
        assert_true(fm.peak_bytes - begin_bytes < 16384);
        dry_sim_destroy(sim);
        failing_memory_finish(&fm);
    }
}

static void
pages_count_as_memory(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(5 * MIB);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t r, pages[3] = {0}, none = 7;
    assert_int_equal(d.ops->reserve(d.self, GIB, &r), DRY_OK);
    assert_int_equal(d.ops->create_page(d.self, &pages[0]), DRY_OK);
    assert_int_equal(d.ops->create_page(d.self, &pages[1]), DRY_OK);
    assert_true(pages[0] != pages[1]);
    assert_int_equal(d.ops->create_page(d.self, &none), DRY_ERR_NO_SPACE);
    assert_true(none == 7);
    assert_int_equal(d.ops->map_pages(d.self, r, pages, 2), DRY_OK);
    assert_true(get_account(sim).used_bytes == 4 * MIB);
    assert_true(get_account(sim).pages_live == 2);
    assert_int_equal(d.ops->unmap_pages(d.self, r + 2 * MIB, 1), DRY_OK);
    assert_true(get_account(sim).used_bytes == 4 * MIB); /* still ours */
    d.ops->release_page(d.self, pages[1]);
    assert_true(get_account(sim).used_bytes == 2 * MIB);
    assert_int_equal(d.ops->create_page(d.self, &pages[2]), DRY_OK);
    assert_true(pages[2] != pages[0] && pages[2] != pages[1]);
    assert_int_equal(d.ops->map_pages(d.self, r, pages, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(d.ops->map_pages(d.self, r + 512, pages, 1), DRY_ERR_ARGUMENT);
    assert_int_equal(d.ops->unmap_pages(d.self, r, 0), DRY_ERR_ARGUMENT);
    struct dry_device_traits traits;
    d.ops->get_traits(d.self, &traits);
    assert_true(traits.page_bytes == 2 * MIB && traits.total_bytes == 5 * MIB);
    dry_sim_destroy(sim);
}

static void
a_device_without_pages_has_none(void **state)
{
    (void)state;
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.page_bytes = 0;
    struct dry_sim *sim;
    assert_int_equal(dry_sim_create(&o, &sim, NULL), DRY_OK);
    struct dry_device d = dry_sim_get_device(sim);
    struct dry_device_traits traits;
    uint64_t page = 7;
    d.ops->get_traits(d.self, &traits);
    assert_true(traits.page_bytes == 0);
    assert_int_equal(d.ops->create_page(d.self, &page), DRY_ERR_UNSUPPORTED);
    assert_int_equal(d.ops->map_pages(d.self, 0, &page, 1), DRY_ERR_ARGUMENT);
    assert_true(page == 7);
    dry_sim_destroy(sim);
}

static void
calls_on_pages_fail_when_told(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(DRY_SIM_UNLIMITED);
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t page = 7, e;
    dry_sim_fail_at(sim, 0);
    assert_int_equal(d.ops->create_page(d.self, &page), DRY_ERR_NO_SPACE);
    assert_true(page == 7 && get_account(sim).used_bytes == 0);
    assert_int_equal(d.ops->create_page(d.self, &page), DRY_OK);
    dry_sim_fail_at(sim, 0);
    assert_int_equal(d.ops->map_pages(d.self, 0, &page, 1), DRY_ERR_SYSTEM);
    dry_sim_fail_at(sim, 0);
    assert_int_equal(d.ops->unmap_pages(d.self, 0, 1), DRY_ERR_SYSTEM);
    assert_int_equal(d.ops->event_record(d.self, 1, &e), DRY_OK);
    dry_sim_fail_at(sim, 0);
    assert_int_equal(d.ops->stream_follow(d.self, 2, e), DRY_ERR_SYSTEM);
    dry_sim_complete_stream(sim, 2); /* it does not follow */
    assert_false(d.ops->event_query(d.self, e));
    assert_true(get_account(sim).failures == 4);
    dry_sim_destroy(sim);
}

static void
bad_options_are_refused(void **state)
{
    (void)state;
    struct dry_sim_options o;
    struct dry_error err;
    struct dry_sim *sim = NULL;
    dry_sim_options_init(&o);
    o.granularity_bytes = 3;
    assert_int_equal(dry_sim_create(&o, &sim, &err), DRY_ERR_ARGUMENT);
    o.granularity_bytes = 0;
    assert_int_equal(dry_sim_create(&o, &sim, &err), DRY_ERR_ARGUMENT);
    dry_sim_options_init(&o);
    o.page_bytes = 3 * MIB;
    assert_int_equal(dry_sim_create(&o, &sim, &err), DRY_ERR_ARGUMENT);
    o.struct_size = 0;
    assert_int_equal(dry_sim_create(&o, &sim, &err), DRY_ERR_ARGUMENT);
    assert_null(sim);
    assert_int_equal(dry_sim_create(NULL, &sim, &err), DRY_OK);
    dry_sim_destroy(sim);
    dry_sim_destroy(NULL);
}

/* Many streams, many events; every failure leaves the account as it was. */
static enum dry_status
record_many(const struct dry_memory *memory)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.memory = memory;
    struct dry_sim *sim;
    enum dry_status status = dry_sim_create(&o, &sim, NULL);
    if (status != DRY_OK)
        return status;
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t e = 0;
    uint64_t live = 0;
    for (uint64_t stream = 0; stream < 500 && status == DRY_OK; stream++) {
        status = d.ops->event_record(d.self, stream * 4096, &e);
        live += status == DRY_OK;
    }
    assert_true(get_account(sim).events_live == live);
    assert_true(get_account(sim).failures == (status != DRY_OK));
    for (uint64_t i = 0; i < live; i++)
        assert_false(d.ops->event_query(d.self, i));
    dry_sim_destroy(sim);
    return status;
}

static void
running_out_of_memory_is_reported(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        enum dry_status status = record_many(&memory);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_rise_and_never_return),
        cmocka_unit_test(million_large_segments_fit),
        cmocka_unit_test(full_device_refuses),
        cmocka_unit_test(capacity_may_shrink_below_what_is_taken),
        cmocka_unit_test(huge_sizes_are_refused_without_overflow),
        cmocka_unit_test(adopted_memory_counts_and_is_given_back),
        cmocka_unit_test(callers_addresses_are_used),
        cmocka_unit_test(events_complete_in_stream_order),
        cmocka_unit_test(event_slots_are_recycled),
        cmocka_unit_test(a_stream_passes_no_event_it_follows_too_early),
        cmocka_unit_test(a_chain_of_streams_is_passed_to_its_end),
        cmocka_unit_test(a_stream_advances_by_events),
        cmocka_unit_test(following_takes_bounded_memory),
        cmocka_unit_test(pages_count_as_memory),
        cmocka_unit_test(a_device_without_pages_has_none),
        cmocka_unit_test(calls_on_pages_fail_when_told),
        cmocka_unit_test(nth_call_fails_once),
        cmocka_unit_test(driver_time_is_modelled),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
