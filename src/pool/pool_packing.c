/* SPDX-License-Identifier: Apache-2.0 */

/* See pool_packing.h. */

#include "pool/pool_packing.h"

#include "base/assert.h"
#include "place/forecast/forecast.h"

static void
on_job(void *self)
{
    struct dryi_pool_packer *packer = self;
    packer->is_wanted = packer->is_due = true;
}

void
dryi_pool_packer_init(struct dryi_pool_packer *packer)
{
    *packer = (struct dryi_pool_packer){0};
    atomic_init(&packer->is_done, false);
}

struct dryi_paged_call
dryi_pool_packer_call(struct dryi_pool_packer *packer)
{
    return (struct dryi_paged_call){.call = on_job, .self = packer};
}

static void *
run(void *self)
{
    struct dryi_pool_packer *packer = self;
    dryi_packing_job_run(packer->job, NULL);
    atomic_store_explicit(&packer->is_done, true, memory_order_release);
    return NULL;
}

static void
return_job(struct dryi_pool_packer *packer, const struct dryi_place *place)
{
    DRYI_ASSERT_SLOW(packer->job != NULL);
    place->ops->return_job(place->self, packer->job);
    packer->job = NULL;
}

static void
begin_job(struct dryi_pool_packer *packer, const struct dryi_place *place)
{
    DRYI_ASSERT_SLOW(!packer->job);
    packer->is_wanted = false;
    packer->job = place->ops->take_job(place->self);
    if (!packer->job)
        return;
    atomic_store_explicit(&packer->is_done, false, memory_order_relaxed);
    if (dryi_thread_start(&packer->thread, run, packer))
        return;
    dryi_packing_job_run(packer->job, NULL);
    return_job(packer, place);
}

void
dryi_pool_packer_step(struct dryi_pool_packer *packer, const struct dryi_place *place)
{
    DRYI_ASSERT_SLOW(packer->is_due);
    if (packer->job) { /* is_due: so this job is done */
        /* Does not block: the thread is about to end. */
        dryi_thread_join(&packer->thread);
        return_job(packer, place);
    }
    if (packer->is_wanted)
        begin_job(packer, place);
    packer->is_due = packer->job || packer->is_wanted;
}

void
dryi_pool_packer_finish(struct dryi_pool_packer *packer, const struct dryi_place *place,
                        bool is_child)
{
    packer->is_wanted = packer->is_due = false;
    if (!packer->job)
        return;
    if (!is_child) {
        dryi_packing_job_cancel(packer->job);
        dryi_thread_join(&packer->thread);
    }
    return_job(packer, place);
}
