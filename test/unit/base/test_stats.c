/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <assert.h>
#include <string.h>

#include <drystone/stats.h>

/* sorted(torch.cuda.memory_stats()), written out: the table under test must not make it.
 */
static const char *const keys[DRY_STATS_KEY_COUNT] = {
    "active.all.allocated",
    "active.all.current",
    "active.all.freed",
    "active.all.peak",
    "active.large_pool.allocated",
    "active.large_pool.current",
    "active.large_pool.freed",
    "active.large_pool.peak",
    "active.small_pool.allocated",
    "active.small_pool.current",
    "active.small_pool.freed",
    "active.small_pool.peak",
    "active_bytes.all.allocated",
    "active_bytes.all.current",
    "active_bytes.all.freed",
    "active_bytes.all.peak",
    "active_bytes.large_pool.allocated",
    "active_bytes.large_pool.current",
    "active_bytes.large_pool.freed",
    "active_bytes.large_pool.peak",
    "active_bytes.small_pool.allocated",
    "active_bytes.small_pool.current",
    "active_bytes.small_pool.freed",
    "active_bytes.small_pool.peak",
    "allocated_bytes.all.allocated",
    "allocated_bytes.all.current",
    "allocated_bytes.all.freed",
    "allocated_bytes.all.peak",
    "allocated_bytes.large_pool.allocated",
    "allocated_bytes.large_pool.current",
    "allocated_bytes.large_pool.freed",
    "allocated_bytes.large_pool.peak",
    "allocated_bytes.small_pool.allocated",
    "allocated_bytes.small_pool.current",
    "allocated_bytes.small_pool.freed",
    "allocated_bytes.small_pool.peak",
    "allocation.all.allocated",
    "allocation.all.current",
    "allocation.all.freed",
    "allocation.all.peak",
    "allocation.large_pool.allocated",
    "allocation.large_pool.current",
    "allocation.large_pool.freed",
    "allocation.large_pool.peak",
    "allocation.small_pool.allocated",
    "allocation.small_pool.current",
    "allocation.small_pool.freed",
    "allocation.small_pool.peak",
    "inactive_split.all.allocated",
    "inactive_split.all.current",
    "inactive_split.all.freed",
    "inactive_split.all.peak",
    "inactive_split.large_pool.allocated",
    "inactive_split.large_pool.current",
    "inactive_split.large_pool.freed",
    "inactive_split.large_pool.peak",
    "inactive_split.small_pool.allocated",
    "inactive_split.small_pool.current",
    "inactive_split.small_pool.freed",
    "inactive_split.small_pool.peak",
    "inactive_split_bytes.all.allocated",
    "inactive_split_bytes.all.current",
    "inactive_split_bytes.all.freed",
    "inactive_split_bytes.all.peak",
    "inactive_split_bytes.large_pool.allocated",
    "inactive_split_bytes.large_pool.current",
    "inactive_split_bytes.large_pool.freed",
    "inactive_split_bytes.large_pool.peak",
    "inactive_split_bytes.small_pool.allocated",
    "inactive_split_bytes.small_pool.current",
    "inactive_split_bytes.small_pool.freed",
    "inactive_split_bytes.small_pool.peak",
    "max_split_size",
    "num_alloc_retries",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
    "num_ooms",
    "num_sync_all_streams",
    "oversize_allocations.allocated",
    "oversize_allocations.current",
    "oversize_allocations.freed",
    "oversize_allocations.peak",
    "oversize_segments.allocated",
    "oversize_segments.current",
    "oversize_segments.freed",
    "oversize_segments.peak",
    "requested_bytes.all.allocated",
    "requested_bytes.all.current",
    "requested_bytes.all.freed",
    "requested_bytes.all.peak",
    "requested_bytes.large_pool.allocated",
    "requested_bytes.large_pool.current",
    "requested_bytes.large_pool.freed",
    "requested_bytes.large_pool.peak",
    "requested_bytes.small_pool.allocated",
    "requested_bytes.small_pool.current",
    "requested_bytes.small_pool.freed",
    "requested_bytes.small_pool.peak",
    "reserved_bytes.all.allocated",
    "reserved_bytes.all.current",
    "reserved_bytes.all.freed",
    "reserved_bytes.all.peak",
    "reserved_bytes.large_pool.allocated",
    "reserved_bytes.large_pool.current",
    "reserved_bytes.large_pool.freed",
    "reserved_bytes.large_pool.peak",
    "reserved_bytes.small_pool.allocated",
    "reserved_bytes.small_pool.current",
    "reserved_bytes.small_pool.freed",
    "reserved_bytes.small_pool.peak",
    "segment.all.allocated",
    "segment.all.current",
    "segment.all.freed",
    "segment.all.peak",
    "segment.large_pool.allocated",
    "segment.large_pool.current",
    "segment.large_pool.freed",
    "segment.large_pool.peak",
    "segment.small_pool.allocated",
    "segment.small_pool.current",
    "segment.small_pool.freed",
    "segment.small_pool.peak",
};

