/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_SPOT_H
#define DRYI_PLACE_PAGED_SPOT_H

/* A spot is where a request could lie, in free blocks side by side or once pages come there. */

#include "place/paged/record/paged_state.h"

/* Kinds of search: which spots are looked at, and which pages count first. */
enum search_kind {
    SEARCH_FRESH,  /* some spots at holes; pages to be mapped count */
    SEARCH_TOUCH,  /* some spots; pages that could serve elsewhere count, mapped or not */
    SEARCH_JOINED, /* some spots in free memory alone; also on a device without pages */
    SEARCH_ALL,    /* all spots; the same pages count as for SEARCH_TOUCH */
    SEARCH_LAST, /* as SEARCH_ALL, and pools that give pages before an OOM give theirs */
    SEARCH_FREE, /* all spots in free memory alone, as for SEARCH_JOINED */
};

/*
 * Find the cheapest spot for the request. The spot's block is NONE if there is no spot. SEARCH_ALL
 * and SEARCH_LAST look at every run, and promise more. If any spot can get its pages (from the
 * stock, the device, or other blocks whose uses are complete), the spot found can. Only searches of
 * all spots take memory, and can return MEMORY.
 */
enum dry_status dryi_paged_spot_find(struct dryi_paged *p, const struct request *r,
                                     enum search_kind kind, struct spot *spot);
/*
 * Map the spot's pages, which the stock must hold, and take r->bytes there. *block is on no list.
 */
enum dry_status dryi_paged_spot_take(struct dryi_paged *p, const struct request *r,
                                     const struct spot *spot, uint32_t *block);

#endif
