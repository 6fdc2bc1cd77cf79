/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a row, and how it is read from the JSON that fleet_row_make.c wrote. */
#include "fleet/fleet_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "fleet/fleet_in.h"

/* --- tables ------------------------------------------------------------------------------- */

static const char *
name_state(unsigned state)
{
    static const char *const names[] = {"fine", "unreadable", "empty"};
    return names[state];
}

/* clang-format off */
FIELDS_WORD(name_cause, dry_cause_name, enum dry_cause)
FIELDS_WORD(name_trust, dry_trust_name, enum dry_trust)
FIELDS_WORD(name_pass, dry_pass_name, enum dry_pass)

#define ALWAYS DRY_KNOWN_ALWAYS, 0, false
#define ROW(...) DRY_FIELD_OF(struct fleet_row, __VA_ARGS__)
#define BYTES(key, member, meaning) ROW(key, U64, BYTES, member, ALWAYS, meaning)
#define TIMED DRY_KNOWN_IF, offsetof(struct fleet_row, has_time), false

static const struct dry_field head_rows[] = {
    DRY_WORD_OF(struct fleet_row, "state", state, name_state, 3, ALWAYS, "whether it has figures"),
    ROW("why", TEXT, NONE, why, ALWAYS, "why there are none"),
    BYTES("file_bytes", file_bytes, "length of the file"),
};
const struct dry_fields fleet_head_fields = {head_rows, sizeof head_rows / sizeof *head_rows};

static const struct dry_field figure_rows[] = {
    ROW("device", U32, NONE, device, ALWAYS, "the device"),
    ROW("simulated", BOOL, NONE, is_simulated, ALWAYS, "the file has no addresses"),
    ROW("begins_cold", BOOL, NONE, begins_cold, ALWAYS, "nothing was alive before the recording"),
    ROW("events", U64, COUNT, event_count, ALWAYS, "events of the device"),
    ROW("first_us", U64, MICROSECONDS, first_us, TIMED, "the first event by the host's clock"),
    ROW("last_us", U64, MICROSECONDS, last_us, TIMED, "the last event"),
    BYTES("reserved_peak", reserved_peak, "reserved at the peak"),
    BYTES("allocated_peak", allocated_peak, "allocated at the peak"),
    BYTES("active_peak", active_peak, "active at the peak"),
    BYTES("reserved", at.reserved, "reserved at the out-of-memory, else the peak"),
    BYTES("active", at.active, "active then"),
    BYTES("allocated", at.allocated, "allocated then"),
    BYTES("rounding", at.rounding, "active then, but not requested"),
    BYTES("pending", at.pending, "freed then, and waiting for a stream"),
    BYTES("releasable", at.releasable, "free then, and the driver could have them back"),
    BYTES("stranded", at.stranded, "free then, and the driver could not"),
    BYTES("private_free", at.private_free, "of the stranded bytes: in private pools"),
    ROW("retries", U64, COUNT, retries, ALWAYS, "requests served on a retry alone"),
    ROW("ooms", U64, COUNT, oom_count, ALWAYS, "out-of-memory errors"),
    DRY_WORD_OF(struct fleet_row, "verdict", cause, name_cause, DRY_CAUSE_COUNT, ALWAYS,
                "the verdict of drystone explain"),
    ROW("confidence", U32, PERCENT, confidence, ALWAYS, "how sure it is"),
    DRY_WORD_OF(struct fleet_row, "trust", trust, name_trust, DRY_TRUST_LOW + 1, ALWAYS,
                "how far it can be trusted"),
    ROW("checked", BOOL, NONE, is_checked, ALWAYS, "a replay could be checked against the record"),
    ROW("exact", BOOL, NONE, is_exact, ALWAYS, "it came out exactly"),
    ROW("conf", TEXT, NONE, conf, ALWAYS, "PYTORCH_CUDA_ALLOC_CONF"),
    ROW("steps", U64, COUNT, step_count, ALWAYS, "complete steps, and one that ran out of memory"),
    ROW("first_peak", U64, COUNT, first_peak, ALWAYS, "the step of the first peak that is kept"),
    BYTES("growth_per_step", growth_per_step, "growth a step"),
    BYTES("rest_bytes", rest_bytes, "active then, of lines that are not listed"),
};
const struct dry_fields fleet_row_fields = {figure_rows, sizeof figure_rows / sizeof *figure_rows};

#define OOM(...) DRY_FIELD_OF(struct fleet_oom, __VA_ARGS__)
static const struct dry_field oom_rows[] = {
    OOM("time_us", U64, MICROSECONDS, time_us, DRY_KNOWN_IF, offsetof(struct fleet_oom, has_time), false,
        "when it failed by the host's clock"),
    OOM("request_bytes", U64, BYTES, request_bytes, ALWAYS, "requested"),
    OOM("device_free_bytes", U64, BYTES, device_free_bytes, ALWAYS, "free on the device"),
    OOM("short_bytes", U64, BYTES, short_bytes, ALWAYS, "missing"),
    DRY_WORD_OF(struct fleet_oom, "pass", pass, name_pass, DRY_PASS_COUNT, ALWAYS, "in which pass"),
    OOM("steps_done", U64, COUNT, step, ALWAYS, "complete steps before it"),
    OOM("line", TEXT, NONE, line, DRY_KNOWN_IF_FILLED, offsetof(struct fleet_oom, line), false,
        "the line that requested"),
};
const struct dry_fields fleet_oom_fields = {oom_rows, sizeof oom_rows / sizeof *oom_rows};

