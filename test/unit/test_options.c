/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <string.h>

#include "base/options.h"

struct old_options {
    size_t struct_size;
    uint64_t first;
};

struct options {
    size_t struct_size;
    uint64_t first, second;
};

struct new_options {
    size_t struct_size;
    uint64_t first, second, third;
};

static struct options
defaults(void)
{
    return (struct options){sizeof(struct options), 1, 2};
}

static void
null_means_defaults(void **state)
{
    (void)state;
    struct options o = defaults();
    assert_int_equal(dryi_options_take(&o, sizeof o, NULL, NULL), DRY_OK);
    assert_true(o.first == 1 && o.second == 2);
}

static void
smaller_struct_keeps_later_defaults(void **state)
{
    (void)state;
    struct options o = defaults();
    struct old_options from = {sizeof from, 10};
    assert_int_equal(dryi_options_take(&o, sizeof o, &from, NULL), DRY_OK);
    assert_true(o.first == 10 && o.second == 2);
    assert_int_equal(o.struct_size, sizeof o);
}

static void
larger_struct_needs_a_zero_tail(void **state)
{
    (void)state;
    struct options o = defaults();
    struct new_options from = {sizeof from, 10, 20, 0};
    assert_int_equal(dryi_options_take(&o, sizeof o, &from, NULL), DRY_OK);
    assert_true(o.first == 10 && o.second == 20);
    from.third = UINT64_C(1) << 63;
    from.first = 99;
    struct dry_error err;
    assert_int_equal(dryi_options_take(&o, sizeof o, &from, &err), DRY_ERR_UNSUPPORTED);
    assert_true(o.first == 10);
}

static void
uninitialised_struct_is_refused(void **state)
{
    (void)state;
    struct options o = defaults();
    struct options from = {0};
    struct dry_error err;
    assert_int_equal(dryi_options_take(&o, sizeof o, &from, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "struct_size"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_means_defaults),
        cmocka_unit_test(smaller_struct_keeps_later_defaults),
        cmocka_unit_test(larger_struct_needs_a_zero_tail),
        cmocka_unit_test(uninitialised_struct_is_refused),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
