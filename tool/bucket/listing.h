/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LISTING_H
#define TOOL_LISTING_H

/*
 * List the objects of a bucket whose keys have a common prefix, page by page.
 *
 * Errors     See object.h; LIMIT: a list of over 20,000 pages.
 *
 * Memory     A page has at most 10,000 objects; for a request see request.h.
 *
 * Threads    Any.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

struct listing {
    const char *bucket; /* name of the bucket */
    const char *prefix; /* "" for all objects */
    bool is_first_only; /* request only the first object */
    /* Take an object; return false to stop. Its page has been received completely. */
    bool (*visit)(void *self, const char *key, uint64_t bytes, uint64_t stamp);
    void *self;
};

/* Visit all objects in the store's order. Returns DRY_OK if `visit` stops. */
DRY_CHECK_RESULT enum dry_status listing_visit(const struct listing *listing,
                                               struct dry_error *err);

#endif
