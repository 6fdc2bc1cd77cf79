/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIM_CLOCK_H
#define DRYI_SIM_CLOCK_H

/*
 * A clock says what happened before: for each stream, up to which of its ticks.
 *
 * It is a vector clock, sparse: marks in the order of their streams, and no mark where the
 * answer is "nothing". Only the order between streams is here. Work that the program itself
 * knows to be over stands in struct dryi_sim_stream (`known`). Marks covered by that are
 * dropped before a clock is handed on, so that clocks stay short however many streams there
 * are.
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

/* The tick of a stream, 0 if there is no mark. */
uint64_t dryi_sim_clock_get(const struct dryi_sim_clock *clock, uint32_t stream);

/* Room for so many marks, so that what follows cannot fail. */
bool dryi_sim_clock_reserve(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                            size_t count);

/* The later of both, for every stream. */
bool dryi_sim_clock_join(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                         const struct dryi_sim_clock *other);
bool dryi_sim_clock_raise(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                          struct dryi_sim_mark mark);

bool dryi_sim_clock_copy(struct dryi_sim_clock *clock, const struct dry_memory *memory,
                         const struct dryi_sim_clock *other);

#endif
