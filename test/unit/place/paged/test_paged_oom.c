/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that are served only if everything is looked at before an OOM: addresses that may come
 * back, runs of many blocks, what private pools lend, what other streams freed.
 */

#include "support/cmocka.h"

#include <stdbool.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define PAGE (2 * MIB)

struct few_addresses {
    struct dry_device inner;
    struct dry_device_ops ops;
    uint64_t left;
};

static struct few_addresses *few;

static enum dry_status
reserve_few(void *self, uint64_t size, uint64_t *address)
{
    if (size > few->left)
        return DRY_ERR_NO_SPACE;
    enum dry_status status = few->inner.ops->reserve(self, size, address);
    if (status == DRY_OK)
        few->left -= size;
    return status;
}

static void
unreserve_few(void *self, uint64_t address, uint64_t size)
{
    few->inner.ops->unreserve(self, address, size);
    few->left += size;
}

static struct dry_sim *
make_sim_of(uint64_t capacity, uint64_t page)
{
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = capacity;
    so.page_bytes = page;
    so.check = true;
    struct dry_sim *sim;
    assert_int_equal(dry_sim_create(&so, &sim, NULL), DRY_OK);
    return sim;
}

static struct dry_sim *
make_sim(uint64_t capacity)
{
    return make_sim_of(capacity, PAGE);
}

static void
begin_few(struct few_addresses *addresses, struct dry_sim *sim)
{
    *addresses =
        (struct few_addresses){.inner = dry_sim_get_device(sim), .left = 9 * GIB};
    few = addresses;
    few->ops = *few->inner.ops;
    few->ops.reserve = reserve_few;
    few->ops.unreserve = unreserve_few;
}

static struct dry_pool *
make_pool(const char *conf)
{
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = (struct dry_device){.ops = &few->ops, .self = few->inner.self};
    o.conf = conf;
    struct dry_pool *pool;
    assert_int_equal(dry_pool_create(&o, &pool, NULL), DRY_OK);
    return pool;
}

static struct dry_pool *
make_few(struct few_addresses *addresses, struct dry_sim *sim, const char *conf)
{
    begin_few(addresses, sim);
    return make_pool(conf);
}

