/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_ALLOCATION_BUILDER_H
#define TEST_ALLOCATION_BUILDER_H

/*
 * A program's allocations, a call for each, and the timeline of them:
 *
 *     struct allocation_builder s;
 *     allocation_builder_begin(&s);
 *     uint32_t x = allocation_builder_alloc(&s, "model.py:31 forward", 4 << 20);
 *     allocation_builder_free(&s, x);
 *     allocation_builder_end(&s);     s.timeline
 *     allocation_builder_finish(&s);
 *
 * Every allocation gets an address of its own. Each event takes 10 us.
 */

#include <drystone/drystone.h>

struct allocation_builder {
    struct dry_trace_builder *b;
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    uint64_t next_address;
    uint64_t *addresses; /* by allocation */
    uint64_t *sizes;
    uint32_t count, capacity;
    uint32_t lane, note;
    uint32_t event_count;
    int64_t time_us, tick_us;
};

void allocation_builder_begin(struct allocation_builder *s);
/*
 * Allocate. `code` is a stack, innermost first: frames "FILE:LINE NAME" separated by " <
 * ". NULL: no stack is recorded; "": an empty one. Returns the allocation's number, from
 * 0.
 */
uint32_t allocation_builder_alloc(struct allocation_builder *s, const char *code,
                                  uint64_t size);
void allocation_builder_free(struct allocation_builder *s, uint32_t allocation);
/* Free with a stack of its own. */
void allocation_builder_free_at(struct allocation_builder *s, uint32_t allocation,
                                const char *code);
void allocation_builder_oom(struct allocation_builder *s, uint64_t size);
/* Annotate at the present time; `stage` is "START" or "END". */
void allocation_builder_annotate(struct allocation_builder *s, const char *name,
                                 const char *stage);
/* Set the user_metadata of the events that follow; NULL: none. */
void allocation_builder_set_metadata(struct allocation_builder *s, const char *text);
/* Add an annotate event for a block, with user_metadata. */
void allocation_builder_mark(struct allocation_builder *s, uint32_t allocation,
                             const char *text);
void allocation_builder_end(struct allocation_builder *s);
void allocation_builder_finish(struct allocation_builder *s);

#endif
