/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_PARK_H
#define DRYI_PLACE_PAGED_PARK_H

/*
 * Parked blocks: freed blocks kept whole for their successor, the step of the layout that uses the
 * range next. Code that needs a parked block for another purpose unparks it first.
 */

#include "base/ablate.h"
#include "place/paged/record/paged_state.h"

/* Begin a layout of `step_count` steps without parked blocks. False: out of memory. */
bool dryi_paged_parking_begin(struct dryi_paged *p, uint32_t step_count);
/* End the layout: free its steps and the index of its segment. */
void dryi_paged_layout_finish(struct dryi_paged *p);
/* Coalesce all parked blocks. True: there were any. */
DRYI_NOINLINE bool dryi_paged_unpark_all(struct dryi_paged *p);
/* Coalesce a parked block. */
DRYI_NOINLINE void dryi_paged_unpark(struct dryi_paged *p, uint32_t block);
/* Return the first violated invariant of parking, or NULL. `count`: BLOCK_PARKED blocks. */
const char *dryi_paged_parking_check(const struct dryi_paged *p, uint32_t count);

/* Return the block that is parked for this step; NONE: none. */
static inline uint32_t
dryi_paged_parked_find(const struct dryi_paged *p, uint32_t step)
{
    return step < p->layout.step_count ? p->layout.parked[step] : NONE;
}

/* Unpark the block of this step without listing it. Requires that a block is parked there. */
static inline void
dryi_paged_parked_pop(struct dryi_paged *p, uint32_t step)
{
    p->layout.parked[step] = NONE;
    p->layout.parked_steps[step / 64] &= ~(UINT64_C(1) << (step % 64));
    p->layout.parked_count--;
}

/* Does the current layout put the successor of this block at the block's address, with its size? */
static inline bool
dryi_paged_is_successors_place(const struct dryi_paged *p, const struct free_list *s,
                               const struct block *b)
{
    return dryi_forecast_is_step_at(p->forecast, b->bin_next,
                                    b->addr - p->segments[b->segment].addr, b->size,
                                    s->stream);
}

/*
 * May this block in use be parked when it is freed? Its successor must be a step of the current
 * layout. On a full device only free blocks are searched, so no block may be parked there.
 */
static inline bool
dryi_paged_may_park(const struct dryi_paged *p, const struct free_list *s,
                    const struct block *b)
{
    const struct layout *layout = &p->layout;
    return !DRYI_ABLATED(parking) && b->has_ticket && b->bin_next < layout->step_count &&
           layout->parked[b->bin_next] == NONE && layout->parked_count < PARKED_MAX &&
           b->segment == layout->segment && !p->is_full &&
           dryi_paged_is_successors_place(p, s, b);
}

/* Park a block just freed. Requires that dryi_paged_may_park() was true before the free. */
static inline void
dryi_paged_park(struct dryi_paged *p, uint32_t block)
{
    struct layout *layout = &p->layout;
    struct block *b = &p->blocks[block];
    uint32_t successor = b->bin_next;
    b->state = BLOCK_PARKED;
    b->has_ticket = false;
    layout->parked[successor] = block;
    layout->parked_steps[successor / 64] |= UINT64_C(1) << (successor % 64);
    layout->parked_count++;
}

#endif
