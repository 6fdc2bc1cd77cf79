/* SPDX-License-Identifier: Apache-2.0 */
/* A file becomes a row, and a row that is none is refused. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_row.h"

static char *
path_of(const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", getenv("DRY_TEST_DATA"), name);
    return path;
}

static void
a_file_becomes_a_row(void **state)
{
    (void)state;
    char path[512];
    struct fleet_row row;
    struct dry_error err;
    char *text = fleet_row_make(path_of("two-failures.pickle", path), UINT64_C(1) << 30);
    assert_non_null(text);
    assert_true(strlen(text) < 16384);
    assert_int_equal(fleet_row_read(text, strlen(text), &row, &err), DRY_OK);
    assert_int_equal(row.state, FLEET_ROW_FINE);
    assert_true(row.oom.is_there && row.oom_count == 2);
    assert_true(row.line_count > 0 && row.at.active > 0 && row.hash != 0);
    uint64_t held = row.rest_bytes;
    for (size_t i = 0; i < row.line_count; i++)
        held += row.lines[i].bytes;
    assert_true(held == row.at.active);
    fleet_row_finish(&row);
    free(text);
}

static void
requests_alone_are_simulated(void **state)
{
    (void)state;
    char path[512];
    struct fleet_row row;
    struct dry_error err;
    char *text = fleet_row_make(path_of("small.trace", path), UINT64_C(1) << 30);
    assert_non_null(text);
    assert_int_equal(fleet_row_read(text, strlen(text), &row, &err), DRY_OK);
    assert_true(row.state == FLEET_ROW_FINE && row.is_simulated && !row.is_exact);
    fleet_row_finish(&row);
    free(text);
}

static void
what_is_wrong_stands_in_the_row(void **state)
{
    (void)state;
    static const char *const files[] = {"evil.pickle", "not-there.pickle", "chain.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        struct fleet_row row;
        struct dry_error err;
        char *text = fleet_row_make(path_of(files[i], path), UINT64_C(1) << 30);
        assert_non_null(text);
        assert_int_equal(fleet_row_read(text, strlen(text), &row, &err), DRY_OK);
        assert_int_equal(row.state, FLEET_ROW_UNREADABLE);
        assert_true(row.why[0] != '\0');
        fleet_row_finish(&row);
        free(text);
    }
}

static void
too_little_memory_is_said(void **state)
{
    (void)state;
    char path[512];
    char *text = fleet_row_make(path_of("two-failures.pickle", path), 4096);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"unreadable\""));
    free(text);
}

static void
what_is_no_row_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "0",
        "[]",
        "{}",
        "nonsense",
        "{\"schema\":\"drystone.fleet.row/2\"}",
        "{\"schema\":\"drystone.fleet.row/3\",\"state\":\"fine\",\"why\":\"\","
        "\"file_bytes\":1,\"hash\":\"0\"}",
        "{\"schema\":\"drystone.fleet.row/2\",\"state\":\"fine\",\"why\":\"\","
        "\"file_bytes\":1,\"hash\":\"0\"}",
        "{\"schema\":\"drystone.fleet.row/2\",\"state\":\"unreadable\",\"why\":\"\","
        "\"file_bytes\":-1,\"hash\":\"0\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fleet_row row;
        struct dry_error err;
        assert_int_equal(fleet_row_read(texts[i], strlen(texts[i]), &row, &err),
                         DRY_ERR_FORMAT);
        assert_true(err.text[0] != '\0');
        fleet_row_finish(&row);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_becomes_a_row),
        cmocka_unit_test(requests_alone_are_simulated),
        cmocka_unit_test(what_is_wrong_stands_in_the_row),
        cmocka_unit_test(too_little_memory_is_said),
        cmocka_unit_test(what_is_no_row_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
