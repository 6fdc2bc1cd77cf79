/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_EXECUTION_H
#define DRYI_REPLAY_EXECUTION_H

/*
 * Run a program on a placement and a simulated device, one operation at a time.
 *
 * The self-check, runs under other settings, the search for a capacity and the recorder each use an
 * execution, with different observers.
 */

#include <drystone/sim.h>

#include "place/paged/paged.h"
#include "replay/initial_layout.h"
#include "replay/program.h"

struct dryi_execution;

/* Callbacks of an observer of a run. It does not control the run, except that
   an error status ends it. */
struct dryi_listener {
    void (*begin)(void *self, const struct dryi_execution *execution);
    void (*event)(void *self, const struct dryi_place_event *event);
    /* Called after each successful operation; NO_OP after placing a carried-over allocation. */
    enum dry_status (*after)(void *self, size_t op);
    /* Called after a request that ran out of memory. May be NULL. */
    void (*refused)(void *self);
    /* Called at the end of the run, while the execution still exists. */
    enum dry_status (*end)(void *self);
    void *self;
};
#define NO_OP SIZE_MAX

/* Operations between two calls of a progress callback. */
#define DRYI_OPS_BETWEEN_PROGRESS 65536

enum dryi_execution_kind { DRYI_EXECUTION_TORCH, DRYI_EXECUTION_PAGED };

struct dryi_execution_options {
    enum dryi_execution_kind kind;
    struct dryi_torch_conf conf; /* used by TORCH */
    const struct dryi_torch_rules *rules;
    struct dryi_paged_conf paged; /* used by PAGED */
    uint64_t capacity_bytes;
    struct dryi_place_observer observer;
    uint64_t (*choose_address)(void *self, enum dry_sim_call call, uint64_t size);
    void *choose_self;
    bool check_order; /* let the device check that no memory is reused too early */
};

struct dryi_execution {
    struct dry_memory memory;
    const struct dryi_program *program;
    struct dry_sim *sim;
    struct dryi_place place;
    struct dryi_torch *torch; /* the same placement, if it is PyTorch's; else NULL */
    dryi_block *handles;      /* one per request; DRYI_NO_BLOCK if it has no block */
    uint64_t stream;          /* argument of the next OP_RECORD_STREAM */
    bool checks_order;
    struct dryi_intern pools; /* ids of the private pools seen so far */
    uint8_t *pool_is_held; /* the execution is a user of the pool; indexed like `pools` */
    size_t pool_capacity;
    uint32_t request; /* the current request, for observers */
    size_t op;        /* the current operation, for observers; NO_OP before the first */
};

DRY_CHECK_RESULT enum dry_status dryi_execution_init(
    struct dryi_execution *execution, const struct dryi_program *program,
    const struct dryi_execution_options *options, const struct dry_memory *memory,
    struct dry_error *err);
void dryi_execution_finish(struct dryi_execution *execution);

/* Begin on an empty device: place the carried-over allocations one by one, then request the frees
   that were requested before the window. */
DRY_CHECK_RESULT enum dry_status dryi_execution_place_carried(
    struct dryi_execution *execution, uint32_t request);
DRY_CHECK_RESULT enum dry_status dryi_execution_begin_pending_frees(
    struct dryi_execution *execution);
/* Begin with the layout at the window's start. TORCH only. */
DRY_CHECK_RESULT enum dry_status dryi_execution_begin_at(
    struct dryi_execution *execution, const struct dryi_initial_layout *layout,
    struct dry_error *err);

/* Run operation `op`. NO_SPACE: out of memory; the execution can continue. */
DRY_CHECK_RESULT enum dry_status dryi_execution_do(struct dryi_execution *execution,
                                                   size_t op);

/* Count driver calls that allocate, map, unmap or free memory; events and waits do not count. */
uint64_t dryi_driver_calls(const struct dry_sim_account *account);

#endif
