/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each finding: the smallest program that commits the fault, and its twin that does not.
 * Random programs against a checker that keeps the whole graph of what happened before what.
 */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/random.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/sim.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define PAGE (2 * MIB)

struct world {
    struct dry_sim *sim;
    struct dry_device d;
};

static struct world
make_world(void)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.check = true;
    struct world w = {0};
    assert_int_equal(dry_sim_create(&o, &w.sim, NULL), DRY_OK);
    w.d = dry_sim_get_device(w.sim);
    return w;
}

static void
end_world(struct world *w)
{
    dry_sim_destroy(w->sim);
}

static void
expect_clean(const struct world *w)
{
    struct dry_sim_finding f = DRY_INIT(struct dry_sim_finding);
    if (dry_sim_get_finding(w->sim, 0, &f) == DRY_OK)
        print_message("%s\n", f.text);
    assert_int_equal(dry_sim_get_finding_count(w->sim), 0);
}

/* Exactly one finding, of this kind. */
static struct dry_sim_finding
expect_one(const struct world *w, enum dry_sim_fault fault)
{
    struct dry_sim_finding f = DRY_INIT(struct dry_sim_finding);
    assert_int_equal(dry_sim_get_finding_count(w->sim), 1);
    assert_int_equal(dry_sim_get_finding(w->sim, 0, &f), DRY_OK);
    assert_string_equal(dry_sim_fault_name(f.fault), dry_sim_fault_name(fault));
    assert_memory_equal(f.text, dry_sim_fault_name(fault),
                        strlen(dry_sim_fault_name(fault)));
    assert_int_equal(dry_sim_get_finding(w->sim, 1, &f), DRY_END);
    return f;
}

static uint64_t
alloc(struct world *w, uint64_t size)
{
    uint64_t address;
    assert_int_equal(w->d.ops->alloc(w->d.self, size, &address), DRY_OK);
    return address;
}

static uint64_t
reserve(struct world *w, uint64_t size)
{
    uint64_t address;
    assert_int_equal(w->d.ops->reserve(w->d.self, size, &address), DRY_OK);
    return address;
}

static uint64_t
create_page(struct world *w)
{
    uint64_t page;
    assert_int_equal(w->d.ops->create_page(w->d.self, &page), DRY_OK);
    return page;
}

static uint64_t
record(struct world *w, uint64_t stream)
{
    uint64_t event;
    assert_int_equal(w->d.ops->event_record(w->d.self, stream, &event), DRY_OK);
    return event;
}

static void
own(struct world *w, uint64_t address, uint64_t size, uint64_t stream, uint64_t owner)
{
    assert_int_equal(dry_sim_own(w->sim, address, size, stream, owner), DRY_OK);
}

static void
use(struct world *w, uint64_t stream, uint64_t address, uint64_t size, uint64_t owner)
{
    assert_int_equal(dry_sim_use(w->sim, stream, address, size, owner), DRY_OK);
}

static void
own_and_use(struct world *w, uint64_t address, uint64_t size, uint64_t stream,
            uint64_t owner)
{
    own(w, address, size, stream, owner);
    use(w, stream, address, size, owner);
}

/* Owner 1 on stream 7, used on stream 8 too, and freed. */
static uint64_t
used_on_two_streams(struct world *w)
{
    uint64_t a = alloc(w, PAGE);
    own_and_use(w, a, MIB, 7, 1);
    assert_int_equal(dry_sim_stream_waits(w->sim, 8, 7), DRY_OK);
    use(w, 8, a, MIB, 1);
    dry_sim_disown(w->sim, 1);
    return a;
}

static void
early_reuse_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = used_on_two_streams(&w);
    own_and_use(&w, a + 512 * KIB, MIB, 7, 2);
    struct dry_sim_finding f = expect_one(&w, DRY_SIM_EARLY_REUSE);
    assert_true(f.owner == 2 && f.other_owner == 1);
    assert_true(f.stream == 7 && f.other_stream == 8);
    assert_true(f.address == a + 512 * KIB && f.size == MIB);
    use(&w, 7, a + 512 * KIB, MIB, 2); /* said once */
    assert_int_equal(dry_sim_get_finding_count(w.sim), 1);
    end_world(&w);
}

static void
reuse_on_the_same_stream_is_clean(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    for (uint64_t owner = 1; owner < 100; owner++) {
        own_and_use(&w, a + owner * KIB, MIB, 7, owner);
        dry_sim_disown(w.sim, owner);
    }
    expect_clean(&w);
    end_world(&w);
}

static void
reuse_beside_an_open_use_is_clean(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = used_on_two_streams(&w);
    own_and_use(&w, a + MIB, MIB, 9, 2);
    expect_clean(&w);
    end_world(&w);
}

static void
reuse_after_the_event_was_waited_for_is_clean(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = used_on_two_streams(&w);
    w.d.ops->event_wait(w.d.self, record(&w, 8));
    own_and_use(&w, a, MIB, 9, 2); /* stream 8 came after stream 7's use */
    expect_clean(&w);
    end_world(&w);
}

static void
an_event_counts_when_it_is_found_done(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = used_on_two_streams(&w);
    uint64_t e = record(&w, 8);
    assert_false(w.d.ops->event_query(w.d.self, e));
    dry_sim_complete_stream(w.sim, 8); /* done, but nobody has asked */
    own_and_use(&w, a, MIB, 7, 2);
    expect_one(&w, DRY_SIM_EARLY_REUSE);
    dry_sim_disown(w.sim, 2);
    assert_true(w.d.ops->event_query(w.d.self, e));
    own_and_use(&w, a, MIB, 7, 3);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 1);
    end_world(&w);
}

