/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Private pools: flags, users and blocks as a program asks about them.
 */
#include "support/cmocka.h"

#include "support/failing_memory.h"
#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)

static const struct dry_pool_id one = {0, 1}, two = {0, 2}, nobody = {0, 9};

static void
with_each(void (*test)(struct pool_run *run), uint64_t capacity)
{
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", capacity, NULL);
    test(&run);
    pool_run_end(&run);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "expandable_segments:True", capacity, NULL);
    test(&run);
    pool_run_end(&run);
    pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", capacity, NULL);
    test(&run);
    pool_run_end(&run);
}

static uint64_t
take(struct pool_run *run, uint64_t size)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(run->pool, size, 0, &address), DRY_OK);
    return address;
}

static uint64_t
take_in(struct pool_run *run, struct dry_pool_id id, uint64_t size)
{
    assert_int_equal(dry_pool_begin_private(run->pool, id, NULL), DRY_OK);
    uint64_t address = take(run, size);
    assert_int_equal(dry_pool_end_private(run->pool, id), DRY_OK);
    return address;
}

/* --- users -------------------------------------------------------------------------------- */

static void
count_users(struct pool_run *run)
{
    struct dry_pool *pool = run->pool;
    uint64_t users = 77;
    struct dry_pool_id none = {0, 0};
    assert_int_equal(dry_pool_count_private_users(pool, one, &users), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_count_private_users(pool, none, &users), DRY_ERR_ARGUMENT);
    assert_int_equal(users, 77);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(dry_pool_open_private(pool, one, 0), DRY_OK);
        assert_int_equal(dry_pool_count_private_users(pool, one, &users), DRY_OK);
        assert_int_equal(users, i);
    }
    uint64_t kept = take_in(run, one, 5);
    for (uint64_t i = 3; i-- > 0;) {
        assert_int_equal(dry_pool_release_private(pool, one), DRY_OK);
        assert_int_equal(dry_pool_count_private_users(pool, one, &users), DRY_OK);
        assert_int_equal(users, i);
    }
    assert_int_equal(dry_pool_free(pool, kept), DRY_OK);
}

static void
users_are_counted(void **state)
{
    (void)state;
    with_each(count_users, 64 * MIB);
}

/* --- flags -------------------------------------------------------------------------------- */

/* A pool of half the device, free; can a request of the default pool have it? */
static enum dry_status
ask_for_half(struct pool_run *run)
{
    uint64_t address;
    enum dry_status status = dry_pool_alloc(run->pool, 40 * MIB, 0, &address);
    if (status == DRY_OK)
        assert_int_equal(dry_pool_free(run->pool, address), DRY_OK);
    return status;
}

