/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_EVENT_H
#define DRYI_PLACE_PAGED_EVENT_H

/*
 * Streams, epochs and events: how far each stream has progressed on the device.
 *
 * An event ends an epoch of its stream. When the event is complete, so are all frees up to that
 * epoch. While a stream is captured, no event on the stream is recorded or queried.
 */

#include "place/paged/record/paged_state.h"

bool dryi_paged_is_captured(const struct dryi_paged *p, uint32_t stream);
/* Are all uses of this free block known to be complete, as of the last event query? */
bool dryi_paged_is_complete(const struct dryi_paged *p, const struct block *b);
/* May the stream of `list` take this free block now, without a device call? */
bool dryi_paged_is_usable(const struct dryi_paged *p, uint32_t list,
                          const struct block *b);

/* Make a record for an event of the stream or for its use of a block; NONE: out of memory. */
uint32_t dryi_paged_use_make(struct dryi_paged *p, uint32_t stream);
/* Release a record that is in no queue. */
void dryi_paged_use_drop(struct dryi_paged *p, uint32_t use);
/* Queue a use whose event was just recorded. The event ends the stream's epoch. */
void dryi_paged_use_queue(struct dryi_paged *p, uint32_t use);
/* Record an event after all work submitted to the stream so far. The caller owns *event. */
enum dry_status dryi_paged_event_record(struct dryi_paged *p, uint32_t stream,
                                        uint64_t *event);

/* Record an event of the stream and queue it. UNSUPPORTED: the stream is captured. */
enum dry_status dryi_paged_mark(struct dryi_paged *p, uint32_t stream);
/* Mark each stream that freed blocks since its last mark. Returns the first failure. */
enum dry_status dryi_paged_mark_all(struct dryi_paged *p);
/* Query the pending events of the stream, and finish those that are complete. */
void dryi_paged_observe(struct dryi_paged *p, uint32_t stream);
/*
 * Wait until `epoch` of the stream is complete. Requires that the epoch has an event. SYSTEM: the
 * device refused to wait, and the epoch may be incomplete.
 */
enum dry_status dryi_paged_wait(struct dryi_paged *p, uint32_t stream, uint64_t epoch);
/*
 * Wait for the oldest event of a stream that is not captured. *skipped begins as NONE and carries
 * the position between calls of one loop. False: no event is pending, or the wait failed.
 */
bool dryi_paged_wait_oldest(struct dryi_paged *p, uint32_t *skipped);
/* Query up to `most` events each of up to `count` streams, in turns. */
DRYI_NOINLINE void dryi_paged_process(struct dryi_paged *p, uint32_t count,
                                      uint32_t most);
/* Implements stream_progressed of place.h. */
void dryi_paged_stream_progressed(void *self, uint64_t stream);

#endif
