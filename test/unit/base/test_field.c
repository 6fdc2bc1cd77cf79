/* SPDX-License-Identifier: Apache-2.0 */

/* Tables of fields: every type and reason to be known; the tables of a replay are sound. */
#include "support/cmocka.h"

#include <math.h>
#include <string.h>

#include <drystone/diff.h>
#include <drystone/live.h>
#include <drystone/replay.h>
#include <drystone/state.h>
#include <drystone/steps.h>

struct thing {
    bool is_on, has_count;
    uint64_t bytes;
    int64_t count;
    size_t event;
    const char *name;
    char text[8];
    uint32_t share, line;
    uint64_t limit;
    double part, seconds;
    enum { RED, GREEN } colour;
};

static const char *
name_colour(unsigned i)
{
    return i == RED ? "red" : "green";
}

#define OF(member) offsetof(struct thing, member)
#define THING(...) DRY_FIELD_OF(struct thing, __VA_ARGS__)

static const struct dry_field list[] = {
    THING("is_on", BOOL, NONE, is_on, DRY_KNOWN_ALWAYS, 0, false, ""),
    THING("bytes", U64, BYTES, bytes, DRY_KNOWN_IF_ABOVE_0, OF(bytes), true, ""),
    THING("count", I64, COUNT, count, DRY_KNOWN_IF, OF(has_count), true, ""),
    THING("event", SIZE, EVENT, event, DRY_KNOWN_UNLESS, OF(is_on), false, ""),
    THING("name", TEXT, NONE, name, DRY_KNOWN_ALWAYS, 0, false, ""),
    THING("text", CHARS, NONE, text, DRY_KNOWN_ALWAYS, 0, false, ""),
    THING("share", U32, PERCENT, share, DRY_KNOWN_ALWAYS, 0, false, ""),
    THING("line", U32, COUNT, line, DRY_KNOWN_IF_FILLED, OF(name), false, ""),
    DRY_WORD_OF(struct thing, "colour", colour, name_colour, 2, DRY_KNOWN_ALWAYS, 0,
                false, ""),
    THING("part", REAL, SHARE, part, DRY_KNOWN_ALWAYS, 0, false, ""),
    THING("limit", U64, COUNT, limit, DRY_KNOWN_UNLESS_MAX, OF(limit), false, ""),
    THING("seconds", REAL, SECONDS, seconds, DRY_KNOWN_ALWAYS, 0, false, ""),
};
static const struct dry_fields fields = {list, sizeof list / sizeof *list};

static void
what_is_not_known_has_no_value(void **state)
{
    (void)state;
    const struct thing empty = {.is_on = true, .event = 7},
                       none = {.event = SIZE_MAX, .limit = UINT64_MAX, .seconds = -1};
    struct dry_field_value value;
    assert_true(dry_field_get(&list[0], &empty, &value));
    for (size_t i = 1; i < 5; i++)
        assert_false(dry_field_get(&list[i], &empty, &value));
    assert_false(dry_field_get(dry_fields_find(&fields, "event"), &none, &value));
    assert_false(dry_field_get(&list[7], &none, &value));
    assert_false(dry_field_get(&list[10], &none, &value));
    assert_false(dry_field_get(&list[11], &none, &value));
    assert_false(
        dry_field_get(&list[11], &(struct thing){.seconds = (double)INFINITY}, &value));
    assert_false(dry_field_get(&list[7], &(struct thing){.name = ""}, &value));
}

static void
a_value_has_its_type(void **state)
{
    (void)state;
    const struct thing full = {.has_count = true,
                               .bytes = UINT64_MAX,
                               .count = INT64_MAX,
                               .event = 3,
                               .name = "a",
                               .text = "b",
                               .line = UINT32_MAX,
                               .colour = GREEN,
                               .part = 0.5};
    const uint64_t numbers[] = {0, UINT64_MAX, INT64_MAX, 3};
    struct dry_field_value value;
    for (size_t i = 0; i < 4; i++) {
        assert_true(dry_field_get(&list[i], &full, &value));
        assert_int_equal(value.type, i == 0 ? DRY_FIELD_BOOL : DRY_FIELD_U64);
        assert_int_equal(value.number, numbers[i]);
    }
    for (size_t i = 4; i < 6; i++) {
        assert_true(dry_field_get(&list[i], &full, &value));
        assert_int_equal(value.type, DRY_FIELD_TEXT);
        assert_string_equal(value.text, i == 4 ? "a" : "b");
    }
    assert_true(dry_field_get(&list[7], &full, &value) && value.type == DRY_FIELD_U64);
    assert_int_equal(value.number, UINT32_MAX);
    assert_true(dry_field_get(&list[8], &full, &value) && value.type == DRY_FIELD_TEXT);
    assert_string_equal(value.text, "green");
    assert_true(dry_field_get(&list[9], &full, &value));
    assert_true(value.type == DRY_FIELD_REAL && value.real == 0.5);
    assert_true(dry_field_get(&list[10], &full, &value) &&
                dry_field_get(&list[11], &full, &value));
    assert_null(dry_fields_find(&fields, "byte"));
}

