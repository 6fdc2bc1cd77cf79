/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Successors: a block whose place the plan gives whole to one later request of its stream is neither
 * merged when it is freed nor cut out again for that request. It waits, known by the step of
 * the plan that comes for it. Nobody else was to have it before. When the program does something
 * else, and before a large request of the default pool has pages moved or made, or anybody has
 * more than the budget, whatever waits is ordinary free memory again.
 */

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged_inside.h"

static size_t
words_of(uint32_t step_count)
{
    return (size_t)step_count / 64 + 1;
}

void
dryi_paged_parking_finish(struct dryi_paged *p)
{
    struct plan *plan = &p->plan;
    const struct dry_memory *m = &p->memory;
    dryi_memory_free(m, plan->parked, plan->step_count, sizeof *plan->parked);
    dryi_memory_free(m, plan->parked_steps, words_of(plan->step_count),
                     sizeof *plan->parked_steps);
    plan->parked = NULL;
    plan->parked_steps = NULL;
    plan->step_count = 0;
}

bool
dryi_paged_parking_begin(struct dryi_paged *p, uint32_t step_count)
{
    struct plan *plan = &p->plan;
    DRYI_ASSERT(plan->parked_count == 0);
    dryi_paged_parking_finish(p);
    plan->step_count = step_count;
    plan->parked = dryi_memory_zalloc(&p->memory, step_count, sizeof *plan->parked);
    plan->parked_steps =
        dryi_memory_zalloc(&p->memory, words_of(step_count), sizeof *plan->parked_steps);
    if (!plan->parked || !plan->parked_steps) {
        dryi_paged_parking_finish(p);
        return false;
    }
    for (uint32_t i = 0; i < step_count; i++)
        plan->parked[i] = NONE;
    return true;
}

void
dryi_paged_unpark(struct dryi_paged *p, uint32_t block)
{
    dryi_paged_parked_pop(p, p->blocks[block].bin_next);
    p->blocks[block].known = KNOWN_NOT;
    p->blocks[block].state = BLOCK_FREE;
    dryi_paged_block_settle(p, block);
}

bool
dryi_paged_unpark_all(struct dryi_paged *p)
{
    const struct plan *plan = &p->plan;
    bool any = plan->parked_count > 0;
    for (uint32_t word = 0; plan->parked_count > 0; word++) {
        DRYI_ASSERT(word < words_of(plan->step_count));
        uint64_t bits = plan->parked_steps[word];
        for (; bits != 0; bits &= bits - 1) {
            uint32_t step = word * 64 + (uint32_t)__builtin_ctzll(bits);
            dryi_paged_unpark(p, plan->parked[step]);
        }
    }
    return any;
}

const char *
dryi_paged_parking_check(const struct dryi_paged *p, uint32_t count)
{
    const struct plan *plan = &p->plan;
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        bool is_known = plan->parked_steps[i / 64] >> (i % 64) & 1;
        if (is_known != (plan->parked[i] != NONE))
            return "P8: the steps that a block waits for are known";
        if (!is_known)
            continue;
        const struct block *b = &p->blocks[plan->parked[i]];
        const struct free_list *s = p->lists[b->list];
        if (b->state != BLOCK_PARKED || b->bin_next != i || b->segment != plan->segment ||
            s->arena != 0 ||
            (dryi_forecast_is_planned(p->hints) &&
             !dryi_paged_is_successors_place(p, s, b)))
            return "P8: a block that waits for its successor is of the plan";
        waiting++;
    }
    return waiting == plan->parked_count && waiting == count
               ? NULL
               : "P8: what waits for its successor is known";
}
