/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_DEVICE_H
#define DRYI_POOL_DEVICE_H

#include "pool/pool_state.h"

/* Make the device as the place sees it: streams are numbers; gone in the child of a fork. */
struct dry_device dryi_pool_device(struct dry_pool *pool);

#endif
