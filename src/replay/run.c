/* SPDX-License-Identifier: Apache-2.0 */

/* Runs of a replay: the same requests under any settings, placement and capacity. */

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/sized.h"
#include "replay/decisions.h"
#include "replay/recorder.h"
#include "replay/replay_state.h"

/* Step of the search for a capacity: nearly all segments are multiples of 2 MiB. */
#define CAPACITY_STEP (UINT64_C(2) << 20)
#define CAPACITY_MAX (UINT64_C(1) << 50)

void
dry_run_options_init_sized(struct dry_run_options *options, size_t struct_size)
{
    const struct dry_run_options defaults = {.capacity_bytes = DRY_SIM_UNLIMITED,
                                             .steady_from = DRY_EVENT_NONE,
                                             .past_event = DRY_EVENT_NONE,
                                             .end_event = DRY_EVENT_NONE};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- runs --------------------------------------------------------------------------------- */

enum place_kind { TORCH, PAGED, OFFLINE };

static const char *const place_names[] = {"torch", "paged", "offline"};

/* One run with all options resolved. */
struct attempt {
    enum place_kind place;
    struct dryi_torch_conf conf;
    const struct dryi_torch_rules *rules;
    struct dryi_paged_conf paged;
    size_t steady_from, past_event, end_event;
    bool checks_order;
    uint64_t capacity_bytes;
    bool stops_at_oom; /* stop even at an OOM that was recorded */
    const struct dryi_listener *listener;
};

static bool
is_cancelled(const struct dry_replay *r, size_t op)
{
    return op % DRYI_OPS_BETWEEN_PROGRESS == 0 && r->options.progress &&
           r->options.progress(r->options.progress_self, r->program.events[op]);
}

static void
tell_refusal(const struct attempt *a)
{
    if (a->listener && a->listener->refused)
        a->listener->refused(a->listener->self);
}

/* Note that the run succeeds at the event asked about, and what it cannot give back there. */
static void
note_past(const struct dryi_execution *x, struct dry_run *run)
{
    struct dry_stats stats;
    x->place.ops->get_stats(x->place.self, &stats);
    run->gets_past = true;
    run->past_held_bytes = (uint64_t)stats.active_bytes.all.current +
                           (uint64_t)stats.inactive_split_bytes.all.current;
}

/* Note the outcome of an operation. Returns DRY_END if the run ended early, out of memory. */
static enum dry_status
after_op(const struct dry_replay *r, const struct attempt *a,
         const struct dryi_execution *x, struct dry_run *run, size_t op,
         enum dry_status status)
{
    const struct dryi_program *p = &r->program;
    size_t event = r->device->first_event + p->events[op];
    if (status == DRY_OK) {
        if (p->kinds[op] == OP_OOM && event == a->past_event)
            note_past(x, run);
        return a->listener ? a->listener->after(a->listener->self, op) : DRY_OK;
    }
    if (status != DRY_ERR_NO_SPACE)
        return status;
    dryi_run_note_oom(run, event, p->sizes[p->args[op]]);
    tell_refusal(a);
    /* The recorded program continued after its own OOM; after a new OOM it would not. */
    return p->kinds[op] == OP_OOM && !a->stops_at_oom ? DRY_OK : DRY_END;
}

static enum dry_status
place_carried(const struct dry_replay *r, const struct attempt *a,
              struct dryi_execution *x, struct dry_run *run)
{
    for (uint32_t i = 0; i < r->program.carried_count; i++) {
        enum dry_status status = dryi_execution_place_carried(x, i);
        if (status == DRY_OK && a->listener)
            status = a->listener->after(a->listener->self, NO_OP);
        if (status == DRY_ERR_NO_SPACE) {
            dryi_run_note_oom(run, r->device->first_event, r->program.sizes[i]);
            tell_refusal(a);
            return DRY_END;
        }
        if (status != DRY_OK)
            return status;
    }
    return dryi_execution_begin_pending_frees(x);
}

/* --- steady state ----------------------------------------------------------------------- */

/* The counters of a run at the start of its steady state. */
struct steady {
    size_t first_op; /* SIZE_MAX: no steady state */
    uint64_t driver_calls, driver_time_ns, pages_remapped;
};

static size_t
first_op_from(const struct dry_replay *r, size_t event)
{
    const struct dryi_program *p = &r->program;
    if (event == DRY_EVENT_NONE)
        return SIZE_MAX;
    for (size_t op = 0; op < p->op_count; op++) {
        if (r->device->first_event + p->events[op] >= event)
            return op;
    }
    return SIZE_MAX;
}

static uint64_t
get_pages_remapped(const struct dryi_execution *x)
{
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    if (x->place.ops->get_counters)
        x->place.ops->get_counters(x->place.self, &counters);
    return counters.pages_remapped;
}

static void
begin_steady(const struct dryi_execution *x, struct steady *steady, struct dry_run *run)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(x->sim, &account);
    steady->driver_calls = dryi_driver_calls(&account);
    steady->driver_time_ns = account.time_ns;
    steady->pages_remapped = get_pages_remapped(x);
    run->has_steady = true;
    run->steady_reserved_peak_bytes = account.used_bytes;
}

