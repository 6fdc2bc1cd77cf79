/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PROFILE_H
#define TOOL_PROFILE_H

/*
 * The files of the AWS tools, ~/.aws/credentials and ~/.aws/config: sections of keys and
 * values.
 *
 *     [default]
 *     aws_access_key_id = ...
 */

#include <stddef.h>

/* A key to find, and its value, which the caller frees; NULL if not found. */
struct profile_entry {
    const char *key;
    char *value;
};

/*
 * Find the values of keys in `section` of a file. The file is read once, so all values
 * are from one version of it, and it may be a pipe. A value stays NULL if file, section
 * or key are missing, or memory ran out. The last of equal keys counts.
 */
void profile_find(const char *path, const char *section, struct profile_entry *entries,
                  size_t count);

#endif
