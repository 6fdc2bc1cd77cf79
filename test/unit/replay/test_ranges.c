/* SPDX-License-Identifier: Apache-2.0 */

/*
 * replay/ranges against one label a cell: adding, joining, taking out of the middle,
 * refusing what overlaps, at the low and at the high end of addresses.
 */
#include "support/cmocka.h"

#include "replay/ranges.h"
#include "support/failing_memory.h"
#include "support/random.h"

#define CELLS 200
#define CELL_BYTES UINT64_C(512)

/* Which add a cell belongs to; ranges of one lane that touch are one. */
struct model {
    uint8_t lane[CELLS]; /* 0: not in the set, else lane + 1 */
    uint64_t base;
};

static uint64_t
addr_of(const struct model *m, size_t cell)
{
    return m->base + cell * CELL_BYTES;
}

static bool
is_free(const struct model *m, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        if (m->lane[i])
            return false;
    }
    return true;
}

static bool
is_of_one_range(const struct model *m, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        if (m->lane[i] == 0 || m->lane[i] != m->lane[first])
            return false;
    }
    return true;
}

static void
compare(struct dryi_ranges *ranges, const struct model *m)
{
    size_t count = 0;
    const struct range *next = dryi_ranges_from(ranges, 0);
    for (size_t i = 0; i < CELLS; i++) {
        const struct range *at = dryi_ranges_at(ranges, addr_of(m, i) + CELL_BYTES / 2);
        assert_int_equal(at != NULL, m->lane[i] != 0);
        if (at)
            assert_int_equal(at->lane + 1, m->lane[i]);
        if (!m->lane[i] || (i > 0 && m->lane[i - 1] == m->lane[i]))
            continue;
        size_t end = i;
        while (end < CELLS && m->lane[end] == m->lane[i])
            end++;
        assert_non_null(next);
        assert_int_equal(next->addr, addr_of(m, i));
        assert_int_equal(next->size, (end - i) * CELL_BYTES);
        next = dryi_ranges_from(ranges, next->addr + 1);
        count++;
    }
    assert_null(next);
    assert_int_equal(ranges->live_count, count);
}

static void
change(struct dryi_ranges *ranges, struct model *m, struct random *r)
{
    size_t first = random_below(r, CELLS);
    size_t count = 1 + random_below(r, 12);
    if (count > CELLS - first)
        count = CELLS - first;
    struct range range = {.addr = addr_of(m, first),
                          .size = count * CELL_BYTES,
                          .lane = (uint32_t)random_below(r, 2)};
    enum ranges_result wanted = RANGES_CONTRADICTION;
    uint8_t label = 0;
    if (random_below(r, 2)) {
        if (is_free(m, first, count)) {
            wanted = RANGES_DONE;
            label = (uint8_t)(range.lane + 1);
        }
        assert_int_equal(dryi_ranges_add(ranges, &range), wanted);
    } else {
        if (is_of_one_range(m, first, count))
            wanted = RANGES_DONE;
        assert_int_equal(dryi_ranges_remove(ranges, range.addr, range.size), wanted);
    }
    for (size_t i = first; wanted == RANGES_DONE && i < first + count; i++)
        m->lane[i] = label;
}

static void
random_operations_as_in_cells(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 16; seed++) {
        struct random r;
        struct dryi_ranges ranges;
        struct model m = {.base = seed % 2 ? UINT64_MAX - CELLS * CELL_BYTES : 0};
        random_init(&r, seed);
        dryi_ranges_init(&ranges, NULL);
        for (int step = 0; step < 2000; step++) {
            change(&ranges, &m, &r);
            compare(&ranges, &m);
        }
        dryi_ranges_finish(&ranges);
    }
}

