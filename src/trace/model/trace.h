/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TRACE_H
#define DRYI_TRACE_H

/*
 * The inside of a trace, and the builder that the readers fill.
 *
 * A builder owns a trace that is not finished. Adding never sorts and never looks back:
 * columns grow, things that repeat are interned. Finish groups the segments by device,
 * lays lanes and frames side by side, gives back the indexes and fills the view.
 *
 * All memory of a trace goes through its budget, so that options.memory_bytes_max holds
 * for the sum of trace and reader, and is told apart from a machine without memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "base/intern.h"
#include "trace/model/input.h"

/* Memory with a ceiling. `is_spent` says that the ceiling, not the machine, said no. */
struct dryi_budget {
    struct dry_memory parent;
    uint64_t used_bytes, limit_bytes;
    bool is_spent;
};

/* Hooks that draw on the budget, which must outlive them. */
struct dry_memory dryi_budget_memory(struct dryi_budget *budget);

/* Why an allocation failed: LIMIT with the limit if the budget is spent, else MEMORY. */
enum dry_status dryi_budget_fail(const struct dryi_budget *budget, const char *noun,
                                 struct dry_error *err);

/* The columns of the events: equal lengths, each its own growable array. */
struct dryi_events {
    uint8_t *action;
    uint64_t *addr, *size;
    int64_t *time_us;
    uint32_t *lane, *stack, *note;
    size_t action_capacity, addr_capacity, size_capacity, time_capacity;
    size_t lane_capacity, stack_capacity, note_capacity;
    size_t room; /* the least of the capacities */
    size_t count;
};

struct dry_trace {
    struct dry_memory parent; /* holds this struct; the rest draws on the budget */
    struct dryi_budget budget;
    struct dry_memory memory; /* dryi_budget_memory(&budget) */
    struct dryi_intern strings, frames, stacks, lanes, notes, unknowns;
    struct dryi_events events;
    struct dry_trace_device *devices;
    struct dry_trace_segment *segments;
    struct dry_trace_block *blocks;
    struct dry_trace_annotation *annotations;
    struct dry_trace_unknown *unknown_rows;
    struct dry_lane *lane_rows; /* made by finish, as are frame_rows */
    struct dry_frame *frame_rows;
    size_t device_capacity, segment_capacity, block_capacity;
    size_t annotation_capacity, unknown_capacity;
    struct dry_trace_view view; /* its counts are the counts while building, too */
};

/* Calls after a failed one do nothing and return the same status: error.status. */
struct dry_trace_builder {
    struct dry_trace *trace;
    struct dry_error error;
};

/*
 * Create a builder like dry_trace_builder_create(), with a ceiling on all memory taken
 * through it.
 */
enum dry_status dryi_builder_create(const struct dry_memory *memory,
                                    enum dry_trace_kind kind, uint64_t memory_bytes_max,
                                    struct dry_trace_builder **builder,
                                    struct dry_error *err);

/* DRY_OK, or the failure so far with its text copied to *err. */
enum dry_status dryi_builder_check(const struct dry_trace_builder *builder,
                                   struct dry_error *err);

/* Note a failed allocation and return its status, which now sticks. */
enum dry_status dryi_builder_fail_memory(struct dry_trace_builder *builder,
                                         const char *noun);

/* Which format it turned out to be. */
void dryi_builder_set_kind(struct dry_trace_builder *builder, enum dry_trace_kind kind);

/* Count a key or an action that we do not know; `where` is DRY_UNKNOWN_... */
void dryi_builder_add_unknown(struct dry_trace_builder *builder, uint32_t name,
                              uint32_t where);

/*
 * Append an event without looking at devices: for a reader that tells the ranges later
 * with dryi_builder_add_device(). False when there is no memory (noted in the builder).
 */
bool dryi_builder_append_event(struct dry_trace_builder *builder,
                               const struct dry_event *event);
enum dry_status dryi_builder_add_device(struct dry_trace_builder *builder, int32_t device,
                                        size_t first_event, size_t event_count);
/* A block whose segment is told later. False when there is no memory. */
bool dryi_builder_append_block(struct dry_trace_builder *builder,
                               const struct dry_trace_block *block);
/* A segment with first_block and block_count set by the caller. */
bool dryi_builder_append_segment(struct dry_trace_builder *builder,
                                 const struct dry_trace_segment *segment);

/* The segment's sizes, as PyTorch adds them up from its blocks. */
void dryi_trace_sum_blocks(struct dry_trace_segment *segment,
                           const struct dry_trace_block *blocks, size_t count);

/* Order segments and devices by device, host last. Part of finish. */
enum dry_status dryi_trace_group(struct dry_trace *trace, struct dry_error *err);

/* Read a pickle into the builder of kind SNAPSHOT; `finish` is left to the caller. */
enum dry_status dryi_pickle_read(struct dryi_input *in,
                                 const struct dry_trace_options *options,
                                 struct dry_trace_builder *builder,
                                 struct dry_error *err);

#endif
