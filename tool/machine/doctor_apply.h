/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_APPLY_H
#define TOOL_DOCTOR_APPLY_H

/*
 * Changes made and undone. Before each change the journal is on the disk with it; what was
 * written is read back, because the kernel may take less (pools) or another word.
 *
 * The files are behind a table, so that tests refuse each call in turn.
 */

#include <stddef.h>
#include <stdio.h>

#include "machine/doctor_journal.h"

#define APPLY_VALUE_MAX 24

/* 0, or a negative errno. */
struct apply_files {
    /* The chosen word of "always [madvise] never", else the file's only word. */
    int (*read)(void *self, const char *path, char value[APPLY_VALUE_MAX]);
    int (*write)(void *self, const char *path, const char *value);
    /* The whole journal, durable when it returns; without entries the file goes. */
    int (*save)(void *self, const struct journal *journal);
    void *self;
};

struct apply_count {
    size_t done;    /* as wanted */
    size_t refused; /* by the machine, or less than wanted */
    size_t left;    /* changed by somebody else: left alone */
};

/*
 * Write the `count` changes, whose entries go behind those of the journal. A line on `out`
 * says what happens to each. Returns an exit_code.
 */
int apply_changes(const struct apply_files *files, struct journal *journal,
                  const struct journal_entry *changes, size_t count, FILE *out,
                  struct apply_count *counts);
/*
 * Go back in reverse order. A change that cannot be undone stays in the journal. Returns an
 * exit_code.
 */
int apply_undo(const struct apply_files *files, struct journal *journal, FILE *out,
               struct apply_count *counts);

#endif
