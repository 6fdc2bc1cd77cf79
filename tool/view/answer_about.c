/* SPDX-License-Identifier: Apache-2.0 */
/* The answer `about`: files, devices, peaks, marks, and the moments of interest. */
#include <jansson.h>

#include "view/answers.h"

#include <stdio.h>
#include <string.h>

#include <drystone/drystone.h>

#include "base/json_out.h"

#define MARKS_MAX 1000
#define OOMS_MAX 100

static json_t *
make_names(unsigned count, const char *(*name_at)(unsigned))
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, json_string(name_at(i)));
    return list;
}

static const char *
action_name(unsigned i)
{
    return dry_action_name((enum dry_action)i);
}

static const char *
category_name(unsigned i)
{
    return dry_category_name((enum dry_category)i);
}

static const char *
command_name(unsigned i)
{
    return view_commands[i]->name;
}

static json_t *
make_peaks(const struct dry_timeline_view *v)
{
    json_t *object = json_object();
    for (int c = 0; c < DRY_CURVE_COUNT; c++)
        json_object_set_new(object, dry_curve_name((enum dry_curve)c),
                            json_pack("{s:o, s:I}", "bytes",
                                      json_out_number(v->peaks[c].bytes), "moment",
                                      (json_int_t)v->peaks[c].moment));
    return object;
}

static json_t *
make_ooms(const struct dry_timeline_view *v)
{
    const struct dry_trace_view *t = dry_trace_get_view(v->trace);
    json_t *list = json_array();
    uint32_t max = v->oom_count < OOMS_MAX ? v->oom_count : OOMS_MAX;
    for (uint32_t i = v->oom_event; i < v->event_count && json_array_size(list) < max;
         i++) {
        size_t at = v->first_event + i;
        if (t->action[at] == DRY_ACTION_OOM)
            json_array_append_new(list,
                                  json_pack("{s:I, s:o}", "moment", (json_int_t)i + 1,
                                            "bytes", json_out_number(t->size[at])));
    }
    return list;
}

static void
add_mark(json_t *list, uint32_t moment, const char *kind, json_t *text)
{
    json_array_append_new(list, json_pack("{s:I, s:s, s:o}", "moment", (json_int_t)moment,
                                          "kind", kind, "text", text));
}

static void
add_annotations(json_t *list, const struct view_device *d)
{
    const struct dry_trace_view *t = dry_trace_get_view(d->v->trace);
    for (size_t i = 0; i < t->annotation_count && json_array_size(list) < MARKS_MAX;
         i++) {
        const struct dry_trace_annotation *a = &t->annotations[i];
        size_t length = 0;
        const char *stage = dry_trace_string(d->v->trace, a->stage, &length);
        if (a->device != d->v->device || !stage || strcmp(stage, "START") != 0)
            continue;
        const char *name = dry_trace_string(d->v->trace, a->name, &length);
        add_mark(list, dry_timeline_find_time(d->timeline, a->time_us), "annotation",
                 json_out_text(name, name ? length : 0));
    }
}

static json_t *
make_marks(const struct view_device *d)
{
    json_t *list = json_array();
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(d->steps, &count);
    for (uint32_t i = 0; i < count && i < MARKS_MAX / 2; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "step %u", i);
        if (dry_steps_get_source(d->steps) != DRY_STEPS_NONE)
            add_mark(list, steps[i].begin, "step", json_out_text(text, (size_t)length));
    }
    add_annotations(list, d);
    return list;
}

static json_t *
make_places(const struct view_device *d)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < d->place_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:I}", "name", d->places[i].name,
                                              "moment", (json_int_t)d->places[i].moment));
    return list;
}

