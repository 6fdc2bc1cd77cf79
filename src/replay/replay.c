/* SPDX-License-Identifier: Apache-2.0 */

/* A replay holds one device of a trace, checked. run.c runs it under any settings. */

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <drystone/pool_trace.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/sized.h"
#include "replay/packing.h"
#include "replay/replay_state.h"
#include "trace/from_pool.h"

#define DEFAULT_RELEASE "2.11"

void
dry_replay_options_init_sized(struct dry_replay_options *options, size_t struct_size)
{
    const struct dry_replay_options defaults = {.device = DRY_DEVICE_BUSIEST};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- releases ----------------------------------------------------------------------------- */

bool
dry_replay_find_release(const char *version, size_t *index)
{
    size_t count;
    const struct dryi_torch_rules *rules = dryi_torch_rules_find(version);
    if (!rules)
        return false;
    *index = (size_t)(rules - dryi_torch_rules_all(&count));
    return true;
}

bool
dry_replay_get_release(size_t index, struct dry_replay_release *release)
{
    size_t count;
    const struct dryi_torch_rules *rules = dryi_torch_rules_all(&count);
    if (index >= count)
        return false;
    const struct dry_replay_release all = {.version = rules[index].release,
                                           .change = rules[index].change};
    return dryi_sized_give(release, &all, sizeof all) == DRY_OK;
}

/* --- the record --------------------------------------------------------------------------- */

static const struct dry_trace_device *
find_busiest(const struct dry_trace_view *v)
{
    const struct dry_trace_device *best = NULL;
    for (size_t i = 0; i < v->device_count; i++) {
        const struct dry_trace_device *d = &v->devices[i];
        if (d->device != DRY_DEVICE_HOST &&
            (!best || d->event_count > best->event_count ||
             (d->event_count == best->event_count &&
              d->segment_count > best->segment_count)))
            best = d;
    }
    return best;
}

/* Devices are sorted by number, the host's -1 as the largest. */
static const struct dry_trace_device *
find_device(const struct dry_trace_view *v, int32_t wanted)
{
    if (wanted == DRY_DEVICE_BUSIEST)
        return find_busiest(v);
    size_t i =
        dryi_count_below(v->devices, v->device_count, sizeof *v->devices,
                         offsetof(struct dry_trace_device, device), (uint32_t)wanted);
    return i < v->device_count && v->devices[i].device == wanted ? &v->devices[i] : NULL;
}

static const struct dryi_torch_rules *
newest_rules(void)
{
    size_t count;
    const struct dryi_torch_rules *rules = dryi_torch_rules_all(&count);
    return &rules[count - 1];
}

static void
set_conf_problem(struct dry_replay *r, const char *problem)
{
    snprintf(r->conf_problem, sizeof r->conf_problem, "%s", problem);
    r->recorded.conf_problem = r->conf_problem;
}

/* Read the option string; the values that a snapshot exports separately override it. */
static void
read_recorded_conf(struct dry_replay *r)
{
    const struct dry_trace_settings *s = &r->view->settings;
    struct dryi_torch_conf *conf = &r->recorded_conf;
    dryi_torch_conf_init(conf);
    r->recorded.conf = "";
    if (!s->known)
        return;
    /* Another allocator's option string holds no options of PyTorch's. */
    if (s->conf != DRY_NONE && !dryi_trace_is_foreign(r->trace)) {
        size_t length;
        r->recorded.conf = dry_trace_string(r->trace, s->conf, &length);
        struct dry_error problem;
        if (dryi_torch_conf_parse(r->recorded.conf, length, newest_rules(), conf,
                                  &problem) != DRY_OK)
            set_conf_problem(r, problem.text);
    }
    conf->max_split_size =
        s->max_split_size < 0 ? UINT64_MAX : (uint64_t)s->max_split_size;
    /* PyTorch accepts only values between 0 and 1. A damaged file may hold others, even
       NaN: treat them as off. */
    bool collects =
        s->garbage_collection_threshold > 0.0 && s->garbage_collection_threshold < 1.0;
    conf->garbage_collection_threshold = collects ? s->garbage_collection_threshold : 0.0;
    conf->expandable_segments = s->expandable_segments;
    if (s->roundup_known)
        memcpy(conf->roundup_power2_divisions, s->roundup_power2_divisions,
               sizeof conf->roundup_power2_divisions);
}

/* Read the options of a record made by our paged placement. */
static void
read_paged_conf(struct dry_replay *r)
{
    size_t length;
    const char *conf = dry_trace_placement_conf(r->trace, &length);
    struct dry_error problem;
    r->recorded.place = "paged";
    if (!conf) {
        set_conf_problem(r, "the file does not hold them");
        return;
    }
    snprintf(r->place_conf, sizeof r->place_conf, "%.*s", (int)length, conf);
    struct dryi_paged_conf read;
    dryi_paged_conf_init(&read);
    if (length == 0)
        return;
    if (dryi_paged_conf_parse(conf, length, dryi_torch_conf_has, &read, &problem) ==
        DRY_OK)
        r->recorded_paged = read;
    else
        set_conf_problem(r, problem.text);
}

static void
read_recorded_place(struct dry_replay *r)
{
    size_t length;
    const char *placement = dry_trace_placement(r->trace, &length);
    dryi_paged_conf_init(&r->recorded_paged);
    r->recorded.place = dryi_trace_is_foreign(r->trace) ? "" : "torch";
    r->recorded.place_conf = r->place_conf;
    if (placement && length == 5 && memcmp(placement, "paged", 5) == 0)
        read_paged_conf(r);
}

static void
read_recorded_heights(struct dry_replay *r)
{
    const struct dryi_program *p = &r->program;
    struct dry_replay_recorded *recorded = &r->recorded;
    recorded->device = r->device->device;
    recorded->live_peak_bytes = dryi_program_live_peak(p);
    recorded->oom = p->oom_count > 0;
    if (recorded->oom)
        recorded->oom_event = r->device->first_event + p->oom_event;
    if (p->inconsistency)
        return; /* heights need the bytes reserved at the window's
                   start, which are unknown */
    recorded->reserved_peak_bytes =
        r->initial_layout.reserved + (uint64_t)p->reserved_peak;
    recorded->reserved_end_bytes = r->initial_layout.reserved + (uint64_t)p->reserved_end;
    for (uint32_t i = 0; i < p->limit_count; i++) {
        const struct limit *limit = &p->limits[i];
        uint64_t free_bytes = r->view->addr[r->device->first_event + limit->event];
        if (limit->event == p->oom_event && free_bytes < limit->need)
            recorded->capacity_bytes =
                r->initial_layout.reserved + (uint64_t)limit->after + free_bytes;
    }
}

/* --- the self-check ----------------------------------------------------------------------- */

/* Return why a self-check is impossible, or NULL. */
static const char *
find_obstacle(const struct dry_replay *r)
{
    if (!r->program.has_addresses)
        return "this kind of trace records no addresses";
    if (r->program.inconsistency)
        return r->program.inconsistency;
    if (r->program.op_count == 0)
        return "the file holds no events to replay for this device";
    if (r->program.request_count == r->program.carried_count)
        return "nothing is allocated in the window: there is no address to compare";
    if (dryi_trace_is_foreign(r->trace))
        return "recorded by an allocator that does not place as PyTorch does";
    return NULL;
}

static void
set_impossible(struct dry_replay *r, const char *reason)
{
    uint32_t event = r->program.inconsistent_event;
    char *to = r->check.reason;
    size_t capacity = sizeof r->check.reason;
    r->check.possible = r->check.exact = false;
    if (r->program.inconsistency && event < r->device->event_count) {
        int used = snprintf(to, capacity, "event %zu: ", r->device->first_event + event);
        to += used;
        capacity -= (size_t)used;
    }
    snprintf(to, capacity, "%.*s", (int)capacity - 1, reason);
}

static size_t
get_matched(const struct dry_replay_check *check)
{
    return check->alloc_matched + check->segment_event_matched + check->block_matched;
}

/* Name rules after the requested release if it uses them, else after their first release. */
static const char *
name_rules(const struct dry_replay *r, const struct dryi_torch_rules *rules)
{
    const char *asked = r->options.compat ? r->options.compat : DEFAULT_RELEASE;
    return dryi_torch_rules_find(asked) == rules ? asked : rules->release;
}

static enum dry_status
try_rules(struct dry_replay *r, const struct dryi_torch_rules *rules,
          struct dry_error *err)
{
    struct dryi_self_check_subject subject = {
        .initial_layout = &r->initial_layout,
        .conf = &r->recorded_conf,
        .rules = rules,
        .progress = r->options.progress,
        .progress_self = r->options.progress_self,
    };
    struct dryi_self_check_outcome outcome;
    enum dry_status status = dryi_self_check_run(&r->program, &subject, &outcome, err);
    if (status != DRY_OK)
        return status;
    if (r->check.possible && get_matched(&outcome.check) <= get_matched(&r->check))
        return DRY_OK;
    r->outcome = outcome;
    r->check = outcome.check;
    r->check.compat = name_rules(r, rules);
    r->rules = rules;
    return DRY_OK;
}

/* Select rules: the requested release's, else the first that reproduce the record
   exactly, else the best match. */
static enum dry_status
check_against_record(struct dry_replay *r, struct dry_error *err)
{
    r->rules =
        dryi_torch_rules_find(r->options.compat ? r->options.compat : DEFAULT_RELEASE);
    if (!r->rules)
        return dryi_torch_rules_refuse(r->options.compat, err);
    r->check.compat = r->options.compat ? r->options.compat : DEFAULT_RELEASE;
    const char *obstacle = find_obstacle(r);
    if (obstacle) {
        set_impossible(r, obstacle);
        return DRY_OK;
    }
    size_t count;
    const struct dryi_torch_rules *all = dryi_torch_rules_all(&count), *first = r->rules;
    enum dry_status status = try_rules(r, first, err);
    for (size_t i = count; i-- > 0 && status == DRY_OK && !r->options.compat;) {
        if (!r->check.exact && &all[i] != first)
            status = try_rules(r, &all[i], err);
    }
    if (status == DRY_ERR_FORMAT) {
        set_impossible(r, err->text);
        return DRY_OK;
    }
    return status;
}

static void
complete_check(struct dry_replay *r)
{
    const struct dryi_program *p = &r->program;
    struct dry_replay_check *check = &r->check;
    check->event_count = r->device->event_count;
    check->live_before = p->carried_count;
    check->sizes_inferred = r->initial_layout.sizes_inferred;
    check->frees_inferred = p->frees_inferred;
    check->empty_cache_count = p->empty_cache_count;
    check->retry_count = p->retry_count;
    check->pending_count = p->pending_count;
    check->assumed_count = p->assumed_count;
    check->oom_count = p->oom_count;
    check->unknown_count = p->unknown_count;
    if (check->possible)
        r->recorded.allocated_peak_bytes =
            (uint64_t)r->outcome.stats.allocated_bytes.all.peak;
}

static enum dry_status
create(struct dry_replay *r, struct dry_error *err)
{
    r->view = dry_trace_get_view(r->trace);
    r->device = find_device(r->view, r->options.device);
    if (!r->device)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the trace has no such device");
    if (r->device->device == DRY_DEVICE_HOST)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                         "pinned host memory has an allocator of its own");
    read_recorded_conf(r);
    read_recorded_place(r);
    enum dry_status status = dryi_program_init(&r->program, r->trace, r->device,
                                               &r->recorded_conf, &r->memory, err);
    if (status == DRY_OK && r->program.has_addresses)
        status = dryi_initial_layout_init(&r->initial_layout, &r->program,
                                          &r->recorded_conf, err);
    if (status != DRY_OK)
        return status;
    read_recorded_heights(r);
    struct dry_error local;
    status = check_against_record(r, err ? err : &local);
    if (status == DRY_OK)
        status = dryi_replay_bound_capacity(r, err);
    complete_check(r);
    return status;
}

