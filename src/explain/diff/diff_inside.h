/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_DIFF_INSIDE_H
#define DRYI_DIFF_INSIDE_H

/* The state of a diff, shared by diff.c (creation, rows), diff_match.c (matches owners of different
   subjects) and diff_facts.c (settings and counts). */

#include <drystone/diff.h>

#include "base/intern.h"
#include "explain/owners/owners.h"
#include "explain/site/site.h"

#define DRYI_DIFF_FACTS 7u

/* An owner of a subject, and the row to which it belongs. */
struct dryi_diff_entry {
    const struct dry_owner *owner;
    uint32_t subject;
    uint32_t function; /* number of its file and function, without the line */
    uint32_t line;
    uint32_t row;
};

/* A trace shared by one or more subjects. */
struct dryi_diff_trace {
    const struct dry_trace *trace;
    struct dryi_sites sites;
};

struct dry_diff {
    struct dry_memory memory;
    enum dry_owner_key key;
    size_t subject_count;
    struct dry_diff_subject subjects[DRY_DIFF_SUBJECTS_MAX];
    uint32_t trace_of[DRY_DIFF_SUBJECTS_MAX];
    struct dry_owners *owners[DRY_DIFF_SUBJECTS_MAX];
    struct dry_diff_row total;
    struct dry_diff_cell total_cells[DRY_DIFF_SUBJECTS_MAX];

    struct dryi_diff_trace *traces; /* at most subject_count entries */
    size_t trace_count;

    struct dryi_diff_entry *entries;
    size_t entry_count;
    uint32_t row_count;
    struct dry_diff_row *rows;
    struct dry_diff_cell *cells; /* at most entry_count entries */

    struct dry_diff_fact facts[DRYI_DIFF_FACTS];
    const char **values; /* DRYI_DIFF_FACTS * subject_count entries */
    struct dryi_intern texts;
};

/* Set each entry's row, and row_count. Returns false if memory ran out. */
bool dryi_diff_match(struct dry_diff *diff);

/* Fill in `facts`. Returns false if memory ran out. */
bool dryi_diff_find_facts(struct dry_diff *diff);

#endif
