/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DIFF_REPORT_H
#define TOOL_DIFF_REPORT_H

/* The report of `drystone diff`, for people and for machines. */

#include <stdbool.h>

#include <drystone/diff.h>

#include "record/moment.h"
#include "record/study.h"

struct diff_report_subject {
    const struct study *study;
    size_t device; /* in the study */
    struct moment moment;
};

struct diff_report {
    const struct diff_report_subject *subjects;
    size_t subject_count;
    bool is_devices; /* of one file, else files */
    const struct dry_diff *diff;
    enum dry_owner_key key;
    uint64_t min_bytes; /* owners that differ by less are summed up */
    size_t row_limit;   /* SIZE_MAX: all */
};

/* False: there was no memory for a table. */
bool diff_report_print(const struct diff_report *report);
/* An exit code. */
int diff_report_print_json(const struct diff_report *report);

/* The largest difference: of the totals, or of an owner. */
uint64_t diff_report_spread(const struct diff_report *report);

#endif