static void
watch_steady(const struct dryi_execution *x, struct dry_run *run)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(x->sim, &account);
    if (account.used_bytes > run->steady_reserved_peak_bytes)
        run->steady_reserved_peak_bytes = account.used_bytes;
}

static void
end_steady(const struct dryi_execution *x, const struct steady *steady,
           struct dry_run *run)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(x->sim, &account);
    run->steady_driver_calls = dryi_driver_calls(&account) - steady->driver_calls;
    run->steady_driver_time_ns = account.time_ns - steady->driver_time_ns;
    run->steady_pages_remapped = get_pages_remapped(x) - steady->pages_remapped;
}

/* --- one run ------------------------------------------------------------------------------ */

static enum dry_status
run_ops(const struct dry_replay *r, const struct attempt *a, struct dryi_execution *x,
        struct dry_run *run)
{
    struct steady steady = {.first_op = first_op_from(r, a->steady_from)};
    enum dry_status status = DRY_OK;
    for (size_t op = 0; op < r->program.op_count && status == DRY_OK; op++) {
        if (r->device->first_event + r->program.events[op] >= a->end_event)
            break;
        if (is_cancelled(r, op))
            return DRY_ERR_CANCELLED;
        if (op == steady.first_op)
            begin_steady(x, &steady, run);
        status = after_op(r, a, x, run, op, dryi_execution_do(x, op));
        if (run->has_steady)
            watch_steady(x, run);
        run->op_count++;
    }
    if (run->has_steady)
        end_steady(x, &steady, run);
    return status;
}

