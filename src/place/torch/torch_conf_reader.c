/* SPDX-License-Identifier: Apache-2.0 */

/* See torch_conf_reader.h. Source: ConfigTokenizer in c10/core/AllocatorConfig.h. */

#include "place/torch/torch_conf_reader.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/fail.h"

/* ---- tokens ---- */

/* Do as isspace() in the C locale, whatever the program's locale. */
static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_mark(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

bool
dryi_conf_peek(const struct dryi_conf_reader *r, struct dryi_conf_token *token)
{
    DRYI_ASSERT_SLOW(r->at <= r->length);
    size_t at = r->at;
    while (at < r->length && is_space(r->text[at]))
        at++;
    if (at == r->length)
        return false;
    token->begin = at;
    if (is_mark(r->text[at])) {
        token->end = at + 1;
        return true;
    }
    while (at < r->length && !is_mark(r->text[at]))
        at++;
    token->end = at;
    return true;
}

bool
dryi_conf_next(struct dryi_conf_reader *r)
{
    struct dryi_conf_token token;
    if (!dryi_conf_peek(r, &token))
        return false;
    r->now = token;
    r->at = token.end;
    r->index++;
    return true;
}

void
dryi_conf_rewind(struct dryi_conf_reader *r)
{
    r->at = 0;
    r->index = SIZE_MAX; /* so that the first token has index 0 */
}

/* Get the next byte of a token that is not white space. False: end of the token. */
static bool
next_byte(const struct dryi_conf_reader *r, struct dryi_conf_token *rest, char *c)
{
    DRYI_ASSERT_SLOW(rest->begin <= rest->end && rest->end <= r->length);
    while (rest->begin < rest->end && is_space(r->text[rest->begin]))
        rest->begin++;
    if (rest->begin == rest->end)
        return false;
    *c = r->text[rest->begin++];
    return true;
}

bool
dryi_conf_is(const struct dryi_conf_reader *r, struct dryi_conf_token token,
             const char *word)
{
    char c;
    for (; *word; word++) {
        if (!next_byte(r, &token, &c) || c != *word)
            return false;
    }
    return !next_byte(r, &token, &c);
}

size_t
dryi_conf_copy(const struct dryi_conf_reader *r, struct dryi_conf_token token,
               char *buffer, size_t capacity)
{
    DRYI_ASSERT_SLOW(capacity > 0);
    size_t count = 0;
    while (count + 1 < capacity && next_byte(r, &token, &buffer[count]))
        count++;
    buffer[count] = '\0';
    return count;
}

/* ---- errors ---- */

enum dry_status
dryi_conf_fail_end(struct dryi_conf_reader *r)
{
    return dryi_fail_at(r->err, DRY_ERR_FORMAT, r->length,
                        "allocator settings end where token %zu is expected "
                        "(Index out of bounds in ConfigTokenizer)",
                        r->index + 1);
}

enum dry_status
dryi_conf_fail_value(struct dryi_conf_reader *r, struct dryi_conf_token token,
                     const char *what)
{
    char word[DRYI_CONF_WORD_BYTES];
    dryi_conf_copy(r, token, word, sizeof word);
    return dryi_fail_at(r->err, DRY_ERR_FORMAT, token.begin, "%s, got '%s'", what, word);
}

/* ---- values ---- */

enum dry_status
dryi_conf_read_u64(struct dryi_conf_reader *r, struct dryi_conf_token token,
                   uint64_t *value)
{
    struct dryi_conf_token rest = token;
    char c;
    bool more = next_byte(r, &rest, &c);
    bool negative = more && c == '-';
    if (more && (c == '-' || c == '+'))
        more = next_byte(r, &rest, &c);
    if (!more || c < '0' || c > '9')
        return dryi_conf_fail_value(r, token, "expected a number");
    uint64_t n = 0;
    for (; more && c >= '0' && c <= '9'; more = next_byte(r, &rest, &c)) {
        if (__builtin_mul_overflow(n, UINT64_C(10), &n) ||
            __builtin_add_overflow(n, (uint64_t)(c - '0'), &n))
            return dryi_conf_fail_value(r, token, "number out of range, 64 bits at most");
    }
    *value = negative ? UINT64_C(0) - n : n;
    return DRY_OK;
}

double
dryi_conf_strtod(const char *text, char **end)
{
    *end = (char *)(uintptr_t)text;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return (double)NAN;
    double value = strtod_l(text, end, c);
    freelocale(c);
    return value;
}

enum dry_status
dryi_conf_read_double(struct dryi_conf_reader *r, struct dryi_conf_token token,
                      double *value)
{
    char text[DRYI_CONF_NUMBER_BYTES];
    dryi_conf_copy(r, token, text, sizeof text);
    int saved_errno = errno;
    errno = 0;
    char *end;
    double v = dryi_conf_strtod(text, &end);
    bool in_range = errno != ERANGE;
    errno = saved_errno;
    if (end == text)
        return dryi_conf_fail_value(r, token, "expected a number");
    if (!in_range)
        return dryi_conf_fail_value(r, token, "number out of range");
    *value = v;
    return DRY_OK;
}