#define GROWTH(...) DRY_FIELD_OF(struct fleet_growth, __VA_ARGS__)
static const struct dry_field growth_rows[] = {
    GROWTH("line", TEXT, NONE, line, ALWAYS, "the line that grows most"),
    GROWTH("bytes_per_step", U64, BYTES, bytes_per_step, ALWAYS, "growth a step"),
    GROWTH("percent", U32, PERCENT, percent, ALWAYS, "how sure it is"),
};
const struct dry_fields fleet_growth_fields = {growth_rows, sizeof growth_rows / sizeof *growth_rows};

#define LINE(...) DRY_FIELD_OF(struct fleet_line, __VA_ARGS__)
static const struct dry_field line_rows[] = {
    LINE("name", TEXT, NONE, name, ALWAYS, "the line"),
    LINE("function", TEXT, NONE, function, ALWAYS, "the same without its number"),
    LINE("line", U32, NONE, line, ALWAYS, "its number"),
    LINE("bytes", U64, BYTES, bytes, ALWAYS, "held"),
    LINE("count", U64, COUNT, count, ALWAYS, "in so many allocations"),
};
const struct dry_fields fleet_line_fields = {line_rows, sizeof line_rows / sizeof *line_rows};

#define OTHER(...) DRY_FIELD_OF(struct fleet_other, __VA_ARGS__)
static const struct dry_field other_rows[] = {
    OTHER("device", U32, NONE, device, ALWAYS, "another device of the file"),
    OTHER("reserved_bytes", U64, BYTES, reserved_bytes, ALWAYS, "reserved there at the end"),
};
const struct dry_fields fleet_other_fields = {other_rows, sizeof other_rows / sizeof *other_rows};
/* clang-format on */

/* --- reading ------------------------------------------------------------------------------ */

static void
read_peaks(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    struct json_at list = json_in_key(root, "peaks");
    size_t count = fleet_in_count(r, &list, FLEET_STEPS_MAX);
    if (row->first_peak > row->step_count || row->step_count - row->first_peak != count)
        json_in_fail(&r->in, &list, "not the peaks of the last steps");
    row->peaks = fleet_in_memory(r, count, sizeof *row->peaks);
    for (size_t i = 0; row->peaks && i < count; i++) {
        row->peaks[i] = json_in_unsigned(&r->in, json_in_element(&list, i));
        row->peak_count = i + 1;
    }
}

/* Read an object that may be null. Returns false if it is. */
static bool
read_object(struct fleet_in *r, const struct json_at *root, const char *key,
            struct dry_fields fields, void *into)
{
    struct json_at at = json_in_key(root, key);
    if (json_is_null(at.value))
        return false;
    fleet_in_check_keys(r, &at, fields, NULL);
    fleet_in_fields(r, &at, fields, into);
    return true;
}

static void
read_categories(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    const char *keys[DRY_CATEGORY_COUNT + 1] = {NULL};
    struct json_at at = json_in_key(root, "categories");
    for (unsigned i = 0; i < DRY_CATEGORY_COUNT; i++)
        keys[i] = dry_category_name((enum dry_category)i);
    json_in_object(&r->in, &at, keys);
    for (unsigned i = 0; i < DRY_CATEGORY_COUNT; i++)
        row->category_bytes[i] = json_in_unsigned(&r->in, json_in_key(&at, keys[i]));
}

static void
read_row(struct fleet_in *r, const struct json_at *root)
{
    static const char *const keys[] = {"schema", "state",      "why",    "file_bytes",
                                       "hash",   "oom",        "growth", "peaks",
                                       "lines",  "categories", "others", NULL};
    struct fleet_row *row = r->into;
    struct json_at lines = json_in_key(root, "lines"),
                   others = json_in_key(root, "others");
    fleet_in_schema(r, root, FLEET_ROW_SCHEMA);
    fleet_in_check_keys(r, root, fleet_row_fields, keys);
    fleet_in_fields(r, root, fleet_head_fields, row);
    row->hash = strtoull(json_in_text(&r->in, json_in_key(root, "hash"), ""), NULL, 16);
    if (row->state != FLEET_ROW_FINE)
        return;
    fleet_in_fields(r, root, fleet_row_fields, row);
    row->oom.is_there = read_object(r, root, "oom", fleet_oom_fields, &row->oom);
    read_object(r, root, "growth", fleet_growth_fields, &row->growth);
    read_peaks(r, root);
    row->lines = fleet_in_list(r, &lines, fleet_line_fields, sizeof *row->lines,
                               FLEET_LINES_MAX, &row->line_count);
    read_categories(r, root);
    row->others = fleet_in_list(r, &others, fleet_other_fields, sizeof *row->others,
                                FLEET_OTHERS_MAX, &row->other_count);
}

enum dry_status
fleet_row_read(const char *text, size_t length, struct fleet_row *row,
               struct dry_error *err)
{
    struct fleet_in r = {.into = row};
    *row = (struct fleet_row){.why = "", .conf = "", .oom.line = "", .growth.line = ""};
    enum dry_status status = fleet_in_read(&r, text, length, read_row, err);
    row->texts = r.texts;
    return status;
}

void
fleet_row_finish(struct fleet_row *row)
{
    free(row->texts);
    free(row->lines);
    free(row->peaks);
    free(row->others);
    *row = (struct fleet_row){0};
}
