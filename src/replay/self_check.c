/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The execution's observer compares each segment event with the next recorded one. A map holds the
 * expected events of a burst whose segments are released in no fixed order. Cost: one run of the
 * program. self_check.h has the idea.
 */
#include "replay/self_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "trace/model/trace.h"

struct proof {
    struct dryi_program *p;
    const struct dryi_initial_layout *initial_layout;
    struct dry_replay_check *check;
    const struct dryi_self_check_subject *subject;
    const struct dryi_listener *listener;
    const uint8_t *action; /* arrays of the device's events */
    const uint64_t *addr, *size;
    struct dryi_execution execution;
    size_t next;       /* index in the program's segment_events: the next expected one */
    size_t bound;      /* end of the segment events that the
                          current operation may cause */
    uint32_t event;    /* the current operation's event */
    bool is_unordered; /* in a burst that releases private pools; `expected`
                          holds the remaining events */
    struct dryi_map expected; /* address -> event, of segments and pages to release */
    bool is_watching;         /* false while the initial layout is restored,
                                 which is not in the record */
    bool failed;              /* memory ran out */
};

__attribute__((format(printf, 3, 4))) static void
mismatch(struct proof *f, uint32_t event, const char *format, ...)
{
    struct dry_mismatch *m = &f->check->first_mismatch;
    if (f->check->has_mismatch)
        return;
    f->check->has_mismatch = true;
    m->event = event == NO_EVENT || event >= f->p->device->event_count
                   ? SIZE_MAX
                   : f->p->device->first_event + event;
    va_list args;
    va_start(args, format);
    vsnprintf(m->what, sizeof m->what, format, args);
    va_end(args);
}

/* --- while it runs ------------------------------------------------------------------------ */

static bool
is_segment_action(enum dry_action action)
{
    return action == DRY_ACTION_SEGMENT_ALLOC || action == DRY_ACTION_SEGMENT_FREE ||
           action == DRY_ACTION_SEGMENT_MAP || action == DRY_ACTION_SEGMENT_UNMAP;
}

static bool
is_recorded_as(const struct proof *f, uint32_t e, const struct dryi_place_event *event)
{
    return f->action[e] == event->action && f->addr[e] == event->addr &&
           f->size[e] == event->size;
}

/*
 * Match segment events of private pools in any order. PyTorch releases these pools in the order of
 * a hash table, which cannot be reproduced. Any order matches from a burst's first such event on.
 */
static bool
is_recorded_out_of_order(struct proof *f, const struct dryi_place_event *event)
{
    if (!f->is_unordered && event->pool.a == 0 && event->pool.b == 0)
        return false;
    if (!f->is_unordered) {
        dryi_map_finish(&f->expected);
        for (size_t i = f->next; i < f->bound; i++) {
            uint32_t e = f->p->segment_events[i];
            f->failed |= !dryi_map_put(&f->expected, f->addr[e], e);
        }
        f->is_unordered = true;
    }
    const uint32_t *e = dryi_map_find(&f->expected, event->addr);
    return e && is_recorded_as(f, *e, event) && dryi_map_take(&f->expected, event->addr);
}

static void
on_segment_event(struct proof *f, const struct dryi_place_event *event)
{
    if (f->next >= f->bound) {
        mismatch(f, f->event, "replayed: %s of %llu; the recording has none here",
                 dry_action_name(event->action), (unsigned long long)event->size);
        return;
    }
    uint32_t e = f->p->segment_events[f->next];
    bool in_order = !f->is_unordered && is_recorded_as(f, e, event);
    if (in_order || is_recorded_out_of_order(f, event)) {
        f->check->segment_event_matched++;
        f->next++;
        return;
    }
    mismatch(f, e, "recorded: %s of %llu at %#llx; replayed: %s of %llu at %#llx",
             dry_action_name(f->action[e]), (unsigned long long)f->size[e],
             (unsigned long long)f->addr[e], dry_action_name(event->action),
             (unsigned long long)event->size, (unsigned long long)event->addr);
}

static void
on_event(void *self, const struct dryi_place_event *event)
{
    struct proof *f = self;
    if (!f->is_watching)
        return;
    if (f->listener)
        f->listener->event(f->listener->self, event);
    if (is_segment_action(event->action))
        on_segment_event(f, event);
}

/* Return the address that the device returned in the record. */
static uint64_t
choose_address(void *self, enum dry_sim_call call, uint64_t size)
{
    struct proof *f = self;
    enum dry_action wanted =
        call == DRY_SIM_ALLOC ? DRY_ACTION_SEGMENT_ALLOC : DRY_ACTION_SEGMENT_MAP;
    (void)size;
    for (size_t i = f->next; i < f->bound; i++) {
        uint32_t e = f->p->segment_events[i];
        if (f->action[e] == wanted)
            return f->addr[e];
    }
    return 0;
}

