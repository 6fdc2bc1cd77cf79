/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file is hostile. It is opened read-only, as one that nobody changes, and only plain columns of
 * plain tables are read: no view, trigger, index, virtual table or computed column.
 *
 * Rows come in any order. They are sorted by address first: an allocation is paired with the next
 * free of its address. A free that is the first of its address is of memory from before the
 * recording; another free without an allocation is passed over. An allocation at a live address ends
 * the one before, whose free was lost. Then the rows are sorted by time and become events.
 *
 * Addresses of two processes may be equal. Those of the process that comes n-th in the file, from 0,
 * begin at n * 2^52.
 *
 * Cost: O(rows * log rows), 48 bytes a row and 111 for its events. Source: the export schema of
 * Nsight Systems, and CUPTI's activity records of memory.
 */
#include "record/nsight.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define ROW_BYTES 1024u       /* memory for a row at most, with its events and its name */
#define VALUE_BYTES (1 << 20) /* longest value of a row, and longest statement */
#define SQL_BYTES 512
#define DEVICES_MAX 64
#define PROCESSES_MAX 1024u
#define PROCESS_SHIFT 52
#define GPUS_MAX 4096u

/* Kinds of memory and of operations, in the order of their usual numbers. */
enum kind {
    PAGEABLE,
    PINNED,
    DEVICE,
    ARRAY,
    MANAGED,
    STATIC,
    MANAGED_STATIC,
    KIND_COUNT
};
enum operation { ALLOCATION, DEALLOCATION, OPERATION_COUNT };

/* Columns of an event. */
enum column { START, GPU, ADDRESS, BYTES, OPERATION, KIND, PROCESS, NAME, POOL };
#define NEEDED (1u << START | 1u << GPU | 1u << ADDRESS | 1u << BYTES | 1u << OPERATION)

struct row {
    uint64_t address, bytes;
    uint64_t lost_bytes; /* size of what this allocation replaces; 0: nothing */
    int64_t start_ns;
    uint32_t order; /* number in the file */
    uint32_t stack;
    uint8_t device;
    bool is_free, is_void; /* is_void: becomes no event */
};

/* A process's number of a device, and that of the machine. */
struct gpu {
    int64_t pid, ordinal, id;
};

struct process {
    int64_t global_pid;
    int64_t devices[DEVICES_MAX]; /* the machine's numbers of its devices */
};

struct reading;
struct table {
    const char *name;
    enum dry_status (*take)(struct reading *r, sqlite3_stmt *statement);
    const char *columns[9];
    unsigned column_count;
    unsigned needed; /* bit c: no table without column c */
};

struct reading {
    sqlite3 *database;
    struct dry_trace_builder *builder;
    struct dry_error *err;
    const struct table *table;   /* the one that is read */
    unsigned columns;            /* bit c: it has column c */
    bool is_there;               /* the database has it */
    uint64_t visited, visit_max; /* rows of all tables */
    uint64_t event_count;        /* rows of events, also of those left out */
    struct row *rows;
    size_t row_count, row_capacity;
    uint32_t lane;
    int64_t kinds[KIND_COUNT],
        operations[OPERATION_COUNT]; /* their numbers in the file */
    struct process processes[PROCESSES_MAX];
    uint32_t process_count, latest_process;
    struct gpu gpus[GPUS_MAX];
    size_t gpu_count;
    uint64_t host_count, managed_count, unknown_count, pooled_count, lost_count;
};

