/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_STORY_H
#define TEST_STORY_H

/*
 * Small records, told event by event, up to the timeline:
 *
 *     struct story s;
 *     story_begin(&s);
 *     story_event(&s, DRY_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
 *     story_event(&s, DRY_ACTION_ALLOC, BASE, 1000);
 *     story_segment(&s, &(struct story_segment){.address = BASE, .size = 2 * MIB});
 *     story_block(&s, 1024, 1000, DRY_BLOCK_ACTIVE);
 *     story_block(&s, 2 * MIB - 1024, 0, DRY_BLOCK_INACTIVE);
 *     const struct dry_timeline_view *v = story_timeline(&s);
 *     ...
 *     story_end(&s);
 */

#include <drystone/drystone.h>

#define STORY_BLOCKS_MAX 64

struct story_segment {
    uint64_t address, size;
    uint64_t stream, pool;
    bool is_large, is_expandable;
};

struct story {
    struct dry_trace_builder *builder;
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    int64_t time_us; /* of the next event; grows by 10 */
    uint64_t stream, pool;
    int hides_pools; /* write no pool ids, as old files do */
    int32_t device;
    uint32_t stack;               /* of the next events and blocks */
    struct story_segment segment; /* not yet added */
    uint64_t block_address;
    struct dry_trace_block blocks[STORY_BLOCKS_MAX];
    size_t block_count;
    int has_segment;
    int32_t segment_device;
};

void story_begin(struct story *s);
/* Let events and segments from here on be of this device. */
void story_device(struct story *s, int32_t device);
/* Set a stack of one frame for the events and blocks that follow. */
uint32_t story_stack(struct story *s, const char *name);
void story_event(struct story *s, enum dry_action action, uint64_t addr, uint64_t size);
void story_at(struct story *s, int64_t time_us, enum dry_action action, uint64_t addr,
              uint64_t size);
/* Add a segment at the end; its blocks follow, one behind the other. */
void story_segment(struct story *s, const struct story_segment *segment);
void story_block(struct story *s, uint64_t size, uint64_t requested,
                 enum dry_block_state state);
void story_block_at(struct story *s, uint64_t address, uint64_t size, uint64_t requested,
                    enum dry_block_state state);

/* End the events, and make the trace. */
void story_trace(struct story *s);
/* Make the timeline of `s->device`, and everything below it. */
const struct dry_timeline_view *story_timeline(struct story *s);
void story_end(struct story *s);

#endif
