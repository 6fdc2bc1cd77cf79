/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_EVENT_H
#define DRYI_PLACE_PAGED_EVENT_H

/*
 * Streams, epochs and events: how far the device is.
 *
 * An event ends an epoch of its stream. The event and what was freed up to then are complete
 * together. While a stream is captured, no event on it is recorded or asked about.
 */

#include "place/paged/record/paged_state.h"

bool dryi_paged_is_captured(const struct dryi_paged *p, uint32_t stream);
/* Is every use of this free block complete, as far as events were looked at? */
bool dryi_paged_is_complete(const struct dryi_paged *p, const struct block *b);
/* May the stream of `list` take this free block at once, without a word to the device? */
bool dryi_paged_is_usable(const struct dryi_paged *p, uint32_t list,
                          const struct block *b);

/* Make a record for an event of the stream, or for a block's use by it; NONE: no memory. */
uint32_t dryi_paged_use_make(struct dryi_paged *p, uint32_t stream);
/* Give back a record that is in no queue. */
void dryi_paged_use_drop(struct dryi_paged *p, uint32_t use);
/* Queue a use whose event was just recorded. The event ends the epoch of its stream. */
void dryi_paged_use_queue(struct dryi_paged *p, uint32_t use);
/* Have the device record an event behind everything on the stream so far. */
enum dry_status dryi_paged_event_record(struct dryi_paged *p, uint32_t stream,
                                        uint64_t *event);

/* Record an event of the stream and queue it. UNSUPPORTED: the stream is captured. */
enum dry_status dryi_paged_mark(struct dryi_paged *p, uint32_t stream);
/* Mark each stream that freed something since its last mark. Returns the first failure. */
enum dry_status dryi_paged_mark_all(struct dryi_paged *p);
/* Ask the device how far the stream is. */
void dryi_paged_observe(struct dryi_paged *p, uint32_t stream);
/* Wait until `epoch` of the stream, which has an event, is complete. SYSTEM: it may not be. */
enum dry_status dryi_paged_wait(struct dryi_paged *p, uint32_t stream, uint64_t epoch);
/*
 * Wait for the oldest event of a stream that is not captured. *skipped: NONE at first, then what
 * the last call of the same loop left there. False: no event is under way, or the device refuses.
 */
bool dryi_paged_wait_oldest(struct dryi_paged *p, uint32_t *skipped);
/* Ask up to `count` streams, in turns, about up to `most` of their events each. */
DRYI_NOINLINE void dryi_paged_process(struct dryi_paged *p, uint32_t count,
                                      uint32_t most);
/* An op of place.h. */
void dryi_paged_stream_progressed(void *self, uint64_t stream);

#endif
