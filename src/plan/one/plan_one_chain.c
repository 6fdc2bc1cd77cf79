/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The chain as one-level planning sees it: sums that do not depend on the plan are
 * computed once. The exact evaluation of plans is here too.
 *
 * Cost: stages and options; the floors come on top (plan_one_floor.c).
 */
#include "plan/one/plan_one.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"

/*
 * Limits the number of ranges that are tried to about a second's work. Up to 8,000 stages
 * no range is cut.
 */
#define ITEMS_MAX ((size_t)1 << 26)
#define EXACT_BITS 52u /* for sums of times; a double has 53 bits */

static void
count_parts(struct dryi_one *one, const struct dry_chain *chain)
{
    one->count = chain->count;
    one->row_count = 1 + chain->count;
    for (size_t i = 0; i < chain->count; i++) {
        const struct dry_stage *stage = &chain->stages[i];
        one->option_count += 1 + stage->option_count;
        for (uint32_t k = 1; k <= stage->option_count; k++)
            one->row_count += dryi_stage_offload(stage, k) != 0;
    }
}

static bool
take_parts(struct dryi_one *one)
{
    one->stages = dryi_memory_zalloc(&one->memory, one->count + 1, sizeof *one->stages);
    one->options =
        dryi_memory_zalloc(&one->memory, one->option_count, sizeof *one->options);
    one->moved = dryi_memory_zalloc(&one->memory, one->row_count, sizeof *one->moved);
    one->floors = dryi_memory_zalloc(&one->memory, one->row_count, sizeof *one->floors);
    return one->stages && one->options && one->moved && one->floors;
}

/* Sum the gradients in memory while stage i runs backward, its own weights' included. */
static void
set_gradients(struct dryi_one *one, const struct dry_chain *chain)
{
    uint64_t above = 0;
    for (size_t i = one->count; i-- > 0;) {
        const struct dry_stage *stage = &chain->stages[i];
        uint64_t next = i ? stage[-1].gradient_bytes : chain->frame.input_gradient_bytes;
        one->stages[i].end = stage->gradient_bytes + above;
        above += stage->grads_bytes;
        one->stages[i].back = stage->gradient_bytes + next + above;
    }
}

/* Return the next stage's row for what the option offloads; a new row if it offloads. */
static size_t
row_after(struct dryi_one *one, size_t *row, uint64_t moved, size_t plain)
{
    if (moved == 0)
        return plain;
    one->moved[*row] = moved;
    return (*row)++;
}

static void
set_options(struct dryi_one *one, const struct dry_stage *stage, size_t i, size_t *row)
{
    struct dryi_one_stage *s = &one->stages[i];
    size_t plain = (*row)++;
    for (uint32_t k = 0; k <= stage->option_count; k++) {
        struct dryi_one_option *o = &one->options[s->option + k];
        uint64_t saved = dryi_stage_saved_by(stage, k);
        uint64_t moved = dryi_stage_offload(stage, k);
        o->held = saved - moved;
        o->need = dryi_max(one->final_gradient + dryi_stage_forward_tmp(stage, k),
                           s->back + dryi_stage_backward_tmp(stage, k)) +
                  saved;
        o->extra = k ? stage->options[k - 1].recompute_ns >> one->time_shift : 0;
        o->row = row_after(one, row, moved, plain);
    }
    s->back += stage->backward_tmp_bytes;
    s[1].row = plain;
    s[1].option = s->option + stage->option_count + 1;
}

static void
set_stages(struct dryi_one *one, const struct dry_chain *chain)
{
    size_t row = 1; /* row 0 is the first stage's */
    set_gradients(one, chain);
    for (size_t i = 0; i < one->count; i++) {
        const struct dry_stage *stage = &chain->stages[i];
        struct dryi_one_stage *s = &one->stages[i];
        s->forward = stage->forward_ns >> one->time_shift;
        s->output = stage->output_bytes;
        s->saved = stage->saved_bytes;
        s->forward_tmp = stage->forward_tmp_bytes;
        s->is_fixed = stage->is_fixed;
        set_options(one, stage, i, &row);
    }
    DRYI_ASSERT(row == one->row_count);
}

enum dry_status
dryi_one_init(struct dryi_one *one, const struct dry_chain *chain,
              const struct dry_memory *memory, struct dry_error *err)
{
    *one = (struct dryi_one){.memory = dryi_memory_or_default(memory)};
    count_parts(one, chain);
    if (!take_parts(one)) {
        dryi_one_finish(one);
        return dryi_fail_memory(err, "a plan's stages");
    }
    unsigned bits = dryi_log2_floor(chain->work_sum | 1) + 1;
    one->time_shift = bits > EXACT_BITS ? bits - EXACT_BITS : 0;
    one->final_gradient = chain->stages[chain->count - 1].gradient_bytes;
    set_stages(one, chain);
    one->longest = ITEMS_MAX / one->row_count;
    dryi_one_set_floors(one);
    return DRY_OK;
}

void
dryi_one_finish(struct dryi_one *one)
{
    dryi_memory_free(&one->memory, one->floors, one->row_count, sizeof *one->floors);
    dryi_memory_free(&one->memory, one->moved, one->row_count, sizeof *one->moved);
    dryi_memory_free(&one->memory, one->options, one->option_count, sizeof *one->options);
    dryi_memory_free(&one->memory, one->stages, one->stages ? one->count + 1 : 0,
                     sizeof *one->stages);
    *one = (struct dryi_one){0};
}

/* --- exact bytes ------------------------------------------------------------------------- */

struct dryi_one_cost
dryi_one_evaluate(const struct dryi_one *one, const struct dryi_one_choice *choices,
                  size_t count)
{
    struct dryi_one_cost cost = {0};
    uint64_t held = 0;
    size_t row = 0, i = 0;
    for (size_t c = 0; c < count; i = choices[c].last + 1, c++) {
        if (choices[c].option != SIZE_MAX) {
            const struct dryi_one_option *o = &one->options[choices[c].option];
            cost.need = dryi_max(cost.need, held + o->need + one->moved[row]);
            cost.extra += o->extra;
            held += o->held;
            row = o->row;
            continue;
        }
        struct dryi_one_range range = {.moved = one->moved[row]};
        for (size_t e = i; e <= choices[c].last; e++)
            dryi_one_range_extend(&range, one, e, e == i);
        cost.need = dryi_max(cost.need, held + range.need);
        cost.extra += range.time;
        held += one->stages[choices[c].last].output;
        row = one->stages[choices[c].last + 1].row;
    }
    return cost;
}