static void
an_event_older_than_the_use_proves_nothing(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    own(&w, a, MIB, 7, 1);
    uint64_t e = record(&w, 7);
    use(&w, 7, a, MIB, 1);
    w.d.ops->event_wait(w.d.self, e);
    dry_sim_disown(w.sim, 1);
    own_and_use(&w, a, MIB, 8, 2);
    expect_one(&w, DRY_SIM_EARLY_REUSE);
    end_world(&w);
}

static void
a_wait_for_the_whole_stream_ends_its_uses(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = used_on_two_streams(&w);
    w.d.ops->stream_wait(w.d.self, 8);
    own_and_use(&w, a, MIB, 9, 2);
    expect_clean(&w);
    dry_sim_disown(w.sim, 2); /* used after the wait: the wait says nothing of that */
    own_and_use(&w, a, MIB, 8, 3);
    expect_one(&w, DRY_SIM_EARLY_REUSE);
    end_world(&w);
}

static void
a_stream_that_follows_is_ordered(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = used_on_two_streams(&w);
    uint64_t e = record(&w, 8);
    assert_int_equal(w.d.ops->stream_follow(w.d.self, 9, e), DRY_OK);
    w.d.ops->event_destroy(w.d.self, e);
    assert_int_equal(dry_sim_stream_waits(w.sim, 10, 9), DRY_OK);
    own_and_use(&w, a, MIB, 10, 2); /* 7 before 8 before 9 before 10 */
    expect_clean(&w);
    dry_sim_disown(w.sim, 2);
    own_and_use(&w, a, MIB, 9, 3);
    expect_one(&w, DRY_SIM_EARLY_REUSE);
    end_world(&w);
}

static void
every_stream_of_the_new_owner_is_checked(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    own_and_use(&w, a, MIB, 7, 1);
    dry_sim_disown(w.sim, 1);
    own_and_use(&w, a, MIB, 7, 2);
    expect_clean(&w);
    use(&w, 8, a, MIB, 2);
    expect_one(&w, DRY_SIM_EARLY_REUSE);
    end_world(&w);
}

static void
owners_that_use_nothing_hide_nothing(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    own_and_use(&w, a, 512 * KIB, 7, 1);
    dry_sim_disown(w.sim, 1);
    own(&w, a, 2 * MIB, 8, 2);
    dry_sim_disown(w.sim, 2);
    own_and_use(&w, a + 512 * KIB, MIB, 8, 3); /* behind what owner 1 used */
    expect_clean(&w);
    own_and_use(&w, a + 256 * KIB, 256 * KIB, 8, 4);
    struct dry_sim_finding f = expect_one(&w, DRY_SIM_EARLY_REUSE);
    assert_true(f.other_owner == 1);
    end_world(&w);
}

static void
uses_on_many_streams_are_all_kept(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    own(&w, a, MIB, 0, 1);
    for (uint64_t stream = 0; stream < 100; stream++) {
        use(&w, stream, a, MIB, 1);
        if (stream % 3 == 0)
            w.d.ops->stream_wait(w.d.self, stream);
    }
    dry_sim_disown(w.sim, 1);
    for (uint64_t stream = 0; stream < 100; stream++) {
        if (stream != 5)
            w.d.ops->stream_wait(w.d.self, stream);
    }
    own_and_use(&w, a, MIB, 100, 2);
    struct dry_sim_finding f = expect_one(&w, DRY_SIM_EARLY_REUSE);
    assert_true(f.other_stream == 5);
    end_world(&w);
}

static void
overlap_of_owners_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    own_and_use(&w, a, MIB, 7, 1);
    own_and_use(&w, a + MIB, MIB, 7, 2);
    expect_clean(&w);
    own_and_use(&w, a + MIB - 512, 512, 7, 3);
    struct dry_sim_finding f = expect_one(&w, DRY_SIM_OVERLAP);
    assert_true(f.owner == 3 && f.other_owner == 1);
    dry_sim_disown(w.sim, 1);
    dry_sim_disown(w.sim, 3);
    own_and_use(&w, a, MIB, 7, 4);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 1);
    end_world(&w);
}

static void
use_after_free_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    own_and_use(&w, a, MIB, 7, 1);
    expect_clean(&w);
    dry_sim_disown(w.sim, 1);
    dry_sim_disown(w.sim, 1); /* nobody there: nothing */
    expect_clean(&w);
    use(&w, 7, a, MIB, 1);
    expect_one(&w, DRY_SIM_USE_AFTER_FREE);
    end_world(&w);
}

static void
use_beyond_what_is_owned_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE);
    own_and_use(&w, a + 512, MIB, 7, 1);
    use(&w, 7, a + 512 + MIB - 1, 1, 1);
    use(&w, 7, a + 512 + MIB, 0, 1);
    expect_clean(&w);
    use(&w, 7, a + 513, MIB, 1);
    expect_one(&w, DRY_SIM_USE_BEYOND);
    use(&w, 7, a, 512, 1);
    use(&w, 7, a + 513, UINT64_MAX, 1);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 3);
    end_world(&w);
}

static void
use_of_unmapped_memory_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 8 * PAGE);
    assert_int_equal(w.d.ops->map(w.d.self, a, PAGE, PAGE), DRY_OK);
    own(&w, a + MIB, PAGE, 7, 1);
    use(&w, 7, a + MIB, MIB, 1);
    expect_clean(&w);
    use(&w, 7, a + MIB, MIB + 1, 1);
    expect_one(&w, DRY_SIM_USE_UNMAPPED);
    uint64_t page = create_page(&w);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a + PAGE, &page, 1), DRY_OK);
    use(&w, 7, a + MIB, PAGE, 1); /* pages and map side by side */
    assert_int_equal(dry_sim_get_finding_count(w.sim), 1);
    end_world(&w);
}

