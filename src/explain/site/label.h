/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LABEL_H
#define DRYI_LABEL_H

/*
 * A short text made of bytes of a file.
 *
 * A file may hold a name of a megabyte and use it in every frame, so names are never
 * copied whole. A name longer than its limit loses its middle, because the ends of names
 * tell more. Bytes are as the file has them, not made safe for a terminal.
 */

#include <stddef.h>

#define DRYI_LABEL_BYTES 1024u

struct dryi_label {
    size_t length;
    char bytes[DRYI_LABEL_BYTES]; /* zero-terminated */
};

void dryi_label_init(struct dryi_label *label);

/* Append, of these bytes at most `limit` (at least 16): what does not fit is cut. */
void dryi_label_add(struct dryi_label *label, const char *bytes, size_t length,
                    size_t limit);

/* Append text of ours. */
__attribute__((format(printf, 2, 3))) void dryi_label_format(struct dryi_label *label,
                                                             const char *format, ...);

#endif
