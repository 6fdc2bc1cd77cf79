/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Write the changed program beside the recorded one, and run it as any other. It shares all
 * columns but its operations, lanes and sizes. Cost: O(operations), and a run; two if it fails.
 */
#include "replay/altered/altered.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/search.h"
#include "replay/replay_state.h"

struct writer {
    const struct dryi_alteration *wanted;
    const struct dryi_program *from;
    struct dryi_program to;
    size_t op_capacity, request_capacity;
    uint8_t *states; /* enum request_state of each request */
    size_t next;     /* the first of the early frees that is not written */
};

enum request_state { UNMADE, ALIVE, GONE };

static void
write_op(struct writer *w, enum op_kind kind, uint32_t arg, uint32_t event)
{
    size_t i = w->to.op_count++;
    w->to.kinds[i] = (uint8_t)kind;
    w->to.args[i] = arg;
    w->to.events[i] = event;
    if (kind == OP_ALLOC)
        w->states[arg] = ALIVE;
    else if (kind == OP_FREE)
        w->states[arg] = GONE;
}

/* Return the request of the allocation at `event`; the number of requests if there is none. */
static size_t
find_request(const struct dryi_program *p, uint32_t event)
{
    const uint32_t *events = p->alloc_events + p->carried_count;
    size_t count = p->request_count - p->carried_count;
    size_t i = dryi_count_below(events, count, sizeof *events, 0, event);
    return i < count && events[i] == event ? p->carried_count + i : p->request_count;
}

/* Write the early frees up to `event`. */
static void
write_frees(struct writer *w, uint32_t event)
{
    const struct dryi_alteration *a = w->wanted;
    for (; w->next < a->free_count && a->frees[w->next].free_event <= event; w->next++) {
        size_t request = find_request(w->from, a->frees[w->next].alloc_event);
        if (request < w->from->request_count && w->states[request] == ALIVE)
            write_op(w, OP_FREE, (uint32_t)request, event);
    }
}

/* Return whether a block has to move to be with the request that failed. */
static bool
has_to_move(const struct writer *w, uint32_t request, uint32_t failed)
{
    return w->states[request] == ALIVE &&
           w->from->lanes[request] != w->from->lanes[failed];
}

/* Move all blocks to the lane of the failed request. Each is a request of its own there. */
static void
write_moves(struct writer *w, uint32_t failed, uint32_t event)
{
    uint32_t count = (uint32_t)w->from->request_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!has_to_move(w, i, failed))
            continue;
        w->to.sizes[w->to.request_count] = w->from->sizes[i];
        w->to.lanes[w->to.request_count++] = w->from->lanes[failed];
        write_op(w, OP_FREE, i, event);
    }
    for (uint32_t lane = 0; lane < w->from->lane_table.count; lane++) {
        if (lane != w->from->lanes[failed])
            write_op(w, OP_POOL_RELEASE, lane, event);
    }
    write_op(w, OP_EMPTY_CACHE, 0, event);
    for (uint32_t i = count; i < w->to.request_count; i++)
        write_op(w, OP_ALLOC, i, event);
}

/* Write the operations up to the failure. Returns whether a request failed there. */
static bool
write_ops(struct writer *w)
{
    const struct dryi_program *p = w->from;
    for (size_t i = 0; i < p->carried_count; i++)
        w->states[i] = p->carried[i].pending_stream == NO_STREAM ? ALIVE : GONE;
    for (size_t op = 0; op < p->op_count; op++) {
        enum op_kind kind = p->kinds[op];
        uint32_t arg = p->args[op], event = p->events[op];
        bool is_last = kind == OP_OOM && event == w->wanted->oom_event;
        bool needs_block = kind == OP_FREE || kind == OP_RECORD_STREAM;
        if (kind == OP_RECORD_STREAM && w->wanted->ignores_streams)
            continue;
        write_frees(w, event);
        if (is_last && w->wanted->gathers)
            write_moves(w, arg, event);
        if (is_last) {
            write_op(w, OP_OOM, arg, event);
            write_op(w, OP_EMPTY_CACHE, 0, event);
            write_op(w, OP_FREE, arg, event);
            return true;
        }
        if (kind != OP_OOM && !(needs_block && w->states[arg] != ALIVE))
            write_op(w, kind, arg, event);
    }
    return false;
}

