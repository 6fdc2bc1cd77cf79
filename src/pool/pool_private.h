/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_PRIVATE_H
#define DRYI_POOL_PRIVATE_H

#include "pool/pool_state.h"

/* Is any stream being captured? Requires the lock. */
bool dryi_pool_is_capturing(const struct dry_pool *pool);

#endif
