/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CHAIN_KEEP_H
#define TOOL_CHAIN_KEEP_H

/* The "operations" of a stage, and which of their results are worth keeping. */

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/memory.h>

#include "base/json_in.h"

#define CHAIN_KEEP_POINTS_MAX 8u
/* Limits per stage, and over all stages: solving then takes seconds at most. */
#define CHAIN_KEEP_OPERATIONS_MAX 1024u
#define CHAIN_KEEP_OPERATIONS_SUM 16384u
#define CHAIN_KEEP_INPUTS_SUM 65536u

/* How much of the limits the preceding stages have used. */
struct chain_keep_used {
    size_t operations, inputs;
};

/* An option of the stage: some operations' results are kept, the others run again. */
struct chain_keep_point {
    uint64_t less_bytes; /* bytes saved less than the whole stage saves; at least 1 */
    uint64_t recompute_ns, recomputed_bytes;
    json_t *policy; /* {operation: [indices of the kept calls], ...}; the caller's */
};

struct chain_keep {
    uint64_t read_bytes; /* bytes the backward reads, out of those the stage saves */
    struct chain_keep_point points[CHAIN_KEEP_POINTS_MAX];
    size_t count;
};

/*
 * Compute the points of the stage's curve that save memory, in ascending order of bytes.
 * A failure sets in->status and leaves no points. The caller calls chain_keep_finish(),
 * which releases the policies that were not taken over.
 */
void chain_keep_read(struct json_in *in, const struct json_at *operations,
                     const struct dry_memory *memory, struct chain_keep_used *used,
                     struct chain_keep *keep);
void chain_keep_finish(struct chain_keep *keep);

/* Check that a policy is absent or an object of lists of whole numbers. */
void chain_policy_check(struct json_in *in, const struct json_at *policy);

#endif
