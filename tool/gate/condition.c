/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in condition.h. The text is parsed in one pass from left to right. */
#include "gate/condition.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/term.h"

#define WORD_BYTES 64
#define PERCENT_MAX 1000000u

struct reader {
    const char *at;
    char *why;
};

__attribute__((format(printf, 2, 3))) static bool
refuse(struct reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, CONDITION_WHY_BYTES, format, args);
    va_end(args);
    return false;
}

static void
skip_blanks(struct reader *r)
{
    r->at += strspn(r->at, " \t");
}

static bool
is_in_word(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

/* Take the next word, cut to WORD_BYTES. Returns its full length. */
static size_t
take_word(struct reader *r, char word[WORD_BYTES])
{
    size_t length = 0;
    while (is_in_word(r->at[length]))
        length++;
    snprintf(word, WORD_BYTES, "%.*s", (int)(length < WORD_BYTES ? length : WORD_BYTES),
             r->at);
    r->at += length;
    return length;
}

/* --- figures ------------------------------------------------------------------------------ */

static bool
is_figure(const struct dry_field *f)
{
    return f->type == DRY_FIELD_BOOL ||
           (f->unit != DRY_UNIT_NONE && f->unit != DRY_UNIT_EVENT &&
            f->type != DRY_FIELD_REAL);
}

bool
figures_next(const struct figures *figures, struct figure *at)
{
    size_t i = 0;
    if (at->field)
        i = (size_t)(at->field - figures->tables[at->table].list) + 1;
    for (; at->table < figures->table_count; at->table++, i = 0) {
        const struct dry_fields *table = &figures->tables[at->table];
        while (i < table->count && !is_figure(&table->list[i]))
            i++;
        if (i < table->count) {
            at->field = &table->list[i];
            return true;
        }
    }
    return false;
}

static size_t
name_length(const char *key)
{
    static const char unit[] = "_bytes";
    size_t length = strlen(key), tail = sizeof unit - 1;
    bool has_unit = length > tail && strcmp(key + length - tail, unit) == 0;
    return has_unit ? length - tail : length;
}

const char *
figure_write_name(const struct figure *figure, char name[FIGURE_NAME_BYTES])
{
    const char *key = figure->field->key;
    snprintf(name, FIGURE_NAME_BYTES, "%.*s", (int)name_length(key), key);
    return name;
}

uint64_t
figure_get(const struct figure *figure, const void *object)
{
    struct dry_field_value value;
    if (!dry_field_get(figure->field, object, &value))
        return FIGURE_UNKNOWN;
    bool is_time = figure->field->unit == DRY_UNIT_NANOSECONDS;
    return is_time ? value.number / 1000 : value.number;
}

/* Write all names after one another, as many as there is room for. */
static void
list_names(const struct figures *figures, char *text, size_t capacity)
{
    size_t used = 0;
    char name[FIGURE_NAME_BYTES];
    text[0] = '\0';
    for (struct figure f = {0}; figures_next(figures, &f) && used < capacity;)
        used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? ", " : "",
                                 figure_write_name(&f, name));
}

/* --- reading ------------------------------------------------------------------------------ */

static bool
take_figure(struct reader *r, const struct figures *figures, struct figure *found)
{
    char word[WORD_BYTES], name[FIGURE_NAME_BYTES];
    char best[FIGURE_NAME_BYTES] = "", names[CONDITION_WHY_BYTES - WORD_BYTES - 32];
    skip_blanks(r);
    size_t length = take_word(r, word);
    struct suggestion s = {.word = word};
    for (struct figure f = {0}; figures_next(figures, &f);) {
        size_t distance = s.best ? s.distance : SIZE_MAX;
        suggestion_consider(&s, figure_write_name(&f, name));
        if (s.best && s.distance < distance)
            snprintf(best, sizeof best, "%s", name);
        if (length < WORD_BYTES &&
            (strcmp(word, name) == 0 || strcmp(word, f.field->key) == 0)) {
            *found = f;
            return true;
        }
    }
    list_names(figures, names, sizeof names);
    if (length == 0)
        return refuse(r, "it begins with a figure: one of %s", names);
    if (s.best)
        return refuse(r, "there is no figure %s; did you mean %s?", word, best);
    return refuse(r, "there is no figure %s; expected one of %s", word, names);
}

static bool
take_relation(struct reader *r, enum relation *relation)
{
    /* ">=" must precede ">", whose text is its prefix. */
    static const struct {
        const char *text;
        enum relation relation;
    } known[] = {{">=", RELATION_ABOVE_OR_EQUAL}, {"<=", RELATION_BELOW_OR_EQUAL},
                 {"==", RELATION_EQUAL},          {"!=", RELATION_UNEQUAL},
                 {">", RELATION_ABOVE},           {"<", RELATION_BELOW}};
    skip_blanks(r);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].text);
        if (strncmp(r->at, known[i].text, length) != 0)
            continue;
        *relation = known[i].relation;
        r->at += length;
        return true;
    }
    return refuse(r, "behind the figure stands one of > >= < <= == !=");
}

