/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_STRAIGHT_H
#define DRYI_PICKLE_STRAIGHT_H

/*
 * Events that are read straight from their bytes.
 *
 * Nearly all dicts of a snapshot are events written alike: EMPTY_DICT, MARK, keys fetched
 * from the memo, each with a number, a text or a list of frames, SETITEMS. Such a plain
 * event needs no stack and no object. Any other dict is left to the general walk, which
 * starts again at its first byte.
 *
 * E1  Until the whole event is known to be plain, every change is one that the general
 *     walk makes, too: strings and stacks are interned in the order of their bytes.
 * E2  A plain event leaves the memo, the stack and the columns as the general walk does.
 */

#include <stdbool.h>

#include "trace/pickle/pickle_walk.h"

/*
 * If the EMPTY_DICT at in->at begins a plain event that is complete in the window: append
 * the event, push its value, and advance past SETITEMS. If *taken is false, it must be
 * walked.
 */
enum dry_status dryi_straight_take(struct dryi_pickle_walk *w, bool *taken);

#endif
