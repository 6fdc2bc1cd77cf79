/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make a row of a file: read it, replay it under its own settings, explain it without
 * replaying others, write JSON. Nothing is printed, and only the text is kept. Cost: that
 * of `drystone explain --runs 0`. The hash of the bytes only finds equal files: it is not
 * safe against forgery, so the length is compared, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>
#include <drystone/explanation.h>

#include "base/json_out.h"
#include "fleet/fleet_row.h"
#include "fleet/fleet_study.h"

/* --- objects of the row ------------------------------------------------------------------- */

static json_t *
make_state(const struct dry_state *s)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reserved",
                     json_out_number(s->reserved), "active", json_out_number(s->active),
                     "allocated", json_out_number(s->allocated), "rounding",
                     json_out_number(s->rounding), "pending", json_out_number(s->pending),
                     "releasable", json_out_number(s->releasable), "stranded",
                     json_out_number(s->stranded), "private_free",
                     json_out_number(s->private_free));
}

/* Make a name without line number: "models.py:174 f" becomes "models.py f". */
static json_t *
make_function(const struct fleet_study *s, const struct dry_owner *o, uint32_t *line)
{
    char number[16];
    *line = 0;
    if (o->frame == DRY_NONE)
        return json_out_text(o->name, o->name_length);
    *line = dry_trace_get_view(s->subject)->frames[o->frame].line;
    int length = snprintf(number, sizeof number, ":%" PRIu32, *line);
    const char *at = strstr(o->name, number);
    if (!at || length <= 0)
        return json_out_text(o->name, o->name_length);
    char *text = malloc(o->name_length + 1);
    if (!text)
        return NULL;
    size_t before = (size_t)(at - o->name),
           after = o->name_length - before - (size_t)length;
    memcpy(text, o->name, before);
    memcpy(text + before, at + length, after);
    json_t *function = json_out_text(text, before + after);
    free(text);
    return function;
}

static json_t *
make_line(const struct fleet_study *s, const struct dry_owner *o)
{
    uint32_t line;
    json_t *function = make_function(s, o, &line);
    return json_pack("{s:o, s:o, s:I, s:o, s:I}", "name",
                     json_out_text(o->name, o->name_length), "function", function, "line",
                     (json_int_t)line, "bytes", json_out_number(o->bytes), "count",
                     (json_int_t)o->count);
}

static json_t *
make_lines(const struct fleet_study *s, uint64_t *rest)
{
    size_t count;
    const struct dry_owner *owners = dry_owners_get(s->view->owners, &count);
    json_t *list = json_array();
    *rest = 0;
    for (size_t i = 0; i < count; i++) {
        if (i < FLEET_LINES_MAX)
            list = json_out_append(list, make_line(s, &owners[i]));
        else
            *rest += owners[i].bytes;
    }
    return list;
}