/* Return whether the rest of a burst may belong to the next operation. */
static bool
goes_on(const struct dryi_program *p, size_t op)
{
    return op + 1 < p->op_count && p->kinds[op + 1] == OP_EMPTY_POOL;
}

static bool
gives_back(const struct proof *f, uint32_t event)
{
    return f->action[event] == DRY_ACTION_SEGMENT_FREE ||
           f->action[event] == DRY_ACTION_SEGMENT_UNMAP;
}

/* Return the end of the recorded segment events that an operation may cause. They reach to its own
   event, or, if it releases cached memory, to the end of the burst. */
static size_t
find_bound(const struct proof *f, size_t op)
{
    const struct dryi_program *p = f->p;
    size_t bound = f->next;
    enum op_kind kind = p->kinds[op];
    if (kind == OP_ALLOC || kind == OP_OOM) {
        while (bound < p->segment_event_count && p->segment_events[bound] < p->events[op])
            bound++;
    } else if (kind == OP_EMPTY_CACHE || kind == OP_EMPTY_POOL) {
        while (goes_on(p, op))
            op++;
        uint32_t end = op + 1 < p->op_count ? p->events[op + 1] : NO_EVENT;
        while (bound < p->segment_event_count && p->segment_events[bound] < end &&
               gives_back(f, p->segment_events[bound]))
            bound++;
    }
    return bound;
}

/* Limit the device to the capacity that the record proves. */
static void
fill_device(struct proof *f, const struct limit *limit)
{
    int64_t above = limit->before > limit->after ? limit->before : limit->after;
    if (limit->free_bytes != UINT64_MAX)
        above = limit->after + (int64_t)limit->free_bytes;
    dry_sim_set_capacity(f->execution.sim, f->initial_layout->reserved + (uint64_t)above);
}

/*
 * Turn a presumed retry into empty_cache() if it cannot have been a retry. A retry needs a request
 * that misses the cache, and releases oversize segments first. So the burst was the program's own
 * if the cache could serve the next request, or if it begins with another segment.
 */
static void
reconsider_burst(struct proof *f, size_t op)
{
    struct dryi_program *p = f->p;
    if (f->subject->is_trial || p->kinds[op] != OP_DEVICE_FULL ||
        p->limits[p->args[op]].free_bytes != UINT64_MAX || op + 1 >= p->op_count ||
        p->kinds[op + 1] != OP_ALLOC || f->next >= p->segment_event_count)
        return;
    uint32_t request = p->args[op + 1];
    const struct lane *lane = dryi_program_lane(p, p->lanes[request]);
    struct dryi_torch_outlook outlook;
    dryi_torch_look_ahead(f->execution.torch, p->sizes[request], lane->stream, lane->pool,
                          &outlook);
    uint32_t first = p->segment_events[f->next];
    bool is_one = f->next + 1 == p->segment_event_count ||
                  !gives_back(f, p->segment_events[f->next + 1]);
    bool is_oversize_first =
        outlook.released_first == f->addr[first] && (is_one || !outlook.suffices);
    if (!outlook.is_served && (outlook.released_first == 0 || is_oversize_first))
        return;
    p->kinds[op] = OP_EMPTY_CACHE;
    p->retry_count--;
    p->empty_cache_count++;
}

static void
compare_alloc(struct proof *f, uint32_t request)
{
    struct dryi_block_info info;
    uint64_t recorded = dryi_program_addr(f->p, request);
    if (f->execution.handles[request] == DRYI_NO_BLOCK) {
        mismatch(f, f->event, "alloc of 0 bytes: recorded at %#llx, replayed nowhere",
                 (unsigned long long)recorded);
        return;
    }
    dryi_torch_get_block(f->execution.torch, f->execution.handles[request], &info);
    if (info.addr == recorded) {
        f->check->alloc_matched++;
        return;
    }
    mismatch(f, f->event, "alloc of %llu: recorded at %#llx, replayed at %#llx",
             (unsigned long long)f->p->sizes[request], (unsigned long long)recorded,
             (unsigned long long)info.addr);
}

