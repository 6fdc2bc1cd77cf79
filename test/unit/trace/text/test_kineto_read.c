/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/failing_memory.h"

static enum dry_status
read_json(const char *json, size_t step, const struct dry_memory *memory,
          struct dry_trace **trace, struct dry_error *err)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, json, strlen(json));
    from.step = step;
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory = memory;
    return dry_trace_read(&source, &options, trace, err);
}

#define PROFILE(events)                                                                  \
    " {\n\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}],\n"                   \
    "\"traceEvents\": [" events "], \"name\": \"[memory]\"}\n"
/* A memory event, with its time, address, bytes, total, device and kind of device. */
#define MEMORY_OF(ts, addr, bytes, total, device, type)                                  \
    "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", "           \
    "\"ts\": " ts ", \"args\": {\"Total Reserved\": 4096, \"Total Allocated\": " total   \
    ", \"Bytes\": " bytes ", \"Device Id\": " device ", \"Device Type\": " type          \
    ", \"Addr\": " addr ", \"finished\": false}},\n"
#define MEMORY(ts, addr, bytes, total) MEMORY_OF(ts, addr, bytes, total, "0", "1")
#define STEP(name, category)                                                             \
    "{\"ph\": \"X\", \"cat\": \"" category "\", \"name\": \"" name                       \
    "\", \"ts\": 5.5, \"dur\": 2.25, \"args\": {\"name\": \"[memory]\", \"ts\": {}}},\n"
#define OTHER                                                                            \
    "{\"ph\": \"X\", \"name\": \"aten::\\\"mm\\\\\", \"ts\": 1e5, \"args\": {\"Call "    \
    "stack\": \"[memory]\", \"Input Dims\": [[2, 3], []], \"Bytes\": null}},\n"
#define LAST "{\"ph\": \"f\"}"

struct expected {
    enum dry_action action;
    uint64_t addr, size;
    int64_t time_us;
};

static void
check_events(const char *json, const struct expected *expected, size_t count,
             size_t device_count)
{
    for (size_t step = 0; step < 3; step++) {
        struct dry_trace *trace;
        struct dry_error err;
        if (read_json(json, step, NULL, &trace, &err) != DRY_OK)
            fail_msg("%s", err.text);
        const struct dry_trace_view *v = dry_trace_get_view(trace);
        assert_int_equal(v->kind, DRY_TRACE_KINETO);
        assert_false(v->has_addresses);
        assert_int_equal(v->reserved_peak_bytes, 4096);
        assert_int_equal(v->event_count, count);
        assert_int_equal(v->device_count, device_count);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(v->action[i], expected[i].action);
            assert_int_equal(v->addr[i], expected[i].addr);
            assert_int_equal(v->size[i], expected[i].size);
            assert_int_equal(v->time_us[i], expected[i].time_us);
        }
        dry_trace_destroy(trace);
    }
}

#define CHECK_EVENTS(json, expected, devices)                                            \
    check_events(json, expected, sizeof(expected) / sizeof *(expected), devices)

/* The free of 64 is of an older allocation; 36 more bytes were allocated before the window. */
static void
memory_events_are_told_by_time(void **state)
{
    (void)state;
    static const struct expected expected[] = {
        {DRY_ACTION_LIVE, 9, 64, 3},
        {DRY_ACTION_LIVE, UINT64_MAX, 36, 3},
        {DRY_ACTION_ALLOC, 8, 512, 3},
        {DRY_ACTION_FREE_REQUESTED, 9, 64, 3},
        {DRY_ACTION_FREE_REQUESTED, 8, 512, 4},
        {DRY_ACTION_ALLOC, 8, 16, 5},
    };
    CHECK_EVENTS(
        PROFILE(MEMORY("4", "8", "-512", "36") OTHER MEMORY("3.002", "9", "-64", "548")
                    MEMORY_OF("2", "9", "77", "77", "-1", "0") MEMORY(
                        "3.0019", "8", "512", "612") MEMORY("5", "8", "16", "52") LAST),
        expected, 1);
}

static void
what_contradicts_itself_is_mended(void **state)
{
    (void)state;
    static const struct expected expected[] = {
        {DRY_ACTION_ALLOC, 8, 1, 1}, {DRY_ACTION_FREE_REQUESTED, 8, 1, 2},
        {DRY_ACTION_ALLOC, 8, 2, 2}, {DRY_ACTION_FREE_REQUESTED, 8, 2, 3},
        {DRY_ACTION_OOM, 0, 70, 5},
    };
    CHECK_EVENTS(
        PROFILE(MEMORY("1", "8", "1", "1") MEMORY("2", "8", "2", "2")
                    MEMORY("3", "8", "-2", "2") MEMORY(
                        "4", "8", "-2",
                        "2") "{\"args\": {\"Bytes\": 70, \"Device Type\": 1, \"Device "
                             "Id\": 0, "
                             "\"Total Allocated\": 0, \"Total Reserved\": 5}, \"ts\": 5, "
                             "\"name\": \"[OutOfMemory]\"},\n" LAST),
        expected, 1);
}

