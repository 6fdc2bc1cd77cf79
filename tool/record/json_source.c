/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walk a tree of JSON once, in order, with an explicit stack. Each step appends a key or
 * value to a small buffer. Reading empties the buffer before it takes more steps.
 */
#include "record/json_source.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json_in.h"

#define TEXT_BYTES_MAX (UINT64_C(1) << 30)
/* Bytes that jansson takes for a byte of the text: each text also exists in the buffer in
   which it was parsed. */
#define CHARACTER_BYTES 3u
#define DEPTH_MAX 100u
#define READY_BYTES ((size_t)64 << 10)
#define PROTOCOL 4
#define WINDOW_BYTES ((size_t)64 << 10)
#define HELD_BYTES 48

/* The opcodes that a pickle of JSON needs (CPython, Lib/pickletools.py). */
enum opcode {
    OP_PROTO = 0x80,
    OP_STOP = '.',
    OP_NONE = 'N',
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_BININT = 'J',
    OP_LONG1 = 0x8a,
    OP_BINFLOAT = 'G',
    OP_BINUNICODE = 'X',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_MARK = '(',
    OP_SETITEMS = 'u',
    OP_APPENDS = 'e',
};

/* A container that is being walked. */
struct level {
    json_t *node;
    void *item;   /* objects: the next member */
    size_t index; /* arrays: the next element */
};

struct json_source {
    json_t *root;
    struct level levels[DEPTH_MAX];
    unsigned depth;
    bool is_begun, is_ended;
    unsigned char *ready; /* bytes that were not read so far: ready[at..end) */
    size_t capacity, at, end;
};

/* --- parsing --- */

/*
 * The text on its way to jansson, which has no integers above 2^63 - 1. Snapshots hold
 * some, such as a line or size that fell below zero. Integers from there to 2^64 - 1 are
 * passed as a string that begins with NUL, and become integers again in the pickle. A
 * positive integer is held until its end is known; all other bytes pass one by one.
 */
struct text {
    const struct dry_source *source;
    struct dry_error *err;
    uint64_t byte_count;
    uint64_t tree_bytes, tree_bytes_max; /* estimated memory of jansson */
    enum dry_status status;              /* the source's status */
    unsigned char window[WINDOW_BYTES];
    size_t at, end;
    bool is_in_string, is_escaped, is_in_number; /* state after the last byte passed */
    char held[HELD_BYTES];
    size_t held_at, held_count;
};

/* Return the next byte without consuming it; -1 at the end or after a failure. */
static int
peek_byte(struct text *t)
{
    if (t->at < t->end)
        return t->window[t->at];
    t->at = t->end = 0;
    if (t->status == DRY_OK)
        t->status = t->source->read(t->source->self, t->window, sizeof t->window, &t->end,
                                    t->err);
    t->byte_count += t->end;
    t->tree_bytes += CHARACTER_BYTES * t->end;
    if (t->status == DRY_OK && t->tree_bytes > t->tree_bytes_max)
        t->status = fail_at(t->err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                            "this JSON needs more memory than is to be had: give the "
                            "pickle itself, which needs far less");
    if (t->status == DRY_OK && t->byte_count > TEXT_BYTES_MAX)
        t->status = fail_at(t->err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                            "more than 1 GiB of JSON: give the pickle itself, which is "
                            "read at once and has no such limit");
    return t->status == DRY_OK && t->end ? t->window[0] : -1;
}

static bool
is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool
continues_number(int c)
{
    return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
}

/* Read digits into `held`; as a string, if their number is too large for jansson. */
static void
hold_integer(struct text *t)
{
    uint64_t value = 0;
    bool is_over = false;
    int c;
    t->held_at = t->held_count = 0;
    while (is_digit(c = peek_byte(t)) && t->held_count < HELD_BYTES - 1) {
        is_over |= __builtin_mul_overflow(value, 10, &value) ||
                   __builtin_add_overflow(value, (uint64_t)(c - '0'), &value);
        t->held[t->held_count++] = (char)c;
        t->at++;
    }
    if (is_over || value <= INT64_MAX || continues_number(c))
        return;
    int length = snprintf(t->held, sizeof t->held, "\"\\u0000u64:%llu\"",
                          (unsigned long long)value);
    t->held_count = (size_t)length;
}

static void
pass_byte(struct text *t, int c, unsigned char *to)
{
    t->tree_bytes += t->is_in_string ? 0 : json_in_measure_node(c);
    if (t->is_in_string)
        t->is_in_string = c != '"' || t->is_escaped;
    else
        t->is_in_string = c == '"';
    t->is_escaped = t->is_in_string && c == '\\' && !t->is_escaped;
    t->is_in_number = !t->is_in_string && continues_number(c);
    *to = (unsigned char)c;
    t->at++;
}

