/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of pipelines: what is read, what is refused and why, and who holds. */
#include "support/cmocka.h"

#include <string.h>

#include "gate/condition.h"

#define MIB (UINT64_C(1) << 20)

struct object {
    const char *name;
    uint64_t reserved_peak, reserved, ooms, time_ns;
};
#define FIELD(key, kind, unit, member)                                                   \
    DRY_FIELD_OF(struct object, key, kind, unit, member, DRY_KNOWN_ALWAYS, 0, true, "")
static const struct dry_field first[] = {
    FIELD("name", TEXT, NONE, name),
    FIELD("reserved_peak_bytes", U64, BYTES, reserved_peak),
};
static const struct dry_field second[] = {
    FIELD("reserved_bytes", U64, BYTES, reserved),
    FIELD("ooms", U64, COUNT, ooms),
    FIELD("time_us", U64, NANOSECONDS, time_ns),
};
static const struct figures figures = {{{first, 2}, {second, 3}}, 2};
#define PEAK                                                                             \
    {                                                                                    \
        0, &first[1]                                                                     \
    }
#define RESERVED                                                                         \
    {                                                                                    \
        1, &second[0]                                                                    \
    }
#define OOMS                                                                             \
    {                                                                                    \
        1, &second[1]                                                                    \
    }

static void
conditions_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct condition condition;
    } good[] = {
        {"reserved_peak > 70GiB",
         {.figure = PEAK, .relation = RELATION_ABOVE, .bytes = 70 * 1024 * MIB}},
        {"reserved_peak_bytes > 70GiB", {.figure = PEAK, .bytes = 70 * 1024 * MIB}},
        {"reserved>=1B",
         {.figure = RESERVED, .relation = RELATION_ABOVE_OR_EQUAL, .bytes = 1}},
        {"  ooms\t!= 0 ", {.figure = OOMS, .relation = RELATION_UNEQUAL}},
        {"ooms == 12", {.figure = OOMS, .relation = RELATION_EQUAL, .bytes = 12}},
        {"ooms < baseline",
         {.figure = OOMS, .relation = RELATION_BELOW, .is_of_baseline = true}},
        {"reserved_peak <= baseline + 512 MiB",
         {.figure = PEAK,
          .relation = RELATION_BELOW_OR_EQUAL,
          .is_of_baseline = true,
          .bytes = 512 * MIB}},
        {"reserved_peak > baseline -2.5 %",
         {.figure = PEAK,
          .is_of_baseline = true,
          .is_less = true,
          .percent_hundredths = 250}},
        {"reserved_peak > baseline + 1.019%",
         {.figure = PEAK, .is_of_baseline = true, .percent_hundredths = 101}},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct condition c;
        const struct condition *e = &good[i].condition;
        char why[CONDITION_WHY_BYTES];
        assert_true(condition_parse(good[i].text, &figures, &c, why));
        assert_string_equal(why, "");
        assert_ptr_equal(c.figure.field, e->figure.field);
        assert_int_equal(c.figure.table, e->figure.table);
        assert_int_equal(c.relation, e->relation);
        assert_true(c.is_of_baseline == e->is_of_baseline && c.is_less == e->is_less);
        assert_true(c.bytes == e->bytes);
        assert_int_equal(c.percent_hundredths, e->percent_hundredths);
    }
}

static void
others_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "it begins with a figure: one of reserved_peak, reserved, ooms, time_us"},
        {"> 1", "it begins with a figure"},
        {"reservd > 1", "there is no figure reservd; did you mean reserved?"},
        {"flops > 1", "there is no figure flops; expected one of reserved_peak, "
                      "reserved, ooms, time_us"},
        {"reserved_peak", "behind the figure stands one of"},
        {"reserved_peak = 1", "behind the figure stands one of"},
        {"reserved_peak >", "'' is not a size"},
        {"reserved_peak > -1", "'-1' is not a size"},
        {"reserved_peak > 1GiB and 2", "'1GiB and 2' is not a size"},
        {"reserved_peak > many", "'many' is neither a number nor baseline"},
        {"reserved_peak > baseline 2", "behind baseline stands nothing, + or -"},
        {"reserved_peak > baseline + ", "'' is not a size"},
        {"reserved_peak > 2%", "a share is one of a baseline"},
        {"reserved_peak > baseline + x%", "a share is a number"},
        {"reserved_peak > baseline + 1 2%", "'1 2%' is not a share"},
        {"reserved_peak > baseline + 9999999%", "a share is a number from 0 to"},
        {"ooms > 1KiB", "'1KiB' is not a whole number"},
        {"ooms > 1.5", "'1.5' is not a whole number"},
        {"ooms > 9999999999999999999", "is not a whole number of at most 18 digits"},
        {"ooms > \x1b[1m", "'?[1m' is not a whole number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct condition c;
        char why[CONDITION_WHY_BYTES];
        assert_false(condition_parse(bad[i].text, &figures, &c, why));
        if (!strstr(why, bad[i].why))
            fail_msg("%s: %s", bad[i].text, why);
    }
}

static void
a_long_text_is_refused(void **state)
{
    (void)state;
    char text[2048], why[CONDITION_WHY_BYTES];
    struct condition c;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(condition_parse(text, &figures, &c, why));
    memcpy(text, "ooms > 1", 8);
    memset(text + 8, '1', sizeof text - 9);
    assert_false(condition_parse(text, &figures, &c, why));
    assert_non_null(strstr(why, "too long"));
}

static bool
holds(const char *text, uint64_t value, uint64_t baseline)
{
    struct condition c;
    char why[CONDITION_WHY_BYTES];
    assert_true(condition_parse(text, &figures, &c, why));
    return condition_holds(&c, value, baseline);
}

static void
bounds_are_exact(void **state)
{
    (void)state;
    assert_true(holds("reserved_peak > 1KiB", 1025, 0));
    assert_false(holds("reserved_peak > 1KiB", 1024, 0));
    assert_true(holds("reserved_peak >= 1KiB", 1024, 0));
    assert_true(holds("reserved_peak < 1KiB", 1023, 0));
    assert_false(holds("reserved_peak < 1KiB", 1024, 0));
    assert_true(holds("reserved_peak <= 1KiB", 1024, 0));
    assert_true(holds("ooms == 3", 3, 0) && !holds("ooms != 3", 3, 0));
    assert_false(holds("reserved_peak > baseline + 2%", 1020, 1000));
    assert_true(holds("reserved_peak > baseline + 2%", 1021, 1000));
    assert_true(holds("reserved_peak >= baseline - 2%", 980, 1000));
    assert_false(holds("reserved_peak >= baseline - 2%", 979, 1000));
    assert_false(holds("reserved_peak > baseline + 1KiB", 2024, 1000));
    assert_true(holds("reserved_peak > baseline + 1KiB", 2025, 1000));
}

static void
sums_beyond_64_bits_stop(void **state)
{
    (void)state;
    assert_false(holds("reserved_peak > baseline + 200%", UINT64_MAX, UINT64_MAX / 2));
    assert_false(holds("reserved_peak > baseline + 8EiB", UINT64_MAX, UINT64_MAX - 1));
    assert_true(holds("reserved_peak >= baseline - 300%", 0, UINT64_MAX));
    assert_true(holds("reserved_peak > baseline - 8EiB", 1, 1000));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_read),
        cmocka_unit_test(others_are_refused_with_a_reason),
        cmocka_unit_test(a_long_text_is_refused),
        cmocka_unit_test(bounds_are_exact),
        cmocka_unit_test(sums_beyond_64_bits_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
