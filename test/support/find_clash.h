/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FIND_CLASH_H
#define TEST_FIND_CLASH_H

/* Is a packing sound? Tests and benchmarks ask, and for as many lives as any packing has. */

#include "place/offline/offline.h"

/* Two lives that overlap in time and in space. */
struct clash {
    bool is_found;
    size_t first, second;
};

/* Look for a clash. O(n log n). Ends the program if there is no memory. */
struct clash find_clash(const struct dryi_life *lives, size_t count,
                        const uint64_t *offsets);

#endif
