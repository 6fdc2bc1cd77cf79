/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See sweep_grid.h. The text is parsed in one pass. Numbers in ranges are integers in
 * millionths, so decimal steps are exact. Cost: O(values), bounded by the combinations.
 */
#include "sweep/sweep_grid.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT INT64_C(1000000)
#define UNIT_DIGITS 6u
#define WHOLE_DIGITS_MAX 9 /* bounds the product of two numbers to 64 bits */
#define SHOWN 40           /* maximum characters quoted in a message */

struct reader {
    const char *text, *at;
    char *why;
};

/* Write what is wrong at `at`. Returns false. */
__attribute__((format(printf, 3, 4))) static bool
refuse(struct reader *r, const char *at, const char *format, ...)
{
    int used = snprintf(r->why, SWEEP_GRID_WHY_BYTES,
                        "character %zu: ", (size_t)(at - r->text) + 1);
    va_list args;
    va_start(args, format);
    vsnprintf(r->why + used, SWEEP_GRID_WHY_BYTES - (size_t)used, format, args);
    va_end(args);
    return false;
}

static bool
refuse_memory(struct reader *r)
{
    snprintf(r->why, SWEEP_GRID_WHY_BYTES, "there is no memory for it");
    return false;
}

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '-' || c == '+';
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t
measure_word(const char *at)
{
    size_t length = 0;
    while (is_word(at[length]))
        length++;
    return length;
}

static void
skip_blanks(struct reader *r)
{
    r->at += strspn(r->at, " ");
}

/* Bound a quoted word's length for a message. */
static int
shown(size_t length)
{
    return (int)(length < SHOWN ? length : SHOWN);
}

/* --- values ------------------------------------------------------------------------------- */

/* Add a value to the last key; duplicates are refused. `length` 0 omits the key. */
static bool
add_value(struct reader *r, struct sweep_grid *g, const char *at, const char *text,
          size_t length)
{
    struct sweep_key *key = &g->keys[g->key_count - 1];
    for (size_t i = 0; i < key->count; i++) {
        const char *other = key->values[i].text ? key->values[i].text : "";
        if (strlen(other) == length && memcmp(other, text, length) == 0)
            return refuse(r, at, "%.*s has the value %.*s twice", SHOWN, key->name,
                          length ? shown(length) : 7, length ? text : "default");
    }
    if (key->count == SWEEP_VALUES_MAX)
        return refuse(r, at, "with this, %.*s has more than %d values", SHOWN, key->name,
                      SWEEP_VALUES_MAX);
    /* the array is full at every power of 2 */
    if ((key->count & (key->count - 1)) == 0) {
        size_t capacity = key->count ? key->count * 2 : 1;
        struct sweep_value *values = realloc(key->values, capacity * sizeof *values);
        if (!values)
            return refuse_memory(r);
        key->values = values;
    }
    char *copy = length ? strndup(text, length) : NULL;
    if (length && !copy)
        return refuse_memory(r);
    key->values[key->count++] =
        (struct sweep_value){.text = copy, .at = (size_t)(at - r->text) + 1};
    return true;
}

/* Read a bracketed list verbatim, without blanks. */
static bool
take_list(struct reader *r, struct sweep_grid *g)
{
    const char *begin = r->at;
    char list[SWEEP_GRID_BYTES_MAX + 1];
    size_t length = 0;
    for (; *r->at && *r->at != ']'; r->at++) {
        char c = *r->at;
        bool is_first = r->at == begin;
        if (c == ' ')
            continue;
        if (!is_first && !is_word(c) && c != ',' && c != ':' && c != '>')
            return refuse(r, r->at, "'%.1s' has no place in a list", r->at);
        list[length++] = c;
    }
    if (*r->at != ']')
        return refuse(r, begin, "the list that begins here has no end: expected ']'");
    list[length++] = *r->at++;
    return add_value(r, g, begin, list, length);
}

/* --- ranges ------------------------------------------------------------------------------- */

struct number {
    int64_t value;   /* in millionths */
    unsigned digits; /* decimals */
};

