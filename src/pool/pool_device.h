/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_DEVICE_H
#define DRYI_POOL_DEVICE_H

#include "pool/pool_state.h"

/*
 * Return the device as the place sees it: streams are numbers, and destroy in a forked child makes
 * no device calls.
 */
struct dry_device dryi_pool_device(struct dry_pool *pool);

#endif
