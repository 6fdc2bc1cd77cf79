/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Segments, their blocks, and the user's annotations.
 *
 * In files of 2023 a block has no address. It begins where the block before it in the
 * segment ends, and is computed once the segment is known. The frames of such a block are
 * in a `history`, the newest use first.
 */
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_extra.h"
#include "trace/pickle/pickle_record.h"

/* The address of a block without one, until its segment is complete. */
#define NO_ADDRESS UINT64_MAX
#define NO_SIZE UINT64_MAX

static enum dry_status
take_state(struct dryi_pickle_walk *w, const struct dryi_owner *owner, uint64_t value,
           enum dry_block_state *state)
{
    uint64_t id = dryi_value_payload(value);
    if (!dryi_value_is(value, DRYI_VALUE_STRING))
        return dryi_field_refuse(w, owner, DRYI_KEY_STATE, value, "a string");
    if (id == DRYI_TEXT_INACTIVE)
        *state = DRY_BLOCK_INACTIVE;
    else if (id == DRYI_TEXT_ACTIVE)
        *state = DRY_BLOCK_ACTIVE;
    else if (id == DRYI_TEXT_PENDING_FREE || id == DRYI_TEXT_AWAITING_FREE)
        *state = DRY_BLOCK_PENDING_FREE;
    else
        return dryi_fail_at(
            w->err, DRY_ERR_FORMAT, w->op_offset,
            "%s %zu: `state` is \"%.40s\", expected inactive, "
            "active_allocated or active_pending_free",
            owner->what, owner->row,
            (const char *)dryi_intern_get(&w->trace->strings, (uint32_t)id, NULL));
    return DRY_OK;
}

/* Take frames and size of the newest use. The history is then no longer needed. */
static enum dry_status
take_block_history(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                   uint64_t value, struct dryi_pickle_history *newest)
{
    struct dryi_rows rows;
    enum dry_status status = dryi_field_take_rows(w, owner, DRYI_KEY_HISTORY, value,
                                                  DRYI_VALUE_HISTORY, &rows);
    if (status != DRY_OK || rows.count == 0)
        return status;
    *newest = w->histories[rows.first];
    if (rows.first + rows.count == w->history_count)
        w->history_count = rows.first;
    return DRY_OK;
}

struct block_fields {
    struct dry_trace_block row;
    struct dryi_pickle_history newest;
    uint32_t forward; /* a stack; DRY_NONE */
};

static enum dry_status
take_block_key(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
               struct block_fields *f, uint64_t key, uint64_t value)
{
    struct dry_trace_block *block = &f->row;
    enum dryi_key known = dryi_value_key(key);
    switch ((int)known) {
    case DRYI_KEY_ADDRESS:
        return dryi_field_take_int(w, owner, known, value, &block->address);
    case DRYI_KEY_SIZE:
        return dryi_field_take_int(w, owner, known, value, &block->size);
    case DRYI_KEY_REQUESTED_SIZE:
        return dryi_field_take_int(w, owner, known, value, &block->requested_size);
    case DRYI_KEY_STATE:
        return take_state(w, owner, value, &block->state);
    case DRYI_KEY_FRAMES:
        return dryi_field_take_stack(w, owner, known, value, &block->stack);
    case DRYI_KEY_FORWARD_FRAMES:
        return dryi_forward_take(w, owner, value, &f->forward);
    case DRYI_KEY_HISTORY:
        return take_block_history(w, owner, value, &f->newest);
    default:
        return dryi_extra_add(w, owner, key, value);
    }
}

