/* SPDX-License-Identifier: Apache-2.0 */
/* A growing buffer of encoded fields, see proto.h. Cost: O(bytes). */
#include "export/proto.h"

#include <stdlib.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_LENGTH = 2 };

#define VARINT_BYTES_MAX 10
#define LENGTH_BYTES 4
#define LENGTH_MAX (((size_t)1 << (7 * LENGTH_BYTES)) - 1)

void
proto_finish(struct proto *p)
{
    free(p->bytes);
    *p = (struct proto){0};
}

void
proto_clear(struct proto *p)
{
    p->used = 0;
}

static bool
make_room(struct proto *p, size_t count)
{
    if (p->failed || count <= p->capacity - p->used)
        return !p->failed;
    size_t capacity = p->capacity ? p->capacity : 4096;
    while (capacity - p->used < count && capacity <= SIZE_MAX / 4)
        capacity *= 2;
    unsigned char *bytes =
        capacity - p->used < count ? NULL : realloc(p->bytes, capacity);
    if (!bytes) {
        p->failed = true;
        return false;
    }
    p->bytes = bytes;
    p->capacity = capacity;
    return true;
}

static void
put_varint(struct proto *p, uint64_t value)
{
    if (!make_room(p, VARINT_BYTES_MAX))
        return;
    for (; value >= 0x80; value >>= 7)
        p->bytes[p->used++] = (unsigned char)(value | 0x80);
    p->bytes[p->used++] = (unsigned char)value;
}

static void
put_tag(struct proto *p, uint32_t field, enum wire_type type)
{
    put_varint(p, (uint64_t)field << 3 | (uint64_t)type);
}

void
proto_number(struct proto *p, uint32_t field, uint64_t value)
{
    put_tag(p, field, WIRE_VARINT);
    put_varint(p, value);
}

void
proto_bytes(struct proto *p, uint32_t field, const void *bytes, size_t count)
{
    put_tag(p, field, WIRE_LENGTH);
    put_varint(p, count);
    if (!make_room(p, count + 1))
        return;
    memcpy(p->bytes + p->used, bytes, count);
    p->used += count;
}

void
proto_text(struct proto *p, uint32_t field, const char *text)
{
    proto_bytes(p, field, text, strlen(text));
}

size_t
proto_begin(struct proto *p, uint32_t field)
{
    put_tag(p, field, WIRE_LENGTH);
    if (make_room(p, LENGTH_BYTES))
        p->used += LENGTH_BYTES;
    return p->used;
}

void
proto_end(struct proto *p, size_t mark)
{
    if (p->failed)
        return;
    size_t length = p->used - mark;
    if (length > LENGTH_MAX) {
        p->failed = true;
        return;
    }
    unsigned char *at = p->bytes + mark - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        unsigned more = i + 1 < LENGTH_BYTES ? 0x80 : 0;
        at[i] = (unsigned char)((length >> (7 * i) & 0x7f) | more);
    }
}
