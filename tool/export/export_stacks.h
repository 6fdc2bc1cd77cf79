/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_STACKS_H
#define TOOL_EXPORT_STACKS_H

/* The bytes alive at the moment of a device, summed by stack. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct export_job;

enum export_root {
    EXPORT_ROOT_NONE,    /* `stack` allocated the bytes */
    EXPORT_ROOT_OF_FREE, /* `stack` freed them; the allocating one is unknown */
    EXPORT_ROOT_CARRIED, /* allocated before the recording; no stack */
    EXPORT_ROOT_NO_STACK,
};

struct export_sum {
    uint32_t stack; /* or DRY_NONE */
    enum export_root root;
    uint64_t bytes, count;
};

struct export_sums {
    struct export_sum *sums; /* sorted by bytes, largest first */
    size_t count;
    uint64_t total;
};

/* Sum the blocks that are in use or pending, rounded. False: memory ran out. */
bool export_sums_collect(struct export_sums *sums, const struct export_job *job,
                         size_t device);
void export_sums_finish(struct export_sums *sums);

/* Return the name that replaces or precedes the stack; NULL for EXPORT_ROOT_NONE. */
const char *export_sum_root(const struct export_sum *sum);

#endif
