/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_ALTERED_H
#define DRYI_REPLAY_ALTERED_H

/*
 * What a changed program would have reserved at a recorded failure.
 *
 * The changed program makes the recorded requests, the one that failed last. Requests that failed
 * earlier are left out: the program went on without them.
 */

#include <drystone/replay.h>

/* A block and an event before which the program lets go of it. Both events are indices within the
   device. */
struct dryi_early_free {
    uint32_t alloc_event, free_event;
};

struct dryi_alteration {
    uint32_t oom_event;    /* the failure, an index within the device */
    uint64_t device_bytes; /* the device has so many */
    /* Both events ascend from one to the next. */
    const struct dryi_early_free *frees;
    size_t free_count;
    /* Before the last request, all blocks of other pools and streams move to its own, and what they
       leave behind goes back to the driver. */
    bool gathers;
    bool ignores_streams; /* a free waits for no other stream */
};

/*
 * Run the changed program under the recorded settings, from an empty device. The result is *need:
 * if it runs, the bytes that are reserved with the last request, without the cache. Otherwise they
 * are the most that it reserves where nothing is scarce. 0: it fails even there, or no request failed
 * at the event. Errors: CANCELLED, MEMORY.
 */
DRY_CHECK_RESULT enum dry_status dryi_replay_find_need(
    struct dry_replay *replay, const struct dryi_alteration *alteration, uint64_t *need,
    struct dry_error *err);

#endif
