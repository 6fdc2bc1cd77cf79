/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool's memory for other devices, over the stand-in for the driver and on the simulated device.
 */
#include "support/cmocka.h"

#include <drystone/cuda.h>

#include <stdlib.h>
#include <string.h>

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

static void
end(struct bench *b)
{
    struct stand_in_account a;
    dry_pool_destroy(b->pool);
    for (int i = 0; i < 2; i++) {
        if (b->contexts[i])
            b->driver.primary_context_release(i);
    }
    b->control->get_account(&a);
    if (a.misuses)
        print_error("%s\n", b->control->last_misuse());
    assert_true(a.misuses == 0);
    assert_true(a.ranges + a.reservations + a.mappings + a.handles == 0);
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

/* --- on the simulated device -------------------------------------------------------------------- */

static void
pool_opens_what_it_has_mapped(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pool_run run;
        struct dry_sim_account account;
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
    struct dry_sim_account account;
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
        cmocka_unit_test(pool_opens_what_it_has_mapped),
        cmocka_unit_test(ranges_need_no_opening),
    };
    return cmocka_run_group_tests_name("pool_share", tests, NULL, NULL);
}