static enum dry_status
do_and_compare(struct proof *f, size_t op)
{
    const struct dryi_program *p = f->p;
    reconsider_burst(f, op);
    enum op_kind kind = p->kinds[op];
    f->event = p->events[op];
    f->is_unordered = false;
    f->bound = find_bound(f, op);
    enum dry_status status = dryi_execution_do(&f->execution, op);
    if (kind == OP_DEVICE_FULL)
        fill_device(f, &p->limits[p->args[op]]);
    else if (kind == OP_ALLOC || kind == OP_OOM)
        dry_sim_set_capacity(f->execution.sim, DRY_SIM_UNLIMITED);
    if (kind == OP_ALLOC && status == DRY_OK)
        compare_alloc(f, p->args[op]);
    if (kind == OP_ALLOC && status == DRY_ERR_NO_SPACE)
        mismatch(f, f->event, "alloc of %llu: replayed as out of memory",
                 (unsigned long long)p->sizes[p->args[op]]);
    if (kind == OP_OOM && status == DRY_OK)
        mismatch(f, f->event, "recorded: out of memory; replayed: it fitted");
    if (f->next < f->bound && !goes_on(p, op)) {
        uint32_t e = p->segment_events[f->next];
        mismatch(f, e, "recorded: %s of %llu; replayed: nothing",
                 dry_action_name(f->action[e]), (unsigned long long)f->size[e]);
        f->next = f->bound;
    }
    if (f->failed)
        return DRY_ERR_MEMORY;
    return status == DRY_ERR_NO_SPACE ? DRY_OK : status;
}

/* --- the final layout --------------------------------------------------------------------- */

struct layout {
    struct proof *f;
    const struct dry_trace_segment **segments; /* the recording's, sorted by address */
    size_t count, next;
};

static bool
is_same_segment(const struct dry_trace_view *v, const struct dry_trace_segment *s,
                const struct dryi_segment_info *info)
{
    const struct dry_lane *lane = &v->lanes[s->lane];
    return s->address == info->addr && s->total_size == info->size &&
           lane->stream == info->stream && lane->pool_a == info->pool.a &&
           lane->pool_b == info->pool.b && s->is_large == info->is_large &&
           s->is_expandable == info->is_expandable;
}

static bool
is_same_block(const struct dry_trace_block *b, const struct dryi_block_info *info)
{
    enum dry_block_state state = info->allocated ? DRY_BLOCK_ACTIVE
                                 : info->pending ? DRY_BLOCK_PENDING_FREE
                                                 : DRY_BLOCK_INACTIVE;
    return b->address == info->addr && b->size == info->size && b->state == state &&
           (state == DRY_BLOCK_INACTIVE || b->requested_size == 0 || /* 0: not recorded */
            b->requested_size == info->requested);
}

/* Match blocks by address, so that one missing block does not affect the others. */
static size_t
match_blocks(const struct dry_trace_block *recorded, size_t recorded_count,
             const struct dryi_block_info *blocks, size_t count)
{
    size_t matched = 0;
    for (size_t i = 0, j = 0; i < recorded_count && j < count;) {
        if (recorded[i].address < blocks[j].addr) {
            i++;
        } else if (recorded[i].address > blocks[j].addr) {
            j++;
        } else {
            matched += is_same_block(&recorded[i], &blocks[j]);
            i++;
            j++;
        }
    }
    return matched;
}

static void
miss_segment(struct layout *l, const struct dry_trace_segment *s)
{
    mismatch(l->f, NO_EVENT, "final layout: no segment of %llu at %#llx came out",
             (unsigned long long)s->total_size, (unsigned long long)s->address);
}

static enum dry_status
on_segment(void *self, const struct dryi_segment_info *info,
           const struct dryi_block_info *blocks, size_t count)
{
    struct layout *l = self;
    struct proof *f = l->f;
    const struct dry_trace_view *v = f->p->view;
    while (l->next < l->count && l->segments[l->next]->address < info->addr)
        miss_segment(l, l->segments[l->next++]);
    if (l->next == l->count || l->segments[l->next]->address != info->addr) {
        mismatch(f, NO_EVENT, "final layout: a segment of %llu at %#llx is not recorded",
                 (unsigned long long)info->size, (unsigned long long)info->addr);
        return DRY_OK;
    }
    const struct dry_trace_segment *s = l->segments[l->next++];
    size_t matched = 0;
    if (s->block_count > 0)
        matched = match_blocks(&v->blocks[s->first_block], s->block_count, blocks, count);
    f->check->block_matched += matched;
    if (matched != s->block_count || matched != count)
        mismatch(f, NO_EVENT,
                 "final layout: segment of %llu at %#llx: %zu of %zu block%s as recorded",
                 (unsigned long long)s->total_size, (unsigned long long)s->address,
                 matched, s->block_count, s->block_count == 1 ? "" : "s");
    else if (!is_same_segment(v, s, info))
        mismatch(
            f, NO_EVENT,
            "final layout: segment of %llu at %#llx: its stream, pool or kind differs",
            (unsigned long long)s->total_size, (unsigned long long)s->address);
    else
        f->check->segment_matched++;
    return DRY_OK;
}

