/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_LIST_H
#define DRYI_PLACE_PAGED_LIST_H

/*
 * Free lists that come and go: the two that every arena has, and one for each stream that meets an
 * arena. NONE says that there is no memory.
 */

#include "place/paged/record/paged_state.h"

/* Make a list of an arena. */
uint32_t dryi_paged_list_make(struct dryi_paged *p, uint32_t arena,
                              enum free_list_kind kind, uint32_t stream);
/*
 * Return the list of a stream in an arena, made if need be. Making a list in a private pool looks
 * at a few lists, and drops those of other streams that have no block.
 */
DRYI_NOINLINE uint32_t dryi_paged_list_ask(struct dryi_paged *p, uint32_t arena,
                                           uint32_t stream);
void dryi_paged_lists_finish(struct dryi_paged *p);

/* Do as dryi_paged_list_ask(), at once for the stream that asked last. */
static inline uint32_t
dryi_paged_list_index(struct dryi_paged *p, uint32_t arena, uint32_t stream)
{
    const struct arena *a = &p->arenas[arena];
    return a->last_stream == stream ? a->last_list
                                    : dryi_paged_list_ask(p, arena, stream);
}

#endif
