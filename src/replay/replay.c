/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A replay: one device of a trace, checked, ready to be run under any settings.
 */

#include <drystone/replay.h>

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "replay/check.h"
#include "replay/decisions.h"
#include "replay/inside.h"
#include "replay/recorder.h"

/* Capacities are searched in steps of this: all but exotic segments are multiples of it. */
#define CAPACITY_STEP (UINT64_C(2) << 20)
#define CAPACITY_MAX (UINT64_C(1) << 50)
#define DEFAULT_RELEASE "2.11"

struct dry_replay {
    struct dry_memory memory;
    struct dry_replay_options options;
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    const struct dry_trace_device *device;
    struct dryi_torch_conf recorded_conf;
    char conf_problem[256]; /* "" if there is none */
    struct dryi_program program;
    struct dryi_origin origin;
    const struct dryi_torch_rules *rules;
    struct dry_replay_check check;
    struct dryi_check_outcome outcome; /* of the check */
    struct dry_replay_recorded recorded;
};

void
dry_replay_options_init(struct dry_replay_options *options)
{
    *options = (struct dry_replay_options){.struct_size = sizeof *options,
                                           .device = DRY_DEVICE_BUSIEST};
}

void
dry_run_options_init(struct dry_run_options *options)
{
    *options = (struct dry_run_options){.struct_size = sizeof *options,
                                        .capacity_bytes = DRY_SIM_UNLIMITED};
}

/* --- what was recorded -------------------------------------------------------------------- */

static const struct dry_trace_device *
find_device(const struct dry_trace_view *v, int32_t wanted)
{
    const struct dry_trace_device *best = NULL;
    for (size_t i = 0; i < v->device_count; i++) {
        const struct dry_trace_device *d = &v->devices[i];
        if (wanted == d->device)
            return d;
        if (wanted != DRY_DEVICE_BUSIEST || d->device == DRY_DEVICE_HOST)
            continue;
        if (!best || d->event_count > best->event_count ||
            (d->event_count == best->event_count &&
             d->segment_count > best->segment_count))
            best = d;
    }
    return best;
}

static const struct dryi_torch_rules *
newest_rules(void)
{
    size_t count;
    const struct dryi_torch_rules *rules = dryi_torch_rules_all(&count);
    return &rules[count - 1];
}

/* The option string, corrected by the values a snapshot exports beside it. */
static void
read_recorded_conf(struct dry_replay *r)
{
    const struct dry_trace_settings *s = &r->view->settings;
    struct dryi_torch_conf *conf = &r->recorded_conf;
    dryi_torch_conf_init(conf);
    r->recorded.conf = "";
    if (!s->known)
        return;
    if (s->conf != DRY_NONE) {
        size_t length;
        r->recorded.conf = dry_trace_string(r->trace, s->conf, &length);
        struct dry_error problem;
        if (dryi_torch_conf_parse(r->recorded.conf, length, newest_rules(), conf,
                                  &problem) != DRY_OK) {
            snprintf(r->conf_problem, sizeof r->conf_problem, "%s", problem.text);
            r->recorded.conf_problem = r->conf_problem;
        }
    }
    conf->max_split_size =
        s->max_split_size < 0 ? UINT64_MAX : (uint64_t)s->max_split_size;
    /* Nothing else passes PyTorch's parser: what a damaged file may hold, NaN too, is off. */
    bool collects =
        s->garbage_collection_threshold > 0.0 && s->garbage_collection_threshold < 1.0;
    conf->garbage_collection_threshold = collects ? s->garbage_collection_threshold : 0.0;
    conf->expandable_segments = s->expandable_segments != 0;
    if (s->roundup_known)
        memcpy(conf->roundup_power2_divisions, s->roundup_power2_divisions,
               sizeof conf->roundup_power2_divisions);
}

