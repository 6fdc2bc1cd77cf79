/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_PACKING_H
#define DRYI_REPLAY_PACKING_H

/*
 * A program as a set of lives, and where they lie when all of them are known.
 *
 * Time is the program's operations. A block lives from its alloc to the operation that
 * asks for its free. A block older than the window lives from the beginning, and not at
 * all if its free had been asked for by then. A request that failed for want of memory
 * never lived. Streams are ignored.
 */

#include "place/offline/offline.h"
#include "replay/program.h"

#define DRYI_NOWHERE UINT64_MAX

struct dryi_packed_program {
    struct dry_memory memory;
    uint64_t *offsets; /* by request; DRYI_NOWHERE: it never lived */
    size_t request_count;
    struct dryi_packing packing;
};

/*
 * LIMIT: the sizes cannot be added up. A packing that progress ends early is one all the
 * same.
 */
DRY_CHECK_RESULT enum dry_status dryi_packed_program_init(
    struct dryi_packed_program *packed, const struct dryi_program *program,
    const struct dryi_packing_options *options, struct dry_error *err);
void dryi_packed_program_finish(struct dryi_packed_program *packed);

/* The peak of the bytes of what lives, as it was asked for; 0: they cannot be added up. */
uint64_t dryi_program_live_peak(const struct dryi_program *program);

#endif
