/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_POOL_H
#define DRYI_PLACE_PAGED_POOL_H

/*
 * Pools, the scopes that direct requests to pools, and captures. A private pool without users is
 * idle. NONE: no pool.
 */

#include "place/paged/record/paged_state.h"

uint32_t dryi_paged_pool_find(const struct dryi_paged *p, struct dryi_pool_id id);
uint32_t dryi_paged_pool_make(struct dryi_paged *p, struct dryi_pool_id id,
                              unsigned flags);
/* Drop an idle pool. Requires that the pool has no segments. */
void dryi_paged_pool_drop(struct dryi_paged *p, uint32_t pool);
/* Move the first idle pool to the end of the list. Requires an idle pool. */
void dryi_paged_idle_turn(struct dryi_paged *p);
/* Return the pool of the innermost scope that covers the stream; the default pool if none does. */
DRYI_NOINLINE uint32_t dryi_paged_pool_for(const struct dryi_paged *p, uint32_t stream);
/* May free pages of this arena be moved elsewhere? `oom`: true to prevent an OOM. */
bool dryi_paged_gives_pages(const struct dryi_paged *p, uint32_t arena, bool oom);
/* Implement the functions of the same names in place.h. */
enum dry_status dryi_paged_open_pool(void *self, struct dryi_pool_id id, unsigned flags);
enum dry_status dryi_paged_begin_pool(void *self, struct dryi_pool_id id,
                                      struct dryi_stream_filter filter);
enum dry_status dryi_paged_end_pool(void *self, struct dryi_pool_id id);
enum dry_status dryi_paged_release_pool(void *self, struct dryi_pool_id id);
enum dry_status dryi_paged_flag_pool(void *self, struct dryi_pool_id id, unsigned flags,
                                     unsigned mask);
enum dry_status dryi_paged_count_users(const void *self, struct dryi_pool_id id,
                                       uint64_t *users);
enum dry_status dryi_paged_begin_capture(void *self, struct dryi_stream_filter filter);
enum dry_status dryi_paged_end_capture(void *self);

#endif
