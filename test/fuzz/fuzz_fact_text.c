/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a file of /sys or /proc. Refused, an output stays as it was; read, it is what
 * the text says. A set, written as a list, must read as itself.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/facts/fact_text.h"

#define BITS 128
#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_number(const char *text, size_t size)
{
    uint64_t number = UNTOUCHED;
    if (!dryi_fact_number(text, size, &number)) {
        require(number == UNTOUCHED);
        return;
    }
    char again[32];
    int length = snprintf(again, sizeof again, "%llu\n", (unsigned long long)number);
    uint64_t same = 0;
    require(dryi_fact_number(again, (size_t)length, &same) && same == number);
}

static int
has(const uint64_t *words, int bit)
{
    return (int)(words[bit / 64] >> bit % 64 & 1);
}

static size_t
write_list(const uint64_t *words, char *text, size_t capacity)
{
    size_t used = 0;
    for (int i = 0; i < BITS; i++) {
        int last = i;
        if (!has(words, i))
            continue;
        while (last + 1 < BITS && has(words, last + 1))
            last++;
        used += (size_t)snprintf(text + used, capacity - used, "%s%d-%d", used ? "," : "",
                                 i, last);
        i = last;
    }
    return used;
}

static void
check_list(const char *text, size_t size)
{
    uint64_t words[BITS / 64 + 1] = {UNTOUCHED, UNTOUCHED, UNTOUCHED};
    if (!dryi_fact_list(text, size, words, BITS)) {
        require(words[0] == UNTOUCHED && words[1] == UNTOUCHED);
    } else {
        char again[BITS * 8];
        uint64_t same[BITS / 64];
        size_t length = write_list(words, again, sizeof again);
        require(dryi_fact_list(again, length, same, BITS));
        require(memcmp(words, same, sizeof same) == 0);
    }
    require(words[BITS / 64] == UNTOUCHED);
}

static void
check_keys(const char *text, size_t size)
{
    uint64_t number = UNTOUCHED;
    if (!dryi_fact_keyed(text, size, "MemFree", &number))
        require(number == UNTOUCHED);
    else
        require(memmem(text, size, "MemFree:", 8) != NULL);
    number = UNTOUCHED;
    if (!dryi_fact_field(text, size, "inactive_file", &number))
        require(number == UNTOUCHED);
    else
        require(memmem(text, size, "inactive_file ", 14) != NULL);
    if (dryi_fact_is_chosen(text, size, "never"))
        require(memmem(text, size, "[never]", 7) != NULL);
}

static void
check_pool_name(const char *text, size_t size)
{
    uint64_t bytes = UNTOUCHED;
    if (!dryi_fact_pool_name(text, size, &bytes)) {
        require(bytes == UNTOUCHED);
        return;
    }
    require(bytes >= 1024 && (bytes & (bytes - 1)) == 0);
}

static void
check_lines(const char *text, size_t size)
{
    size_t at = 0, length, sum = 0;
    const char *line;
    while (dryi_fact_line(text, size, &at, &line, &length)) {
        require(memchr(line, '\n', length) == NULL && line + length <= text + size);
        sum += length;
    }
    require(at == size && sum <= size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy, so that a byte too far is seen. */
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    char *exact = size ? realloc(text, size) : text;
    text = exact ? exact : text;
    check_number(text, size);
    check_list(text, size);
    check_keys(text, size);
    check_pool_name(text, size);
    check_lines(text, size);
    free(text);
    return 0;
}
