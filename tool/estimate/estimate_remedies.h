/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ESTIMATE_REMEDIES_H
#define TOOL_ESTIMATE_REMEDIES_H

/*
 * What would make a model fit a device that it does not fit: changes of the run, one at a
 * time, each estimated anew. The number of devices is the least that suffices, found by
 * halving. A change that is there already, or that saves nothing, is left out.
 */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/estimate.h>

#define REMEDIES_MAX 12

struct remedy {
    char text[80];
    uint64_t device_bytes; /* of one device */
    uint64_t devices;      /* that it takes, in all */
    bool fits;
};

struct remedies {
    struct remedy all[REMEDIES_MAX];
    size_t count;
};

/* The device, and the largest batch and number of requests that fit on it, or 0. */
struct remedies_room {
    uint64_t capacity_bytes, batch, requests;
};

/*
 * Find them for a device. Errors are those of dry_estimate_create(), of a setup that was estimated before: MEMORY.
 */
enum dry_status remedies_find(struct remedies *remedies, const struct dry_model *model,
                              const struct dry_run_setup *setup,
                              const struct remedies_room *room, struct dry_error *err);

#endif
