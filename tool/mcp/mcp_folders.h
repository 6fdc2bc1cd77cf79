/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_FOLDERS_H
#define TOOL_MCP_FOLDERS_H

/*
 * The folders that are served. A name is followed through all links and "..", and what it
 * leads to must be a plain file below one of them. A file outside looks as if it was not
 * there. (A link that somebody swaps between the check and the reading is not caught: who
 * can write into a folder that is served decides what is read from there.)
 */

#include <stdbool.h>
#include <stddef.h>

struct mcp_folders {
    char **paths; /* absolute, without links */
    size_t count;
};

/* Take the folders of the command line. An exit_code; the reason is on standard error.
   mcp_folders_close() is due in either case. */
int mcp_folders_open(const char *const *names, size_t count, struct mcp_folders *folders);
void mcp_folders_close(struct mcp_folders *folders);

/*
 * Find a file by its absolute path, or by its path below the first folder that has it.
 * Returns the path without links, the caller's to free; NULL: there is none, or no memory.
 */
char *mcp_folders_find(const struct mcp_folders *folders, const char *name);

/*
 * List what may be a recording or a log, by its name: a line each, with the size. Hidden
 * folders, links and what is deeper than 16 folders are passed over; after 2,000 files a line
 * says that there are more. The text is the caller's to free; NULL: there was no memory.
 */
char *mcp_folders_list(const struct mcp_folders *folders, size_t *length);

#endif
