/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_FOLDERS_H
#define TOOL_MCP_FOLDERS_H

/*
 * The folders that the server may read. Links and ".." in a name are resolved, and the
 * result must be a regular file below one of the folders. Other files look as if they did
 * not exist. A link that is swapped between check and reading is not detected: whoever
 * may write to a served folder decides what is read there.
 */

#include <stdbool.h>
#include <stddef.h>

struct mcp_folders {
    char **paths; /* absolute, resolved */
    size_t count;
};

/* Take the folders of the command line. Returns an exit_code; the reason is printed. Call
   mcp_folders_close() in any case. */
int mcp_folders_open(const char *const *names, size_t count, struct mcp_folders *folders);
void mcp_folders_close(struct mcp_folders *folders);

/*
 * Find a file by its absolute path, or by its path below the first folder that has it.
 * Returns the resolved path, which the caller frees; NULL: not found, or memory ran out.
 */
char *mcp_folders_find(const struct mcp_folders *folders, const char *name);

/*
 * List possible recordings and logs, by their names, one per line with the size. Skips
 * hidden folders, links, and folders nested deeper than 16; stops after 2,000 files with
 * a line that says so. The caller frees the text; NULL: memory ran out.
 */
char *mcp_folders_list(const struct mcp_folders *folders, size_t *length);

#endif