static void
read_recorded_heights(struct dry_replay *r)
{
    const struct dryi_program *p = &r->program;
    struct dry_replay_recorded *recorded = &r->recorded;
    recorded->device = r->device->device;
    recorded->oom = p->oom_count > 0;
    if (recorded->oom)
        recorded->oom_event = r->device->first_event + p->oom_event;
    if (p->inconsistency)
        return; /* where the heights begin is not known */
    recorded->reserved_peak_bytes = r->origin.reserved + (uint64_t)p->reserved_peak;
    recorded->reserved_end_bytes = r->origin.reserved + (uint64_t)p->reserved_end;
    for (uint32_t i = 0; i < p->limit_count; i++) {
        const struct limit *limit = &p->limits[i];
        uint64_t free_bytes = r->view->addr[r->device->first_event + limit->event];
        if (limit->event == p->oom_event && free_bytes < limit->need)
            recorded->capacity_bytes =
                r->origin.reserved + (uint64_t)limit->after + free_bytes;
    }
}

/* --- the check ---------------------------------------------------------------------------- */

/* Why there is nothing to check, or NULL. */
static const char *
find_obstacle(const struct dry_replay *r)
{
    if (!r->program.has_addresses)
        return "this kind of trace records no addresses";
    if (r->program.inconsistency)
        return r->program.inconsistency;
    if (r->program.op_count == 0)
        return "the file holds no events to replay for this device";
    return NULL;
}

static void
set_impossible(struct dry_replay *r, const char *reason)
{
    uint32_t event = r->program.inconsistent_event;
    char *to = r->check.reason;
    size_t room = sizeof r->check.reason;
    r->check.possible = r->check.exact = 0;
    if (r->program.inconsistency && event < r->device->event_count) {
        int used = snprintf(to, room, "event %zu: ", r->device->first_event + event);
        to += used;
        room -= (size_t)used;
    }
    snprintf(to, room, "%.*s", (int)room - 1, reason);
}

static size_t
matched_of(const struct dry_replay_check *check)
{
    return check->alloc_matched + check->segment_event_matched + check->block_matched;
}

/* Rules go by the release that was asked for, or by the first that had them. */
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
    struct dryi_check_subject subject = {
        .origin = &r->origin,
        .conf = &r->recorded_conf,
        .rules = rules,
        .progress = r->options.progress,
        .progress_self = r->options.progress_self,
    };
    struct dryi_check_outcome outcome;
    enum dry_status status = dryi_check_run(&r->program, &subject, &outcome, err);
    if (status != DRY_OK)
        return status;
    if (r->check.possible && matched_of(&outcome.check) <= matched_of(&r->check))
        return DRY_OK;
    r->outcome = outcome;
    r->check = outcome.check;
    r->check.compat = name_rules(r, rules);
    r->rules = rules;
    return DRY_OK;
}

/* The asked release, or the first of all that is exact, or else the one that fits best. */
static enum dry_status
check_against_record(struct dry_replay *r, struct dry_error *err)
{
    r->rules =
        dryi_torch_rules_find(r->options.compat ? r->options.compat : DEFAULT_RELEASE);
    if (!r->rules)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "compat '%.32s' is not a release like 2.11", r->options.compat);
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
    check->live_before = p->ghost_count;
    check->sizes_inferred = r->origin.sizes_inferred;
    check->frees_inferred = p->frees_inferred;
    check->empty_cache_count = p->empty_cache_count;
    check->retry_count = p->retry_count;
    check->pending_count = p->pending_count;
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
    enum dry_status status = dryi_program_init(&r->program, r->trace, r->device,
                                               &r->recorded_conf, &r->memory, err);
    if (status == DRY_OK && r->program.has_addresses)
        status = dryi_origin_init(&r->origin, &r->program, &r->recorded_conf, err);
    if (status != DRY_OK)
        return status;
    read_recorded_heights(r);
    struct dry_error local;
    status = check_against_record(r, err ? err : &local);
    complete_check(r);
    return status;
}

