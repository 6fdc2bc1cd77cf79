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
/* Add a use of a used block. Requires the lock, as all below. */
DRY_CHECK_RESULT enum dry_status dryi_pinned_use_add(struct dry_pinned *p, uint32_t block,
                                                     uint64_t handle, bool is_graph);
/* Free a used block with uses: it waits, or is free at once. Takes no memory. */
void dryi_pinned_use_free(struct dry_pinned *p, uint32_t block);
/*
 * Record the events of batches that are full; all: of all that are not empty. Gives the lock
 * while the driver is asked, and takes it again. Requires that no thread cache is held.
 */
void dryi_pinned_events_record(struct dry_pinned *p, bool all);
/* Ask `budget` events at most, and free what has passed; true: no more has. */
bool dryi_pinned_events_poll(struct dry_pinned *p, uint32_t budget);
/*
 * The work of a stream is over: end its uses of blocks that are freed. An event of it that is
 * just being recorded is waited for, without the lock.
 */
void dryi_pinned_stream_over(struct dry_pinned *p, uint64_t handle);
/* A graph is gone: end its uses of freed blocks now, of other blocks when they are freed. */
void dryi_pinned_graph_over(struct dry_pinned *p, uint64_t handle);

#endif