static void
devices_and_steps_are_told_apart(void **state)
{
    (void)state;
    static const char json[] = PROFILE(
        MEMORY_OF("2", "8", "1", "1", "63", "1") STEP("ProfilerStep#7", "user_annotation")
            STEP("ProfilerStep#7", "gpu_user_annotation")
                STEP("Optimizer", "user_annotation")
                    MEMORY_OF("1", "8", "2", "2", "2", "20") LAST);
    static const struct expected expected[] = {{DRY_ACTION_ALLOC, 8, 2, 1},
                                               {DRY_ACTION_ALLOC, 8, 1, 2}};
    CHECK_EVENTS(json, expected, 2);
    struct dry_trace *trace;
    assert_int_equal(read_json(json, 0, NULL, &trace, NULL), DRY_OK);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    assert_int_equal(v->devices[0].device, 2);
    assert_int_equal(v->devices[1].device, 63);
    assert_int_equal(v->annotation_count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct dry_trace_annotation *a = &v->annotations[i];
        assert_int_equal(a->device, i < 2 ? 2 : 63);
        assert_int_equal(a->time_us, i % 2 ? 7 : 5);
        assert_string_equal(dry_trace_string(trace, a->name, NULL), "ProfilerStep#7");
        assert_string_equal(dry_trace_string(trace, a->stage, NULL),
                            i % 2 ? "END" : "START");
    }
    dry_trace_destroy(trace);
}

struct refusal {
    const char *json, *complaint;
    uint64_t offset;
    enum dry_status status;
};

static const struct refusal refusals[] = {
    {"{\"segments\": []}", "this is JSON, expected", 0, DRY_ERR_FORMAT},
    {"[\"traceEvents\"]", "this is JSON, expected", 0, DRY_ERR_FORMAT},
    {"{\"traceEvents\": []}", "JSON: a profile without memory events", 18,
     DRY_ERR_FORMAT},
    {"{\"traceEvents\"", "JSON: it ends too early", 14, DRY_ERR_FORMAT},
    {"{\"traceEvents\": [{\"na", "JSON: it ends in a string", 18, DRY_ERR_FORMAT},
    {"{\"traceEvents\": [}", "JSON: a bracket that closes no other", 17, DRY_ERR_FORMAT},
    {"{\"traceEvents\": [;", "JSON: a byte that begins no value", 17, DRY_ERR_FORMAT},
    {PROFILE(MEMORY_OF("1", "8", "1", "1", "-1", "0") LAST),
     "JSON: a profile whose memory events are all of the CPU", 0, DRY_ERR_FORMAT},
    {PROFILE(MEMORY_OF("1", "8", "1", "1", "64", "1") LAST),
     "JSON: a memory event of a device beyond 63", 0, DRY_ERR_FORMAT},
    {PROFILE(MEMORY("1", "8", "1.5e3", "1") LAST), "JSON: a memory event without one", 0,
     DRY_ERR_FORMAT},
    {PROFILE(MEMORY("1", "8", "9223372036854775808", "1") LAST),
     "JSON: a memory event without one", 0, DRY_ERR_FORMAT},
    {PROFILE(MEMORY("-1", "8", "1", "1") LAST), "JSON: a memory event without one", 0,
     DRY_ERR_FORMAT},
    {PROFILE(MEMORY("\"1\"", "8", "1", "1") LAST), "JSON: a memory event without one", 0,
     DRY_ERR_FORMAT},
    {PROFILE("{\"name\": \"[memory]\"}," LAST), "JSON: a memory event without one", 0,
     DRY_ERR_FORMAT},
    {"{\"traceEvents\": "
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
     "[",
     "JSON: nested deeper than 64", 79, DRY_ERR_LIMIT},
};

static void
what_is_wrong_is_said_with_its_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        struct dry_trace *trace = NULL;
        struct dry_error err;
        enum dry_status status = read_json(r->json, i % 3, NULL, &trace, &err);
        if (status != r->status || (r->offset && err.offset != r->offset) ||
            err.offset > strlen(r->json) ||
            strncmp(err.text, r->complaint, strlen(r->complaint)) != 0)
            fail_msg("%s: status %d, byte %llu, \"%s\"", r->json, status,
                     (unsigned long long)err.offset, err.text);
        assert_null(trace);
    }
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    static const char json[] = PROFILE(
        MEMORY("4", "8", "-512", "36") STEP("ProfilerStep#1", "user_annotation")
            MEMORY_OF("1", "8", "2", "2", "2", "1") MEMORY("5", "8", "16", "52") LAST);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_trace *trace = NULL;
        enum dry_status status = read_json(json, 0, &memory, &trace, NULL);
        dry_trace_destroy(trace);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            break;
        }
        if (status != DRY_OK) /* giving back what is too much may fail unseen */
            assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_events_are_told_by_time),
        cmocka_unit_test(what_contradicts_itself_is_mended),
        cmocka_unit_test(devices_and_steps_are_told_apart),
        cmocka_unit_test(what_is_wrong_is_said_with_its_byte),
        cmocka_unit_test(every_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