static void
early_unmap_of_a_use_is_found(void **state)
{
    (void)state;
    for (int is_early = 0; is_early < 2; is_early++) {
        struct world w = make_world();
        uint64_t a = reserve(&w, 8 * PAGE), pages[2] = {create_page(&w), create_page(&w)};
        assert_int_equal(w.d.ops->map_pages(w.d.self, a, pages, 2), DRY_OK);
        own_and_use(&w, a, PAGE + 512, 7, 1);
        uint64_t e = record(&w, 7);
        dry_sim_disown(w.sim, 1);
        if (!is_early)
            w.d.ops->event_wait(w.d.self, e);
        assert_int_equal(w.d.ops->unmap_pages(w.d.self, a + PAGE, 1), DRY_OK);
        if (is_early) {
            struct dry_sim_finding f = expect_one(&w, DRY_SIM_EARLY_UNMAP);
            assert_true(f.stream == 7 && f.owner == 1 && f.address == a + PAGE);
        } else {
            expect_clean(&w);
            w.d.ops->release_page(w.d.self, pages[1]);
            own_and_use(&w, a, PAGE, 9, 2);
            expect_clean(&w);
        }
        end_world(&w);
    }
}

static void
early_unmap_of_what_is_owned_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 8 * PAGE);
    assert_int_equal(w.d.ops->map(w.d.self, a, 4 * PAGE, PAGE), DRY_OK);
    own(&w, a + PAGE, PAGE, 7, 1);
    w.d.ops->unmap(w.d.self, a, PAGE, PAGE);
    w.d.ops->unmap(w.d.self, a + 2 * PAGE, PAGE, PAGE);
    expect_clean(&w);
    w.d.ops->unmap(w.d.self, a + PAGE, PAGE, PAGE);
    expect_one(&w, DRY_SIM_EARLY_UNMAP);
    use(&w, 7, a + PAGE, PAGE, 1);
    struct dry_sim_finding f = DRY_INIT(struct dry_sim_finding);
    assert_int_equal(dry_sim_get_finding(w.sim, 1, &f), DRY_OK);
    assert_int_equal(f.fault, DRY_SIM_USE_UNMAPPED);
    end_world(&w);
}

static void
unmap_sees_through_owners_that_used_nothing(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 2 * PAGE);
    assert_int_equal(w.d.ops->map(w.d.self, a, 2 * PAGE, PAGE), DRY_OK);
    own_and_use(&w, a, 512, 7, 1);
    dry_sim_disown(w.sim, 1);
    own(&w, a, 2 * PAGE, 7, 2);
    dry_sim_disown(w.sim, 2);
    w.d.ops->unmap(w.d.self, a + PAGE, PAGE, PAGE);
    expect_clean(&w);
    w.d.ops->unmap(w.d.self, a, PAGE, PAGE);
    struct dry_sim_finding f = expect_one(&w, DRY_SIM_EARLY_UNMAP);
    assert_true(f.owner == 1);
    end_world(&w);
}

static void
early_free_is_found_and_free_waits(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE), b = alloc(&w, PAGE), c = alloc(&w, PAGE);
    own_and_use(&w, a, MIB, 7, 1);
    own_and_use(&w, b, MIB, 8, 2);
    own_and_use(&w, c, MIB, 9, 3);
    dry_sim_disown(w.sim, 1);
    dry_sim_disown(w.sim, 3);
    w.d.ops->free(w.d.self, a, PAGE); /* waits for all: also for stream 9 */
    own_and_use(&w, c, MIB, 10, 4);
    expect_clean(&w);
    w.d.ops->free(w.d.self, b, PAGE);
    struct dry_sim_finding f = expect_one(&w, DRY_SIM_EARLY_FREE);
    assert_true(f.owner == 2);
    end_world(&w);
}

static void
free_of_what_is_no_range_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = alloc(&w, PAGE), r = reserve(&w, 2 * PAGE);
    w.d.ops->free(w.d.self, a, MIB);
    expect_one(&w, DRY_SIM_FREE_UNKNOWN);
    w.d.ops->free(w.d.self, a, PAGE);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 1);
    w.d.ops->free(w.d.self, a, PAGE);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 2);
    w.d.ops->unreserve(w.d.self, r, PAGE);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 3);
    w.d.ops->unreserve(w.d.self, r, 2 * PAGE);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 3);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(w.sim, &account);
    assert_true(account.used_bytes == 0 && account.reserved_address_bytes == 0);
    end_world(&w);
}

static void
page_mapped_twice_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 8 * PAGE), page = create_page(&w), twice[2] = {page, page};
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, 1), DRY_OK);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a, 1), DRY_OK);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a + PAGE, &page, 1), DRY_OK);
    expect_clean(&w);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, 1), DRY_ERR_SYSTEM);
    expect_one(&w, DRY_SIM_PAGE_MAPPED_TWICE);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a + PAGE, 1), DRY_OK);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, twice, 2), DRY_ERR_SYSTEM);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 2);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, 1), DRY_OK);
    end_world(&w);
}

static void
page_released_while_mapped_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, PAGE), page = create_page(&w);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, 1), DRY_OK);
    w.d.ops->release_page(w.d.self, page);
    expect_one(&w, DRY_SIM_PAGE_MAPPED_AT_END);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a, 1), DRY_OK);
    w.d.ops->release_page(w.d.self, page);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 1);
    end_world(&w);
}

static void
unknown_page_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, PAGE), page = create_page(&w);
    w.d.ops->release_page(w.d.self, page);
    expect_clean(&w);
    w.d.ops->release_page(w.d.self, page);
    expect_one(&w, DRY_SIM_PAGE_UNKNOWN);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, 1), DRY_ERR_SYSTEM);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 2);
    end_world(&w);
}