enum dry_status
dryi_block_take(struct dryi_pickle_walk *w, const uint64_t *pairs, size_t pair_count,
                uint64_t *value)
{
    size_t row = w->trace->view.block_count;
    struct dryi_owner owner = {"block", row, DRY_UNKNOWN_BLOCK_KEY};
    struct block_fields f = {
        .row = {.address = NO_ADDRESS, .requested_size = NO_SIZE, .stack = DRY_NONE},
        .newest = {.stack = DRY_NONE},
        .forward = DRY_NONE,
    };
    enum dry_status status = DRY_OK;
    dryi_extra_begin(w);
    for (size_t i = 0; status == DRY_OK && i < pair_count; i++)
        status = take_block_key(w, &owner, &f, pairs[2 * i], pairs[2 * i + 1]);
    if (status == DRY_OK)
        status = dryi_extra_end(w, &f.row.extra);
    if (status == DRY_OK && f.row.stack == DRY_NONE)
        f.row.stack = f.newest.stack;
    if (status == DRY_OK)
        status = dryi_forward_join(w, f.forward, &f.row.stack);
    if (status != DRY_OK)
        return status;
    if (f.row.requested_size == NO_SIZE)
        f.row.requested_size = f.newest.real_size;
    if (!dryi_builder_append_block(w->builder, &f.row))
        return dryi_builder_check(w->builder, w->err);
    *value = dryi_value(DRYI_VALUE_BLOCK, row);
    return DRY_OK;
}

enum dry_status
dryi_history_take(struct dryi_pickle_walk *w, const uint64_t *pairs, size_t pair_count,
                  uint64_t *value)
{
    size_t row = w->history_count;
    struct dryi_owner owner = {"history", row, DRY_UNKNOWN_BLOCK_KEY};
    struct dryi_pickle_history history = {.stack = DRY_NONE};
    enum dry_status status = DRY_OK;
    for (size_t i = 0; status == DRY_OK && i < pair_count; i++) {
        enum dryi_key key = dryi_value_key(pairs[2 * i]);
        if (key == DRYI_KEY_FRAMES)
            status =
                dryi_field_take_stack(w, &owner, key, pairs[2 * i + 1], &history.stack);
        else if (key == DRYI_KEY_REAL_SIZE)
            status =
                dryi_field_take_int(w, &owner, key, pairs[2 * i + 1], &history.real_size);
    }
    if (status != DRY_OK)
        return status;
    if (!dryi_memory_grow(&w->memory, &w->histories, &w->history_capacity, row + 1,
                          sizeof *w->histories))
        return dryi_fail_memory(w->err, "the history of blocks");
    w->histories[w->history_count++] = history;
    *value = dryi_value(DRYI_VALUE_HISTORY, row);
    return DRY_OK;
}

/* PyTorch's kSmallBuffer (c10/core/AllocatorConfig.h): a small pool's segment. */
#define SMALL_SEGMENT_BYTES (UINT64_C(2) << 20)

struct fields {
    struct dry_trace_segment row;
    struct dry_lane lane;
    struct dryi_owner owner;
    struct dryi_rows blocks;
    uint32_t forward; /* a stack; DRY_NONE */
    bool has_address, has_device, has_stream, has_type;
};

static enum dry_status
take_device(struct dryi_pickle_walk *w, const struct dryi_owner *owner, uint64_t value,
            int32_t *device)
{
    uint64_t bits;
    enum dry_status status = dryi_field_take_int(w, owner, DRYI_KEY_DEVICE, value, &bits);
    if (status != DRY_OK)
        return status;
    int64_t number = (int64_t)bits;
    if (number < DRY_DEVICE_HOST || number > INT32_MAX)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "%s %zu: `device` is %lld, expected -1 or more", owner->what,
                            owner->row, (long long)number);
    *device = (int32_t)number;
    return DRY_OK;
}

/* Take the type. Any other than "large" or "small" is kept as an unknown key. */
static enum dry_status
take_type(struct dryi_pickle_walk *w, struct fields *f, uint64_t key, uint64_t value)
{
    f->has_type = true;
    f->row.is_large = value == dryi_value(DRYI_VALUE_STRING, DRYI_TEXT_LARGE);
    if (f->row.is_large || value == dryi_value(DRYI_VALUE_STRING, DRYI_TEXT_SMALL))
        return DRY_OK;
    return dryi_extra_add(w, &f->owner, key, value);
}

