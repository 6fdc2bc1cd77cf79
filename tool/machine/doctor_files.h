/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_FILES_H
#define TOOL_DOCTOR_FILES_H

/* The files of /sys and /proc below a root, without a step through a link, and the journal. */

#include "machine/doctor_apply.h"

struct doctor_files {
    struct apply_files table; /* what apply_changes() takes */
    const char *root;         /* "": this machine */
    const char *journal;      /* the journal's name */
};

void doctor_files_init(struct doctor_files *files, const char *root, const char *journal);

/* An empty one where there is no file. SYSTEM, FORMAT, LIMIT or MEMORY. */
DRY_CHECK_RESULT enum dry_status doctor_files_read_journal(
    const struct doctor_files *files, struct journal *journal, struct dry_error *err);

#endif
