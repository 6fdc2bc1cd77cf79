/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in store.h. Keys and texts are only bound as parameters, never put into
 * SQL. Results wait in a temporary table, so that the file is locked only while they are
 * written.
 */
#include "work/store.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/command.h"
#include "base/now.h"
#include "base/report.h"

#define STORE_ID 0x44525957 /* "DRYW": the application id of the file */
#define STORE_VERSION 1
#define EVERY_NS UINT64_C(1000000000)
#define COUNT_TABLES "SELECT count(*) FROM sqlite_master"

struct store {
    const char *name, *file;
    sqlite3 *handle;
    sqlite3_stmt *find, *put;
    bool is_behind; /* some results wait to be written */
    uint64_t written_ns;
};

static int
fail(const struct store *s)
{
    int code = s->handle ? sqlite3_errcode(s->handle) : SQLITE_NOMEM;
    const char *text = s->handle ? sqlite3_errmsg(s->handle) : "no memory";
    bool is_input = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
    return report_failure(s->name, s->file, is_input ? EXIT_INPUT : EXIT_MACHINE,
                          "the store: %s", text);
}

static int
run_sql(const struct store *s, const char *sql)
{
    bool is_good = sqlite3_exec(s->handle, sql, NULL, NULL, NULL) == SQLITE_OK;
    return is_good ? EXIT_FINE : fail(s);
}

/* --- creating and checking ---------------------------------------------------------------- */

