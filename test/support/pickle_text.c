/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pickle_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void
put(struct pickle_text *p, const void *bytes, size_t count)
{
    if (count > sizeof p->bytes - p->count)
        abort();
    memcpy(p->bytes + p->count, bytes, count);
    p->count += count;
}

static const char *
put_string(struct pickle_text *p, const char *text)
{
    size_t length = strcspn(text, "'");
    unsigned char head[5] = {'X', (unsigned char)length, (unsigned char)(length >> 8)};
    put(p, head, sizeof head);
    put(p, text, length);
    return text + length + 1;
}

static const char *
put_number(struct pickle_text *p, const char *text)
{
    char *end;
    int64_t number = strtoll(text, &end, 10);
    put(p, "\x8a\x08", 2);
    put(p, &number, sizeof number);
    return end;
}

static const char *
put_next(struct pickle_text *p, const char *text)
{
    char c = *text++;
    switch (c) {
    case ' ':
        return text;
    case '\'':
        return put_string(p, text);
    case '#':
        return put_number(p, text);
    case '=':
        put(p, "\x86", 1);
        return text;
    case '+':
        put(p, "\x88", 1);
        return text;
    case '-':
        put(p, "\x89", 1);
        return text;
    case 'm':
        put(p, "\x94", 1);
        return text;
    case '%':
        put(p, "G\x3f\xe0\0\0\0\0\0\0", 9);
        return text;
    case 'q':
    case 'h':
        put(p, &c, 1);
        put(p, &(char){(char)(*text - '0')}, 1);
        return text + 1;
    default:
        put(p, &c, 1);
        return text;
    }
}

void
pickle_text_init(struct pickle_text *p, const char *text)
{
    p->count = 0;
    put(p, "\x80\x04", 2);
    while (*text)
        text = put_next(p, text);
}
