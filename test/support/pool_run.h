/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_POOL_RUN_H
#define TEST_POOL_RUN_H

/*
 * A program that allocates from a pool on a simulated device, as a seed decides.
 *
 *     struct pool_run run;
 *     pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB);
 *     pool_run_steps(&run, seed, 1000);
 *     ... run.pool ...
 *     pool_run_end(&run);
 *
 * Each request has a context: the number of requests so far, modulo POOL_RUN_CONTEXTS.
 */

#include <stdbool.h>

#include <drystone/pool.h>
#include <drystone/pool_trace.h>
#include <drystone/sim.h>

#include "support/random.h"

#define POOL_RUN_BLOCKS_MAX 256
#define POOL_RUN_CONTEXTS 40

struct pool_run {
    struct dry_sim *sim;
    struct dry_pool *pool;
    struct random random;
    uint64_t live[POOL_RUN_BLOCKS_MAX];
    size_t live_count;
    uint32_t request_count, ooms;
    bool is_simple; /* one stream, no private pools, no record_stream */
};

void pool_run_begin(struct pool_run *run, enum dry_placement placement, const char *conf,
                    uint64_t capacity_bytes, const struct dry_memory *memory);
/* Record history from here on, `entries` of it, with contexts. */
void pool_run_record(struct pool_run *run, size_t entries);
/* Run `count` random steps from `seed`; assert that each works or is out of memory. */
void pool_run_steps(struct pool_run *run, uint64_t seed, size_t count);
void pool_run_end(struct pool_run *run);

/*
 * Give the frames of a context, for struct dry_pool_trace_options: context c has c % 5
 * frames.
 */
size_t pool_run_frames(void *self, uint32_t context, struct dry_pool_frame *frames,
                       size_t capacity);

#endif