bool
nsight_is_database(const unsigned char *bytes, size_t count)
{
    static const char magic[] = "SQLite format 3"; /* a zero byte ends it there, too */
    return count >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

/* --- tables ------------------------------------------------------------------------------ */

static enum dry_status
fail_database(const struct reading *r)
{
    int code = sqlite3_errcode(r->database) & 0xff;
    bool is_system = code == SQLITE_CANTOPEN || code == SQLITE_IOERR;
    if (code == SQLITE_NOMEM)
        return fail_memory(r->err, "no memory to read SQLite");
    return fail_at(r->err, is_system ? DRY_ERR_SYSTEM : DRY_ERR_FORMAT, DRY_NO_OFFSET,
                   "SQLite: %s", sqlite3_errmsg(r->database));
}

/* Run a statement, and take each of its rows. */
static enum dry_status
query(struct reading *r, const char *sql,
      enum dry_status (*take)(struct reading *r, sqlite3_stmt *statement))
{
    sqlite3_stmt *statement = NULL;
    enum dry_status status = DRY_OK;
    int code = sqlite3_prepare_v2(r->database, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return fail_database(r);
    while (status == DRY_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        r->visited++;
        status = r->visited > r->visit_max
                     ? fail_at(r->err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                               "more than %" PRIu64 " rows: there is no memory for them",
                               r->visit_max)
                     : take(r, statement);
    }
    if (status == DRY_OK && code != SQLITE_DONE)
        status = fail_database(r);
    sqlite3_finalize(statement);
    return status;
}

static enum dry_status
take_table(struct reading *r, sqlite3_stmt *statement)
{
    (void)statement;
    r->is_there = true;
    return DRY_OK;
}

static enum dry_status
take_column(struct reading *r, sqlite3_stmt *statement)
{
    const char *name = (const char *)sqlite3_column_text(statement, 1);
    for (unsigned c = 0; name && c < r->table->column_count; c++) {
        if (sqlite3_stricmp(name, r->table->columns[c]) == 0)
            r->columns |= 1u << c;
    }
    return DRY_OK;
}

/* Select what a table has of its columns, NULL for the others. */
static enum dry_status
select_rows(struct reading *r)
{
    const struct table *t = r->table;
    char sql[SQL_BYTES];
    size_t length = 0;
    for (unsigned c = 0; c < t->column_count; c++) {
        bool has_column = r->columns >> c & 1;
        if (!has_column && (t->needed >> c & 1))
            return fail_at(r->err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "the table %s has no column %s: an export of another version",
                           t->name, t->columns[c]);
        length +=
            (size_t)snprintf(sql + length, sizeof sql - length, "%s%s",
                             c ? ", " : "SELECT ", has_column ? t->columns[c] : "NULL");
    }
    snprintf(sql + length, sizeof sql - length, " FROM %s NOT INDEXED", t->name);
    return query(r, sql, t->take);
}

/* Read a table into *r if the database has it. A virtual table has no root page. */
static enum dry_status
read_table(struct reading *r, const struct table *table)
{
    char sql[SQL_BYTES];
    r->table = table;
    r->columns = 0;
    r->is_there = false;
    snprintf(sql, sizeof sql,
             "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name "
             "= '%s'",
             table->name);
    enum dry_status status = query(r, sql, take_table);
    if (status != DRY_OK || !r->is_there)
        return status;
    snprintf(sql, sizeof sql, "PRAGMA table_info(%s)", table->name);
    status = query(r, sql, take_column); /* computed columns are not listed */
    return status == DRY_OK ? select_rows(r) : status;
}

/* --- small tables ------------------------------------------------------------------------ */

/* Set the number of the name that ends a row's: a row is a number and a name. */
static enum dry_status
take_number(sqlite3_stmt *statement, const char *prefix, const char *const *names,
            int64_t *numbers, size_t count)
{
    const char *name = (const char *)sqlite3_column_text(statement, 1);
    size_t length = strlen(prefix);
    if (!name || strncmp(name, prefix, length) != 0)
        return DRY_OK;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name + length, names[i]) == 0)
            numbers[i] = sqlite3_column_int64(statement, 0);
    }
    return DRY_OK;
}

static enum dry_status
take_kind(struct reading *r, sqlite3_stmt *statement)
{
    static const char *const names[KIND_COUNT] = {
        "PAGEABLE", "PINNED",        "DEVICE",        "ARRAY",
        "MANAGED",  "DEVICE_STATIC", "MANAGED_STATIC"};
    return take_number(statement, "CUDA_MEMOPR_MEMORY_KIND_", names, r->kinds,
                       KIND_COUNT);
}

static enum dry_status
take_operation(struct reading *r, sqlite3_stmt *statement)
{
    static const char *const names[OPERATION_COUNT] = {"ALLOCATION", "DEALLOCATION"};
    return take_number(statement, "CUDA_DEV_MEM_EVENT_OPR_", names, r->operations,
                       OPERATION_COUNT);
}

