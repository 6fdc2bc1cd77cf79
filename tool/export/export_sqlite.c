/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SQLite database, for queries of the user's own; drystone-export(1) describes the
 * tables. It is written in one transaction without a journal, because a failed file is
 * deleted. Indices are created last, which is faster. Texts of the trace are only bound
 * as parameters, never put into SQL.
 *
 * SQLite's integers are signed 64-bit: addresses from 2^63 on are negative.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include <drystone/drystone.h>

#include "base/output.h"
#include "base/term.h"
#include "export/export.h"
#include "export/export_life.h"
#include "export/export_steps.h"

static const char schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE settings(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE strings(string INTEGER PRIMARY KEY, text TEXT);"
    "CREATE TABLE frames(frame INTEGER PRIMARY KEY, name INTEGER, file INTEGER, "
    "line INTEGER);"
    "CREATE TABLE stacks(stack INTEGER PRIMARY KEY, frame_count INTEGER, "
    "owner_frame INTEGER, owner TEXT);"
    "CREATE TABLE stack_frames(stack INTEGER, depth INTEGER, frame INTEGER, "
    "PRIMARY KEY(stack, depth)) WITHOUT ROWID;"
    "CREATE TABLE devices(device INTEGER PRIMARY KEY, first_event INTEGER, "
    "event_count INTEGER, oom_count INTEGER, reserved_peak INTEGER, "
    "active_peak INTEGER, allocated_peak INTEGER, requested_peak INTEGER, "
    "at TEXT, at_event INTEGER, reserved INTEGER, active INTEGER, allocated INTEGER, "
    "pending INTEGER, requested INTEGER, releasable INTEGER, stranded INTEGER, "
    "lost_frees INTEGER, inferred_frees INTEGER, unmatched_frees INTEGER, "
    "guessed_sizes INTEGER);"
    "CREATE TABLE events(event INTEGER PRIMARY KEY, device INTEGER, action TEXT, "
    "address INTEGER, size INTEGER, time_us INTEGER, stream INTEGER, pool TEXT, "
    "stack INTEGER, allocation INTEGER, user_metadata INTEGER, "
    "compile_context INTEGER);"
    "CREATE TABLE allocations(device INTEGER, allocation INTEGER, address INTEGER, "
    "size INTEGER, requested INTEGER, stream INTEGER, pool TEXT, begin_event INTEGER, "
    "begin_us INTEGER, freed_event INTEGER, freed_us INTEGER, end_event INTEGER, "
    "end_us INTEGER, fate TEXT, is_before_recording INTEGER, is_size_guessed INTEGER, "
    "is_stack_of_free INTEGER, stack INTEGER, "
    "PRIMARY KEY(device, allocation)) WITHOUT ROWID;"
    "CREATE TABLE segments(device INTEGER, address INTEGER, size INTEGER, "
    "stream INTEGER, pool TEXT, is_large INTEGER, is_expandable INTEGER, "
    "begin_event INTEGER, end_event INTEGER);"
    "CREATE TABLE blocks(device INTEGER, segment_address INTEGER, address INTEGER, "
    "size INTEGER, requested INTEGER, state TEXT, allocation INTEGER);"
    "CREATE TABLE steps(device INTEGER, step INTEGER, begin_event INTEGER, "
    "begin_us INTEGER, end_event INTEGER, end_us INTEGER, is_partial INTEGER, "
    "peak_active INTEGER, active_at_end INTEGER, reserved_at_end INTEGER, "
    "kept INTEGER, allocated_bytes INTEGER, allocated_count INTEGER, "
    "PRIMARY KEY(device, step)) WITHOUT ROWID;"
    "CREATE TABLE annotations(device INTEGER, name INTEGER, stage TEXT, "
    "time_us INTEGER);"
    "CREATE VIEW named_frames AS SELECT frame, n.text AS name, f.text AS file, line "
    "FROM frames LEFT JOIN strings n ON n.string = name "
    "LEFT JOIN strings f ON f.string = file;"
    "CREATE VIEW named_annotations AS SELECT device, text AS name, stage, time_us "
    "FROM annotations LEFT JOIN strings ON string = name;";

static const char indices[] =
    "CREATE INDEX events_by_address ON events(address);"
    "CREATE INDEX events_by_action ON events(action) WHERE action NOT IN "
    "('alloc', 'free_requested', 'free_completed');"
    "CREATE INDEX allocations_by_stack ON allocations(stack);"
    "CREATE INDEX allocations_by_begin ON allocations(begin_event);"
    "CREATE INDEX blocks_by_segment ON blocks(device, segment_address);";

struct database {
    const struct export_job *job;
    struct writer *w;
    sqlite3 *handle;
    sqlite3_stmt *insert;
    int column;
    uint64_t wide_count; /* sizes that exceed INT64_MAX */
};

#define STEPS_BETWEEN_CHECKS 100000

/* --- statements --------------------------------------------------------------------------- */

static void
fail(struct database *d)
{
    int code = sqlite3_errcode(d->handle);
    writer_fail(d->w, code == SQLITE_NOMEM ? DRY_ERR_MEMORY : DRY_ERR_SYSTEM,
                "SQLite: %s", sqlite3_errmsg(d->handle));
}

static void
run_sql(struct database *d, const char *sql)
{
    if (d->w->status == DRY_OK &&
        sqlite3_exec(d->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(d);
}

static void
begin_table(struct database *d, const char *insert)
{
    if (d->w->status == DRY_OK &&
        sqlite3_prepare_v2(d->handle, insert, -1, &d->insert, NULL) != SQLITE_OK)
        fail(d);
    d->column = 0;
}

static void
end_table(struct database *d)
{
    sqlite3_finalize(d->insert);
    d->insert = NULL;
}

/* Insert the row; columns that were not set are NULL. */
static void
end_row(struct database *d)
{
    if (d->w->status == DRY_OK && sqlite3_step(d->insert) != SQLITE_DONE)
        fail(d);
    sqlite3_reset(d->insert);
    sqlite3_clear_bindings(d->insert);
    d->column = 0;
}

static void
check_bound(struct database *d, int code)
{
    if (d->w->status == DRY_OK && code != SQLITE_OK)
        fail(d);
}

static void
put_null(struct database *d)
{
    d->column++;
}

static void
put_signed(struct database *d, int64_t value)
{
    check_bound(d, sqlite3_bind_int64(d->insert, ++d->column, value));
}

static void
put_address(struct database *d, uint64_t value)
{
    put_signed(d, (int64_t)value);
}

static void
put_size(struct database *d, uint64_t value)
{
    d->wide_count += value > INT64_MAX;
    put_signed(d, (int64_t)value);
}

static void
put_index(struct database *d, uint32_t value)
{
    if (value == DRY_NONE)
        put_null(d);
    else
        put_signed(d, value);
}

/* Bind bytes of the trace, made printable. */
static void
put_bytes(struct database *d, const char *bytes, size_t length)
{
    char *text = bytes ? malloc(length + 1) : NULL;
    if (!text) {
        put_null(d);
        if (bytes)
            writer_fail(d->w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    size_t used = term_make_printable(text, length + 1, bytes, length);
    check_bound(
        d, sqlite3_bind_text64(d->insert, ++d->column, text, used, free, SQLITE_UTF8));
}

/* Bind a text that lives until the row is inserted. */
static void
put_constant(struct database *d, const char *text)
{
    check_bound(d, sqlite3_bind_text(d->insert, ++d->column, text, -1, SQLITE_STATIC));
}

static void
put_string(struct database *d, uint32_t string)
{
    size_t length;
    const char *text = dry_trace_string(d->job->study->subject, string, &length);
    put_bytes(d, text, text ? length : 0);
}

/* Bind a string that is a short word in any valid file, cut to EXPORT_NAME_BYTES. */
static void
put_short(struct database *d, uint32_t string)
{
    char name[EXPORT_NAME_BYTES];
    size_t length;
    const char *text = dry_trace_string(d->job->study->subject, string, &length);
    if (text)
        export_short_text(text, length, name);
    put_bytes(d, text ? name : NULL, text ? strlen(name) : 0);
}

static void
put_lane(struct database *d, uint32_t number)
{
    const struct dry_lane *lane =
        dry_trace_get_view(d->job->study->subject)->lanes + number;
    char name[EXPORT_NAME_BYTES];
    const char *pool = export_pool_name(lane, name);
    put_address(d, lane->stream);
    if (lane->pool_known)
        check_bound(
            d, sqlite3_bind_text(d->insert, ++d->column, pool, -1, SQLITE_TRANSIENT));
    else
        put_null(d);
}

static void
put_event(struct database *d, const struct export_point *point)
{
    if (point->has_event)
        put_signed(d, (int64_t)point->event);
    else
        put_null(d);
}

static void
put_point(struct database *d, const struct dry_timeline_view *view, uint32_t moment)
{
    struct export_point point = export_point_at(view, moment);
    put_event(d, &point);
    if (point.has_time)
        put_signed(d, point.time_us);
    else
        put_null(d);
}

/* --- tables of the file ------------------------------------------------------------------- */

static void
put_pair(struct database *d, const char *key, const char *value)
{
    put_constant(d, key);
    put_bytes(d, value, strlen(value));
    end_row(d);
}

static void
write_meta(struct database *d)
{
    begin_table(d, "INSERT INTO meta VALUES(?, ?)");
    put_pair(d, "schema", "drystone.export.sqlite/1");
    put_pair(d, "generator", "drystone " DRY_VERSION);
    put_pair(d, "file", d->job->path);
    put_pair(d, "is_simulated", d->job->study->is_simulated ? "1" : "0");
    end_table(d);
}

static void
write_settings(struct database *d)
{
    const struct dry_trace_view *v = dry_trace_get_view(d->job->study->subject);
    const struct dry_trace_settings *s = &v->settings;
    if (!s->known)
        return;
    begin_table(d, "INSERT INTO settings VALUES(?, ?)");
    put_constant(d, "PYTORCH_CUDA_ALLOC_CONF");
    put_string(d, s->conf);
    end_row(d);
    put_constant(d, "max_split_size");
    put_signed(d, s->max_split_size);
    end_row(d);
    put_constant(d, "garbage_collection_threshold");
    check_bound(
        d, sqlite3_bind_double(d->insert, ++d->column, s->garbage_collection_threshold));
    end_row(d);
    put_constant(d, "expandable_segments");
    put_signed(d, s->expandable_segments);
    end_row(d);
    for (unsigned i = 0; i < 16 && s->roundup_known; i++) {
        char key[48];
        snprintf(key, sizeof key, "roundup_power2_divisions.%u", 1u << i);
        put_bytes(d, key, strlen(key));
        put_size(d, s->roundup_power2_divisions[i]);
        end_row(d);
    }
    end_table(d);
}

static void
write_strings(struct database *d)
{
    const struct dry_trace_view *v = dry_trace_get_view(d->job->study->subject);
    begin_table(d, "INSERT INTO strings VALUES(?, ?)");
    for (uint32_t i = 0; i < v->string_count && d->w->status == DRY_OK; i++) {
        put_signed(d, i);
        put_string(d, i);
        end_row(d);
    }
    end_table(d);
    begin_table(d, "INSERT INTO frames VALUES(?, ?, ?, ?)");
    for (uint32_t i = 0; i < v->frame_count && d->w->status == DRY_OK; i++) {
        put_signed(d, i);
        put_index(d, v->frames[i].name);
        put_index(d, v->frames[i].file);
        put_signed(d, v->frames[i].line);
        end_row(d);
    }
    end_table(d);
}

static void
write_stack(struct database *d, uint32_t stack)
{
    char name[EXPORT_NAME_BYTES];
    size_t count;
    uint32_t owner = export_names_site(d->job->names, stack);
    dry_trace_stack(d->job->study->subject, stack, &count);
    put_signed(d, stack);
    put_signed(d, (int64_t)count);
    put_index(d, owner);
    if (owner != DRY_NONE) {
        export_frame_name(d->job->names, owner, name);
        put_bytes(d, name, strlen(name));
    }
    end_row(d);
}

static void
write_stacks(struct database *d)
{
    const struct dry_trace_view *v = dry_trace_get_view(d->job->study->subject);
    begin_table(d, "INSERT INTO stacks VALUES(?, ?, ?, ?)");
    for (uint32_t i = 0; i < v->stack_count && d->w->status == DRY_OK; i++)
        write_stack(d, i);
    end_table(d);
    begin_table(d, "INSERT INTO stack_frames VALUES(?, ?, ?)");
    for (uint32_t i = 0; i < v->stack_count && d->w->status == DRY_OK; i++) {
        size_t count;
        const uint32_t *frames = dry_trace_stack(d->job->study->subject, i, &count);
        for (size_t k = 0; k < count; k++) {
            put_signed(d, i);
            put_signed(d, (int64_t)k);
            put_signed(d, frames[k]);
            end_row(d);
        }
    }
    end_table(d);
}

static void
write_annotations(struct database *d)
{
    const struct dry_trace_view *v = dry_trace_get_view(d->job->study->subject);
    begin_table(d, "INSERT INTO annotations VALUES(?, ?, ?, ?)");
    for (size_t i = 0; i < v->annotation_count && d->w->status == DRY_OK; i++) {
        put_signed(d, v->annotations[i].device);
        put_index(d, v->annotations[i].name);
        put_short(d, v->annotations[i].stage);
        put_signed(d, v->annotations[i].time_us);
        end_row(d);
    }
    end_table(d);
}

/* --- a device ----------------------------------------------------------------------------- */

static void
write_events(struct database *d, const struct dry_timeline_view *view)
{
    const struct dry_trace_view *v = dry_trace_get_view(view->trace);
    begin_table(d, "INSERT INTO events VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (uint32_t e = 0; e < view->event_count && d->w->status == DRY_OK; e++) {
        size_t i = view->first_event + e;
        const struct dry_note *note = dry_trace_note(view->trace, v->note[i]);
        put_signed(d, (int64_t)i);
        put_signed(d, view->device);
        if (v->action[i] == DRY_ACTION_OTHER && note->action_name != DRY_NONE)
            put_short(d, note->action_name);
        else
            put_constant(d, dry_action_name((enum dry_action)v->action[i]));
        put_address(d, v->addr[i]);
        put_size(d, v->size[i]);
        if (note->flags & DRY_NOTE_NO_TIME)
            put_null(d);
        else
            put_signed(d, v->time_us[i]);
        put_lane(d, v->lane[i]);
        put_index(d, v->stack[i]);
        put_index(d, view->event_allocation[e]);
        put_index(d, note->user_metadata);
        put_index(d, note->compile_context);
        end_row(d);
    }
    end_table(d);
}

static void
write_allocations(struct database *d, const struct dry_timeline_view *view)
{
    begin_table(d, "INSERT INTO allocations VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                   "?, ?, ?, ?, ?, ?)");
    for (uint32_t i = 0; i < view->allocation_count && d->w->status == DRY_OK; i++) {
        const struct dry_allocation *a = view->allocations + i;
        put_signed(d, view->device);
        put_signed(d, i);
        put_address(d, a->address);
        put_size(d, a->size);
        put_size(d, a->requested);
        put_lane(d, a->lane);
        put_point(d, view, a->begin);
        put_point(d, view, a->freed);
        put_point(d, view, a->end);
        put_constant(d, export_fate(view, a));
        put_signed(d, (a->flags & DRY_ALLOCATION_CARRIED_OVER) != 0);
        put_signed(d, (a->flags & DRY_ALLOCATION_SIZE_GUESSED) != 0);
        put_signed(d, (a->flags & DRY_ALLOCATION_STACK_OF_FREE) != 0);
        put_index(d, a->stack);
        end_row(d);
    }
    end_table(d);
}

static void
write_segments(struct database *d, const struct dry_timeline_view *view)
{
    begin_table(d, "INSERT INTO segments VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (uint32_t i = 0; i < view->segment_count && d->w->status == DRY_OK; i++) {
        const struct dry_timeline_segment *s = view->segments + i;
        struct export_point begin = export_point_at(view, s->begin);
        struct export_point end = export_point_at(view, s->end);
        put_signed(d, view->device);
        put_address(d, s->address);
        put_size(d, s->size);
        put_lane(d, s->lane);
        put_signed(d, s->is_large);
        put_signed(d, s->is_expandable);
        put_event(d, &begin);
        put_event(d, &end);
        end_row(d);
    }
    end_table(d);
}

static void
write_blocks(struct database *d, int32_t device, const struct dry_state *state)
{
    begin_table(d, "INSERT INTO blocks VALUES(?, ?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < state->segment_count; i++) {
        const struct dry_state_segment *s = state->segments + i;
        for (size_t k = 0; k < s->block_count && d->w->status == DRY_OK; k++) {
            const struct dry_state_block *b = state->blocks + s->first_block + k;
            put_signed(d, device);
            put_address(d, s->address);
            put_address(d, b->address);
            put_size(d, b->size);
            put_size(d, b->requested);
            put_constant(d, export_block_state_name(b->state));
            put_index(d, b->allocation);
            end_row(d);
        }
    }
    end_table(d);
}

static void
write_steps(struct database *d, size_t device)
{
    const struct dry_timeline_view *view = export_view(d->job, device);
    struct export_steps steps;
    export_steps_init(&steps, d->job->study->devices[device].timeline, d->w);
    begin_table(d, "INSERT INTO steps VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (uint32_t i = 0; i < steps.count && d->w->status == DRY_OK; i++) {
        const struct dry_step *s = steps.all + i;
        put_signed(d, view->device);
        put_signed(d, i);
        put_point(d, view, s->begin);
        put_point(d, view, s->end);
        put_signed(d, s->is_partial);
        put_size(d, s->peak.bytes);
        put_size(d, s->active_end);
        put_size(d, s->reserved_end);
        put_size(d, s->kept_bytes);
        put_size(d, s->alloc_bytes);
        put_signed(d, s->alloc_count);
        end_row(d);
    }
    end_table(d);
    export_steps_finish(&steps);
}

/* Write a device's row. `state` is NULL if the moment of --at is not on this device. */
static void
write_device_row(struct database *d, size_t device, const struct dry_state *state)
{
    const struct dry_timeline_view *v = export_view(d->job, device);
    char name[EXPORT_NAME_BYTES];
    begin_table(d, "INSERT INTO devices VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                   "?, ?, ?, ?, ?, ?, ?)");
    put_signed(d, v->device);
    put_signed(d, (int64_t)v->first_event);
    put_signed(d, v->event_count);
    put_signed(d, v->oom_count);
    for (int i = 0; i < DRY_CURVE_COUNT; i++)
        put_size(d, v->peaks[i].bytes);
    if (state) {
        struct export_point point = export_point_at(v, state->moment);
        const char *at = export_moment_name(d->job, device, name);
        put_bytes(d, at, strlen(at));
        put_event(d, &point);
        const uint64_t sums[] = {state->reserved, state->active,    state->allocated,
                                 state->pending,  state->requested, state->releasable,
                                 state->stranded};
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
            put_size(d, sums[i]);
    } else {
        d->column += 9;
    }
    put_signed(d, v->lost_frees);
    put_signed(d, v->inferred_frees);
    put_signed(d, v->unmatched_frees);
    put_signed(d, v->guessed_sizes);
    end_row(d);
    end_table(d);
}

static void
write_device(struct database *d, size_t device)
{
    const struct dry_timeline_view *view = export_view(d->job, device);
    struct dry_state *state = NULL;
    struct dry_error err;
    if (d->job->moments[device] != DRY_NONE &&
        dry_state_create(d->job->study->devices[device].timeline, d->job->moments[device],
                         &state, &err) != DRY_OK) {
        writer_fail(d->w, err.status, "%s", err.text);
        return;
    }
    write_device_row(d, device, state);
    if (state)
        write_blocks(d, view->device, state);
    dry_state_destroy(state);
    write_events(d, view);
    write_allocations(d, view);
    write_segments(d, view);
    write_steps(d, device);
}

static void
write_all(struct database *d)
{
    run_sql(d, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
               "PRAGMA locking_mode = EXCLUSIVE; BEGIN;");
    run_sql(d, schema);
    write_meta(d);
    write_settings(d);
    write_strings(d);
    write_stacks(d);
    write_annotations(d);
    for (size_t i = 0; i < d->job->study->device_count; i++) {
        if (d->w->status == DRY_OK)
            write_device(d, i);
    }
    run_sql(d, indices);
    run_sql(d, "COMMIT;");
}

/* Tell SQLite to abort the statement if a signal has arrived. */
static int
check_for_signals(void *self)
{
    const struct database *d = self;
    return output_is_interrupted(d->job->output);
}

static void
write_sqlite(const struct export_job *job, struct writer *w)
{
    struct database d = {.job = job, .w = w};
    int code =
        sqlite3_open_v2(job->database_path, &d.handle, SQLITE_OPEN_READWRITE, NULL);
    if (!d.handle)
        writer_fail(w, DRY_ERR_MEMORY, "no memory for SQLite");
    else if (code != SQLITE_OK)
        fail(&d);
    if (w->status == DRY_OK) {
        sqlite3_progress_handler(d.handle, STEPS_BETWEEN_CHECKS, check_for_signals, &d);
        write_all(&d);
    }
    if (sqlite3_close(d.handle) != SQLITE_OK)
        fail(&d);
    if (d.wide_count > 0)
        export_note(job, "%llu size%s of 2^63 or more %s negative in the database",
                    (unsigned long long)d.wide_count, d.wide_count == 1 ? "" : "s",
                    d.wide_count == 1 ? "is" : "are");
}

const struct export_format export_sqlite = {
    .name = "sqlite",
    .endings = {".sqlite", ".db", ".sqlite3"},
    .is_database = true,
    .needs_moment = true,
    .write = write_sqlite,
};
