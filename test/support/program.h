/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

/*
 * A small trace written as calls, and its timeline.
 *
 *     struct program p;
 *     program_begin(&p, NULL);
 *     uint32_t stack = program_stack(&p, "a.py;12;forward\nmain.py;3;<module>");
 *     uint64_t block = program_alloc(&p, 4096, stack);
 *     program_free(&p, block, DRY_NONE);
 *     program_finish(&p);        then p.trace and p.timelines[0]
 *     program_end(&p);
 *
 * Frames are "FILE;LINE;NAME", innermost first, after '>' if they are of the forward pass. An empty
 * text is an empty stack.
 */

#include <drystone/timeline.h>

#define PROGRAM_BLOCKS_MAX 4096
#define PROGRAM_DEVICES_MAX 64

struct program {
    struct dry_trace_builder *builder;
    uint32_t lane;
    int32_t device_count;
    uint64_t next;
    int64_t time_us;
    uint64_t sizes[PROGRAM_BLOCKS_MAX]; /* by address */
    struct dry_trace *trace;
    struct dry_replay *replays[PROGRAM_DEVICES_MAX];
    struct dry_timeline *timelines[PROGRAM_DEVICES_MAX];
};

/* Begin a trace, and a device in it. `settings` may be NULL. */
void program_begin(struct program *p, const struct dry_trace_settings *settings);
void program_begin_device(struct program *p);
uint32_t program_stack(struct program *p, const char *frames);
/* Add a stack of one frame; the name may hold anything. */
uint32_t program_stack_of(struct program *p, const char *file, uint32_t line,
                          const char *name, size_t name_length);
void program_lane(struct program *p, uint64_t stream, uint64_t pool);
/* Allocate, and return the address. */
uint64_t program_alloc(struct program *p, uint64_t size, uint32_t stack);
void program_free(struct program *p, uint64_t address, uint32_t stack);
/* Free a block older than the window. */
void program_free_older(struct program *p, uint64_t size, uint32_t stack);
/* Add a block in use at the end that no event mentions. */
void program_older(struct program *p, uint64_t size, uint32_t stack);
void program_finish(struct program *p);
void program_end(struct program *p);

#endif
