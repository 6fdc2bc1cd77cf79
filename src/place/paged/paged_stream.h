/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_STREAM_H
#define DRYI_PLACE_PAGED_STREAM_H

/* The records of streams: found, created, recycled. */

#include "place/paged/record/paged_state.h"

/* Return the record of a stream; create it on first use. NONE: out of memory. */
DRYI_NOINLINE uint32_t dryi_paged_stream_find(struct dryi_paged *p, uint64_t value);

/* Do as dryi_paged_stream_find(); the stream of the last request is found without a look-up. */
static inline uint32_t
dryi_paged_stream_index(struct dryi_paged *p, uint64_t value)
{
    if (p->last_stream < p->stream_count && p->streams[p->last_stream].value == value)
        return p->last_stream;
    return dryi_paged_stream_find(p, value);
}

/* Implement the functions of the same names in place.h. */
bool dryi_paged_has_stream(const void *self, uint64_t stream);
enum dry_status dryi_paged_stream_waits(void *self, uint64_t stream, uint64_t on);

#endif
