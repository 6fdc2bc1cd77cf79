/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DIFF_REPORT_H
#define TOOL_DIFF_REPORT_H

/* The report of `drystone diff`, as text and as JSON. */

#include <stdbool.h>

#include <drystone/diff.h>

#include "record/moment.h"
#include "record/study.h"

struct diff_report_subject {
    const struct study *study;
    size_t device; /* index in the study */
    struct moment moment;
};

struct diff_report {
    const struct diff_report_subject *subjects;
    size_t subject_count;
    bool is_devices; /* subjects are devices of one file; false: files */
    const struct dry_diff *diff;
    enum dry_owner_key key;
    uint64_t min_bytes; /* owners that differ by less are summed in one row */
    size_t row_limit;   /* maximum rows; SIZE_MAX: all */
};

/* Print the report as text. Returns false if memory for a table ran out. */
bool diff_report_print(const struct diff_report *report);
/* Print the report as JSON. Returns an exit code. */
int diff_report_print_json(const struct diff_report *report);

/* Return the largest difference between subjects, of totals or of one owner. */
uint64_t diff_report_spread(const struct diff_report *report);

#endif
