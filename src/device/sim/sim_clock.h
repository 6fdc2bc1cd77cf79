/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIM_CLOCK_H
#define DRYI_SIM_CLOCK_H

/*
 * A vector clock: for each stream, the tick up to which its work happened before.
 *
 * It is sparse: marks are sorted by stream, and a missing mark means tick 0. It has only
 * the order between streams. Work that the program knows to be done is in struct
 * dryi_sim_stream (`known`). Marks covered by `known` are dropped before a clock is
 * passed on, so that clocks stay short with any number of streams.
 *
 * Errors  Functions that answer false had no memory and changed nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

struct dryi_sim_mark {
    uint64_t tick;
    uint32_t stream;
};

struct dryi_sim_clock {
    struct dryi_sim_mark *marks;
    size_t count, capacity;
};

void dryi_sim_clock_finish(struct dryi_sim_clock *clock, const struct dry_memory *memory);

/* Return the tick of a stream, 0 if it has no mark. */
uint64_t dryi_sim_clock_get(const struct dryi_sim_clock *clock, uint32_t stream);

/* Reserve space for `count` marks, so that later calls cannot fail. */
bool dryi_sim_clock_reserve(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                            size_t count);

/* Take the maximum of both clocks for every stream. */
bool dryi_sim_clock_join(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                         const struct dryi_sim_clock *other);
bool dryi_sim_clock_raise(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                          struct dryi_sim_mark mark);

bool dryi_sim_clock_copy(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                         const struct dryi_sim_clock *other);

#endif
