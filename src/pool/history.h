/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_HISTORY_H
#define DRYI_POOL_HISTORY_H

#include "pool/pool_state.h"

/* dry_pool_walk_history with the lock held. */
DRY_CHECK_RESULT enum dry_status dryi_history_walk(
    const struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_event *event), void *self);

#endif