/* Make the columns that differ. The others are the recorded program's. */
static bool
make_room(struct writer *w)
{
    struct dryi_program *to = &w->to;
    const struct dry_memory *memory = &to->memory;
    size_t moved = w->wanted->gathers ? to->request_count : 0;
    w->request_capacity = to->request_count + moved + 1;
    w->op_capacity =
        to->op_count + w->wanted->free_count + 2 * moved + to->lane_table.count + 4;
    to->op_count = 0;
    to->kinds = dryi_memory_zalloc(memory, w->op_capacity, sizeof *to->kinds);
    to->args = dryi_memory_zalloc(memory, w->op_capacity, sizeof *to->args);
    to->events = dryi_memory_zalloc(memory, w->op_capacity, sizeof *to->events);
    to->lanes = dryi_memory_zalloc(memory, w->request_capacity, sizeof *to->lanes);
    to->sizes = dryi_memory_zalloc(memory, w->request_capacity, sizeof *to->sizes);
    w->states = dryi_memory_zalloc(memory, w->request_capacity, sizeof *w->states);
    if (!to->kinds || !to->args || !to->events || !to->lanes || !to->sizes || !w->states)
        return false;
    if (to->request_count > 0) {
        memcpy(to->lanes, w->from->lanes, to->request_count * sizeof *to->lanes);
        memcpy(to->sizes, w->from->sizes, to->request_count * sizeof *to->sizes);
    }
    return true;
}

static void
finish(struct writer *w)
{
    struct dryi_program *to = &w->to;
    const struct dry_memory *memory = &to->memory;
    dryi_memory_free(memory, to->kinds, w->op_capacity, sizeof *to->kinds);
    dryi_memory_free(memory, to->args, w->op_capacity, sizeof *to->args);
    dryi_memory_free(memory, to->events, w->op_capacity, sizeof *to->events);
    dryi_memory_free(memory, to->lanes, w->request_capacity, sizeof *to->lanes);
    dryi_memory_free(memory, to->sizes, w->request_capacity, sizeof *to->sizes);
    dryi_memory_free(memory, w->states, w->request_capacity, sizeof *w->states);
}

static enum dry_status
run_on(struct dry_replay *changed, uint64_t capacity, struct dry_run *run,
       struct dry_error *err)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.begin_anew = true;
    options.capacity_bytes = capacity;
    return dry_replay_run(changed, &options, run, err);
}

static enum dry_status
run_changed(struct dry_replay *changed, uint64_t device_bytes, uint64_t *need,
            struct dry_error *err)
{
    struct dry_run run;
    enum dry_status status = run_on(changed, device_bytes, &run, err);
    *need = run.reserved_end_bytes;
    if (status != DRY_OK || !run.oom)
        return status;
    status = run_on(changed, DRY_SIM_UNLIMITED, &run, err);
    *need = run.oom ? 0 : run.reserved_peak_bytes;
    return status;
}

enum dry_status
dryi_replay_find_need(struct dry_replay *replay, const struct dryi_alteration *alteration,
                      uint64_t *need, struct dry_error *err)
{
    struct writer w = {
        .wanted = alteration, .from = &replay->program, .to = replay->program};
    enum dry_status status = DRY_OK;
    *need = 0;
    if (!make_room(&w)) {
        status = dryi_fail_memory(err, "a changed program");
    } else if (write_ops(&w)) {
        struct dry_replay changed = *replay;
        changed.program = w.to;
        status = run_changed(&changed, alteration->device_bytes, need, err);
    }
    finish(&w);
    return status;
}
