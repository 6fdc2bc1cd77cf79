/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CASES_PROGRAM_STATE_H
#define TEST_CASES_PROGRAM_STATE_H

/*
 * The inside of a program, shared by program.c (what scripts call), record.c (the events,
 * segments and settings of the snapshot) and truth.c (what was so at the moment).
 */

#include <drystone/sim.h>

#include "base/map.h"
#include "cases/cases.h"
#include "cases/program.h"
#include "place/torch/torch.h"

struct tensor {
    dryi_block block;
    uint32_t stack;
    bool is_alive, is_kept;
};

struct program {
    const struct labelled_case *label;
    struct case_truth truth;
    enum dry_status status; /* the first failure that is not the device's */
    struct dry_memory memory;
    struct dry_trace_builder *builder;
    struct dryi_torch_conf conf;
    struct random random;

    /* The device under way. */
    int32_t device;
    struct dry_sim *sim;
    struct dryi_torch *place;
    struct dry_event *events;
    size_t event_count, event_capacity;
    struct tensor *tensors;
    size_t tensor_count, tensor_capacity;
    struct dryi_map places;   /* address of a block in use or pending -> tensor */
    struct dryi_map segments; /* address of a cudaMalloc -> stack */
    size_t oom_index;         /* in `events`; SIZE_MAX: none */
    size_t step_count;
    size_t events_recorded; /* of the devices before this one */
    unsigned open_scopes;
    bool is_over;

    /* States that scripts set. */
    const char *outer_frames;
    uint32_t stack;
    uint32_t user_metadata; /* a string */
    uint64_t stream;
    struct dryi_pool_id pool; /* whose scope is open */
    int64_t time_us;
};

/* record.c */
enum dry_status program_open_record(struct program *p, struct dry_error *err);
uint32_t program_make_stack(struct program *p, const char *inner, const char *outer);
/* Return a stack of the backward pass. It has the frames of the forward pass, as texts, if the
   program detects anomalies. */
uint32_t program_make_backward_stack(struct program *p, const char *own,
                                     const char *forward);
/* Did snapshots of that PyTorch have what came with 2.N? */
bool program_has_fields_of(const struct program *p, unsigned minor);
void program_record(void *self, const struct dryi_place_event *event);
void program_close_device(struct program *p);

/* truth.c */
void truth_note_request(struct program *p);
void truth_note_moment(struct program *p, uint64_t bytes);
void truth_note_end(struct program *p);

void program_fail(struct program *p, enum dry_status status);

#endif