static void
end(struct dry_pool *pool, struct dry_sim *sim)
{
    struct dry_error err;
    if (dry_pool_check(pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_pool_destroy(pool);
    assert_int_equal(dry_sim_get_finding_count(sim), 0);
    dry_sim_destroy(sim);
}

static uint64_t
take(struct dry_pool *pool, uint64_t size, uint64_t stream)
{
    uint64_t address = 1;
    assert_int_equal(dry_pool_alloc(pool, size, stream, &address), DRY_OK);
    return address;
}

static void
give(struct dry_pool *pool, uint64_t address)
{
    assert_int_equal(dry_pool_free(pool, address), DRY_OK);
}

/* Requests are of a private pool until end_private(). */
static void
begin_private(struct dry_pool *pool, uint64_t number, unsigned flags)
{
    struct dry_pool_id id = {0, number};
    assert_int_equal(dry_pool_open_private(pool, id, flags), DRY_OK);
    assert_int_equal(dry_pool_begin_private(pool, id, NULL), DRY_OK);
}

static void
end_private(struct dry_pool *pool, uint64_t number)
{
    struct dry_pool_id id = {0, number};
    assert_int_equal(dry_pool_end_private(pool, id), DRY_OK);
}

/* --- addresses ---------------------------------------------------------------------------- */

/* Pools that come and go, of a program that wants no page to move but before an OOM. */
static void
private_pools_share_few_addresses(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(GIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "remap:False");
    for (uint64_t i = 1; i <= 40; i++) {
        begin_private(pool, i, 0);
        uint64_t a = take(pool, 2000, 0), b = take(pool, 3 * MIB, 0);
        end_private(pool, i);
        give(pool, a);
        give(pool, b);
        assert_int_equal(dry_pool_release_private(pool, (struct dry_pool_id){0, i}),
                         DRY_OK);
        dry_sim_complete_stream(sim, 0);
    }
    end(pool, sim);
    assert_true(few->left == 9 * GIB);
}

/* Free memory of several streams, in ten segments of the default pool; another one asks. */
static void
what_is_free_gives_its_addresses(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(16 * GIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "segment_mb:1024,plan:False");
    uint64_t blocks[8 * 5];
    for (uint64_t i = 0; i < 8 * 5; i++)
        blocks[i] = take(pool, 199 * MIB + 512 * i, i % 3);
    for (size_t i = 0; i < 8 * 5; i++)
        give(pool, blocks[i]);
    few->left = 0;
    begin_private(pool, 1, 0);
    take(pool, 100 * MIB, 1);
    end(pool, sim);
}

/* One segment of an idle pool is free, the others half: all blocks are looked at before an OOM. */
static void
addresses_are_looked_for_everywhere(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(64 * GIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "segment_mb:1024,plan:False");
    few->left = 64 * GIB;
    static uint64_t blocks[2048];
    begin_private(pool, 1, 0);
    for (size_t i = 0; i < 2048; i++)
        blocks[i] = take(pool, 8 * MIB, 1);
    uint64_t alone = take(pool, 4 * MIB, 1);
    end_private(pool, 1);
    assert_int_equal(dry_pool_release_private(pool, (struct dry_pool_id){0, 1}), DRY_OK);
    for (size_t i = 0; i < 2048; i += 2)
        give(pool, blocks[i]);
    give(pool, alone);
    few->left = 0;
    take(pool, 100 * MIB, 1);
    end(pool, sim);
}

/* As large a segment as can be had: here for 512 bytes, beside all addresses but a few. */
static void
small_request_needs_few_addresses(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(4 * GIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    few->left = 7 * GIB;
    take(pool, 3 * MIB, 1);
    take(pool, 512, 1);
    assert_true(few->left == GIB);
    end(pool, sim);
}

/* The large arena has them all, and hardly a page: the request lies there. */
static void
small_request_lies_among_large_ones(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(4 * GIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    few->left = 4 * GIB;
    take(pool, PAGE, 1);
    take(pool, 512, 1);
    end(pool, sim);
}

/* A pool that lends has its free memory in its only segment; another pool needs the addresses. */
static void
lent_addresses_are_enough(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(4 * GIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "");
    few->left = 2 * GIB;
    begin_private(pool, 1, DRY_POOL_USE_ON_OOM);
    uint64_t lent = take(pool, 64 * MIB, 1);
    end_private(pool, 1);
    give(pool, lent);
    few->left = 0;
    take(pool, 32 * MIB, 1);
    end(pool, sim);
}

/* --- runs --------------------------------------------------------------------------------- */

#define RUN_MAX 2000

/* Of these, in a row, every second one becomes a hole, and then the others free. */
static void
make_alternating(struct dry_pool *pool, const uint64_t *blocks, size_t count)
{
    for (size_t i = 1; i < count; i++)
        assert_true(blocks[i] == blocks[i - 1] + PAGE);
    for (size_t i = 0; i < count; i += 2)
        give(pool, blocks[i]);
    assert_int_equal(dry_pool_trim(pool, 0, NULL), DRY_OK);
}

/*
 * All that is free or a hole is a run of `count` blocks behind one and a half MiB, and the request
 * fits there alone, to the page.
 */
static void
take_a_long_run(const char *conf, size_t count)
{
    static uint64_t blocks[RUN_MAX];
    struct dry_sim *sim = make_sim((count + 6) * PAGE);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, conf);
    uint64_t first = take(pool, 2 * PAGE, 1);
    for (size_t i = 0; i < count; i++)
        blocks[i] = take(pool, PAGE, 1);
    take(pool, 2 * PAGE, 1);
    give(pool, first);
    assert_true(take(pool, 5 * MIB / 2, 1) == first);
    make_alternating(pool, blocks, count);
    begin_private(pool, 1, 0);
    take(pool, (count / 2 + 2) * PAGE, 1);
    end_private(pool, 1);
    for (size_t i = 1; i < count; i += 2)
        give(pool, blocks[i]);
    take(pool, 3 * MIB / 2 + count / 2 * PAGE, 1);
    end(pool, sim);
}

static void
long_runs_are_looked_at_whole(void **state)
{
    (void)state;
    take_a_long_run("remap:False", 120);
    take_a_long_run("", 800);
    take_a_long_run("", RUN_MAX);
}

/* Wherever in a run the request fits: between two long parts, many short ones. */
static void
spots_amid_a_run_are_found(void **state)
{
    (void)state;
    static uint64_t blocks[512];
    static bool is_hole[512], is_free[512];
    struct dry_sim *sim = make_sim(GIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "");
    few->left = GIB;
    for (size_t part = 0, at = 100; part < 64; part++) {
        size_t length = part == 8 || part == 38 ? 60 : 1;
        for (size_t i = 0; i < length; i++, at++)
            *(part % 2 ? &is_free[at] : &is_hole[at]) = true;
    }
    for (size_t i = 0; i < 512; i++)
        blocks[i] = take(pool, PAGE, is_free[i] ? 2 : 1);
    for (size_t i = 0; i < 512; i++) {
        if (is_hole[i])
            give(pool, blocks[i]);
    }
    assert_int_equal(dry_pool_trim(pool, 0, NULL), DRY_OK);
    for (size_t i = 0; i < 512; i++) {
        if (is_free[i])
            give(pool, blocks[i]);
    }
    take(pool, 149 * PAGE, 1);
    end(pool, sim);
}

/*
 * A pool in use has a hole, and free pages behind the hole up to the end of its segment. The
 * request needs as few other pages as there are if it ends there, too.
 */
static void
spots_at_the_end_of_a_segment_are_found(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(768 * PAGE);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    begin_private(pool, 1, 0);
    give(pool, take(pool, 768 * PAGE, 1));
    end_private(pool, 1);
    assert_int_equal(dry_pool_release_private(pool, (struct dry_pool_id){0, 1}), DRY_OK);
    take(pool, 200 * PAGE, 1);
    give(pool, take(pool, 200 * PAGE, 1));
    begin_private(pool, 1, 0);
    take(pool, 512 * PAGE, 1);
    end(pool, sim);
}

/* --- what is lent ------------------------------------------------------------------------- */

/* Twenty free blocks of one bin, of which the last that is looked at is large enough. */
static void
lent_blocks_are_all_looked_at(void **state)
{
    (void)state;
    const uint64_t small = 5 * MIB / 4, wanted = small + 20480;
    uint64_t blocks[20], at;
    struct dry_sim *sim = make_sim(256 * MIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "");
    begin_private(pool, 1, DRY_POOL_USE_ON_OOM | DRY_POOL_NO_REMAP);
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = take(pool, i == 0 ? wanted : small, 1);
        take(pool, PAGE, 1);
    }
    end_private(pool, 1);
    while (dry_pool_alloc(pool, PAGE, 1, &at) == DRY_OK)
        continue;
    for (size_t i = 0; i < 20; i++)
        give(pool, blocks[i]);
    assert_true(take(pool, wanted, 1) == blocks[0]);
    end(pool, sim);
}

/*
 * A block that is lent has a whole page, which would go to a request that cannot be served by it:
 * it is lent first.
 */
static void
what_is_lent_is_not_broken_before(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(64 * MIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "");
    begin_private(pool, 1, DRY_POOL_USE_ON_OOM);
    take(pool, 5 * MIB / 4, 1);
    uint64_t lent = take(pool, 5 * MIB, 1), at;
    take(pool, 5 * MIB / 4, 1);
    end_private(pool, 1);
    while (dry_pool_alloc(pool, PAGE, 1, &at) == DRY_OK)
        continue;
    give(pool, lent);
    assert_true(take(pool, 5 * MIB, 1) == lent);
    end(pool, sim);
}

/* --- what other streams freed ------------------------------------------------------------- */

static bool
is_captured(void *self, uint64_t stream)
{
    (void)self;
    return stream >= 3;
}

static const struct dry_stream_filter captured = {is_captured, NULL};

/* A stream comes behind all that another has freed so far. */
static void
wait_for(struct dry_pool *pool, struct dry_sim *sim, uint64_t stream, uint64_t on)
{
    assert_int_equal(dry_sim_stream_waits(sim, stream, on), DRY_OK);
    assert_int_equal(dry_pool_stream_waits(pool, stream, on), DRY_OK);
}

/* The pool that lends has a free block of a captured stream, which the asking one comes behind. */
static void
what_is_lent_may_be_of_another_stream(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(64 * MIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    begin_private(pool, 1, DRY_POOL_USE_ON_OOM | DRY_POOL_NO_REMAP);
    uint64_t lent = take(pool, 32 * MIB, 3);
    end_private(pool, 1);
    take(pool, 32 * MIB, 1);
    give(pool, lent);
    wait_for(pool, sim, 1, 3);
    assert_int_equal(dry_pool_begin_capture(pool, &captured), DRY_OK);
    assert_true(take(pool, 32 * MIB, 1) == lent);
    end(pool, sim);
}

/* Two blocks side by side, one of a captured stream, and nothing else. */
static void
take_two_at_once(uint64_t page, unsigned flags)
{
    struct dry_sim *sim = make_sim_of(20 * MIB, page);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    if (flags)
        begin_private(pool, 1, flags);
    uint64_t first = take(pool, 8 * MIB, 3), second = take(pool, 8 * MIB, 1);
    assert_true(second == first + 8 * MIB);
    if (flags)
        end_private(pool, 1);
    take(pool, 4 * MIB, 2);
    give(pool, first);
    wait_for(pool, sim, 2, 3);
    assert_int_equal(dry_pool_begin_capture(pool, &captured), DRY_OK);
    give(pool, second);
    dry_sim_complete_stream(sim, 1);
    assert_true(take(pool, 16 * MIB, 2) == first);
    end(pool, sim);
}

static void
blocks_side_by_side_are_one(void **state)
{
    (void)state;
    take_two_at_once(0, 0);
    take_two_at_once(PAGE, 0);
    take_two_at_once(PAGE, DRY_POOL_USE_ON_OOM | DRY_POOL_NO_REMAP);
}

/* Of two streams that have nothing to do with the capture. */
static void
frees_go_on_beside_a_capture(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(16 * MIB);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    for (uint64_t user = 2; user <= 3; user++) { /* the second is captured */
        uint64_t at, block = take(pool, 16 * MIB, 1);
        assert_int_equal(dry_pool_record_stream(pool, block, user), DRY_OK);
        assert_int_equal(dry_pool_begin_capture(pool, &captured), DRY_OK);
        struct dry_sim_account before = DRY_INIT(struct dry_sim_account);
        struct dry_sim_account after = DRY_INIT(struct dry_sim_account);
        dry_sim_get_account(sim, &before);
        give(pool, block);
        dry_sim_get_account(sim, &after);
        uint64_t events =
            after.calls[DRY_SIM_EVENT_RECORD] - before.calls[DRY_SIM_EVENT_RECORD];
        assert_true(events == (user == 2));
        enum dry_status status = dry_pool_alloc(pool, 16 * MIB, 1, &at);
        assert_int_equal(status, user == 2 ? DRY_OK : DRY_ERR_NO_SPACE);
        assert_int_equal(dry_pool_end_capture(pool), DRY_OK);
        if (status == DRY_OK)
            give(pool, at);
    }
    assert_true(take(pool, 16 * MIB, 1) > 0);
    end(pool, sim);
}

/* Memory that every stream may have lies next to memory that a captured stream frees then. */
static void
captured_streams_take_nothing_in(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim_of(20 * MIB, 0);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    uint64_t anybodys = take(pool, 8 * MIB, 1), beside = take(pool, 2 * MIB, 3);
    assert_true(beside == anybodys + 8 * MIB);
    take(pool, 10 * MIB, 1);
    give(pool, anybodys);
    assert_int_equal(dry_pool_trim(pool, 0, NULL), DRY_OK);
    assert_int_equal(dry_pool_begin_capture(pool, &captured), DRY_OK);
    give(pool, beside);
    assert_true(take(pool, 8 * MIB, 1) == anybodys);
    assert_true(take(pool, 2 * MIB, 3) == beside);
    end(pool, sim);
}

/*
 * Of a pool that gives its pages before an OOM: a hole of two pages, what a captured stream freed
 * to either side of it, and beyond those what may go elsewhere. The request has its pages if it
 * begins and ends amid the latter, where whole ones do.
 */
static void
spots_between_whole_pages_are_found(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(64 * PAGE);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    const uint64_t sizes[] = {2, 3, 3, 4, 3, 3, 2}; /* halves of pages */
    uint64_t blocks[7];
    begin_private(pool, 1, DRY_POOL_USE_ON_OOM);
    for (size_t i = 0; i < 7; i++)
        blocks[i] = take(pool, sizes[i] * PAGE / 2, i == 2 || i == 4 ? 3 : 1);
    give(pool, blocks[3]);
    const struct dry_pool_id id = {0, 1};
    assert_int_equal(dry_pool_release_private(pool, id), DRY_OK);
    assert_int_equal(dry_pool_trim(pool, 0, NULL), DRY_OK); /* nobody uses it: a hole */
    assert_int_equal(dry_pool_open_private(pool, id, DRY_POOL_USE_ON_OOM), DRY_OK);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    dry_sim_set_capacity(sim, account.used_bytes);
    assert_int_equal(dry_pool_begin_capture(pool, &captured), DRY_OK);
    for (size_t i = 1; i < 6; i++) {
        if (i != 3)
            give(pool, blocks[i]);
    }
    assert_true(take(pool, 6 * PAGE, 3) == blocks[1] + PAGE);
    end(pool, sim);
}

#define HIDING 64

/* Behind as many free blocks of captured streams lies the one that the asking one comes behind. */
static void
hide(uint64_t streams)
{
    const uint64_t size = 20 * MIB;
    uint64_t blocks[HIDING];
    struct dry_sim *sim = make_sim_of((HIDING + 1) * size, 0);
    struct few_addresses addresses;
    struct dry_pool *pool = make_few(&addresses, sim, "plan:False");
    uint64_t wanted = take(pool, size, 3);
    for (uint64_t i = 0; i < HIDING; i++)
        blocks[i] = take(pool, size, 3 + (i + 1) % streams);
    give(pool, wanted);
    wait_for(pool, sim, 1, 3);
    for (size_t i = 0; i < HIDING; i++)
        give(pool, blocks[i]);
    assert_int_equal(dry_pool_begin_capture(pool, &captured), DRY_OK);
    assert_true(take(pool, size, 1) == wanted);
    end(pool, sim);
}

static void
nothing_hides_behind_what_may_not_be_had(void **state)
{
    (void)state;
    hide(1);
    hide(HIDING + 1);
}

static uint64_t second_number;

static uint64_t
number_of(void *self, uint64_t stream)
{
    (void)self;
    return stream == 2 ? second_number : stream;
}

/*
 * The request fits into either of two runs, and one page can be had. The first run needs that page
 * next to memory that a destroyed stream freed, which can be waited for no more. The second run, of
 * which nothing is free, needs four pages.
 */
static void
what_never_will_be_over_costs_nothing(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(256 * MIB);
    struct few_addresses addresses;
    begin_few(&addresses, sim);
    second_number = 1000;
    addresses.ops.stream_id = number_of;
    struct dry_pool *pool = make_pool("plan:False");
    take(pool, PAGE, 1);
    uint64_t first = take(pool, 8 * MIB, 2), hole = take(pool, PAGE, 1);
    take(pool, PAGE, 1);
    take(pool, 3 * MIB, 1);
    uint64_t second = take(pool, 10 * MIB, 1);
    take(pool, 3 * MIB, 1);
    uint64_t page = take(pool, PAGE, 1);
    take(pool, PAGE, 1);
    give(pool, hole);
    give(pool, second);
    assert_int_equal(dry_pool_trim(pool, 0, NULL), DRY_OK);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    dry_sim_set_capacity(sim, account.used_bytes);
    give(pool, page);
    give(pool, first);
    wait_for(pool, sim, 1, 2);
    second_number = 1001; /* destroyed, and its handle given to another */
    assert_true(take(pool, 10 * MIB, 1) == first);
    end(pool, sim);
}

static uint64_t
used_bytes(const struct dry_sim *sim)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    return account.used_bytes;
}

static struct dry_pool *
make_own(struct dry_sim *sim, const char *conf)
{
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = dry_sim_get_device(sim);
    o.conf = conf;
    struct dry_pool *pool;
    assert_int_equal(dry_pool_create(&o, &pool, NULL), DRY_OK);
    return pool;
}

/* A program holds 60 of 80 GiB, asks for 30, and goes on: NCCL and cuBLAS find what was there. */
static void
an_oom_leaves_the_device_as_it_was(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(80 * GIB);
    struct dry_pool *pool = make_own(sim, "");
    uint64_t held[60], address;
    for (size_t i = 0; i < 60; i++)
        held[i] = take(pool, GIB, 1);
    uint64_t used = used_bytes(sim);
    for (int round = 0; round < 20; round++) {
        assert_int_equal(dry_pool_alloc(pool, 30 * GIB, 1, &address), DRY_ERR_NO_SPACE);
        assert_true(used_bytes(sim) == used);
    }
    /* What was cached goes, too, as PyTorch's allocator lets it go. */
    give(pool, held[0]);
    assert_int_equal(dry_pool_alloc(pool, 30 * GIB, 1, &address), DRY_ERR_NO_SPACE);
    assert_true(used_bytes(sim) == used - GIB);
    take(pool, 20 * GIB, 1);
    end(pool, sim);
}

static void
bytes_are_left_for_others(void **state)
{
    (void)state;
    struct dry_sim *sim = make_sim(8 * GIB);
    struct dry_pool *pool = make_own(sim, "leave_mb:512");
    uint64_t address;
    take(pool, 7 * GIB, 1);
    take(pool, 512 * MIB, 1);
    assert_int_equal(dry_pool_alloc(pool, 2 * MIB, 1, &address), DRY_ERR_NO_SPACE);
    assert_true(used_bytes(sim) == 8 * GIB - 512 * MIB);
    /* A limit that the program sets later takes nothing from what is left for others. */
    assert_int_equal(dry_pool_set_limit(pool, 8 * GIB), DRY_OK);
    assert_int_equal(dry_pool_alloc(pool, 2 * MIB, 1, &address), DRY_ERR_NO_SPACE);
    end(pool, sim);
    sim = make_sim(GIB);
    pool = make_own(sim, "leave_mb:4096");
    assert_int_equal(dry_pool_alloc(pool, 512, 1, &address), DRY_ERR_NO_SPACE);
    end(pool, sim);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_oom_leaves_the_device_as_it_was),
        cmocka_unit_test(bytes_are_left_for_others),
        cmocka_unit_test(private_pools_share_few_addresses),
        cmocka_unit_test(what_is_free_gives_its_addresses),
        cmocka_unit_test(addresses_are_looked_for_everywhere),
        cmocka_unit_test(small_request_needs_few_addresses),
        cmocka_unit_test(small_request_lies_among_large_ones),
        cmocka_unit_test(lent_addresses_are_enough),
        cmocka_unit_test(long_runs_are_looked_at_whole),
        cmocka_unit_test(spots_amid_a_run_are_found),
        cmocka_unit_test(spots_at_the_end_of_a_segment_are_found),
        cmocka_unit_test(lent_blocks_are_all_looked_at),
        cmocka_unit_test(what_is_lent_is_not_broken_before),
        cmocka_unit_test(what_is_lent_may_be_of_another_stream),
        cmocka_unit_test(blocks_side_by_side_are_one),
        cmocka_unit_test(captured_streams_take_nothing_in),
        cmocka_unit_test(frees_go_on_beside_a_capture),
        cmocka_unit_test(spots_between_whole_pages_are_found),
        cmocka_unit_test(nothing_hides_behind_what_may_not_be_had),
        cmocka_unit_test(what_never_will_be_over_costs_nothing),
    };
    return cmocka_run_group_tests_name("paged_oom", tests, NULL, NULL);
}