/* Return the integer result of a query; -1 if it has none. */
static int64_t
ask(const struct store *s, const char *sql)
{
    sqlite3_stmt *row = NULL;
    int64_t answer = -1;
    if (sqlite3_prepare_v2(s->handle, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        answer = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return answer;
}

/* Roll back a transaction that failed, if it is open. Returns `code`. */
static int
roll_back(const struct store *s, int code)
{
    if (!sqlite3_get_autocommit(s->handle))
        sqlite3_exec(s->handle, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* Create the tables unless another process did: the transaction includes the check. */
static int
make(const struct store *s)
{
    char sql[512];
    sqlite3_snprintf(sizeof sql, sql,
                     "PRAGMA application_id = %d;"
                     "CREATE TABLE work(name TEXT, version INTEGER);"
                     "INSERT INTO work VALUES(%Q, %d);"
                     "CREATE TABLE result(key TEXT PRIMARY KEY, stamp INTEGER, text TEXT)"
                     " WITHOUT ROWID;",
                     STORE_ID, s->name, STORE_VERSION);
    int code = run_sql(s, "BEGIN IMMEDIATE");
    if (code == EXIT_FINE && ask(s, COUNT_TABLES) == 0)
        code = run_sql(s, sql);
    if (code == EXIT_FINE)
        code = run_sql(s, "COMMIT");
    return code == EXIT_FINE ? code : roll_back(s, code);
}

static int
check(const struct store *s)
{
    if (ask(s, "PRAGMA application_id") != STORE_ID)
        return report_failure(
            s->name, s->file, EXIT_INPUT,
            "this SQLite file is not a store of Drystone's; name another "
            "file, or one that does not exist yet");
    char sql[128];
    sqlite3_snprintf(sizeof sql, sql, "SELECT count(*) FROM work WHERE name = %Q",
                     s->name);
    if (ask(s, sql) != 1)
        return report_failure(s->name, s->file, EXIT_INPUT,
                              "this store is another command's, or damaged");
    int64_t version = ask(s, "SELECT version FROM work");
    if (version != STORE_VERSION)
        return report_failure(s->name, s->file, EXIT_INPUT,
                              "this store has version %lld, expected %d",
                              (long long)version, STORE_VERSION);
    return EXIT_FINE;
}

static int
prepare(struct store *s)
{
    static const char find[] = "SELECT text FROM result WHERE key = ? AND stamp = ?";
    static const char put[] = "INSERT INTO waiting VALUES(?, ?, ?)";
    sqlite3_busy_timeout(s->handle, STORE_BUSY_MS);
    int64_t tables = ask(s, COUNT_TABLES);
    if (tables < 0)
        return fail(s);
    int code = tables == 0 ? make(s) : EXIT_FINE;
    if (code == EXIT_FINE)
        code = check(s);
    if (code == EXIT_FINE)
        code = run_sql(s, "PRAGMA temp_store = MEMORY;"
                          "CREATE TEMP TABLE waiting(key, stamp, text)");
    if (code != EXIT_FINE)
        return code;
    s->written_ns = now_ns(CLOCK_MONOTONIC);
    if (sqlite3_prepare_v2(s->handle, find, -1, &s->find, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->handle, put, -1, &s->put, NULL) != SQLITE_OK)
        return fail(s);
    return EXIT_FINE;
}

static int
drop(struct store *s, int code)
{
    sqlite3_finalize(s->find);
    sqlite3_finalize(s->put);
    sqlite3_close(s->handle);
    free(s);
    return code;
}

int
store_open(const char *name, const char *file, struct store **store)
{
    *store = NULL;
    struct store *s = calloc(1, sizeof *s);
    if (!s)
        return report_failure(name, file, EXIT_MACHINE, "no memory for the store");
    s->name = name;
    s->file = file;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(file, &s->handle, flags, NULL) != SQLITE_OK)
        return drop(s, fail(s));
    int code = prepare(s);
    if (code != EXIT_FINE)
        return drop(s, code);
    *store = s;
    return EXIT_FINE;
}

/* --- results ------------------------------------------------------------------------------ */

static int
write_waiting(struct store *s)
{
    if (!s->is_behind)
        return EXIT_FINE;
    s->written_ns = now_ns(CLOCK_MONOTONIC);
    int code = run_sql(s, "BEGIN IMMEDIATE; REPLACE INTO result SELECT * FROM waiting;"
                          "DELETE FROM waiting; COMMIT");
    s->is_behind = code != EXIT_FINE;
    return code == EXIT_FINE ? code : roll_back(s, code);
}

int
store_find(struct store *s, const char *key, uint64_t stamp, char **text)
{
    *text = NULL;
    int code = write_waiting(s);
    if (code != EXIT_FINE)
        return code;
    sqlite3_bind_text(s->find, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s->find, 2, (int64_t)stamp);
    int step = sqlite3_step(s->find);
    if (step == SQLITE_ROW) {
        const unsigned char *found = sqlite3_column_text(s->find, 0);
        *text = found ? strdup((const char *)found) : NULL;
        if (found && !*text)
            code =
                report_failure(s->name, s->file, EXIT_MACHINE, "no memory for a result");
    } else if (step != SQLITE_DONE) {
        code = fail(s);
    }
    sqlite3_reset(s->find);
    return code;
}

int
store_put(struct store *s, const char *key, uint64_t stamp, const char *text)
{
    sqlite3_bind_text(s->put, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s->put, 2, (int64_t)stamp);
    sqlite3_bind_text(s->put, 3, text, -1, SQLITE_STATIC);
    int step = sqlite3_step(s->put);
    sqlite3_reset(s->put);
    if (step != SQLITE_DONE)
        return fail(s);
    s->is_behind = true;
    return now_ns(CLOCK_MONOTONIC) - s->written_ns >= EVERY_NS ? write_waiting(s)
                                                               : EXIT_FINE;
}

/* Copy all rows of `other`, which store_open() has checked. */
static int
copy_rows(struct store *s, struct store *other)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(other->handle, "SELECT key, stamp, text FROM result", -1, &row,
                           NULL) != SQLITE_OK)
        return fail(other);
    int code = EXIT_FINE, step = SQLITE_DONE;
    while (code == EXIT_FINE && (step = sqlite3_step(row)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(row, 0);
        const char *text = (const char *)sqlite3_column_text(row, 2);
        if (key && text)
            code = store_put(s, key, (uint64_t)sqlite3_column_int64(row, 1), text);
    }
    if (code == EXIT_FINE && step != SQLITE_DONE)
        code = fail(other);
    sqlite3_finalize(row);
    return code;
}

int
store_merge(struct store *s, const char *file)
{
    struct store *other;
    int code = store_open(s->name, file, &other);
    if (code != EXIT_FINE || !other)
        return code;
    code = copy_rows(s, other);
    int closed = store_close(other);
    return code == EXIT_FINE ? closed : code;
}

int
store_close(struct store *s)
{
    if (!s)
        return EXIT_FINE;
    return drop(s, write_waiting(s));
}
