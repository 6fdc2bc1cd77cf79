/* SPDX-License-Identifier: Apache-2.0 */

/* The idea is in pickle_key.h. Source: PyTorch, torch/csrc/cuda/Module.cpp. */
#include "trace/pickle/pickle_key.h"

#include <string.h>

#include "base/fail.h"
#include "trace/pickle/pickle_walk.h"

static const char *const key_texts[DRYI_TEXT_COUNT] = {
    [DRYI_KEY_ACTION] = "action",
    [DRYI_KEY_ADDR] = "addr",
    [DRYI_KEY_SIZE] = "size",
    [DRYI_KEY_STREAM] = "stream",
    [DRYI_KEY_TIME_US] = "time_us",
    [DRYI_KEY_FRAMES] = "frames",
    [DRYI_KEY_FORWARD_FRAMES] = "forward_frames",
    [DRYI_KEY_COMPILE_CONTEXT] = "compile_context",
    [DRYI_KEY_USER_METADATA] = "user_metadata",
    [DRYI_KEY_POOL_ID] = "pool_id",
    [DRYI_KEY_DEVICE_FREE] = "device_free",
    [DRYI_KEY_NAME] = "name",
    [DRYI_KEY_FILENAME] = "filename",
    [DRYI_KEY_LINE] = "line",
    [DRYI_KEY_ADDRESS] = "address",
    [DRYI_KEY_REQUESTED_SIZE] = "requested_size",
    [DRYI_KEY_STATE] = "state",
    [DRYI_KEY_HISTORY] = "history",
    [DRYI_KEY_REAL_SIZE] = "real_size",
    [DRYI_KEY_DEVICE] = "device",
    [DRYI_KEY_TOTAL_SIZE] = "total_size",
    [DRYI_KEY_ALLOCATED_SIZE] = "allocated_size",
    [DRYI_KEY_ACTIVE_SIZE] = "active_size",
    [DRYI_KEY_SEGMENT_TYPE] = "segment_type",
    [DRYI_KEY_SEGMENT_POOL_ID] = "segment_pool_id",
    [DRYI_KEY_IS_EXPANDABLE] = "is_expandable",
    [DRYI_KEY_BLOCKS] = "blocks",
    [DRYI_KEY_STAGE] = "stage",
    [DRYI_KEY_SEGMENTS] = "segments",
    [DRYI_KEY_DEVICE_TRACES] = "device_traces",
    [DRYI_KEY_TRACES] = "traces",
    [DRYI_KEY_ALLOCATOR_SETTINGS] = "allocator_settings",
    [DRYI_KEY_EXTERNAL_ANNOTATIONS] = "external_annotations",
    [DRYI_KEY_HOST_SEGMENTS] = "host_segments",
    [DRYI_KEY_HOST_TRACES] = "host_traces",
    [DRYI_KEY_CONF] = "PYTORCH_CUDA_ALLOC_CONF",
    [DRYI_KEY_MAX_SPLIT_SIZE] = "max_split_size",
    [DRYI_KEY_GC_THRESHOLD] = "garbage_collection_threshold",
    [DRYI_KEY_EXPANDABLE_SEGMENTS] = "expandable_segments",
    [DRYI_KEY_ROUNDUP] = "roundup_power2_divisions",
    [DRYI_TEXT_LARGE] = "large",
    [DRYI_TEXT_SMALL] = "small",
    [DRYI_TEXT_INACTIVE] = "inactive",
    [DRYI_TEXT_ACTIVE] = "active_allocated",
    [DRYI_TEXT_PENDING_FREE] = "active_pending_free",
    [DRYI_TEXT_AWAITING_FREE] = "active_awaiting_free",
};

const char *
dryi_key_text(enum dryi_key key)
{
    return key_texts[key];
}

enum dry_status
dryi_keys_init(struct dryi_pickle_walk *w)
{
    struct dryi_intern *strings = &w->trace->strings;
    for (unsigned i = 0; i < DRYI_TEXT_COUNT + DRY_ACTION_OTHER; i++) {
        const char *text = i < DRYI_TEXT_COUNT
                               ? key_texts[i]
                               : dry_action_name((enum dry_action)(i - DRYI_TEXT_COUNT));
        if (dryi_intern_put(strings, text, strlen(text)) != i)
            return dryi_fail_memory(w->err, "the keys");
    }
    return DRY_OK;
}
