/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool's memory for other devices and processes, over the stand-in for the driver, where one
 * process plays both, and on the simulated device.
 */
#include "support/cmocka.h"

#include <drystone/cuda.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda/cuda_driver.h"
#include "os/library.h"
#include "strict/stand_in.h"
#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)

/* --- over the stand-in ------------------------------------------------------------------------- */

struct bench {
    struct dryi_cuda_driver driver;
    const struct stand_in *control;
    int (*write)(dryi_cuda_address to, const void *from, size_t bytes);
    int (*read)(void *to, dryi_cuda_address from, size_t bytes);
    void *contexts[2];
    struct dry_cuda *cuda;
    struct dry_pool *pool;
};

static void
find(const struct bench *b, const char *name, void *function)
{
    dryi_library_function *found = dryi_library_find(b->driver.library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static const char *
library_path(void)
{
    const char *path = getenv("DRY_TEST_CUDA");
    assert_non_null(path);
    return path;
}

static struct bench
begin(const struct stand_in_setup *setup, enum dry_placement placement, const char *conf,
      bool shareable)
{
    struct bench b = {0};
    struct dry_error err;
    assert_int_equal(dryi_cuda_driver_open(&b.driver, library_path(), NULL), DRY_OK);
    const struct stand_in *(*control)(void);
    find(&b, "stand_in_control", &control);
    find(&b, "cuMemcpyHtoD_v2", &b.write);
    find(&b, "cuMemcpyDtoH_v2", &b.read);
    b.control = control();
    b.control->reset(setup);
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    o.library = library_path();
    o.shareable = shareable;
    if (dry_cuda_open(&o, &b.cuda, &err) != DRY_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < setup->device_count; i++)
        assert_int_equal(b.driver.primary_context_retain(&b.contexts[i], i), 0);
    struct dry_pool_options p;
    dry_pool_options_init(&p);
    p.device = dry_cuda_get_device(b.cuda);
    p.placement = placement;
    p.conf = conf;
    if (dry_pool_create(&p, &b.pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return b;
}

/* What the driver refused to take back may be left there, and nothing else. */
static void
end(struct bench *b)
{
    struct stand_in_account a;
    struct dry_cuda_account account = DRY_INIT(struct dry_cuda_account);
    dry_pool_destroy(b->pool);
    dry_cuda_get_account(b->cuda, &account);
    for (int i = 0; i < 2; i++) {
        if (b->contexts[i])
            b->driver.primary_context_release(i);
    }
    b->control->get_account(&a);
    if (a.misuses)
        print_error("%s\n", b->control->last_misuse());
    assert_true(a.misuses == 0);
    assert_true(a.ranges + a.reservations + a.mappings + a.handles + a.opened <=
                2 * account.refusals);
    dry_cuda_close(b->cuda);
    b->control->reset(NULL);
    dryi_cuda_driver_close(&b->driver);
}

static uint64_t
take(struct dry_pool *pool, uint64_t size)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(pool, size, 0, &address), DRY_OK);
    return address;
}

/* Write as one device, read as the other. */
static void
pass_on(struct bench *b, uint64_t address, int from, int to)
{
    static uint64_t next = 42;
    uint64_t sent = next++, got = 0;
    void *popped;
    assert_int_equal(b->driver.context_push(b->contexts[from]), 0);
    assert_int_equal(b->write(address, &sent, sizeof sent), 0);
    assert_int_equal(b->driver.context_pop(&popped), 0);
    assert_int_equal(b->driver.context_push(b->contexts[to]), 0);
    assert_int_equal(b->read(&got, address, sizeof got), 0);
    assert_int_equal(b->driver.context_pop(&popped), 0);
    assert_true(sent == got);
}

static const struct {
    enum dry_placement placement;
    const char *conf;
} kinds[] = {{DRY_PLACEMENT_TORCH, "expandable_segments:True"},
             {DRY_PLACEMENT_PAGED, ""}};

static void
peer_uses_pages_of_before_and_after(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.device_count = 2, .total_bytes = 256 * MIB};
    for (size_t i = 0; i < 2; i++) {
        struct bench b = begin(&setup, kinds[i].placement, kinds[i].conf, false);
        uint64_t before = take(b.pool, 30 * MIB);
        pass_on(&b, before, 0, 0);
        assert_int_equal(dry_pool_enable_peer(b.pool, 1), DRY_OK);
        uint64_t after = take(b.pool, 50 * MIB), small = take(b.pool, 5);
        pass_on(&b, before + 29 * MIB, 0, 1);
        pass_on(&b, after + 49 * MIB, 1, 0);
        pass_on(&b, small, 0, 1);
        assert_int_equal(dry_pool_enable_peer(b.pool, 1), DRY_OK);
        end(&b);
    }
}

static void
peer_that_is_none_is_refused(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {.device_count = 2, .total_bytes = 64 * MIB};
    struct bench b = begin(&setup, DRY_PLACEMENT_PAGED, "", false);
    assert_int_equal(dry_pool_enable_peer(b.pool, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_enable_peer(b.pool, 2), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_enable_peer(b.pool, -1), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_enable_peer(b.pool, 64), DRY_ERR_ARGUMENT);
    take(b.pool, 5);
    end(&b);
}

/* Devices that cannot reach each other: refused at once, and maps go on as before. */
static void
peer_out_of_reach_is_refused(void **state)
{
    (void)state;
    const struct stand_in_setup setup = {
        .device_count = 2, .total_bytes = 64 * MIB, .no_peers = true};
    struct bench b = begin(&setup, DRY_PLACEMENT_PAGED, "", false);
    take(b.pool, 5);
    assert_int_equal(dry_pool_enable_peer(b.pool, 1), DRY_ERR_SYSTEM);
    take(b.pool, 20 * MIB);
    end(&b);
}

/* --- another process --------------------------------------------------------------------------- */

#define PAGES_MAX 64

/* A block as it is seen here, and as the other process sees it. */
static void
share_both_ways(struct bench *b, uint64_t address, uint64_t size)
{
    struct dry_pool_share share;
    int descriptors[PAGES_MAX];
    uint64_t there;
    assert_int_equal(dry_pool_share(b->pool, address, &share, NULL, 0), DRY_OK);
    assert_true(share.page_count <= PAGES_MAX);
    assert_true(share.offset + size <= share.size);
    if (share.page_count > 0)
        assert_int_equal(dry_pool_share(b->pool, address, &share, descriptors, PAGES_MAX),
                         DRY_OK);
    assert_int_equal(dry_pool_open_shared(b->pool, &share, descriptors, &there), DRY_OK);
    for (uint64_t i = 0; i < share.page_count; i++)
        assert_int_equal(close(descriptors[i]), 0);
    for (int i = 0; i < 2; i++) {
        uint64_t at = i == 0 ? 0 : size - 8, sent = 1000 + address + at, got = 0;
        void *popped;
        assert_int_equal(b->driver.context_push(b->contexts[0]), 0);
        assert_int_equal(b->write(address + at, &sent, sizeof sent), 0);
        assert_int_equal(b->read(&got, there + share.offset + at, sizeof got), 0);
        assert_true(got == sent);
        sent++;
        assert_int_equal(b->write(there + share.offset + at, &sent, sizeof sent), 0);
        assert_int_equal(b->read(&got, address + at, sizeof got), 0);
        assert_true(got == sent);
        assert_int_equal(b->driver.context_pop(&popped), 0);
    }
    assert_int_equal(dry_pool_close_shared(b->pool, &share, there), DRY_OK);
}

static void
share_blocks(struct bench *b)
{
    uint64_t before = take(b->pool, 3 * MIB), large = take(b->pool, 45 * MIB),
             amid = take(b->pool, 5 * MIB), small = take(b->pool, 1000),
             other = take(b->pool, 1000);
    share_both_ways(b, large, 45 * MIB);
    share_both_ways(b, amid, 5 * MIB);
    share_both_ways(b, other, 1000);
    share_both_ways(b, small, 1000);
    share_both_ways(b, before, 3 * MIB);
}

static const struct stand_in_setup two = {.device_count = 2, .total_bytes = 256 * MIB};

static void
ranges_are_shared_by_name(void **state)
{
    (void)state;
    struct bench b = begin(&two, DRY_PLACEMENT_TORCH, "", false);
    struct dry_pool_share share;
    share_blocks(&b);
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    uint64_t address = take(b.pool, 5 * MIB);
    assert_int_equal(dry_pool_get_block(b.pool, address, &block), DRY_OK);
    assert_int_equal(dry_pool_share(b.pool, address, &share, NULL, 0), DRY_OK);
    assert_int_equal(share.page_bytes, 0);
    assert_true(address > block.segment_address);
    assert_true(share.offset == address - block.segment_address);
    assert_true(share.size == block.segment_size);
    end(&b);
}

static void
pages_are_shared_by_descriptors(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bench b = begin(&two, kinds[i].placement, kinds[i].conf, true);
        share_blocks(&b);
        end(&b);
    }
}

/* What is opened is open for the device's peers, too, as PyTorch has it. */
static void
peer_uses_what_is_opened(void **state)
{
    (void)state;
    struct bench b = begin(&two, DRY_PLACEMENT_PAGED, "", true);
    struct dry_pool_share share;
    int descriptor;
    uint64_t there, address = take(b.pool, 1000);
    assert_int_equal(dry_pool_enable_peer(b.pool, 1), DRY_OK);
    assert_int_equal(dry_pool_share(b.pool, address, &share, &descriptor, 1), DRY_OK);
    assert_int_equal(share.page_count, 1);
    assert_int_equal(dry_pool_open_shared(b.pool, &share, &descriptor, &there), DRY_OK);
    pass_on(&b, there + share.offset, 0, 1);
    assert_int_equal(dry_pool_close_shared(b.pool, &share, there), DRY_OK);
    close(descriptor);
    end(&b);
}

static void
pages_not_made_for_it_are_not_shared(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bench b = begin(&two, kinds[i].placement, kinds[i].conf, false);
        struct dry_pool_share share = {.offset = 77};
        int descriptors[PAGES_MAX];
        uint64_t address = take(b.pool, 5);
        assert_int_equal(dry_pool_share(b.pool, address, &share, descriptors, PAGES_MAX),
                         DRY_ERR_UNSUPPORTED);
        assert_int_equal(dry_pool_share(b.pool, address + 512, &share, descriptors, 1),
                         DRY_ERR_ARGUMENT);
        assert_true(share.offset == 77);
        end(&b);
    }
}

