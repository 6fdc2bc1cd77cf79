/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_DEMAND_H
#define DRYI_EXPLAIN_DEMAND_H

/*
 * The demand of a program, whatever its allocator does. It is the bytes alive at the
 * peak, below which no settings go, and how requests spread over sizes, from which
 * settings are made.
 *
 * One pass over the program; memory does not depend on it.
 */

#include <stddef.h>
#include <stdint.h>

#include "replay/program.h"

/* Sixteen classes an octave. */
#define DRYI_SIZE_CLASSES_LOG2 4u
#define DRYI_SIZE_CLASS_COUNT (64u << DRYI_SIZE_CLASSES_LOG2)

struct dryi_size_class {
    uint64_t count, min, max; /* of rounded sizes */
    uint64_t bytes;           /* asked for in all; saturates */
};

struct dryi_demand {
    uint64_t floor_bytes; /* alive at the peak, in blocks of 512 bytes; saturates */
    uint32_t floor_event; /* counted in the device; NO_EVENT: before the first */
    uint64_t oom_live_bytes, oom_request_bytes; /* at the first recorded OOM */
    struct dryi_size_class classes[DRYI_SIZE_CLASS_COUNT];
};

void dryi_demand_measure(struct dryi_demand *demand, const struct dryi_program *program);

/*
 * Write split sizes in MiB, most promising first, from `least` on. They lie just below
 * and just above the classes that move the most bytes; powers of two among the sizes
 * asked for follow. Returns how many, at most `capacity`; none where nothing as large is
 * asked for.
 */
size_t dryi_demand_split_sizes(const struct dryi_demand *demand, uint32_t least,
                               uint32_t *mib, size_t capacity);

/*
 * Divisions by interval, as roundup_power2_divisions has them: `divisions` where requests
 * have `variety_min` sizes or more, 0 elsewhere. False: nowhere, or everywhere.
 */
bool dryi_demand_roundup(const struct dryi_demand *demand, uint8_t divisions,
                         unsigned variety_min, uint8_t by_interval[16]);

#endif