static void
map_over_mapped_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 8 * PAGE), page = create_page(&w);
    assert_int_equal(w.d.ops->map(w.d.self, a, 2 * PAGE, PAGE), DRY_OK);
    assert_int_equal(w.d.ops->map(w.d.self, a + 3 * PAGE, PAGE, PAGE), DRY_OK);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a + 2 * PAGE, &page, 1), DRY_OK);
    expect_clean(&w);
    assert_int_equal(w.d.ops->map(w.d.self, a + PAGE, PAGE, PAGE), DRY_ERR_SYSTEM);
    expect_one(&w, DRY_SIM_MAP_OVER_MAPPED);
    uint64_t other = create_page(&w);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &other, 1), DRY_ERR_SYSTEM);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 2);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(w.sim, &account);
    assert_true(account.used_bytes == 5 * PAGE);
    end_world(&w);
}

static void
map_outside_a_reservation_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 2 * PAGE), page = create_page(&w);
    assert_int_equal(w.d.ops->map(w.d.self, a + PAGE, PAGE, PAGE), DRY_OK);
    expect_clean(&w);
    assert_int_equal(w.d.ops->map(w.d.self, a - PAGE, PAGE, PAGE), DRY_ERR_SYSTEM);
    expect_one(&w, DRY_SIM_MAP_UNRESERVED);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a + 2 * PAGE, &page, 1),
                     DRY_ERR_SYSTEM);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, SIZE_MAX), DRY_ERR_SYSTEM);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 3);
    end_world(&w);
}

static void
unmap_of_unmapped_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 8 * PAGE), page = create_page(&w);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a, 1), DRY_ERR_SYSTEM);
    expect_one(&w, DRY_SIM_UNMAP_UNMAPPED);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, 1), DRY_OK);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a, 2), DRY_ERR_SYSTEM);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a, SIZE_MAX), DRY_ERR_SYSTEM);
    w.d.ops->unmap(w.d.self, a, PAGE, PAGE); /* it came by map_pages */
    assert_int_equal(dry_sim_get_finding_count(w.sim), 4);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a, 1), DRY_OK);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 4);
    end_world(&w);
}

static void
unreserve_of_mapped_is_found(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 2 * PAGE);
    assert_int_equal(w.d.ops->map(w.d.self, a + PAGE, PAGE, PAGE), DRY_OK);
    w.d.ops->unreserve(w.d.self, a, 2 * PAGE);
    expect_one(&w, DRY_SIM_UNRESERVE_MAPPED);
    w.d.ops->unmap(w.d.self, a + PAGE, PAGE, PAGE);
    w.d.ops->unreserve(w.d.self, a, 2 * PAGE);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 1);
    end_world(&w);
}

static void
memory_moves_under_another_address(void **state)
{
    (void)state;
    struct world w = make_world();
    uint64_t a = reserve(&w, 8 * PAGE), page = create_page(&w);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a, &page, 1), DRY_OK);
    own_and_use(&w, a, PAGE, 7, 1);
    dry_sim_disown(w.sim, 1);
    w.d.ops->stream_wait(w.d.self, 7);
    assert_int_equal(w.d.ops->unmap_pages(w.d.self, a, 1), DRY_OK);
    assert_int_equal(w.d.ops->map_pages(w.d.self, a + 4 * PAGE, &page, 1), DRY_OK);
    own_and_use(&w, a + 4 * PAGE, PAGE, 8, 2);
    expect_clean(&w);
    end_world(&w);
}

static void
only_the_first_findings_are_kept(void **state)
{
    (void)state;
    struct world w = make_world();
    for (uint64_t i = 0; i < 100; i++)
        use(&w, 7, MIB, i, i + 1);
    struct dry_sim_finding f = DRY_INIT(struct dry_sim_finding);
    assert_int_equal(dry_sim_get_finding_count(w.sim), 100);
    assert_int_equal(dry_sim_get_finding(w.sim, DRY_SIM_FINDINGS_KEPT, &f), DRY_END);
    assert_int_equal(dry_sim_get_finding(w.sim, DRY_SIM_FINDINGS_KEPT - 1, &f), DRY_OK);
    assert_true(f.owner == DRY_SIM_FINDINGS_KEPT && f.call == DRY_SIM_FINDINGS_KEPT);
    end_world(&w);
}

static void
every_fault_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < DRY_SIM_FAULT_COUNT; i++) {
        for (int k = 0; k < i; k++)
            assert_string_not_equal(dry_sim_fault_name((enum dry_sim_fault)i),
                                    dry_sim_fault_name((enum dry_sim_fault)k));
    }
    assert_string_equal(dry_sim_fault_name((enum dry_sim_fault)DRY_SIM_FAULT_COUNT),
                        "unknown fault");
}

static void
without_the_checker_nothing_is_found(void **state)
{
    (void)state;
    struct dry_sim *sim;
    assert_int_equal(dry_sim_create(NULL, &sim, NULL), DRY_OK);
    assert_int_equal(dry_sim_use(sim, 1, 2, 3, 4), DRY_OK);
    assert_int_equal(dry_sim_own(sim, 1, 2, 3, 0), DRY_OK);
    dry_sim_disown(sim, 1);
    struct dry_sim_finding f = DRY_INIT(struct dry_sim_finding);
    assert_int_equal(dry_sim_get_finding_count(sim), 0);
    assert_int_equal(dry_sim_get_finding(sim, 0, &f), DRY_END);
    dry_sim_destroy(sim);
}

