/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_JOURNAL_H
#define TOOL_DOCTOR_JOURNAL_H

/*
 * The values that were written, in order, with those that were there before: a text of
 * lines
 *
 *     drystone.doctor.journal/1
 *     thp-enabled /sys/kernel/mm/transparent_hugepage/enabled never madvise
 *
 * An entry stands in the file before its change is made; so the last may be of one that never
 * was, and after a crash its line may be cut. Whoever can write the file could name any other:
 * nothing is taken that dry_doctor_may_write() does not know.
 */

#include <stddef.h>

#include <drystone/status.h>

#define JOURNAL_ENTRIES_MAX 4096
#define JOURNAL_BYTES_MAX (1u << 20)

struct journal_entry {
    char id[48], path[160], old_value[24], new_value[24];
};

struct journal {
    struct journal_entry *entries;
    size_t count, capacity;
};

/* A text that ends within a line is fine, that line is left out. FORMAT, LIMIT, MEMORY. */
DRY_CHECK_RESULT enum dry_status journal_read(const char *text, size_t length,
                                              struct journal *journal,
                                              struct dry_error *err);
void journal_finish(struct journal *journal);

/* MEMORY or LIMIT; words that do not fit or may not be written are ARGUMENT. */
DRY_CHECK_RESULT enum dry_status journal_add(struct journal *journal, const char *id,
                                             const char *path, const char *old_value,
                                             const char *new_value,
                                             struct dry_error *err);
void journal_remove(struct journal *journal, size_t i);

/* The text, to be freed; NULL: no memory. */
char *journal_write(const struct journal *journal, size_t *length);

#endif
