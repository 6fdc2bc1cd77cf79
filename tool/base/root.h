/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ROOT_H
#define TOOL_ROOT_H

/*
 * Check --root, a folder with another machine's files. Returns EXIT_FINE if `root` is
 * readable, or is NULL or "" (this machine). Otherwise prints the reason and returns an
 * exit code.
 */
int root_check(const char *command, const char *root);

#endif
