/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_FILES_H
#define TOOL_DOCTOR_FILES_H

/* Files of /sys and /proc below a root, opened without following links; the journal. */

#include "machine/doctor_apply.h"

struct doctor_files {
    struct apply_files table; /* argument of apply_changes() */
    const char *root;         /* "": this machine */
    const char *journal;      /* path of the journal */
};

void doctor_files_init(struct doctor_files *files, const char *root, const char *journal);

/* Read the journal; a missing file is empty. Errors: SYSTEM, FORMAT, LIMIT, MEMORY. */
DRY_CHECK_RESULT enum dry_status doctor_files_read_journal(
    const struct doctor_files *files, struct journal *journal, struct dry_error *err);

#endif