static enum dry_status
run_from_empty(const struct dry_replay *r, const struct attempt *a,
               struct dryi_execution *x, struct dry_run *run)
{
    if (a->listener)
        a->listener->begin(a->listener->self, x);
    enum dry_status status = place_carried(r, a, x, run);
    if (status == DRY_OK)
        status = run_ops(r, a, x, run);
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

static void
conclude_order(const struct dryi_execution *x, struct dry_run *run)
{
    struct dry_sim_finding first = DRY_INIT(struct dry_sim_finding);
    run->has_order = x->checks_order;
    run->order_fault_count = dry_sim_get_finding_count(x->sim);
    if (dry_sim_get_finding(x->sim, 0, &first) == DRY_OK)
        snprintf(run->first_order_fault, sizeof run->first_order_fault, "%s", first.text);
}

static void
conclude(const struct dryi_execution *x, struct dry_run *run)
{
    struct dry_stats stats;
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    x->place.ops->get_stats(x->place.self, &stats);
    if (x->place.ops->get_counters)
        x->place.ops->get_counters(x->place.self, &counters);
    dry_sim_get_account(x->sim, &account);
    dryi_run_fill(run, &stats);
    run->driver_time_ns = account.time_ns;
    run->driver_calls = dryi_driver_calls(&account);
    conclude_order(x, run);
    if (x->torch)
        return; /* the driver manages the pages of PyTorch's segments */
    run->pages_created = counters.pages_created;
    run->pages_released = counters.pages_released;
    run->pages_remapped = counters.pages_remapped;
    run->reused_ordered = counters.reused_ordered;
    run->reused_passed = counters.reused_passed;
    run->reused_waiting = counters.reused_waiting;
    run->plans_made = counters.plans_made;
    run->hints_taken = counters.hints_taken;
    run->hints_refused = counters.hints_refused;
}

static enum dry_status
run_simulated(const struct dry_replay *r, const struct attempt *a, struct dry_run *run,
              struct dry_error *err)
{
    struct dryi_listener listener =
        a->listener ? *a->listener : (struct dryi_listener){0};
    struct dryi_execution_options options = {
        .kind = a->place == PAGED ? DRYI_EXECUTION_PAGED : DRYI_EXECUTION_TORCH,
        .conf = a->conf,
        .rules = a->rules,
        .paged = a->paged,
        .capacity_bytes = a->capacity_bytes,
        .check_order = a->checks_order,
    };
    if (a->listener)
        options.observer =
            (struct dryi_place_observer){.event = tell_listener, .self = &listener};
    struct dryi_execution execution;
    enum dry_status status =
        dryi_execution_init(&execution, &r->program, &options, &r->memory, err);
    if (status != DRY_OK)
        return status;
    *run = (struct dry_run){.place = place_names[a->place]};
    status = run_from_empty(r, a, &execution, run);
    conclude(&execution, run);
    dryi_execution_finish(&execution);
    if (status == DRY_ERR_CANCELLED)
        return dryi_fail(err, status, "cancelled");
    if (status == DRY_ERR_MEMORY)
        return dryi_fail_memory(err, "a run of a replay");
    return status; /* the listener may also have returned an error */
}

/* --- from the recorded layout ------------------------------------------------------------- */

/* Repeat the self-check from the recorded layout, with a listener. */
static enum dry_status
watch(struct dry_replay *r, const struct dryi_listener *listener,
      struct dryi_self_check_outcome *outcome, struct dry_error *err)
{
    struct dryi_self_check_subject subject = {.initial_layout = &r->initial_layout,
                                              .conf = &r->recorded_conf,
                                              .rules = r->rules,
                                              .listener = listener};
    return dryi_self_check_run(&r->program, &subject, outcome, err);
}

enum dry_status
dryi_replay_watch(struct dry_replay *replay, const struct dryi_listener *listener,
                  struct dry_error *err)
{
    struct dryi_self_check_outcome outcome;
    return watch(replay, listener, &outcome, err);
}

static enum dry_status
run_as_recorded(struct dry_replay *r, const struct dryi_listener *listener,
                struct dry_run *run, struct dry_error *err)
{
    struct dryi_self_check_outcome outcome = r->outcome;
    if (listener) {
        enum dry_status status = watch(r, listener, &outcome, err);
        if (status != DRY_OK)
            return status;
    }
    *run = (struct dry_run){.place = place_names[TORCH],
                            .as_recorded = true,
                            .oom = r->recorded.oom,
                            .oom_event = r->recorded.oom_event,
                            .driver_time_ns = outcome.driver_time_ns,
                            .driver_calls = outcome.driver_calls,
                            .op_count = r->program.op_count};
    if (run->oom)
        run->oom_size = r->view->size[run->oom_event];
    dryi_run_fill(run, &outcome.stats);
    return DRY_OK;
}

/* --- the smallest capacity ---------------------------------------------------------------- */

static enum dry_status
try_capacity(const struct dry_replay *r, struct attempt *a, uint64_t capacity, bool *fits,
             struct dry_error *err)
{
    struct dry_run run;
    a->capacity_bytes = capacity;
    enum dry_status status = run_simulated(r, a, &run, err);
    *fits = status == DRY_OK && !run.oom;
    return status;
}

/*
 * Find the smallest capacity that fits by bisection, between the bytes alive at the peak, a lower
 * bound, and the bytes reserved without a limit. In theory fitting is not monotone. The result
 * fits, and one step less does not. It is 0 if no capacity up to 2^50 bytes fits.
 */
static enum dry_status
find_capacity(const struct dry_replay *r, const struct attempt *wanted,
              const struct dry_run *unlimited, uint64_t *capacity, struct dry_error *err)
{
    struct attempt a = *wanted;
    a.listener = NULL;
    a.stops_at_oom = true;
    /* Start one step below the peak of live bytes: that capacity is certainly too small. */
    uint64_t low = dryi_round_up(unlimited->allocated_peak_bytes, CAPACITY_STEP);
    low -= low > 0 ? CAPACITY_STEP : 0;
    uint64_t high = dryi_round_up(unlimited->reserved_peak_bytes, CAPACITY_STEP);
    bool fits = false;
    if (high == 0)
        high = CAPACITY_STEP;
    enum dry_status status = try_capacity(r, &a, high, &fits, err);
    while (status == DRY_OK && !fits && high < CAPACITY_MAX) {
        low = high; /* a memory fraction below 1 may need a larger device */
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

/* --- options and the public call ---------------------------------------------------------- */

static enum dry_status
resolve_place(const struct dry_run_options *o, enum place_kind *place,
              struct dry_error *err)
{
    *place = TORCH;
    if (!o->place)
        return DRY_OK;
    for (size_t i = 0; i < sizeof place_names / sizeof *place_names; i++) {
        if (strcmp(o->place, place_names[i]) == 0) {
            *place = (enum place_kind)i;
            return DRY_OK;
        }
    }
    return dryi_fail(err, DRY_ERR_ARGUMENT,
                     "'%.32s' is no place: torch, paged or offline", o->place);
}

/* Parse the option string by the placement's grammar. */
static enum dry_status
parse_conf(const struct dry_replay *r, const struct dry_run_options *o, struct attempt *a,
           struct dry_error *err)
{
    size_t length = o->conf ? strlen(o->conf) : 0;
    switch (a->place) {
    case TORCH:
        if (!o->conf)
            return DRY_OK;
        dryi_torch_conf_init(&a->conf);
        return dryi_torch_conf_parse(o->conf, length, a->rules, &a->conf, err);
    case PAGED:
        a->paged = r->recorded_paged;
        if (!o->conf)
            return DRY_OK;
        dryi_paged_conf_init(&a->paged);
        if (length == 0)
            return DRY_OK;
        return dryi_paged_conf_parse(o->conf, length, dryi_torch_conf_has, &a->paged,
                                     err);
    case OFFLINE:
        if (length > 0)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "a packing has no settings");
        if (o->end_event != DRY_EVENT_NONE)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "a packing is of the whole program");
        return DRY_OK;
    }
    return DRY_OK;
}

static double
get_fraction(const struct attempt *a)
{
    return a->place == PAGED ? a->paged.per_process_memory_fraction
                             : a->conf.per_process_memory_fraction;
}

static enum dry_status
resolve(const struct dry_replay *r, const struct dry_run_options *o, struct attempt *a,
        struct dry_error *err)
{
    *a = (struct attempt){.conf = r->recorded_conf,
                          .rules = r->rules,
                          .steady_from = o->steady_from,
                          .past_event = o->past_event,
                          .end_event = o->end_event,
                          .checks_order = o->check_order,
                          .capacity_bytes = o->capacity_bytes};
    if (o->compat) {
        a->rules = dryi_torch_rules_find(o->compat);
        if (!a->rules)
            return dryi_torch_rules_refuse(o->compat, err);
    }
    if (a->capacity_bytes == 0)
        a->capacity_bytes =
            r->recorded.capacity_bytes ? r->recorded.capacity_bytes : DRY_SIM_UNLIMITED;
    enum dry_status status = resolve_place(o, &a->place, err);
    if (status == DRY_OK)
        status = parse_conf(r, o, a, err);
    if (status == DRY_ERR_FORMAT) {
        status = DRY_ERR_ARGUMENT; /* the caller's string is malformed, not the file */
        if (err)
            err->status = status;
    }
    if (status == DRY_OK && get_fraction(a) < 1.0 && o->conf &&
        a->capacity_bytes == DRY_SIM_UNLIMITED)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "per_process_memory_fraction is a part of a device: state its "
                         "capacity");
    return status;
}

