/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_OFFLINE_H
#define DRYI_PLACE_OFFLINE_H

/*
 * Offline packing, with all lifetimes known: dynamic storage allocation.
 *
 * The floor is the peak of live bytes; no packing is lower. The result is the best of several
 * greedy orders (size, area, lifetime, conflicts, begin; first and best fit). With `effort`, a
 * search then improves it and may prove that no lower packing exists. The problem is NP-complete
 * (Garey and Johnson, SR2), so the result reports its gap to the floor.
 *
 * A life that ends at its begin is never alive: it overlaps no life, and does not count in the
 * height.
 *
 * Ownership  The caller owns all arrays.
 * Errors     ARGUMENT: end < begin, a size of 0, sums beyond 2^62. MEMORY.
 * Threads    Any; no shared state.
 * Cost       O(n log n + overlaps visited) per greedy order; `effort` bounds the rest.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

struct dryi_life {
    uint64_t begin, end; /* alive in [begin, end), in any unit of time */
    uint64_t size;       /* bytes */
};

#define DRYI_OFFLINE_ANYWHERE UINT64_MAX

struct dryi_packing_options {
    const struct dry_memory *memory;
    uint64_t alignment; /* bytes, of offsets; a power of two; 0: 512 */
    /*
     * Visits to lives by the search, about 10^8 per second; 0: greedy orders only. Equal effort
     * gives an equal packing on all machines.
     */
    uint64_t effort;
    /*
     * Offsets that are given: multiples of the alignment, or DRYI_OFFLINE_ANYWHERE. NULL: none. The
     * caller ensures that fixed lives do not overlap. With `fixed`, only greedy orders are tried.
     */
    const uint64_t *fixed;
    uint64_t target; /* bytes; stop once the height is at most this; 0: the floor */
    /* Called between runs of the search; true ends it early. */
    bool (*progress)(void *self, double done);
    void *progress_self;
};

struct dryi_packing {
    uint64_t height;    /* bytes; highest end of a block */
    uint64_t floor;     /* bytes; peak of live bytes, sizes rounded to the alignment */
    bool is_optimal;    /* height == floor, or proved by exhaustive search */
    const char *method; /* a static string, such as "greedy by size" or "exact search" */
};

/* Pack the lives: offsets[i] is the offset of life i, in bytes. On failure no output is written. */
DRY_CHECK_RESULT enum dry_status dryi_offline_pack(
    const struct dryi_life *lives, size_t count,
    const struct dryi_packing_options *options, uint64_t *offsets,
    struct dryi_packing *packing, struct dry_error *err);

/* Compute only the peak of live bytes, and the first moment at which it is reached. */
DRY_CHECK_RESULT enum dry_status dryi_offline_floor(const struct dryi_life *lives,
                                                    size_t count, uint64_t alignment,
                                                    const struct dry_memory *memory,
                                                    uint64_t *floor, uint64_t *moment);

#endif
