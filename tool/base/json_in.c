/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See json_in.h. The first pass over the text bounds the size of its tree, so a hostile
 * file cannot make jansson take more than TREE_BYTES_MAX. jansson then builds the tree.
 * If parsing fails, a second pass finds the JSON path of the error. Cost: each pass is
 * linear in the text.
 */
#include "base/json_in.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/options.h"
#include "base/term.h"

#define TREE_BYTES_MAX (UINT64_C(1) << 30)

#define NAME_BYTES 48 /* the part of a file's key or text that a message quotes */
#define WAY_BYTES 128
#define WAY_STEPS 16

/* --- paths ------------------------------------------------------------------------------- */

/* Write a JSON path such as "stages[3].options[0].saved". A path of more than WAY_STEPS
   steps shows its innermost steps after "...". */
static void
write_way(const struct json_at *at, char way[WAY_BYTES])
{
    const struct json_at *steps[WAY_STEPS];
    size_t count = 0, used = 0;
    for (; at && at->parent && count < WAY_STEPS; at = at->parent)
        steps[count++] = at;
    way[0] = '\0';
    if (at && at->parent)
        used = (size_t)snprintf(way, WAY_BYTES, "...");
    while (count > 0 && used < WAY_BYTES - NAME_BYTES - 2) {
        const struct json_at *step = steps[--count];
        char name[NAME_BYTES];
        if (step->key) {
            term_make_printable(name, sizeof name, step->key, strlen(step->key));
            used += (size_t)snprintf(way + used, WAY_BYTES - used, "%s%s",
                                     used ? "." : "", name);
        } else {
            used += (size_t)snprintf(way + used, WAY_BYTES - used, "[%zu]", step->index);
        }
    }
}

/* An object or list that is still open at the offset of an error, and the key or index
   reached in it. */
struct open {
    bool is_object;
    const char *key; /* NULL: no key read so far */
    size_t key_bytes, index;
};

/* Return the offset after the string that begins at `from`; `end` if unclosed. */
static size_t
skip_string(const char *text, size_t from, size_t end)
{
    size_t i = from + 1;
    while (i < end && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
    return i < end ? i + 1 : end;
}

/* Find the objects and lists that are open at `end`. Returns the nesting depth; only the
   first WAY_STEPS levels are written. */
static size_t
find_open(const char *text, size_t end, struct open *opened)
{
    size_t depth = 0, last = 0, behind = 0; /* the last string, from quote to past the
                                               closing quote */
    for (size_t i = 0; i<end; i = behind> i ? behind : i + 1) {
        struct open *top = depth > 0 && depth <= WAY_STEPS ? &opened[depth - 1] : NULL;
        if (text[i] == '"') {
            last = i;
            behind = skip_string(text, i, end);
        } else if (text[i] == '{' || text[i] == '[') {
            if (depth < WAY_STEPS)
                opened[depth] = (struct open){.is_object = text[i] == '{'};
            depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            depth -= depth > 0;
        } else if (text[i] == ':' && top && behind > last + 1) {
            top->key = text + last + 1;
            top->key_bytes = behind - last - 2;
        } else if (text[i] == ',' && top) {
            top->key = NULL;
            top->index++;
        }
    }
    return depth;
}

/* Write the JSON path of offset `end` in a text that does not parse. The path is empty at
   the top level, or below WAY_STEPS levels. */
static void
write_way_to(const char *text, size_t end, char way[WAY_BYTES])
{
    struct open opened[WAY_STEPS];
    struct json_at at[WAY_STEPS + 1] = {{0}};
    char names[WAY_STEPS][NAME_BYTES];
    size_t depth = find_open(text, end, opened), steps = 0;
    for (; depth <= WAY_STEPS && steps < depth; steps++) {
        const struct open *o = &opened[steps];
        if (o->is_object && !o->key)
            break;
        at[steps + 1] = (struct json_at){.parent = &at[steps], .index = o->index};
        if (!o->is_object)
            continue;
        size_t bytes = o->key_bytes < NAME_BYTES ? o->key_bytes : NAME_BYTES - 1;
        memcpy(names[steps], o->key, bytes);
        names[steps][bytes] = '\0';
        at[steps + 1].key = names[steps];
    }
    write_way(&at[steps], way);
}

/* --- texts -------------------------------------------------------------------------------- */

/* Sizes in jansson 2.14, rounded up: an empty object takes 240, an empty list 128. A key
   takes a hash table pair and its slots. */
unsigned
json_in_measure_node(int c)
{
    switch (c) {
    case '{':
        return 256;
    case '[':
        return 144;
    case ':':
        return 96;
    case ',':
        return 64;
    default:
        return 0;
    }
}

/* Return an upper bound of the tree's bytes. For text that is not JSON the result means
   nothing, but the parser then refuses the text anyway. */
static uint64_t
measure_tree(const char *text, size_t length)
{
    uint64_t bytes = length;
    bool is_in_string = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            is_in_string = !is_in_string;
        else if (is_in_string && text[i] == '\\')
            i++;
        else if (!is_in_string)
            bytes += json_in_measure_node(text[i]);
    }
    return bytes;
}

