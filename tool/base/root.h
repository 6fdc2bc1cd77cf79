/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ROOT_H
#define TOOL_ROOT_H

/*
 * Of --root, the folder with another machine's files: EXIT_FINE if it can be read, or is NULL or
 * "" (this machine). Else an exit code; what is wrong has been said.
 */
int root_check(const char *command, const char *root);

#endif
