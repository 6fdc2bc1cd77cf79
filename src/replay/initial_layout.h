/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_INITIAL_LAYOUT_H
#define DRYI_REPLAY_INITIAL_LAYOUT_H

/*
 * The layout at the beginning of the window, rebuilt from the one at its end.
 *
 * Segments: those at the end, less what the window took from the device, plus what it
 * gave back. Blocks: the carried-over allocations of the program; everything between them
 * was free, because free neighbours are always merged. Sizes that no rule can tell are
 * inferred, and counted. A carried-over allocation of the large pool may hold up to 1 MiB
 * more than its request, if splitting that off was not worth it. If less than that is
 * left behind the allocation, it holds all of it, because a free block of the large pool
 * is larger than 1 MiB. Otherwise the first address handed out behind it tells, because
 * an allocation takes the front of a free block.
 */

#include "replay/program.h"

struct dryi_initial_layout {
    struct dry_memory memory;
    struct dryi_torch_restored *segments; /* by address; blocks point into `blocks` */
    size_t segment_count, segment_capacity;
    struct dryi_block_info *blocks;
    uint32_t *block_requests; /* parallel: the carried-over request, or DRYI_NO_BLOCK */
    size_t block_count, block_capacity, request_capacity;
    uint64_t reserved; /* bytes of the segments */
    size_t sizes_inferred;
};

/*
 * Finds the sizes of the program's carried-over allocations, too. A record that
 * contradicts itself sets program->inconsistency and gives an empty layout.
 */
DRY_CHECK_RESULT enum dry_status dryi_initial_layout_init(
    struct dryi_initial_layout *layout, struct dryi_program *program,
    const struct dryi_torch_conf *conf, struct dry_error *err);
void dryi_initial_layout_finish(struct dryi_initial_layout *layout);

/* How many segments begin at `addr` or below: the index of the first above it. */
size_t dryi_initial_layout_count_up_to(const struct dryi_initial_layout *layout,
                                       uint64_t addr);

#endif
