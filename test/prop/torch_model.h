/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TORCH_MODEL_H
#define TEST_TORCH_MODEL_H

/*
 * PyTorch's caching allocator, written a second time and as plainly as possible.
 *
 * One flat array of blocks. Neighbours, free sets and their orders are found by looking
 * at all of it, every time; nothing is kept that can be worked out. Slow, and so simple
 * that where it and src/place/torch/torch.c differ, the rules can be read off it.
 *
 * It has a device of its own (capacity, events, calls told to fail), which must agree
 * with the simulated one; only the addresses of ranges come from outside, through
 * `take_range`, so that a run beside the real place sees the same addresses.
 *
 * Aborts with a message when the outside hands it a range it did not ask for, and when a
 * test outgrows MODEL_BLOCKS.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/stats.h>

#include "place/torch/torch.h"

#define MODEL_BLOCKS 1024
#define MODEL_USES 8 /* streams recorded on one block */
#define MODEL_EVENTS 4096
#define MODEL_STREAMS 16
#define MODEL_POOLS 128 /* private pools ever made */

struct torch_model_options {
    struct dryi_torch_conf conf;
    const struct dryi_torch_rules *rules;
    uint64_t capacity, total, granularity;
    /* The address of the range that the real place took at this point. */
    uint64_t (*take_range)(void *self, bool is_reservation, uint64_t size);
    void *take_self;
};

struct torch_model;

struct torch_model *torch_model_create(const struct torch_model_options *options);
void torch_model_destroy(struct torch_model *m);

/* As their namesakes of place/torch/torch.h; a block's handle is the model's own. */
enum dry_status torch_model_alloc(struct torch_model *m, uint64_t size, uint64_t stream,
                                  uint32_t *block);
enum dry_status torch_model_free(struct torch_model *m, uint32_t block);
enum dry_status torch_model_record_stream(struct torch_model *m, uint32_t block,
                                          uint64_t stream);
void torch_model_empty_cache(struct torch_model *m, struct dryi_pool_id pool);
enum dry_status torch_model_begin_pool(struct torch_model *m, struct dryi_pool_id pool);
enum dry_status torch_model_end_pool(struct torch_model *m, struct dryi_pool_id pool);
enum dry_status torch_model_release_pool(struct torch_model *m, struct dryi_pool_id pool);
enum dry_status torch_model_set_fraction(struct torch_model *m, double fraction);

/* The device: everything recorded on the stream so far is done. */
void torch_model_complete_stream(struct torch_model *m, uint64_t stream);
/* The n-th such call from now is refused; UINT64_MAX: none. */
enum model_call { MODEL_ALLOC, MODEL_MAP, MODEL_EVENT };
#define MODEL_CALLS 3
void torch_model_fail_at(struct torch_model *m, enum model_call call, uint64_t n);

uint64_t torch_model_address(const struct torch_model *m, uint32_t block);
const struct dry_stats *torch_model_stats(const struct torch_model *m);

/* What the last call did, in order. */
const struct dryi_place_event *torch_model_events(const struct torch_model *m,
                                                  size_t *count);

/* Mapped blocks by address; segment, offset and the rest as dryi_torch_get_block. */
size_t torch_model_layout(const struct torch_model *m, struct dryi_block_info *blocks,
                          size_t capacity);

#endif