static enum dry_status
take_rare_segment_key(struct dryi_pickle_walk *w, struct fields *f, uint64_t key,
                      uint64_t value)
{
    enum dryi_key known = dryi_value_key(key);
    switch ((int)known) {
    case DRYI_KEY_SEGMENT_TYPE:
        return take_type(w, f, key, value);
    case DRYI_KEY_SEGMENT_POOL_ID:
        f->row.pool_id_known = true;
        return dryi_field_take_pool(w, &f->owner, known, value, &f->lane);
    case DRYI_KEY_IS_EXPANDABLE:
        f->row.expandable_known = true;
        return dryi_field_take_bool(w, &f->owner, known, value, &f->row.is_expandable);
    case DRYI_KEY_FRAMES:
        return dryi_field_take_stack(w, &f->owner, known, value, &f->row.stack);
    case DRYI_KEY_FORWARD_FRAMES:
        return dryi_forward_take(w, &f->owner, value, &f->forward);
    case DRYI_KEY_BLOCKS:
        return dryi_field_take_rows(w, &f->owner, known, value, DRYI_VALUE_BLOCK,
                                    &f->blocks);
    default:
        return dryi_extra_add(w, &f->owner, key, value);
    }
}

static enum dry_status
take_segment_key(struct dryi_pickle_walk *w, struct fields *f, uint64_t key,
                 uint64_t value)
{
    enum dryi_key known = dryi_value_key(key);
    switch ((int)known) {
    case DRYI_KEY_DEVICE:
        f->has_device = true;
        return take_device(w, &f->owner, value, &f->row.device);
    case DRYI_KEY_ADDRESS:
        f->has_address = true;
        return dryi_field_take_int(w, &f->owner, known, value, &f->row.address);
    case DRYI_KEY_TOTAL_SIZE:
        return dryi_field_take_int(w, &f->owner, known, value, &f->row.total_size);
    case DRYI_KEY_ALLOCATED_SIZE:
        return dryi_field_take_int(w, &f->owner, known, value, &f->row.allocated_size);
    case DRYI_KEY_ACTIVE_SIZE:
        return dryi_field_take_int(w, &f->owner, known, value, &f->row.active_size);
    case DRYI_KEY_REQUESTED_SIZE:
        return dryi_field_take_int(w, &f->owner, known, value, &f->row.requested_size);
    case DRYI_KEY_STREAM:
        f->has_stream = true;
        return dryi_field_take_int(w, &f->owner, known, value, &f->lane.stream);
    default:
        return take_rare_segment_key(w, f, key, value);
    }
}

static enum dry_status
check_present(struct dryi_pickle_walk *w, const struct fields *f)
{
    if (!f->has_device)
        return dryi_field_miss(w, &f->owner, DRYI_KEY_DEVICE);
    if (!f->has_address)
        return dryi_field_miss(w, &f->owner, DRYI_KEY_ADDRESS);
    if (!f->has_stream)
        return dryi_field_miss(w, &f->owner, DRYI_KEY_STREAM);
    return DRY_OK;
}

static void
place_blocks(struct dryi_pickle_walk *w, const struct fields *f)
{
    uint64_t address = f->row.address;
    struct dry_trace_block *blocks = w->trace->blocks;
    for (size_t i = 0; i < f->blocks.count; i++) {
        struct dry_trace_block *block = &blocks[f->blocks.first + i];
        if (block->address == NO_ADDRESS)
            block->address = address;
        address += block->size;
    }
}

/* Take sums that the file lacks from the blocks: files of 2023 have no requested_size here. */
static void
sum_missing(const struct dryi_pickle_walk *w, struct fields *f)
{
    struct dry_trace_segment *row = &f->row, summed = f->row;
    const struct dry_trace_block *first =
        f->blocks.count ? &w->trace->blocks[f->blocks.first] : NULL;
    dryi_trace_sum_blocks(&summed, first, f->blocks.count);
    if (row->allocated_size == NO_SIZE)
        row->allocated_size = summed.allocated_size;
    if (row->active_size == NO_SIZE)
        row->active_size = summed.active_size;
    if (row->requested_size == NO_SIZE)
        row->requested_size = summed.requested_size;
}

