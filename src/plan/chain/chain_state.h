/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_CHAIN_STATE_H
#define DRYI_PLAN_CHAIN_STATE_H

/*
 * A chain from the inside, for planners.
 *
 * C1  Every field of every stage is below 2^63, and a stage's saved bytes, by itself and by
 *     each of its options, are at least its output.
 * C2  bytes_sum is below 2^63. It is the frame and, of every stage, the most it saves, its
 *     gradient, the most of its temporaries and its gradients of weights: no moment of any
 *     plan needs more, so sums of bytes need no further check.
 * C3  work_sum is below 2^63: all forwards, backwards and the most the options recompute. A
 *     plan that recomputes takes more, so sums of time do need one.
 * C4  kinds[i] == kinds[k] exactly if stages i and k are the same but for names; kinds count
 *     from 0 in order of first appearance.
 */

#include <drystone/chain.h>

#include "base/intern.h"

/* A stage's name, options and their names, copied. */
struct dryi_chain_copy {
    void *bytes;
    size_t size;
};

struct dry_chain {
    struct dry_memory memory;
    struct dry_chain_frame frame;
    struct dry_stage *stages;
    uint32_t *kinds;
    size_t count, capacity, kind_capacity;
    struct dryi_intern shapes; /* canonical fields of stages, by kind */
    struct dryi_chain_copy *copies;
    size_t copy_count, copy_capacity;
    uint64_t bytes_sum, work_sum;
    uint64_t time_sum; /* forward and backward, once each */
    uint64_t hash;
};

/* Saved bytes of a stage by an option; 0 is the stage itself. */
static inline uint64_t
dryi_stage_saved_by(const struct dry_stage *stage, uint32_t option)
{
    return option ? stage->options[option - 1].saved_bytes : stage->saved_bytes;
}

/* Bytes that its forward takes for the time it runs, when it saves. */
static inline uint64_t
dryi_stage_forward_tmp(const struct dry_stage *stage, uint32_t option)
{
    return option && stage->options[option - 1].has_forward_tmp
               ? stage->options[option - 1].forward_tmp_bytes
               : stage->forward_tmp_bytes;
}

/* Bytes that its backward takes for the time it runs. */
static inline uint64_t
dryi_stage_backward_tmp(const struct dry_stage *stage, uint32_t option)
{
    return option ? stage->options[option - 1].backward_tmp_bytes
                  : stage->backward_tmp_bytes;
}

/* The time of its backward, with what the option makes again. */
static inline uint64_t
dryi_stage_backward_ns(const struct dry_stage *stage, uint32_t option)
{
    return stage->backward_ns + (option ? stage->options[option - 1].recompute_ns : 0);
}

/* The bytes that leave the device after the next stage's forward. */
static inline uint64_t
dryi_stage_offload(const struct dry_stage *stage, uint32_t option)
{
    return option ? stage->options[option - 1].offload_bytes : 0;
}

/* One word more under a hash that began with another. */
uint64_t dryi_plan_hash_word(uint64_t hash, uint64_t word);

#endif
