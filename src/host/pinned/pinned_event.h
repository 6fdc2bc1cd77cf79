/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_EVENT_H
#define DRYI_HOST_PINNED_EVENT_H

/* Blocks used by streams and graphs; see pinned_event.c. */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

#include "host/pinned/pinned_state.h"

void dryi_pinned_streams_init(struct dry_pinned *p);
void dryi_pinned_streams_finish(struct dry_pinned *p, bool is_child);
/* Record a use of a block in use. This and all functions below require the lock. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_use_add(struct dry_pinned *p, uint32_t block,
                                                     uint64_t handle, bool is_graph);
/* Free a block that has uses: it becomes pending, or free if all have ended. Allocates no
   memory. */
void dryi_pinned_use_free(struct dry_pinned *p, uint32_t block);
/* Record the events of full batches, or of all non-empty ones if `all`. Releases the lock
   during driver calls and takes it again. Requires that no thread cache is held. */
void dryi_pinned_events_record(struct dry_pinned *p, bool all);
/* Query at most `budget` events, and free blocks whose events have passed. Returns true
   if no further event has passed. */
bool dryi_pinned_events_poll(struct dry_pinned *p, uint32_t budget);
/* End a stream's uses of freed blocks, because its work is done. If an event of the
   stream is being recorded, wait for that without the lock. */
void dryi_pinned_stream_over(struct dry_pinned *p, uint64_t handle);
/* End a graph's uses of freed blocks now, and of other blocks when they are freed. */
void dryi_pinned_graph_over(struct dry_pinned *p, uint64_t handle);

#endif
