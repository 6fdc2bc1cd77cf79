/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CHAIN_KEEP_H
#define TOOL_CHAIN_KEEP_H

/* The "operations" that a stage is made of, and which of them are worth keeping. */

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/memory.h>

#include "base/json_in.h"

#define CHAIN_KEEP_POINTS_MAX 8u
/* Limits of a stage, and of all stages: solving takes seconds at most. */
#define CHAIN_KEEP_OPERATIONS_MAX 1024u
#define CHAIN_KEEP_OPERATIONS_SUM 16384u
#define CHAIN_KEEP_INPUTS_SUM 65536u

/* The part of the limits that the stages before have used. */
struct chain_keep_used {
    size_t operations, inputs;
};

/* Some of the operations are kept, the others run again: an option of the stage. */
struct chain_keep_point {
    uint64_t less_bytes; /* than the stage saves; more than 0 */
    uint64_t recompute_ns, recomputed_bytes;
    json_t *policy; /* {name: [which of its calls are kept], ...}; the caller's */
};

struct chain_keep {
    uint64_t read_bytes; /* of what the backward reads: a part of what the stage saves */
    struct chain_keep_point points[CHAIN_KEEP_POINTS_MAX];
    size_t count;
};

/*
 * The points of the stage's curve that save less than all, from the least on. A failure is
 * in->status, and then there are no points. chain_keep_finish() is due for those that are
 * there and whose policy nobody took.
 */
void chain_keep_read(struct json_in *in, const struct json_at *operations,
                     const struct dry_memory *memory, struct chain_keep_used *used,
                     struct chain_keep *keep);
void chain_keep_finish(struct chain_keep *keep);

/* An object of lists of whole numbers, or nothing. */
void chain_policy_check(struct json_in *in, const struct json_at *policy);

#endif