static void
lend_later(struct pool_run *run)
{
    struct dry_pool *pool = run->pool;
    assert_int_equal(dry_pool_open_private(pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_free(pool, take_in(run, one, 40 * MIB)), DRY_OK);
    assert_int_equal(ask_for_half(run), DRY_ERR_NO_SPACE);
    assert_int_equal(
        dry_pool_set_private_flags(pool, one, DRY_POOL_USE_ON_OOM, DRY_POOL_USE_ON_OOM),
        DRY_OK);
    assert_int_equal(ask_for_half(run), DRY_OK);
    assert_int_equal(dry_pool_set_private_flags(pool, one, 0, DRY_POOL_USE_ON_OOM),
                     DRY_OK);
}

static void
pool_lends_once_it_is_told_to(void **state)
{
    (void)state;
    static const enum dry_placement placements[] = {DRY_PLACEMENT_TORCH,
                                                    DRY_PLACEMENT_PAGED};
    for (int i = 0; i < 2; i++) { /* PyTorch lends no expandable segment */
        struct pool_run run;
        pool_run_begin(&run, placements[i], "", 64 * MIB, NULL);
        lend_later(&run);
        pool_run_end(&run);
    }
}

static void
pool_lends_no_more_once_it_is_told_not_to(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    lend_later(&run);
    assert_int_equal(ask_for_half(&run), DRY_ERR_NO_SPACE);
    pool_run_end(&run);
}

static void
split_no_more(struct pool_run *run)
{
    struct dry_pool *pool = run->pool;
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_open_private(pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_free(pool, take_in(run, one, 8 * MIB)), DRY_OK);
    uint64_t address = take_in(run, one, 3 * MIB);
    assert_int_equal(dry_pool_get_block(pool, address, &block), DRY_OK);
    assert_int_equal(block.size, 3 * MIB);
    assert_int_equal(dry_pool_free(pool, address), DRY_OK);
    assert_int_equal(
        dry_pool_set_private_flags(pool, one, DRY_POOL_NO_SPLIT, DRY_POOL_NO_SPLIT),
        DRY_OK);
    address = take_in(run, one, 3 * MIB);
    assert_int_equal(dry_pool_get_block(pool, address, &block), DRY_OK);
    assert_true(block.size >= 8 * MIB);
}

static void
pool_splits_no_more_once_it_is_told_so(void **state)
{
    (void)state;
    with_each(split_no_more, 64 * MIB);
}

static void
refuse_flags(struct pool_run *run)
{
    struct dry_pool *pool = run->pool;
    assert_int_equal(dry_pool_set_private_flags(pool, one, 0, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_open_private(pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_set_private_flags(pool, one, 0, 0), DRY_OK);
    assert_int_equal(dry_pool_set_private_flags(pool, one, 0, 8), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_set_private_flags(pool, one, DRY_POOL_NO_SPLIT, 0),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_set_private_flags(pool, (struct dry_pool_id){0, 0}, 1, 1),
                     DRY_ERR_ARGUMENT);
}

static void
bad_flags_are_refused(void **state)
{
    (void)state;
    with_each(refuse_flags, 64 * MIB);
}

/* --- blocks ------------------------------------------------------------------------------- */

static bool
has(struct pool_run *run, struct dry_pool_id id, const uint64_t *addresses, size_t count)
{
    bool answer;
    assert_int_equal(dry_pool_private_has(run->pool, id, addresses, count, &answer),
                     DRY_OK);
    return answer;
}

static void
compare_blocks(struct pool_run *run)
{
    struct dry_pool *pool = run->pool;
    bool answer;
    uint64_t a[5] = {0};
    assert_int_equal(dry_pool_private_has(pool, nobody, a, 0, &answer), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_open_private(pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_open_private(pool, two, 0), DRY_OK);
    assert_true(has(run, one, a, 0));
    a[0] = take_in(run, one, 5);
    a[1] = take_in(run, one, 3 * MIB);
    a[2] = take_in(run, two, 5);
    a[3] = take(run, 5);
    assert_false(has(run, one, a, 0));
    assert_false(has(run, one, a, 1));
    assert_true(has(run, one, a, 2));
    assert_false(has(run, one, a, 3)); /* of another private pool */
    assert_true(has(run, two, a + 2, 1));
    assert_false(has(run, two, a + 2, 2)); /* of the default pool */
    a[2] = a[0];
    assert_true(has(run, one, a, 3)); /* twice the same */
    a[1] = a[0];
    assert_false(has(run, one, a, 2)); /* and not for another one */
    assert_int_equal(dry_pool_free(pool, a[0]), DRY_OK);
    assert_false(has(run, one, a, 1));
    a[0] += 512; /* no block begins there */
    assert_false(has(run, one, a, 1));
}

static void
blocks_are_held_against_addresses(void **state)
{
    (void)state;
    with_each(compare_blocks, 256 * MIB);
}

static void
aligned_block_is_known_by_its_address(void **state)
{
    (void)state;
    struct pool_run run;
    uint64_t address;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(run.pool, one, NULL), DRY_OK);
    take(&run, 5);
    assert_int_equal(dry_pool_alloc_aligned(run.pool, 5, 65536, 0, &address), DRY_OK);
    uint64_t other = take(&run, 5);
    assert_int_equal(dry_pool_end_private(run.pool, one), DRY_OK);
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    assert_int_equal(dry_pool_get_block(run.pool, address, &block), DRY_OK);
    assert_true(block.address < address);
    uint64_t a[] = {address, other};
    assert_false(has(&run, one, a, 2)); /* the first one is missing */
    pool_run_end(&run);
}

static void
no_memory_is_no_answer(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct pool_run run;
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, &memory);
        assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
        uint64_t address = take_in(&run, one, 5);
        fm.left = n;
        bool answer = false;
        enum dry_status status =
            dry_pool_private_has(run.pool, one, &address, 1, &answer);
        bool failed = fm.failed;
        assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
        assert_int_equal(answer, !failed);
        fm.left = SIZE_MAX;
        fm.failed = false;
        pool_run_end(&run);
        failing_memory_finish(&fm);
        if (!failed)
            break;
    }
}

/* --- figures ------------------------------------------------------------------------------ */

struct told {
    struct dry_pool_id ids[4];
    struct dry_stat_array reserved[4];
    size_t count;
};

static void
keep_figure(void *self, struct dry_pool_id id, const struct dry_stat_array *reserved)
{
    struct told *told = self;
    assert_true(told->count < 4);
    told->ids[told->count] = id;
    told->reserved[told->count++] = *reserved;
}

static struct told
figures_of(struct pool_run *run)
{
    struct told told = {.count = 0};
    struct dry_error err;
    dry_pool_visit_private_stats(run->pool, keep_figure, &told);
    if (dry_pool_check(run->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return told;
}

static void
tell_figures(struct pool_run *run)
{
    struct dry_pool *pool = run->pool;
    assert_int_equal(dry_pool_open_private(pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_open_private(pool, two, 0), DRY_OK);
    take(run, 30 * MIB);
    assert_int_equal(figures_of(run).count, 0); /* of no pool that had memory */
    uint64_t small = take_in(run, two, 100), large = take_in(run, two, 30 * MIB);
    struct told told = figures_of(run);
    const struct dry_stat_array *had = &told.reserved[0];
    assert_int_equal(told.count, 1);
    assert_int_equal(told.ids[0].b, two.b);
    assert_true(had->all.current >= (int64_t)(32 * MIB));
    assert_int_equal(had->small_pool.current, 2 * MIB);
    assert_int_equal(had->all.current, had->small_pool.current + had->large_pool.current);
    assert_int_equal(dry_pool_free(pool, small), DRY_OK);
    assert_int_equal(dry_pool_free(pool, large), DRY_OK);
    assert_int_equal(dry_pool_release_private(pool, two), DRY_OK);
    assert_int_equal(dry_pool_empty_private(pool, two), DRY_OK);
    assert_int_equal(dry_pool_empty_cache(pool), DRY_OK);
    told = figures_of(run); /* the pool is gone, and its figures are not */
    assert_int_equal(told.count, 1);
    assert_int_equal(told.reserved[0].all.current, 0);
    assert_int_equal(told.reserved[0].all.freed, told.reserved[0].all.allocated);
    assert_true(told.reserved[0].all.peak >= (int64_t)(32 * MIB));
    dry_pool_reset_peaks(pool);
    dry_pool_reset_accumulated(pool);
    told = figures_of(run);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.reserved[0].all.peak, 0);
    assert_int_equal(told.reserved[0].large_pool.freed, 0);
}

static void
reserved_bytes_are_told_by_pool(void **state)
{
    (void)state;
    with_each(tell_figures, 256 * MIB);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_counted),
        cmocka_unit_test(pool_lends_once_it_is_told_to),
        cmocka_unit_test(pool_lends_no_more_once_it_is_told_not_to),
        cmocka_unit_test(pool_splits_no_more_once_it_is_told_so),
        cmocka_unit_test(bad_flags_are_refused),
        cmocka_unit_test(blocks_are_held_against_addresses),
        cmocka_unit_test(aligned_block_is_known_by_its_address),
        cmocka_unit_test(no_memory_is_no_answer),
        cmocka_unit_test(reserved_bytes_are_told_by_pool),
    };
    return cmocka_run_group_tests_name("pool_private", tests, NULL, NULL);
}
