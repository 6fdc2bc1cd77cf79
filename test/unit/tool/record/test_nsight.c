/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite files as Nsight Systems exports them, older ones, hostile ones, damaged ones. */
#include "support/cmocka.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <drystone/explanation.h>
#include <drystone/replay.h>
#include <drystone/timeline.h>

#include "record/load.h"
#include "record/nsight.h"
#include "support/random.h"

#define MEMORY_BYTES_MAX (UINT64_C(64) << 20)
#define NOTE "allocations from CUDA's driver, without the blocks inside"
#define SCHEMA                                                                           \
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid "      \
    "INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address "  \
    "INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER "    \
    "NOT NULL, memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, " \
    "localMemoryPoolAddress INTEGER);"
#define INSERT "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES "
/* One event: time in us, process, device, address, bytes, kind, operation. */
#define EVENT(us, pid, device, address, bytes, kind, operation)                          \
    INSERT "(" #us "000, " #pid " << 24, " #device ", 1, " #address ", 0, " #bytes       \
           ", " #kind ", " #operation ", NULL, NULL, NULL);"

struct outcome {
    enum dry_status status;
    struct dry_error err;
    struct dry_trace *trace;
    const struct dry_trace_view *view;
    char note[NSIGHT_NOTE_BYTES];
};

static void
make_file(const char *path, const char *sql)
{
    sqlite3 *database;
    unlink(path);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    char *message = NULL;
    if (sqlite3_exec(database, "PRAGMA page_size = 512;", NULL, NULL, NULL) !=
            SQLITE_OK ||
        sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message ? message : "page size");
    sqlite3_close(database);
}

static struct outcome
read_file(const char *path, uint64_t memory_bytes_max)
{
    struct outcome o = {0};
    o.status = nsight_read(path, memory_bytes_max, &o.trace, o.note, &o.err);
    if (o.trace)
        o.view = dry_trace_get_view(o.trace);
    return o;
}

static struct outcome
read_sql(const char *sql)
{
    static const char path[] = "nsight-test.sqlite";
    make_file(path, sql);
    struct outcome o = read_file(path, MEMORY_BYTES_MAX);
    unlink(path);
    return o;
}

static void
refuse_sql(const char *sql, const char *text)
{
    struct outcome o = read_sql(sql);
    assert_int_equal(o.status, DRY_ERR_FORMAT);
    assert_null(o.trace);
    if (!strstr(o.err.text, text))
        fail_msg("'%s' lacks '%s'", o.err.text, text);
}

/* Write the events as one line: a letter for each action, address, size and time. */
static void
print_events(const struct dry_trace_view *v, char *to, size_t capacity)
{
    size_t used = 0;
    *to = '\0';
    for (size_t i = 0; i < v->event_count; i++)
        used += (size_t)snprintf(
            to + used, capacity - used, "%s%s %llx %llu @%lld", i ? ", " : "",
            dry_action_name(v->action[i]), (unsigned long long)v->addr[i],
            (unsigned long long)v->size[i], (long long)v->time_us[i]);
}

static void
assert_events(const char *sql, const char *events)
{
    char text[1024];
    struct outcome o = read_sql(sql);
    if (o.status != DRY_OK)
        fail_msg("%s", o.err.text);
    print_events(o.view, text, sizeof text);
    assert_string_equal(text, events);
    dry_trace_destroy(o.trace);
}

static void
an_allocation_is_a_segment_with_a_block(void **state)
{
    (void)state;
    struct outcome o = read_sql(SCHEMA EVENT(10, 7, 0, 4096, 512, 2, 0) EVENT(
        20, 7, 0, 8192, 1024, 2, 0) EVENT(30, 7, 0, 4096, 512, 2, 1));
    char text[1024];
    assert_int_equal(o.status, DRY_OK);
    assert_string_equal(o.note, NOTE);
    assert_int_equal(o.view->kind, DRY_TRACE_NSIGHT);
    assert_true(o.view->has_addresses && o.view->is_of_driver);
    print_events(o.view, text, sizeof text);
    assert_string_equal(text, "segment_alloc 1000 512 @10, alloc 1000 512 @10, "
                              "segment_alloc 2000 1024 @20, alloc 2000 1024 @20, "
                              "free_requested 1000 512 @30, free_completed 1000 512 @30, "
                              "segment_free 1000 512 @30");
    assert_int_equal(o.view->segment_count, 1);
    assert_int_equal(o.view->segments[0].address, 8192);
    assert_int_equal(o.view->segments[0].block_count, 1);
    assert_int_equal(o.view->blocks[0].size, 1024);
    size_t count;
    const uint32_t *stack = dry_trace_stack(o.trace, o.view->stack[0], &count);
    assert_int_equal(count, 1);
    const struct dry_frame *frame = &o.view->frames[*stack];
    assert_string_equal(dry_trace_string(o.trace, frame->file, NULL), "<process 7>");
    assert_string_equal(dry_trace_string(o.trace, frame->name, NULL), "device memory");
    dry_trace_destroy(o.trace);
}