static void
what_does_not_fit_is_not_set(void **state)
{
    (void)state;
    struct thing thing = {0};
    const struct thing before = thing;
    assert_false(dry_field_set(&list[0], &thing, 2));
    assert_false(dry_field_set(&list[2], &thing, (uint64_t)INT64_MAX + 1));
    assert_false(dry_field_set(&list[4], &thing, 1));
    assert_false(dry_field_set(&list[5], &thing, 1));
    assert_false(dry_field_set(&list[6], &thing, 101));
    assert_false(dry_field_set(&list[7], &thing, (uint64_t)UINT32_MAX + 1));
    assert_false(dry_field_set(&list[8], &thing, 2));
    assert_false(dry_field_set(&list[9], &thing, 1));
    assert_memory_equal(&thing, &before, sizeof thing);
    assert_true(dry_field_set(&list[0], &thing, 1));
    assert_true(dry_field_set(&list[1], &thing, UINT64_MAX));
    assert_true(dry_field_set(&list[2], &thing, 5));
    assert_true(dry_field_set(&list[3], &thing, 6));
    assert_true(dry_field_set(&list[6], &thing, 100) &&
                dry_field_set(&list[8], &thing, GREEN));
    assert_true(thing.has_count && thing.share == 100 && thing.colour == GREEN);
    assert_false(dry_field_set(&list[9], &thing, 1));
    assert_true(thing.is_on && thing.bytes == UINT64_MAX && thing.count == 5 &&
                thing.event == 6);
}

static void
check_table(struct dry_fields table, size_t bytes)
{
    for (size_t i = 0; i < table.count; i++) {
        const struct dry_field *f = &table.list[i];
        assert_ptr_equal(dry_fields_find(&table, f->key), f); /* no key twice */
        assert_true(f->offset < bytes && f->known_offset < bytes);
        assert_true(f->meaning[0] != '\0' && f->meaning[strlen(f->meaning) - 1] != '.');
        bool is_bytes = strlen(f->key) >= 5 && strstr(f->key, "bytes") != NULL;
        assert_int_equal(is_bytes, f->unit == DRY_UNIT_BYTES);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(table.list[k].offset, f->offset);
    }
}

static void
the_tables_of_the_library_are_sound(void **state)
{
    (void)state;
    for (int part = DRY_RUN_WHOLE; part <= DRY_RUN_ORDER; part++)
        check_table(dry_run_get_fields((enum dry_run_part)part), sizeof(struct dry_run));
    check_table(dry_replay_check_get_fields(), sizeof(struct dry_replay_check));
    check_table(dry_replay_recorded_get_fields(), sizeof(struct dry_replay_recorded));
    check_table(dry_state_get_fields(), sizeof(struct dry_state));
    check_table(dry_step_get_fields(DRY_STEP_WHOLE), sizeof(struct dry_step));
    check_table(dry_growth_get_fields(), sizeof(struct dry_growth));
    check_table(dry_diff_get_fields(DRY_DIFF_CELL), sizeof(struct dry_diff_cell));
    check_table(dry_diff_get_fields(DRY_DIFF_ROW), sizeof(struct dry_diff_row));
    check_table(dry_diff_get_fields(DRY_DIFF_FACT), sizeof(struct dry_diff_fact));
    check_table(dry_live_get_fields(DRY_LIVE_FIGURES), sizeof(struct dry_live_figures));
    check_table(dry_live_get_fields(DRY_LIVE_DETAIL), sizeof(struct dry_live_detail));
    check_table(dry_live_get_fields(DRY_LIVE_LANE), sizeof(struct dry_live_lane));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_has_no_value),
        cmocka_unit_test(a_value_has_its_type),
        cmocka_unit_test(what_does_not_fit_is_not_set),
        cmocka_unit_test(the_tables_of_the_library_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
