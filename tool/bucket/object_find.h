/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OBJECT_FIND_H
#define TOOL_OBJECT_FIND_H

/*
 * Find the objects that s3://BUCKET/KEY names.
 *
 * If an object has exactly this key, that object alone is meant. Any other key is a
 * folder, with or without a slash, and names all objects below; or it is a shell pattern.
 * Hidden names and folders deeper than OBJECT_DEPTH_MAX are skipped.
 */

#include <stdbool.h>
#include <stdint.h>

#define OBJECT_DEPTH_MAX 16u

/* Take an object; !is_named: found in a folder. All but EXIT_FINE end the search. */
typedef int object_found(void *self, const char *path, bool is_named, uint64_t bytes,
                         uint64_t stamp);

/* Find objects for `command`. Returns an exit_code; stderr has the reason. */
int object_find(const char *command, const char *name, object_found *add, void *self);

#endif
