/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <stdio.h>

#include <drystone/drystone.h>

static void
library_has_the_headers_version(void **state)
{
    (void)state;
    assert_string_equal(dry_version(), DRY_VERSION);
}

static void
text_and_number_are_of_the_parts(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", DRY_VERSION_MAJOR, DRY_VERSION_MINOR,
             DRY_VERSION_PATCH);
    assert_string_equal(DRY_VERSION, text);
#if DRY_VERSION_NUMBER < 1000
    fail_msg("the preprocessor reads %d as less than 0.1.0", DRY_VERSION_NUMBER);
#endif
    assert_int_equal(DRY_VERSION_NUMBER / 1000000, DRY_VERSION_MAJOR);
    assert_int_equal(DRY_VERSION_NUMBER / 1000 % 1000, DRY_VERSION_MINOR);
    assert_int_equal(DRY_VERSION_NUMBER % 1000, DRY_VERSION_PATCH);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_has_the_headers_version),
        cmocka_unit_test(text_and_number_are_of_the_parts),
    };
    return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
