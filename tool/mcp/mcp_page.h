/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_PAGE_H
#define TOOL_MCP_PAGE_H

/*
 * A long answer, page by page. A page has whole lines if one fits, and its size is that of
 * the JSON string it becomes. A cursor names the next page: an offset, and a hash of the
 * whole answer. The answer is made again for each page, so the hash tells whether the file
 * has changed in between.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct mcp_page {
    size_t begin, end; /* of the text */
    bool is_last;
    char cursor[48]; /* of the page behind; "" if this is the last */
};

/* Tell how many bytes of the text become at most `budget` bytes of JSON; at least one
   character, if there is one. Lines stay whole if one fits. O(result). */
size_t mcp_page_measure(const char *text, size_t length, size_t budget);

/*
 * Find the page that `cursor` names; NULL: the first. Returns NULL and sets *page, or the
 * reason why not. O(length).
 */
const char *mcp_page_find(const char *text, size_t length, const char *cursor,
                          size_t budget, struct mcp_page *page);

/*
 * Make a JSON string of a page, with a last line that says how to get the next one. Bytes
 * that are no UTF-8 become '?'. NULL: there was no memory.
 */
json_t *mcp_page_make(const char *text, size_t length, const struct mcp_page *page);

#endif