static json_t *
make_lanes(const struct dry_trace *trace)
{
    const struct dry_trace_view *t = dry_trace_get_view(trace);
    json_t *list = json_array();
    for (uint32_t i = 0; i < t->lane_count; i++) {
        const struct dry_lane *lane = &t->lanes[i];
        char stream[32], pool[48] = "default";
        snprintf(stream, sizeof stream, lane->stream ? "%#llx" : "%llu",
                 (unsigned long long)lane->stream);
        if (lane->pool_a || lane->pool_b)
            snprintf(pool, sizeof pool, "(%llu, %llu)", (unsigned long long)lane->pool_a,
                     (unsigned long long)lane->pool_b);
        json_array_append_new(list, json_pack("{s:s, s:s}", "stream", stream, "pool",
                                              lane->pool_known ? pool : "not recorded"));
    }
    return list;
}

/* Return the bounds of the memory that PyTorch could use, derived from failures or
   retries; null: unknown. */
static json_t *
make_limit(const struct view_device *d)
{
    const struct dry_replay_recorded *r =
        d->replay ? dry_replay_get_recorded(d->replay) : NULL;
    if (r && r->capacity_bytes > 0)
        return json_pack("{s:o, s:o}", "low", json_out_number(r->capacity_bytes), "high",
                         json_out_number(r->capacity_bytes + 1));
    if (r && r->capacity_high_bytes > 0)
        return json_pack("{s:o, s:o}", "low", json_out_number(r->capacity_low_bytes),
                         "high", json_out_number(r->capacity_high_bytes));
    return json_null();
}

static json_t *
make_device(const struct view_device *d)
{
    const struct dry_timeline_view *v = d->v;
    bool has_times = dry_timeline_time(d->timeline, v->dump_moment) >
                     dry_timeline_time(d->timeline, 0);
    json_t *time =
        has_times ? json_real((double)dry_timeline_time(d->timeline, 0)) : json_null();
    return json_pack("{s:i, s:I, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "device", (int)v->device, "events", (json_int_t)v->event_count,
                     "moments", (json_int_t)d->moments, "levels", (json_int_t)d->levels,
                     "first_time_us", time, "allocations",
                     (json_int_t)v->allocation_count, "peaks", make_peaks(v), "ooms",
                     make_ooms(v), "marks", make_marks(d), "places", make_places(d),
                     "lanes", make_lanes(v->trace), "limit", make_limit(d));
}

static json_t *
make_file(const struct view_file *file)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < file->study.device_count; i++)
        json_array_append_new(devices, make_device(&file->devices[i]));
    const char *slash = strrchr(file->path, '/');
    const char *name = slash && slash[1] ? slash + 1 : file->path;
    return json_pack("{s:o, s:b, s:I, s:o, s:o}", "name", json_out_string(name),
                     "simulated", file->study.is_simulated, "main",
                     (json_int_t)file->study.main, "devices", devices, "json",
                     make_names(VIEW_COMMANDS, command_name));
}

bool
answer_about(const struct view *view, struct answer *answer)
{
    json_t *files = json_array(), *left_out = json_array();
    for (size_t i = 0; i < view->file_count; i++)
        json_array_append_new(files, make_file(&view->files[i]));
    for (size_t i = 0; i < view->left_out_count; i++)
        json_array_append_new(left_out, json_string(view->left_out[i]));
    return answer_json(json_pack("{s:s, s:s, s:s, s:o, s:o, s:i, s:o, s:O?, s:o}",
                                 "schema", "drystone.view/1", "version", DRY_VERSION,
                                 "kind", view->is_report ? "report" : "serve", "actions",
                                 make_names(DRY_ACTION_COUNT, action_name), "categories",
                                 make_names(DRY_CATEGORY_COUNT, category_name),
                                 "tile_columns", VIEW_TILE_COLUMNS, "left_out", left_out,
                                 "series", view->series, "files", files),
                       answer);
}

bool
answer_json(json_t *root, struct answer *answer)
{
    char *text = json_out_dump(root, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (!text)
        return false;
    *answer = (struct answer){(unsigned char *)text, strlen(text), true};
    return true;
}
