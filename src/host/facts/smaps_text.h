/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_SMAPS_TEXT_H
#define DRYI_HOST_SMAPS_TEXT_H

/*
 * How much of a range lies in huge pages, from /proc/self/smaps, which is long: it is fed in
 * pieces of any size, and lines longer than we need are cut.
 *
 * A mapping that only partly lies in the range cannot be told apart; then the answer is not
 * known. Our regions stand between addresses without access, so that theirs never do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRYI_SMAPS_LINE_MAX 96

struct dryi_smaps {
    uint64_t begin, end; /* the range */
    uint64_t huge_bytes, mapped_bytes;
    bool is_inside; /* the mapping being read lies in the range */
    bool is_unclear;
    bool has_fields;                /* of a mapping inside */
    char line[DRYI_SMAPS_LINE_MAX]; /* the one being read */
    size_t line_length;
};

void dryi_smaps_init(struct dryi_smaps *smaps, uint64_t address, uint64_t bytes);
void dryi_smaps_feed(struct dryi_smaps *smaps, const char *text, size_t length);
/* The end of the text; false: not known. */
bool dryi_smaps_end(struct dryi_smaps *smaps, uint64_t *huge_bytes);

#endif
