/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <errno.h>
#include <string.h>

#include "base/fail.h"

static void
status_text_and_offset_are_set(void **state)
{
    (void)state;
    struct dry_error err;
    memset(&err, 0x5a, sizeof err);
    assert_int_equal(dryi_fail_at(&err, DRY_ERR_FORMAT, 1034, "opcode %u", 7u),
                     DRY_ERR_FORMAT);
    assert_int_equal(err.status, DRY_ERR_FORMAT);
    assert_true(err.offset == 1034);
    assert_int_equal(err.os_errno, 0);
    assert_string_equal(err.text, "opcode 7");
    assert_int_equal(dryi_fail(&err, DRY_ERR_LIMIT, "x"), DRY_ERR_LIMIT);
    assert_true(err.offset == DRY_NO_OFFSET);
    assert_int_equal(dryi_fail_memory(&err, "events"), DRY_ERR_MEMORY);
    assert_string_equal(err.text, "no memory for events");
    assert_int_equal(dryi_fail(NULL, DRY_ERR_LIMIT, "nobody listens"), DRY_ERR_LIMIT);
}

static void
errno_is_kept_for_system_failures_only(void **state)
{
    (void)state;
    struct dry_error err;
    errno = ENOENT;
    (void)dryi_fail(&err, DRY_ERR_SYSTEM, "open");
    assert_int_equal(err.os_errno, ENOENT);
    (void)dryi_fail(&err, DRY_ERR_FORMAT, "open");
    assert_int_equal(err.os_errno, 0);
}

static void
hostile_text_is_made_printable_and_cut(void **state)
{
    (void)state;
    struct dry_error err;
    (void)dryi_fail(&err, DRY_ERR_FORMAT, "a%sb", "\x1b[31m\n\x7f\xff");
    assert_string_equal(err.text, "a?[31m???b");
    char longest[1000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    (void)dryi_fail(&err, DRY_ERR_FORMAT, "%s", longest);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void
every_status_has_a_name_and_a_text(void **state)
{
    (void)state;
    static const struct {
        enum dry_status status;
        const char *name, *text;
    } names[] = {
        {DRY_OK, "DRY_OK", "nothing is wrong"},
        {DRY_END, "DRY_END", "there is no more"},
        {DRY_ERR_ARGUMENT, "DRY_ERR_ARGUMENT",
         "the value or address has no meaning here"},
        {DRY_ERR_MEMORY, "DRY_ERR_MEMORY", "the host has no memory for it"},
        {DRY_ERR_FORMAT, "DRY_ERR_FORMAT", "the input is not what it claims to be"},
        {DRY_ERR_LIMIT, "DRY_ERR_LIMIT", "it is larger than allowed"},
        {DRY_ERR_NO_SPACE, "DRY_ERR_NO_SPACE", "there is no room"},
        {DRY_ERR_SYSTEM, "DRY_ERR_SYSTEM", "the operating system or the driver refuses"},
        {DRY_ERR_UNSUPPORTED, "DRY_ERR_UNSUPPORTED",
         "this device, driver or process cannot do it"},
        {DRY_ERR_CANCELLED, "DRY_ERR_CANCELLED", "the program asked to stop"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_string_equal(dry_status_name(names[i].status), names[i].name);
        assert_string_equal(dry_status_text(names[i].status), names[i].text);
    }
    int unknown = -1000;
    assert_string_equal(dry_status_text((enum dry_status)unknown),
                        "the reason is not known");
    assert_string_equal(dry_status_name((enum dry_status)unknown), "unknown status");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_text_and_offset_are_set),
        cmocka_unit_test(errno_is_kept_for_system_failures_only),
        cmocka_unit_test(hostile_text_is_made_printable_and_cut),
        cmocka_unit_test(every_status_has_a_name_and_a_text),
    };
    return cmocka_run_group_tests_name("fail", tests, NULL, NULL);
}