enum dry_status
dry_replay_create(const struct dry_trace *trace, const struct dry_replay_options *options,
                  struct dry_replay **replay, struct dry_error *err)
{
    struct dry_replay_options o;
    dry_replay_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_replay *r = dryi_memory_zalloc(&memory, 1, sizeof *r);
    if (!r)
        return dryi_fail_memory(err, "a replay");
    r->memory = memory;
    r->options = o;
    r->trace = trace;
    status = create(r, err);
    if (status == DRY_OK)
        *replay = r;
    else
        dry_replay_destroy(r);
    return status;
}

void
dry_replay_destroy(struct dry_replay *r)
{
    if (!r)
        return;
    dryi_program_finish(&r->program);
    dryi_initial_layout_finish(&r->initial_layout);
    struct dry_memory memory = r->memory;
    dryi_memory_free(&memory, r, 1, sizeof *r);
}

const struct dry_replay_check *
dry_replay_get_check(const struct dry_replay *replay)
{
    return &replay->check;
}

const struct dry_replay_recorded *
dry_replay_get_recorded(const struct dry_replay *replay)
{
    return &replay->recorded;
}

/* --- for higher modules ------------------------------------------------------------------- */

const struct dry_trace *
dryi_replay_trace(const struct dry_replay *replay)
{
    return replay->trace;
}

const struct dry_trace_device *
dryi_replay_device(const struct dry_replay *replay)
{
    return replay->device;
}

const struct dryi_program *
dryi_replay_program(const struct dry_replay *replay)
{
    return &replay->program;
}

const struct dryi_initial_layout *
dryi_replay_initial_layout(const struct dry_replay *replay)
{
    return &replay->initial_layout;
}

const struct dryi_torch_conf *
dryi_replay_conf(const struct dry_replay *replay)
{
    return &replay->recorded_conf;
}

const struct dryi_torch_rules *
dryi_replay_rules(const struct dry_replay *replay)
{
    return replay->rules;
}
