/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The role of a dict, told by its keys.
 *
 * PyTorch writes no types, only keys. Each kind of record has one or two keys that no
 * other kind has. The keys of a dict are a set of bits, so finding the role costs O(keys)
 * and a few masks.
 */

#include "trace/pickle/pickle_key.h"
#include "trace/pickle/pickle_record.h"

static uint64_t
bit(enum dryi_key key)
{
    return UINT64_C(1) << key;
}

static bool
has_all(uint64_t keys, uint64_t wanted)
{
    return (keys & wanted) == wanted;
}

enum dry_status
dryi_roles_take(struct dryi_pickle_walk *w, const uint64_t *pairs, size_t pair_count,
                uint64_t *value)
{
    uint64_t keys = 0;
    for (size_t i = 0; i < pair_count; i++)
        keys |= bit(dryi_value_key(pairs[2 * i]));
    if (keys & bit(DRYI_KEY_ACTION))
        return dryi_event_take(w, pairs, pair_count, value);
    if (keys & bit(DRYI_KEY_FILENAME) && keys & (bit(DRYI_KEY_LINE) | bit(DRYI_KEY_NAME)))
        return dryi_frame_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_STATE) | bit(DRYI_KEY_SIZE)))
        return dryi_block_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_BLOCKS) | bit(DRYI_KEY_TOTAL_SIZE)))
        return dryi_segment_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_STAGE) | bit(DRYI_KEY_NAME)))
        return dryi_annotation_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_ADDR) | bit(DRYI_KEY_REAL_SIZE)))
        return dryi_history_take(w, pairs, pair_count, value);
    *value = DRYI_VALUE_NONE;
    return DRY_OK;
}
