/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_KEY_H
#define DRYI_PICKLE_KEY_H

/*
 * The keys of a snapshot. They are interned first, in a fixed order. So a key is a small
 * number, and a set of keys fits the bits of a 64-bit integer.
 */

#include <drystone/status.h>

#include "trace/pickle/pickle_value.h"

struct dryi_pickle_walk;

/* Known keys: the first strings of a trace read from a pickle, in this order. */
enum dryi_key {
    DRYI_KEY_ACTION,
    DRYI_KEY_ADDR,
    DRYI_KEY_SIZE,
    DRYI_KEY_STREAM,
    DRYI_KEY_TIME_US,
    DRYI_KEY_FRAMES,
    DRYI_KEY_FORWARD_FRAMES,
    DRYI_KEY_COMPILE_CONTEXT,
    DRYI_KEY_USER_METADATA,
    DRYI_KEY_POOL_ID,
    DRYI_KEY_DEVICE_FREE,
    DRYI_KEY_NAME,
    DRYI_KEY_FILENAME,
    DRYI_KEY_LINE,
    DRYI_KEY_ADDRESS,
    DRYI_KEY_REQUESTED_SIZE,
    DRYI_KEY_STATE,
    DRYI_KEY_HISTORY,
    DRYI_KEY_REAL_SIZE,
    DRYI_KEY_DEVICE,
    DRYI_KEY_TOTAL_SIZE,
    DRYI_KEY_ALLOCATED_SIZE,
    DRYI_KEY_ACTIVE_SIZE,
    DRYI_KEY_SEGMENT_TYPE,
    DRYI_KEY_SEGMENT_POOL_ID,
    DRYI_KEY_IS_EXPANDABLE,
    DRYI_KEY_BLOCKS,
    DRYI_KEY_STAGE,
    DRYI_KEY_SEGMENTS,
    DRYI_KEY_DEVICE_TRACES,
    DRYI_KEY_TRACES,
    DRYI_KEY_ALLOCATOR_SETTINGS,
    DRYI_KEY_EXTERNAL_ANNOTATIONS,
    DRYI_KEY_HOST_SEGMENTS,
    DRYI_KEY_HOST_TRACES,
    DRYI_KEY_CONF,
    DRYI_KEY_MAX_SPLIT_SIZE,
    DRYI_KEY_GC_THRESHOLD,
    DRYI_KEY_EXPANDABLE_SEGMENTS,
    DRYI_KEY_ROUNDUP,
    DRYI_KEY_COUNT,
    /* Values that are compared. */
    DRYI_TEXT_LARGE = DRYI_KEY_COUNT,
    DRYI_TEXT_SMALL,
    DRYI_TEXT_INACTIVE,
    DRYI_TEXT_ACTIVE,
    DRYI_TEXT_PENDING_FREE,
    DRYI_TEXT_AWAITING_FREE,
    DRYI_TEXT_COUNT, /* the names of the actions follow, in their order */
};

/* Put the known strings into the string table, which must be empty. */
enum dry_status dryi_keys_init(struct dryi_pickle_walk *w);

const char *dryi_key_text(enum dryi_key key);

/* Return the key that a value names, DRYI_KEY_COUNT for any other value. */
static inline enum dryi_key
dryi_value_key(uint64_t value)
{
    uint64_t id = dryi_value_payload(value);
    if (!dryi_value_is(value, DRYI_VALUE_STRING) || id >= DRYI_KEY_COUNT)
        return DRYI_KEY_COUNT;
    return (enum dryi_key)id;
}

#endif
