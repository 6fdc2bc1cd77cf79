/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_STACKS_H
#define TOOL_EXPORT_STACKS_H

/* The bytes alive at the moment of a device, summed up by stack. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct export_job;

enum export_root {
    EXPORT_ROOT_NONE,    /* the stack that asked for it */
    EXPORT_ROOT_OF_FREE, /* only the stack that gave it back is known */
    EXPORT_ROOT_CARRIED, /* no stack: older than the recording */
    EXPORT_ROOT_NO_STACK,
};

struct export_sum {
    uint32_t stack; /* DRY_NONE */
    enum export_root root;
    uint64_t bytes, count;
};

struct export_sums {
    struct export_sum *sums; /* the largest first */
    size_t count;
    uint64_t total;
};

/* Blocks in use or pending, rounded. False: no memory. */
bool export_sums_collect(struct export_sums *sums, const struct export_job *job,
                         size_t device);
void export_sums_finish(struct export_sums *sums);

/*
 * Return the name that stands in place of, or outside of, the stack; NULL for
 * EXPORT_ROOT_NONE.
 */
const char *export_sum_root(const struct export_sum *sum);

#endif
