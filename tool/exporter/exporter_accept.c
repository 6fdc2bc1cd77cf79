/* SPDX-License-Identifier: Apache-2.0 */
/* See exporter_accept.h. The media types have no quoted parameters to parse. */
#include "exporter/exporter_accept.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define WEIGHT_MAX 1000u

struct word {
    const char *text;
    size_t length;
};

/* Take the text up to `separator` or `end`, without surrounding blanks, and advance *at
   past the separator. */
static struct word
take(const char **at, const char *end, char separator)
{
    const char *from = *at;
    const char *to = memchr(from, separator, (size_t)(end - from));
    to = to ? to : end;
    *at = to < end ? to + 1 : end;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    return (struct word){from, (size_t)(to - from)};
}

static bool
is(struct word word, const char *text)
{
    return word.length == strlen(text) && strncasecmp(word.text, text, word.length) == 0;
}

/* Read a weight in thousandths: "0.25" is 250. Malformed weights are 0. */
static unsigned
read_weight(struct word word)
{
    unsigned weight = 0, unit = WEIGHT_MAX;
    for (size_t i = 0; i < word.length && i < 5; i++) {
        if (i == 1 && word.text[i] == '.')
            continue;
        if (i == 1 || word.text[i] < '0' || word.text[i] > '9')
            return 0;
        weight += (unsigned)(word.text[i] - '0') * unit;
        unit /= 10;
    }
    return weight < WEIGHT_MAX ? weight : WEIGHT_MAX;
}

struct range {
    struct word type;
    unsigned weight;
    bool is_other_version;
};

static struct range
read_range(struct word text)
{
    const char *at = text.text, *end = text.text + text.length;
    struct range range = {take(&at, end, ';'), WEIGHT_MAX, false};
    while (at < end) {
        struct word value = take(&at, end, ';');
        const char *in = value.text, *last = value.text + value.length;
        struct word key = take(&in, last, '=');
        value = take(&in, last, '\0');
        if (is(key, "q"))
            range.weight = read_weight(value);
        else if (is(key, "version") && !is(value, "1.0.0"))
            range.is_other_version = true;
    }
    return range;
}

enum exporter_format
exporter_accept(const char *accept)
{
    unsigned open = 0, plain = 0, any = 0;
    const char *at = accept ? accept : "";
    const char *end = at + strlen(at);
    while (at < end) {
        struct range range = read_range(take(&at, end, ','));
        unsigned *weight = NULL;
        if (is(range.type, "application/openmetrics-text") && !range.is_other_version)
            weight = &open;
        else if (is(range.type, "text/plain"))
            weight = &plain;
        else if (is(range.type, "text/*") || is(range.type, "*/*"))
            weight = &any;
        if (weight && range.weight > *weight)
            *weight = range.weight;
    }
    plain = plain ? plain : any;
    return open > 0 && open >= plain ? EXPORTER_OPENMETRICS : EXPORTER_PROMETHEUS;
}