enum dry_status
dry_replay_create(const struct dry_trace *trace, const struct dry_replay_options *options,
                  struct dry_replay **replay, struct dry_error *err)
{
    struct dry_replay_options o;
    dry_replay_options_init(&o);
    enum dry_status status = dryi_options_take(&o, sizeof o, options, err);
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
    dryi_origin_finish(&r->origin);
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

/* --- for the modules above ---------------------------------------------------------------- */

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

const struct dryi_origin *
dryi_replay_origin(const struct dry_replay *replay)
{
    return &replay->origin;
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

/* --- runs --------------------------------------------------------------------------------- */

/* One run, its settings resolved. */
struct attempt {
    struct dryi_torch_conf conf;
    const struct dryi_torch_rules *rules;
    uint64_t capacity_bytes;
    bool stops_at_oom; /* also at one that was recorded */
    const struct dryi_listener *listener;
};

static void
fill_run(struct dry_run *run, const struct dry_stats *stats)
{
    run->stats = *stats;
    run->reserved_peak_bytes = (uint64_t)stats->reserved_bytes.all.peak;
    run->reserved_end_bytes = (uint64_t)stats->reserved_bytes.all.current;
    run->allocated_peak_bytes = (uint64_t)stats->allocated_bytes.all.peak;
    run->requested_peak_bytes = (uint64_t)stats->requested_bytes.all.peak;
}

static bool
is_cancelled(const struct dry_replay *r, size_t op)
{
    return op % DRYI_OPS_BETWEEN_PROGRESS == 0 && r->options.progress &&
           r->options.progress(r->options.progress_self, r->program.events[op]) != 0;
}

static void
note_oom(struct dry_run *run, size_t event, uint64_t size)
{
    if (run->oom)
        return;
    run->oom = 1;
    run->oom_event = event;
    run->oom_size = size;
}

/* DRY_END: the run ended early, out of memory. */
static enum dry_status
after_op(const struct dry_replay *r, const struct attempt *a, struct dry_run *run,
         size_t op, enum dry_status status)
{
    if (status == DRY_OK)
        return a->listener ? a->listener->after(a->listener->self, op) : DRY_OK;
    if (status != DRY_ERR_NO_SPACE)
        return status;
    const struct dryi_program *p = &r->program;
    note_oom(run, r->device->first_event + p->events[op], p->sizes[p->args[op]]);
    /* The recorded program went on after an OOM of its own, but not after a new one. */
    return p->kinds[op] == OP_OOM && !a->stops_at_oom ? DRY_OK : DRY_END;
}

static enum dry_status
place_ghosts(const struct dry_replay *r, const struct attempt *a, struct dryi_machine *m,
             struct dry_run *run)
{
    for (uint32_t g = 0; g < r->program.ghost_count; g++) {
        enum dry_status status = dryi_machine_place_ghost(m, g);
        if (status == DRY_OK && a->listener)
            status = a->listener->after(a->listener->self, NO_OP);
        if (status == DRY_ERR_NO_SPACE) {
            note_oom(run, r->device->first_event, r->program.sizes[g]);
            return DRY_END;
        }
        if (status != DRY_OK)
            return status;
    }
    return dryi_machine_begin_pending_frees(m);
}

static enum dry_status
run_machine(const struct dry_replay *r, const struct attempt *a, struct dryi_machine *m,
            struct dry_run *run)
{
    if (a->listener)
        a->listener->begin(a->listener->self, m);
    enum dry_status status = place_ghosts(r, a, m, run);
    for (size_t op = 0; op < r->program.op_count && status == DRY_OK; op++) {
        if (is_cancelled(r, op))
            return DRY_ERR_CANCELLED;
        status = after_op(r, a, run, op, dryi_machine_do(m, op));
        run->op_count++;
    }
    if (status == DRY_END)
        status = DRY_OK;
    return status == DRY_OK && a->listener ? a->listener->end(a->listener->self) : status;
}

static void
tell_listener(void *self, const struct dryi_place_event *event)
{
    const struct dryi_listener *listener = self;
    listener->event(listener->self, event);
}

static enum dry_status
run_anew(const struct dry_replay *r, const struct attempt *a, struct dry_run *run,
         struct dry_error *err)
{
    struct dryi_listener listener =
        a->listener ? *a->listener : (struct dryi_listener){0};
    struct dryi_machine_options options = {
        .conf = a->conf, .rules = a->rules, .capacity_bytes = a->capacity_bytes};
    if (a->listener)
        options.observer =
            (struct dryi_place_observer){.event = tell_listener, .self = &listener};
    struct dryi_machine machine;
    enum dry_status status =
        dryi_machine_init(&machine, &r->program, &options, &r->memory, err);
    if (status != DRY_OK)
        return status;
    *run = (struct dry_run){0};
    status = run_machine(r, a, &machine, run);
    struct dry_stats stats;
    struct dry_sim_account account;
    dryi_torch_get_stats(machine.place, &stats);
    dry_sim_get_account(machine.sim, &account);
    fill_run(run, &stats);
    run->driver_time_ns = account.time_ns;
    dryi_machine_finish(&machine);
    if (status == DRY_ERR_CANCELLED)
        return dryi_fail(err, status, "cancelled");
    if (status == DRY_ERR_MEMORY)
        return dryi_fail_memory(err, "a run of a replay");
    return status; /* or what the listener returned */
}

/* Once more from the rebuilt layout, listened to. */
static enum dry_status
watch(struct dry_replay *r, const struct dryi_listener *listener,
      struct dryi_check_outcome *outcome, struct dry_error *err)
{
    struct dryi_check_subject subject = {.origin = &r->origin,
                                         .conf = &r->recorded_conf,
                                         .rules = r->rules,
                                         .listener = listener};
    return dryi_check_run(&r->program, &subject, outcome, err);
}

enum dry_status
dryi_replay_watch(struct dry_replay *replay, const struct dryi_listener *listener,
                  struct dry_error *err)
{
    struct dryi_check_outcome outcome;
    return watch(replay, listener, &outcome, err);
}

static enum dry_status
run_as_recorded(struct dry_replay *r, const struct dryi_listener *listener,
                struct dry_run *run, struct dry_error *err)
{
    struct dryi_check_outcome outcome = r->outcome;
    if (listener) {
        enum dry_status status = watch(r, listener, &outcome, err);
        if (status != DRY_OK)
            return status;
    }
    *run = (struct dry_run){.as_recorded = 1,
                            .oom = r->recorded.oom,
                            .oom_event = r->recorded.oom_event,
                            .driver_time_ns = outcome.driver_time_ns,
                            .op_count = r->program.op_count};
    if (run->oom)
        run->oom_size = r->view->size[run->oom_event];
    fill_run(run, &outcome.stats);
    return DRY_OK;
}

/* --- the smallest device ------------------------------------------------------------------ */

static enum dry_status
try_capacity(const struct dry_replay *r, struct attempt *a, uint64_t capacity, bool *fits,
             struct dry_error *err)
{
    struct dry_run run;
    a->capacity_bytes = capacity;
    enum dry_status status = run_anew(r, a, &run, err);
    *fits = status == DRY_OK && !run.oom;
    return status;
}

/*
 * By bisection between what is alive at the peak, below which nothing can run, and what is
 * reserved without a limit. Fitting need not be monotone in theory; what is returned fits,
 * and one step less does not. 0: no device up to 2^50 bytes is large enough.
 */
static enum dry_status
find_capacity(const struct dry_replay *r, const struct attempt *wanted,
              const struct dry_run *unlimited, uint64_t *capacity, struct dry_error *err)
{
    struct attempt a = *wanted;
    a.listener = NULL;
    a.stops_at_oom = true;
    /* The last step below what is alive at the peak: that one cannot do. */
    uint64_t low = dryi_round_up(unlimited->allocated_peak_bytes, CAPACITY_STEP);
    low -= low > 0 ? CAPACITY_STEP : 0;
    uint64_t high = dryi_round_up(unlimited->reserved_peak_bytes, CAPACITY_STEP);
    bool fits = false;
    if (high == 0)
        high = CAPACITY_STEP;
    enum dry_status status = try_capacity(r, &a, high, &fits, err);
    while (status == DRY_OK && !fits && high < CAPACITY_MAX) {
        low = high; /* a limit that is a fraction of the device may need more */
        high *= 2;
        status = try_capacity(r, &a, high, &fits, err);
    }
    *capacity = 0;
    if (status != DRY_OK || !fits)
        return status;
    while (status == DRY_OK && high - low > CAPACITY_STEP) {
        uint64_t middle = low + dryi_round_down((high - low) / 2, CAPACITY_STEP);
        status = try_capacity(r, &a, middle, &fits, err);
        *(fits ? &high : &low) = middle;
    }
    *capacity = high;
    return status;
}

/* --- the call ----------------------------------------------------------------------------- */

static enum dry_status
resolve(const struct dry_replay *r, const struct dry_run_options *o, struct attempt *a,
        struct dry_error *err)
{
    *a = (struct attempt){
        .conf = r->recorded_conf, .rules = r->rules, .capacity_bytes = o->capacity_bytes};
    if (o->compat) {
        a->rules = dryi_torch_rules_find(o->compat);
        if (!a->rules)
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "compat '%.32s' is not a release like 2.11", o->compat);
    }
    if (a->capacity_bytes == 0)
        a->capacity_bytes =
            r->recorded.capacity_bytes ? r->recorded.capacity_bytes : DRY_SIM_UNLIMITED;
    if (!o->conf)
        return DRY_OK;
    dryi_torch_conf_init(&a->conf);
    enum dry_status status =
        dryi_torch_conf_parse(o->conf, strlen(o->conf), a->rules, &a->conf, err);
    if (status != DRY_ERR_FORMAT)
        return status;
    if (err)
        err->status = DRY_ERR_ARGUMENT; /* it is the caller's string, not the file's */
    return DRY_ERR_ARGUMENT;
}

static bool
is_as_recorded(const struct dry_replay *r, const struct dry_run_options *o)
{
    return !o->conf && !o->begin_anew && r->check.possible &&
           (o->capacity_bytes == DRY_SIM_UNLIMITED || o->capacity_bytes == 0) &&
           (!o->compat || dryi_torch_rules_find(o->compat) == r->rules);
}

static enum dry_status
run_with(struct dry_replay *r, const struct dry_run_options *o,
         const struct dryi_listener *listener, struct dry_run *run, struct dry_error *err)
{
    struct attempt a;
    enum dry_status status = resolve(r, o, &a, err);
    if (status != DRY_OK)
        return status;
    a.listener = listener;
    if (a.conf.per_process_memory_fraction < 1.0 && o->conf &&
        a.capacity_bytes == DRY_SIM_UNLIMITED)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "per_process_memory_fraction is a part of a device: state its "
                         "capacity");
    struct dry_run result;
    if (is_as_recorded(r, o))
        status = run_as_recorded(r, listener, &result, err);
    else
        status = run_anew(r, &a, &result, err);
    if (status == DRY_OK && o->find_capacity) {
        struct dry_run unlimited = result;
        if (a.capacity_bytes != DRY_SIM_UNLIMITED || result.as_recorded) {
            struct attempt free_run = a;
            free_run.capacity_bytes = DRY_SIM_UNLIMITED;
            free_run.listener = NULL;
            status = run_anew(r, &free_run, &unlimited, err);
        }
        if (status == DRY_OK)
            status = find_capacity(r, &a, &unlimited, &result.capacity_bytes, err);
    }
    if (status == DRY_OK)
        *run = result;
    return status;
}

