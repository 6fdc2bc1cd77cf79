/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LISTING_H
#define TOOL_LISTING_H

/*
 * The objects of a bucket whose keys begin alike, page by page.
 *
 * Errors     Those of object.h; LIMIT: a list of over 20,000 pages.
 * Memory     A page has 10,000 objects at most; a request takes what request.h says.
 * Threads    Any.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

struct listing {
    const char *bucket; /* its name */
    const char *prefix; /* "": all */
    bool is_first_only; /* the first object alone is wanted */
    /* Take an object; false: no more. Pages are complete when their objects are shown. */
    bool (*visit)(void *self, const char *key, uint64_t bytes, uint64_t stamp);
    void *self;
};

/* Show all objects, in the store's order. An end by `visit` is no failure. */
DRY_CHECK_RESULT enum dry_status listing_visit(const struct listing *listing,
                                               struct dry_error *err);

#endif
