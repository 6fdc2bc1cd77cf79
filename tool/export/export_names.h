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
    uint32_t *sites; /* frame that names each stack, or DRY_NONE */
};

/* Find the frame that owns each stack, at the cost of <drystone/owners.h>. */
enum dry_status export_names_init(struct export_names *names,
                                  const struct dry_timeline *timeline,
                                  struct dry_error *err);
void export_names_finish(struct export_names *names);

/* Return the frame that names a stack. DRY_NONE if there is no stack or frame. */
uint32_t export_names_site(const struct export_names *names, uint32_t stack);

/* Fits every name below; longer ones are cut and end in "...". */
#define EXPORT_NAME_BYTES 256

/* Write "models.py:174 update_nodes" or "autograd DivBackward0", made printable. */
const char *export_frame_name(const struct export_names *names, uint32_t frame,
                              char name[EXPORT_NAME_BYTES]);
/* Write the name of the site, or "(before the recording)" or "(no stack)". */
const char *export_allocation_name(const struct export_names *names,
                                   const struct dry_allocation *allocation,
                                   char name[EXPORT_NAME_BYTES]);
/* Write "default" or "(0, 3)"; "" if the record does not tell. */
const char *export_pool_name(const struct dry_lane *lane, char name[EXPORT_NAME_BYTES]);
/* Write "0" or "0x55d2c0". */
const char *export_stream_name(const struct dry_lane *lane, char name[EXPORT_NAME_BYTES]);
/* Write the size class and lane of a segment: "large, stream 0, pool (0, 3)". */
const char *export_lane_class_name(const struct dry_lane *lane, bool is_large,
                                   char name[EXPORT_NAME_BYTES]);

/*
 * The frames of a stack, printable, the innermost first, one a line, until the capacity is used
 * up. Return whether it was cut.
 */
bool export_stack_text(const struct export_names *names, uint32_t stack, char *to,
                       size_t capacity);

/*
 * A snapshot stores a long string once and may refer to it a million times. A format that
 * repeats strings must therefore cut them: displayed names to EXPORT_NAME_BYTES, strings
 * in a table of frames to this length.
 */
#define EXPORT_STRING_BYTES 4096
/* Return how many bytes of a string to write, without splitting a character. */
size_t export_cut(const char *bytes, size_t length);
const char *export_short_text(const char *bytes, size_t length,
                              char name[EXPORT_NAME_BYTES]);

/* Return the part of a path after its last '/' or '\'. */
const char *export_base_name(const char *path, size_t *length);

#endif