static enum dry_status
take_gpu(struct reading *r, sqlite3_stmt *statement)
{
    bool is_whole = true;
    for (int c = 0; c < 3; c++)
        is_whole = is_whole && sqlite3_column_type(statement, c) == SQLITE_INTEGER;
    if (is_whole && r->gpu_count < GPUS_MAX)
        r->gpus[r->gpu_count++] = (struct gpu){sqlite3_column_int64(statement, 0),
                                               sqlite3_column_int64(statement, 1),
                                               sqlite3_column_int64(statement, 2)};
    return DRY_OK;
}

static const struct table kinds_table = {
    "ENUM_CUDA_MEM_KIND", take_kind, {"id", "name"}, 2, 0};
static const struct table operations_table = {
    "ENUM_CUDA_DEV_MEM_EVENT_OPER", take_operation, {"id", "name"}, 2, 0};
static const struct table gpus_table = {
    "TARGET_INFO_CUDA_DEVICE", take_gpu, {"pid", "cudaId", "gpuId"}, 3, 0};

/* --- one event --------------------------------------------------------------------------- */

/* Read whole numbers; NULL is -1 in columns that may lack. */
static enum dry_status
read_numbers(const struct reading *r, sqlite3_stmt *statement,
             int64_t values[PROCESS + 1])
{
    for (int c = 0; c <= PROCESS; c++) {
        int type = sqlite3_column_type(statement, c);
        bool is_absent = type == SQLITE_NULL && !(NEEDED >> c & 1);
        values[c] = is_absent ? -1 : sqlite3_column_int64(statement, c);
        bool is_fine = is_absent || (type == SQLITE_INTEGER &&
                                     (values[c] >= 0 || (c != ADDRESS && c != BYTES)));
        if (!is_fine)
            return fail_at(r->err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "memory event %" PRIu64 ": %s is %s", r->event_count,
                           r->table->columns[c],
                           type == SQLITE_INTEGER ? "negative" : "no whole number");
    }
    return DRY_OK;
}

/* Return the kind of device memory of an event. Count one of other memory, which becomes no event,
   and return KIND_COUNT. */
static enum kind
find_kind(struct reading *r, const int64_t *values)
{
    if (!(r->columns >> KIND & 1))
        return DEVICE;
    enum kind kind = 0;
    while (kind < KIND_COUNT && r->kinds[kind] != values[KIND])
        kind++;
    r->host_count += kind == PAGEABLE || kind == PINNED;
    r->managed_count += kind == MANAGED || kind == MANAGED_STATIC;
    r->unknown_count += kind == KIND_COUNT;
    return kind == DEVICE || kind == ARRAY || kind == STATIC ? kind : KIND_COUNT;
}

static int64_t
get_pid(int64_t global_pid)
{
    return global_pid >> 24 & 0xffffff;
}

/* Add a process. CUDA_VISIBLE_DEVICES may give it other numbers of devices than the machine's. */
static void
add_process(struct reading *r, int64_t global_pid)
{
    struct process *process = &r->processes[r->process_count++];
    process->global_pid = global_pid;
    for (int64_t i = 0; i < DEVICES_MAX; i++)
        process->devices[i] = i;
    for (size_t i = 0; i < r->gpu_count; i++) {
        const struct gpu *gpu = &r->gpus[i];
        if (gpu->pid == get_pid(global_pid) && gpu->ordinal >= 0 &&
            gpu->ordinal < DEVICES_MAX)
            process->devices[gpu->ordinal] = gpu->id;
    }
}

/* Return the number of a process, PROCESSES_MAX if there are too many. */
static uint32_t
find_process(struct reading *r, int64_t global_pid)
{
    uint32_t i = r->latest_process;
    if (i < r->process_count && r->processes[i].global_pid == global_pid)
        return i;
    for (i = 0; i < r->process_count && r->processes[i].global_pid != global_pid;)
        i++;
    if (i == r->process_count && i < PROCESSES_MAX)
        add_process(r, global_pid);
    r->latest_process = i;
    return i;
}

