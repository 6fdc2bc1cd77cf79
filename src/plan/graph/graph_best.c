/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The best sequence so far. Every planner offers its sequences here and asks whether to go on. So
 * this file is below the planners, while graph_plan.c, which runs them in turn, is above.
 */
#include "plan/graph/graph_state.h"

enum dry_status
dryi_graph_offer(struct dryi_graph_search *s, const struct dryi_graph_runs *sequence,
                 uint64_t time, enum dry_graph_method method)
{
    if (time >= s->best_ns)
        return DRY_OK;
    if (!dryi_graph_runs_copy(&s->memory, &s->best, sequence))
        return DRY_ERR_MEMORY;
    s->best_ns = time;
    s->method = method;
    return DRY_OK;
}

bool
dryi_graph_go_on(struct dryi_graph_search *s)
{
    const struct dry_graph_options *o = &s->options;
    if (!s->is_cancelled && s->steps == 0 && o->progress)
        s->is_cancelled = o->progress(o->progress_self, 0, s->best_ns);
    return !s->is_cancelled;
}
