/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are read strictly, by tool/base/json_in.h. Texts are copied into one buffer as long
 * as the row: no text is longer than the JSON that it stands in.
 */
#include "fleet/fleet_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json_in.h"

struct reader {
    struct json_in in;
    struct fleet_row *row;
    size_t text_used;
};

static const char *const state_names[] = {"fine", "unreadable", "empty"};

const char *
fleet_row_state_name(enum fleet_row_state state)
{
    return state_names[state];
}

/* --- values ------------------------------------------------------------------------------- */

static uint64_t
take_number(struct reader *r, const struct json_at *object, const char *key)
{
    struct json_at at = json_in_key(object, key);
    return json_in_unsigned(&r->in, &at);
}

static uint32_t
take_small(struct reader *r, const struct json_at *object, const char *key, uint32_t max)
{
    struct json_at at = json_in_key(object, key);
    uint64_t value = json_in_unsigned(&r->in, &at);
    if (value > max)
        json_in_fail(&r->in, &at, "more than %u", max);
    return value > max ? 0 : (uint32_t)value;
}

static bool
take_flag(struct reader *r, const struct json_at *object, const char *key)
{
    struct json_at at = json_in_key(object, key);
    return json_in_flag(&r->in, &at, false);
}

static const char *
take_text(struct reader *r, const struct json_at *object, const char *key)
{
    struct json_at at = json_in_key(object, key);
    const char *text = json_in_text(&r->in, &at, "");
    if (!*text)
        return "";
    char *copy = r->row->texts + r->text_used;
    size_t size = strlen(text) + 1;
    memcpy(copy, text, size);
    r->text_used += size;
    return copy;
}

typedef const char *names_function(unsigned index);

/* Read a word as the number of its name. */
static unsigned
take_word(struct reader *r, const struct json_at *object, const char *key,
          names_function *name, unsigned count)
{
    struct json_at at = json_in_key(object, key);
    const char *text = json_in_text(&r->in, &at, "");
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(text, name(i)) == 0)
            return i;
    }
    json_in_fail(&r->in, &at, "not a word that is known here");
    return 0;
}

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

/* The length of a list, which `max` bounds. */
static size_t
take_count(struct reader *r, const struct json_at *list, size_t max)
{
    size_t count = json_in_list(&r->in, list);
    if (count > max)
        json_in_fail(&r->in, list, "more than %zu", max);
    return count > max ? 0 : count;
}

static void *
take_memory(struct reader *r, size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory && r->in.status == DRY_OK)
        r->in.status = fail_at(r->in.err, DRY_ERR_MEMORY, DRY_NO_OFFSET, "no memory");
    return memory;
}

/* --- parts -------------------------------------------------------------------------------- */

static void
read_lines(struct reader *r, const struct json_at *root)
{
    static const char *const keys[] = {"name",  "function", "line",
                                       "bytes", "count",    NULL};
    struct fleet_row *row = r->row;
    struct json_at list = json_in_key(root, "lines");
    size_t count = take_count(r, &list, FLEET_LINES_MAX);
    row->lines = take_memory(r, count, sizeof *row->lines);
    for (size_t i = 0; row->lines && i < count; i++) {
        struct json_at at = json_in_element(&list, i);
        json_in_object(&r->in, &at, keys);
        row->lines[i] = (struct fleet_line){
            .name = take_text(r, &at, "name"),
            .function = take_text(r, &at, "function"),
            .line = take_small(r, &at, "line", UINT32_MAX),
            .bytes = take_number(r, &at, "bytes"),
            .count = take_number(r, &at, "count"),
        };
        row->line_count = i + 1;
    }
    row->rest_bytes = take_number(r, root, "rest_bytes");
}

static void
read_steps(struct reader *r, const struct json_at *root)
{
    static const char *const keys[] = {"count", "first_peak", "peaks", "growth_per_step",
                                       NULL};
    struct fleet_row *row = r->row;
    struct json_at at = json_in_key(root, "steps"), list = json_in_key(&at, "peaks");
    json_in_object(&r->in, &at, keys);
    row->step_count = take_number(r, &at, "count");
    row->first_peak = take_number(r, &at, "first_peak");
    row->growth_per_step = take_number(r, &at, "growth_per_step");
    size_t count = take_count(r, &list, FLEET_STEPS_MAX);
    if (row->first_peak > row->step_count || row->step_count - row->first_peak != count)
        json_in_fail(&r->in, &list, "not the peaks of the last steps");
    row->peaks = take_memory(r, count, sizeof *row->peaks);
    for (size_t i = 0; row->peaks && i < count; i++) {
        struct json_at peak = json_in_element(&list, i);
        row->peaks[i] = json_in_unsigned(&r->in, &peak);
        row->peak_count = i + 1;
    }
}

static void
read_growth(struct reader *r, const struct json_at *root)
{
    static const char *const keys[] = {"line", "bytes_per_step", "percent", NULL};
    struct json_at at = json_in_key(root, "growth");
    r->row->growth.line = "";
    if (!at.value || json_is_null(at.value))
        return;
    json_in_object(&r->in, &at, keys);
    r->row->growth = (struct fleet_growth){
        .line = take_text(r, &at, "line"),
        .bytes_per_step = take_number(r, &at, "bytes_per_step"),
        .percent = take_small(r, &at, "percent", 100),
    };
}

