/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_SMAPS_TEXT_H
#define DRYI_HOST_SMAPS_TEXT_H

/*
 * Counts the bytes of a range in huge pages from /proc/self/smaps. The file is long, so
 * it is fed in portions of any size, and long lines are truncated.
 *
 * The result is not known if a mapping is only partly in the range. The library's regions
 * are between inaccessible pages, so theirs never are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRYI_SMAPS_LINE_MAX 96

struct dryi_smaps {
    uint64_t begin, end; /* the range */
    uint64_t huge_bytes, mapped_bytes;
    bool is_inside; /* the mapping being read is in the range */
    bool is_unclear;
    bool has_fields;                /* the mapping has the needed fields */
    char line[DRYI_SMAPS_LINE_MAX]; /* the line being read */
    size_t line_length;
};

void dryi_smaps_init(struct dryi_smaps *smaps, uint64_t address, uint64_t bytes);
void dryi_smaps_feed(struct dryi_smaps *smaps, const char *text, size_t length);
/* End the text; false: not known. */
bool dryi_smaps_end(struct dryi_smaps *smaps, uint64_t *huge_bytes);

#endif