static enum dry_status
describe_failure(const json_error_t *why, const char *text, size_t length,
                 struct dry_error *err)
{
    if (json_error_code(why) == json_error_out_of_memory)
        return fail_memory(err, "no memory for the JSON");
    char way[WAY_BYTES];
    size_t at = why->position > 0 ? (size_t)why->position : 0;
    write_way_to(text, at < length ? at : length, way);
    const char *what = why->text, *more = "";
    if (json_error_code(why) == json_error_null_character)
        what = "a text has \\u0000 in it";
    else if (json_error_code(why) == json_error_numeric_overflow)
        more = "; numbers beyond 63 bits are refused";
    else if (strstr(why->text, "'NaN") || strstr(why->text, "Infinity"))
        more = "; JSON has finite numbers only";
    return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET, "%s%sline %d, column %d: %s%s",
                   way, *way ? ": " : "", why->line, why->column, what, more);
}

/* Skip a UTF-8 byte order mark, which some editors write and jansson refuses. */
static const char *
skip_mark(const char *text, size_t *length)
{
    if (*length < 3 || memcmp(text, "\xef\xbb\xbf", 3) != 0)
        return text;
    *length -= 3;
    return text + 3;
}

static bool
is_blank(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r')))
        i++;
    return i == length;
}

/* Name a format often passed instead of JSON, by its first bytes. NULL: unknown. */
static const char *
name_other(const char *text, size_t length)
{
    static const struct {
        const char *begin, *name;
    } others[] = {{"\x80", "a pickle"},
                  {"\x1f\x8b", "packed by gzip"},
                  {"\x28\xb5\x2f\xfd", "packed by zstd"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t bytes = strlen(others[i].begin);
        if (length >= bytes && memcmp(text, others[i].begin, bytes) == 0)
            return others[i].name;
    }
    return NULL;
}

enum dry_status
json_in_parse(const char *text, size_t length, json_t **root, struct dry_error *err)
{
    if (length > JSON_IN_TEXT_BYTES_MAX || measure_tree(text, length) > TREE_BYTES_MAX)
        return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                       "this JSON is too large: 64 MiB of text, or 1 GiB of memory, is "
                       "the most that is read");
    text = skip_mark(text, &length);
    if (is_blank(text, length))
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "there is nothing in it; JSON is expected");
    const char *other = name_other(text, length);
    if (other)
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET, "it is %s; JSON is expected",
                       other);
    json_error_t why;
    json_t *made = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!made)
        return describe_failure(&why, text, length, err);
    *root = made;
    return DRY_OK;
}

static enum dry_status
read_stream(FILE *file, char **text, size_t *length, struct dry_error *err)
{
    char *bytes = NULL;
    size_t used = 0, capacity = 0, got = 1;
    while (got > 0 && used <= JSON_IN_TEXT_BYTES_MAX) {
        if (capacity - used < 2) {
            capacity = capacity ? capacity * 2 : (size_t)64 << 10;
            char *grown = realloc(bytes, capacity);
            if (!grown) {
                free(bytes);
                return fail_memory(err, "no memory");
            }
            bytes = grown;
        }
        got = fread(bytes + used, 1, capacity - used - 1, file);
        used += got;
    }
    if (ferror(file)) {
        free(bytes);
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot read: %s",
                       strerror(errno));
    }
    bytes[used] = '\0';
    *text = bytes;
    *length = used;
    return DRY_OK;
}

enum dry_status
json_in_read_file(const char *path, char **text, size_t *length, struct dry_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rbe");
    if (!file)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot open: %s",
                       strerror(errno));
    enum dry_status status = read_stream(file, text, length, err);
    if (!is_stdin)
        fclose(file);
    return status;
}

/* --- navigation --------------------------------------------------------------------------- */

struct json_at
json_in_key(const struct json_at *object, const char *key)
{
    return (struct json_at){
        .value = json_object_get(object->value, key), .parent = object, .key = key};
}

struct json_at
json_in_element(const struct json_at *list, size_t index)
{
    return (struct json_at){
        .value = json_array_get(list->value, index), .parent = list, .index = index};
}

