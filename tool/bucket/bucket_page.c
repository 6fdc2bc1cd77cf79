/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in bucket_page.h. Expat calls back for each piece of text. Only the text of
 * the open element is buffered, if its name is known, and used at its end. Keys are
 * unescaped at the end of the page, because the flag that they are escaped may follow
 * them.
 */
#include "bucket/bucket_page.h"

#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include "base/fail.h"
#include "base/fnv.h"

#define TEXT_MAX ((size_t)8192)
#define LEVEL_MAX 16u

/* The elements that are used. */
enum field {
    OTHER,
    KEY,
    BYTES,
    ETAG,
    CHANGED,
    TOKEN,
    ESCAPES,
    GOES_ON,
    CODE,
};

struct bucket_reader {
    struct bucket_memory memory;
    XML_Parser parser;
    struct bucket_page page;
    size_t capacity;
    unsigned level;
    bool is_in_entry; /* within <Contents> */
    bool has_bytes;
    bool is_escaped, goes_on;
    enum field field;
    struct bucket_entry entry; /* the open one */
    char text[TEXT_MAX];
    size_t length;
    enum dry_status status; /* reason for stopping the parser */
    const char *why;
};

static void
stop(struct bucket_reader *r, enum dry_status status, const char *why)
{
    if (r->status != DRY_OK)
        return;
    r->status = status;
    r->why = why;
    XML_StopParser(r->parser, XML_FALSE);
}

/* --- texts -------------------------------------------------------------------------------- */

static char *
copy_text(struct bucket_reader *r)
{
    char *copy = r->memory.take(r->length + 1);
    if (!copy) {
        stop(r, DRY_ERR_MEMORY, "no memory for a list of objects");
        return NULL;
    }
    memcpy(copy, r->text, r->length);
    copy[r->length] = '\0';
    return copy;
}

static void
take_text(struct bucket_reader *r, char **place)
{
    char *copy = copy_text(r);
    if (!copy)
        return;
    r->memory.give(*place);
    *place = copy;
}

/* Hash a text with its terminator, so that two texts cannot run together. */
static void
add_to_stamp(struct bucket_reader *r)
{
    r->text[r->length] = '\0';
    r->entry.stamp = fnv_add(r->entry.stamp, r->text, r->length + 1);
}

static void
take_bytes(struct bucket_reader *r)
{
    uint64_t value = 0;
    for (size_t i = 0; i < r->length; i++) {
        unsigned digit = (unsigned char)r->text[i] - (unsigned)'0';
        if (digit > 9 || value > (uint64_t)(INT64_MAX - 9) / 10) {
            stop(r, DRY_ERR_FORMAT, "a size that is no number of bytes");
            return;
        }
        value = value * 10 + digit;
    }
    r->entry.bytes = value;
    r->has_bytes = r->length > 0;
}

static void
take_code(struct bucket_reader *r)
{
    size_t length_max = sizeof r->page.code - 1;
    size_t length = r->length < length_max ? r->length : length_max;
    memcpy(r->page.code, r->text, length);
    r->page.code[length] = '\0';
}

static bool
text_is(const struct bucket_reader *r, const char *text)
{
    return r->length == strlen(text) && memcmp(r->text, text, r->length) == 0;
}

static void
use_text(struct bucket_reader *r)
{
    switch (r->field) {
    case KEY:
        take_text(r, &r->entry.key);
        break;
    case BYTES:
        take_bytes(r);
        break;
    case ETAG:
    case CHANGED:
        add_to_stamp(r);
        break;
    case TOKEN:
        take_text(r, &r->page.token);
        break;
    case ESCAPES:
        r->is_escaped = text_is(r, "url");
        break;
    case GOES_ON:
        r->goes_on = text_is(r, "true");
        break;
    case CODE:
        take_code(r);
        break;
    case OTHER:
        break;
    }
}

/* --- elements ----------------------------------------------------------------------------- */

static void
end_entry(struct bucket_reader *r)
{
    struct bucket_page *p = &r->page;
    r->is_in_entry = false;
    if (!r->entry.key || !*r->entry.key || !r->has_bytes) {
        stop(r, DRY_ERR_FORMAT, "an object without a key or a size");
        return;
    }
    if (p->count == BUCKET_PAGE_ENTRIES_MAX) {
        stop(r, DRY_ERR_LIMIT, "a page of over 10,000 objects");
        return;
    }
    if (p->count == r->capacity) {
        size_t more = r->capacity ? r->capacity * 2 : 64;
        struct bucket_entry *moved =
            r->memory.resize(p->entries, more * sizeof *p->entries);
        if (!moved) {
            stop(r, DRY_ERR_MEMORY, "no memory for a list of objects");
            return;
        }
        p->entries = moved;
        r->capacity = more;
    }
    p->entries[p->count++] = r->entry;
    r->entry = (struct bucket_entry){.stamp = FNV_BEGIN};
}

static enum field
find_field(const struct bucket_reader *r, const char *name)
{
    static const struct {
        const char *name;
        enum field field;
        unsigned level;
    } known[] = {
        {"Key", KEY, 3},
        {"Size", BYTES, 3},
        {"ETag", ETAG, 3},
        {"LastModified", CHANGED, 3},
        {"EncodingType", ESCAPES, 2},
        {"NextContinuationToken", TOKEN, 2},
        {"IsTruncated", GOES_ON, 2},
        {"Code", CODE, 2},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].level == r->level && strcmp(known[i].name, name) == 0 &&
            r->is_in_entry == (r->level == 3))
            return known[i].field;
    }
    return OTHER;
}

