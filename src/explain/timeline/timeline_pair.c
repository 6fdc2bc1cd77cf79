/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Convert events to allocations: an alloc begins one at its address, free_requested and
 * free_completed end it. A free without an allocation belongs to a carried-over one, and so does a
 * block in the final layout that no event allocated. A record that contradicts itself is no error:
 * contradictions are resolved, and counted.
 */

#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "explain/timeline/timeline_inside.h"
#include "trace/model/trace.h"

/* Carried-over allocations have separate numbers until pairing is complete. */
#define CARRIED_BIT UINT32_C(0x80000000)

struct pairing {
    struct dry_timeline *t;
    const struct dry_trace_view *v;
    const struct dryi_torch_conf *conf;
    size_t first; /* the device's first event in the trace */
    struct dry_allocation *carried;
    size_t carried_capacity;
    uint32_t carried_count;
    struct dryi_map live;   /* address -> allocation in use or pending */
    bool lacks_completions; /* dryi_trace_lacks_completions() */
    bool failed;            /* memory ran out */
    uint64_t too_much;      /* bytes of an allocation larger than any device; 0: none */
};

static struct dry_allocation *
allocation_at(struct pairing *p, uint32_t id)
{
    return id & CARRIED_BIT ? &p->carried[id & ~CARRIED_BIT] : &p->t->allocations[id];
}

static uint64_t
round_size(struct pairing *p, uint64_t size)
{
    if (size > DRYI_TIMELINE_BYTES_MAX) {
        p->too_much = size;
        return 0;
    }
    return dryi_torch_round_size(p->conf, size);
}

static void
remember(struct pairing *p, uint64_t address, uint32_t id)
{
    p->failed |= !dryi_map_put(&p->live, address, id);
}

static uint32_t
add_carried(struct pairing *p, const struct dry_allocation *carried)
{
    if (!dryi_memory_grow(&p->t->memory, &p->carried, &p->carried_capacity,
                          (size_t)p->carried_count + 1, sizeof *p->carried)) {
        p->failed = true;
        return DRY_NONE;
    }
    p->carried[p->carried_count] = *carried;
    return CARRIED_BIT | p->carried_count++;
}

static struct dry_allocation
describe(struct pairing *p, uint32_t i)
{
    size_t e = p->first + i;
    return (struct dry_allocation){
        .address = p->v->addr[e],
        .size = round_size(p, p->v->size[e]),
        .requested = p->v->size[e],
        .begin = i + 1,
        .freed = DRY_MOMENT_NEVER,
        .end = DRY_MOMENT_NEVER,
        .lane = p->v->lane[e],
        .stack = p->v->stack[e],
        .flags = DRY_ALLOCATION_SIZE_GUESSED,
    };
}

/* End an allocation without a free: its address was handed out again. */
static void
end_lost(struct pairing *p, uint32_t id, uint32_t i)
{
    struct dry_timeline *t = p->t;
    struct dry_allocation *a = allocation_at(p, id);
    a->freed = a->freed == DRY_MOMENT_NEVER ? i + 1 : a->freed;
    a->end = i + 1;
    a->flags |= DRY_ALLOCATION_FREE_LOST;
    if (!dryi_memory_grow(&t->memory, &t->lost, &t->lost_capacity, t->lost_count + 1,
                          sizeof *t->lost)) {
        p->failed = true;
        return;
    }
    t->lost[t->lost_count++] = (struct dryi_lost){.event = i, .allocation = id};
    t->view.lost_frees++;
}

static void
on_alloc(struct pairing *p, uint32_t i)
{
    struct dry_timeline *t = p->t;
    uint64_t address = p->v->addr[p->first + i];
    const uint32_t *taken = dryi_map_find(&p->live, address);
    if (taken)
        end_lost(p, *taken, i);
    if (!dryi_memory_grow(&t->memory, &t->allocations, &t->allocation_capacity,
                          (size_t)t->window_count + 1, sizeof *t->allocations)) {
        p->failed = true;
        return;
    }
    t->allocations[t->window_count] = describe(p, i);
    t->event_allocation[i] = t->window_count;
    remember(p, address, t->window_count++);
}

