/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_PAGE_H
#define TOOL_MCP_PAGE_H

/*
 * Pages of a long answer. A page consists of whole lines if one fits; its size is counted
 * as an encoded JSON string. A cursor names the next page by an offset and a hash of the
 * whole answer. The answer is generated again for each page, and the hash reveals that
 * the file has changed in between.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct mcp_page {
    size_t begin, end; /* offsets in the text */
    bool is_last;
    char cursor[48]; /* cursor of the next page; "": this is the last page */
};

/* Return how many bytes of the text fit into `budget` bytes of JSON, but at least one
   character. Lines stay whole if one fits. O(result). */
size_t mcp_page_measure(const char *text, size_t length, size_t budget);

/* Find the page that `cursor` names; NULL: the first. Returns NULL and sets *page, or
   returns what is wrong with the cursor. O(length). */
const char *mcp_page_find(const char *text, size_t length, const char *cursor,
                          size_t budget, struct mcp_page *page);

/* Make a JSON string of a page, with a last line that tells how to get the next. Invalid
   UTF-8 becomes '?'. NULL: memory ran out. */
json_t *mcp_page_make(const char *text, size_t length, const struct mcp_page *page);

#endif
