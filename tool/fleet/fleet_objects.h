/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_OBJECTS_H
#define TOOL_FLEET_OBJECTS_H

/*
 * The objects of a store that s3://BUCKET/KEY stands for.
 *
 * An object of exactly this key is itself. Else the key is a folder, with or without its
 * slash, and stands for what lies below; or it is a pattern, as of a shell. Hidden names and
 * folders deeper than 16 are passed over, as on a disk.
 */

#include <stdbool.h>
#include <stdint.h>

/* Take an object; `is_named`: not just found below. Anything but EXIT_FINE ends the search. */
typedef int fleet_objects_add(void *self, const char *path, bool is_named, uint64_t bytes,
                              uint64_t stamp);

/* An exit_code; the reason is on standard error. */
int fleet_objects_find(const char *name, fleet_objects_add *add, void *self);

#endif
