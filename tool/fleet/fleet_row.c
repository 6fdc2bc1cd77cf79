/* SPDX-License-Identifier: Apache-2.0 */
/* Read a row from the JSON that fleet_row_make.c wrote. */
#include "fleet/fleet_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_in.h"

static const char *const state_names[] = {"fine", "unreadable", "empty"};

const char *
fleet_row_state_name(enum fleet_row_state state)
{
    return state_names[state];
}

/* --- values ------------------------------------------------------------------------------- */

static const char *
name_state(unsigned i)
{
    return state_names[i];
}

static const char *
name_cause(unsigned i)
{
    return dry_cause_name((enum dry_cause)i);
}

static const char *
name_trust(unsigned i)
{
    return dry_trust_name((enum dry_trust)i);
}

static const char *
name_pass(unsigned i)
{
    return dry_pass_name((enum dry_pass)i);
}

/* --- objects and lists -------------------------------------------------------------------- */

static void
read_lines(struct fleet_in *r, const struct json_at *root)
{
    static const char *const keys[] = {"name",  "function", "line",
                                       "bytes", "count",    NULL};
    struct fleet_row *row = r->into;
    struct json_at list = json_in_key(root, "lines");
    size_t count = fleet_in_count(r, &list, FLEET_LINES_MAX);
    row->lines = fleet_in_memory(r, count, sizeof *row->lines);
    for (size_t i = 0; row->lines && i < count; i++) {
        struct json_at at = json_in_element(&list, i);
        json_in_object(&r->in, &at, keys);
        row->lines[i] = (struct fleet_line){
            .name = fleet_in_text(r, &at, "name"),
            .function = fleet_in_text(r, &at, "function"),
            .line = fleet_in_small(r, &at, "line", UINT32_MAX),
            .bytes = fleet_in_number(r, &at, "bytes"),
            .count = fleet_in_number(r, &at, "count"),
        };
        row->line_count = i + 1;
    }
    row->rest_bytes = fleet_in_number(r, root, "rest_bytes");
}

static void
read_steps(struct fleet_in *r, const struct json_at *root)
{
    static const char *const keys[] = {"count", "first_peak", "peaks", "growth_per_step",
                                       NULL};
    struct fleet_row *row = r->into;
    struct json_at at = json_in_key(root, "steps"), list = json_in_key(&at, "peaks");
    json_in_object(&r->in, &at, keys);
    row->step_count = fleet_in_number(r, &at, "count");
    row->first_peak = fleet_in_number(r, &at, "first_peak");
    row->growth_per_step = fleet_in_number(r, &at, "growth_per_step");
    size_t count = fleet_in_count(r, &list, FLEET_STEPS_MAX);
    if (row->first_peak > row->step_count || row->step_count - row->first_peak != count)
        json_in_fail(&r->in, &list, "not the peaks of the last steps");
    row->peaks = fleet_in_memory(r, count, sizeof *row->peaks);
    for (size_t i = 0; row->peaks && i < count; i++) {
        row->peaks[i] = json_in_unsigned(&r->in, json_in_element(&list, i));
        row->peak_count = i + 1;
    }
}

static void
read_growth(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    static const char *const keys[] = {"line", "bytes_per_step", "percent", NULL};
    struct json_at at = json_in_key(root, "growth");
    row->growth.line = "";
    if (!at.value || json_is_null(at.value))
        return;
    json_in_object(&r->in, &at, keys);
    row->growth = (struct fleet_growth){
        .line = fleet_in_text(r, &at, "line"),
        .bytes_per_step = fleet_in_number(r, &at, "bytes_per_step"),
        .percent = fleet_in_small(r, &at, "percent", 100),
    };
}

static void
read_oom(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    static const char *const keys[] = {"time_us",
                                       "request_bytes",
                                       "device_free_bytes",
                                       "short_bytes",
                                       "line",
                                       "pass",
                                       "step",
                                       NULL};
    struct fleet_oom *oom = &row->oom;
    struct json_at at = json_in_key(root, "oom"), time = json_in_key(&at, "time_us");
    oom->line = "";
    if (!at.value || json_is_null(at.value))
        return;
    json_in_object(&r->in, &at, keys);
    oom->is_there = true;
    oom->has_time = time.value && !json_is_null(time.value);
    if (oom->has_time)
        oom->time_us = json_in_unsigned(&r->in, time);
    oom->request_bytes = fleet_in_number(r, &at, "request_bytes");
    oom->device_free_bytes = fleet_in_number(r, &at, "device_free_bytes");
    oom->short_bytes = fleet_in_number(r, &at, "short_bytes");
    oom->line = fleet_in_text(r, &at, "line");
    oom->pass = (enum dry_pass)fleet_in_word(r, &at, "pass", name_pass, DRY_PASS_COUNT);
    oom->step = fleet_in_number(r, &at, "step");
}