static size_t
read_text(void *buffer, size_t capacity, void *self)
{
    struct text *t = self;
    unsigned char *to = buffer;
    size_t count = 0;
    while (count < capacity) {
        if (t->held_at < t->held_count) {
            to[count++] = (unsigned char)t->held[t->held_at++];
            continue;
        }
        int c = peek_byte(t);
        if (c < 0)
            break;
        if (is_digit(c) && !t->is_in_string && !t->is_in_number) {
            hold_integer(t);
            t->is_in_number = true;
        } else {
            pass_byte(t, c, to + count++);
        }
    }
    return t->status == DRY_OK ? count : (size_t)-1;
}

static enum dry_status
describe_json_error(const json_error_t *why, struct dry_error *err)
{
    enum json_error_code code = json_error_code(why);
    const char *advice =
        code == json_error_numeric_overflow ? "; numbers beyond 64 bits are refused" : "";
    if (code == json_error_out_of_memory)
        return fail_memory(err, "no memory for the JSON");
    uint64_t byte = why->position > 0 ? (uint64_t)why->position : 0;
    return fail_at(err, DRY_ERR_FORMAT, byte,
                   "JSON broken at line %d, column %d, byte %llu: %s%s", why->line,
                   why->column, (unsigned long long)byte, why->text, advice);
}

enum dry_status
json_source_create(const struct dry_source *source, uint64_t memory_bytes_max,
                   struct json_source **json, struct dry_error *err)
{
    struct text *text = calloc(1, sizeof *text);
    if (!text)
        return fail_memory(err, "no memory for the JSON");
    text->source = source;
    text->tree_bytes_max = memory_bytes_max;
    text->err = err;
    json_error_t why;
    json_t *root = json_load_callback(read_text, text, JSON_ALLOW_NUL, &why);
    enum dry_status status = text->status;
    free(text);
    struct json_source *made = root ? calloc(1, sizeof *made) : NULL;
    if (made) {
        made->root = root;
        *json = made;
        return DRY_OK;
    }
    json_decref(root);
    if (status != DRY_OK)
        return status;
    if (root)
        return fail_memory(err, "no memory for the JSON");
    return describe_json_error(&why, err);
}

void
json_source_destroy(struct json_source *json)
{
    if (!json)
        return;
    json_decref(json->root);
    free(json->ready);
    free(json);
}

/* --- walking --- */

static bool
put(struct json_source *j, const void *bytes, size_t count)
{
    if (count > j->capacity - j->end) {
        size_t wanted = j->capacity * 2 > READY_BYTES ? j->capacity * 2 : READY_BYTES;
        while (wanted - j->end < count)
            wanted *= 2;
        unsigned char *grown = realloc(j->ready, wanted);
        if (!grown)
            return false;
        j->ready = grown;
        j->capacity = wanted;
    }
    memcpy(j->ready + j->end, bytes, count);
    j->end += count;
    return true;
}

static bool
put_opcode(struct json_source *j, enum opcode opcode)
{
    return put(j, (unsigned char[]){(unsigned char)opcode}, 1);
}

static bool
put_string(struct json_source *j, const char *bytes, size_t length)
{
    unsigned char head[5] = {OP_BINUNICODE};
    for (unsigned i = 0; i < 4; i++)
        head[1 + i] = (unsigned char)(length >> 8 * i); /* `length` is at most 1 GiB */
    return put(j, head, sizeof head) && put(j, bytes, length);
}

static bool
put_integer(struct json_source *j, json_int_t value)
{
    bool is_short = value >= INT32_MIN && value <= INT32_MAX;
    unsigned char piece[10] = {is_short ? OP_BININT : OP_LONG1, 8};
    unsigned head = is_short ? 1 : 2, width = is_short ? 4 : 8;
    for (unsigned i = 0; i < width; i++)
        piece[head + i] = (unsigned char)((uint64_t)value >> 8 * i);
    return put(j, piece, head + width);
}

static bool
put_real(struct json_source *j, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned char piece[9] = {OP_BINFLOAT};
    for (unsigned i = 0; i < 8; i++)
        piece[1 + i] = (unsigned char)(bits >> (56 - 8 * i));
    return put(j, piece, sizeof piece);
}

