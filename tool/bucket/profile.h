/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PROFILE_H
#define TOOL_PROFILE_H

/*
 * The files of the AWS tools, ~/.aws/credentials and ~/.aws/config: sections, and keys with
 * values in them.
 *
 *     [default]
 *     aws_access_key_id = ...
 */

#include <stddef.h>

/* A key that is sought, and its value, the caller's to free; NULL: not found. */
struct profile_entry {
    const char *key;
    char *value;
};

/*
 * Find the values of keys in `section` of a file. It is read once, so they are of one
 * version of it, and a pipe will do. A value stays NULL without file, section, key or memory.
 * The last of equal keys counts.
 */
void profile_find(const char *path, const char *section, struct profile_entry *entries,
                  size_t count);

#endif
