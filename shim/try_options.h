/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SHIM_TRY_OPTIONS_H
#define DRY_SHIM_TRY_OPTIONS_H

/* C and C++: each seam has its copy. */

#include <drystone/pool.h>
#include <drystone/sim.h>

/*
 * Make a pool on a simulated GPU, so that a text without a meaning is said before there is a real
 * one. `chosen` is without a device.
 */
static inline enum dry_status
shim_try_options(struct dry_pool_options chosen, struct dry_error *error)
{
    struct dry_sim_options options;
    struct dry_sim *sim;
    struct dry_pool *pool;
    dry_sim_options_init(&options);
    enum dry_status status = dry_sim_create(&options, &sim, error);
    if (status != DRY_OK)
        return status;
    chosen.device = dry_sim_get_device(sim);
    status = dry_pool_create(&chosen, &pool, error);
    if (status == DRY_OK)
        dry_pool_destroy(pool);
    dry_sim_destroy(sim);
    return status;
}

#endif
