/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_PACKING_H
#define DRYI_REPLAY_PACKING_H

/*
 * A program as a set of lives, and their best placement if all lives are known in advance.
 *
 * Time counts the program's operations. A block lives from its alloc to the operation that requests
 * its free. A block from before the window lives from the start, unless its free was already
 * requested. A request that ran out of memory has no life. Streams are ignored.
 */

#include "place/offline/offline.h"
#include "replay/program.h"

#define DRYI_NOWHERE UINT64_MAX

struct dryi_packed_program {
    struct dry_memory memory;
    uint64_t *offsets; /* one per request; DRYI_NOWHERE: it had no life */
    size_t request_count;
    struct dryi_packing packing;
};

/* Pack a program. If `progress` stops the search early, the result is still a valid packing.
   Errors: LIMIT (the sum of sizes overflows). */
DRY_CHECK_RESULT enum dry_status dryi_packed_program_init(
    struct dryi_packed_program *packed, const struct dryi_program *program,
    const struct dryi_packing_options *options, struct dry_error *err);
void dryi_packed_program_finish(struct dryi_packed_program *packed);

/* Return the peak of requested bytes alive; 0: the sum overflows. */
uint64_t dryi_program_live_peak(const struct dryi_program *program);

#endif
