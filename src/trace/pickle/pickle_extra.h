/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_EXTRA_H
#define DRYI_PICKLE_EXTRA_H

/*
 * Unknown keys, kept as opcodes so that the writer can write them back.
 *
 * Call begin, add for each pair, then end. *extra is a string id, DRY_NONE without pairs.
 * An added key is counted as unknown, unless it is a known key whose value has the wrong
 * type.
 */

#include "trace/pickle/pickle_field.h"

void dryi_extra_begin(struct dryi_pickle_walk *w);
enum dry_status dryi_extra_add(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                               uint64_t key, uint64_t value);
enum dry_status dryi_extra_end(struct dryi_pickle_walk *w, uint32_t *extra);

#endif