struct seen {
    size_t count;
    int64_t values[DRY_STATS_KEY_COUNT];
};

static void
check_key(void *self, const char *key, int64_t value)
{
    struct seen *seen = self;
    assert_true(seen->count < DRY_STATS_KEY_COUNT);
    assert_string_equal(key, keys[seen->count]);
    seen->values[seen->count++] = value;
}

static int64_t
value_of(const struct seen *seen, const char *key)
{
    for (size_t i = 0; i < DRY_STATS_KEY_COUNT; i++) {
        if (strcmp(keys[i], key) == 0)
            return seen->values[i];
    }
    fail_msg("no key %s", key);
    return 0;
}

static void
keys_are_pytorchs_in_its_order(void **state)
{
    (void)state;
    struct dry_stats stats = {0};
    struct seen seen = {0};
    dry_stats_visit(&stats, check_key, &seen);
    assert_int_equal(seen.count, DRY_STATS_KEY_COUNT);
    for (size_t i = 0; i < seen.count; i++)
        assert_true(seen.values[i] == 0);
}

/* Fill every number with another value: each key must then show another one. */
static void
no_number_is_shown_twice(void **state)
{
    (void)state;
    int64_t numbers[sizeof(struct dry_stats) / sizeof(int64_t)];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (int64_t)i + 1;
    struct dry_stats stats;
    static_assert(sizeof stats == sizeof numbers, "nothing but numbers");
    static_assert(sizeof stats == DRY_STATS_KEY_COUNT * sizeof(int64_t), "all are shown");
    memcpy(&stats, numbers, sizeof stats);
    struct seen seen = {0};
    dry_stats_visit(&stats, check_key, &seen);
    int met[DRY_STATS_KEY_COUNT + 1] = {0};
    for (size_t i = 0; i < seen.count; i++)
        assert_int_equal(met[seen.values[i]]++, 0);
}

static void
values_stand_at_their_keys(void **state)
{
    (void)state;
    struct dry_stats stats = {
        .allocation.all.current = 1,
        .segment.small_pool.freed = 2,
        .inactive_split_bytes.large_pool.peak = 3,
        .oversize_segments.allocated = 4,
        .max_split_size = -1,
        .num_ooms = 5,
        .reserved_bytes.all.peak = INT64_MAX,
    };
    struct seen seen = {0};
    dry_stats_visit(&stats, check_key, &seen);
    assert_true(value_of(&seen, "allocation.all.current") == 1);
    assert_true(value_of(&seen, "segment.small_pool.freed") == 2);
    assert_true(value_of(&seen, "inactive_split_bytes.large_pool.peak") == 3);
    assert_true(value_of(&seen, "oversize_segments.allocated") == 4);
    assert_true(value_of(&seen, "max_split_size") == -1);
    assert_true(value_of(&seen, "num_ooms") == 5);
    assert_true(value_of(&seen, "reserved_bytes.all.peak") == INT64_MAX);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_pytorchs_in_its_order),
        cmocka_unit_test(no_number_is_shown_twice),
        cmocka_unit_test(values_stand_at_their_keys),
    };
    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
