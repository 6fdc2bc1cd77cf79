/* SPDX-License-Identifier: Apache-2.0 */
/* See pack.h. Numbers are written in the machine's byte order, little-endian. */
#include "view/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ROW_BYTES 32 /* bytes per column in the head */
#define HEAD_BYTES 8

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a pack is little-endian");

static size_t
get_width(enum pack_type type)
{
    static const unsigned char widths[] = {0, 1, 4, 8, 8};
    return widths[type];
}

unsigned
pack_column(struct pack *p, const char *name, enum pack_type type)
{
    assert(p->count < PACK_COLUMNS_MAX && strlen(name) <= PACK_NAME_BYTES);
    p->columns[p->count] = (struct pack_column){.name = name, .type = type};
    return p->count++;
}

static void
add(struct pack *p, unsigned column, const void *bytes, size_t count)
{
    struct pack_column *c = &p->columns[column];
    if (c->capacity - c->used < count) {
        size_t capacity = c->capacity * 2 + count + 256;
        unsigned char *larger = p->has_failed ? NULL : realloc(c->bytes, capacity);
        p->has_failed |= !larger;
        if (!larger)
            return;
        c->bytes = larger;
        c->capacity = capacity;
    }
    if (count > 0)
        memcpy(c->bytes + c->used, bytes, count);
    c->used += count;
}

void
pack_u8(struct pack *p, unsigned column, uint8_t value)
{
    assert(p->columns[column].type == PACK_U8);
    add(p, column, &value, sizeof value);
}

void
pack_u32(struct pack *p, unsigned column, uint32_t value)
{
    assert(p->columns[column].type == PACK_U32);
    add(p, column, &value, sizeof value);
}

void
pack_u64(struct pack *p, unsigned column, uint64_t value)
{
    assert(p->columns[column].type == PACK_U64);
    add(p, column, &value, sizeof value);
}

void
pack_f64(struct pack *p, unsigned column, double value)
{
    assert(p->columns[column].type == PACK_F64);
    add(p, column, &value, sizeof value);
}

void
pack_text(struct pack *p, unsigned column, const char *bytes, size_t length)
{
    assert(p->columns[column].type == PACK_U8);
    add(p, column, bytes, length);
}

size_t
pack_length(const struct pack *p, unsigned column)
{
    return p->columns[column].used / get_width(p->columns[column].type);
}

static size_t
round_up(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

static void
put_u32(unsigned char *at, size_t value)
{
    uint32_t narrow = (uint32_t)value;
    memcpy(at, &narrow, sizeof narrow);
}

static size_t
total_bytes(const struct pack *p)
{
    size_t bytes = HEAD_BYTES + (size_t)p->count * ROW_BYTES;
    for (unsigned i = 0; i < p->count; i++)
        bytes = round_up(bytes) + p->columns[i].used;
    return round_up(bytes);
}

bool
pack_write(const struct pack *p, struct answer *answer)
{
    size_t length = total_bytes(p);
    unsigned char *bytes =
        p->has_failed || length > UINT32_MAX ? NULL : calloc(1, length);
    if (!bytes)
        return false;
    static const unsigned char magic[4] = {'D', 'S', 'V', '1'};
    memcpy(bytes, magic, sizeof magic);
    put_u32(bytes + 4, p->count);
    size_t at = HEAD_BYTES + (size_t)p->count * ROW_BYTES;
    for (unsigned i = 0; i < p->count; i++) {
        const struct pack_column *c = &p->columns[i];
        unsigned char *row = bytes + HEAD_BYTES + (size_t)i * ROW_BYTES;
        at = round_up(at);
        memcpy(row, c->name, strlen(c->name));
        put_u32(row + 16, c->type);
        put_u32(row + 24, at);
        put_u32(row + 28, pack_length(p, i));
        if (c->used > 0)
            memcpy(bytes + at, c->bytes, c->used);
        at += c->used;
    }
    *answer = (struct answer){.bytes = bytes, .length = length};
    return true;
}

void
pack_finish(struct pack *p)
{
    for (unsigned i = 0; i < p->count; i++)
        free(p->columns[i].bytes);
    *p = (struct pack){0};
}
