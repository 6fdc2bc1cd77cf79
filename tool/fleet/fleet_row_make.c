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

#include "base/fields.h"
#include "base/json_out.h"
#include "fleet/fleet_row.h"
#include "fleet/fleet_study.h"

/* --- objects of the row ------------------------------------------------------------------- */

/* Make a name without line number: "models.py:174 f" becomes "models.py f". The caller frees
   the text. */
static char *
make_function(const struct dry_owner *o, uint32_t line)
{
    char number[16];
    int length = snprintf(number, sizeof number, ":%" PRIu32, line);
    char *text = strdup(o->name), *at = text ? strstr(text, number) : NULL;
    if (at && line > 0)
        memmove(at, at + length, strlen(at + length) + 1);
    return text;
}

static json_t *
make_line(const struct fleet_study *s, const struct dry_owner *o)
{
    bool has_frame = o->frame != DRY_NONE;
    uint32_t number =
        has_frame ? dry_trace_get_view(s->subject)->frames[o->frame].line : 0;
    char *function = make_function(o, number);
    const struct fleet_line line = {o->name, function, number, o->bytes, o->count};
    json_t *made =
        function ? fields_add_json(json_object(), fleet_line_fields, &line) : NULL;
    free(function);
    return made;
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

/* Set the figures of the steps. Returns the peaks. */
static json_t *
make_peaks(const struct fleet_study *s, struct fleet_row *row)
{
    uint32_t count = 0, seen = 0;
    const struct dry_steps *steps = s->view->steps;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    if (dry_steps_get_source(steps) == DRY_STEPS_NONE)
        count = 0;
    for (uint32_t i = 0; i < count; i++)
        row->step_count += does_count(s, &rows[i]);
    if (row->step_count > FLEET_STEPS_MAX)
        row->first_peak = row->step_count - FLEET_STEPS_MAX;
    row->growth_per_step = count ? dry_steps_growth_per_step(steps) : 0;
    json_t *peaks = json_array();
    for (uint32_t i = 0; i < count; i++) {
        if (does_count(s, &rows[i]) && seen++ >= row->first_peak)
            peaks = json_out_append(peaks, json_out_number(rows[i].peak.bytes));
    }
    return peaks;
}

static json_t *
make_growth(const struct fleet_study *s)
{
    char line[1024];
    size_t count;
    const struct dry_growth *rows = dry_steps_get_growth(s->view->steps, &count);
    if (count == 0 || rows[0].bytes_per_step == 0)
        return json_null();
    dry_owners_write_line(s->view->owners, rows[0].stack, line, sizeof line);
    int percent = (int)(rows[0].confidence * 100);
    const struct fleet_growth growth = {
        line, rows[0].bytes_per_step,
        percent < 0 ? 0 : (uint32_t)(percent > 100 ? 100 : percent)};
    return fields_add_json(json_object(), fleet_growth_fields, &growth);
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
    const struct fleet_oom oom = {.has_time = time > 0,
                                  .time_us = (uint64_t)time,
                                  .request_bytes = v->request_bytes,
                                  .device_free_bytes = v->device_free_bytes,
                                  .short_bytes = v->short_bytes,
                                  .line = v->request_line,
                                  .pass = v->last_pass,
                                  .step = count_done(v)};
    return fields_add_json(json_object(), fleet_oom_fields, &oom);
}

static json_t *
make_others(const struct fleet_study *s)
{
    const struct dry_trace_view *v = dry_trace_get_view(s->subject);
    json_t *list = json_array();
    for (size_t i = 0, made = 0; i < v->device_count && made < FLEET_OTHERS_MAX; i++) {
        const struct dry_trace_device *d = &v->devices[i];
        struct fleet_other other = {.device = (uint32_t)d->device};
        for (size_t k = 0; k < d->segment_count; k++)
            other.reserved_bytes += v->segments[d->first_segment + k].total_size;
        if (d->device < 0 || d->device == s->view->device || other.reserved_bytes == 0)
            continue;
        made++;
        list = json_out_append(
            list, fields_add_json(json_object(), fleet_other_fields, &other));
    }
    return list;
}

/* --- a row -------------------------------------------------------------------------------- */

/* Set the figures of the whole recording. */
static void
set_record(struct fleet_row *row, const struct fleet_study *s)
{
    const struct dry_timeline_view *t = dry_timeline_get_view(s->timeline);
    const struct dry_replay_check *check = dry_replay_get_check(s->replay);
    const int64_t *times = dry_trace_get_view(s->subject)->time_us;
    int64_t first = t->event_count ? times[t->first_event] : 0;
    int64_t last = t->event_count ? times[t->first_event + t->event_count - 1] : 0;
    row->device = (uint32_t)t->device;
    row->is_simulated = s->is_simulated;
    row->begins_cold =
        t->carried_over_count == 0 && t->unmatched_frees == 0 && t->event_count > 0;
    row->event_count = t->event_count;
    row->has_time = first > 0 && last >= first;
    row->first_us = (uint64_t)first;
    row->last_us = (uint64_t)last;
    row->reserved_peak = t->peaks[DRY_CURVE_RESERVED].bytes;
    row->active_peak = t->peaks[DRY_CURVE_ACTIVE].bytes;
    row->allocated_peak = t->peaks[DRY_CURVE_ALLOCATED].bytes;
    row->retries = check->retry_count;
    row->oom_count = t->oom_count;
    row->is_checked = check->possible && !s->is_simulated;
    row->is_exact = check->exact && !s->is_simulated;
    row->conf = dry_replay_get_recorded(s->replay)->conf;
}

/* Set the figures of the explanation. */
static void
set_verdict(struct fleet_row *row, const struct fleet_study *s)
{
    const struct dry_explanation_view *v = s->view;
    row->at = *v->state;
    row->cause = v->findings[0].cause;
    row->confidence = v->findings[0].confidence;
    row->trust = v->trust;
}

static json_t *
make_head(enum fleet_row_state state, const char *why,
          const struct input_content *content)
{
    char hash[20];
    const struct fleet_row row = {
        .state = state, .why = why, .file_bytes = content->bytes};
    snprintf(hash, sizeof hash, "%016" PRIx64, content->hash);
    return fields_add_json(
        json_pack("{s:s, s:s}", "schema", FLEET_ROW_SCHEMA, "hash", hash),
        fleet_head_fields, &row);
}

static char *
make_fine(const struct fleet_study *s)
{
    struct fleet_row row = {0};
    set_record(&row, s);
    set_verdict(&row, s);
    json_t *peaks = make_peaks(s, &row), *lines = make_lines(s, &row.rest_bytes);
    json_t *made = make_head(FLEET_ROW_FINE, "", &s->content);
    json_t *parts =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "peaks", peaks, "lines", lines, "oom",
                  make_oom(s), "growth", make_growth(s), "categories",
                  make_categories(s->view), "others", make_others(s));
    made = fields_add_json(made, fleet_row_fields, &row);
    if (made && (!parts || json_object_update(made, parts) != 0)) {
        json_decref(made);
        made = NULL;
    }
    json_decref(parts);
    return json_out_dump(made, JSON_COMPACT);
}

char *
fleet_row_make_unreadable(const char *why)
{
    const struct input_content unknown = {0};
    return json_out_dump(make_head(FLEET_ROW_UNREADABLE, why, &unknown), JSON_COMPACT);
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
        text =
            json_out_dump(make_head(FLEET_ROW_EMPTY, "it has no events and no segments",
                                    &study.content),
                          JSON_COMPACT);
    else if (status == DRY_OK)
        text = make_fine(&study);
    else if (status != DRY_ERR_MEMORY)
        text = fleet_row_make_unreadable(err.text);
    fleet_study_close(&study);
    return settle(text);
}
