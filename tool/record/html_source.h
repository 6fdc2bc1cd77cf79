/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_HTML_SOURCE_H
#define TOOL_HTML_SOURCE_H

/*
 * Take the snapshot out of a page that torch.cuda._memory_viz wrote.
 *
 * Such a page has a list of files, each with its name and its bytes in base64. The bytes of
 * the first file are decoded while they are read, in constant memory. Other scripts and
 * texts of the page are passed over.
 */

#include <stdbool.h>

#include <drystone/status.h>
#include <drystone/trace.h>

struct html_source;

/* Return true if bytes begin as HTML does, after blanks. */
bool html_source_is_html(const unsigned char *bytes, size_t count);

/*
 * Read `page` up to the first file's bytes. `page` must outlive the source. FORMAT if the page
 * has no file, with the byte of the page; LIMIT if none begins in 64 MiB.
 */
enum dry_status html_source_create(const struct dry_source *page,
                                   struct html_source **html, struct dry_error *err);
/* Free a html_source, which may be NULL. */
void html_source_destroy(struct html_source *html);

/* Return true if the failure of the last read was in the page, not in what it was read from. */
bool html_source_is_at_fault(const struct html_source *html);

/* The read function of a dry_source whose self is a html_source. */
enum dry_status html_source_read(void *self, void *buffer, size_t capacity, size_t *got,
                                 struct dry_error *err);

#endif