/* Begin a container. Its elements follow in later steps. */
static enum dry_status
begin_container(struct json_source *j, json_t *node, struct dry_error *err)
{
    if (j->depth == DEPTH_MAX)
        return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                       "JSON nested deeper than %u, which no snapshot is", DEPTH_MAX);
    bool is_object = json_is_object(node);
    j->levels[j->depth++] = (struct level){
        .node = node,
        .item = is_object ? json_object_iter(node) : NULL,
    };
    if (put_opcode(j, is_object ? OP_EMPTY_DICT : OP_EMPTY_LIST) &&
        put_opcode(j, OP_MARK))
        return DRY_OK;
    return fail_memory(err, "no memory for the JSON");
}

static bool
put_wrapped(struct json_source *j, const char *digits)
{
    unsigned char piece[11] = {OP_LONG1, 9}; /* the ninth byte is the sign: 0 */
    uint64_t value = strtoull(digits, NULL, 10);
    for (unsigned i = 0; i < 8; i++)
        piece[2 + i] = (unsigned char)(value >> 8 * i);
    return put(j, piece, sizeof piece);
}

static bool
put_string_value(struct json_source *j, const char *bytes, size_t length)
{
    static const char wrap[] = {0, 'u', '6', '4', ':'};
    if (length > sizeof wrap && memcmp(bytes, wrap, sizeof wrap) == 0)
        return put_wrapped(j, bytes + sizeof wrap);
    return put_string(j, bytes, length);
}

static bool
put_scalar(struct json_source *j, const json_t *node)
{
    switch (json_typeof(node)) {
    case JSON_STRING:
        return put_string_value(j, json_string_value(node), json_string_length(node));
    case JSON_INTEGER:
        return put_integer(j, json_integer_value(node));
    case JSON_REAL:
        return put_real(j, json_real_value(node));
    case JSON_TRUE:
        return put_opcode(j, OP_NEWTRUE);
    case JSON_FALSE:
        return put_opcode(j, OP_NEWFALSE);
    case JSON_NULL:
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
    return put_opcode(j, OP_NONE);
}

static enum dry_status
put_value(struct json_source *j, json_t *node, struct dry_error *err)
{
    if (json_is_object(node) || json_is_array(node))
        return begin_container(j, node, err);
    if (put_scalar(j, node))
        return DRY_OK;
    return fail_memory(err, "no memory for the JSON");
}

/* Write the next element of the innermost container, with its key, or its end. */
static enum dry_status
step(struct json_source *j, struct dry_error *err)
{
    struct level *level = &j->levels[j->depth - 1];
    json_t *next;
    bool is_object = json_is_object(level->node), has_room = true;
    if (is_object) {
        void *item = level->item;
        next = item ? json_object_iter_value(item) : NULL;
        const char *key = item ? json_object_iter_key(item) : NULL;
        has_room = !item || put_string(j, key, strlen(key));
        level->item = item ? json_object_iter_next(level->node, item) : NULL;
    } else {
        next = json_array_get(level->node, level->index++);
    }
    if (has_room && next)
        return put_value(j, next, err);
    j->depth--;
    if (has_room && put_opcode(j, is_object ? OP_SETITEMS : OP_APPENDS))
        return DRY_OK;
    return fail_memory(err, "no memory for the JSON");
}

static enum dry_status
begin(struct json_source *j, struct dry_error *err)
{
    j->is_begun = true;
    if (!put(j, (unsigned char[]){OP_PROTO, PROTOCOL}, 2))
        return fail_memory(err, "no memory for the JSON");
    return put_value(j, j->root, err);
}

static enum dry_status
prepare(struct json_source *j, struct dry_error *err)
{
    j->at = j->end = 0;
    enum dry_status status = j->is_begun ? DRY_OK : begin(j, err);
    while (status == DRY_OK && j->depth && j->end < READY_BYTES)
        status = step(j, err);
    if (status != DRY_OK || j->depth || j->is_ended)
        return status;
    j->is_ended = true;
    if (put_opcode(j, OP_STOP))
        return DRY_OK;
    return fail_memory(err, "no memory for the JSON");
}

enum dry_status
json_source_read(void *self, void *buffer, size_t capacity, size_t *got,
                 struct dry_error *err)
{
    struct json_source *j = self;
    if (j->at == j->end) {
        enum dry_status status = prepare(j, err);
        if (status != DRY_OK)
            return status;
    }
    size_t count = j->end - j->at < capacity ? j->end - j->at : capacity;
    if (count)
        memcpy(buffer, j->ready + j->at, count);
    j->at += count;
    *got = count;
    return DRY_OK;
}
