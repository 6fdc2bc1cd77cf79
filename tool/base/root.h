/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ROOT_H
#define TOOL_ROOT_H

/*
 * Check --root, the folder with another machine's files. Returns EXIT_FINE if `root` can be
 * read, or is NULL or "" (this machine); else an exit code, and the reason is on standard
 * error.
 */
int root_check(const char *command, const char *root);

#endif
