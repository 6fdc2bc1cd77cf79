/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_PUT_H
#define DRYI_LIVE_PUT_H

#include "live/live_state.h"

/*
 * Begin to write a source of the page, and end. Between, readers find the sequence odd and try
 * again. Requires the mutex.
 */
struct dry_live_source *dryi_live_begin(struct dry_live *live, uint32_t number);
void dryi_live_end(struct dry_live *live, uint32_t number);

/* Copy a text, cut to the room; zeroes follow it. NULL is "". */
void dryi_live_copy_text(char *to, size_t room, const char *from);

/* Write the figures of one source, and its detail if that is due. Requires the mutex. */
void dryi_live_update_source(struct dry_live *live, uint32_t number);

#endif
