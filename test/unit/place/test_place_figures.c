/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include "place/place_figures.h"

static void
add(struct dryi_place_figures *figures, const struct dry_memory *memory, uint64_t id)
{
    assert_true(dryi_place_figures_reserve(figures, memory));
    uint32_t index = dryi_place_figures_add(figures, (struct dryi_pool_id){0, id});
    assert_int_equal(index, id);
}

struct seen {
    uint64_t ids[8];
    int64_t current[8];
    size_t count;
};

static void
see(void *self, struct dryi_pool_id id, const struct dry_stat_array *reserved)
{
    struct seen *seen = self;
    seen->ids[seen->count] = id.b;
    seen->current[seen->count++] = reserved->all.current;
}

static void
changes_go_to_one_pool(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dryi_place_figures figures = {0};
    for (uint64_t id = 0; id < 4; id++)
        add(&figures, &memory, id);
    dryi_place_figures_change(&figures, 0, false, 1000); /* the default pool's */
    dryi_place_figures_change(&figures, 3, true, 30);
    dryi_place_figures_change(&figures, 1, false, 70);
    dryi_place_figures_change(&figures, 3, true, -10);
    struct seen seen = {.count = 0};
    dryi_place_figures_visit(&figures, see, &seen);
    assert_int_equal(seen.count, 2);
    assert_true(seen.ids[0] == 1 && seen.current[0] == 70);
    assert_true(seen.ids[1] == 3 && seen.current[1] == 20);
    assert_int_equal(dryi_place_figures_sum(&figures, false), 1070);
    assert_int_equal(dryi_place_figures_sum(&figures, true), 20);
    dryi_place_figures_reset(&figures, true, false);
    const struct dry_stat *small = &figures.list[3].reserved.small_pool;
    assert_true(small->peak == 20 && small->allocated == 30 && small->freed == 10);
    dryi_place_figures_reset(&figures, false, true);
    assert_true(small->current == 20 && small->allocated == 0 && small->freed == 0);
    dryi_place_figures_finish(&figures, &memory);
    failing_memory_finish(&fm);
}

/* The figures of the last pools that are gone are kept, and those before them serve new pools. */
static void
the_last_that_are_gone_are_kept(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dryi_place_figures figures = {0};
    add(&figures, &memory, 0);
    for (uint64_t id = 1; id <= 1000; id++) {
        assert_true(dryi_place_figures_reserve(&figures, &memory));
        uint32_t index = dryi_place_figures_add(&figures, (struct dryi_pool_id){0, id});
        dryi_place_figures_change(&figures, index, true, 10);
        dryi_place_figures_end(&figures, index);
        dryi_place_figures_change(&figures, index, true, -10);
    }
    assert_int_equal(figures.count, 1 + DRYI_PLACE_FIGURES_GONE);
    uint64_t sum = 0;
    for (size_t i = 1; i < figures.count; i++) {
        assert_int_equal(figures.list[i].reserved.all.freed, 10);
        sum += figures.list[i].id.b;
    }
    uint64_t gone = DRYI_PLACE_FIGURES_GONE;
    assert_int_equal(sum, gone * 1000 - gone * (gone - 1) / 2);
    dryi_place_figures_finish(&figures, &memory);
    failing_memory_finish(&fm);
}

static void
no_memory_adds_nothing(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, 0);
    struct dryi_place_figures figures = {0};
    assert_false(dryi_place_figures_reserve(&figures, &memory));
    assert_int_equal(figures.count, 0);
    assert_int_equal(dryi_place_figures_sum(&figures, true), 0);
    dryi_place_figures_finish(&figures, &memory);
    failing_memory_finish(&fm);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_go_to_one_pool),
        cmocka_unit_test(the_last_that_are_gone_are_kept),
        cmocka_unit_test(no_memory_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