/* Numbers come from elsewhere. */
static void
share_that_is_none_is_refused(void **state)
{
    (void)state;
    struct bench b = begin(&two, DRY_PLACEMENT_PAGED, "", true);
    uint64_t there = 77;
    int descriptor = open("/dev/null", O_RDONLY);
    const struct dry_pool_share bad[] = {
        {0},
        {.offset = 512, .size = 512},
        {.size = 512, .page_count = 1},
        {.size = 2 * MIB, .page_bytes = 2 * MIB},
        {.size = 2 * MIB, .page_bytes = 2 * MIB, .page_count = 2},
        {.size = 0, .page_bytes = UINT64_C(1) << 63, .page_count = 2},
        {.size = 3, .page_bytes = 3, .page_count = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dry_pool_open_shared(b.pool, &bad[i], &descriptor, &there),
                         DRY_ERR_ARGUMENT);
    const struct dry_pool_share name = {.size = 512};
    assert_int_equal(dry_pool_open_shared(b.pool, &name, NULL, &there), DRY_ERR_SYSTEM);
    const struct dry_pool_share page = {
        .size = 2 * MIB, .page_bytes = 2 * MIB, .page_count = 1};
    assert_int_equal(dry_pool_open_shared(b.pool, &page, &descriptor, &there),
                     DRY_ERR_SYSTEM);
    assert_true(there == 77);
    close(descriptor);
    end(&b);
}

/* The n-th call of the driver fails. Returns true if there was no such call. */
static bool
share_with_refusal(uint64_t n)
{
    struct bench b = begin(&two, DRY_PLACEMENT_PAGED, "", true);
    struct stand_in_account before, after;
    struct dry_pool_share share = {0};
    uint64_t address = take(b.pool, 7 * MIB), there = 0;
    int descriptors[PAGES_MAX], next = dup(0);
    close(next);
    b.control->get_account(&before);
    b.control->fail_at(n, 999);
    enum dry_status status =
        dry_pool_share(b.pool, address, &share, descriptors, PAGES_MAX);
    bool is_shared = status == DRY_OK;
    if (is_shared)
        status = dry_pool_open_shared(b.pool, &share, descriptors, &there);
    b.control->get_account(&after);
    b.control->fail_at(UINT64_MAX, 0);
    for (uint64_t i = 0; i < share.page_count && is_shared; i++)
        close(descriptors[i]);
    int now = dup(0);
    close(now);
    assert_int_equal(now, next); /* no descriptor is left */
    if (status == DRY_OK)
        assert_int_equal(dry_pool_close_shared(b.pool, &share, there), DRY_OK);
    else
        assert_int_equal(status, DRY_ERR_SYSTEM);
    end(&b);
    return after.calls - before.calls <= n;
}

static void
refusals_leave_nothing(void **state)
{
    (void)state;
    uint64_t n = 0;
    while (!share_with_refusal(n))
        n++;
    assert_true(n > 20);
}

static void
simulated_device_has_nothing_to_share(void **state)
{
    (void)state;
    struct pool_run run;
    struct dry_pool_share share = {.size = 512};
    uint64_t there;
    for (size_t i = 0; i < 2; i++) {
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, i ? kinds[0].conf : "", 256 * MIB,
                       NULL);
        uint64_t address = take(run.pool, 5);
        assert_int_equal(dry_pool_share(run.pool, address, &share, NULL, 0),
                         DRY_ERR_UNSUPPORTED);
        assert_int_equal(dry_pool_open_shared(run.pool, &share, NULL, &there),
                         DRY_ERR_UNSUPPORTED);
        assert_int_equal(dry_pool_close_shared(run.pool, &share, 512),
                         DRY_ERR_UNSUPPORTED);
        pool_run_end(&run);
    }
}

