/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TRACE_H
#define DRYI_TRACE_H

/*
 * The inside of a trace, and the builder that readers fill.
 *
 * A builder owns an unfinished trace. Adding never sorts: columns grow, and repeated
 * items are interned. Finish groups segments by device, copies lanes and frames into
 * arrays, frees the lookup tables and fills the view.
 *
 * All memory of a trace is counted by its budget. So options.memory_bytes_max limits
 * trace and reader together, and a spent limit is reported differently from a machine out
 * of memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "base/intern.h"
#include "trace/model/input.h"

/* Memory with a limit. is_spent: the limit, not the machine, refused a request. */
struct dryi_budget {
    struct dry_memory parent;
    uint64_t used_bytes, limit_bytes;
    bool is_spent;
};

/*
 * Return whether a snapshot's history was recorded without free_completed (skip_actions): the device
 * has several requested frees, no completed one, and at the end no block waits. A free is then complete when
 * it is requested, as far as anybody can tell. Cost: O(events + blocks).
 */
bool dryi_trace_lacks_completions(const struct dry_trace_view *view,
                                  const struct dry_trace_device *device);

/* Return memory hooks that count on the budget, which must outlive their use. */
struct dry_memory dryi_budget_memory(struct dryi_budget *budget);

/* Report a failed allocation: LIMIT if the budget is spent, else MEMORY. */
enum dry_status dryi_budget_fail(const struct dryi_budget *budget, const char *noun,
                                 struct dry_error *err);

/* The columns of the events: arrays of equal length, each grown on its own. */
struct dryi_events {
    uint8_t *action;
    uint64_t *addr, *size;
    int64_t *time_us;
    uint32_t *lane, *stack, *note;
    size_t action_capacity, addr_capacity, size_capacity, time_capacity;
    size_t lane_capacity, stack_capacity, note_capacity;
    size_t capacity; /* smallest of the capacities */
    size_t count;
};

struct dry_trace {
    struct dry_memory parent; /* allocated this struct; all else uses the budget */
    struct dryi_budget budget;
    struct dry_memory memory; /* dryi_budget_memory(&budget) */
    struct dryi_intern strings, frames, stacks, lanes, notes, unknowns;
    struct dryi_events events;
    struct dry_trace_device *devices;
    struct dry_trace_segment *segments;
    struct dry_trace_block *blocks;
    struct dry_trace_annotation *annotations;
    struct dry_trace_unknown *unknown_rows;
    struct dry_lane *lane_rows; /* made by finish, like frame_rows */
    struct dry_frame *frame_rows;
    size_t device_capacity, segment_capacity, block_capacity;
    size_t annotation_capacity, unknown_capacity;
    struct dry_trace_view view; /* its counts are valid while building */
};

/* After a failed call, every later one does nothing and returns error.status. */
struct dry_trace_builder {
    struct dry_trace *trace;
    struct dry_error error;
};

/* Create a builder as dry_trace_builder_create() does, with a limit on all its memory. */
enum dry_status dryi_builder_create(const struct dry_memory *memory,
                                    enum dry_trace_kind kind, uint64_t memory_bytes_max,
                                    struct dry_trace_builder **builder,
                                    struct dry_error *err);

/* Return DRY_OK, or the first failure, whose text is copied to *err. */
enum dry_status dryi_builder_check(const struct dry_trace_builder *builder,
                                   struct dry_error *err);

/* Record a failed allocation as the builder's failure, and return its status. */
enum dry_status dryi_builder_fail_memory(struct dry_trace_builder *builder,
                                         const char *noun);

/* Set the kind of the trace, which a reader learns only from the file. */
void dryi_builder_set_kind(struct dry_trace_builder *builder, enum dry_trace_kind kind);

/* Count an unknown key or action. `where` is one of DRY_UNKNOWN_... */
void dryi_builder_add_unknown(struct dry_trace_builder *builder, uint32_t name,
                              uint32_t where);

/*
 * Append an event without a device, for a reader that sets the ranges later with
 * dryi_builder_add_device(). Returns false if memory ran out, which the builder records.
 */
bool dryi_builder_append_event(struct dry_trace_builder *builder,
                               const struct dry_event *event);
enum dry_status dryi_builder_add_device(struct dry_trace_builder *builder, int32_t device,
                                        size_t first_event, size_t event_count);
/* Append a block whose segment follows later. Returns false if memory ran out. */
bool dryi_builder_append_block(struct dry_trace_builder *builder,
                               const struct dry_trace_block *block);
/* Append a segment with its first_block and block_count. False: memory ran out. */
bool dryi_builder_append_segment(struct dry_trace_builder *builder,
                                 const struct dry_trace_segment *segment);

/* Sum the sizes of a segment's blocks by state, as PyTorch does. */
void dryi_trace_sum_blocks(struct dry_trace_segment *segment,
                           const struct dry_trace_block *blocks, size_t count);

/* Compare by address, for qsort() of pointers to segments. */
int dryi_trace_compare_segments(const void *a, const void *b);

/* Sort segments and devices by device, the host last. Part of finish. */
enum dry_status dryi_trace_group(struct dry_trace *trace, struct dry_error *err);

/* Read a pickle into a builder of kind SNAPSHOT. The caller finishes the builder. */
enum dry_status dryi_pickle_read(struct dryi_input *in,
                                 const struct dry_trace_options *options,
                                 struct dry_trace_builder *builder,
                                 struct dry_error *err);

#endif
