/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WRITER_H
#define TOOL_WRITER_H

/*
 * A buffered writer to a sink. The first failure is kept and nothing is written after it,
 * so the caller checks once, in writer_finish().
 *
 * Text from files becomes valid UTF-8 without control characters; other bytes become '?'.
 * If a text is NULL, its `length` is ignored.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "base/progress.h"

struct writer {
    struct dry_sink sink;
    struct progress *progress; /* counts the bytes written; NULL: none */
    char *buffer;
    size_t used;
    uint64_t written; /* bytes accepted, including those still in the buffer */
    enum dry_status status;
    struct dry_error err;
};

/* Initialize a writer. If memory runs out, the writer starts in the failed state. Call
   writer_finish() in any case. */
void writer_init(struct writer *w, const struct dry_sink *sink,
                 struct progress *progress);
/* Flush the buffer and free it. Returns the first failure. `err` may be NULL. */
enum dry_status writer_finish(struct writer *w, struct dry_error *err);
/* Record a failure of the caller, such as lack of memory, unless one is recorded. */
__attribute__((format(printf, 3, 4))) void writer_fail(struct writer *w,
                                                       enum dry_status status,
                                                       const char *format, ...);

void writer_bytes(struct writer *w, const void *bytes, size_t count);
void writer_put(struct writer *w, const char *text);
void writer_char(struct writer *w, char c);
void writer_unsigned(struct writer *w, uint64_t value);
void writer_signed(struct writer *w, int64_t value);
/* Write formatted text of at most 255 bytes. */
__attribute__((format(printf, 2, 3))) void writer_format(struct writer *w,
                                                         const char *format, ...);

/* Write a text from a file, made printable but not quoted or escaped. */
void writer_text(struct writer *w, const char *bytes, size_t length);
/* Write a quoted JSON string; NULL becomes null. '<' is escaped, so the JSON may be
   embedded in HTML. */
void writer_json(struct writer *w, const char *bytes, size_t length);
/* Write XML, content or an attribute's value; characters that XML forbids become '?'. */
void writer_xml(struct writer *w, const char *bytes, size_t length);
/* Write a CSV field (RFC 4180), always quoted. A text that a spreadsheet would take for a
   formula gets an apostrophe in front. */
void writer_csv(struct writer *w, const char *bytes, size_t length);

#endif