static void
rows_come_in_any_order(void **state)
{
    (void)state;
    static const char events[] = "segment_alloc 1000 512 @10, alloc 1000 512 @10, "
                                 "free_requested 1000 512 @30, free_completed 1000 512 "
                                 "@30, segment_free 1000 512 @30";
    assert_events(
        SCHEMA EVENT(30, 7, 0, 4096, 512, 2, 1) EVENT(10, 7, 0, 4096, 512, 2, 0), events);
}

static void
an_address_is_reused(void **state)
{
    (void)state;
    assert_events(SCHEMA EVENT(1, 7, 0, 4096, 8, 2, 0) EVENT(2, 7, 0, 4096, 8, 2, 1)
                      EVENT(3, 7, 0, 4096, 16, 2, 0),
                  "segment_alloc 1000 8 @1, alloc 1000 8 @1, free_requested 1000 8 @2, "
                  "free_completed 1000 8 @2, segment_free 1000 8 @2, "
                  "segment_alloc 1000 16 @3, alloc 1000 16 @3");
}

static void
a_lost_free_ends_at_the_next_allocation(void **state)
{
    (void)state;
    assert_events(SCHEMA EVENT(1, 7, 0, 4096, 8, 2, 0) EVENT(3, 7, 0, 4096, 16, 2, 0),
                  "segment_alloc 1000 8 @1, alloc 1000 8 @1, free_requested 1000 8 @3, "
                  "free_completed 1000 8 @3, segment_free 1000 8 @3, "
                  "segment_alloc 1000 16 @3, alloc 1000 16 @3");
}

static void
a_free_of_nothing_is_older_or_passed_over(void **state)
{
    (void)state;
    assert_events(SCHEMA EVENT(1, 7, 0, 4096, 8, 2, 1) EVENT(2, 7, 0, 4096, 8, 2, 1),
                  "free_requested 1000 8 @1, free_completed 1000 8 @1, "
                  "segment_free 1000 8 @1");
    assert_events(SCHEMA EVENT(1, 7, 0, 4096, 0, 2, 1) EVENT(2, 7, 0, 4096, 0, 2, 0), "");
}

static void
processes_and_devices_are_told_apart(void **state)
{
    (void)state;
    struct outcome o = read_sql(
        SCHEMA "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid, uuid TEXT);"
               "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 8, 'x'), (NULL, 0, 7, "
               "'y');" EVENT(1, 7, 0, 4096, 8, 2, 0) EVENT(2, 8, 0, 4096, 8, 2, 0)
                   EVENT(3, 9, 0, 4096, 8, 2, 0));
    assert_int_equal(o.status, DRY_OK);
    assert_string_equal(o.note, NOTE "; 3 processes share the timelines");
    assert_int_equal(o.view->device_count, 2);
    assert_int_equal(o.view->devices[0].device, 0);
    assert_int_equal(o.view->devices[0].segment_count, 2);
    assert_int_equal(o.view->addr[0], 4096);
    assert_int_equal(o.view->addr[2], 4096 + (UINT64_C(2) << 52));
    assert_int_equal(o.view->devices[1].device, 3);
    dry_trace_destroy(o.trace);
}

static void
other_memory_is_left_out_and_counted(void **state)
{
    (void)state;
    struct outcome o =
        read_sql(SCHEMA EVENT(1, 7, 0, 1, 8, 0, 0) EVENT(2, 7, 0, 2, 8, 1, 0)
                     EVENT(3, 7, 99, 3, 8, 4, 0) EVENT(4, 7, 0, 4, 8, 7, 0)
                         EVENT(5, 7, 0, 5, 8, 2, 6) EVENT(6, 7, 0, 6, 8, 3, 0)
                             EVENT(7, 7, 0, 70, 8, 5, 0) INSERT
                 "(8000, 7 << 24, 0, 1, 80, 0, 8, 2, 0, NULL, NULL, 4660);");
    assert_int_equal(o.status, DRY_OK);
    assert_string_equal(o.note, NOTE
                        "; 2 events of host memory, left out; 1 event of managed memory, "
                        "left out; 2 events of an unknown kind, left out; 1 event in "
                        "pools of CUDA, whose own size is not counted");
    assert_int_equal(o.view->event_count, 6);
    assert_int_equal(o.view->frame_count, 3);
    dry_trace_destroy(o.trace);
}