void
json_in_fail(struct json_in *in, const struct json_at *at, const char *format, ...)
{
    if (in->status != DRY_OK)
        return;
    char way[WAY_BYTES], text[sizeof in->err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_way(at, way);
    in->status = fail_at(in->err, DRY_ERR_FORMAT, DRY_NO_OFFSET, "%s%s%s", way,
                         *way ? ": " : "", text);
}

/* --- values ------------------------------------------------------------------------------- */

/* Fail with "EXPECTED is expected, found ...", naming the value at the path. */
static void
refuse_type(struct json_in *in, const struct json_at *at, const char *expected)
{
    char name[NAME_BYTES];
    if (!at->value)
        json_in_fail(in, at, "is missing");
    else if (json_is_string(at->value)) {
        term_make_printable(name, sizeof name, json_string_value(at->value),
                            json_string_length(at->value));
        json_in_fail(in, at, "%s is expected, found the text \"%s\"", expected, name);
    } else if (json_is_number(at->value))
        json_in_fail(in, at, "%s is expected, found %g", expected,
                     json_number_value(at->value));
    else if (json_is_boolean(at->value) || json_is_null(at->value))
        json_in_fail(in, at, "%s is expected, found %s", expected,
                     json_is_null(at->value)   ? "null"
                     : json_is_true(at->value) ? "true"
                                               : "false");
    else
        json_in_fail(in, at, "%s is expected, found %s", expected,
                     json_is_array(at->value) ? "a list" : "an object");
}

static void
refuse_key(struct json_in *in, const struct json_at *at, const char *key,
           const char *const *keys)
{
    char name[NAME_BYTES];
    struct suggestion s = {.word = key};
    for (; *keys; keys++)
        suggestion_consider(&s, *keys);
    term_make_printable(name, sizeof name, key, strlen(key));
    json_in_fail(in, at, "there is no key '%s'%s%s%s", name,
                 s.best ? "; did you mean '" : "", s.best ? s.best : "",
                 s.best ? "'?" : "");
}

bool
json_in_object(struct json_in *in, const struct json_at *at, const char *const *keys)
{
    if (!json_is_object(at->value)) {
        refuse_type(in, at, "an object");
        return false;
    }
    const char *key;
    json_t *value;
    json_object_foreach(at->value, key, value)
    {
        const char *const *known = keys;
        while (*known && strcmp(*known, key) != 0)
            known++;
        if (!*known) {
            refuse_key(in, at, key, keys);
            return false;
        }
    }
    return in->status == DRY_OK;
}

size_t
json_in_list(struct json_in *in, const struct json_at *at)
{
    if (!at->value)
        return 0;
    if (!json_is_array(at->value)) {
        refuse_type(in, at, "a list");
        return 0;
    }
    return in->status == DRY_OK ? json_array_size(at->value) : 0;
}

uint64_t
json_in_unsigned(struct json_in *in, struct json_at at)
{
    json_int_t value = json_integer_value(at.value);
    if (json_is_real(at.value))
        json_in_fail(in, &at, "%g is no whole number", json_real_value(at.value));
    else if (!json_is_integer(at.value))
        refuse_type(in, &at, "a whole number");
    else if (value < 0)
        json_in_fail(in, &at, "%lld is negative", (long long)value);
    return in->status == DRY_OK ? (uint64_t)value : 0;
}

uint64_t
json_in_unsigned_or(struct json_in *in, struct json_at at, uint64_t absent)
{
    return at.value ? json_in_unsigned(in, at) : absent;
}

/* Return a number that is 0 or more. jansson refuses infinities and NaN in a file;
   isfinite() guards values made in memory. */
static double
read_number(struct json_in *in, const struct json_at *at)
{
    double value = json_number_value(at->value);
    if (!json_is_number(at->value) || !isfinite(value))
        refuse_type(in, at, "a number");
    else if (value < 0)
        json_in_fail(in, at, "%g is negative", value);
    return in->status == DRY_OK ? value : 0;
}

uint64_t
json_in_time(struct json_in *in, struct json_at at)
{
    double value = read_number(in, &at);
    uint64_t ns = 0;
    bool is_over = false;
    if (in->status != DRY_OK)
        return 0;
    if (json_is_integer(at.value))
        is_over =
            __builtin_mul_overflow((uint64_t)json_integer_value(at.value), 1000, &ns);
    else if (value < 9.2e15)
        ns = (uint64_t)llround(value * 1000);
    else
        is_over = true;
    if (is_over || ns > INT64_MAX)
        json_in_fail(in, &at, "%g us are more than 63 bits of nanoseconds", value);
    return in->status == DRY_OK ? ns : 0;
}

uint32_t
json_in_millionths(struct json_in *in, struct json_at at)
{
    double value = at.value ? read_number(in, &at) : 0;
    if (value >= 1)
        json_in_fail(in, &at, "%g is not below 1", value);
    long millionths = in->status == DRY_OK ? lround(value * 1e6) : 0;
    return (uint32_t)(millionths < 1000000 ? millionths : 999999);
}

bool
json_in_flag(struct json_in *in, struct json_at at, bool absent)
{
    if (!at.value)
        return absent;
    if (!json_is_boolean(at.value))
        refuse_type(in, &at, "true or false");
    return json_is_true(at.value);
}

const char *
json_in_text(struct json_in *in, struct json_at at, const char *absent)
{
    if (!at.value)
        return absent;
    if (!json_is_string(at.value)) {
        refuse_type(in, &at, "a text");
        return absent;
    }
    return json_string_value(at.value);
}
