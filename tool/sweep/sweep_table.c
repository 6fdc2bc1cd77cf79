/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_table.h. Keys become column names, so they are quoted in SQL. */
#include "sweep/sweep_table.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "base/command.h"
#include "base/report.h"
#include "work/store.h"

#define SQL_BYTES (2 * SWEEP_GRID_BYTES_MAX + 1024)

struct writer {
    const struct sweep *sweep;
    sqlite3 *handle;
    sqlite3_stmt *row, *file;
};

static bool
execute(const struct writer *w, const char *sql)
{
    return sqlite3_exec(w->handle, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Append to SQL with the formats of sqlite3_mprintf(). */
static void
append(char sql[SQL_BYTES], const char *format, const char *text)
{
    size_t used = strlen(sql);
    sqlite3_snprintf((int)(SQL_BYTES - used), sql + used, format, text);
}

/* Create a table of the columns in `sql`, those of the figures and the last ones. */
static bool
create(const struct writer *w, char sql[SQL_BYTES], const char *last)
{
    for (size_t i = 0; i < sweep_fields.count; i++)
        append(sql, "%s NUMERIC, ", sweep_fields.list[i].key);
    append(sql, "%s)", last);
    return execute(w, sql);
}

static bool
make_tables(const struct writer *w)
{
    char sql[SQL_BYTES] = "CREATE TABLE sweep(rank INTEGER PRIMARY KEY, conf TEXT, ";
    char files[SQL_BYTES] = "CREATE TABLE sweep_file(rank INTEGER, file TEXT, ";
    const struct sweep_grid *g = &w->sweep->grid;
    for (size_t i = 0; i < g->key_count; i++)
        append(sql, "\"%w\" TEXT, ", g->keys[i].name);
    append(sql, "%s INTEGER, ", "state TEXT, is_front");
    return execute(w, "DROP TABLE IF EXISTS sweep; DROP TABLE IF EXISTS sweep_file") &&
           create(w, sql, "worst_file TEXT") &&
           create(w, files, "PRIMARY KEY(rank, file)");
}

/* Prepare an INSERT with `count` parameters. */
static bool
prepare(const struct writer *w, const char *table, size_t count, sqlite3_stmt **statement)
{
    char sql[256];
    size_t used = (size_t)snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", table);
    for (size_t i = 1; i < count; i++)
        used += (size_t)snprintf(sql + used, sizeof sql - used, ",?");
    snprintf(sql + used, sizeof sql - used, ")");
    return sqlite3_prepare_v2(w->handle, sql, -1, statement, NULL) == SQLITE_OK;
}

static void
bind_text(sqlite3_stmt *to, int *column, const char *text)
{
    sqlite3_bind_text(to, (*column)++, text, -1, SQLITE_STATIC);
}

static void
bind_number(sqlite3_stmt *to, int *column, uint64_t number)
{
    sqlite3_bind_int64(to, (*column)++, (sqlite3_int64)number);
}

static void
bind_figures(sqlite3_stmt *to, int *column, const struct sweep_figures *figures)
{
    for (size_t i = 0; i < sweep_fields.count; i++) {
        const struct dry_field *f = &sweep_fields.list[i];
        struct dry_field_value value;
        if (!dry_field_get(f, figures, &value))
            sqlite3_bind_null(to, (*column)++);
        else if (f->unit == DRY_UNIT_NANOSECONDS)
            sqlite3_bind_double(to, (*column)++, (double)value.number / 1000);
        else
            bind_number(to, column, value.number);
    }
}

/* Insert the bound values, then clear them for the next row. */
static bool
insert(sqlite3_stmt *statement)
{
    bool is_good = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return is_good;
}

static const char *
get_state(const struct sweep_row *row)
{
    if (sweep_row_is_recorded(row))
        return "recorded";
    return row->refused ? "refused" : row->pruned ? "pruned" : "whole";
}

static bool
write_files(const struct writer *w, size_t rank)
{
    const struct sweep_row *row = &w->sweep->rows[rank];
    bool is_good = true;
    for (size_t i = 0; i < w->sweep->file_count && is_good; i++) {
        int column = 1;
        bind_number(w->file, &column, rank + 1);
        bind_text(w->file, &column, w->sweep->files[i].path);
        bind_figures(w->file, &column, &row->files[i]);
        is_good = insert(w->file);
    }
    return is_good;
}

static bool
write_row(const struct writer *w, size_t rank)
{
    const struct sweep *s = w->sweep;
    const struct sweep_row *row = &s->rows[rank];
    bool is_recorded = sweep_row_is_recorded(row);
    int column = 1;
    bind_number(w->row, &column, rank + 1);
    bind_text(w->row, &column, row->conf);
    for (size_t k = 0; k < s->grid.key_count; k++)
        bind_text(w->row, &column,
                  is_recorded ? NULL
                              : sweep_grid_value(&s->grid, row->combination, k)->text);
    bind_text(w->row, &column, get_state(row));
    bind_number(w->row, &column, row->is_front);
    if (row->refused)
        return insert(w->row);
    bind_figures(w->row, &column, &row->all);
    bind_text(w->row, &column, s->files[row->worst_file].path);
    return insert(w->row) && write_files(w, rank);
}

static bool
write_all(struct writer *w)
{
    const struct sweep *s = w->sweep;
    bool is_good =
        execute(w, "BEGIN IMMEDIATE") && make_tables(w) &&
        prepare(w, "sweep", 5 + s->grid.key_count + sweep_fields.count, &w->row) &&
        prepare(w, "sweep_file", 2 + sweep_fields.count, &w->file);
    for (size_t i = 0; i < s->row_count && is_good; i++)
        is_good = write_row(w, i);
    return is_good && execute(w, "COMMIT");
}

int
sweep_table_write(const struct sweep *sweep)
{
    struct writer w = {.sweep = sweep};
    int code = EXIT_FINE;
    if (sqlite3_open_v2(sweep->store, &w.handle, SQLITE_OPEN_READWRITE, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(w.handle, STORE_BUSY_MS) != SQLITE_OK || !write_all(&w))
        code = report_failure("sweep", sweep->store, EXIT_MACHINE, "the store: %s",
                              w.handle ? sqlite3_errmsg(w.handle) : "no memory");
    sqlite3_finalize(w.row);
    sqlite3_finalize(w.file);
    sqlite3_close(w.handle);
    return code;
}
