/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WRITER_H
#define TOOL_WRITER_H

/*
 * Bytes on their way to a sink: buffered, and with a failure that stays. Whoever writes asks
 * once, at the end; after a failure nothing more is written.
 *
 * Foreign bytes become valid UTF-8 without control characters in every form; what is not
 * becomes '?'. `length` of a NULL text is not looked at.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

#include "base/progress.h"

struct writer {
    struct dry_sink sink;
    struct progress *progress; /* NULL: none; counts bytes written */
    char *buffer;
    size_t used;
    uint64_t written; /* with what is still in the buffer */
    enum dry_status status;
    struct dry_error err;
};

/* Without memory the writer has failed from the beginning. writer_finish() is due. */
void writer_init(struct writer *w, const struct dry_sink *sink,
                 struct progress *progress);
/* Everything out; the first failure. `err` may be NULL. */
enum dry_status writer_finish(struct writer *w, struct dry_error *err);
/* A failure of the one who writes: no memory, say. The first one stays. */
__attribute__((format(printf, 3, 4))) void writer_fail(struct writer *w,
                                                       enum dry_status status,
                                                       const char *format, ...);

void writer_bytes(struct writer *w, const void *bytes, size_t count);
void writer_put(struct writer *w, const char *text);
void writer_char(struct writer *w, char c);
void writer_unsigned(struct writer *w, uint64_t value);
void writer_signed(struct writer *w, int64_t value);
/* At most 255 bytes. */
__attribute__((format(printf, 2, 3))) void writer_format(struct writer *w,
                                                         const char *format, ...);

/* Made printable, nothing else. */
void writer_text(struct writer *w, const char *bytes, size_t length);
/* Between quotes; NULL: null. '<' is written so that it can stand inside HTML. */
void writer_json(struct writer *w, const char *bytes, size_t length);
/* Write XML, content or an attribute's value; characters that XML forbids become '?'. */
void writer_xml(struct writer *w, const char *bytes, size_t length);
/*
 * A field of RFC 4180, always quoted. One that a spreadsheet would take for a formula gets
 * an apostrophe in front.
 */
void writer_csv(struct writer *w, const char *bytes, size_t length);

#endif
