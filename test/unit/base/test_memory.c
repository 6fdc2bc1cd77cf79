/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <string.h>

#include "base/memory.h"

static void
default_is_malloc(void **state)
{
    (void)state;
    struct dry_memory m = dryi_memory_or_default(NULL);
    char *text = m.resize(m.self, NULL, 0, 4);
    assert_non_null(text);
    memcpy(text, "abc", 4);
    text = m.resize(m.self, text, 4, 4096);
    assert_non_null(text);
    assert_string_equal(text, "abc");
    assert_null(m.resize(m.self, text, 4096, 0));
    assert_true(dryi_memory_or_default(&m).resize == m.resize);
}

static void
zalloc_is_zero_and_checks_the_product(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory m = failing_memory_init(&fm, SIZE_MAX);
    unsigned char *bytes = dryi_memory_zalloc(&m, 100, 3);
    assert_non_null(bytes);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(bytes[i], 0);
    dryi_memory_free(&m, bytes, 100, 3);
    dryi_memory_free(&m, NULL, 100, 3);
    assert_null(dryi_memory_zalloc(&m, SIZE_MAX / 2, 3));
    assert_null(dryi_memory_zalloc(&m, 0, 3));
    failing_memory_finish(&fm);
}

static void
grown_array_keeps_what_it_held(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory m = failing_memory_init(&fm, SIZE_MAX);
    uint32_t *numbers = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        assert_true(dryi_memory_grow(&m, &numbers, &capacity, i + 1, sizeof *numbers));
        assert_true(capacity > i);
        numbers[i] = i * 7;
    }
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(numbers[i], i * 7);
    assert_true(fm.requests < 30); /* grows by half: few steps */
    dryi_memory_free(&m, numbers, capacity, sizeof *numbers);
    failing_memory_finish(&fm);
}

static void
failed_growth_changes_nothing(void **state)
{
    (void)state;
    struct failing_memory fm;
    struct dry_memory m = failing_memory_init(&fm, 1);
    uint64_t *numbers = NULL;
    size_t capacity = 0;
    assert_true(dryi_memory_grow(&m, &numbers, &capacity, 5, sizeof *numbers));
    uint64_t *before = numbers;
    size_t capacity_before = capacity;
    numbers[4] = 44;
    assert_false(dryi_memory_grow(&m, &numbers, &capacity, 1000, sizeof *numbers));
    assert_false(
        dryi_memory_grow(&m, &numbers, &capacity, SIZE_MAX / 4, sizeof *numbers));
    assert_false(dryi_memory_grow(&m, &numbers, &capacity, SIZE_MAX / 16 + 1, 16));
    assert_ptr_equal(numbers, before);
    assert_int_equal(capacity, capacity_before);
    assert_true(numbers[4] == 44);
    dryi_memory_free(&m, numbers, capacity, sizeof *numbers);
    failing_memory_finish(&fm);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_is_malloc),
        cmocka_unit_test(zalloc_is_zero_and_checks_the_product),
        cmocka_unit_test(grown_array_keeps_what_it_held),
        cmocka_unit_test(failed_growth_changes_nothing),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
