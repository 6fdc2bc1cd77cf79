/* SPDX-License-Identifier: Apache-2.0 */

/* Labels have a fixed buffer, so that no file can make them large. Cost: O(bytes kept). */
#include "explain/site/label.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
dryi_label_init(struct dryi_label *label)
{
    label->length = 0;
    label->bytes[0] = '\0';
}

static void
append(struct dryi_label *label, const char *bytes, size_t length)
{
    memcpy(label->bytes + label->length, bytes, length);
    label->length += length;
    label->bytes[label->length] = '\0';
}

/* Return whether the byte continues a UTF-8 character. */
static int
is_inside(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static const char ellipsis[] = "\xe2\x80\xa6";
#define ELLIPSIS_BYTES (sizeof ellipsis - 1)

void
dryi_label_add(struct dryi_label *label, const char *bytes, size_t length, size_t limit)
{
    size_t capacity = DRYI_LABEL_BYTES - 1 - label->length;
    if (limit > capacity)
        limit = capacity;
    if (length <= limit) {
        append(label, bytes, length);
        return;
    }
    if (limit < ELLIPSIS_BYTES)
        return;
    size_t front = (limit - ELLIPSIS_BYTES) / 2;
    size_t back = limit - ELLIPSIS_BYTES - front;
    for (int i = 0; i < 3 && front > 0 && is_inside(bytes[front]); i++)
        front--;
    for (int i = 0; i < 3 && back > 0 && is_inside(bytes[length - back]); i++)
        back--;
    append(label, bytes, front);
    append(label, ellipsis, ELLIPSIS_BYTES);
    append(label, bytes + length - back, back);
}

void
dryi_label_format(struct dryi_label *label, const char *format, ...)
{
    size_t capacity = DRYI_LABEL_BYTES - label->length;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(label->bytes + label->length, capacity, format, args);
    va_end(args);
    if (length > 0)
        label->length += (size_t)length < capacity ? (size_t)length : capacity - 1;
}
