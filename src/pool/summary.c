/* SPDX-License-Identifier: Apache-2.0 */

/* The pool's statistics as torch.cuda.memory_summary() shows them; base/stats_summary.c. */

#include <drystone/pool.h>

#include "base/fail.h"
#include "pool/pool_state.h"

enum dry_status
dry_pool_write_summary(struct dry_pool *pool, int abbreviated,
                       const struct dry_sink *sink, struct dry_error *err)
{
    struct dry_stats stats;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return dryi_fail(err, status,
                         "this is the child of a fork: the pool's device "
                         "belongs to the parent");
    dryi_pool_stats(pool, &stats);
    dryi_pool_leave(pool);
    return dry_stats_write_summary(&stats, pool->options.device_index, abbreviated, sink,
                                   err);
}
