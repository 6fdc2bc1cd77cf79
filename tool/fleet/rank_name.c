/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules are in rank_name.h. Each rule scans one component of a path. Sources of the
 * names: the trainers' own code that writes snapshots, as of 2026.
 */
#include "fleet/rank_name.h"

#include <string.h>
#include <strings.h>

/* A component of a path. */
struct part {
    const char *bytes;
    size_t length;
};

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_separator(char c)
{
    return c == '-' || c == '_' || c == '.' || c == '=';
}

/* Read the digits at `at`; *end is after them. RANK_UNKNOWN if none, or above `max`. */
static uint32_t
read_number(struct part part, size_t at, uint32_t max, size_t *end)
{
    uint64_t value = 0;
    size_t i = at;
    for (; i < part.length && is_digit(part.bytes[i]); i++)
        value = value > max ? value : value * 10 + (uint64_t)(part.bytes[i] - '0');
    *end = i;
    return i > at && value <= max ? (uint32_t)value : RANK_UNKNOWN;
}

static bool
has_word(struct part part, size_t at, const char *word)
{
    size_t length = strlen(word);
    return at + length <= part.length && strncasecmp(part.bytes + at, word, length) == 0;
}

/* Return true for a rank within a host: "local_rank", "localrank", "node-rank". */
static bool
is_of_host(struct part part, size_t at)
{
    static const char *const words[] = {"local", "node", "group"};
    size_t end = at > 0 && is_separator(part.bytes[at - 1]) ? at - 1 : at;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (end >= length && has_word(part, end - length, words[i]))
            return true;
    }
    return false;
}

/* Find the last "rank3", "rank_3", "rank-3" or "rank=3" of a component. */
static uint32_t
find_word(struct part part)
{
    uint32_t found = RANK_UNKNOWN;
    for (size_t at = 0; at + 5 <= part.length; at++) {
        if (!has_word(part, at, "rank") || is_of_host(part, at) ||
            (at > 0 && is_letter(part.bytes[at - 1])))
            continue;
        size_t from = at + 4, end;
        from += is_separator(part.bytes[from]);
        uint32_t rank = read_number(part, from, RANK_MAX, &end);
        if (rank != RANK_UNKNOWN)
            found = rank;
    }
    return found;
}

/* Remove endings such as ".pickle" and ".pkl.gz", but not ".3". */
static struct part
cut_endings(struct part part)
{
    size_t dot = part.length;
    while (dot > 1) {
        size_t i = dot - 1;
        while (i > 0 && part.bytes[i] != '.')
            i--;
        if (i == 0 || is_digit(part.bytes[i + 1 < dot ? i + 1 : i]))
            break;
        dot = i;
    }
    return (struct part){part.bytes, dot};
}

/* Match Drystone's own names, which count failures after the rank: "oom-3-2". */
static uint32_t
find_ours(struct part stem)
{
    size_t end;
    if (!has_word(stem, 0, "oom-"))
        return RANK_UNKNOWN;
    uint32_t rank = read_number(stem, 4, RANK_OF_NUMBER_MAX, &end);
    if (rank == RANK_UNKNOWN || end == stem.length)
        return rank;
    if (stem.bytes[end] != '-' ||
        read_number(stem, end + 1, RANK_OF_NUMBER_MAX, &end) == RANK_UNKNOWN)
        return RANK_UNKNOWN;
    return end == stem.length ? rank : RANK_UNKNOWN;
}

/*
 * Find a number at the end that is alone, or follows a separator or "gpu". A number after
 * "rank" was refused by find_word(), as a rank within a host.
 */
static uint32_t
find_last_number(struct part stem)
{
    size_t from = stem.length, end;
    while (from > 0 && is_digit(stem.bytes[from - 1]))
        from--;
    bool is_behind = from > 0 && is_separator(stem.bytes[from - 1]);
    size_t word = is_behind ? from - 1 : from;
    if (word >= 4 && has_word(stem, word - 4, "rank"))
        return RANK_UNKNOWN;
    bool is_alone =
        from == 0 || is_behind || (from >= 3 && has_word(stem, from - 3, "gpu"));
    return is_alone ? read_number(stem, from, RANK_OF_NUMBER_MAX, &end) : RANK_UNKNOWN;
}

/* Return the component of `path` that ends before `end`. */
static struct part
part_before(const char *path, size_t end)
{
    size_t from = end;
    while (from > 0 && path[from - 1] != '/')
        from--;
    return (struct part){path + from, end - from};
}

uint32_t
rank_name_find(const char *path)
{
    struct part name = part_before(path, strlen(path)), part = name;
    uint32_t rank = find_word(name);
    while (rank == RANK_UNKNOWN && part.bytes > path) {
        part = part_before(path, (size_t)(part.bytes - path) - 1);
        rank = find_word(part);
    }
    struct part stem = cut_endings(name);
    if (rank == RANK_UNKNOWN)
        rank = find_ours(stem);
    return rank == RANK_UNKNOWN ? find_last_number(stem) : rank;
}

uint32_t
rank_name_match(const regex_t *pattern, const char *path)
{
    regmatch_t match[2];
    size_t end;
    if (regexec(pattern, path, 2, match, 0) != 0 || match[1].rm_so < 0)
        return RANK_UNKNOWN;
    struct part group = {path + match[1].rm_so,
                         (size_t)(match[1].rm_eo - match[1].rm_so)};
    uint32_t rank = read_number(group, 0, RANK_MAX, &end);
    return end == group.length ? rank : RANK_UNKNOWN;
}

/* --- order -------------------------------------------------------------------------------- */

/* Compare two runs of digits by value. *a and *b move past them. */
static int
compare_numbers(const char **a, const char **b)
{
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    size_t x = strspn(*a, "0123456789"), y = strspn(*b, "0123456789");
    int order = x != y ? (x > y) - (x < y) : strncmp(*a, *b, x);
    *a += x;
    *b += y;
    return order;
}

int
rank_name_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x && *y) {
        int order;
        if (is_digit(*x) && is_digit(*y)) {
            order = compare_numbers(&x, &y);
        } else {
            order = (unsigned char)*x - (unsigned char)*y;
            x++;
            y++;
        }
        if (order != 0)
            return order;
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b); /* equal by value: "01" and "1" */
}
