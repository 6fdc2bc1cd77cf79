/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_LIST_H
#define DRYI_PLACE_PAGED_LIST_H

/*
 * Creation and removal of free lists: two per arena, and one for each stream that uses an arena.
 * NONE: out of memory.
 */

#include "place/paged/record/paged_state.h"

/* Make a list of an arena. `stream`: NONE unless the kind is FREE_STREAM. */
uint32_t dryi_paged_list_make(struct dryi_paged *p, uint32_t arena,
                              enum free_list_kind kind, uint32_t stream);
/*
 * Return the list of a stream in an arena; make the list on first use. Making a list in a private
 * pool may drop a few empty lists of other streams.
 */
DRYI_NOINLINE uint32_t dryi_paged_list_ask(struct dryi_paged *p, uint32_t arena,
                                           uint32_t stream);
void dryi_paged_lists_finish(struct dryi_paged *p);

/* Do as dryi_paged_list_ask(); the last pair of arena and stream is served from a memo. */
static inline uint32_t
dryi_paged_list_index(struct dryi_paged *p, uint32_t arena, uint32_t stream)
{
    const struct arena *a = &p->arenas[arena];
    return a->last_stream == stream ? a->last_list
                                    : dryi_paged_list_ask(p, arena, stream);
}

#endif