static void
owners_are_checked(void **state)
{
    (void)state;
    struct world w = make_world();
    own(&w, PAGE, MIB, 7, 1);
    assert_int_equal(dry_sim_own(w.sim, 2 * PAGE, MIB, 7, 1), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_sim_own(w.sim, 2 * PAGE, MIB, 7, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_sim_own(w.sim, 2 * PAGE, 0, 7, 2), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_sim_own(w.sim, 2 * PAGE, UINT64_MAX, 7, 2), DRY_ERR_ARGUMENT);
    expect_clean(&w);
    end_world(&w);
}

/* Many owners at random addresses, some of them where another is: each of those is found. */
static void
thousands_of_owners_are_told_apart(void **state)
{
    (void)state;
    enum { SLOTS = 4096, SLOT = 4096 };
    struct world w = make_world();
    uint64_t base = alloc(&w, (uint64_t)SLOTS * SLOT), next = 1, overlaps = 0;
    uint64_t *owners = calloc(SLOTS, sizeof *owners);
    assert_non_null(owners);
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < 50000; i++) {
        uint64_t slot = random_below(&random, SLOTS), address = base + slot * SLOT;
        uint64_t size = 512 * (1 + random_below(&random, SLOT / 512));
        if (!owners[slot]) {
            owners[slot] = next;
            own_and_use(&w, address + SLOT - size, size, 7, next++);
        } else if (random_below(&random, 50) == 0) {
            own_and_use(&w, address + SLOT - 1, 1, 7, next);
            dry_sim_disown(w.sim, next++);
            overlaps++;
            dry_sim_disown(w.sim, owners[slot]); /* it has lost that byte */
            owners[slot] = 0;
        } else {
            dry_sim_disown(w.sim, owners[slot]);
            owners[slot] = 0;
        }
        assert_int_equal(dry_sim_get_finding_count(w.sim), overlaps);
    }
    assert_true(overlaps > 100);
    free(owners);
    end_world(&w);
}

/* One refused request for memory at a time; what was refused succeeds when asked again. */
static bool
recovers(struct failing_memory *fm, bool *was_refused)
{
    if (!fm->failed)
        return false;
    *was_refused = true;
    fm->failed = false;
    fm->left = SIZE_MAX;
    return true;
}

#define AGAIN(call)                                                                      \
    do {                                                                                 \
        enum dry_status status_ = (call);                                                \
        if (status_ == DRY_ERR_MEMORY && recovers(fm, was_refused))                      \
            status_ = (call);                                                            \
        assert_int_equal(status_, DRY_OK);                                               \
    } while (0)

/* Every call that may want memory, with many ranges and streams, and no fault. */
static void
run_much(struct dry_sim *sim, struct failing_memory *fm, bool *was_refused)
{
    struct dry_device d = dry_sim_get_device(sim);
    uint64_t r, a, e, pages[40];
    AGAIN(d.ops->reserve(d.self, 128 * PAGE, &r));
    AGAIN(d.ops->alloc(d.self, PAGE, &a));
    AGAIN(d.ops->map(d.self, r + 64 * PAGE, 8 * PAGE, PAGE));
    for (int i = 0; i < 40; i++)
        AGAIN(d.ops->create_page(d.self, &pages[i]));
    AGAIN(d.ops->map_pages(d.self, r, pages, 40));
    for (uint64_t i = 1; i <= 40; i++) {
        AGAIN(dry_sim_own(sim, r + (i - 1) * PAGE, PAGE, i, i));
        AGAIN(dry_sim_use(sim, i, r + (i - 1) * PAGE, PAGE, i));
        AGAIN(dry_sim_stream_waits(sim, i, i + 1));
        AGAIN(d.ops->event_record(d.self, i, &e));
        AGAIN(d.ops->stream_follow(d.self, 100, e));
        AGAIN(dry_sim_use(sim, 100, r + (i - 1) * PAGE, PAGE, i));
    }
    for (uint64_t i = 1; i <= 40; i++)
        dry_sim_disown(sim, i);
    AGAIN(dry_sim_own(sim, r, 40 * PAGE, 100, 41));
    AGAIN(dry_sim_use(sim, 100, r, 40 * PAGE, 41));
    for (uint64_t i = 1; i <= 40; i++) {
        AGAIN(dry_sim_stream_waits(sim, i, 100));
        AGAIN(dry_sim_use(sim, i, r, 40 * PAGE, 41));
    }
    dry_sim_disown(sim, 41);
    for (uint64_t i = 1; i <= 40; i++)
        d.ops->stream_wait(d.self, i);
    for (uint64_t i = 0; i < 40; i += 2)
        AGAIN(d.ops->unmap_pages(d.self, r + i * PAGE, 1));
    for (uint64_t i = 64; i < 72; i += 2)
        d.ops->unmap(d.self, r + i * PAGE, PAGE, PAGE);
    d.ops->free(d.self, a, PAGE);
}

static void
running_out_of_memory_changes_nothing(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_sim_options o;
        dry_sim_options_init(&o);
        o.memory = &memory;
        o.check = true;
        struct dry_sim *sim = NULL;
        bool was_refused = false;
        if (dry_sim_create(&o, &sim, NULL) != DRY_OK) {
            assert_true(recovers(&fm, &was_refused));
            assert_int_equal(dry_sim_create(&o, &sim, NULL), DRY_OK);
        }
        run_much(sim, &fm, &was_refused);
        assert_int_equal(dry_sim_get_finding_count(sim), 0);
        dry_sim_destroy(sim);
        failing_memory_finish(&fm);
        if (!was_refused)
            break;
    }
}

