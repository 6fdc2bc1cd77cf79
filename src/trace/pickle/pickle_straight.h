/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_STRAIGHT_H
#define DRYI_PICKLE_STRAIGHT_H

/*
 * Events that are read straight from their bytes.
 *
 * Nearly all dicts of a snapshot are events, written alike: EMPTY_DICT, MARK, keys fetched
 * from the memo, each with a number, a text or a list of frames, SETITEMS. Such an event
 * needs no stack, no object and no second look at its keys. Whatever else a dict may hold
 * is left to the general walk, which begins at its first byte again.
 *
 * E1  Until the whole event is known to be plain, nothing changes that the general walk
 *     would not change alike: strings and stacks are interned in the order of their bytes.
 * E2  A plain event leaves the memo, the stack and the columns as the general walk does.
 */

#include <stdbool.h>

#include "trace/pickle/pickle_walk.h"

/*
 * If the EMPTY_DICT at in->at begins a plain event that lies whole in the window, append the
 * event, push it, and step behind its SETITEMS. *taken false: it is to be walked.
 */
enum dry_status dryi_straight_take(struct dryi_pickle_walk *w, bool *taken);

#endif
