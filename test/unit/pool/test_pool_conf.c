/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a pool that change while it is used. */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <stdint.h>
#include <string.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

struct fixture {
    struct dry_sim *sim;
    struct dry_pool *pool;
};

static struct fixture
open_fixture(enum dry_placement placement, const char *conf,
             const struct dry_memory *memory)
{
    struct fixture f = {0};
    struct dry_sim_options sim;
    dry_sim_options_init(&sim);
    sim.capacity_bytes = GIB;
    sim.check = true;
    assert_int_equal(dry_sim_create(&sim, &f.sim, NULL), DRY_OK);
    struct dry_pool_options options;
    dry_pool_options_init(&options);
    options.device = dry_sim_get_device(f.sim);
    options.placement = placement;
    options.conf = conf;
    options.memory = memory;
    assert_int_equal(dry_pool_create(&options, &f.pool, NULL), DRY_OK);
    return f;
}

static void
close_fixture(struct fixture *f)
{
    dry_pool_destroy(f->pool);
    dry_sim_destroy(f->sim);
}

static uint64_t
take(struct fixture *f, uint64_t size)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(f->pool, size, 0, &address), DRY_OK);
    return address;
}

static void
set(struct fixture *f, const char *conf)
{
    struct dry_error err;
    if (dry_pool_set_conf(f->pool, conf, &err) != DRY_OK)
        fail_msg("%s", err.text);
    if (dry_pool_check(f->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static int64_t
segments(struct fixture *f)
{
    struct dry_stats stats;
    dry_pool_get_stats(f->pool, &stats);
    return stats.segment.all.current;
}

static void
later_requests_go_by_new_options(void **state)
{
    (void)state;
    struct fixture f = open_fixture(DRY_PLACEMENT_TORCH, "", NULL);
    assert_int_equal(dry_pool_round_size(f.pool, 5 * MIB), 5 * MIB);
    set(&f, "roundup_power2_divisions:2");
    assert_int_equal(dry_pool_round_size(f.pool, 5 * MIB), 6 * MIB);
    set(&f, "max_split_size_mb:200"); /* the roundups start afresh with every text */
    assert_int_equal(dry_pool_round_size(f.pool, 5 * MIB), 5 * MIB);
    close_fixture(&f);
}

/* Memory of both kinds is there side by side, and goes back. */
static void
segments_expand_from_now_on(void **state)
{
    (void)state;
    struct fixture f = open_fixture(DRY_PLACEMENT_TORCH, "", NULL);
    uint64_t before = take(&f, 30 * MIB);
    assert_int_equal(segments(&f), 1);
    set(&f, "expandable_segments:True");
    uint64_t after = take(&f, 30 * MIB);
    assert_int_equal(segments(&f), 1); /* PyTorch does not count expandable ones */
    set(&f, "expandable_segments:False");
    uint64_t last = take(&f, 50 * MIB);
    assert_int_equal(segments(&f), 2);
    assert_int_equal(dry_pool_free(f.pool, after), DRY_OK);
    assert_int_equal(dry_pool_free(f.pool, before), DRY_OK);
    assert_int_equal(dry_pool_free(f.pool, last), DRY_OK);
    assert_int_equal(dry_pool_empty_cache(f.pool), DRY_OK);
    struct dry_stats stats;
    dry_pool_get_stats(f.pool, &stats);
    assert_int_equal(stats.reserved_bytes.all.current, 0);
    assert_int_equal(stats.max_split_size, -1);
    close_fixture(&f);
}

static void
what_is_no_option_changes_nothing(void **state)
{
    (void)state;
    struct fixture f =
        open_fixture(DRY_PLACEMENT_TORCH, "roundup_power2_divisions:2", NULL);
    struct dry_error err;
    const char *wrong[] = {"roundup_power2_divisions:3", "no_such_option:1",
                           "max_split_size_mb:300,expandable_segments"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memset(&err, 0, sizeof err);
        assert_int_equal(dry_pool_set_conf(f.pool, wrong[i], &err), DRY_ERR_ARGUMENT);
        assert_int_equal(err.status, DRY_ERR_ARGUMENT);
        assert_true(err.text[0] != '\0');
        assert_int_equal(dry_pool_set_conf(f.pool, wrong[i], NULL), DRY_ERR_ARGUMENT);
    }
    assert_int_equal(dry_pool_set_conf(f.pool, "backend:cudaMallocAsync", &err),
                     DRY_ERR_UNSUPPORTED);
    assert_int_equal(dry_pool_round_size(f.pool, 5 * MIB), 6 * MIB);
    close_fixture(&f);
}

static void
paged_keeps_its_options(void **state)
{
    (void)state;
    struct fixture f = open_fixture(DRY_PLACEMENT_PAGED, "", NULL);
    struct dry_error err;
    assert_int_equal(dry_pool_set_conf(f.pool, "budget:1.5", &err), DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "placement paged"));
    close_fixture(&f);
}

/* Without memory for the text, the former options stay. */
static void
no_memory_changes_nothing(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct fixture f = open_fixture(DRY_PLACEMENT_TORCH, "", &memory);
    struct dry_error err;
    fm.left = 0;
    assert_int_equal(dry_pool_set_conf(f.pool, "roundup_power2_divisions:2", &err),
                     DRY_ERR_MEMORY);
    fm.left = SIZE_MAX;
    fm.failed = false;
    assert_int_equal(dry_pool_round_size(f.pool, 5 * MIB), 5 * MIB);
    set(&f, "roundup_power2_divisions:2");
    assert_int_equal(dry_pool_round_size(f.pool, 5 * MIB), 6 * MIB);
    close_fixture(&f);
    failing_memory_finish(&fm);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_requests_go_by_new_options),
        cmocka_unit_test(segments_expand_from_now_on),
        cmocka_unit_test(what_is_no_option_changes_nothing),
        cmocka_unit_test(paged_keeps_its_options),
        cmocka_unit_test(no_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
