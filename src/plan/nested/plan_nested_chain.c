/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The chain in the nested planner's numbers. Each pass of a stage has needs, which are
 * summed once, by the rules of <drystone/plan.h>. Bytes are divided by their greatest
 * common divisor, so that a chain in MiB is as exact on a grid of slots as one in bytes.
 */
#include "plan/nested/plan_nested.h"

#include "base/bits.h"
#include "base/memory.h"

static uint64_t
find_part(const struct dryi_planning *p)
{
    uint64_t part = p->chain->frame.input_gradient_bytes;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct dry_stage *stage = &p->stages[i];
        part = dryi_common_divisor(part, stage->output_bytes);
        part = dryi_common_divisor(part, stage->gradient_bytes);
        part = dryi_common_divisor(part, stage->grads_bytes);
        for (uint32_t k = 0; k <= stage->option_count; k++) {
            part = dryi_common_divisor(part, dryi_stage_saved_by(stage, k));
            part = dryi_common_divisor(part, dryi_stage_forward_tmp(stage, k));
            part = dryi_common_divisor(part, dryi_stage_backward_tmp(stage, k));
            part = dryi_common_divisor(part, dryi_stage_offload(stage, k));
        }
    }
    return part > 0 ? part : 1;
}

static void
put_options(struct dryi_nested *n, const struct dryi_planning *p, uint32_t i)
{
    const struct dry_stage *stage = &p->stages[i];
    uint64_t beside =
        stage->gradient_bytes + dryi_input_gradient(p, i) + p->grads_from[i];
    for (uint32_t k = 0; k <= stage->option_count; k++) {
        uint64_t saved = dryi_stage_saved_by(stage, k);
        uint64_t back = saved + beside + dryi_stage_backward_tmp(stage, k);
        n->options[n->option_count++] = (struct dryi_nested_option){
            .held = saved / n->part,
            .light = (saved - dryi_stage_offload(stage, k)) / n->part,
            .keep = (saved + dryi_stage_forward_tmp(stage, k)) / n->part,
            .back = back / n->part,
            .redo = dryi_stage_backward_ns(stage, k) - stage->backward_ns,
        };
    }
}

static void
put_stages(struct dryi_nested *n, const struct dryi_planning *p)
{
    n->option_count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct dry_stage *stage = &p->stages[i];
        n->stages[i] = (struct dryi_nested_stage){
            .output = stage->output_bytes / n->part,
            .pass = (stage->output_bytes + stage->forward_tmp_bytes) / n->part,
            .end = (stage->gradient_bytes + p->grads_from[i + 1]) / n->part,
            .work = p->forward_before[i],
            .first = (uint32_t)n->option_count,
        };
        put_options(n, p, i);
    }
    n->stages[n->count] = (struct dryi_nested_stage){.work = p->forward_before[n->count],
                                                     .fence = p->count,
                                                     .first = (uint32_t)n->option_count};
    for (uint32_t i = p->count; i-- > 0;)
        n->stages[i].fence = p->stages[i].is_fixed ? i : n->stages[i + 1].fence;
}

bool
dryi_nested_init(struct dryi_nested *n, const struct dryi_planning *p)
{
    *n = (struct dryi_nested){.memory = p->memory,
                              .progress = p->progress,
                              .count = p->count,
                              .part = find_part(p)};
    n->free_budget = p->free_budget_bytes / n->part;
    n->option_count = p->count;
    for (uint32_t i = 0; i < p->count; i++)
        n->option_count += p->stages[i].option_count;
    n->stages = dryi_memory_zalloc(&n->memory, n->count + 1, sizeof *n->stages);
    n->options = dryi_memory_zalloc(&n->memory, n->option_count, sizeof *n->options);
    if (n->stages && n->options) {
        put_stages(n, p);
        return true;
    }
    dryi_nested_finish(n);
    return false;
}

void
dryi_nested_finish(struct dryi_nested *n)
{
    dryi_memory_free(&n->memory, n->stages, n->count + 1, sizeof *n->stages);
    dryi_memory_free(&n->memory, n->options, n->option_count, sizeof *n->options);
    n->stages = NULL;
    n->options = NULL;
}

uint64_t
dryi_nested_get_held(const struct dryi_nested *n, uint32_t s,
                     const struct dryi_nested_option *o)
{
    return s + 1 < n->count ? o->light : dryi_max(o->keep + n->stages[s].end, o->back);
}

uint64_t
dryi_nested_get_all(const struct dryi_nested *n)
{
    uint64_t all = 0;
    for (size_t i = n->count; i-- > 0;) {
        const struct dryi_nested_option *o = &n->options[n->stages[i].first];
        uint64_t need = o->keep + n->stages[n->count - 1].end;
        all = all + o->held > need ? all + o->held : need;
        all = o->back > all ? o->back : all;
    }
    return all;
}