static json_t *
make_categories(const struct dry_explanation_view *v)
{
    json_t *object = json_object();
    for (unsigned i = 0; object && i < DRY_CATEGORY_COUNT; i++) {
        json_t *bytes = json_out_number(v->category_bytes[i]);
        if (json_object_set_new(object, dry_category_name((enum dry_category)i), bytes)) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* Return true for a complete step, and for one that ended by running out of memory. */
static bool
does_count(const struct fleet_study *s, const struct dry_step *step)
{
    const struct dry_timeline_view *t = dry_timeline_get_view(s->timeline);
    bool has_oom =
        t->oom_count > 0 && t->oom_event >= step->begin && t->oom_event <= step->end;
    return !step->is_partial || has_oom;
}

static json_t *
make_steps(const struct fleet_study *s)
{
    uint32_t count = 0, of_all = 0, seen = 0;
    const struct dry_steps *steps = s->view->steps;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    if (dry_steps_get_source(steps) == DRY_STEPS_NONE)
        count = 0;
    for (uint32_t i = 0; i < count; i++)
        of_all += does_count(s, &rows[i]);
    uint32_t first = of_all > FLEET_STEPS_MAX ? of_all - FLEET_STEPS_MAX : 0;
    json_t *peaks = json_array();
    for (uint32_t i = 0; i < count; i++) {
        if (does_count(s, &rows[i]) && seen++ >= first)
            peaks = json_out_append(peaks, json_out_number(rows[i].peak.bytes));
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "count", (json_int_t)of_all, "first_peak",
                     (json_int_t)first, "peaks", peaks, "growth_per_step",
                     json_out_number(count ? dry_steps_growth_per_step(steps) : 0));
}

static json_t *
make_growth(const struct fleet_study *s)
{
    char line[1024];
    size_t count;
    const struct dry_growth *rows = dry_steps_get_growth(s->view->steps, &count);
    if (count == 0 || rows[0].bytes_per_step == 0)
        return json_null();
    size_t length =
        dry_owners_write_line(s->view->owners, rows[0].stack, line, sizeof line);
    int percent = (int)(rows[0].confidence * 100);
    return json_pack("{s:o, s:o, s:i}", "line", json_out_text(line, length),
                     "bytes_per_step", json_out_number(rows[0].bytes_per_step), "percent",
                     percent < 0 ? 0 : (percent > 100 ? 100 : percent));
}

/* Return the number of complete steps before the moment. */
static uint32_t
count_done(const struct dry_explanation_view *v)
{
    uint32_t count, done = 0;
    const struct dry_step *rows = dry_steps_get(v->steps, &count);
    for (uint32_t i = 0; i < count; i++)
        done += !rows[i].is_partial && rows[i].end <= v->moment;
    return done;
}

static json_t *
make_oom(const struct fleet_study *s)
{
    const struct dry_explanation_view *v = s->view;
    if (v->moment_kind != DRY_MOMENT_AT_OOM || v->event == SIZE_MAX)
        return json_null();
    const struct dry_trace_view *t = dry_trace_get_view(s->subject);
    int64_t time = t->time_us[v->event];
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:I}", "time_us",
                     time > 0 ? json_integer(time) : json_null(), "request_bytes",
                     json_out_number(v->request_bytes), "device_free_bytes",
                     json_out_number(v->device_free_bytes), "short_bytes",
                     json_out_number(v->short_bytes), "line",
                     json_out_string(v->request_line), "pass",
                     dry_pass_name(v->last_pass), "step", (json_int_t)count_done(v));
}

static json_t *
make_others(const struct fleet_study *s)
{
    const struct dry_trace_view *v = dry_trace_get_view(s->subject);
    json_t *list = json_array();
    for (size_t i = 0, made = 0; i < v->device_count && made < FLEET_OTHERS_MAX; i++) {
        const struct dry_trace_device *d = &v->devices[i];
        uint64_t reserved = 0;
        for (size_t k = 0; k < d->segment_count; k++)
            reserved += v->segments[d->first_segment + k].total_size;
        if (d->device < 0 || d->device == s->view->device || reserved == 0)
            continue;
        made++;
        list =
            json_out_append(list, json_pack("{s:i, s:o}", "device", (int)d->device,
                                            "reserved_bytes", json_out_number(reserved)));
    }
    return list;
}

/* --- a row -------------------------------------------------------------------------------- */

static int
add(json_t *row, const char *key, json_t *value)
{
    return json_object_set_new(row, key, value);
}

