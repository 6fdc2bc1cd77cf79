/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_ROLES_H
#define DRYI_PICKLE_ROLES_H

/*
 * The role of a dict: which record it is, known by its keys.
 */

#include "trace/pickle/pickle_walk.h"

/*
 * Take the dict of `pairs` (two words a pair) as the record that its keys say it is; *value
 * becomes that record, or DRYI_VALUE_NONE if they say nothing we know.
 */
enum dry_status dryi_roles_take(struct dryi_walk *w, const uint64_t *pairs,
                                size_t pair_count, uint64_t *value);

#endif
