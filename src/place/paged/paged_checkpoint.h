/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_CHECKPOINT_H
#define DRYI_PLACE_PAGED_CHECKPOINT_H

/* Restoring private pools to checkpoints: functions of place.h. */

#include "place/paged/record/paged_state.h"

enum dry_status dryi_paged_hold_pool(void *self, struct dryi_pool_id id, uint64_t *hold);
void dryi_paged_unhold_pool(void *self, struct dryi_pool_id id, uint64_t hold);
enum dry_status dryi_paged_restore_pool(void *self, const struct dryi_restored *wanted,
                                        const struct dryi_restore_watcher *watcher,
                                        struct dry_error *err);

#endif