static void XMLCALL
begin_element(void *self, const XML_Char *name, const XML_Char **attributes)
{
    struct bucket_reader *r = self;
    (void)attributes;
    if (r->status != DRY_OK)
        return;
    r->level++;
    r->length = 0;
    r->page.is_error |= r->level == 1 && strcmp(name, "Error") == 0;
    if (r->level == 1 && !r->page.is_error && strcmp(name, "ListBucketResult") != 0)
        stop(r, DRY_ERR_FORMAT, "another kind of XML");
    if (r->level > LEVEL_MAX)
        stop(r, DRY_ERR_LIMIT, "elements in over 16 levels");
    if (r->level == 2 && strcmp(name, "Contents") == 0) {
        r->memory.give(r->entry.key); /* NULL unless the input is malformed */
        r->entry = (struct bucket_entry){.stamp = FNV_BEGIN};
        r->has_bytes = false;
        r->is_in_entry = true;
    }
    r->field = find_field(r, name);
}

static void XMLCALL
end_element(void *self, const XML_Char *name)
{
    struct bucket_reader *r = self;
    (void)name;
    if (r->status != DRY_OK)
        return;
    use_text(r);
    r->field = OTHER;
    if (r->level == 2 && r->is_in_entry)
        end_entry(r);
    r->level--;
}

static void XMLCALL
add_text(void *self, const XML_Char *text, int length)
{
    struct bucket_reader *r = self;
    size_t count = length > 0 ? (size_t)length : 0;
    if (r->status != DRY_OK || r->field == OTHER)
        return;
    if (count >= TEXT_MAX - r->length) {
        stop(r, DRY_ERR_LIMIT, "an element of over 8 kB");
        return;
    }
    memcpy(r->text + r->length, text, count);
    r->length += count;
}

/* Refuse a document type: its entities could expand to huge texts. */
static void XMLCALL
refuse_doctype(void *self, const XML_Char *name, const XML_Char *system,
               const XML_Char *public, int has_subset)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_subset;
    stop(self, DRY_ERR_FORMAT, "a document type");
}

/* --- the whole page ----------------------------------------------------------------------- */

struct bucket_reader *
bucket_reader_create(const struct bucket_memory *memory)
{
    static const struct bucket_memory of_libc = {malloc, realloc, free};
    memory = memory ? memory : &of_libc;
    struct bucket_reader *r = memory->take(sizeof *r);
    if (!r)
        return NULL;
    XML_Memory_Handling_Suite suite = {memory->take, memory->resize, memory->give};
    *r = (struct bucket_reader){.memory = *memory};
    r->parser = XML_ParserCreate_MM(NULL, &suite, NULL);
    if (!r->parser) {
        memory->give(r);
        return NULL;
    }
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(r->parser, add_text);
    XML_SetStartDoctypeDeclHandler(r->parser, refuse_doctype);
    return r;
}

static enum dry_status
fail_page(const struct bucket_reader *r, struct dry_error *err)
{
    enum XML_Error code = XML_GetErrorCode(r->parser);
    if (code == XML_ERROR_NO_MEMORY || r->status == DRY_ERR_MEMORY)
        return fail_memory(err, "no memory for a list of objects");
    if (r->status != DRY_OK)
        return fail_at(err, r->status, DRY_NO_OFFSET, "the store's answer has %s",
                       r->why);
    return fail_at(
        err, DRY_ERR_FORMAT, DRY_NO_OFFSET, "the store's answer is no XML: line %lu: %s",
        (unsigned long)XML_GetCurrentLineNumber(r->parser), XML_ErrorString(code));
}

enum dry_status
bucket_reader_feed(struct bucket_reader *r, const void *bytes, size_t count,
                   struct dry_error *err)
{
    const char *at = bytes;
    while (count > 0) {
        int some = count < (1 << 20) ? (int)count : 1 << 20;
        if (XML_Parse(r->parser, at, some, XML_FALSE) != XML_STATUS_OK)
            return fail_page(r, err);
        at += some;
        count -= (size_t)some;
    }
    return DRY_OK;
}

static int
parse_hex(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)((found - digits) % 16) : -1;
}

/* Unescape in place as web forms do: "+" is a blank. False: invalid, or a zero byte. */
static bool
unescape(char *text)
{
    char *to = text;
    for (const char *c = text; *c; c++, to++) {
        *to = *c;
        if (*c == '+')
            *to = ' ';
        if (*c != '%')
            continue;
        int high = parse_hex(c[1]), low = high < 0 ? -1 : parse_hex(c[2]);
        if (low < 0 || high + low == 0)
            return false;
        *to = (char)(high * 16 + low);
        c += 2;
    }
    *to = '\0';
    return true;
}

enum dry_status
bucket_reader_end(struct bucket_reader *r, const struct bucket_page **page,
                  struct dry_error *err)
{
    if (XML_Parse(r->parser, "", 0, XML_TRUE) != XML_STATUS_OK)
        return fail_page(r, err);
    for (size_t i = 0; r->is_escaped && i < r->page.count; i++) {
        if (!unescape(r->page.entries[i].key))
            return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "the store's answer has a key with a broken escape");
    }
    if (r->goes_on && !(r->page.token && *r->page.token))
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "the store's answer has no word of how its list goes on");
    if (!r->goes_on) {
        r->memory.give(r->page.token);
        r->page.token = NULL;
    }
    *page = &r->page;
    return DRY_OK;
}

void
bucket_reader_destroy(struct bucket_reader *r)
{
    if (!r)
        return;
    struct bucket_memory memory = r->memory;
    for (size_t i = 0; i < r->page.count; i++)
        memory.give(r->page.entries[i].key);
    memory.give(r->page.entries);
    memory.give(r->page.token);
    memory.give(r->entry.key);
    XML_ParserFree(r->parser);
    memory.give(r);
}
