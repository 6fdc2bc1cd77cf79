/* SPDX-License-Identifier: Apache-2.0 */

/* Each parser is one scan from left to right, in place. See topology_text.h for the
   formats. */
#include "host/facts/topology_text.h"

#include "base/ascii.h"
#include "host/facts/fact_text.h"

/* Read a word that ends at `end` or at a newline. Returns its length; *at moves past
   `end`, but not past a newline. */
static size_t
take_word(const char *text, size_t length, size_t *at, char end)
{
    size_t begin = *at;
    while (*at < length && text[*at] != end && text[*at] != '\n')
        ++*at;
    size_t word = *at - begin;
    *at += *at < length && text[*at] == end;
    return word;
}

/* Return whether only a newline or the end is left at `at`. */
static bool
is_over(const char *text, size_t length, size_t at)
{
    return at == length || (at + 1 == length && text[at] == '\n');
}

bool
dryi_topology_distances(const char *text, size_t length, uint8_t *distances, size_t count)
{
    for (int is_second = 0; is_second < 2; is_second++) {
        size_t at = 0;
        for (size_t i = 0; i < count; i++) {
            size_t begin = at, word = take_word(text, length, &at, ' ');
            uint64_t n;
            if (!dryi_fact_number(text + begin, word, &n) || n == 0 || n > UINT8_MAX)
                return false;
            if (is_second)
                distances[i] = (uint8_t)n;
        }
        if (!is_over(text, length, at))
            return false;
    }
    return true;
}

bool
dryi_topology_hex(const char *text, size_t length, uint32_t *number)
{
    uint64_t n;
    if (!dryi_text_begins(text, length, "0x"))
        return false;
    length -= length && text[length - 1] == '\n';
    if (length < 2 || !dryi_fact_hexadecimal(text + 2, length - 2, &n) || n > UINT32_MAX)
        return false;
    *number = (uint32_t)n;
    return true;
}

bool
dryi_topology_node(const char *text, size_t length, int32_t *node)
{
    uint64_t n;
    if (dryi_text_is(text, length, "-1\n") || dryi_text_is(text, length, "-1")) {
        *node = -1;
        return true;
    }
    if (!dryi_fact_number(text, length, &n) || n > INT32_MAX)
        return false;
    *node = (int32_t)n;
    return true;
}

static bool
take_hex(const char *text, size_t length, uint64_t max, uint64_t *key)
{
    uint64_t n;
    if (!dryi_fact_hexadecimal(text, length, &n) || n > max)
        return false;
    *key = *key * (max + 1) + n;
    return true;
}

bool
dryi_topology_pci(const char *name, size_t length, uint64_t *key)
{
    /* The kernel prints domains by "%04x", so those of some virtual bridges have more
       than 4 digits. */
    size_t at = 0, domain = take_word(name, length, &at, ':');
    uint64_t k = 0;
    if (domain < 4 || domain > 8 || (domain > 4 && name[0] == '0') ||
        length - domain != 8 || name[domain] != ':' || name[domain + 3] != ':' ||
        name[domain + 6] != '.')
        return false;
    const char *bus = name + domain + 1;
    if (!take_hex(name, domain, UINT32_MAX, &k) || !take_hex(bus, 2, 0xff, &k) ||
        !take_hex(bus + 3, 2, 0x1f, &k) || !take_hex(bus + 6, 1, 7, &k))
        return false;
    *key = k;
    return true;
}

#define LONGEST_US UINT64_C(1000000000000)

static bool
get_limit(uint64_t quota_us, uint64_t period_us, uint64_t *limit)
{
    if (quota_us == 0 || quota_us > LONGEST_US || period_us == 0 ||
        period_us > LONGEST_US)
        return false;
    *limit = (quota_us * 1000 + period_us - 1) / period_us;
    return true;
}

bool
dryi_topology_cpu_max(const char *text, size_t length, uint64_t *limit)
{
    uint64_t quota, period;
    size_t at = 0, word = take_word(text, length, &at, ' ');
    if (word == 0 || at <= word || !dryi_fact_number(text, word, &quota) ||
        !dryi_fact_number(text + at, length - at, &period))
        return false;
    if (!dryi_text_is(text, word, "max"))
        return get_limit(quota, period, limit);
    *limit = 0;
    return true;
}

bool
dryi_topology_cpu_quota(const char *quota, size_t quota_length, const char *period,
                        size_t period_length, uint64_t *limit)
{
    uint64_t quota_us, period_us;
    if (dryi_text_is(quota, quota_length, "-1\n")) {
        *limit = 0;
        return true;
    }
    return dryi_fact_number(quota, quota_length, &quota_us) &&
           dryi_fact_number(period, period_length, &period_us) &&
           get_limit(quota_us, period_us, limit);
}
