/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_GROW_H
#define DRYI_HOST_PINNED_GROW_H

/* Misses, warming and unpinning; see pinned_grow.c. */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"

/* Serve a request that no free block fits, by all means. Requires that no lock is
   held. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_grow(
    struct dry_pinned *p, const struct dryi_pinned_request *request, uint64_t *address);
/* Make arenas of the ranges in the inbox. Requires the lock. */
void dryi_pinned_adopt(struct dry_pinned *p);
/* Unpin idle arenas until at most `bytes` are pinned. Requires that neither thread cache,
   lock nor inbox is held. */
void dryi_pinned_shrink(struct dry_pinned *p, uint64_t bytes);
/* Return whether idle bytes exceed cached_max_bytes, or an arena is unwanted. Requires
   the lock. */
bool dryi_pinned_has_too_much(const struct dry_pinned *p);
/* Unpin the arenas that dryi_pinned_has_too_much() reports. Requires that neither thread
   cache, lock nor inbox is held. */
void dryi_pinned_shed(struct dry_pinned *p);
/* Pin until `bytes` are pinned; see dry_pinned_warm(). */
DRY_CHECK_RESULT enum dry_status dryi_pinned_warm(struct dry_pinned *p, uint64_t bytes,
                                                  bool in_background,
                                                  struct dry_error *err);
/* Return the bytes that may still be pinned. Requires that neither thread cache, lock nor
   inbox is held. */
uint64_t dryi_pinned_available_bytes(struct dry_pinned *p);
void dryi_pinned_pinner_init(struct dry_pinned *p);
void dryi_pinned_pinner_finish(struct dry_pinned *p, bool is_child);

#endif
