/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_FILL_H
#define DRYI_PICKLE_FILL_H

/*
 * Filling containers: what is put into one is sealed (W3), and a dict that is filled
 * becomes what its keys say.
 */

#include "trace/pickle/pickle_walk.h"

/* Append values to a list; FORMAT if it is none, or sealed. */
enum dry_status dryi_object_append(struct dryi_pickle_walk *w, uint64_t list,
                                   const uint64_t *values, size_t count);
/* Fill a dict; *dict becomes what it turns out to be. `pairs` is two words a pair. */
enum dry_status dryi_object_fill(struct dryi_pickle_walk *w, uint64_t *dict,
                                 const uint64_t *pairs, size_t pair_count);
/* Make a tuple; one of two small integers becomes a pair and needs no object. */
enum dry_status dryi_object_make_tuple(struct dryi_pickle_walk *w, const uint64_t *values,
                                       size_t count, uint64_t *tuple);

#endif