/* Add a stack of one frame, which says whose memory it is. */
static uint32_t
add_stack(struct reading *r, sqlite3_stmt *statement, int64_t global_pid, enum kind kind)
{
    char process[32] = "<process>", what[200] = "device memory";
    const char *name = (const char *)sqlite3_column_text(statement, NAME);
    int64_t pool = sqlite3_column_int64(statement, POOL);
    r->pooled_count += pool != 0;
    if (kind == STATIC)
        snprintf(what, sizeof what, "static variable %s", name ? name : "");
    else if (kind == ARRAY)
        snprintf(what, sizeof what, "CUDA array");
    else if (pool != 0)
        snprintf(what, sizeof what, "pool 0x%" PRIx64, (uint64_t)pool);
    if (r->columns >> PROCESS & 1)
        snprintf(process, sizeof process, "<process %" PRId64 ">", get_pid(global_pid));
    const struct dry_frame frame = {
        .name = dry_trace_add_string(r->builder, what, strlen(what)),
        .file = dry_trace_add_string(r->builder, process, strlen(process)),
        .extra = DRY_NONE};
    uint32_t number = dry_trace_add_frame(r->builder, &frame);
    return dry_trace_add_stack(r->builder, &number, 1);
}

static enum dry_status
add_row(struct reading *r, const struct row *row)
{
    if (r->row_count == r->row_capacity) {
        size_t capacity = r->row_capacity ? 2 * r->row_capacity : 256;
        struct row *rows = realloc(r->rows, capacity * sizeof *rows);
        if (!rows)
            return fail_memory(r->err, "no memory for memory events");
        r->rows = rows;
        r->row_capacity = capacity;
    }
    r->rows[r->row_count++] = *row;
    return DRY_OK;
}

/* Return what makes a place of device memory impossible, or NULL. */
static const char *
find_fault(int64_t device, uint32_t process, int64_t address, int64_t bytes)
{
    const int64_t end = INT64_C(1) << PROCESS_SHIFT;
    if (process == PROCESSES_MAX)
        return "more than 1024 processes";
    if (device < 0 || device >= DEVICES_MAX)
        return "a device beyond 63";
    return bytes > end || address > end - bytes ? "an address beyond 2^52" : NULL;
}

static enum dry_status
take_event(struct reading *r, sqlite3_stmt *statement)
{
    int64_t values[PROCESS + 1] = {0};
    r->event_count++;
    enum dry_status status = read_numbers(r, statement, values);
    enum kind kind = status == DRY_OK ? find_kind(r, values) : KIND_COUNT;
    if (kind == KIND_COUNT)
        return status;
    bool is_free = values[OPERATION] == r->operations[DEALLOCATION];
    if (!is_free && values[OPERATION] != r->operations[ALLOCATION]) {
        r->unknown_count++;
        return DRY_OK;
    }
    int64_t device = values[GPU];
    uint32_t process = find_process(r, values[PROCESS]);
    if (process < PROCESSES_MAX && device >= 0 && device < DEVICES_MAX)
        device = r->processes[process].devices[device];
    const char *fault = find_fault(device, process, values[ADDRESS], values[BYTES]);
    if (fault)
        return fail_at(r->err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "memory event %" PRIu64 ": %s", r->event_count, fault);
    const struct row row = {.address = (uint64_t)values[ADDRESS] | (uint64_t)process
                                                                       << PROCESS_SHIFT,
                            .bytes = (uint64_t)values[BYTES],
                            .start_ns = values[START],
                            .order = (uint32_t)r->row_count,
                            .stack = add_stack(r, statement, values[PROCESS], kind),
                            .device = (uint8_t)device,
                            .is_free = is_free};
    return add_row(r, &row);
}

static const struct table events_table = {"CUDA_GPU_MEMORY_USAGE_EVENTS",
                                          take_event,
                                          {[START] = "start",
                                           [GPU] = "deviceId",
                                           [ADDRESS] = "address",
                                           [BYTES] = "bytes",
                                           [OPERATION] = "memoryOperationType",
                                           [KIND] = "memKind",
                                           [PROCESS] = "globalPid",
                                           [NAME] = "name",
                                           [POOL] = "localMemoryPoolAddress"},
                                          POOL + 1,
                                          NEEDED};