static void
read_others(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    static const char *const keys[] = {"device", "reserved_bytes", NULL};
    struct json_at list = json_in_key(root, "others");
    size_t count = fleet_in_count(r, &list, FLEET_OTHERS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct json_at at = json_in_element(&list, i);
        json_in_object(&r->in, &at, keys);
        row->others[i].device = fleet_in_small(r, &at, "device", INT32_MAX);
        row->others[i].reserved_bytes = fleet_in_number(r, &at, "reserved_bytes");
    }
    row->other_count = count;
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
        row->category_bytes[i] = fleet_in_number(r, &at, keys[i]);
}

static void
read_state(struct fleet_in *r, const struct json_at *root)
{
    static const char *const keys[] = {"reserved", "active",       "allocated",
                                       "rounding", "pending",      "releasable",
                                       "stranded", "private_free", NULL};
    struct fleet_row *row = r->into;
    struct json_at at = json_in_key(root, "at");
    json_in_object(&r->in, &at, keys);
    row->reserved = fleet_in_number(r, &at, "reserved");
    row->active = fleet_in_number(r, &at, "active");
    row->allocated = fleet_in_number(r, &at, "allocated");
    row->rounding = fleet_in_number(r, &at, "rounding");
    row->pending = fleet_in_number(r, &at, "pending");
    row->releasable = fleet_in_number(r, &at, "releasable");
    row->stranded = fleet_in_number(r, &at, "stranded");
    row->private_free = fleet_in_number(r, &at, "private_free");
}

static void
read_times(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    struct json_at first = json_in_key(root, "first_us");
    row->has_time = first.value && !json_is_null(first.value);
    if (!row->has_time)
        return;
    row->first_us = json_in_unsigned(&r->in, first);
    row->last_us = fleet_in_number(r, root, "last_us");
}

static void
read_figures(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    row->device = fleet_in_small(r, root, "device", INT32_MAX);
    row->is_simulated = fleet_in_flag(r, root, "simulated");
    row->begins_cold = fleet_in_flag(r, root, "begins_cold");
    row->event_count = fleet_in_number(r, root, "events");
    read_times(r, root);
    row->reserved_peak = fleet_in_number(r, root, "reserved_peak");
    row->active_peak = fleet_in_number(r, root, "active_peak");
    row->allocated_peak = fleet_in_number(r, root, "allocated_peak");
    row->retries = fleet_in_number(r, root, "retries");
    row->oom_count = fleet_in_number(r, root, "ooms");
    row->cause =
        (enum dry_cause)fleet_in_word(r, root, "cause", name_cause, DRY_CAUSE_COUNT);
    row->confidence = fleet_in_small(r, root, "confidence", 100);
    row->trust =
        (enum dry_trust)fleet_in_word(r, root, "trust", name_trust, DRY_TRUST_LOW + 1);
    row->is_checked = fleet_in_flag(r, root, "checked");
    row->is_exact = fleet_in_flag(r, root, "exact");
    row->conf = fleet_in_text(r, root, "conf");
}

/* --- a row -------------------------------------------------------------------------------- */

static const char *const row_keys[] = {
    "schema",  "state",         "why",         "file_bytes",     "hash",
    "device",  "simulated",     "begins_cold", "events",         "first_us",
    "last_us", "reserved_peak", "active_peak", "allocated_peak", "at",
    "retries", "ooms",          "oom",         "cause",          "confidence",
    "trust",   "checked",       "exact",       "conf",           "steps",
    "growth",  "lines",         "rest_bytes",  "categories",     "others",
    NULL};

static void
read_row(struct fleet_in *r, const struct json_at *root)
{
    struct fleet_row *row = r->into;
    json_in_object(&r->in, root, row_keys);
    fleet_in_schema(r, root, "drystone.fleet.row/1");
    row->state = (enum fleet_row_state)fleet_in_word(r, root, "state", name_state, 3);
    row->why = fleet_in_text(r, root, "why");
    row->file_bytes = fleet_in_number(r, root, "file_bytes");
    row->hash = strtoull(fleet_in_text(r, root, "hash"), NULL, 16);
    if (row->state != FLEET_ROW_FINE)
        return;
    read_figures(r, root);
    read_state(r, root);
    read_oom(r, root);
    read_steps(r, root);
    read_growth(r, root);
    read_lines(r, root);
    read_categories(r, root);
    read_others(r, root);
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
    *row = (struct fleet_row){0};
}