/* Every call of the device told to fail, at every index: said, and nothing moved. */
static void
told_failures_change_nothing(void **state)
{
    (void)state;
    for (uint64_t n = 0;; n++) {
        struct world w = make_world();
        uint64_t r = 0, page = 0, e = 0;
        struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
        dry_sim_fail_at(w.sim, n);
        for (int i = 0; i < 2 && r == 0; i++)
            (void)!w.d.ops->reserve(w.d.self, 2 * PAGE, &r);
        for (int i = 0; i < 2 && page == 0; i++)
            (void)!w.d.ops->create_page(w.d.self, &page);
        enum dry_status status = w.d.ops->map_pages(w.d.self, r, &page, 1);
        if (status != DRY_OK)
            status = w.d.ops->map_pages(w.d.self, r, &page, 1);
        assert_int_equal(status, DRY_OK);
        own_and_use(&w, r, PAGE, 7, 1);
        dry_sim_disown(w.sim, 1);
        if (w.d.ops->event_record(w.d.self, 7, &e) != DRY_OK)
            e = record(&w, 7);
        if (w.d.ops->stream_follow(w.d.self, 8, e) != DRY_OK)
            assert_int_equal(w.d.ops->stream_follow(w.d.self, 8, e), DRY_OK);
        own_and_use(&w, r, PAGE, 8, 2);
        dry_sim_disown(w.sim, 2);
        w.d.ops->stream_wait(w.d.self, 8);
        status = w.d.ops->unmap_pages(w.d.self, r, 1);
        if (status != DRY_OK)
            status = w.d.ops->unmap_pages(w.d.self, r, 1);
        assert_int_equal(status, DRY_OK);
        w.d.ops->release_page(w.d.self, page);
        w.d.ops->unreserve(w.d.self, r, 2 * PAGE);
        expect_clean(&w);
        dry_sim_get_account(w.sim, &account);
        assert_true(account.used_bytes == 0 && account.pages_live == 0);
        assert_true(account.reserved_address_bytes == 0);
        end_world(&w);
        if (account.failures == 0)
            break;
    }
}

/*
 * The naive checker: every piece of work and every moment the program learned something is a
 * node, with the set of all nodes before it. `before` has the program's own order too,
 * `device_before` only what the device must do first.
 */
#define NODES 1024
#define WORDS (NODES / 64)
#define STREAMS 20 /* at most; few of them meet more often */
#define CELLS 16
#define CELL_BYTES 512
#define CELLS_A_PAGE 4
#define LIVES 256
#define EVENTS 8

struct node_set {
    uint64_t words[WORDS];
};

struct naive_life {
    uint64_t begin, end; /* cells */
    bool is_owned, is_used;
    struct node_set uses;
    bool is_former[LIVES], is_found[LIVES];
};

struct naive {
    struct node_set before[NODES], device_before[NODES];
    int is_event_of[NODES]; /* a stream, else -1 */
    int node_count;
    int last[STREAMS], host;
    struct node_set done;
    struct naive_life lives[LIVES];
    int life_count;
    int cell_last[CELLS], cell_owner[CELLS];
    uint64_t events[EVENTS];
    int event_nodes[EVENTS];
    int event_count;
    uint64_t finding_count;
};

static bool
set_has(const struct node_set *s, int i)
{
    return s->words[i / 64] >> (i % 64) & 1;
}

static void
set_add(struct node_set *s, int i)
{
    s->words[i / 64] |= UINT64_C(1) << (i % 64);
}

static void
set_join(struct node_set *s, const struct node_set *other)
{
    for (int i = 0; i < WORDS; i++)
        s->words[i] |= other->words[i];
}

static bool
set_within(const struct node_set *s, const struct node_set *other)
{
    for (int i = 0; i < WORDS; i++) {
        if (s->words[i] & ~other->words[i])
            return false;
    }
    return true;
}

static void
naive_edge(struct naive *m, int from, int to, bool is_device)
{
    if (from < 0)
        return;
    set_join(&m->before[to], &m->before[from]);
    set_add(&m->before[to], from);
    if (!is_device)
        return;
    set_join(&m->device_before[to], &m->device_before[from]);
    set_add(&m->device_before[to], from);
}

static int
naive_work(struct naive *m, int stream)
{
    int node = m->node_count++;
    naive_edge(m, m->host, node, false);
    naive_edge(m, m->last[stream], node, true);
    m->is_event_of[node] = -1;
    m->last[stream] = node;
    return node;
}

static int
naive_event(struct naive *m, int stream)
{
    int node = naive_work(m, stream);
    m->is_event_of[node] = stream;
    return node;
}

static void
naive_learn(struct naive *m, int from)
{
    int node = m->node_count++;
    naive_edge(m, m->host, node, false);
    naive_edge(m, from, node, false);
    m->is_event_of[node] = -1;
    m->host = node;
}

static void
naive_complete(struct naive *m, int node)
{
    if (node < 0)
        return;
    set_join(&m->done, &m->device_before[node]);
    set_add(&m->done, node);
}

static void
naive_advance(struct naive *m, int stream, uint64_t count)
{
    int target = -1;
    for (int i = 0; i < m->node_count && count > 0; i++) {
        if (m->is_event_of[i] == stream && !set_has(&m->done, i)) {
            target = i;
            count--;
        }
    }
    naive_complete(m, target);
}

/* How many pairs of owners are found by this use; they are marked. */
static uint64_t
naive_use(struct naive *m, int index, int stream)
{
    struct naive_life *life = &m->lives[index];
    int node = naive_work(m, stream);
    uint64_t found = 0;
    for (int i = 0; i < m->life_count; i++) {
        if (!life->is_former[i] || life->is_found[i] ||
            set_within(&m->lives[i].uses, &m->before[node]))
            continue;
        life->is_found[i] = true;
        found++;
    }
    set_add(&life->uses, node);
    life->is_used = true;
    for (uint64_t c = life->begin; c < life->end; c++)
        m->cell_last[c] = index;
    return found;
}

struct run {
    struct world w;
    struct naive *m;
    struct random random;
    uint64_t stream_count;
    uint64_t base, pages[CELLS / CELLS_A_PAGE];
};

