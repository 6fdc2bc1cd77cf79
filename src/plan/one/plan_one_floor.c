/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The least memory that some plan fits, from every stage on, exactly:
 *
 *     floor(i) = min over items from i on:  max(need, held + floor(after it))
 *
 * A range stops growing once it needs as much as the best item so far.
 *
 * Cost: stages times the length of ranges that need less than the floor, which for equal
 * stages is about the square root of their number.
 */
#include "plan/one/plan_one.h"

#include "base/assert.h"

static uint64_t
save_floor(const struct dryi_one *one, size_t row, size_t option)
{
    const struct dryi_one_option *o = &one->options[option];
    return dryi_max(o->need + one->moved[row], o->held + one->floors[o->row]);
}

static uint64_t
range_floor(const struct dryi_one *one, size_t last, const struct dryi_one_range *range)
{
    const struct dryi_one_stage *end = &one->stages[last];
    return dryi_max(range->need, end->output + one->floors[end[1].row]);
}

static uint64_t
find_floor(struct dryi_one *one, size_t i, size_t row, struct dryi_one_choice *choice)
{
    uint64_t least = UINT64_MAX;
    for (size_t k = one->stages[i].option; k < dryi_one_option_end(one, i); k++) {
        uint64_t floor = save_floor(one, row, k);
        if (floor < least) {
            least = floor;
            *choice = (struct dryi_one_choice){.option = k, .last = i};
        }
    }
    struct dryi_one_range range = {.moved = one->moved[row]};
    for (size_t e = i; dryi_one_can_repeat(one, e, &range); e++) {
        dryi_one_range_extend(&range, one, e, e == i);
        if (range.at_least >= least)
            break;
        uint64_t floor = range_floor(one, e, &range);
        if (floor < least) {
            least = floor;
            *choice = (struct dryi_one_choice){.option = SIZE_MAX, .last = e};
        }
    }
    one->is_cut = one->is_cut || range.count == one->longest;
    return least;
}

void
dryi_one_set_floors(struct dryi_one *one)
{
    struct dryi_one_choice choice;
    for (size_t row = one->stages[one->count].row; row < one->row_count; row++)
        one->floors[row] = 0;
    for (size_t i = one->count; i-- > 0;) {
        for (size_t row = one->stages[i].row; row < one->stages[i + 1].row; row++)
            one->floors[row] = find_floor(one, i, row, &choice);
    }
}

size_t
dryi_one_floor_plan(struct dryi_one *one, struct dryi_one_choice *choices)
{
    size_t count = 0, row = 0;
    for (size_t i = 0; i < one->count; i = choices[count].last + 1, count++) {
        uint64_t floor = find_floor(one, i, row, &choices[count]);
        DRYI_ASSERT(floor == one->floors[row]);
        (void)floor;
        row = choices[count].option != SIZE_MAX
                  ? one->options[choices[count].option].row
                  : one->stages[choices[count].last + 1].row;
    }
    return count;
}