enum dry_status
dryi_segment_take(struct dryi_pickle_walk *w, const uint64_t *pairs, size_t pair_count,
                  uint64_t *value)
{
    size_t row = w->trace->view.segment_count;
    struct fields f = {
        .row = {.allocated_size = NO_SIZE,
                .active_size = NO_SIZE,
                .requested_size = NO_SIZE,
                .stack = DRY_NONE},
        .owner = {"segment", row, DRY_UNKNOWN_SEGMENT_KEY},
        .forward = DRY_NONE,
    };
    enum dry_status status = DRY_OK;
    dryi_extra_begin(w);
    for (size_t i = 0; status == DRY_OK && i < pair_count; i++)
        status = take_segment_key(w, &f, pairs[2 * i], pairs[2 * i + 1]);
    if (status == DRY_OK)
        status = check_present(w, &f);
    if (status == DRY_OK)
        status = dryi_extra_end(w, &f.row.extra);
    if (status == DRY_OK)
        status = dryi_field_take_lane(w, &f.lane, &f.row.lane);
    if (status == DRY_OK)
        status = dryi_forward_join(w, f.forward, &f.row.stack);
    if (status != DRY_OK)
        return status;
    place_blocks(w, &f);
    sum_missing(w, &f);
    if (!f.has_type) /* only the small pool has segments of this size */
        f.row.is_large = f.row.total_size != SMALL_SEGMENT_BYTES;
    f.row.first_block = f.blocks.first;
    f.row.block_count = f.blocks.count;
    w->covered.blocks += f.blocks.count;
    if (!dryi_builder_append_segment(w->builder, &f.row))
        return dryi_builder_check(w->builder, w->err);
    *value = dryi_value(DRYI_VALUE_SEGMENT, row);
    return DRY_OK;
}

static enum dry_status
take_annotation_key(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                    struct dry_trace_annotation *row, uint64_t key, uint64_t value)
{
    uint64_t bits;
    enum dryi_key known = dryi_value_key(key);
    if (known == DRYI_KEY_DEVICE)
        return take_device(w, owner, value, &row->device);
    if (known == DRYI_KEY_TIME_US) {
        enum dry_status status = dryi_field_take_int(w, owner, known, value, &bits);
        row->time_us = status == DRY_OK ? (int64_t)bits : 0;
        return status;
    }
    if (dryi_value_is(value, DRYI_VALUE_STRING) && known == DRYI_KEY_NAME)
        row->name = (uint32_t)dryi_value_payload(value);
    else if (dryi_value_is(value, DRYI_VALUE_STRING) && known == DRYI_KEY_STAGE)
        row->stage = (uint32_t)dryi_value_payload(value);
    else
        return dryi_extra_add(w, owner, key, value);
    return DRY_OK;
}

enum dry_status
dryi_annotation_take(struct dryi_pickle_walk *w, const uint64_t *pairs, size_t pair_count,
                     uint64_t *value)
{
    size_t count = w->trace->view.annotation_count;
    struct dryi_owner owner = {"annotation", count, DRY_UNKNOWN_ANNOTATION_KEY};
    struct dry_trace_annotation row = {.name = DRY_NONE, .stage = DRY_NONE};
    enum dry_status status = DRY_OK;
    dryi_extra_begin(w);
    for (size_t i = 0; status == DRY_OK && i < pair_count; i++)
        status = take_annotation_key(w, &owner, &row, pairs[2 * i], pairs[2 * i + 1]);
    if (status == DRY_OK)
        status = dryi_extra_end(w, &row.extra);
    if (status != DRY_OK)
        return status;
    if (dry_trace_add_annotation(w->builder, &row) != DRY_OK)
        return dryi_builder_check(w->builder, w->err);
    *value = dryi_value(DRYI_VALUE_ANNOTATION, count);
    return DRY_OK;
}