static void
read_oom(struct reader *r, const struct json_at *root)
{
    static const char *const keys[] = {"time_us",
                                       "request_bytes",
                                       "device_free_bytes",
                                       "short_bytes",
                                       "line",
                                       "pass",
                                       "step",
                                       NULL};
    struct fleet_oom *oom = &r->row->oom;
    struct json_at at = json_in_key(root, "oom"), time = json_in_key(&at, "time_us");
    oom->line = "";
    if (!at.value || json_is_null(at.value))
        return;
    json_in_object(&r->in, &at, keys);
    oom->is_there = true;
    oom->has_time = time.value && !json_is_null(time.value);
    if (oom->has_time)
        oom->time_us = json_in_unsigned(&r->in, &time);
    oom->request_bytes = take_number(r, &at, "request_bytes");
    oom->device_free_bytes = take_number(r, &at, "device_free_bytes");
    oom->short_bytes = take_number(r, &at, "short_bytes");
    oom->line = take_text(r, &at, "line");
    oom->pass = (enum dry_pass)take_word(r, &at, "pass", name_pass, DRY_PASS_COUNT);
    oom->step = take_number(r, &at, "step");
}

static void
read_others(struct reader *r, const struct json_at *root)
{
    static const char *const keys[] = {"device", "reserved_bytes", NULL};
    struct json_at list = json_in_key(root, "others");
    size_t count = take_count(r, &list, FLEET_OTHERS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct json_at at = json_in_element(&list, i);
        json_in_object(&r->in, &at, keys);
        r->row->others[i].device = take_small(r, &at, "device", INT32_MAX);
        r->row->others[i].reserved_bytes = take_number(r, &at, "reserved_bytes");
    }
    r->row->other_count = count;
}

static void
read_categories(struct reader *r, const struct json_at *root)
{
    const char *keys[DRY_CATEGORY_COUNT + 1] = {NULL};
    struct json_at at = json_in_key(root, "categories");
    for (unsigned i = 0; i < DRY_CATEGORY_COUNT; i++)
        keys[i] = dry_category_name((enum dry_category)i);
    json_in_object(&r->in, &at, keys);
    for (unsigned i = 0; i < DRY_CATEGORY_COUNT; i++)
        r->row->category_bytes[i] = take_number(r, &at, keys[i]);
}

static void
read_state(struct reader *r, const struct json_at *root)
{
    static const char *const keys[] = {"reserved", "active",       "allocated",
                                       "rounding", "pending",      "releasable",
                                       "stranded", "private_free", NULL};
    struct fleet_row *row = r->row;
    struct json_at at = json_in_key(root, "at");
    json_in_object(&r->in, &at, keys);
    row->reserved = take_number(r, &at, "reserved");
    row->active = take_number(r, &at, "active");
    row->allocated = take_number(r, &at, "allocated");
    row->rounding = take_number(r, &at, "rounding");
    row->pending = take_number(r, &at, "pending");
    row->releasable = take_number(r, &at, "releasable");
    row->stranded = take_number(r, &at, "stranded");
    row->private_free = take_number(r, &at, "private_free");
}

static void
read_times(struct reader *r, const struct json_at *root)
{
    struct json_at first = json_in_key(root, "first_us");
    r->row->has_time = first.value && !json_is_null(first.value);
    if (!r->row->has_time)
        return;
    r->row->first_us = json_in_unsigned(&r->in, &first);
    r->row->last_us = take_number(r, root, "last_us");
}

static void
read_figures(struct reader *r, const struct json_at *root)
{
    struct fleet_row *row = r->row;
    row->device = take_small(r, root, "device", INT32_MAX);
    row->is_simulated = take_flag(r, root, "simulated");
    row->begins_cold = take_flag(r, root, "begins_cold");
    row->event_count = take_number(r, root, "events");
    read_times(r, root);
    row->reserved_peak = take_number(r, root, "reserved_peak");
    row->active_peak = take_number(r, root, "active_peak");
    row->allocated_peak = take_number(r, root, "allocated_peak");
    row->retries = take_number(r, root, "retries");
    row->oom_count = take_number(r, root, "ooms");
    row->cause = (enum dry_cause)take_word(r, root, "cause", name_cause, DRY_CAUSE_COUNT);
    row->confidence = take_small(r, root, "confidence", 100);
    row->trust =
        (enum dry_trust)take_word(r, root, "trust", name_trust, DRY_TRUST_LOW + 1);
    row->is_checked = take_flag(r, root, "checked");
    row->is_exact = take_flag(r, root, "exact");
    row->conf = take_text(r, root, "conf");
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
read_row(struct reader *r, const struct json_at *root)
{
    struct fleet_row *row = r->row;
    struct json_at schema = json_in_key(root, "schema");
    json_in_object(&r->in, root, row_keys);
    if (strcmp(json_in_text(&r->in, &schema, ""), "drystone.fleet.row/1") != 0)
        json_in_fail(&r->in, &schema, "not drystone.fleet.row/1");
    row->state = (enum fleet_row_state)take_word(r, root, "state", name_state, 3);
    row->why = take_text(r, root, "why");
    row->file_bytes = take_number(r, root, "file_bytes");
    row->hash = strtoull(take_text(r, root, "hash"), NULL, 16);
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
    struct reader r = {.in = {.err = err}, .row = row};
    json_t *value = NULL;
    *row = (struct fleet_row){.why = "", .conf = "", .oom.line = "", .growth.line = ""};
    enum dry_status status = json_in_parse(text, length, &value, err);
    if (status != DRY_OK)
        return status;
    row->texts = malloc(length + 1);
    if (row->texts) {
        struct json_at root = {.value = value};
        read_row(&r, &root);
    } else {
        r.in.status = fail_at(err, DRY_ERR_MEMORY, DRY_NO_OFFSET, "no memory");
    }
    json_decref(value);
    return r.in.status;
}

void
fleet_row_finish(struct fleet_row *row)
{
    free(row->texts);
    free(row->lines);
    free(row->peaks);
    *row = (struct fleet_row){0};
}
