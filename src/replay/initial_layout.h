/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_INITIAL_LAYOUT_H
#define DRYI_REPLAY_INITIAL_LAYOUT_H

/*
 * The layout at the beginning of the window, rebuilt from the one at its end.
 *
 * Segments: those at the end, without those that the window allocated, plus those that it freed.
 * Blocks: the program's carried-over allocations. All memory between them was free, because free
 * neighbours are always merged. Block sizes that no rule determines are inferred, and counted.
 *
 * PyTorch may leave a block of the large pool up to 1 MiB larger than its request, if the remainder
 * is not worth splitting off. If the gap after an allocation is smaller than that, it belongs to
 * the block: a free block of the large pool is larger than 1 MiB. Otherwise the first address
 * allocated after the block shows its end, because PyTorch serves from the front of a free block.
 */

#include "replay/program.h"

struct dryi_initial_layout {
    struct dry_memory memory;
    struct dryi_torch_restored *segments; /* sorted by address; point into `blocks` */
    size_t segment_count, segment_capacity;
    struct dryi_block_info *blocks;
    uint32_t *block_requests; /* parallel to `blocks`: the carried-over
                                 request, DRYI_NO_BLOCK if free */
    size_t block_count, block_capacity, request_capacity;
    uint64_t reserved; /* total bytes of the segments */
    size_t sizes_inferred;
};

/* Build the layout, and set the block sizes of the program's carried-over allocations. If the
   record contradicts itself, set program->inconsistency and return an empty layout. */
DRY_CHECK_RESULT enum dry_status dryi_initial_layout_init(
    struct dryi_initial_layout *layout, struct dryi_program *program,
    const struct dryi_torch_conf *conf, struct dry_error *err);
void dryi_initial_layout_finish(struct dryi_initial_layout *layout);

/* Return the number of segments that begin at or below `addr`: the index of the first above it. */
size_t dryi_initial_layout_count_up_to(const struct dryi_initial_layout *layout,
                                       uint64_t addr);

#endif
