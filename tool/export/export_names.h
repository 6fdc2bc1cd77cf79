/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_NAMES_H
#define TOOL_EXPORT_NAMES_H

/* Short names of stacks, frames, streams and pools. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/timeline.h>
#include <drystone/trace.h>

struct export_names {
    const struct dry_trace *trace;
    uint32_t *sites; /* by stack: the frame it is known by; DRY_NONE */
};

/* A stack is known by its owner, <drystone/owners.h>. The cost is that of the owners. */
enum dry_status export_names_init(struct export_names *names,
                                  const struct dry_timeline *timeline,
                                  struct dry_error *err);
void export_names_finish(struct export_names *names);

/* DRY_NONE: no stack, or one without frames. */
uint32_t export_names_site(const struct export_names *names, uint32_t stack);

/* Long enough for every name below; longer ones end in "...". */
#define EXPORT_NAME_BYTES 256

/* "models.py:174 update_nodes", "autograd DivBackward0", printable. */
const char *export_frame_name(const struct export_names *names, uint32_t frame,
                              char name[EXPORT_NAME_BYTES]);
/* Return the name of its site; else "(before the recording)", "(no stack)". */
const char *export_allocation_name(const struct export_names *names,
                                   const struct dry_allocation *allocation,
                                   char name[EXPORT_NAME_BYTES]);
/* "default", "(0, 3)"; "" where the record does not say. */
const char *export_pool_name(const struct dry_lane *lane, char name[EXPORT_NAME_BYTES]);
/* "0", "0x55d2c0". */
const char *export_stream_name(const struct dry_lane *lane, char name[EXPORT_NAME_BYTES]);
/* "large, stream 0, pool (0, 3)": the size class and the lane of a segment. */
const char *export_lane_class_name(const struct dry_lane *lane, bool is_large,
                                   char name[EXPORT_NAME_BYTES]);

/*
 * The frames of a stack, printable, the innermost first, one a line, beginning with the
 * frame at `from`, until `frame_max` or the room is used up; *is_cut tells. The length.
 */
struct export_stack_part {
    uint32_t stack;
    size_t from, frame_max;
};
size_t export_stack_text(const struct export_names *names,
                         const struct export_stack_part *part, char *to, size_t capacity,
                         bool *is_cut);
/* Return the position of the site in its stack; 0 if there is none. */
size_t export_site_position(const struct export_names *names, uint32_t stack);

/*
 * A file can say a long string once and mean it a million times, so a format that repeats
 * strings cuts them. A name that is shown is cut as the names above; a string in a table of
 * frames is cut here.
 */
#define EXPORT_STRING_BYTES 4096
/* How much of a string to write: whole characters. */
size_t export_cut(const char *bytes, size_t length);
const char *export_short_text(const char *bytes, size_t length,
                              char name[EXPORT_NAME_BYTES]);

/* The part of a path behind its last slash of either kind. */
const char *export_base_name(const char *path, size_t *length);

#endif
