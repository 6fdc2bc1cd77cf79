/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_PACKING_H
#define DRYI_POOL_PACKING_H

/*
 * Packing in the background.
 *
 * Now and then the place has a period to be packed, which takes milliseconds to a second. A thread
 * is started for that and ends with it, while the pool goes on without a layout. If no thread can
 * be had, the calling thread does the work. The packing takes its memory from the C library, for
 * the pool's own hooks are called from calls on the pool alone.
 *
 *     options.wants_job = dryi_pool_packer_call(packer);
 *     dryi_pool_packer_init(packer);
 *     if (dryi_pool_packer_is_due(packer))         lock held, after an alloc of the place
 *         dryi_pool_packer_step(packer, place);
 *     dryi_pool_packer_finish(packer, place, is_child);      before the place is destroyed
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "base/inline.h"
#include "os/thread.h"
#include "place/paged/paged.h"
#include "place/place.h"

struct dryi_pool_packer {
    bool is_due;                  /* the place has a job, or the thread has one */
    bool is_wanted;               /* the place has a job */
    struct dryi_packing_job *job; /* with the thread; NULL: there is none */
    struct dryi_thread thread;
    atomic_bool is_done; /* the thread has nothing to do any more */
};

void dryi_pool_packer_init(struct dryi_pool_packer *packer);
/* Return the function that a place calls when it has a job; `packer` stays where it is. */
struct dryi_paged_call dryi_pool_packer_call(struct dryi_pool_packer *packer);

/* Is there something to do? One load, and while a thread is at work three. */
static inline bool
dryi_pool_packer_is_due(const struct dryi_pool_packer *packer)
{
    return packer->is_due &&
           (!packer->job || atomic_load_explicit(&packer->is_done, memory_order_acquire));
}

/* Do what is due: start the thread for a job, or return a job that is done. Never waits. */
DRYI_NOINLINE void dryi_pool_packer_step(struct dryi_pool_packer *packer,
                                         const struct dryi_place *place);
/*
 * End the thread, whatever it does; in the child of a fork there is none. Requires no lock, but
 * that no other thread calls. `place` without ops is accepted.
 */
void dryi_pool_packer_finish(struct dryi_pool_packer *packer,
                             const struct dryi_place *place, bool is_child);

#endif
