/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_CACHE_H
#define DRYI_PLACE_PAGED_CACHE_H

/*
 * Stream caches as seen by the single thread that holds a cache: which lists have blocks on their
 * stacks, and how these are flushed. paged_bins.h has the stacks, paged_cache_shared.h the use by
 * several threads.
 */

#include "place/paged/record/paged_state.h"

/* Free all caches of the place. */
void dryi_paged_caches_finish(struct dryi_paged *p);
/* Add a list to those that dryi_paged_flush() visits, because its stacks may have blocks. */
void dryi_paged_cache_note(struct dryi_paged *p, uint32_t list);
/* Remove a list whose stacks are empty from those that dryi_paged_flush() visits. */
void dryi_paged_cache_unnote(struct dryi_paged *p, struct free_list *s);
/* End the registration of a free block's address, and tell the watcher. */
void dryi_paged_cache_forget(struct dryi_paged *p, struct block *b);

/* Coalesce all cached and all parked blocks. True: there were any. */
bool dryi_paged_flush(struct dryi_paged *p);
/* Coalesce the cached blocks of one list. */
void dryi_paged_flush_list(struct dryi_paged *p, struct free_list *s);
/* Coalesce at most `most` cached blocks of one list. */
void dryi_paged_flush_some(struct dryi_paged *p, struct free_list *s, uint32_t most);
/*
 * Coalesce up to `most` cached blocks of a list until one free block has `bytes`. Small blocks of
 * that size and above come first. True: such a block now exists.
 */
bool dryi_paged_flush_for(struct dryi_paged *p, uint32_t list, uint64_t bytes,
                          uint32_t most);
/*
 * Do as dryi_paged_flush_for() while holding only the cache. At most FLUSH_MAX blocks are
 * coalesced, and none that would merge with a block of another cache.
 */
bool dryi_paged_flush_beside(struct dryi_paged *p, uint32_t list, uint64_t bytes);
/* Can a thread that holds only the cache coalesce this block of the list? */
bool dryi_paged_can_coalesce_beside(const struct dryi_paged *p, const struct free_list *s,
                                    uint32_t block);

#endif
