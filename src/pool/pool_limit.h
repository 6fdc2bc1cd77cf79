/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_LIMIT_H
#define DRYI_POOL_LIMIT_H

#include "pool/pool_state.h"

/* Return the smaller limit of fraction and bytes; UINT64_MAX: no limit. */
uint64_t dryi_pool_limit(const struct dry_pool *pool);

#endif
