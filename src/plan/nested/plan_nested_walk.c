/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Converts a guide's moves to the items of a plan. The first move of C(s, t, m) comes first, then
 * those of the rest. A range's own item precedes the items inside it, and the items of the rest
 * follow. So the rest waits on a stack, which is as deep as ranges are nested: at most a window.
 *
 * Cost: one move for each item.
 */
#include "plan/nested/plan_nested.h"

#include "base/assert.h"
#include "base/memory.h"

struct frame {
    uint32_t s, t;
    uint64_t m;
    uint32_t range; /* the open item that this frame fills; DRYI_NO_ITEM: none */
};

/* Make one move in the top frame. */
static enum dry_status
step(struct dryi_planning *p, struct frame *frames, size_t *count,
     struct dryi_nested_guide guide)
{
    struct frame *frame = &frames[*count - 1];
    struct dryi_nested_move move;
    if (!guide.get_move(guide.self, frame->s, frame->t, frame->m, &move))
        return DRY_ERR_NO_SPACE;
    if (move.is_range) {
        struct frame *inside = &frames[(*count)++];
        *inside = (struct frame){.s = frame->s, .t = move.last, .m = frame->m};
        if (!dryi_plan_open_range(p, frame->s, move.last, &inside->range))
            return DRY_ERR_MEMORY;
        frame->s = move.last + 1;
    } else {
        if (!dryi_plan_push_save(p, frame->s, frame->s, move.option))
            return DRY_ERR_MEMORY;
        frame->s++;
    }
    DRYI_ASSERT(move.held <= frame->m);
    frame->m -= move.held;
    return DRY_OK;
}

enum dry_status
dryi_nested_walk(struct dryi_planning *p, uint32_t window, struct dryi_nested_guide guide,
                 uint64_t m)
{
    /* A nested range is shorter than its parent, which limits the depth. */
    size_t depth = (size_t)(window < p->count ? window : p->count) + 1, count = 1;
    struct frame *frames = dryi_memory_zalloc(&p->memory, depth, sizeof *frames);
    if (!frames)
        return DRY_ERR_MEMORY;
    enum dry_status status = DRY_OK;
    frames[0] = (struct frame){0, p->count - 1, m, DRYI_NO_ITEM};
    dryi_plan_clear(p);
    while (count > 0 && status == DRY_OK) {
        const struct frame *frame = &frames[count - 1];
        DRYI_ASSERT(count <= depth);
        if (frame->s <= frame->t) {
            status = step(p, frames, &count, guide);
            continue;
        }
        if (frame->range != DRYI_NO_ITEM)
            dryi_plan_close_range(p, frame->range);
        count--;
    }
    dryi_memory_free(&p->memory, frames, depth, sizeof *frames);
    return status;
}