/* Parse a share such as "2%" or "0.5 %". Returns false if it is invalid. */
static bool
take_percent(struct reader *r, const char *text, size_t length, uint32_t *hundredths)
{
    char *end;
    unsigned long whole = strtoul(text, &end, 10);
    unsigned scale = 100;
    *hundredths = 0;
    if (text[0] < '0' || text[0] > '9' || whole > PERCENT_MAX)
        return refuse(r, "a share is a number from 0 to %u: 2%%", PERCENT_MAX);
    if (*end == '.') {
        for (end++; *end >= '0' && *end <= '9'; end++) {
            scale /= 10;
            *hundredths += scale * (unsigned)(*end - '0');
        }
    }
    end += strspn(end, " \t");
    if (end != text + length - 1)
        return refuse(r, "'%s' is not a share such as 2%%", text);
    *hundredths += (uint32_t)whole * 100;
    return true;
}

static bool
take_count(struct reader *r, const char *text, uint64_t *count)
{
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text) ||
        strlen(text) > 18)
        return refuse(r, "'%s' is not a whole number of at most 18 digits", text);
    *count = strtoull(text, NULL, 10);
    return true;
}

/* Parse the rest as an amount in the figure's unit, or as a share of a baseline. */
static bool
take_amount(struct reader *r, struct condition *c)
{
    char text[WORD_BYTES], name[FIGURE_NAME_BYTES];
    skip_blanks(r);
    size_t length = strlen(r->at);
    while (length > 0 && (r->at[length - 1] == ' ' || r->at[length - 1] == '\t'))
        length--;
    if (length >= sizeof text)
        return refuse(r, "what stands behind the comparison is too long");
    term_make_printable(text, sizeof text, r->at, length);
    if (length > 0 && text[length - 1] == '%') {
        if (!c->is_of_baseline)
            return refuse(r, "a share is one of a baseline: %s > baseline + 2%%",
                          figure_write_name(&c->figure, name));
        return take_percent(r, text, length, &c->percent_hundredths);
    }
    if (c->figure.field->unit != DRY_UNIT_BYTES)
        return take_count(r, text, &c->bytes);
    if (!options_parse_size(text, &c->bytes))
        return refuse(r, "'%s' is not a size such as 512MiB or 40GiB", text);
    return true;
}

static bool
take_bound(struct reader *r, struct condition *c)
{
    char word[WORD_BYTES];
    skip_blanks(r);
    if (!is_in_word(*r->at))
        return take_amount(r, c);
    take_word(r, word);
    if (strcmp(word, "baseline") != 0)
        return refuse(r, "'%s' is neither a number nor baseline", word);
    c->is_of_baseline = true;
    skip_blanks(r);
    if (*r->at == '\0')
        return true;
    if (*r->at != '+' && *r->at != '-')
        return refuse(r, "behind baseline stands nothing, + or -");
    c->is_less = *r->at++ == '-';
    return take_amount(r, c);
}

bool
condition_parse(const char *text, const struct figures *figures,
                struct condition *condition, char why[CONDITION_WHY_BYTES])
{
    struct reader r = {.at = text, .why = why};
    struct condition c = {0};
    why[0] = '\0';
    if (!take_figure(&r, figures, &c.figure))
        return false;
    assert(c.figure.field);
    if (!take_relation(&r, &c.relation) || !take_bound(&r, &c))
        return false;
    *condition = c;
    return true;
}

uint64_t
condition_bound(const struct condition *c, uint64_t baseline)
{
    if (!c->is_of_baseline)
        return c->bytes;
    /* Divide before multiplying, and add the remainder's share: 64 bits suffice. */
    uint64_t scale = 10000, share = c->percent_hundredths, part, more, sum;
    if (__builtin_mul_overflow(baseline / scale, share, &part))
        part = UINT64_MAX;
    uint64_t rest = baseline % scale * share / scale;
    if (__builtin_add_overflow(part, rest, &more) ||
        __builtin_add_overflow(more, c->bytes, &more))
        more = UINT64_MAX;
    if (c->is_less)
        return more < baseline ? baseline - more : 0;
    return __builtin_add_overflow(baseline, more, &sum) ? UINT64_MAX : sum;
}

bool
condition_holds(const struct condition *c, uint64_t value, uint64_t baseline)
{
    uint64_t bound = condition_bound(c, baseline);
    switch (c->relation) {
    case RELATION_ABOVE:
        return value > bound;
    case RELATION_ABOVE_OR_EQUAL:
        return value >= bound;
    case RELATION_BELOW:
        return value < bound;
    case RELATION_BELOW_OR_EQUAL:
        return value <= bound;
    case RELATION_EQUAL:
        return value == bound;
    case RELATION_UNEQUAL:
        return value != bound;
    }
    return false;
}
