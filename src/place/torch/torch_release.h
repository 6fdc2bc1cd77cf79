/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_RELEASE_H
#define DRYI_TORCH_RELEASE_H

/* Releasing memory to the device, in PyTorch's order. */

#include "place/torch/torch_state.h"

void dryi_torch_collect_garbage(struct dryi_torch *t);
/* Return the first block that dryi_torch_release_available() would release, or NONE. */
uint32_t dryi_torch_available_find(const struct dryi_torch *t, const struct request *r);
bool dryi_torch_release_available(struct dryi_torch *t, const struct request *r);
enum dry_status dryi_torch_release_cached(struct dryi_torch *t, struct dryi_pool_id only);

#endif
