/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_RECORD_BUILDER_H
#define TEST_RECORD_BUILDER_H

/*
 * Small records, built event by event, up to the timeline:
 *
 *     struct record_builder s;
 *     record_builder_begin(&s);
 *     record_builder_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
 *     record_builder_event(&s, DRY_ACTION_ALLOC, BASE, 1000);
 *     struct record_builder_segment segment = {.address = BASE, .size = 2 * MIB};
 *     record_builder_segment(&s, &segment);
 *     record_builder_block(&s, 1024, 1000, DRY_BLOCK_ACTIVE);
 *     record_builder_block(&s, 2 * MIB - 1024, 0, DRY_BLOCK_INACTIVE);
 *     const struct dry_timeline_view *v = record_builder_timeline(&s);
 *     ...
 *     record_builder_end(&s);
 */

#include <drystone/drystone.h>

#define RECORD_BUILDER_BLOCKS_MAX 64

struct record_builder_segment {
    uint64_t address, size;
    uint64_t stream, pool;
    bool is_large, is_expandable;
};

struct record_builder {
    struct dry_trace_builder *builder;
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    int64_t time_us; /* of the next event; grows by 10 */
    uint64_t stream, pool;
    int hides_pools; /* write no pool ids, as old files do */
    int32_t device;
    uint32_t stack;                        /* of the next events and blocks */
    struct record_builder_segment segment; /* not yet added */
    uint64_t block_address;
    struct dry_trace_block blocks[RECORD_BUILDER_BLOCKS_MAX];
    size_t block_count;
    int has_segment;
    int32_t segment_device;
};

void record_builder_begin(struct record_builder *s);
/* Let events and segments from here on be of this device. */
void record_builder_device(struct record_builder *s, int32_t device);
/* Set a stack of one frame for the events and blocks that follow. */
uint32_t record_builder_stack(struct record_builder *s, const char *name);
void record_builder_event(struct record_builder *s, enum dry_action action, uint64_t addr,
                          uint64_t size);
void record_builder_at(struct record_builder *s, int64_t time_us, enum dry_action action,
                       uint64_t addr, uint64_t size);
/* Add a segment at the end; its blocks follow, one behind the other. */
void record_builder_segment(struct record_builder *s,
                            const struct record_builder_segment *segment);
void record_builder_block(struct record_builder *s, uint64_t size, uint64_t requested,
                          enum dry_block_state state);
void record_builder_block_at(struct record_builder *s, uint64_t address, uint64_t size,
                             uint64_t requested, enum dry_block_state state);

/* End the events, and make the trace. */
void record_builder_trace(struct record_builder *s);
/* Make the timeline of `s->device`, and everything below it. */
const struct dry_timeline_view *record_builder_timeline(struct record_builder *s);
void record_builder_end(struct record_builder *s);

#endif
