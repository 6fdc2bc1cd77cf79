/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_STREAM_H
#define DRYI_POOL_STREAM_H

/*
 * Streams by number. A program's stream is a handle, which a driver may give to another stream
 * later; the place knows numbers, which do not come again (place/place.h). A device that has
 * stream_id() says which number a handle has now; else the handle is the number.
 */

#include "pool/pool_state.h"

/* Ask for the number the place is given for a stream. MEMORY if it cannot be remembered. */
DRY_CHECK_RESULT enum dry_status dryi_pool_stream_ask(struct dry_pool *pool,
                                                      uint64_t stream, uint64_t *number);
DRY_CHECK_RESULT static inline enum dry_status
dryi_pool_stream_number(struct dry_pool *pool, uint64_t stream, uint64_t *number)
{
    *number = stream;
    return pool->has_stream_ids ? dryi_pool_stream_ask(pool, stream, number) : DRY_OK;
}
/* Tell the number alone, of a stream that the place was given before. */
static inline uint64_t
dryi_pool_number_of(const struct dry_pool *pool, uint64_t stream)
{
    return pool->has_stream_ids ? pool->device.ops->stream_id(pool->device.self, stream)
                                : stream;
}
/* Tell the last handle seen of a number. */
uint64_t dryi_pool_stream_handle(const struct dry_pool *pool, uint64_t number);

#endif