static enum dry_status
take_options(const struct dry_replay *r, const struct dry_run_options *given,
             struct dry_run_options *o, struct attempt *a, struct dry_error *err)
{
    dry_run_options_init(o);
    if (r->view->is_of_driver)
        return dryi_fail(
            err, DRY_ERR_UNSUPPORTED,
            "the trace tells what processes got from CUDA's driver, no requests "
            "to an allocator: they cannot be run");
    enum dry_status status = dryi_sized_take(o, sizeof *o, given, err);
    return status == DRY_OK ? resolve(r, o, a, err) : status;
}

static bool
is_as_recorded(const struct dry_replay *r, const struct dry_run_options *o,
               const struct attempt *a)
{
    return a->place == TORCH && !o->conf && !o->begin_anew && !o->check_order &&
           o->end_event == DRY_EVENT_NONE && r->check.possible &&
           (o->capacity_bytes == DRY_SIM_UNLIMITED || o->capacity_bytes == 0) &&
           (!o->compat || dryi_torch_rules_find(o->compat) == r->rules);
}

/* Run with the attempt's listener; then find the capacity if requested. */
static enum dry_status
run_attempt(struct dry_replay *r, const struct dry_run_options *o, struct attempt a,
            struct dry_run *run, struct dry_error *err)
{
    struct dry_run result;
    enum dry_status status;
    if (is_as_recorded(r, o, &a))
        status = run_as_recorded(r, a.listener, &result, err);
    else
        status = run_simulated(r, &a, &result, err);
    if (status == DRY_OK && o->find_capacity) {
        struct dry_run unlimited = result;
        if (a.capacity_bytes != DRY_SIM_UNLIMITED || result.as_recorded) {
            struct attempt free_run = a;
            free_run.capacity_bytes = DRY_SIM_UNLIMITED;
            free_run.listener = NULL;
            status = run_simulated(r, &free_run, &unlimited, err);
        }
        if (status == DRY_OK)
            status = find_capacity(r, &a, &unlimited, &result.capacity_bytes, err);
    }
    if (status == DRY_OK)
        *run = result;
    return status;
}

