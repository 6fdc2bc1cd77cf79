/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_PUT_H
#define DRYI_LIVE_PUT_H

#include "live/live_state.h"

/* Begin and end writing a source of the page. In between the sequence number is odd, and readers
   try again. Requires the mutex. */
struct dry_live_source *dryi_live_begin(struct dry_live *live, uint32_t number);
void dryi_live_end(struct dry_live *live, uint32_t number);

/* Copy a text, truncated to `capacity` bytes, and fill the rest with zeroes. NULL counts as "". */
void dryi_live_copy_text(char *to, size_t capacity, const char *from);

/* Write a source's figures, and its detail if the last walk is long enough
   ago. Requires the mutex. */
void dryi_live_update_source(struct dry_live *live, uint32_t number);

#endif
