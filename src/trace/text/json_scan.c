/* SPDX-License-Identifier: Apache-2.0 */

/* The idea is in json_scan.h. Cost: O(bytes). */
#include "trace/text/json_scan.h"

#include <string.h>

#include "base/fail.h"

enum dry_status
dryi_json_fail(struct dryi_json_scan *s, const char *what)
{
    return dryi_fail_at(s->err, DRY_ERR_FORMAT, s->offset, "JSON: %s", what);
}

/* Set *c to the next byte, which stays unread; -1 at the end. */
static inline enum dry_status
peek(struct dryi_json_scan *s, int *c)
{
    struct dryi_input *in = s->in;
    if (in->at == in->end) {
        enum dry_status status = dryi_input_fill(in, 1, s->err);
        if (status != DRY_OK)
            return status;
    }
    *c = in->at < in->end ? in->window[in->at] : -1;
    return DRY_OK;
}

static enum dry_status
skip_blanks(struct dryi_json_scan *s, int *c)
{
    for (;;) {
        enum dry_status status = peek(s, c);
        if (status != DRY_OK || (*c != ' ' && *c != '\n' && *c != '\t' && *c != '\r'))
            return status;
        s->in->at++;
    }
}

static void
keep(struct dryi_json_scan *s, const unsigned char *bytes, size_t count)
{
    if (s->length < DRYI_JSON_WORD_BYTES) {
        size_t free_bytes = DRYI_JSON_WORD_BYTES - s->length;
        size_t kept = count < free_bytes ? count : free_bytes;
        memcpy(s->word + s->length, bytes, kept);
        s->word[s->length + kept] = '\0';
    }
    s->length += count;
}

/* Read a string, whose first quote was read. Escapes stay as they are. */
static enum dry_status
read_string(struct dryi_json_scan *s)
{
    struct dryi_input *in = s->in;
    for (bool is_escaped = false;;) {
        int c;
        enum dry_status status = peek(s, &c);
        if (status != DRY_OK)
            return status;
        if (c < 0)
            return dryi_json_fail(s, "it ends in a string, the file was cut off");
        size_t begin = in->at;
        while (in->at < in->end && (is_escaped || in->window[in->at] != '"'))
            is_escaped = in->window[in->at++] == '\\' && !is_escaped;
        keep(s, in->window + begin, in->at - begin);
        if (in->at == in->end)
            continue;
        in->at++;
        return DRY_OK;
    }
}

static bool
is_literal(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '-' || c == '+' || c == '.';
}

static enum dry_status
read_literal(struct dryi_json_scan *s, int c)
{
    if (!is_literal(c))
        return dryi_json_fail(s, "a byte that begins no value");
    while (is_literal(c)) {
        keep(s, (unsigned char[]){(unsigned char)c}, 1);
        s->in->at++;
        enum dry_status status = peek(s, &c);
        if (status != DRY_OK)
            return status;
    }
    return DRY_OK;
}

static enum dry_status
open_bracket(struct dryi_json_scan *s, int c)
{
    if (s->depth == DRYI_JSON_DEPTH_MAX)
        return dryi_fail_at(s->err, DRY_ERR_LIMIT, s->offset,
                            "JSON: nested deeper than %u", DRYI_JSON_DEPTH_MAX);
    uint64_t bit = UINT64_C(1) << s->depth++;
    s->objects = c == '{' ? s->objects | bit : s->objects & ~bit;
    return DRY_OK;
}

static enum dry_status
close_bracket(struct dryi_json_scan *s, int c)
{
    bool is_object = s->depth > 0 && s->objects >> (s->depth - 1) & 1;
    if (s->depth == 0 || is_object != (c == '}'))
        return dryi_json_fail(s, "a bracket that closes no other");
    s->depth--;
    return DRY_OK;
}

/* Tell whether the string that was read is a key, and read the colon behind one. */
static enum dry_status
tell_key(struct dryi_json_scan *s, enum dryi_json_token *token)
{
    int c;
    enum dry_status status = skip_blanks(s, &c);
    *token = status == DRY_OK && c == ':' ? DRYI_JSON_KEY : DRYI_JSON_STRING;
    s->in->at += *token == DRYI_JSON_KEY;
    return status;
}

static enum dry_status
read_token(struct dryi_json_scan *s, int c, enum dryi_json_token *token)
{
    bool begins = c == '{' || c == '[', ends = c == '}' || c == ']';
    if (begins || ends) {
        s->in->at++;
        *token = begins ? DRYI_JSON_BEGIN : DRYI_JSON_END;
        return begins ? open_bracket(s, c) : close_bracket(s, c);
    }
    s->length = 0;
    s->word[0] = '\0';
    if (c != '"') {
        *token = DRYI_JSON_LITERAL;
        return read_literal(s, c);
    }
    s->in->at++;
    enum dry_status status = read_string(s);
    return status == DRY_OK ? tell_key(s, token) : status;
}

enum dry_status
dryi_json_next(struct dryi_json_scan *s, enum dryi_json_token *token)
{
    bool has_ended = s->depth == 0 && s->offset > 0;
    int c;
    enum dry_status status;
    do {
        status = has_ended ? DRY_END : skip_blanks(s, &c);
    } while (status == DRY_OK && c == ',' && s->in->at++ < s->in->end);
    if (status != DRY_OK)
        return status;
    s->offset = dryi_input_offset(s->in);
    if (c < 0)
        return dryi_json_fail(s, "it ends too early, the file was cut off");
    return read_token(s, c, token);
}
