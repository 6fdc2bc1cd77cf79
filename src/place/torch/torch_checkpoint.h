/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_CHECKPOINT_H
#define DRYI_TORCH_CHECKPOINT_H

/* Restoring private pools to a checkpoint: hold_pool and restore_pool of place/place.h. */

#include "place/torch/torch_state.h"

DRY_CHECK_RESULT enum dry_status dryi_torch_hold_pool(void *place,
                                                      struct dryi_pool_id pool,
                                                      uint64_t *hold);
DRY_CHECK_RESULT enum dry_status dryi_torch_restore_pool(
    void *place, const struct dryi_restored *wanted,
    const struct dryi_restore_watcher *watcher, struct dry_error *err);

#endif
