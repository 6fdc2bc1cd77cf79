/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_JOURNAL_H
#define TOOL_DOCTOR_JOURNAL_H

/*
 * The values that were written, in order, with the values they replaced. The text has
 * lines
 *
 *     drystone.pages-journal/1
 *     thp-enabled /sys/kernel/mm/transparent_hugepage/enabled never madvise
 *
 * An entry is saved before its change is made. So the last entry's change may be missing,
 * and after a crash the last line may be torn. An attacker who can write the file could
 * name any path, so entries are refused unless dry_doctor_may_write() allows them.
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

/* Read a journal. A torn last line is ignored. Errors: FORMAT, LIMIT, MEMORY. */
DRY_CHECK_RESULT enum dry_status journal_read(const char *text, size_t length,
                                              struct journal *journal,
                                              struct dry_error *err);
void journal_finish(struct journal *journal);

/* Add an entry. Errors: MEMORY, LIMIT; ARGUMENT: a word is too long or the path may not
   be written. */
DRY_CHECK_RESULT enum dry_status journal_add(struct journal *journal, const char *id,
                                             const char *path, const char *old_value,
                                             const char *new_value,
                                             struct dry_error *err);
void journal_remove(struct journal *journal, size_t i);

/* Return the journal as text, which the caller frees. NULL: memory ran out. */
char *journal_write(const struct journal *journal, size_t *length);

#endif
