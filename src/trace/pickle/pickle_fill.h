/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_FILL_H
#define DRYI_PICKLE_FILL_H

/*
 * Fill containers. A container put into another is sealed (W3). A filled dict becomes the
 * record that its keys name.
 */

#include "trace/pickle/pickle_walk.h"

/* Append values to a list. Returns FORMAT if it is not a list, or is sealed. */
enum dry_status dryi_object_append(struct dryi_pickle_walk *w, uint64_t list,
                                   const uint64_t *values, size_t count);
/* Fill a dict; *dict becomes its record. `pairs` holds keys and values in turn. */
enum dry_status dryi_object_fill(struct dryi_pickle_walk *w, uint64_t *dict,
                                 const uint64_t *pairs, size_t pair_count);
/* Make a tuple. A tuple of two small integers becomes a pair, which needs no object. */
enum dry_status dryi_object_make_tuple(struct dryi_pickle_walk *w, const uint64_t *values,
                                       size_t count, uint64_t *tuple);

#endif
