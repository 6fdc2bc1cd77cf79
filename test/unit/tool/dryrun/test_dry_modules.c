/* SPDX-License-Identifier: Apache-2.0 */
/* The table of modules: equal ones are one row, and hostile paths stay in their columns. */
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "dryrun/dry_report.h"

/* Print the table of `owners` into `text`. */
static void
print(json_t *owners, char *text, size_t capacity)
{
    struct facts_process process = {.json = json_pack("{s:o}", "owners", owners)};
    struct trial trial = {.facts = {.processes = &process, .process_count = 1}};
    const struct dry_report report = {.trial = &trial};
    struct term term;
    FILE *out = fmemopen(text, capacity, "w");
    assert_non_null(out);
    text[0] = '\0';
    term_init(&term, out);
    assert_true(dry_report_print_modules(&report, &term));
    fclose(out);
    json_decref(process.json);
}

static json_t *
owner(const char *path, int weights, int made)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i}", "module", path, "weights", weights,
                     "gradients", 0, "optimizer", 0, "made", made);
}

static void
modules_that_differ_in_numbers_are_one_row(void **state)
{
    (void)state;
    char text[4000];
    json_t *owners = json_array();
    for (int i = 0; i < 12; i++) {
        char path[40];
        snprintf(path, sizeof path, "layers.%d.mlp", i);
        json_array_append_new(owners, owner(path, 1 << 20, i ? 0 : 1 << 21));
    }
    json_array_append_new(owners, owner("conv1.2", 1 << 24, 0));
    print(owners, text, sizeof text);
    const char *first = strstr(text, "16.00 MiB  16.00 MiB          -          -");
    const char *second = strstr(text, "14.00 MiB  12.00 MiB          -          -");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    assert_non_null(strstr(first, "2.00 MiB  layers.*.mlp (12)\n"));
    assert_non_null(strstr(first, "-  conv1.2\n"));
}

static void
long_and_empty_paths_are_cut(void **state)
{
    (void)state;
    char text[60000], path[1000];
    json_t *owners = json_array();
    memset(path, '7', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    for (size_t i = 0; i < sizeof path - 1; i += 3)
        path[i] = i % 2 ? '.' : 'x';
    json_array_append_new(owners, owner(path, 1, 1));
    json_array_append_new(owners, owner("", 2, 1));
    json_array_append_new(owners, owner("..1..", 3, 1));
    json_array_append_new(owners, json_integer(3));
    for (int i = 0; i < 600; i++) {
        snprintf(path, sizeof path, "m%d", i);
        json_array_append_new(owners, owner(path, 1, 0));
    }
    print(owners, text, sizeof text);
    assert_non_null(strstr(text, "..1..\n"));
    print(json_null(), text, sizeof text);
    assert_string_equal(text, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_that_differ_in_numbers_are_one_row),
        cmocka_unit_test(long_and_empty_paths_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