/* --- rows become events ------------------------------------------------------------------ */

static int
compare_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int
compare_address(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->device == y->device && x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return compare_time(a, b);
}

/* Add the segment of an allocation that is live at the end. */
static void
add_segment(struct reading *r, const struct row *row)
{
    const struct dry_trace_block block = {.address = row->address,
                                          .size = row->bytes,
                                          .requested_size = row->bytes,
                                          .stack = row->stack,
                                          .extra = DRY_NONE,
                                          .state = DRY_BLOCK_ACTIVE};
    const struct dry_trace_segment segment = {.address = row->address,
                                              .total_size = row->bytes,
                                              .allocated_size = row->bytes,
                                              .active_size = row->bytes,
                                              .requested_size = row->bytes,
                                              .lane = r->lane,
                                              .stack = row->stack,
                                              .extra = DRY_NONE,
                                              .device = row->device,
                                              .is_large = true,
                                              .pool_id_known = true,
                                              .expandable_known = true};
    dry_trace_add_segment(r->builder, &segment, &block, 1);
}

/* Pair the rows of each address, which are sorted. */
static void
pair_rows(struct reading *r)
{
    const struct row *live = NULL;
    for (size_t i = 0; i < r->row_count; i++) {
        struct row *row = &r->rows[i];
        bool is_first =
            i == 0 || row[-1].address != row->address || row[-1].device != row->device;
        if (is_first && live)
            add_segment(r, live);
        if (is_first)
            live = NULL;
        if (live && row->is_free)
            row->bytes = live->bytes;
        else if (live)
            row->lost_bytes = live->bytes;
        row->is_void = row->bytes == 0 || (row->is_free && !live && !is_first);
        r->lost_count += row->lost_bytes > 0 || (row->is_void && row->bytes > 0);
        live = row->is_free || row->is_void ? NULL : row;
    }
    if (live)
        add_segment(r, live);
}

static void
add_events(struct reading *r, const struct row *row, uint64_t bytes, bool is_free)
{
    static const enum dry_action frees[] = {DRY_ACTION_FREE_REQUESTED,
                                            DRY_ACTION_FREE_COMPLETED,
                                            DRY_ACTION_SEGMENT_FREE},
                                 allocs[] = {DRY_ACTION_SEGMENT_ALLOC, DRY_ACTION_ALLOC};
    for (unsigned i = 0; i < (is_free ? 3u : 2u); i++) {
        const struct dry_event event = {.action = is_free ? frees[i] : allocs[i],
                                        .addr = row->address,
                                        .size = bytes,
                                        .time_us = row->start_ns / 1000,
                                        .lane = r->lane,
                                        .stack = row->stack,
                                        .note = DRY_NONE};
        dry_trace_add_event(r->builder, &event);
    }
}

static void
tell_rows(struct reading *r)
{
    int device = -1;
    const struct dry_lane lane = {.pool_known = true};
    r->lane = dry_trace_add_lane(r->builder, &lane);
    if (r->row_count > 0)
        qsort(r->rows, r->row_count, sizeof *r->rows, compare_address);
    pair_rows(r);
    if (r->row_count > 0)
        qsort(r->rows, r->row_count, sizeof *r->rows, compare_time);
    for (size_t i = 0; i < r->row_count; i++) {
        const struct row *row = &r->rows[i];
        if (row->device != device)
            dry_trace_begin_device(r->builder, device = row->device);
        if (row->lost_bytes > 0)
            add_events(r, row, row->lost_bytes, true);
        if (!row->is_void)
            add_events(r, row, row->bytes, row->is_free);
    }
}