static void
begin_run(struct run *r, uint64_t seed)
{
    struct dry_sim_options o;
    dry_sim_options_init(&o);
    o.check = true;
    o.granularity_bytes = CELL_BYTES;
    o.page_bytes = (uint64_t)CELL_BYTES * CELLS_A_PAGE;
    assert_int_equal(dry_sim_create(&o, &r->w.sim, NULL), DRY_OK);
    r->w.d = dry_sim_get_device(r->w.sim);
    random_init(&r->random, seed);
    r->stream_count = seed % 4 == 0 ? STREAMS : 2 + seed % 4;
    r->base = reserve(&r->w, (uint64_t)CELLS * CELL_BYTES);
    for (int i = 0; i < CELLS / CELLS_A_PAGE; i++)
        r->pages[i] = create_page(&r->w);
    assert_int_equal(
        r->w.d.ops->map_pages(r->w.d.self, r->base, r->pages, CELLS / CELLS_A_PAGE),
        DRY_OK);
    r->m = calloc(1, sizeof *r->m);
    assert_non_null(r->m);
    r->m->host = -1;
    for (int i = 0; i < STREAMS; i++)
        r->m->last[i] = -1;
    for (int i = 0; i < CELLS; i++)
        r->m->cell_last[i] = r->m->cell_owner[i] = -1;
}

static int
draw(struct run *r, uint64_t limit)
{
    return (int)random_below(&r->random, limit);
}

static void
do_own(struct run *r)
{
    struct naive *m = r->m;
    int begin = draw(r, CELLS), size = 1 + draw(r, 6), end = begin;
    while (end < CELLS && end < begin + size && m->cell_owner[end] < 0)
        end++;
    if (end == begin || m->life_count == LIVES)
        return;
    int index = m->life_count++;
    struct naive_life *life = &m->lives[index];
    life->begin = (uint64_t)begin;
    life->end = (uint64_t)end;
    life->is_owned = true;
    for (int c = begin; c < end; c++) {
        m->cell_owner[c] = index;
        if (m->cell_last[c] >= 0)
            life->is_former[m->cell_last[c]] = true;
    }
    own(&r->w, r->base + (uint64_t)begin * CELL_BYTES,
        (uint64_t)(end - begin) * CELL_BYTES, (uint64_t)draw(r, r->stream_count),
        (uint64_t)index + 1);
}

/* A life that owns, or -1. */
static int
draw_owner(struct run *r)
{
    return r->m->cell_owner[draw(r, CELLS)];
}

static void
expect_pairs(struct run *r, int owner, uint64_t found)
{
    struct naive *m = r->m;
    uint64_t count = dry_sim_get_finding_count(r->w.sim);
    assert_int_equal(count, m->finding_count + found);
    for (; m->finding_count < count; m->finding_count++) {
        struct dry_sim_finding f = DRY_INIT(struct dry_sim_finding);
        if (dry_sim_get_finding(r->w.sim, m->finding_count, &f) != DRY_OK)
            continue;
        assert_int_equal(f.fault, DRY_SIM_EARLY_REUSE);
        assert_true(f.owner == (uint64_t)owner + 1);
        assert_true(m->lives[owner].is_found[f.other_owner - 1]);
    }
}

static void
do_use(struct run *r)
{
    int owner = draw_owner(r), stream = draw(r, r->stream_count);
    if (owner < 0)
        return;
    const struct naive_life *life = &r->m->lives[owner];
    uint64_t found = naive_use(r->m, owner, stream);
    use(&r->w, (uint64_t)stream, r->base + life->begin * CELL_BYTES, CELL_BYTES,
        (uint64_t)owner + 1);
    expect_pairs(r, owner, found);
}

static void
do_disown(struct run *r)
{
    int owner = draw_owner(r);
    if (owner < 0)
        return;
    r->m->lives[owner].is_owned = false;
    for (int c = 0; c < CELLS; c++) {
        if (r->m->cell_owner[c] == owner)
            r->m->cell_owner[c] = -1;
    }
    dry_sim_disown(r->w.sim, (uint64_t)owner + 1);
}

static void
do_record(struct run *r)
{
    struct naive *m = r->m;
    int stream = draw(r, r->stream_count);
    if (m->event_count == EVENTS) {
        int i = draw(r, EVENTS);
        r->w.d.ops->event_destroy(r->w.d.self, m->events[i]);
        m->events[i] = m->events[--m->event_count];
        m->event_nodes[i] = m->event_nodes[m->event_count];
    }
    m->events[m->event_count] = record(&r->w, (uint64_t)stream);
    m->event_nodes[m->event_count++] = naive_event(m, stream);
}

static void
do_event(struct run *r)
{
    struct naive *m = r->m;
    if (m->event_count == 0)
        return;
    int i = draw(r, (uint64_t)m->event_count), what = draw(r, 6), stream;
    if (what < 3) {
        int is_done = r->w.d.ops->event_query(r->w.d.self, m->events[i]);
        assert_int_equal(is_done, set_has(&m->done, m->event_nodes[i]));
        if (is_done)
            naive_learn(m, m->event_nodes[i]);
    } else if (what < 5) {
        stream = draw(r, r->stream_count);
        assert_int_equal(
            r->w.d.ops->stream_follow(r->w.d.self, (uint64_t)stream, m->events[i]),
            DRY_OK);
        naive_edge(m, m->event_nodes[i], naive_work(m, stream), true);
    } else {
        r->w.d.ops->event_wait(r->w.d.self, m->events[i]);
        naive_complete(m, m->event_nodes[i]);
        naive_learn(m, m->event_nodes[i]);
    }
}

static void
do_progress(struct run *r)
{
    struct naive *m = r->m;
    int stream = draw(r, r->stream_count), what = draw(r, 8),
        on = draw(r, r->stream_count);
    if (what < 3) {
        uint64_t count = 1 + (uint64_t)draw(r, 3);
        dry_sim_advance_stream(r->w.sim, (uint64_t)stream, count);
        naive_advance(m, stream, count);
    } else if (what < 5) {
        dry_sim_complete_stream(r->w.sim, (uint64_t)stream);
        naive_complete(m, m->last[stream]);
    } else if (what < 6) {
        r->w.d.ops->stream_wait(r->w.d.self, (uint64_t)stream);
        naive_complete(m, m->last[stream]);
        naive_learn(m, m->last[stream]);
    } else if (on != stream) {
        assert_int_equal(dry_sim_stream_waits(r->w.sim, (uint64_t)stream, (uint64_t)on),
                         DRY_OK);
        int event = naive_event(m, on);
        naive_edge(m, event, naive_work(m, stream), true);
    }
}

