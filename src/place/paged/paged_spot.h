/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_SPOT_H
#define DRYI_PLACE_PAGED_SPOT_H

/* A spot is a range for a request: adjacent free blocks, or holes once pages are mapped there. */

#include "place/paged/record/paged_state.h"

/* Kinds of search: the spots considered, and the pages to minimize. */
enum search_kind {
    SEARCH_FRESH, /* some spots with holes; minimize the pages to map */
    /* Some spots; minimize the pages used, mapped or not, that could serve elsewhere. */
    SEARCH_TOUCH,
    SEARCH_JOINED, /* Some spots in free memory only; works on devices without pages */
    SEARCH_ALL,    /* all spots; minimize as SEARCH_TOUCH does */
    SEARCH_LAST,   /* SEARCH_ALL, and pages of pools that give theirs before an OOM */
    SEARCH_FREE,   /* all spots in free memory only */
};

/*
 * Find the best spot for the request; spot->block is NONE if there is none. SEARCH_ALL and
 * SEARCH_LAST guarantee more. If any spot can get its pages from the stock, the device or other
 * complete blocks, the spot found can. Only searches of all spots allocate memory and can return
 * MEMORY.
 */
enum dry_status dryi_paged_spot_find(struct dryi_paged *p, const struct request *r,
                                     enum search_kind kind, struct spot *spot);
/* Map the spot's pages, which the stock must hold, and take r->bytes there. *block is unlisted. */
enum dry_status dryi_paged_spot_take(struct dryi_paged *p, const struct request *r,
                                     const struct spot *spot, uint32_t *block);

#endif