static enum dry_status
compare_layout(struct proof *f)
{
    const struct dry_trace_device *d = f->p->device;
    const struct dry_memory *memory = &f->execution.memory;
    struct layout l = {.f = f, .count = d->segment_count};
    l.segments = dryi_memory_zalloc(memory, l.count + 1, sizeof(*l.segments));
    if (!l.segments)
        return DRY_ERR_MEMORY;
    for (size_t i = 0; i < l.count; i++) {
        l.segments[i] = &f->p->view->segments[d->first_segment + i];
        f->check->block_count += l.segments[i]->block_count;
    }
    f->check->segment_count = l.count;
    qsort(l.segments, l.count, sizeof(*l.segments), dryi_trace_compare_segments);
    enum dry_status status = dryi_torch_walk(f->execution.torch, on_segment, &l);
    while (status == DRY_OK && l.next < l.count)
        miss_segment(&l, l.segments[l.next++]);
    dryi_memory_free(memory, l.segments, l.count + 1, sizeof(*l.segments));
    return status;
}

/* --- running the check -------------------------------------------------------------------- */

static bool
is_cancelled(const struct dryi_self_check_subject *subject, size_t op, uint32_t event)
{
    return op % DRYI_OPS_BETWEEN_PROGRESS == 0 && subject->progress &&
           subject->progress(subject->progress_self, event);
}

static enum dry_status
prove(struct proof *f, struct dry_error *err)
{
    const struct dryi_program *p = f->p;
    enum dry_status status =
        dryi_execution_begin_at(&f->execution, f->initial_layout, err);
    if (status != DRY_OK)
        return status;
    f->is_watching = true;
    if (f->listener)
        f->listener->begin(f->listener->self, &f->execution);
    for (size_t op = 0; op < p->op_count && status == DRY_OK; op++) {
        if (f->subject->is_trial && f->check->has_mismatch)
            return DRY_OK;
        if (is_cancelled(f->subject, op, p->events[op]))
            return dryi_fail(err, DRY_ERR_CANCELLED, "cancelled");
        status = do_and_compare(f, op);
        if (status == DRY_OK && f->listener)
            status = f->listener->after(f->listener->self, op);
    }
    if (status == DRY_OK && f->next < p->segment_event_count)
        mismatch(f, p->segment_events[f->next], "recorded: %s; replayed: nothing",
                 dry_action_name(f->action[p->segment_events[f->next]]));
    /* frees that the record shows as completed */
    dryi_torch_process_events(f->execution.torch);
    if (status == DRY_OK)
        status = compare_layout(f);
    if (status == DRY_OK && f->listener)
        status = f->listener->end(f->listener->self);
    if (status == DRY_ERR_MEMORY)
        return dryi_fail_memory(err, "the self-check of a replay");
    return status;
}

static void
conclude(struct proof *f, struct dryi_self_check_outcome *outcome)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(f->execution.sim, &account);
    dryi_torch_get_stats(f->execution.torch, &outcome->stats);
    outcome->driver_time_ns = account.time_ns;
    outcome->driver_calls = dryi_driver_calls(&account);
    f->check->exact = !f->check->has_mismatch;
}

enum dry_status
dryi_self_check_run(struct dryi_program *program,
                    const struct dryi_self_check_subject *subject,
                    struct dryi_self_check_outcome *outcome, struct dry_error *err)
{
    *outcome = (struct dryi_self_check_outcome){.check = {.possible = true}};
    struct proof f = {.p = program,
                      .initial_layout = subject->initial_layout,
                      .check = &outcome->check,
                      .subject = subject,
                      .listener = subject->listener,
                      .action = program->action,
                      .addr = program->addr,
                      .size = program->size};
    struct dryi_execution_options options = {
        .conf = *subject->conf,
        .rules = subject->rules,
        .capacity_bytes = DRY_SIM_UNLIMITED,
        .observer = {.event = on_event, .self = &f},
        .choose_address = choose_address,
        .choose_self = &f,
    };
    enum dry_status status =
        dryi_execution_init(&f.execution, program, &options, &program->memory, err);
    if (status != DRY_OK)
        return status;
    dryi_map_init(&f.expected, &program->memory);
    for (size_t op = 0; op < program->op_count; op++)
        f.check->alloc_count += program->kinds[op] == OP_ALLOC;
    f.check->segment_event_count = program->segment_event_count;
    status = prove(&f, err);
    if (status == DRY_OK)
        conclude(&f, outcome);
    dryi_map_finish(&f.expected);
    dryi_execution_finish(&f.execution);
    return status;
}