/* free() waits for everything. */
static void
do_free(struct run *r)
{
    r->w.d.ops->free(r->w.d.self, alloc(&r->w, CELL_BYTES), CELL_BYTES);
    for (int i = 0; i < STREAMS; i++)
        naive_learn(r->m, r->m->last[i]);
}

/* Unmap a page nobody owns a part of, map it again: early if any last use is not known. */
static void
do_remap(struct run *r)
{
    struct naive *m = r->m;
    int page = draw(r, CELLS / CELLS_A_PAGE), begin = page * CELLS_A_PAGE;
    struct node_set known = {{0}};
    if (m->host >= 0)
        known = m->before[m->host];
    bool is_early = false;
    for (int c = begin; c < begin + CELLS_A_PAGE; c++) {
        if (m->cell_owner[c] >= 0)
            return;
        int last = m->cell_last[c];
        is_early = is_early || (last >= 0 && !set_within(&m->lives[last].uses, &known));
    }
    uint64_t address = r->base + (uint64_t)begin * CELL_BYTES;
    assert_int_equal(r->w.d.ops->unmap_pages(r->w.d.self, address, 1), DRY_OK);
    assert_int_equal(r->w.d.ops->map_pages(r->w.d.self, address, &r->pages[page], 1),
                     DRY_OK);
    uint64_t count = dry_sim_get_finding_count(r->w.sim);
    assert_int_equal(count > m->finding_count, is_early);
    m->finding_count = count;
    for (int c = begin; c < begin + CELLS_A_PAGE; c++)
        m->cell_last[c] = -1;
}

static void
do_something(struct run *r)
{
    int what = draw(r, 100);
    if (what < 20)
        do_own(r);
    else if (what < 40)
        do_use(r);
    else if (what < 55)
        do_disown(r);
    else if (what < 65)
        do_record(r);
    else if (what < 80)
        do_event(r);
    else if (what < 96)
        do_progress(r);
    else if (what < 99)
        do_remap(r);
    else
        do_free(r);
}

struct seeds {
    uint64_t first, count;
};

static void
agrees_with_the_graph_of_everything(void **state)
{
    const struct seeds *seeds = *state;
    uint64_t first = seeds->first, count = seeds->count;
    uint64_t found = 0, clean = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct run r;
        print_message("seed %llu\n", (unsigned long long)seed);
        begin_run(&r, seed);
        while (r.m->node_count < NODES - STREAMS)
            do_something(&r);
        found += r.m->finding_count;
        for (int i = 0; i < r.m->life_count; i++)
            clean += r.m->lives[i].is_used && !memchr(r.m->lives[i].is_found, 1, LIVES);
        free(r.m);
        end_world(&r.w);
    }
    assert_true(found >= count && clean >= count);
}

/* FIRST COUNT: other random programs than the usual ones. */
int
main(int argc, char **argv)
{
    struct seeds seeds = {.first = 0, .count = 300};
    if (argc == 3) {
        seeds.first = strtoull(argv[1], NULL, 10);
        seeds.count = strtoull(argv[2], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_reuse_is_found),
        cmocka_unit_test(reuse_on_the_same_stream_is_clean),
        cmocka_unit_test(reuse_beside_an_open_use_is_clean),
        cmocka_unit_test(reuse_after_the_event_was_waited_for_is_clean),
        cmocka_unit_test(an_event_counts_when_it_is_found_done),
        cmocka_unit_test(an_event_older_than_the_use_proves_nothing),
        cmocka_unit_test(a_wait_for_the_whole_stream_ends_its_uses),
        cmocka_unit_test(a_stream_that_follows_is_ordered),
        cmocka_unit_test(every_stream_of_the_new_owner_is_checked),
        cmocka_unit_test(owners_that_use_nothing_hide_nothing),
        cmocka_unit_test(uses_on_many_streams_are_all_kept),
        cmocka_unit_test(overlap_of_owners_is_found),
        cmocka_unit_test(use_after_free_is_found),
        cmocka_unit_test(use_beyond_what_is_owned_is_found),
        cmocka_unit_test(use_of_unmapped_memory_is_found),
        cmocka_unit_test(early_unmap_of_a_use_is_found),
        cmocka_unit_test(early_unmap_of_what_is_owned_is_found),
        cmocka_unit_test(unmap_sees_through_owners_that_used_nothing),
        cmocka_unit_test(early_free_is_found_and_free_waits),
        cmocka_unit_test(free_of_what_is_no_range_is_found),
        cmocka_unit_test(page_mapped_twice_is_found),
        cmocka_unit_test(page_released_while_mapped_is_found),
        cmocka_unit_test(unknown_page_is_found),
        cmocka_unit_test(map_over_mapped_is_found),
        cmocka_unit_test(map_outside_a_reservation_is_found),
        cmocka_unit_test(unmap_of_unmapped_is_found),
        cmocka_unit_test(unreserve_of_mapped_is_found),
        cmocka_unit_test(memory_moves_under_another_address),
        cmocka_unit_test(only_the_first_findings_are_kept),
        cmocka_unit_test(every_fault_has_a_name),
        cmocka_unit_test(without_the_checker_nothing_is_found),
        cmocka_unit_test(owners_are_checked),
        cmocka_unit_test(thousands_of_owners_are_told_apart),
        cmocka_unit_test(running_out_of_memory_changes_nothing),
        cmocka_unit_test(told_failures_change_nothing),
        cmocka_unit_test_prestate(agrees_with_the_graph_of_everything, &seeds),
    };
    return cmocka_run_group_tests_name("sim_check", tests, NULL, NULL);
}
