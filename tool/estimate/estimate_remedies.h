/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ESTIMATE_REMEDIES_H
#define TOOL_ESTIMATE_REMEDIES_H

/*
 * Changes that would make a model fit a device: one option at a time, each estimated
 * separately. Numbers of devices are the smallest sufficient ones, found by bisection.
 * Changes already in the setup, or without any saving, are omitted.
 */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/estimate.h>

#define REMEDIES_MAX 12

struct remedy {
    char text[80];
    uint64_t device_bytes; /* needed per device */
    uint64_t devices;      /* devices needed in all */
    bool fits;
};

struct remedies {
    struct remedy all[REMEDIES_MAX];
    size_t count;
};

/* The device's bytes, and the largest batch and number of requests that fit; 0: none. */
struct remedies_limits {
    uint64_t capacity_bytes, batch, requests;
};

/* Find the changes. Requires a setup that was estimated before, so that MEMORY is the
   only error of dry_estimate_create() left. */
enum dry_status remedies_find(struct remedies *remedies, const struct dry_model *model,
                              const struct dry_run_setup *setup,
                              const struct remedies_limits *limits,
                              struct dry_error *err);

#endif
