/* SPDX-License-Identifier: Apache-2.0 */
/* Grids of settings: what is read, in which order, and what is refused at which place. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/sweep_grid.h"

/* All combinations after one another, a blank between. */
static void
write_all(const char *text, char *all, size_t capacity)
{
    struct sweep_grid g;
    char why[SWEEP_GRID_WHY_BYTES] = "";
    size_t used = 0;
    all[0] = '\0';
    if (!sweep_grid_parse(text, &g, why))
        fail_msg("%s: %s", text, why);
    for (size_t i = 0; i < g.combination_count; i++) {
        char *conf = sweep_grid_write(&g, i);
        assert_non_null(conf);
        used += (size_t)snprintf(all + used, capacity - used, "%s%s", i ? " " : "", conf);
        free(conf);
    }
    sweep_grid_finish(&g);
}

static void
grids_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *all;
    } good[] = {
        {"a=1", "a:1"},
        {"a=1,2;b=x,y", "a:1,b:x a:1,b:y a:2,b:x a:2,b:y"},
        {" a = 1 , 2 ; ", "a:1 a:2"},
        {"a=default,1;b=default,2", " b:2 a:1 a:1,b:2"},
        {"a=20:512:x2", "a:20 a:40 a:80 a:160 a:320"},
        {"a=20:80:x1.5", "a:20 a:30 a:45 a:67"},
        {"a=1:3:x1.4", "a:1 a:2"},
        {"a=0.1:0.8:x2", "a:0.1 a:0.2 a:0.4 a:0.8"},
        {"a=0:10:5", "a:0 a:5 a:10"},
        {"a=5:5:1", "a:5"},
        {"a=0.5:0.95:0.15", "a:0.50 a:0.65 a:0.80 a:0.95"},
        {"a=default,20:40:x2,50", " a:20 a:40 a:50"},
        {"r=8,[256:1, 512:2,>:4];b=1", "r:8,b:1 r:[256:1,512:2,>:4],b:1"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char all[512];
        write_all(good[i].text, all, sizeof all);
        assert_string_equal(all, good[i].all);
    }
}

static void
others_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "character 1: expected KEY=VALUES"},
        {";", "character 1: expected KEY=VALUES"},
        {"a", "character 1: expected KEY=VALUES"},
        {"a=1;b", "character 5: expected KEY=VALUES"},
        {"a=1;;b=2", "character 5: expected KEY=VALUES"},
        {"a=", "character 3: a has no value here"},
        {"a=1,", "character 5: a has no value here"},
        {"a=1,,2", "character 5: a has no value here"},
        {"a=1;a=2", "character 5: the key a stands at character 1 already"},
        {"a=1,2,1", "character 7: a has the value 1 twice"},
        {"a=20,10:40:x2", "character 6: a has the value 20 twice"},
        {"a=default,default", "character 11: a has the value default twice"},
        {"a=1 2", "character 5: '2' is not expected here"},
        {"a=1/2", "character 4: '/' is not expected here"},
        {"a=1:2", "character 3: a range is FROM:TO:STEP or FROM:TO:xFACTOR"},
        {"a=1:2:3:4", "character 8: ':' is not expected here"},
        {"a=x:2:3", "character 3: 'x' is not a number of a range"},
        {"a=-1:2:1", "character 3: '-1' is not a number of a range"},
        {"a=1:2x:1", "character 5: '2x' is not a number of a range"},
        {"a=1:2:y2", "character 7: 'y2' is not a number of a range"},
        {"a=1:1234567890:1", "character 5: '1234567890' is not a number of a range"},
        {"a=1.1234567:2:1", "character 3: '1.1234567' is not a number of a range"},
        {"a=1.:2:1", "character 3: '1.' is not a number of a range"},
        {"a=9:8:1", "character 3: the range is empty"},
        {"a=1:8:x1", "character 3: the factor of a range is more than 1"},
        {"a=1:8:0", "character 3: the step of a range is more than 0"},
        {"a=0:8:x2", "character 3: a range that multiplies begins above 0"},
        {"a=0.000001:8:x1.5", "character 3: the factor of the range is too small"},
        {"a=0:1000:1", "character 3: with this, a has more than 1000 values"},
        {"a=1:200:1;b=1:51:1", "character 11: with b there are 10200 combinations"},
        {"r=[1:2", "character 3: the list that begins here has no end"},
        {"r=[1;2]", "character 5: ';' has no place in a list"},
        {"r=[[1]", "character 4: '[' has no place in a list"},
        {"r=]", "character 3: r has no value here"},
        {"a=1;b=1;c=1;d=1;e=1;f=1;g=1;h=1;i=1;j=1;k=1;l=1;m=1;n=1;o=1;p=1;q=1",
         "character 65: a grid has at most 16 keys"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sweep_grid g;
        char why[SWEEP_GRID_WHY_BYTES] = "";
        assert_false(sweep_grid_parse(bad[i].text, &g, why));
        if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0)
            fail_msg("%s: \"%s\", expected \"%s\"", bad[i].text, why, bad[i].why);
        sweep_grid_finish(&g);
    }
}

static void
a_grid_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char text[SWEEP_GRID_BYTES_MAX + 2], why[SWEEP_GRID_WHY_BYTES];
    struct sweep_grid g;
    memset(text, 'a', sizeof text);
    memcpy(text + 1, "=", 1);
    text[SWEEP_GRID_BYTES_MAX] = '\0';
    assert_true(sweep_grid_parse(text, &g, why));
    assert_int_equal(g.combination_count, 1);
    sweep_grid_finish(&g);
    text[SWEEP_GRID_BYTES_MAX] = 'a';
    text[SWEEP_GRID_BYTES_MAX + 1] = '\0';
    assert_false(sweep_grid_parse(text, &g, why));
    assert_string_equal(why, "character 2001: a grid has at most 2000 characters");
    sweep_grid_finish(&g);
}

static void
a_value_knows_its_place(void **state)
{
    (void)state;
    struct sweep_grid g;
    char why[SWEEP_GRID_WHY_BYTES];
    assert_true(sweep_grid_parse("a=1,7:9:1;bc=x, y", &g, why));
    assert_int_equal(g.keys[1].at, 11);
    assert_int_equal(sweep_grid_value(&g, 0, 0)->at, 3);
    assert_int_equal(sweep_grid_value(&g, 7, 0)->at, 5);
    assert_int_equal(sweep_grid_value(&g, 6, 1)->at, 14);
    assert_int_equal(sweep_grid_value(&g, 7, 1)->at, 17);
    sweep_grid_finish(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_are_read),
        cmocka_unit_test(others_are_refused_at_their_place),
        cmocka_unit_test(a_grid_that_is_too_long_is_refused),
        cmocka_unit_test(a_value_knows_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
