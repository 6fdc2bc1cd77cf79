/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Expandable segments and free blocks, as PyTorch asks a pool for their sizes.
 */
#include "support/cmocka.h"

#include "support/failing_memory.h"
#include "support/pool_run.h"

#define MIB (UINT64_C(1) << 20)
#define SEEN_MAX 256

static const struct dry_pool_id one = {0, 1};

struct seen {
    struct dry_pool_expandable list[SEEN_MAX];
    size_t count, stop_at; /* stop_at 0: never */
};

static enum dry_status
see(void *self, const struct dry_pool_expandable *segment)
{
    struct seen *seen = self;
    assert_true(seen->count < SEEN_MAX);
    seen->list[seen->count++] = *segment;
    return seen->count == seen->stop_at ? DRY_ERR_CANCELLED : DRY_OK;
}

static void
walk_all(struct pool_run *run, struct seen *seen)
{
    *seen = (struct seen){0};
    assert_int_equal(dry_pool_walk_expandable(run->pool, see, seen), DRY_OK);
}

static uint64_t
take(struct pool_run *run, uint64_t size, uint64_t stream)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(run->pool, size, stream, &address), DRY_OK);
    return address;
}

static void
segments_of_each_stream_and_size_are_told(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "expandable_segments:True", 256 * MIB,
                   NULL);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 0);
    take(&run, 5, 0);
    take(&run, 30 * MIB, 0);
    take(&run, 5, 3);
    assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(run.pool, one, NULL), DRY_OK);
    take(&run, 3 * MIB, 3);
    walk_all(&run, &seen);
    static const struct {
        uint64_t bytes, stream;
        bool is_small, is_private;
    } wanted[] = {{2 * MIB, 0, true, false},
                  {40 * MIB, 0, false, false},
                  {2 * MIB, 3, true, false},
                  {20 * MIB, 3, false, true}};
    assert_int_equal(seen.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(seen.list[i].mapped_bytes, wanted[i].bytes);
        assert_int_equal(seen.list[i].stream, wanted[i].stream);
        assert_int_equal(seen.list[i].is_small, wanted[i].is_small);
        assert_int_equal(seen.list[i].pool.b, wanted[i].is_private);
    }
    seen = (struct seen){.stop_at = 2};
    assert_int_equal(dry_pool_walk_expandable(run.pool, see, &seen), DRY_ERR_CANCELLED);
    assert_int_equal(seen.count, 2);
    pool_run_end(&run);
}

/* Pages in the middle go back: two runs, one segment. */
static void
runs_of_a_segment_are_one(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "expandable_segments:True", 256 * MIB,
                   NULL);
    uint64_t a[3];
    for (int i = 0; i < 3; i++)
        a[i] = take(&run, 20 * MIB, 0);
    assert_int_equal(dry_pool_free(run.pool, a[1]), DRY_OK);
    assert_int_equal(dry_pool_empty_cache(run.pool), DRY_OK);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.list[0].mapped_bytes, 40 * MIB);
    assert_true(seen.list[0].address == a[0]);
    pool_run_end(&run);
}

static void
segments_that_do_not_grow_are_left_out(void **state)
{
    (void)state;
    struct pool_run run;
    struct seen seen;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 256 * MIB, NULL);
    take(&run, 5, 0);
    walk_all(&run, &seen);
    assert_int_equal(seen.count, 0);
    pool_run_end(&run);
}

static enum dry_status
sum_up(void *self, const struct dry_pool_segment *segment,
       const struct dry_pool_part *parts, size_t count)
{
    (void)parts;
    (void)count;
    uint64_t *sum = self;
    *sum += segment->size;
    return DRY_OK;
}

/* All segments are in them, whatever happened. */
static void
sizes_add_up_to_all_segments(void **state)
{
    (void)state;
    static const struct {
        enum dry_placement placement;
        const char *conf;
    } kinds[] = {{DRY_PLACEMENT_TORCH, "expandable_segments:True"},
                 {DRY_PLACEMENT_PAGED, "plan:False"}};
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct pool_run run;
        struct seen seen;
        pool_run_begin(&run, kinds[seed % 2].placement, kinds[seed % 2].conf, 64 * MIB,
                       NULL);
        for (uint64_t i = 0; i < 20; i++) {
            uint64_t wanted = 0;
            pool_run_steps(&run, seed * 100 + i, 20);
            walk_all(&run, &seen);
            assert_int_equal(dry_pool_walk(run.pool, sum_up, &wanted), DRY_OK);
            uint64_t sum = 0;
            for (size_t k = 0; k < seen.count; k++)
                sum += seen.list[k].mapped_bytes;
            assert_true(sum == wanted);
        }
        pool_run_end(&run);
    }
}

static uint64_t
largest(struct pool_run *run)
{
    uint64_t bytes = 77;
    assert_int_equal(dry_pool_get_largest_free(run->pool, &bytes), DRY_OK);
    return bytes;
}

static void
largest_free_block_is_told(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 256 * MIB, NULL);
    assert_int_equal(largest(&run), 0);
    uint64_t a = take(&run, 30 * MIB, 2);
    assert_int_equal(largest(&run), 0);
    assert_int_equal(dry_pool_free(run.pool, a), DRY_OK);
    assert_int_equal(largest(&run), 30 * MIB);
    a = take(&run, 12 * MIB, 2);
    assert_int_equal(largest(&run), 18 * MIB);
    assert_int_equal(dry_pool_record_stream(run.pool, a, 1), DRY_OK);
    assert_int_equal(dry_pool_free(run.pool, a), DRY_OK); /* pending */
    assert_int_equal(largest(&run), 18 * MIB);
    assert_int_equal(dry_pool_open_private(run.pool, one, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(run.pool, one, NULL), DRY_OK);
    a = take(&run, 50 * MIB, 2);
    assert_int_equal(dry_pool_free(run.pool, a), DRY_OK);
    assert_int_equal(dry_pool_end_private(run.pool, one), DRY_OK);
    assert_int_equal(largest(&run), 50 * MIB); /* of a private pool, too */
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
        struct seen seen = {0};
        pool_run_begin(&run, DRY_PLACEMENT_PAGED, "", 64 * MIB, &memory);
        assert_int_equal(dry_pool_free(run.pool, take(&run, 3 * MIB, 0)), DRY_OK);
        fm.left = n;
        uint64_t bytes = 77;
        enum dry_status status = dry_pool_get_largest_free(run.pool, &bytes);
        if (status == DRY_OK)
            status = dry_pool_walk_expandable(run.pool, see, &seen);
        bool failed = fm.failed;
        assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
        assert_int_equal(seen.count, failed ? 0 : 1);
        fm.left = SIZE_MAX;
        fm.failed = false;
        pool_run_end(&run);
        failing_memory_finish(&fm);
        if (!failed)
            break;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_of_each_stream_and_size_are_told),
        cmocka_unit_test(runs_of_a_segment_are_one),
        cmocka_unit_test(segments_that_do_not_grow_are_left_out),
        cmocka_unit_test(sizes_add_up_to_all_segments),
        cmocka_unit_test(largest_free_block_is_told),
        cmocka_unit_test(no_memory_is_no_answer),
    };
    return cmocka_run_group_tests_name("pool_sizes", tests, NULL, NULL);
}