/* --- the note ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void
add_note(char note[NSIGHT_NOTE_BYTES], const char *format, ...)
{
    size_t length = strlen(note);
    va_list args;
    va_start(args, format);
    length += (size_t)snprintf(note + length, NSIGHT_NOTE_BYTES - length, "; ");
    if (length < NSIGHT_NOTE_BYTES)
        vsnprintf(note + length, NSIGHT_NOTE_BYTES - length, format, args);
    va_end(args);
}

static void
write_note(const struct reading *r, char note[NSIGHT_NOTE_BYTES])
{
    const struct {
        uint64_t count;
        const char *text;
    } counts[] = {
        {r->host_count, "of host memory, left out"},
        {r->managed_count, "of managed memory, left out"},
        {r->unknown_count, "of an unknown kind, left out"},
        {r->lost_count, "whose other half was lost"},
        {r->pooled_count, "in pools of CUDA, whose own size is not counted"},
    };
    snprintf(note, NSIGHT_NOTE_BYTES,
             "allocations from CUDA's driver, without the blocks inside");
    if (r->process_count > 1)
        add_note(note, "%u processes share the timelines", r->process_count);
    if (!(r->columns >> PROCESS & 1))
        add_note(note, "no column globalPid, so all is taken for one process");
    if (!(r->columns >> KIND & 1))
        add_note(note, "no column memKind, so all is taken for device memory");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i].count > 0)
            add_note(note, "%" PRIu64 " event%s %s", counts[i].count,
                     counts[i].count == 1 ? "" : "s", counts[i].text);
    }
}

/* --- the file ---------------------------------------------------------------------------- */

/* Return the URI of a path, which the caller frees; NULL if memory ran out. */
static char *
make_uri(const char *path)
{
    static const char begin[] = "file:", end[] = "?mode=ro&immutable=1";
    static const char digits[] = "0123456789ABCDEF";
    size_t used = sizeof begin - 1;
    char *uri = malloc(sizeof begin + 3 * strlen(path) + sizeof end);
    if (!uri)
        return NULL;
    memcpy(uri, begin, used);
    for (; *path; path++) {
        if (!strchr("%?#", *path)) {
            uri[used++] = *path;
            continue;
        }
        uri[used++] = '%';
        uri[used++] = digits[*path >> 4]; /* those three are ASCII */
        uri[used++] = digits[*path & 15];
    }
    memcpy(uri + used, end, sizeof end);
    return uri;
}

static enum dry_status
open_database(struct reading *r, const char *path)
{
    char *uri = make_uri(path);
    if (!uri)
        return fail_memory(r->err, "no memory to read SQLite");
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(uri, &r->database, flags, NULL);
    free(uri);
    if (code != SQLITE_OK)
        return fail_database(r);
    static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW,
                              SQLITE_DBCONFIG_ENABLE_TRIGGER};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        sqlite3_db_config(r->database, off[i], 0, NULL);
    sqlite3_db_config(r->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(r->database, SQLITE_LIMIT_LENGTH, VALUE_BYTES);
    return DRY_OK;
}

static enum dry_status
read_tables(struct reading *r, const char *path)
{
    static const struct table *const tables[] = {&kinds_table, &operations_table,
                                                 &gpus_table, &events_table};
    enum dry_status status = open_database(r, path);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == DRY_OK; i++)
        status = read_table(r, tables[i]);
    if (status == DRY_OK && !r->is_there)
        return fail_at(
            r->err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
            "an SQLite file without Nsight Systems' table %s: record with nsys "
            "profile --cuda-memory-usage=true",
            events_table.name);
    if (status == DRY_OK)
        tell_rows(r);
    return status;
}

enum dry_status
nsight_read(const char *path, uint64_t memory_bytes_max, struct dry_trace **trace,
            char note[NSIGHT_NOTE_BYTES], struct dry_error *err)
{
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_NSIGHT;
    struct reading *r = calloc(1, sizeof *r);
    if (!r)
        return fail_memory(err, "no memory to read SQLite");
    r->err = err;
    r->visit_max = memory_bytes_max / ROW_BYTES;
    if (r->visit_max > UINT32_MAX / 4)
        r->visit_max = UINT32_MAX / 4;
    for (int i = 0; i < KIND_COUNT; i++)
        r->kinds[i] = i;
    r->operations[DEALLOCATION] = DEALLOCATION;
    enum dry_status status = dry_trace_builder_create(&options, &r->builder, err);
    if (status == DRY_OK)
        status = read_tables(r, path);
    write_note(r, note);
    sqlite3_close(r->database);
    free(r->rows);
    if (status == DRY_OK)
        status = dry_trace_builder_finish(r->builder, trace, err);
    else
        dry_trace_builder_destroy(r->builder);
    free(r);
    return status;
}
