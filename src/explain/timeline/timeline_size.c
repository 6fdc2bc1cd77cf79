/* SPDX-License-Identifier: Apache-2.0 */

/* Set the sizes of blocks. A record tells requested sizes; block sizes are only in the final
   layout. If the replay reproduces a block's address, its size is the block's. */

#include "base/fail.h"
#include "explain/timeline/timeline_inside.h"

struct measuring {
    struct dry_timeline *t;
    const struct dryi_program *p;
    const struct dryi_execution *execution;
};

static void
on_begin(void *self, const struct dryi_execution *execution)
{
    struct measuring *m = self;
    m->execution = execution;
}

static void
on_event(void *self, const struct dryi_place_event *event)
{
    (void)self;
    (void)event;
}

static enum dry_status
after_op(void *self, size_t op)
{
    struct measuring *m = self;
    if (m->p->kinds[op] != OP_ALLOC)
        return DRY_OK;
    uint32_t request = m->p->args[op];
    dryi_block handle = m->execution->handles[request];
    uint32_t event = m->p->alloc_events[request];
    if (handle == DRYI_NO_BLOCK || event >= m->t->view.event_count ||
        m->t->event_allocation[event] == DRY_NONE)
        return DRY_OK;
    struct dry_allocation *a = &m->t->allocations[m->t->event_allocation[event]];
    struct dryi_block_info info;
    m->execution->place.ops->get_block(m->execution->place.self, handle, &info);
    if (info.addr == a->address && info.size <= DRYI_TIMELINE_BYTES_MAX &&
        a->flags & DRY_ALLOCATION_SIZE_GUESSED) {
        a->size = info.size;
        a->flags &= ~DRY_ALLOCATION_SIZE_GUESSED;
    }
    return DRY_OK;
}

static enum dry_status
on_end(void *self)
{
    (void)self;
    return DRY_OK;
}

/* Set the sizes of carried-over allocations that the window frees: the replay inferred them. */
static void
measure_carried(struct measuring *m)
{
    for (size_t i = 0; i < m->p->carried_count; i++) {
        const struct carried *carried = &m->p->carried[i];
        if (carried->free_event >= m->t->view.event_count || carried->block_size == 0)
            continue;
        uint32_t id = m->t->event_allocation[carried->free_event];
        struct dry_allocation *a = &m->t->allocations[id == DRY_NONE ? 0 : id];
        if (id == DRY_NONE || !(a->flags & DRY_ALLOCATION_SIZE_GUESSED) ||
            !(a->flags & DRY_ALLOCATION_CARRIED_OVER) || a->address != carried->addr ||
            carried->block_size > DRYI_TIMELINE_BYTES_MAX)
            continue;
        a->size = carried->block_size;
        a->flags &= ~DRY_ALLOCATION_SIZE_GUESSED;
    }
}

/* Count guessed sizes. Returns false if the sum of sizes exceeds DRYI_TIMELINE_TOTAL_MAX. */
static bool
add_up_sizes(struct dry_timeline *t)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < t->view.allocation_count; i++) {
        const struct dry_allocation *a = &t->allocations[i];
        t->view.guessed_sizes += (a->flags & DRY_ALLOCATION_SIZE_GUESSED) != 0;
        total += a->size > a->requested ? a->size : a->requested;
        if (total > DRYI_TIMELINE_TOTAL_MAX)
            return false;
    }
    return true;
}

enum dry_status
dryi_timeline_measure(struct dry_timeline *t, struct dry_error *err)
{
    struct measuring m = {.t = t, .p = dryi_replay_program(t->replay)};
    struct dryi_listener listener = {.begin = on_begin,
                                     .event = on_event,
                                     .after = after_op,
                                     .end = on_end,
                                     .self = &m};
    enum dry_status status = DRY_OK;
    if (dry_replay_get_check(t->replay)->possible) {
        measure_carried(&m);
        status = dryi_replay_watch(t->replay, &listener, err);
    }
    if (status == DRY_OK && !add_up_sizes(t))
        return dryi_fail(
            err, DRY_ERR_LIMIT,
            "all allocations together are larger than any device could hold");
    return status;
}
