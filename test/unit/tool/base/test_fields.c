/* SPDX-License-Identifier: Apache-2.0 */
/* A result as JSON, and read back: what is known, what is not, and what does not fit. */
#include "support/cmocka.h"

#include <drystone/replay.h>

#include "base/fields.h"

static bool
read(json_t *root, struct dry_run *back)
{
    struct json_in in = {0};
    struct json_at at = {.value = root};
    fields_read_json(&in, &at, dry_run_get_fields(DRY_RUN_WHOLE), back, NULL);
    return in.status == DRY_OK;
}

static bool
read_back(const struct dry_run *run, struct dry_run *back)
{
    json_t *root = fields_add_json(json_object(), dry_run_get_fields(DRY_RUN_WHOLE), run);
    assert_non_null(root);
    bool is_read = read(root, back);
    json_decref(root);
    return is_read;
}

static void
a_run_is_read_back(void **state)
{
    (void)state;
    struct dry_run run = {.oom = true,
                          .oom_event = 7,
                          .reserved_peak_bytes = UINT64_C(40) << 30,
                          .driver_time_ns = 1500};
    struct dry_run back = {0};
    assert_true(read_back(&run, &back));
    assert_true(back.oom && back.oom_event == 7 && back.driver_time_ns == 1500);
    assert_int_equal(back.reserved_peak_bytes, run.reserved_peak_bytes);
}

/* Event 0 is an event; one that is not known is none. */
static void
an_event_that_is_not_known_stays_unknown(void **state)
{
    (void)state;
    struct dry_run run = {.oom_event = 7}, back = {0};
    assert_true(read_back(&run, &back));
    assert_true(!back.oom && back.oom_event == SIZE_MAX);
}

static void
what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct dry_fields fields = dry_run_get_fields(DRY_RUN_WHOLE);
    struct dry_run run = {0};
    static const char *const wrong[] = {"\"12\"", "-1", "1.5", "true"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *root = fields_add_json(json_object(), fields, &run);
        json_t *value = json_loads(wrong[i], JSON_DECODE_ANY, NULL);
        assert_int_equal(json_object_set_new(root, "reserved_peak_bytes", value), 0);
        assert_false(read(root, &run));
        json_object_del(root, "reserved_peak_bytes");
        assert_false(read(root, &run));
        json_decref(root);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_read_back),
        cmocka_unit_test(an_event_that_is_not_known_stays_unknown),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