static enum dry_status
run_packed(struct dry_replay *r, const struct dry_run_options *o, const struct attempt *a,
           struct dryi_decisions *decisions, struct dry_run *run, struct dry_error *err)
{
    struct dry_run result = {.place = place_names[OFFLINE]};
    enum dry_status status =
        dryi_run_packed(r, a->capacity_bytes, decisions, &result, err);
    if (o->find_capacity)
        result.capacity_bytes =
            result.reserved_peak_bytes ? result.reserved_peak_bytes : CAPACITY_STEP;
    if (status == DRY_OK)
        *run = result;
    return status;
}

enum dry_status
dry_replay_run(struct dry_replay *replay, const struct dry_run_options *options,
               struct dry_run *run, struct dry_error *err)
{
    struct dry_run_options o;
    struct attempt a = {0};
    enum dry_status status = take_options(replay, options, &o, &a, err);
    if (status != DRY_OK)
        return status;
    struct dryi_decisions decisions;
    struct dryi_listener listener;
    if (o.decisions) {
        dryi_decisions_init(&decisions, &replay->program, o.decisions, err);
        listener = dryi_decisions_listener(&decisions);
        a.listener = &listener;
    }
    if (a.place == OFFLINE)
        return run_packed(replay, &o, &a, o.decisions ? &decisions : NULL, run, err);
    return run_attempt(replay, &o, a, run, err);
}

enum dry_status
dry_replay_record(struct dry_replay *replay, const struct dry_run_options *options,
                  struct dry_trace **recorded, struct dry_error *err)
{
    struct dry_run_options o;
    struct attempt a = {0};
    enum dry_status status = take_options(replay, options, &o, &a, err);
    if (status == DRY_OK && a.place != TORCH)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                         "a trace tells its settings as PyTorch's: no place but torch");
    if (status != DRY_OK)
        return status;
    struct dryi_recorder recorder;
    status = dryi_recorder_init(&recorder, replay->trace, &replay->program, &a.conf,
                                o.conf ? o.conf : replay->recorded.conf, err);
    if (status != DRY_OK)
        return status;
    struct dryi_listener listener = dryi_recorder_listener(&recorder);
    a.listener = &listener;
    struct dry_run run;
    status = run_attempt(replay, &o, a, &run, err);
    return dryi_recorder_finish(&recorder, status, recorded, err);
}