static void
impossible_ranges_are_refused(void **state)
{
    (void)state;
    struct dryi_ranges ranges;
    dryi_ranges_init(&ranges, NULL);
    struct range range = {.addr = 4096, .size = 0};
    assert_int_equal(dryi_ranges_add(&ranges, &range), RANGES_CONTRADICTION);
    range.size = UINT64_MAX - 4095;
    assert_int_equal(dryi_ranges_add(&ranges, &range), RANGES_CONTRADICTION);
    range.size = UINT64_MAX - 4096;
    assert_int_equal(dryi_ranges_add(&ranges, &range), RANGES_DONE);
    assert_int_equal(dryi_ranges_remove(&ranges, 4096, 0), RANGES_CONTRADICTION);
    assert_int_equal(dryi_ranges_remove(&ranges, 4096, UINT64_MAX), RANGES_CONTRADICTION);
    assert_int_equal(dryi_ranges_remove(&ranges, 4095, 2), RANGES_CONTRADICTION);
    assert_int_equal(dryi_ranges_remove(&ranges, 8192, 512), RANGES_DONE);
    assert_int_equal(ranges.live_count, 2);
    assert_null(dryi_ranges_at(&ranges, 8192));
    assert_non_null(dryi_ranges_at(&ranges, UINT64_MAX - 1));
    assert_null(dryi_ranges_at(&ranges, UINT64_MAX));
    dryi_ranges_finish(&ranges);
}

static enum ranges_result
add(struct dryi_ranges *ranges, uint64_t addr, enum range_kind kind)
{
    return dryi_ranges_add(ranges,
                           &(struct range){.addr = addr, .size = 100, .kind = kind});
}

/* An unknown kind joins either and takes it on; small and large stay apart. */
static void
kinds_that_differ_do_not_join(void **state)
{
    (void)state;
    struct dryi_ranges ranges;
    dryi_ranges_init(&ranges, NULL);
    assert_int_equal(add(&ranges, 0, RANGE_SMALL), RANGES_DONE);
    assert_int_equal(add(&ranges, 100, RANGE_UNKNOWN), RANGES_DONE);
    assert_int_equal(ranges.live_count, 1);
    assert_int_equal(dryi_ranges_at(&ranges, 150)->kind, RANGE_SMALL);
    assert_int_equal(add(&ranges, 200, RANGE_LARGE), RANGES_DONE);
    assert_int_equal(ranges.live_count, 2);
    assert_int_equal(add(&ranges, 400, RANGE_LARGE), RANGES_DONE);
    assert_int_equal(add(&ranges, 300, RANGE_UNKNOWN), RANGES_DONE); /* closes the gap */
    assert_int_equal(ranges.live_count, 2);
    assert_int_equal(dryi_ranges_from(&ranges, 1)->addr, 200);
    assert_int_equal(dryi_ranges_from(&ranges, 1)->size, 300);
    assert_int_equal(dryi_ranges_from(&ranges, 1)->kind, RANGE_LARGE);
    dryi_ranges_finish(&ranges);
}

static enum ranges_result
fill_and_pierce(const struct dry_memory *memory)
{
    struct dryi_ranges ranges;
    dryi_ranges_init(&ranges, memory);
    enum ranges_result result = RANGES_DONE;
    for (uint64_t i = 0; i < 40 && result == RANGES_DONE; i++)
        result = add(&ranges, i * 200, RANGE_SMALL);
    for (uint64_t i = 0; i < 40 && result == RANGES_DONE; i++)
        result = dryi_ranges_remove(&ranges, i * 200 + 40, 20);
    if (result == RANGES_DONE)
        assert_int_equal(ranges.live_count, 80);
    dryi_ranges_finish(&ranges);
    return result;
}

static void
each_request_for_memory_may_fail(void **state)
{
    (void)state;
    size_t n = 0;
    for (bool failed = true; failed; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        enum ranges_result result = fill_and_pierce(&memory);
        failed = fm.failed;
        failing_memory_finish(&fm);
        assert_int_equal(result, failed ? RANGES_NO_MEMORY : RANGES_DONE);
    }
    assert_true(n > 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_as_in_cells),
        cmocka_unit_test(impossible_ranges_are_refused),
        cmocka_unit_test(kinds_that_differ_do_not_join),
        cmocka_unit_test(each_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