/* Add facts of the whole recording. Returns nonzero if memory ran out. */
static int
add_record(json_t *row, const struct fleet_study *s)
{
    const struct dry_timeline_view *t = dry_timeline_get_view(s->timeline);
    const struct dry_replay_check *check = dry_replay_get_check(s->replay);
    const int64_t *times = dry_trace_get_view(s->subject)->time_us;
    int64_t first = t->event_count ? times[t->first_event] : 0;
    int64_t last = t->event_count ? times[t->first_event + t->event_count - 1] : 0;
    bool is_timed = first > 0 && last >= first;
    return add(row, "device", json_integer(t->device)) |
           add(row, "simulated", json_boolean(s->is_simulated)) |
           add(row, "begins_cold",
               json_boolean(t->carried_over_count == 0 && t->unmatched_frees == 0 &&
                            t->event_count > 0)) |
           add(row, "events", json_integer(t->event_count)) |
           add(row, "first_us", is_timed ? json_integer(first) : json_null()) |
           add(row, "last_us", is_timed ? json_integer(last) : json_null()) |
           add(row, "reserved_peak",
               json_out_number(t->peaks[DRY_CURVE_RESERVED].bytes)) |
           add(row, "active_peak", json_out_number(t->peaks[DRY_CURVE_ACTIVE].bytes)) |
           add(row, "allocated_peak",
               json_out_number(t->peaks[DRY_CURVE_ALLOCATED].bytes)) |
           add(row, "retries", json_integer((json_int_t)check->retry_count)) |
           add(row, "ooms", json_integer(t->oom_count)) |
           add(row, "checked", json_boolean(check->possible && !s->is_simulated)) |
           add(row, "exact", json_boolean(check->exact && !s->is_simulated)) |
           add(row, "conf", json_out_string(dry_replay_get_recorded(s->replay)->conf));
}

/* Add the result of the explanation. Returns nonzero if memory ran out. */
static int
add_verdict(json_t *row, const struct fleet_study *s)
{
    const struct dry_explanation_view *v = s->view;
    uint64_t rest;
    json_t *lines = make_lines(s, &rest);
    return add(row, "at", make_state(v->state)) | add(row, "oom", make_oom(s)) |
           add(row, "cause", json_string(dry_cause_name(v->findings[0].cause))) |
           add(row, "confidence", json_integer(v->findings[0].confidence)) |
           add(row, "trust", json_string(dry_trust_name(v->trust))) |
           add(row, "steps", make_steps(s)) | add(row, "growth", make_growth(s)) |
           add(row, "lines", lines) | add(row, "rest_bytes", json_out_number(rest)) |
           add(row, "categories", make_categories(v)) |
           add(row, "others", make_others(s));
}

static json_t *
make_head(enum fleet_row_state state, const char *why,
          const struct input_content *content)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, content->hash);
    return json_pack("{s:s, s:s, s:o, s:o, s:s}", "schema", "drystone.fleet.row/1",
                     "state", fleet_row_state_name(state), "why", json_out_string(why),
                     "file_bytes", json_out_number(content->bytes), "hash", text);
}

/* Write `row` as text and release it. Returns NULL if it is NULL or memory ran out. */
static char *
finish_row(json_t *row)
{
    char *text = row ? json_dumps(row, JSON_COMPACT) : NULL;
    json_decref(row);
    return text;
}

static char *
make_fine(const struct fleet_study *s)
{
    json_t *row = make_head(FLEET_ROW_FINE, "", &s->content);
    if (row && (add_record(row, s) != 0 || add_verdict(row, s) != 0)) {
        json_decref(row);
        row = NULL;
    }
    return finish_row(row);
}

char *
fleet_row_make_unreadable(const char *why)
{
    const struct input_content unknown = {0};
    return finish_row(make_head(FLEET_ROW_UNREADABLE, why, &unknown));
}

/*
 * Copy the text to the memory that the file used, now that it is free. The original is
 * above that memory in the heap and would keep the heap from shrinking.
 */
static char *
settle(char *text)
{
    char *copy = text ? strdup(text) : NULL;
    free(text);
    return copy;
}

char *
fleet_row_make(const char *path, uint64_t memory_bytes_max)
{
    struct fleet_study study;
    struct dry_error err;
    char *text = NULL;
    enum dry_status status = fleet_study_open(&study, path, memory_bytes_max, &err);
    if (status == DRY_OK)
        status = fleet_study_explain(&study, &err);
    if (status == DRY_OK && study.is_empty)
        text = finish_row(make_head(FLEET_ROW_EMPTY, "it has no events and no segments",
                                    &study.content));
    else if (status == DRY_OK)
        text = make_fine(&study);
    else if (status != DRY_ERR_MEMORY)
        text = fleet_row_make_unreadable(err.text);
    fleet_study_close(&study);
    return settle(text);
}
