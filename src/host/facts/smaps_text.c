/* SPDX-License-Identifier: Apache-2.0 */

/* One line is buffered, and two sums are kept. See smaps_text.h. */
#include "host/facts/smaps_text.h"

#include <string.h>

#include "base/bits.h"
#include "host/facts/fact_text.h"

void
dryi_smaps_init(struct dryi_smaps *smaps, uint64_t address, uint64_t bytes)
{
    *smaps = (struct dryi_smaps){.begin = address, .end = address + bytes};
}

/* Parse "55ef8844a000-55ef8844d000 r--p ...". */
static bool
read_head(const struct dryi_smaps *s, uint64_t *begin, uint64_t *end)
{
    const char *minus = s->line_length ? memchr(s->line, '-', s->line_length) : NULL;
    if (!minus)
        return false;
    size_t length = (size_t)(minus - s->line), left = s->line_length - length - 1;
    const char *space = left ? memchr(minus + 1, ' ', left) : NULL;
    return space && dryi_fact_hexadecimal(s->line, length, begin) &&
           dryi_fact_hexadecimal(minus + 1, (size_t)(space - minus - 1), end) &&
           *begin < *end;
}

static void
begin_mapping(struct dryi_smaps *s, uint64_t begin, uint64_t end)
{
    s->is_inside = begin < s->end && end > s->begin;
    if (!s->is_inside)
        return;
    if (begin < s->begin || end > s->end)
        s->is_unclear = true;
    else
        s->mapped_bytes = dryi_add_saturating(s->mapped_bytes, end - begin);
}

static void
read_line(struct dryi_smaps *s)
{
    static const char *const huge[] = {"AnonHugePages", "ShmemPmdMapped",
                                       "Shared_Hugetlb", "Private_Hugetlb"};
    uint64_t begin, end, bytes;
    if (read_head(s, &begin, &end)) {
        begin_mapping(s, begin, end);
        return;
    }
    if (!s->is_inside)
        return;
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        if (!dryi_fact_keyed(s->line, s->line_length, huge[i], &bytes))
            continue;
        s->has_fields = true;
        s->huge_bytes = dryi_add_saturating(s->huge_bytes, bytes);
    }
}

void
dryi_smaps_feed(struct dryi_smaps *smaps, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n') {
            read_line(smaps);
            smaps->line_length = 0;
        } else if (smaps->line_length < sizeof smaps->line) {
            smaps->line[smaps->line_length++] = text[i];
        }
    }
}

bool
dryi_smaps_end(struct dryi_smaps *smaps, uint64_t *huge_bytes)
{
    read_line(smaps);
    smaps->line_length = 0;
    if (smaps->is_unclear || !smaps->has_fields ||
        smaps->mapped_bytes != smaps->end - smaps->begin ||
        smaps->huge_bytes > smaps->mapped_bytes)
        return false;
    *huge_bytes = smaps->huge_bytes;
    return true;
}
