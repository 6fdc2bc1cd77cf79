/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_OFFLINE_H
#define DRYI_PLACE_OFFLINE_H

/*
 * Packing when every lifetime is known: dynamic storage allocation.
 *
 * The floor is the peak of live bytes: no placement is lower. The packing is the best of
 * several greedy orders (size, area, lifetime, conflicts, begin; first and best fit). Within an
 * effort a search improves it, and may also prove that nothing is lower. The problem is
 * NP-complete (Garey and Johnson, SR2), so the gap to the floor is part of the answer.
 *
 * A life whose begin is its end is never alive: it overlaps nothing, and no height counts it.
 *
 * Ownership  The caller's arrays.
 * Errors     ARGUMENT: end < begin, a size of 0 or sums beyond 2^62. MEMORY.
 * Threads    Any; no state.
 * Cost       O(n log n + overlaps looked at) a greedy order; `effort` bounds the rest.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

struct dryi_life {
    uint64_t begin, end; /* alive in [begin, end), any unit of time */
    uint64_t size;       /* bytes */
};

#define DRYI_OFFLINE_ANYWHERE UINT64_MAX

struct dryi_packing_options {
    const struct dry_memory *memory;
    uint64_t alignment; /* of offsets, a power of two; default 512 when 0 */
    /*
     * Looks at lives by the search; 0: the greedy orders alone. About 10^8 a second. The same
     * effort gives the same packing everywhere.
     */
    uint64_t effort;
    /*
     * The offset that each life has already, a multiple of the alignment, or
     * DRYI_OFFLINE_ANYWHERE; NULL: none has one. The caller sees to it that they do not
     * overlap. With any of them the greedy orders are all that is tried.
     */
    const uint64_t *fixed;
    uint64_t target; /* good enough: stop when the height is no more; 0: the floor */
    bool (*progress)(void *self, double done); /* true ends the search early */
    void *progress_self;
};

struct dryi_packing {
    uint64_t height;    /* of the packing: highest end of a block */
    uint64_t floor;     /* peak of live bytes, sizes rounded to the alignment */
    bool is_optimal;    /* height == floor, or proved by exhaustion */
    const char *method; /* "greedy by size", "exact search" ... */
};

/* offsets[i] of life i. On failure nothing is written. */
DRY_CHECK_RESULT enum dry_status dryi_offline_pack(
    const struct dryi_life *lives, size_t count,
    const struct dryi_packing_options *options, uint64_t *offsets,
    struct dryi_packing *packing, struct dry_error *err);

/* The peak of live bytes alone, and the first moment it is reached. */
DRY_CHECK_RESULT enum dry_status dryi_offline_floor(const struct dryi_life *lives,
                                                    size_t count, uint64_t alignment,
                                                    const struct dry_memory *memory,
                                                    uint64_t *floor, uint64_t *moment);

#endif
