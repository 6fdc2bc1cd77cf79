/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_CACHE_SHARED_H
#define DRYI_PLACE_PAGED_CACHE_SHARED_H

/*
 * Caches used by several threads at once. The functions are those of dryi_cache_ops
 * (place_cache.h). A divider between two streams' blocks lets each cache change its own links only.
 */

#include "place/paged/record/paged_state.h"

struct dryi_cache *dryi_paged_cache_ask(void *self, uint64_t stream);
void dryi_paged_cache_flush(struct dryi_cache *cache);
void dryi_paged_cache_give_back(struct dryi_cache *cache);
void dryi_paged_cache_share(void *self, bool is_shared);
uint64_t dryi_paged_cache_take(struct dryi_cache *cache, uint64_t size);
bool dryi_paged_cache_put(struct dryi_cache *cache, dryi_block block);
bool dryi_paged_cache_cut(struct dryi_cache *cache, uint64_t size, bool has_place,
                          dryi_block *block);
bool dryi_paged_cache_merge(struct dryi_cache *cache, dryi_block block, bool has_place);
bool dryi_paged_cache_register(struct dryi_cache *cache, dryi_block block);
bool dryi_paged_cache_holds(const void *self, dryi_block block);
uint64_t dryi_paged_cache_balance(void *self, struct dryi_cache *const *caches,
                                  size_t count);
void dryi_paged_cache_watch(void *self, struct dryi_cache_watcher watcher);

/*
 * Merge free blocks across all dividers. Does nothing until as many requests came as there are
 * dividers, so the cost per request is one divider.
 */
void dryi_paged_dividers_merge(struct dryi_paged *p);

#endif
