/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_EVENT_H
#define DRYI_HOST_PINNED_EVENT_H

/* Blocks that streams and graphs use; the idea stands in pinned_event.c. */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

#include "host/pinned/pinned_state.h"

void dryi_pinned_streams_init(struct dry_pinned *p);
void dryi_pinned_streams_finish(struct dry_pinned *p, bool is_child);
/* One use more of a block that is used. Lock held, as below. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_use_add(struct dry_pinned *p, uint32_t block,
                                                     uint64_t handle, bool is_graph);
/* A used block with uses is freed: it waits, or is free at once. Takes no memory. */
void dryi_pinned_use_free(struct dry_pinned *p, uint32_t block);
/*
 * Record the events of batches that are full; all: of all that are not empty. Gives the lock
 * while the driver is asked, and takes it again; no slot may be held.
 */
void dryi_pinned_events_record(struct dry_pinned *p, bool all);
/* Ask `budget` events at most, and free what has passed; true: no more has. */
bool dryi_pinned_events_poll(struct dry_pinned *p, uint32_t budget);
/* Waits for an event of the stream that is just being recorded, without the lock. */
void dryi_pinned_stream_over(struct dry_pinned *p, uint64_t handle);
void dryi_pinned_graph_over(struct dry_pinned *p, uint64_t handle);

#endif