/* Read a number such as 20 or 0.25; negative numbers are refused. */
static bool
take_number(struct reader *r, struct number *n)
{
    const char *begin = r->at;
    *n = (struct number){0};
    while (is_digit(*r->at) && r->at - begin <= WHOLE_DIGITS_MAX)
        n->value = n->value * 10 + (*r->at++ - '0');
    bool is_good = r->at > begin && r->at - begin <= WHOLE_DIGITS_MAX;
    n->value *= UNIT;
    if (is_good && *r->at == '.') {
        int64_t part = UNIT;
        for (r->at++; is_digit(*r->at) && n->digits < UNIT_DIGITS; n->digits++) {
            part /= 10;
            n->value += (*r->at++ - '0') * part;
        }
        is_good = n->digits > 0;
    }
    if (is_good && !is_word(*r->at))
        return true;
    return refuse(r, begin,
                  "'%.*s' is not a number of a range: expected up to %d digits, and %u "
                  "behind a point",
                  shown(measure_word(begin)), begin, WHOLE_DIGITS_MAX, UNIT_DIGITS);
}

struct range {
    const char *begin;
    struct number from, to, by;
    bool multiplies;
};

static bool
take_colon(struct reader *r, const struct range *range)
{
    if (*r->at == ':') {
        r->at++;
        return true;
    }
    return refuse(r, range->begin,
                  "a range is FROM:TO:STEP or FROM:TO:xFACTOR, such as 20:512:x2");
}

static bool
check_range(struct reader *r, const struct range *range)
{
    if (range->from.value > range->to.value)
        return refuse(r, range->begin, "the range is empty: it begins above its end");
    if (range->multiplies && range->by.value <= UNIT)
        return refuse(r, range->begin, "the factor of a range is more than 1");
    if (range->multiplies && range->from.value == 0)
        return refuse(r, range->begin, "a range that multiplies begins above 0");
    if (!range->multiplies && range->by.value == 0)
        return refuse(r, range->begin, "the step of a range is more than 0");
    return true;
}

static int64_t
get_next(const struct range *range, int64_t value)
{
    if (!range->multiplies)
        return value + range->by.value;
    if (value > INT64_MAX / range->by.value)
        return INT64_MAX;
    return value * range->by.value / UNIT;
}

static void
write_number(int64_t value, unsigned digits, char text[48])
{
    char part[16];
    snprintf(part, sizeof part, "%06lld", (long long)(value % UNIT));
    part[digits] = '\0';
    snprintf(text, 48, "%lld%s%s", (long long)(value / UNIT), digits ? "." : "", part);
}

/* Add the values of a range. Neighbours that round to the same text are added once. */
static bool
add_range(struct reader *r, struct sweep_grid *g, const struct range *range)
{
    unsigned digits = range->from.digits;
    if (!range->multiplies && range->by.digits > digits)
        digits = range->by.digits;
    char before[48] = "", text[48];
    for (int64_t value = range->from.value; value <= range->to.value;) {
        write_number(value, digits, text);
        if (strcmp(text, before) != 0 &&
            !add_value(r, g, range->begin, text, strlen(text)))
            return false;
        memcpy(before, text, sizeof before);
        int64_t next = get_next(range, value);
        if (next <= value)
            return refuse(r, range->begin, "the factor of the range is too small");
        value = next;
    }
    return true;
}

static bool
take_range(struct reader *r, struct sweep_grid *g)
{
    struct range range = {.begin = r->at};
    if (!take_number(r, &range.from) || !take_colon(r, &range) ||
        !take_number(r, &range.to) || !take_colon(r, &range))
        return false;
    range.multiplies = *r->at == 'x';
    r->at += range.multiplies;
    return take_number(r, &range.by) && check_range(r, &range) && add_range(r, g, &range);
}

/* --- keys --------------------------------------------------------------------------------- */

static bool
take_value(struct reader *r, struct sweep_grid *g)
{
    skip_blanks(r);
    const char *begin = r->at;
    if (*begin == '[')
        return take_list(r, g);
    size_t length = measure_word(begin);
    if (begin[length] == ':')
        return take_range(r, g);
    if (length == 0)
        return refuse(r, begin, "%.*s has no value here", SHOWN,
                      g->keys[g->key_count - 1].name);
    r->at += length;
    bool is_default = length == 7 && memcmp(begin, "default", 7) == 0;
    return add_value(r, g, begin, begin, is_default ? 0 : length);
}

static bool
take_values(struct reader *r, struct sweep_grid *g)
{
    do {
        r->at++; /* skip '=' or ',' */
        if (!take_value(r, g))
            return false;
        skip_blanks(r);
    } while (*r->at == ',');
    if (!*r->at || *r->at == ';')
        return true;
    return refuse(r, r->at, "'%.1s' is not expected here, but ',', ';' or the end",
                  r->at);
}