enum dry_status
dry_replay_run(struct dry_replay *replay, const struct dry_run_options *options,
               struct dry_run *run, struct dry_error *err)
{
    struct dry_run_options o;
    dry_run_options_init(&o);
    enum dry_status status = dryi_options_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (!o.decisions)
        return run_with(replay, &o, NULL, run, err);
    struct dryi_decisions decisions;
    dryi_decisions_init(&decisions, &replay->program, o.decisions, err);
    struct dryi_listener listener = dryi_decisions_listener(&decisions);
    return run_with(replay, &o, &listener, run, err);
}

enum dry_status
dry_replay_record(struct dry_replay *replay, const struct dry_run_options *options,
                  struct dry_trace **recorded, struct dry_error *err)
{
    struct dry_run_options o;
    dry_run_options_init(&o);
    enum dry_status status = dryi_options_take(&o, sizeof o, options, err);
    struct attempt a;
    if (status == DRY_OK)
        status = resolve(replay, &o, &a, err);
    if (status != DRY_OK)
        return status;
    struct dryi_recorder recorder;
    status = dryi_recorder_init(&recorder, replay->trace, &replay->program, &a.conf,
                                o.conf ? o.conf : replay->recorded.conf, err);
    if (status != DRY_OK)
        return status;
    struct dryi_listener listener = dryi_recorder_listener(&recorder);
    struct dry_run run;
    status = run_with(replay, &o, &listener, &run, err);
    return dryi_recorder_finish(&recorder, status, recorded, err);
}
