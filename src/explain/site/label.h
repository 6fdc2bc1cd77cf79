/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LABEL_H
#define DRYI_LABEL_H

/*
 * A short text with bytes of a file.
 *
 * A file may use a name of a megabyte in every frame, so names are never copied whole. A name
 * longer than its limit loses its middle, because its ends identify it best. Bytes are copied as
 * they are in the file; the caller makes them safe for a terminal.
 */

#include <stddef.h>

#define DRYI_LABEL_BYTES 1024u

struct dryi_label {
    size_t length;
    char bytes[DRYI_LABEL_BYTES]; /* zero-terminated */
};

void dryi_label_init(struct dryi_label *label);

/* Append bytes. If there are more than `limit` (at least 16), an ellipsis replaces the middle. */
void dryi_label_add(struct dryi_label *label, const char *bytes, size_t length,
                    size_t limit);

/* Append formatted text of the library's own. */
__attribute__((format(printf, 2, 3))) void dryi_label_format(struct dryi_label *label,
                                                             const char *format, ...);

#endif
