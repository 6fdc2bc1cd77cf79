/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_PACKING_H
#define DRYI_POOL_PACKING_H

/*
 * Packing in the background.
 *
 * Occasionally the place has a period to pack, which takes milliseconds to a second. A thread is
 * started for the job and ends with it; meanwhile the pool works without a layout. If no thread can
 * be started, the calling thread packs. Packing uses the C library's allocator, because the pool's
 * own memory hooks may be called only from within calls of the pool.
 *
 *   options.wants_job = dryi_pool_packer_call(packer);
 *   dryi_pool_packer_init(packer);
 *   if (dryi_pool_packer_is_due(packer))         lock held, after an alloc of the place
 *       dryi_pool_packer_step(packer, place);
 *   dryi_pool_packer_finish(packer, place, is_child);      before the place is destroyed
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "base/inline.h"
#include "os/thread.h"
#include "place/paged/paged.h"
#include "place/place.h"

struct dryi_pool_packer {
    bool is_due;                  /* the place or the thread has a job */
    bool is_wanted;               /* the place has a job */
    struct dryi_packing_job *job; /* the thread's job; NULL: none */
    struct dryi_thread thread;
    atomic_bool is_done; /* the thread has finished its job */
};

void dryi_pool_packer_init(struct dryi_pool_packer *packer);
/* Return the function that a place calls when it has a job. `packer` must not move afterwards. */
struct dryi_paged_call dryi_pool_packer_call(struct dryi_pool_packer *packer);

/* Is a step needed? Costs one load, and three while a thread is running. */
static inline bool
dryi_pool_packer_is_due(const struct dryi_pool_packer *packer)
{
    return packer->is_due &&
           (!packer->job || atomic_load_explicit(&packer->is_done, memory_order_acquire));
}

/*
 * Start a thread for a job, or return a finished job to the place. Blocks only if no thread can be
 * started.
 */
DRYI_NOINLINE void dryi_pool_packer_step(struct dryi_pool_packer *packer,
                                         const struct dryi_place *place);
/*
 * Cancel the job and wait for the thread; the child of a fork has no thread. Requires no lock, but
 * no concurrent calls on the pool. `place` without ops is accepted.
 */
void dryi_pool_packer_finish(struct dryi_pool_packer *packer,
                             const struct dryi_place *place, bool is_child);

#endif
