/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_EXECUTION_H
#define DRYI_REPLAY_EXECUTION_H

/*
 * A program under way: a place on a simulated device, one operation at a time.
 *
 * The self-check, a run under other settings, the search for a capacity and the recorder
 * are an execution each, with another observer.
 */

#include <drystone/sim.h>

#include "place/paged/paged.h"
#include "replay/initial_layout.h"
#include "replay/program.h"

struct dryi_execution;

/* A listener hears what a run does, beside the code that runs it. */
struct dryi_listener {
    void (*begin)(void *self, const struct dryi_execution *execution);
    void (*event)(void *self, const struct dryi_place_event *event);
    /* After an operation that went well; NO_OP: a carried-over allocation was placed. */
    enum dry_status (*after)(void *self, size_t op);
    /* After a request for which there was no memory; or NULL. */
    void (*refused)(void *self);
    /* The run is over, but the execution is still there. */
    enum dry_status (*end)(void *self);
    void *self;
};
#define NO_OP SIZE_MAX

/* How often whoever runs an execution asks whether to go on. */
#define DRYI_OPS_BETWEEN_PROGRESS 65536

enum dryi_execution_kind { DRYI_EXECUTION_TORCH, DRYI_EXECUTION_PAGED };

struct dryi_execution_options {
    enum dryi_execution_kind kind;
    struct dryi_torch_conf conf; /* TORCH */
    const struct dryi_torch_rules *rules;
    struct dryi_paged_conf paged; /* PAGED */
    uint64_t capacity_bytes;
    struct dryi_place_observer observer;
    uint64_t (*choose_address)(void *self, enum dry_sim_call call, uint64_t size);
    void *choose_self;
    bool check_order; /* the device proves that nothing is used too early */
};

struct dryi_execution {
    struct dry_memory memory;
    const struct dryi_program *program;
    struct dry_sim *sim;
    struct dryi_place place;
    struct dryi_torch *torch; /* the same, where the place is PyTorch's; else NULL */
    dryi_block *handles;      /* by request; DRYI_NO_BLOCK: not in use */
    uint64_t stream;          /* of the next OP_RECORD_STREAM */
    bool checks_order;
    struct dryi_intern pools; /* ids of private pools met so far */
    uint8_t *pool_is_held;    /* by pool: the execution counts as its user */
    size_t pool_capacity;
    uint32_t request; /* under way, for observers */
    size_t op;        /* likewise; NO_OP before the first */
};

DRY_CHECK_RESULT enum dry_status dryi_execution_init(
    struct dryi_execution *execution, const struct dryi_program *program,
    const struct dryi_execution_options *options, const struct dry_memory *memory,
    struct dry_error *err);
void dryi_execution_finish(struct dryi_execution *execution);

/*
 * Begin on an empty device: place the carried-over allocations one after the other, then
 * ask for the frees that were asked before the window.
 */
DRY_CHECK_RESULT enum dry_status dryi_execution_place_carried(
    struct dryi_execution *execution, uint32_t request);
DRY_CHECK_RESULT enum dry_status dryi_execution_begin_pending_frees(
    struct dryi_execution *execution);
/* Begin from the layout the window began with. TORCH alone. */
DRY_CHECK_RESULT enum dry_status dryi_execution_begin_at(
    struct dryi_execution *execution, const struct dryi_initial_layout *layout,
    struct dry_error *err);

/* Do operation `op`. NO_SPACE: out of memory; the execution may go on. */
DRY_CHECK_RESULT enum dry_status dryi_execution_do(struct dryi_execution *execution,
                                                   size_t op);

/* Calls so far that take, map, unmap or give back; events and waits are not counted. */
uint64_t dryi_driver_calls(const struct dry_sim_account *account);

#endif
