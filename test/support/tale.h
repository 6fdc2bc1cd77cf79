/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TALE_H
#define TEST_TALE_H

/*
 * A program's allocations, told line by line, and the timeline of them:
 *
 *     struct tale s;
 *     tale_begin(&s);
 *     uint32_t x = tale_alloc(&s, "model.py:31 forward", 4 << 20);
 *     tale_free(&s, x);
 *     tale_end(&s);                   s.timeline
 *     tale_finish(&s);
 *
 * Every allocation gets an address of its own. Each event takes 10 us.
 */

#include <drystone/drystone.h>

struct tale {
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

void tale_begin(struct tale *s);
/*
 * Allocate. `code` is a stack, innermost first: frames "FILE:LINE NAME" separated by " <
 * ". NULL: no stack is recorded; "": an empty one. Returns the allocation's number, from
 * 0.
 */
uint32_t tale_alloc(struct tale *s, const char *code, uint64_t size);
void tale_free(struct tale *s, uint32_t allocation);
/* Free with a stack of its own. */
void tale_free_at(struct tale *s, uint32_t allocation, const char *code);
void tale_oom(struct tale *s, uint64_t size);
/* Annotate at the present time; `stage` is "START" or "END". */
void tale_annotate(struct tale *s, const char *name, const char *stage);
/* Set the user_metadata of the events that follow; NULL: none. */
void tale_set_metadata(struct tale *s, const char *text);
/* Add an annotate event for a block, with user_metadata. */
void tale_mark(struct tale *s, uint32_t allocation, const char *text);
void tale_end(struct tale *s);
void tale_finish(struct tale *s);

#endif
