/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_SPOT_H
#define DRYI_PLACE_PAGED_SPOT_H

/* Where a request could lie if pages came there, or in free blocks side by side. */

#include "place/paged/record/paged_state.h"

/* What a search looks at, and what it counts first. */
enum search_kind {
    SEARCH_FRESH, /* some spots beside holes; pages to be mapped */
    SEARCH_TOUCH, /* some of all spots; pages that could serve elsewhere, mapped or not */
    SEARCH_JOINED, /* some of free memory alone; without pages, too */
    SEARCH_ALL,    /* all spots; as SEARCH_TOUCH */
    SEARCH_LAST,   /* all spots; and pools that give their pages before an OOM do */
    SEARCH_FREE,   /* all spots; as SEARCH_JOINED */
};

/*
 * Find the cheapest spot for the request; its block is NONE if there is none. SEARCH_ALL and
 * SEARCH_LAST look at every run and promise more: if any spot can get its pages (from the stock, the
 * device, or other blocks whose uses are complete), the one found can. Only they take memory, and
 * can return MEMORY.
 */
enum dry_status dryi_paged_spot_find(struct dryi_paged *p, const struct request *r,
                                     enum search_kind kind, struct spot *spot);
/* Map the spot's pages, which are in stock, and take it: *block is on no list, of r->bytes. */
enum dry_status dryi_paged_spot_take(struct dryi_paged *p, const struct request *r,
                                     const struct spot *spot, uint32_t *block);

#endif
