/* SPDX-License-Identifier: Apache-2.0 */

/* One line is buffered and parsed in place. See numa_maps_text.h for the format. */
#include "host/facts/numa_maps_text.h"

#include <string.h>

#include "base/ascii.h"
#include "host/facts/fact_text.h"

#define NODES_MAX 1024 /* the kernel's largest configuration */
#define PAGE_KIB_MAX (UINT64_C(1) << 30)

void
dryi_numa_maps_init(struct dryi_numa_maps *maps, uint64_t address, uint64_t bytes,
                    void (*take)(void *to, int node, uint64_t bytes), void *to)
{
    *maps = (struct dryi_numa_maps){
        .begin = address, .end = address + bytes, .take = take, .to = to};
}

/* Find the next word from *at on; false: there is none. */
static bool
next_word(const struct dryi_numa_maps *m, size_t *at, const char **word, size_t *length)
{
    while (*at < m->line_length && m->line[*at] == ' ')
        ++*at;
    size_t begin = *at;
    while (*at < m->line_length && m->line[*at] != ' ')
        ++*at;
    *word = m->line + begin;
    *length = *at - begin;
    return *length > 0;
}

static bool
find_page_kib(const struct dryi_numa_maps *m, uint64_t *kib)
{
    static const char key[] = "kernelpagesize_kB=";
    size_t at = 0, length;
    const char *word;
    while (next_word(m, &at, &word, &length))
        if (dryi_text_begins(word, length, key))
            return dryi_fact_number(word + sizeof key - 1, length - (sizeof key - 1),
                                    kib) &&
                   *kib > 0 && *kib <= PAGE_KIB_MAX;
    return false;
}

/* Parse "N12=345": node and number of pages. */
static bool
read_share(const char *word, size_t length, uint64_t *node, uint64_t *count)
{
    const char *equals = length ? memchr(word, '=', length) : NULL;
    if (!equals || word[0] != 'N')
        return false;
    size_t name = (size_t)(equals - word);
    return dryi_fact_number(word + 1, name - 1, node) &&
           dryi_fact_number(equals + 1, length - name - 1, count);
}

static void
take_shares(struct dryi_numa_maps *m)
{
    uint64_t kib, node, count;
    size_t at = 0, length;
    const char *word;
    if (m->is_cut || !find_page_kib(m, &kib)) {
        m->is_unclear = true;
        return;
    }
    while (next_word(m, &at, &word, &length)) {
        if (!read_share(word, length, &node, &count))
            continue;
        if (node >= NODES_MAX || count > (m->end - m->begin) / 1024 / kib) {
            m->is_unclear = true;
            return;
        }
        m->take(m->to, (int)node, count * kib * 1024);
    }
}

static void
read_line(struct dryi_numa_maps *m)
{
    size_t at = 0, length;
    const char *word;
    uint64_t begin;
    if (m->is_unclear || !next_word(m, &at, &word, &length) ||
        !dryi_fact_hexadecimal(word, length, &begin) || begin < m->begin ||
        begin >= m->end)
        return;
    m->has_lines = true;
    take_shares(m);
}

void
dryi_numa_maps_feed(struct dryi_numa_maps *maps, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n') {
            read_line(maps);
            maps->line_length = 0;
            maps->is_cut = false;
        } else if (maps->line_length < sizeof maps->line) {
            maps->line[maps->line_length++] = text[i];
        } else {
            maps->is_cut = true;
        }
    }
}

bool
dryi_numa_maps_end(struct dryi_numa_maps *maps)
{
    read_line(maps);
    maps->line_length = 0;
    return maps->has_lines && !maps->is_unclear;
}