static void
numbers_are_what_the_file_says(void **state)
{
    (void)state;
    assert_events(
        SCHEMA
        "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT);"
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES"
        " (20, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (21, NULL, NULL);"
        "CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER, name TEXT);"
        "INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES"
        " (30, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION'),"
        " (31, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION');" EVENT(1, 7, 0, 4096, 8, 20, 30)
            EVENT(2, 7, 0, 4096, 8, 20, 31) EVENT(3, 7, 0, 4096, 8, 2, 30),
        "segment_alloc 1000 8 @1, alloc 1000 8 @1, free_requested 1000 8 @2, "
        "free_completed 1000 8 @2, segment_free 1000 8 @2");
}

static void
older_files_lack_columns(void **state)
{
    (void)state;
    struct outcome o =
        read_sql("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, deviceId INT, "
                 "address INT, "
                 "bytes INT, memoryOperationType INT);" INSERT "(1000, 0, 4096, 8, 0);");
    assert_int_equal(o.status, DRY_OK);
    assert_string_equal(
        o.note, NOTE "; no column globalPid, so all is taken for one process; no column "
                     "memKind, so all is taken for device memory");
    assert_int_equal(o.view->event_count, 2);
    dry_trace_destroy(o.trace);
    refuse_sql(
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, deviceId INT, bytes "
        "INT, memoryOperationType INT);",
        "no column address");
    refuse_sql("CREATE TABLE other (start INT);", "--cuda-memory-usage=true");
}

static void
values_of_the_wrong_type_are_refused(void **state)
{
    (void)state;
    refuse_sql(SCHEMA EVENT(1, 7, 0, 4096, 'much', 2, 0), "event 1: bytes is no whole");
    refuse_sql(SCHEMA EVENT(1, 7, 0, 4096, 1.5, 2, 0), "bytes is no whole");
    refuse_sql(SCHEMA EVENT(1, 7, 0, 4096, -8, 2, 0), "bytes is negative");
    refuse_sql(SCHEMA EVENT(1, 7, 0, -4096, 8, 2, 0), "address is negative");
    refuse_sql(SCHEMA EVENT(1, 7, 0, CAST('a' AS BLOB), 8, 2, 0), "address is no whole");
    refuse_sql(SCHEMA EVENT(1, 7, 0, 4096, 8, 'x', 0), "memKind is no whole");
    refuse_sql(SCHEMA EVENT(1, 7, 64, 4096, 8, 2, 0), "a device beyond 63");
    refuse_sql(SCHEMA EVENT(1, 7, -1, 4096, 8, 2, 0), "a device beyond 63");
    refuse_sql(SCHEMA EVENT(1, 7, 0, 4096, 9223372036854775807, 2, 0), "beyond 2^52");
    refuse_sql(SCHEMA EVENT(1, 7, 0, 4503599627370490, 8, 2, 0), "beyond 2^52");
    refuse_sql(SCHEMA
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < "
               "1025) INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT 1, i << 24, 0, "
               "1, 4096, 0, 8, 2, 0, NULL, NULL, NULL FROM n;",
               "more than 1024 processes");
}

/* Nothing but plain columns of a plain table is read: no code of the file is run. */
static void
what_computes_is_not_read(void **state)
{
    (void)state;
    refuse_sql(
        "CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS SELECT 1 AS start, 0 AS deviceId, "
        "4096 AS address, 8 AS bytes, 0 AS memoryOperationType;",
        "without Nsight Systems' table");
    refuse_sql(
        "CREATE VIRTUAL TABLE CUDA_GPU_MEMORY_USAGE_EVENTS USING fts5(start, deviceId, "
        "address, bytes, memoryOperationType);",
        "without Nsight Systems' table");
    refuse_sql(
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, deviceId INT, address "
        "INT, memoryOperationType INT, bytes INT AS (length(hex(zeroblob(900000)))));",
        "no column bytes");
}

static void
memory_is_bounded(void **state)
{
    (void)state;
    static const char path[] = "nsight-many.sqlite";
    make_file(
        path, SCHEMA
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 5000) "
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT i, 7 << 24, 0, 1, i * 4096, 0, "
        "8, 2, 0, NULL, NULL, NULL FROM n;");
    struct outcome o = read_file(path, 1 << 20);
    assert_int_equal(o.status, DRY_ERR_LIMIT);
    assert_null(o.trace);
    o = read_file(path, 8 << 20);
    assert_int_equal(o.status, DRY_OK);
    assert_int_equal(o.view->event_count, 10000);
    dry_trace_destroy(o.trace);
    unlink(path);
}

static void
load_any(const char *path, enum dry_status expected, const char *text)
{
    struct dry_trace *trace = NULL;
    struct input_content content;
    struct dry_error err;
    enum dry_status status =
        load_trace_quietly(path, MEMORY_BYTES_MAX, &trace, &content, &err);
    assert_int_equal(status, expected);
    if (status != DRY_OK && !strstr(err.text, text))
        fail_msg("'%s' lacks '%s'", err.text, text);
    dry_trace_destroy(trace);
}

