/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_APPLY_H
#define TOOL_DOCTOR_APPLY_H

/*
 * Apply changes to the machine and undo them. The journal is saved before each change.
 * Written values are read back, because the kernel may grant less (pools) or substitute
 * another word.
 *
 * File access goes through a table, so that tests can make each call fail in turn.
 */

#include <stddef.h>
#include <stdio.h>

#include "machine/doctor_journal.h"

#define APPLY_VALUE_MAX 24

/* Each function returns 0 or a negative errno. */
struct apply_files {
    /* Read the selected word of "always [madvise] never", else the file's only word. */
    int (*read)(void *self, const char *path, char value[APPLY_VALUE_MAX]);
    int (*write)(void *self, const char *path, const char *value);
    /* Save the whole journal durably; remove the file if there are no entries. */
    int (*save)(void *self, const struct journal *journal);
    void *self;
};

struct apply_count {
    size_t done;    /* value is as requested */
    size_t refused; /* refused by the machine, or granted in part */
    size_t left;    /* another program changed the value: not touched */
};

/* Apply `count` changes and append their entries to the journal. Prints one line per
   change to `out`. Returns an exit_code. */
int apply_changes(const struct apply_files *files, struct journal *journal,
                  const struct journal_entry *changes, size_t count, FILE *out,
                  struct apply_count *counts);
/* Undo all entries in reverse order. Entries that cannot be undone stay in the journal.
   Returns an exit_code. */
int apply_undo(const struct apply_files *files, struct journal *journal, FILE *out,
               struct apply_count *counts);

#endif