/* --- on the simulated device -------------------------------------------------------------------- */

static void
pool_opens_what_it_has_mapped(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pool_run run;
        struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
        struct dry_stats stats;
        pool_run_begin(&run, kinds[i].placement, kinds[i].conf, 256 * MIB, NULL);
        take(run.pool, 30 * MIB);
        take(run.pool, 5);
        assert_int_equal(dry_pool_enable_peer(run.pool, 3), DRY_OK);
        dry_sim_get_account(run.sim, &account);
        dry_pool_get_stats(run.pool, &stats);
        assert_true(account.peers == 1u << 3);
        assert_true(account.peer_bytes > 30 * MIB);
        assert_true(account.peer_bytes <= (uint64_t)stats.reserved_bytes.all.current);
        dry_sim_fail_at(run.sim, 0);
        assert_int_equal(dry_pool_enable_peer(run.pool, 4), DRY_ERR_SYSTEM);
        assert_int_equal(dry_pool_enable_peer(run.pool, 0), DRY_ERR_ARGUMENT);
        pool_run_end(&run);
    }
}

static void
ranges_need_no_opening(void **state)
{
    (void)state;
    struct pool_run run;
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 256 * MIB, NULL);
    take(run.pool, 30 * MIB);
    assert_int_equal(dry_pool_enable_peer(run.pool, 3), DRY_OK);
    dry_sim_get_account(run.sim, &account);
    assert_true(account.peers == 1u << 3);
    assert_true(account.peer_bytes == 0);
    pool_run_end(&run);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer_uses_pages_of_before_and_after),
        cmocka_unit_test(peer_that_is_none_is_refused),
        cmocka_unit_test(peer_out_of_reach_is_refused),
        cmocka_unit_test(ranges_are_shared_by_name),
        cmocka_unit_test(pages_are_shared_by_descriptors),
        cmocka_unit_test(peer_uses_what_is_opened),
        cmocka_unit_test(pages_not_made_for_it_are_not_shared),
        cmocka_unit_test(share_that_is_none_is_refused),
        cmocka_unit_test(refusals_leave_nothing),
        cmocka_unit_test(simulated_device_has_nothing_to_share),
        cmocka_unit_test(pool_opens_what_it_has_mapped),
        cmocka_unit_test(ranges_need_no_opening),
    };
    return cmocka_run_group_tests_name("pool_share", tests, NULL, NULL);
}
