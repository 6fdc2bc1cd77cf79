/* SPDX-License-Identifier: Apache-2.0 */
/* Values in a program's words: all combinations, and what is refused. */
#include "support/cmocka.h"

#include <string.h>

#include "base/command.h"
#include "dryrun/vary.h"

static struct option_list
list_of(const char **values, size_t count)
{
    return (struct option_list){.values = values, .count = count};
}

static void
every_combination_fills_every_place(void **state)
{
    (void)state;
    const char *specs[] = {"A=1,22", "LONG_b=x,y,z"};
    const char *arguments[] = {"run", "--{A}{A}", "{LONG_b}-{A}", "{C}{}"};
    struct option_list program = list_of(arguments, 4), given = list_of(specs, 2), filled;
    struct vary vary;
    assert_int_equal(vary_read(&vary, "dry-run", &given, &program), EXIT_FINE);
    assert_int_equal(vary.combination_count, 6);
    static const char *const expected[6][2] = {{"--11", "x-1"},    {"--11", "y-1"},
                                               {"--11", "z-1"},    {"--2222", "x-22"},
                                               {"--2222", "y-22"}, {"--2222", "z-22"}};
    for (size_t i = 0; i < 6; i++) {
        assert_true(vary_fill(&vary, i, &program, &filled));
        assert_int_equal(filled.count, 4);
        assert_string_equal(filled.values[0], "run");
        assert_string_equal(filled.values[1], expected[i][0]);
        assert_string_equal(filled.values[2], expected[i][1]);
        assert_string_equal(filled.values[3], "{C}{}");
        vary_free(&filled);
    }
    char label[VARY_LABEL_BYTES];
    vary_label(&vary, 4, label);
    assert_string_equal(label, "A=22 LONG_b=y");
    vary_finish(&vary);
}

static void
lists_of_a_length_move_together(void **state)
{
    (void)state;
    const char *specs[] = {"A=1,2,3", "B=x,y,z", "C=7,8,9"};
    const char *arguments[] = {"{A}{B}{C}"};
    struct option_list program = list_of(arguments, 1), given = list_of(specs, 3);
    struct vary vary;
    assert_int_equal(vary_read(&vary, "fit", &given, &program), EXIT_FINE);
    for (size_t i = 0; i < 3; i++) {
        size_t all = vary_together(&vary, i);
        assert_int_equal(vary_value(&vary, all, 0)[0], "123"[i]);
        assert_int_equal(vary_value(&vary, all, 1)[0], "xyz"[i]);
        assert_int_equal(vary_value(&vary, all, 2)[0], "789"[i]);
    }
    vary_finish(&vary);
}

static void
wrong_values_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",     "A",    "=1",    "A=",        "A=1,",
                                        "A=,1", "1A=1", "A B=1", "MISSING=1", "A-B=2"};
    const char *arguments[] = {"{A}", "{A B}", "{1A}", "{A-B}"};
    struct option_list program = list_of(arguments, 4);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct option_list given = list_of((const char *[]){wrong[i]}, 1);
        struct vary vary;
        assert_int_equal(vary_read(&vary, "dry-run", &given, &program), EXIT_USAGE);
        vary_finish(&vary);
    }
    struct option_list twice = list_of((const char *[]){"A=1", "A=2"}, 2);
    struct vary vary;
    assert_int_equal(vary_read(&vary, "dry-run", &twice, &program), EXIT_USAGE);
    vary_finish(&vary);
}

static void
too_many_combinations_are_refused(void **state)
{
    (void)state;
    char text[4 + 2 * 40] = "A=1";
    for (size_t i = 0; i < 39; i++)
        strcat(text, ",1");
    char other[sizeof text];
    memcpy(other, text, sizeof text);
    other[0] = 'B';
    struct option_list program = list_of((const char *[]){"{A}{B}"}, 1);
    struct option_list given = list_of((const char *[]){text, other}, 2);
    struct vary vary;
    assert_int_equal(vary_read(&vary, "dry-run", &given, &program), EXIT_USAGE);
    vary_finish(&vary);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_fills_every_place),
        cmocka_unit_test(lists_of_a_length_move_together),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(too_many_combinations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
