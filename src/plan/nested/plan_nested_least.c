/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The least memory that stages s to t can be turned back in:
 *
 *   least(s, t) = min over what comes first of max(what its own passes need,
 *                                                  held + least(rest), least(range))
 *
 * This is the table's recurrence with one number in place of a row, and so exact. It
 * gives the least budget, and a plan that fits whenever one exists.
 *
 * Cost: stages * window^2 / 2, less what the needs of a longer range cut off.
 */
#include "plan/nested/plan_nested.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

static uint64_t *
find(const struct dryi_nested_least *l, uint32_t s, uint32_t t)
{
    if (t + 1 == l->chain->count)
        return &l->ends[s];
    DRYI_ASSERT_SLOW(s <= t && t - s < l->window);
    return &l->ranges[(size_t)s * l->window + (t - s)];
}

static uint64_t
get(const struct dryi_nested_least *l, uint32_t s, uint32_t t)
{
    return s > t ? 0 : *find(l, s, t);
}

/* Add, keeping NEVER. Sizes of a chain have 63 bits, so nothing overflows. */
static uint64_t
add(uint64_t held, uint64_t least)
{
    return least == DRYI_NESTED_NEVER ? least : held + least;
}

static uint64_t
get_saved(const struct dryi_nested_least *l, uint32_t s, uint32_t t, uint32_t option)
{
    const struct dryi_nested_stage *stage = &l->chain->stages[s];
    const struct dryi_nested_option *o = &l->chain->options[stage->first + option];
    uint64_t need = dryi_max(o->keep + l->chain->stages[t].end, o->back);
    return dryi_max(need, add(o->held, get(l, s + 1, t)));
}

/*
 * Return the stage after the last that a range from s may have. A range that ends with t
 * is useless.
 */
static uint32_t
get_last(const struct dryi_nested_least *l, uint32_t s, uint32_t t)
{
    uint32_t last = l->chain->stages[s].fence; /* the first that is excluded */
    if (last > t)
        last = t;
    return last - s > l->window ? s + l->window : last;
}

static uint64_t
make_least(const struct dryi_nested_least *l, uint32_t s, uint32_t t)
{
    const struct dryi_nested_stage *stages = l->chain->stages;
    uint64_t least = DRYI_NESTED_NEVER, pass = 0;
    for (uint32_t k = 0; k < stages[s + 1].first - stages[s].first; k++) {
        uint64_t saved = get_saved(l, s, t, k);
        least = saved < least ? saved : least;
    }
    for (uint32_t e = s, end = get_last(l, s, t); e < end; e++) {
        pass = dryi_max(pass, stages[e].pass + (e > s ? stages[e - 1].output : 0));
        if (pass + stages[t].end >= least)
            break;
        uint64_t range = dryi_max(pass + stages[t].end, get(l, s, e));
        range = dryi_max(range, add(stages[e].output, get(l, e + 1, t)));
        least = range < least ? range : least;
    }
    return least;
}

enum dry_status
dryi_nested_least_init(struct dryi_nested_least *l, const struct dryi_nested *chain,
                       uint32_t window)
{
    size_t cells;
    *l = (struct dryi_nested_least){.chain = chain, .window = window};
    if (__builtin_mul_overflow(chain->count, (size_t)window, &cells))
        return DRY_ERR_MEMORY;
    l->ranges = dryi_memory_zalloc(&chain->memory, cells, sizeof *l->ranges);
    l->ends = dryi_memory_zalloc(&chain->memory, chain->count, sizeof *l->ends);
    if (!l->ranges || !l->ends) {
        dryi_nested_least_finish(l);
        return DRY_ERR_MEMORY;
    }
    uint32_t last = (uint32_t)chain->count - 1;
    for (uint32_t s = (uint32_t)chain->count; s-- > 0;) {
        for (uint32_t t = s; t < last && t - s < window && t < chain->stages[s].fence;
             t++)
            *find(l, s, t) = make_least(l, s, t);
        l->ends[s] = make_least(l, s, last);
        if (!dryi_plan_go_on(chain->progress, window)) {
            dryi_nested_least_finish(l);
            return DRY_ERR_CANCELLED;
        }
    }
    return DRY_OK;
}

void
dryi_nested_least_finish(struct dryi_nested_least *l)
{
    if (!l->chain)
        return;
    const struct dry_memory *memory = &l->chain->memory;
    dryi_memory_free(memory, l->ranges, l->chain->count * l->window, sizeof *l->ranges);
    dryi_memory_free(memory, l->ends, l->chain->count, sizeof *l->ends);
    *l = (struct dryi_nested_least){0};
}

uint64_t
dryi_nested_least_get(const struct dryi_nested_least *l)
{
    return l->ends ? l->ends[0] : DRYI_NESTED_NEVER;
}

/* Find a move that fits: save the stage as it is, else by an option, else the shortest range. */
static bool
get_move(const void *self, uint32_t s, uint32_t t, uint64_t m,
         struct dryi_nested_move *move)
{
    const struct dryi_nested_least *l = self;
    const struct dryi_nested_stage *stages = l->chain->stages;
    for (uint32_t k = 0; k < stages[s + 1].first - stages[s].first; k++) {
        if (get_saved(l, s, t, k) <= m) {
            *move = (struct dryi_nested_move){
                .option = k, .held = l->chain->options[stages[s].first + k].held};
            return true;
        }
    }
    uint64_t pass = 0;
    for (uint32_t e = s, end = get_last(l, s, t); e < end; e++) {
        pass = dryi_max(pass, stages[e].pass + (e > s ? stages[e - 1].output : 0));
        uint64_t need = dryi_max(pass + stages[t].end, get(l, s, e));
        need = dryi_max(need, add(stages[e].output, get(l, e + 1, t)));
        if (need <= m) {
            *move = (struct dryi_nested_move){
                .is_range = true, .last = e, .held = stages[e].output};
            return true;
        }
    }
    return false;
}

struct dryi_nested_guide
dryi_nested_least_guide(const struct dryi_nested_least *l)
{
    return (struct dryi_nested_guide){get_move, l};
}
