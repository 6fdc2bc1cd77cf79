/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGE_H
#define TOOL_PAGE_H

/*
 * The page of the views, viewer/page.html, as it was bundled: HTML with its script and its
 * style in it. scripts/embed.py makes the source of these from the file.
 */

#include <stddef.h>

extern const unsigned char page_bytes[];
extern const size_t page_length;

/* The place of a report's answers in the page: the JSON object goes between both. */
#define PAGE_ANSWERS "<script type=\"application/json\" id=\"answers\">"
#define PAGE_ANSWERS_END "</script>"
/* The page may ask its server; a report replaces this, so that nothing leaves it. */
#define PAGE_MAY_CONNECT "connect-src 'self'"
#define PAGE_MAY_NOT_CONNECT "connect-src 'none'"

#endif
