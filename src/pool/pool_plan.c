/* SPDX-License-Identifier: Apache-2.0 */

/* The idea and the use stand in pool_plan.h. */

#include "pool/pool_plan.h"

#include "place/forecast/forecast.h"

static void
on_job(void *self)
{
    struct dryi_pool_planner *planner = self;
    planner->is_wanted = planner->is_due = true;
}

void
dryi_pool_planner_init(struct dryi_pool_planner *planner)
{
    *planner = (struct dryi_pool_planner){0};
    atomic_init(&planner->is_done, false);
}

struct dryi_paged_call
dryi_pool_planner_call(struct dryi_pool_planner *planner)
{
    return (struct dryi_paged_call){.call = on_job, .self = planner};
}

static void *
run(void *self)
{
    struct dryi_pool_planner *planner = self;
    dryi_plan_job_run(planner->job, NULL);
    atomic_store_explicit(&planner->is_done, true, memory_order_release);
    return NULL;
}

static void
return_job(struct dryi_pool_planner *planner, const struct dryi_place *place)
{
    place->ops->return_job(place->self, planner->job);
    planner->job = NULL;
}

static void
begin_job(struct dryi_pool_planner *planner, const struct dryi_place *place)
{
    planner->is_wanted = false;
    planner->job = place->ops->take_job(place->self);
    if (!planner->job)
        return;
    atomic_store_explicit(&planner->is_done, false, memory_order_relaxed);
    if (dryi_thread_start(&planner->thread, run, planner))
        return;
    dryi_plan_job_run(planner->job, NULL);
    return_job(planner, place);
}

void
dryi_pool_planner_step(struct dryi_pool_planner *planner, const struct dryi_place *place)
{
    if (planner->job) {                     /* is done */
        dryi_thread_join(&planner->thread); /* at its end */
        return_job(planner, place);
    }
    if (planner->is_wanted)
        begin_job(planner, place);
    planner->is_due = planner->job || planner->is_wanted;
}

void
dryi_pool_planner_finish(struct dryi_pool_planner *planner,
                         const struct dryi_place *place, bool is_child)
{
    planner->is_wanted = planner->is_due = false;
    if (!planner->job)
        return;
    if (!is_child) {
        dryi_plan_job_cancel(planner->job);
        dryi_thread_join(&planner->thread);
    }
    return_job(planner, place);
}
