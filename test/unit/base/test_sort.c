/* SPDX-License-Identifier: Apache-2.0 */

/* Sorting by keys against qsort, and that equal keys keep their order. */

#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "support/random.h"

#define COUNT_MAX 3000u

static int
compare(const void *a, const void *b)
{
    const struct dryi_sort_item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* Values count up, so that the order of equal keys is known. */
static void
check_sorted(const uint64_t *keys, size_t count)
{
    static struct dryi_sort_item items[COUNT_MAX], scratch[COUNT_MAX], wanted[COUNT_MAX];
    for (size_t i = 0; i < count; i++)
        items[i] = (struct dryi_sort_item){.key = keys[i], .value = (uint32_t)i};
    memcpy(wanted, items, sizeof wanted);
    qsort(wanted, count, sizeof *wanted, compare);
    dryi_sort_items(items, scratch, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(items[i].key, wanted[i].key);
        assert_int_equal(items[i].value, wanted[i].value);
    }
}

static void
random_keys_of_any_width_are_sorted(void **state)
{
    (void)state;
    static uint64_t keys[COUNT_MAX];
    struct random r;
    random_init(&r, 20261121);
    for (unsigned bits = 0; bits <= 64; bits++) {
        size_t count = random_below(&r, COUNT_MAX) + 1;
        uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        for (size_t i = 0; i < count; i++)
            keys[i] = (random_below(&r, UINT64_MAX) & mask) << (64 - bits) % 64;
        check_sorted(keys, count);
    }
}

static void
few_and_equal_keys_are_fine(void **state)
{
    (void)state;
    const uint64_t keys[] = {UINT64_MAX, 0, 7, 7, 0, UINT64_MAX, 7};
    for (size_t count = 0; count <= sizeof keys / sizeof *keys; count++)
        check_sorted(keys, count);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_keys_of_any_width_are_sorted),
        cmocka_unit_test(few_and_equal_keys_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
