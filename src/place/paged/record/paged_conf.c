/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Options are text: NAME:VALUE, separated by commas. Blanks around a name or a value are dropped.
 */

#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "place/paged/record/paged_conf.h"
#include "place/paged/record/paged_nouns.h"

void
dryi_paged_conf_init(struct dryi_paged_conf *conf)
{
    *conf = (struct dryi_paged_conf){
        .small_max = 64 * DRYI_KIB,
        .budget = 1.05,
        .reuse_ordered = true,
        .reuse_passed = true,
        .reuse_waiting = true,
        .remap = true,
        .plan = true,
        .per_process_memory_fraction = 1.0,
    };
}

/* A part of the text. */
struct word {
    const char *text;
    size_t length;
};

static bool
is_word(struct word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

static bool
read_bool(struct word word, bool *value)
{
    if (is_word(word, "True") || is_word(word, "true") || is_word(word, "1"))
        return *value = true;
    *value = false;
    return is_word(word, "False") || is_word(word, "false") || is_word(word, "0");
}

#define DIGITS_MAX 12

/* Read digits, and a fraction perhaps ("1.05"). The result is the same in every locale. */
static bool
read_decimal(struct word word, double *value)
{
    uint64_t digits = 0, scale = 0;
    bool any = false;
    if (word.length > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < word.length; i++) {
        char c = word.text[i];
        if (c == '.' && scale == 0) {
            scale = 1;
            continue;
        }
        if (c < '0' || c > '9')
            return false;
        digits = digits * 10 + (uint64_t)(c - '0');
        scale *= 10;
        any = true;
    }
    *value = (double)digits / (scale ? (double)scale : 1.0);
    return any;
}

static bool
read_number_of(struct word word, uint64_t unit, uint64_t most, uint64_t *value)
{
    double number;
    uint64_t units = most / unit;
    if (memchr(word.text, '.', word.length) || !read_decimal(word, &number) ||
        number > (double)units)
        return false;
    *value = (uint64_t)number * unit;
    return true;
}

#define SMALL_MAX (UINT64_C(64) << 20)

static bool
set_number(struct dryi_paged_conf *c, struct word name, struct word value, bool *known)
{
    double decimal;
    *known = true;
    if (is_word(name, "budget")) {
        if (!read_decimal(value, &decimal) || decimal < 1)
            return false;
        c->budget = decimal;
        return true;
    }
    if (is_word(name, "per_process_memory_fraction")) {
        if (!read_decimal(value, &decimal) || decimal > 1)
            return false;
        c->per_process_memory_fraction = decimal;
        return true;
    }
    if (is_word(name, "small_kb"))
        return read_number_of(value, DRYI_KIB, SMALL_MAX, &c->small_max);
    if (is_word(name, "leave_mb"))
        return read_number_of(value, DRYI_MIB, RESERVED_LIMIT, &c->leave_bytes);
    if (is_word(name, "segment_mb"))
        return read_number_of(value, DRYI_MIB, RESERVED_LIMIT, &c->segment_bytes);
    *known = false;
    return false;
}

static bool
set_switch(struct dryi_paged_conf *c, struct word name, struct word value, bool *known)
{
    static const struct {
        const char *name;
        size_t offset;
    } switches[] = {
        {"plan", offsetof(struct dryi_paged_conf, plan)},
        {"remap", offsetof(struct dryi_paged_conf, remap)},
        {"reuse_ordered", offsetof(struct dryi_paged_conf, reuse_ordered)},
        {"reuse_passed", offsetof(struct dryi_paged_conf, reuse_passed)},
        {"reuse_waiting", offsetof(struct dryi_paged_conf, reuse_waiting)},
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        bool on;
        if (!is_word(name, switches[i].name))
            continue;
        *known = true;
        if (!read_bool(value, &on))
            return false;
        memcpy((char *)c + switches[i].offset, &on, sizeof on);
        return true;
    }
    return false;
}

static struct word
trim(const char *text, size_t length)
{
    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    return (struct word){text, length};
}

/* Return the length up to a comma outside brackets (PyTorch's tables have commas inside). */
static size_t
option_length(const char *text, size_t length)
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

static enum dry_status
set_option(struct dryi_paged_conf *c, struct word option, size_t offset,
           dryi_option_name *is_foreign, struct dry_error *err)
{
    const char *colon = memchr(option.text, ':', option.length);
    int shown = option.length < 60 ? (int)option.length : 60;
    if (!colon)
        return dryi_fail_at(err, DRY_ERR_ARGUMENT, offset,
                            "option '%.*s': NAME:VALUE is expected", shown, option.text);
    size_t name_length = (size_t)(colon - option.text);
    struct word name = trim(option.text, name_length);
    struct word value = trim(colon + 1, option.length - name_length - 1);
    bool known = false;
    if (set_number(c, name, value, &known) || set_switch(c, name, value, &known))
        return DRY_OK;
    if (known)
        return dryi_fail_at(
            err, DRY_ERR_ARGUMENT, offset,
            "option '%.*s': not a value it can have, see drystone-pool(5)", shown,
            option.text);
    if (is_foreign(name.text, name.length) && !is_word(name, "backend"))
        return DRY_OK;
    return dryi_fail_at(err, DRY_ERR_ARGUMENT, offset,
                        "option '%.*s': not one of this allocator", shown, option.text);
}

enum dry_status
dryi_paged_conf_parse(const char *text, size_t length, dryi_option_name *is_foreign,
                      struct dryi_paged_conf *conf, struct dry_error *err)
{
    struct dryi_paged_conf c = *conf;
    for (size_t at = 0; at < length;) {
        size_t part = option_length(text + at, length - at);
        struct word option = trim(text + at, part);
        if (option.length > 0) {
            enum dry_status status =
                set_option(&c, option, (uint64_t)(option.text - text), is_foreign, err);
            if (status != DRY_OK)
                return status;
        }
        at += part + 1;
    }
    *conf = c;
    return DRY_OK;
}
