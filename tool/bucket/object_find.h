/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OBJECT_FIND_H
#define TOOL_OBJECT_FIND_H

/*
 * The objects of a store that s3://BUCKET/KEY stands for.
 *
 * An object of exactly this key is itself. Any other key is a folder, with or without its
 * slash, and stands for what lies below. Or it is a pattern, as of a shell. Hidden names and
 * folders deeper than OBJECT_DEPTH_MAX are passed over.
 */

#include <stdbool.h>
#include <stdint.h>

#define OBJECT_DEPTH_MAX 16u

/* Take an object; `is_named`: not just found below. Anything but EXIT_FINE ends the search. */
typedef int object_found(void *self, const char *path, bool is_named, uint64_t bytes,
                         uint64_t stamp);

/* Find for `command`. An exit_code; the reason is on standard error. */
int object_find(const char *command, const char *name, object_found *add, void *self);

#endif
