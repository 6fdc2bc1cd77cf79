/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SHIM_TRY_OPTIONS_H
#define DRY_SHIM_TRY_OPTIONS_H

/*
 * Options of a pool in C and C++, for shim and plug. The caller owns the texts, which may be NULL.
 */

#include <drystone/pool.h>
#include <drystone/sim.h>

static inline struct dry_pool_options
shim_options(enum dry_placement placement, const char *conf, const char *compat)
{
    struct dry_pool_options options;
    dry_pool_options_init(&options);
    options.placement = placement;
    options.conf = conf;
    options.compat = compat;
    return options;
}

/* Create a pool on a simulated GPU, so that invalid texts are reported at once. */
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
