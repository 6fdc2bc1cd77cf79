/* SPDX-License-Identifier: Apache-2.0 */

/* Read options as text; option_text.h has the grammar. */

#include "base/option_text.h"

#include <string.h>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/fail.h"

bool
dryi_option_is(struct dryi_option_word word, const char *text)
{
    return dryi_text_is(word.text, word.length, text);
}

bool
dryi_option_read_switch(struct dryi_option_word word, bool *value)
{
    *value = dryi_option_is(word, "True") || dryi_option_is(word, "true") ||
             dryi_option_is(word, "1");
    return *value || dryi_option_is(word, "False") || dryi_option_is(word, "false") ||
           dryi_option_is(word, "0");
}

bool
dryi_option_read_number(struct dryi_option_word word, uint64_t unit, uint64_t most,
                        uint64_t *value)
{
    DRYI_ASSERT_SLOW(unit > 0 && unit <= most && most <= UINT64_MAX / 16);
    uint64_t number = 0, limit = most / unit;
    for (size_t i = 0; i < word.length; i++) {
        if (!dryi_is_digit(word.text[i]))
            return false;
        number = number * 10 + (uint64_t)(word.text[i] - '0');
        if (number > limit)
            return false;
    }
    if (word.length == 0)
        return false;
    *value = number * unit;
    return true;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct dryi_option_word
trim(const char *text, size_t length)
{
    while (length > 0 && is_blank(*text)) {
        text++;
        length--;
    }
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    return (struct dryi_option_word){text, length};
}

size_t
dryi_option_length(const char *text, size_t length)
{
    int depth = 0;
    for (size_t i = 0; i < length; i++) {
        depth += text[i] == '[';
        depth -= text[i] == ']' && depth > 0;
        if (text[i] == ',' && depth == 0)
            return i;
    }
    return length;
}

#define SHOWN_MAX 60 /* characters of an option quoted in an error */

static enum dry_status
read_option(struct dryi_option_word option, const struct dryi_option_reader *reader,
            uint64_t offset, struct dry_error *err)
{
    const char *colon = memchr(option.text, ':', option.length);
    const char *wrong = "NAME:VALUE is expected";
    if (colon) {
        size_t length = (size_t)(colon - option.text);
        struct dryi_option_word name = trim(option.text, length);
        struct dryi_option_word value = trim(colon + 1, option.length - length - 1);
        enum dryi_option_answer answer = reader->take(reader->self, name, value);
        if (answer == DRYI_OPTION_TAKEN)
            return DRY_OK;
        wrong = answer == DRYI_OPTION_REFUSED ? reader->refused : reader->unknown;
    }
    int shown = option.length < SHOWN_MAX ? (int)option.length : SHOWN_MAX;
    return dryi_fail_at(err, DRY_ERR_ARGUMENT, offset, "option '%.*s': %s", shown,
                        option.text, wrong);
}

enum dry_status
dryi_option_text_read(const char *text, size_t length,
                      const struct dryi_option_reader *reader, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    for (size_t at = 0; at < length && status == DRY_OK;) {
        size_t part = dryi_option_length(text + at, length - at);
        struct dryi_option_word option = trim(text + at, part);
        if (option.length > 0)
            status = read_option(option, reader, (uint64_t)(option.text - text), err);
        at += part + 1;
    }
    return status;
}
