/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DRY_REPORT_H
#define TOOL_DRY_REPORT_H

/* A dry run, shown to people and to machines. */

#include <jansson.h>

#include "base/term.h"
#include "dryrun/trial.h"

struct dry_report {
    const struct trial *trial;
    const char *snapshot; /* where it lies now; NULL: the program could make none */
    /* The other end, events done late; NULL: not run. */
    const struct trial *late;
    /* Addresses in the other order; NULL: not run. */
    const struct trial *other_order;
    /* The same program with boundless memory, if it ran out; NULL: not run. */
    const struct trial *boundless;
};

/* False: there was no memory. */
bool dry_report_print(const struct dry_report *report);
/* Return the members of drystone.dry-run/1 behind "schema"; NULL: no memory. */
json_t *dry_report_make_json(const struct dry_report *report);

/* Return "fits", "does not fit" or "not known". */
const char *dry_report_word(enum trial_outcome outcome);
enum term_style dry_report_style(enum trial_outcome outcome);

/* The cards that the requests were replayed on; NULL: none were. */
const struct trial_verdict *dry_report_find_cards(const struct dry_report *report);

#endif