/* Return the allocation that a free refers to. If there is none, add a carried-over one. */
static uint32_t
find_freed(struct pairing *p, uint32_t i)
{
    uint64_t address = p->v->addr[p->first + i];
    const uint32_t *known = dryi_map_find(&p->live, address);
    if (known)
        return *known;
    struct dry_allocation carried = describe(p, i);
    carried.begin = 0;
    carried.flags |= DRY_ALLOCATION_CARRIED_OVER | DRY_ALLOCATION_STACK_OF_FREE;
    uint32_t id = add_carried(p, &carried);
    if (id != DRY_NONE)
        remember(p, address, id);
    p->t->view.unmatched_frees++;
    return id;
}

static void
on_free_requested(struct pairing *p, uint32_t i)
{
    uint32_t id = find_freed(p, i);
    p->t->event_allocation[i] = id;
    if (id == DRY_NONE)
        return;
    struct dry_allocation *a = allocation_at(p, id);
    if (a->freed == DRY_MOMENT_NEVER)
        a->freed = i + 1;
    if (!p->lacks_completions)
        return;
    a->end = i + 1;
    dryi_map_take(&p->live, a->address);
}

static void
on_free_completed(struct pairing *p, uint32_t i)
{
    bool is_known = dryi_map_find(&p->live, p->v->addr[p->first + i]) != NULL;
    uint32_t id = find_freed(p, i);
    p->t->event_allocation[i] = id;
    if (id == DRY_NONE)
        return;
    struct dry_allocation *a = allocation_at(p, id);
    if (a->freed == DRY_MOMENT_NEVER)
        a->freed = is_known ? i + 1 : 0; /* 0: requested before the window */
    a->end = i + 1;
    dryi_map_take(&p->live, a->address);
}

static void
on_event(struct pairing *p, uint32_t i)
{
    enum dry_action action = p->v->action[p->first + i];
    p->t->event_allocation[i] = DRY_NONE;
    if (action == DRY_ACTION_ALLOC) {
        on_alloc(p, i);
    } else if (action == DRY_ACTION_FREE_REQUESTED) {
        on_free_requested(p, i);
    } else if (action == DRY_ACTION_FREE_COMPLETED) {
        on_free_completed(p, i);
    } else if (action == DRY_ACTION_OOM) {
        if (p->t->view.oom_count++ == 0)
            p->t->view.oom_event = i;
    }
}

/* --- final segments ----------------------------------------------------------------------- */

static uint32_t
add_final_carried(struct pairing *p, const struct dry_trace_segment *s,
                  const struct dry_trace_block *block)
{
    struct dry_allocation carried = {
        .address = block->address,
        .freed = DRY_MOMENT_NEVER,
        .end = DRY_MOMENT_NEVER,
        .lane = s->lane,
        .stack = block->stack,
        .flags = DRY_ALLOCATION_CARRIED_OVER,
    };
    if (block->state == DRY_BLOCK_PENDING_FREE)
        carried.freed = 0;
    return add_carried(p, &carried);
}

static void
on_final_block(struct pairing *p, const struct dry_trace_segment *s,
               const struct dry_trace_block *block)
{
    if (block->size > DRYI_TIMELINE_BYTES_MAX ||
        block->requested_size > DRYI_TIMELINE_BYTES_MAX) {
        p->too_much =
            block->size > block->requested_size ? block->size : block->requested_size;
        return;
    }
    const uint32_t *known = dryi_map_find(&p->live, block->address);
    uint32_t id = known ? *known : add_final_carried(p, s, block);
    if (id == DRY_NONE)
        return;
    struct dry_allocation *a = allocation_at(p, id);
    a->size = block->size;
    /* Files of 2023 lack the requested size: use the block's size. */
    a->requested = block->requested_size ? block->requested_size : block->size;
    a->flags &= ~DRY_ALLOCATION_SIZE_GUESSED;
    if (block->stack != DRY_NONE &&
        (a->stack == DRY_NONE || a->flags & DRY_ALLOCATION_STACK_OF_FREE)) {
        a->stack = block->stack;
        a->flags &= ~DRY_ALLOCATION_STACK_OF_FREE;
    }
    if (block->state == DRY_BLOCK_PENDING_FREE && a->freed == DRY_MOMENT_NEVER)
        a->freed = p->t->view.dump_moment;
    dryi_map_take(&p->live, block->address);
}