static bool
take_key(struct reader *r, struct sweep_grid *g)
{
    skip_blanks(r);
    const char *begin = r->at;
    size_t length = measure_word(begin);
    r->at += length;
    skip_blanks(r);
    if (length == 0 || *r->at != '=')
        return refuse(r, begin, "expected KEY=VALUES, such as max_split_size_mb=20,64");
    if (g->key_count == SWEEP_KEYS_MAX)
        return refuse(r, begin, "a grid has at most %d keys", SWEEP_KEYS_MAX);
    for (size_t i = 0; i < g->key_count; i++) {
        if (strlen(g->keys[i].name) == length &&
            memcmp(g->keys[i].name, begin, length) == 0)
            return refuse(r, begin, "the key %.*s stands at character %zu already",
                          shown(length), begin, g->keys[i].at);
    }
    char *name = strndup(begin, length);
    if (!name)
        return refuse_memory(r);
    g->keys[g->key_count++] =
        (struct sweep_key){.name = name, .at = (size_t)(begin - r->text) + 1};
    return take_values(r, g);
}

/* Multiply the combinations by the last key's values. False: there are too many. */
static bool
multiply(struct reader *r, struct sweep_grid *g)
{
    const struct sweep_key *key = &g->keys[g->key_count - 1];
    g->combination_count *= key->count; /* cannot overflow: both factors are bounded */
    if (g->combination_count <= SWEEP_COMBINATIONS_MAX)
        return true;
    return refuse(r, r->text + key->at - 1,
                  "with %.*s there are %zu combinations or more, and %d is the most: "
                  "take fewer values",
                  SHOWN, key->name, g->combination_count, SWEEP_COMBINATIONS_MAX);
}

bool
sweep_grid_parse(const char *text, struct sweep_grid *grid,
                 char why[SWEEP_GRID_WHY_BYTES])
{
    struct reader r = {.text = text, .at = text, .why = why};
    *grid = (struct sweep_grid){.combination_count = 1};
    why[0] = '\0';
    if (strnlen(text, SWEEP_GRID_BYTES_MAX + 1) > SWEEP_GRID_BYTES_MAX)
        return refuse(&r, text + SWEEP_GRID_BYTES_MAX, "a grid has at most %d characters",
                      SWEEP_GRID_BYTES_MAX);
    for (;;) {
        if (!take_key(&r, grid) || !multiply(&r, grid))
            return false;
        if (!*r.at)
            return true;
        r.at++; /* skip ';' */
        skip_blanks(&r);
        if (!*r.at)
            return true; /* a trailing ';' is allowed */
    }
}

void
sweep_grid_finish(struct sweep_grid *grid)
{
    for (size_t i = 0; i < grid->key_count; i++) {
        struct sweep_key *key = &grid->keys[i];
        for (size_t j = 0; j < key->count; j++)
            free(key->values[j].text);
        free(key->values);
        free(key->name);
    }
    *grid = (struct sweep_grid){0};
}

/* --- combinations ------------------------------------------------------------------------- */

const struct sweep_value *
sweep_grid_value(const struct sweep_grid *grid, size_t combination, size_t key)
{
    for (size_t i = grid->key_count - 1; i > key; i--)
        combination /= grid->keys[i].count;
    return &grid->keys[key].values[combination % grid->keys[key].count];
}

/* Append "name:value", after a comma unless the text is empty. */
static size_t
append(char *to, size_t capacity, size_t used, const char *name, const char *value)
{
    return used + (size_t)snprintf(to + used, capacity - used, "%s%s:%s", used ? "," : "",
                                   name, value);
}

char *
sweep_grid_write(const struct sweep_grid *grid, size_t combination)
{
    size_t capacity = 1, used = 0;
    for (size_t i = 0; i < grid->key_count; i++) {
        const struct sweep_value *value = sweep_grid_value(grid, combination, i);
        if (value->text)
            capacity += strlen(grid->keys[i].name) + strlen(value->text) + 2;
    }
    char *conf = calloc(capacity, 1);
    for (size_t i = 0; conf && i < grid->key_count; i++) {
        const struct sweep_value *value = sweep_grid_value(grid, combination, i);
        if (value->text)
            used = append(conf, capacity, used, grid->keys[i].name, value->text);
    }
    return conf;
}
