/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Successors: a layout may give the exact range of a block to one later request of its stream. Such
 * a block need not be merged when freed and cut again for that request. It is parked under the step
 * of the layout that reuses the range. Until that step the layout gives the range to no other
 * request.
 *
 * All parked blocks are coalesced when the program deviates from its period. The same happens
 * before pages are moved or created for a large request of the default pool, and before any request
 * exceeds the budget.
 */

#include "place/paged/record/paged_park.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_index.h"

static size_t
count_bit_words(uint32_t step_count)
{
    return (size_t)step_count / 64 + 1;
}

/* Free the arrays of dryi_paged_parking_begin(). No step finds a parked block afterwards. */
static void
finish_parking(struct dryi_paged *p)
{
    struct layout *layout = &p->layout;
    const struct dry_memory *m = &p->memory;
    dryi_memory_free(m, layout->parked, layout->step_count, sizeof *layout->parked);
    dryi_memory_free(m, layout->parked_steps, count_bit_words(layout->step_count),
                     sizeof *layout->parked_steps);
    layout->parked = NULL;
    layout->parked_steps = NULL;
    layout->step_count = 0;
}

void
dryi_paged_layout_finish(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    finish_parking(p);
    dryi_paged_layout_unindex(p);
}

bool
dryi_paged_parking_begin(struct dryi_paged *p, uint32_t step_count)
{
    struct layout *layout = &p->layout;
    DRYI_ASSERT(layout->parked_count == 0);
    finish_parking(p);
    layout->step_count = step_count;
    layout->parked = dryi_memory_zalloc(&p->memory, step_count, sizeof *layout->parked);
    layout->parked_steps = dryi_memory_zalloc(&p->memory, count_bit_words(step_count),
                                              sizeof *layout->parked_steps);
    if (!layout->parked || !layout->parked_steps) {
        finish_parking(p);
        return false;
    }
    for (uint32_t i = 0; i < step_count; i++)
        layout->parked[i] = NONE;
    return true;
}

void
dryi_paged_unpark(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_PARKED);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    dryi_paged_parked_pop(p, p->blocks[block].bin_next);
    p->blocks[block].address = ADDRESS_UNKNOWN;
    p->blocks[block].state = BLOCK_FREE;
    dryi_paged_block_coalesce(p, block);
}

bool
dryi_paged_unpark_all(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(p->layout.parked_count <= PARKED_MAX);
    const struct layout *layout = &p->layout;
    bool any = layout->parked_count > 0;
    for (uint32_t word = 0; layout->parked_count > 0; word++) {
        DRYI_ASSERT(word < count_bit_words(layout->step_count));
        uint64_t bits = layout->parked_steps[word];
        for (; bits != 0; bits &= bits - 1) {
            uint32_t step = word * 64 + (uint32_t)__builtin_ctzll(bits);
            dryi_paged_unpark(p, layout->parked[step]);
        }
    }
    return any;
}

const char *
dryi_paged_parking_check(const struct dryi_paged *p, uint32_t count)
{
    const struct layout *layout = &p->layout;
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < layout->step_count; i++) {
        bool is_known = layout->parked_steps[i / 64] >> (i % 64) & 1;
        if (is_known != (layout->parked[i] != NONE))
            return "P8: the steps that a block waits for are known";
        if (!is_known)
            continue;
        const struct block *b = &p->blocks[layout->parked[i]];
        const struct free_list *s = p->lists[b->list];
        if (b->state != BLOCK_PARKED || b->bin_next != i ||
            b->segment != layout->segment || s->arena != 0 ||
            (dryi_forecast_is_packed(p->forecast) &&
             !dryi_paged_is_successors_place(p, s, b)))
            return "P8: a block that waits for its successor is of the layout";
        waiting++;
    }
    return waiting == layout->parked_count && waiting == count
               ? NULL
               : "P8: what waits for its successor is known";
}
