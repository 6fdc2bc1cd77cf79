/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DRY_REPORT_H
#define TOOL_DRY_REPORT_H

/* A dry run, shown to people and to machines. */

#include "dryrun/facts.h"
#include "dryrun/launch.h"
#include "dryrun/verdict.h"

struct dry_report {
    const struct launch *launch;
    const struct facts *facts;
    const struct dry_verdict *verdict;
    const char *snapshot; /* where it lies now */
    int status;           /* of the program */
    /* The other end, events done late; NULL: not run. */
    const struct facts *late;
};

enum dry_outcome {
    DRY_FITS,      /* it ran to its end, or to where it was ended */
    DRY_FITS_NOT,  /* it ran out of memory */
    DRY_NOT_KNOWN, /* something else ended it before */
};
enum dry_outcome dry_report_outcome(const struct dry_report *report);
/* False: there was no memory. */
bool dry_report_print(const struct dry_report *report);
/* Prints drystone.dry-run/1; returns an exit code. */
int dry_report_print_json(const struct dry_report *report);

#endif