/* End allocations alive after the last event but not in the final layout: they
   were freed in between. */
static void
end_vanished(struct pairing *p)
{
    const struct dryi_map_slot *entry;
    size_t slot = 0;
    while ((entry = dryi_map_next(&p->live, &slot))) {
        struct dry_allocation *a = allocation_at(p, entry->value);
        if (a->freed == DRY_MOMENT_NEVER)
            a->freed = p->t->view.dump_moment;
        a->end = p->t->view.dump_moment;
        p->t->view.inferred_frees++;
    }
}

static void
read_final_layout(struct pairing *p)
{
    const struct dry_trace_device *d = dryi_replay_device(p->t->replay);
    for (size_t i = 0; i < d->segment_count && !p->failed; i++) {
        const struct dry_trace_segment *s = &p->v->segments[d->first_segment + i];
        for (size_t k = 0; k < s->block_count && !p->failed; k++) {
            const struct dry_trace_block *block = &p->v->blocks[s->first_block + k];
            if (block->state != DRY_BLOCK_INACTIVE && block->size > 0)
                on_final_block(p, s, block);
        }
    }
    if (d->segment_count > 0)
        end_vanished(p);
}

/* --- all events --------------------------------------------------------------------------- */

/* Append the carried-over allocations to the window's, and renumber all references. */
static bool
append_carried(struct pairing *p)
{
    struct dry_timeline *t = p->t;
    size_t count = (size_t)t->window_count + p->carried_count;
    if (count >= CARRIED_BIT ||
        !dryi_memory_grow(&t->memory, &t->allocations, &t->allocation_capacity, count + 1,
                          sizeof *t->allocations))
        return false;
    if (p->carried_count > 0)
        memcpy(t->allocations + t->window_count, p->carried,
               p->carried_count * sizeof *p->carried);
    t->view.carried_over_count = p->carried_count;
    t->view.allocation_count = (uint32_t)count;
    for (uint32_t i = 0; i < t->view.event_count; i++) {
        uint32_t id = t->event_allocation[i];
        if (id != DRY_NONE && id & CARRIED_BIT)
            t->event_allocation[i] = t->window_count + (id & ~CARRIED_BIT);
    }
    for (size_t i = 0; i < t->lost_count; i++) {
        uint32_t *id = &t->lost[i].allocation;
        if (*id & CARRIED_BIT)
            *id = t->window_count + (*id & ~CARRIED_BIT);
    }
    return true;
}

enum dry_status
dryi_timeline_pair(struct dry_timeline *t, struct dry_error *err)
{
    struct pairing p = {.t = t,
                        .v = t->trace,
                        .conf = dryi_replay_conf(t->replay),
                        .first = t->view.first_event,
                        .lacks_completions = dryi_trace_lacks_completions(
                            t->trace, dryi_replay_device(t->replay))};
    dryi_map_init(&p.live, &t->memory);
    t->event_allocation = dryi_memory_zalloc(&t->memory, (size_t)t->view.event_count + 1,
                                             sizeof *t->event_allocation);
    p.failed = t->event_allocation == NULL;
    for (uint32_t i = 0; i < t->view.event_count && !p.failed && p.too_much == 0; i++)
        on_event(&p, i);
    if (!p.failed)
        read_final_layout(&p);
    p.failed |= !p.failed && !append_carried(&p);
    dryi_map_finish(&p.live);
    dryi_memory_free(&t->memory, p.carried, p.carried_capacity, sizeof *p.carried);
    if (p.failed)
        return dryi_fail_memory(err, "the allocations of a timeline");
    if (p.too_much > 0)
        return dryi_fail(err, DRY_ERR_LIMIT,
                         "an allocation of %llu bytes is larger than any device",
                         (unsigned long long)p.too_much);
    return DRY_OK;
}
