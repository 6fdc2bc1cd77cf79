/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone info --json`, schema drystone.info/1. */

#include <drystone/pool_trace.h>

#include "base/json_out.h"
#include "record/info_doubts.h"
#include "record/info_report.h"

/*
 * Collects failures of jansson. Setting NULL in an object is harmless, but the report
 * would then lack a key, so each call is checked.
 */
struct writer {
    bool failed;
};

static void
put(struct writer *w, json_t *object, const char *key, json_t *value)
{
    w->failed |= json_object_set_new(object, key, value) != 0;
}

static void
put_number(struct writer *w, json_t *object, const char *key, uint64_t value)
{
    put(w, object, key, json_out_number(value));
}

static void
put_string(struct writer *w, json_t *object, const char *key, const struct info_report *s,
           uint32_t string)
{
    size_t length = 0;
    const char *bytes = dry_trace_string(s->trace, string, &length);
    put(w, object, key, json_out_text(bytes, length));
}

static json_t *
make_device(struct writer *w, const struct info_device *d)
{
    json_t *device = json_object(), *actions = json_object();
    put(w, device, "device", json_integer(d->device));
    put_number(w, device, "events", d->event_count);
    for (size_t i = 0; i < DRY_ACTION_COUNT; i++) {
        if (d->action_count[i])
            put_number(w, actions, dry_action_name((enum dry_action)i),
                       d->action_count[i]);
    }
    put(w, device, "actions", actions);
    put(w, device, "first_us", d->timed_count ? json_integer(d->first_us) : json_null());
    put(w, device, "last_us", d->timed_count ? json_integer(d->last_us) : json_null());
    put_number(w, device, "segments", d->segment_count);
    put_number(w, device, "reserved_bytes", d->reserved_bytes);
    put_number(w, device, "warm_frees", d->warm_frees);
    put_number(w, device, "old_blocks", d->old_blocks);
    put_number(w, device, "lost_blocks", d->lost_blocks);
    put_number(w, device, "time_reversals", d->time_reversals);
    return device;
}

static json_t *
make_group(struct writer *w, const struct info_report *s, const struct info_group *g)
{
    static const struct dry_lane unknown = {0};
    const struct dry_lane *lane =
        g->lane < s->view->lane_count ? &s->view->lanes[g->lane] : &unknown;
    json_t *group = json_object();
    put(w, group, "device", json_integer(g->device));
    put(w, group, "size_class", json_string(g->is_large ? "large" : "small"));
    put(w, group, "expandable", json_boolean(g->is_expandable));
    put(w, group, "pool",
        json_pack("[o,o]", json_out_number(lane->pool_a), json_out_number(lane->pool_b)));
    put(w, group, "pool_known", json_boolean(lane->pool_known));
    put_number(w, group, "stream", lane->stream);
    put_number(w, group, "segments", g->segment_count);
    put_number(w, group, "reserved_bytes", g->reserved_bytes);
    put_number(w, group, "allocated_bytes", g->allocated_bytes);
    put_number(w, group, "active_bytes", g->active_bytes);
    put_number(w, group, "requested_bytes", g->requested_bytes);
    return group;
}

static json_t *
make_settings(struct writer *w, const struct info_report *s)
{
    const struct dry_trace_settings *settings = &s->view->settings;
    if (!s->view->has_settings)
        return json_null();
    json_t *object = json_object();
    put_string(w, object, "conf", s, settings->conf);
    put(w, object, "expandable_segments", json_boolean(settings->expandable_segments));
    put(w, object, "max_split_size",
        settings->max_split_size < 0 ? json_null()
                                     : json_integer(settings->max_split_size));
    put(w, object, "garbage_collection_threshold",
        json_real(settings->garbage_collection_threshold));
    size_t length;
    const char *text = dry_trace_placement(s->trace, &length);
    put(w, object, "placement", text ? json_out_text(text, length) : json_null());
    text = dry_trace_placement_conf(s->trace, &length);
    put(w, object, "placement_conf", text ? json_out_text(text, length) : json_null());
    return object;
}

static json_t *
make_stacks(struct writer *w, const struct info_report *s)
{
    const struct info *in = &s->info;
    json_t *stacks = json_object();
    put_number(w, stacks, "stacks", in->stack_count);
    put_number(w, stacks, "frames", s->view->frame_count);
    put_number(w, stacks, "events", in->stackable_events);
    put_number(w, stacks, "events_with_stack", in->stack_events);
    put_number(w, stacks, "live_blocks", in->live_blocks);
    put_number(w, stacks, "live_blocks_with_stack", in->stack_blocks);
    return stacks;
}

static json_t *
make_unknowns(struct writer *w, const struct info_report *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->view->unknown_count; i++) {
        const struct dry_trace_unknown *u = &s->view->unknowns[i];
        json_t *object = json_object();
        put(w, object, "where", json_string(info_report_name_unknown(u->where)));
        put_string(w, object, "name", s, u->name);
        put_number(w, object, "count", u->count);
        w->failed |= json_array_append_new(list, object) != 0;
    }
    return list;
}

static json_t *
make_doubts(struct writer *w, const struct info_report *s)
{
    struct info_doubt doubts[INFO_DOUBTS_MAX];
    size_t count = info_doubts_find(&s->info, s->view, doubts);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        put(w, object, "code", json_string(doubts[i].code));
        put_number(w, object, "count", doubts[i].count);
        put(w, object, "text", json_string(doubts[i].text));
        w->failed |= json_array_append_new(list, object) != 0;
    }
    return list;
}

static void
put_file(struct writer *w, json_t *root, const struct info_report *s)
{
    const struct dry_trace_view *v = s->view;
    put(w, root, "schema", json_string("drystone.info/1"));
    put(w, root, "file", json_out_string(s->path));
    put(w, root, "kind", json_string(dry_trace_kind_name(v->kind)));
    put(w, root, "protocol", v->protocol >= 0 ? json_integer(v->protocol) : json_null());
    put(w, root, "packed", json_string(s->input.format));
    put(w, root, "file_bytes", json_out_known(s->input.file_bytes, s->input.file_bytes));
    put_number(w, root, "read_bytes",
               v->byte_count ? v->byte_count : s->input.file_bytes);
    put(w, root, "segments_only", json_boolean(v->is_bare_list));
    put(w, root, "recorded_reserved_peak_bytes",
        json_out_known(v->reserved_peak_bytes, v->reserved_peak_bytes));
    put(w, root, "dumps", json_out_known(v->dump_count, v->dump_count));
}

static void
put_layout(struct writer *w, json_t *root, const struct info_report *s)
{
    const struct info *in = &s->info;
    json_t *groups = json_array(), *blocks = json_object();
    for (size_t i = 0; i < in->group_count; i++)
        w->failed |= json_array_append_new(groups, make_group(w, s, &in->groups[i])) != 0;
    put(w, root, "segment_groups", groups);
    for (size_t i = 0; i < 3; i++) {
        json_t *state = json_object();
        put_number(w, state, "count", in->block_count[i]);
        put_number(w, state, "bytes", in->block_bytes[i]);
        put(w, blocks, info_report_name_state(i), state);
    }
    put(w, root, "blocks", blocks);
    put_number(w, root, "reserved_bytes", in->reserved_bytes);
    put_number(w, root, "allocated_bytes", in->allocated_bytes);
    put_number(w, root, "active_bytes", in->active_bytes);
    put_number(w, root, "requested_bytes", in->requested_bytes);
}

int
info_report_print_json(const struct info_report *s)
{
    const struct info *in = &s->info;
    struct writer w = {0};
    json_t *root = json_object(), *devices = json_array();
    put_file(&w, root, s);
    put_number(&w, root, "events", s->view->event_count);
    for (size_t i = 0; i < in->device_count; i++)
        w.failed |= json_array_append_new(devices, make_device(&w, &in->devices[i])) != 0;
    put(&w, root, "devices", devices);
    put_layout(&w, root, s);
    put_number(&w, root, "streams", in->stream_count);
    put_number(&w, root, "private_pools", in->private_pool_count);
    put(&w, root, "stacks", make_stacks(&w, s));
    put(&w, root, "settings", make_settings(&w, s));
    put(&w, root, "annotations",
        json_out_known(s->view->has_annotations, s->view->annotation_count));
    put(&w, root, "has_host", json_boolean(s->view->has_host));
    put(&w, root, "unknown", make_unknowns(&w, s));
    put(&w, root, "trust", make_doubts(&w, s));
    if (w.failed) {
        json_decref(root);
        root = NULL;
    }
    return json_out_print("info", root);
}
