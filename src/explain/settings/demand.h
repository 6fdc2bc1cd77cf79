/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_DEMAND_H
#define DRYI_EXPLAIN_DEMAND_H

/*
 * The demand of a program, independent of its allocator: the peak of live bytes, a lower bound for
 * all settings, and the distribution of request sizes, from which settings are derived.
 *
 * Takes one pass over the program, in constant memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "replay/program.h"

/* Size classes: 2^4 = 16 per octave. */
#define DRYI_SIZE_CLASSES_LOG2 4u
#define DRYI_SIZE_CLASS_COUNT (64u << DRYI_SIZE_CLASSES_LOG2)

struct dryi_size_class {
    uint64_t count, min, max; /* rounded sizes: their number, smallest, largest */
    uint64_t bytes;           /* sum of requested bytes; saturates */
};

struct dryi_demand {
    uint64_t floor_bytes; /* peak of live bytes, in blocks of 512 bytes; saturates */
    uint32_t floor_event; /* the peak's event, index within the device; NO_EVENT:
                             before the first event */
    uint64_t oom_live_bytes, oom_request_bytes; /* bytes at the first recorded OOM */
    struct dryi_size_class classes[DRYI_SIZE_CLASS_COUNT];
};

void dryi_demand_measure(struct dryi_demand *demand, const struct dryi_program *program);

/*
 * Write up to `capacity` split sizes in MiB, at least `least`, most promising first: just below and
 * just above the classes with the most bytes, then powers of two. Returns their number; 0 if no
 * request is that large.
 */
size_t dryi_demand_split_sizes(const struct dryi_demand *demand, uint32_t least,
                               uint32_t *mib, size_t capacity);

/* Set roundup_power2_divisions by interval: `divisions` where requests have at least `variety_min`
   different sizes, else 0. Returns false if that is no interval or every one. */
bool dryi_demand_roundup(const struct dryi_demand *demand, uint8_t divisions,
                         unsigned variety_min, uint8_t by_interval[16]);

#endif
