/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chains whose stages are equal but for the last: planned without a table, in one walk.
 *
 * Among plans of equal time, in one the ranges come first, and every range but the last
 * is as long as possible:
 *
 *   - A saved stage before a range may change places with it. The range then begins with one
 *     stage's saved bytes less held; its gradients of weights are one stage's more, which are no
 *     more than that. The saved stage then comes after the range's output, which is no more than
 *     what the range's last stage needed in its place before.
 *   - A range that could be one stage longer may take the first stage of the next range. That
 *     range then needs no more, and is gone if it had only one stage.
 *
 * So a plan is given by the number of stages that run twice. Each more of them holds no
 * more at the end, so the least number that fits is optimal.
 */
#include "plan/one/plan_one.h"

bool
dryi_one_is_equal(const struct dry_chain *chain)
{
    const struct dry_stage *stage = &chain->stages[0];
    if (chain->count < 2 || stage->is_fixed || stage->option_count > 0 ||
        stage->grads_bytes > stage->saved_bytes)
        return false;
    for (size_t i = 1; i + 1 < chain->count; i++) {
        if (chain->kinds[i] != chain->kinds[0])
            return false;
    }
    return true;
}

/* Return the stage after the longest range from `first` that needs at most `budget` bytes. */
static size_t
longest(const struct dryi_one *one, size_t first, uint64_t budget)
{
    struct dryi_one_range range = {0};
    size_t e = first;
    for (; dryi_one_can_repeat(one, e, &range); e++) {
        dryi_one_range_extend(&range, one, e, e == first);
        if (range.need > budget)
            break;
    }
    return e;
}

/*
 * Return whether stages from `first` on can be saved with `held` bytes in use, the last
 * with `option`. The last of the equal stages needs the most. The first is checked on its
 * own: its backward makes the input's gradient, which may be larger.
 */
static bool
fits(const struct dryi_one *one, size_t first, uint64_t held, size_t option,
     uint64_t memory)
{
    size_t last = one->count - 1;
    if (first == 0 && one->options[one->stages[0].option].need > memory)
        return false;
    if (first < last) {
        held += (last - 1 - first) * one->stages[0].saved;
        if (held + one->options[one->stages[last - 1].option].need > memory)
            return false;
        held += one->stages[0].saved;
    }
    return held + one->options[option].need <= memory;
}

/*
 * Find the least number of stages that must run twice: more than `low`, at most `high`,
 * which fits.
 */
static size_t
least_count(const struct dryi_one *one, size_t low, size_t high, uint64_t held,
            size_t option, uint64_t memory)
{
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (fits(one, middle, held, option, memory))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void
write_plan(const struct dryi_one *one, const size_t *ends, size_t count, size_t option,
           struct dryi_one_plan *plan)
{
    plan->count = 0;
    size_t i = 0;
    for (size_t k = 0; k < count; k++, i = ends[k - 1])
        plan->choices[plan->count++] =
            (struct dryi_one_choice){.option = SIZE_MAX, .last = ends[k] - 1};
    for (; i + 1 < one->count; i++)
        plan->choices[plan->count++] =
            (struct dryi_one_choice){.option = one->stages[i].option, .last = i};
    plan->choices[plan->count++] = (struct dryi_one_choice){.option = option, .last = i};
    plan->cost = dryi_one_evaluate(one, plan->choices, plan->count);
}

/* Find the best plan with this option of the last stage. `ends` has an element for every stage. */
static void
plan_option(const struct dryi_one *one, uint64_t memory, size_t option, size_t *ends,
            struct dryi_one_plan *plan)
{
    uint64_t output = one->stages[0].output, held = 0;
    size_t count = 0, begin = 0;
    while (begin + 1 < one->count && held <= memory) {
        size_t end = longest(one, begin, memory - held);
        if (end == begin)
            return;
        held += output;
        ends[count++] = end;
        if (fits(one, end, held, option, memory)) {
            ends[count - 1] = least_count(one, begin, end, held, option, memory);
            uint64_t extra =
                ends[count - 1] * one->stages[0].forward + one->options[option].extra;
            if (extra < plan->cost.extra)
                write_plan(one, ends, count, option, plan);
            return;
        }
        begin = end;
    }
}

void
dryi_one_plan_equal(const struct dryi_one *one, uint64_t memory, size_t *ends,
                    struct dryi_one_plan *plan)
{
    size_t last = one->count - 1;
    for (size_t k = one->stages[last].option; k < dryi_one_option_end(one, last); k++) {
        if (fits(one, 0, 0, k, memory) && one->options[k].extra < plan->cost.extra)
            write_plan(one, ends, 0, k, plan);
        plan_option(one, memory, k, ends, plan);
    }
    plan->is_least = true;
}
