/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_VIEW_H
#define DRYI_PLACE_PAGED_VIEW_H

/* Read access to the place: functions of place.h, and the check of all invariants. */

#include "place/paged/record/paged_state.h"

void dryi_paged_get_block(const void *self, dryi_block block,
                          struct dryi_block_info *info);
enum dry_status dryi_paged_walk(
    const void *self,
    enum dry_status (*visit)(void *visitor, const struct dryi_segment_info *segment,
                             const struct dryi_block_info *blocks, size_t count),
    void *visitor);
/* Check all invariants (paged_check.c). FORMAT: *err names the first violated one. */
enum dry_status dryi_paged_check(const void *self, struct dry_error *err);

#endif
