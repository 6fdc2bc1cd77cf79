/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_STREAM_H
#define DRYI_POOL_STREAM_H

/*
 * Streams by number. A driver may reuse a destroyed stream's handle for another stream; the place
 * needs numbers that are never reused (place/place.h). If the device has stream_id(), it maps a
 * handle to its current number; else the handle is the number.
 */

#include "pool/pool_state.h"

/*
 * Return the number that the place uses for a stream, and remember its handle. MEMORY: it cannot be
 * remembered.
 */
DRY_CHECK_RESULT enum dry_status dryi_pool_stream_number(struct dry_pool *pool,
                                                         uint64_t stream,
                                                         uint64_t *number);
/* Return the number of a stream that the place already knows, without remembering its handle. */
uint64_t dryi_pool_get_number(const struct dry_pool *pool, uint64_t stream);
/* Return the handle last seen for a number. */
uint64_t dryi_pool_stream_handle(const struct dry_pool *pool, uint64_t number);

#endif