static void
files_are_opened_by_their_names(void **state)
{
    (void)state;
    static const char path[] = "nsight 100%41?x=1#.sqlite", packed[] = "nsight.sqlite.gz";
    make_file(path, SCHEMA EVENT(1, 7, 0, 4096, 8, 2, 0));
    load_any(path, DRY_OK, "");
    char bytes[8192];
    int fd = open(path, O_RDONLY);
    ssize_t count = read(fd, bytes, sizeof bytes);
    assert_true(count > 0);
    close(fd);
    gzFile out = gzopen(packed, "wb");
    assert_int_equal(gzwrite(out, bytes, (unsigned)count), count);
    gzclose(out);
    load_any(packed, DRY_ERR_UNSUPPORTED, "read by its name, unpacked");
    assert_int_equal(truncate(path, 600), 0);
    load_any(path, DRY_ERR_FORMAT, "SQLite: ");
    unlink(path);
    unlink(packed);
}

/* Nothing is sure of what is read, but that all looks at it end. */
static void
look_at(const struct dry_trace *trace)
{
    struct dry_replay *replay = NULL;
    struct dry_timeline *timeline = NULL;
    struct dry_explanation *explanation = NULL;
    struct dry_error err;
    struct dry_run run;
    if (dry_trace_get_view(trace)->device_count > 0 &&
        dry_replay_create(trace, NULL, &replay, &err) == DRY_OK &&
        dry_timeline_create(replay, NULL, &timeline, &err) == DRY_OK) {
        const struct dry_explain_device device = {.replay = replay, .timeline = timeline};
        struct dry_explain_options options;
        dry_explain_options_init(&options);
        options.devices = &device;
        options.device_count = 1;
        if (dry_explanation_create(&options, &explanation, &err) == DRY_OK)
            assert_null(dry_explanation_get_view(explanation)->settings);
        assert_int_equal(dry_replay_run(replay, NULL, &run, &err), DRY_ERR_UNSUPPORTED);
    }
    dry_explanation_destroy(explanation);
    dry_timeline_destroy(timeline);
    dry_replay_destroy(replay);
}

static void
damaged_files_are_read_or_refused(void **state)
{
    (void)state;
    static const char path[] = "nsight-damaged.sqlite";
    make_file(
        path, SCHEMA
        "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT);"
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE');"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 60) "
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT i * 1000, (7 + i % 2) << 24, "
        "i % 3, 1, i / 2 * 4096, 0, 4096, 2, i % 2, NULL, i, NULL FROM n;");
    unsigned char bytes[16384];
    int fd = open(path, O_RDWR);
    ssize_t count = read(fd, bytes, sizeof bytes);
    assert_in_range(count, 2048, sizeof bytes - 1);
    unsigned read_count = 0;
    struct random random;
    random_init(&random, 45);
    for (unsigned round = 0; round < 3000; round++) {
        unsigned char kept[4];
        size_t at[4];
        for (unsigned i = 0; i < 4; i++) {
            at[i] = random_below(&random, (uint64_t)count);
            kept[i] = bytes[at[i]];
            bytes[at[i]] = (unsigned char)random_below(&random, 256);
        }
        assert_int_equal(pwrite(fd, bytes, (size_t)count, 0), count);
        struct outcome o = read_file(path, MEMORY_BYTES_MAX);
        assert_true((o.status == DRY_OK) == (o.trace != NULL));
        assert_true(o.status == DRY_OK || o.err.text[0]);
        read_count += o.status == DRY_OK;
        if (o.trace)
            look_at(o.trace);
        dry_trace_destroy(o.trace);
        for (unsigned i = 4; i-- > 0;)
            bytes[at[i]] = kept[i];
    }
    close(fd);
    unlink(path);
    assert_in_range(read_count, 300, 2900); /* the rounds reach both ends */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_is_a_segment_with_a_block),
        cmocka_unit_test(rows_come_in_any_order),
        cmocka_unit_test(an_address_is_reused),
        cmocka_unit_test(a_lost_free_ends_at_the_next_allocation),
        cmocka_unit_test(a_free_of_nothing_is_older_or_passed_over),
        cmocka_unit_test(processes_and_devices_are_told_apart),
        cmocka_unit_test(other_memory_is_left_out_and_counted),
        cmocka_unit_test(numbers_are_what_the_file_says),
        cmocka_unit_test(older_files_lack_columns),
        cmocka_unit_test(values_of_the_wrong_type_are_refused),
        cmocka_unit_test(what_computes_is_not_read),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(files_are_opened_by_their_names),
        cmocka_unit_test(damaged_files_are_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
