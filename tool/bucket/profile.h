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

/*
 * Find the value of `key` in `section` of a file. The result is the caller's to free; NULL:
 * there is no such file, section, key or memory. The last of equal keys counts.
 */
char *profile_find(const char *path, const char *section, const char *key);

#endif
