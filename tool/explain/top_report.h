/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TOP_REPORT_H
#define TOOL_TOP_REPORT_H

/* The report of `drystone top`, as text and as JSON. */

#include <stdbool.h>

#include <drystone/owners.h>

#include "record/moment.h"
#include "record/study.h"

struct top_report {
    const char *file;
    const struct study *study;
    size_t device; /* index in the study */
    struct moment moment;
    const struct dry_owners *owners;
    enum dry_owner_key key;
    bool is_inverted, has_stacks;
    size_t row_limit; /* maximum rows; SIZE_MAX: all */
};

/* Print the report as text. Returns false if memory for the table ran out. */
bool top_report_print(const struct top_report *report);
/* Print the report as JSON. Returns an exit code. */
int top_report_print_json(const struct top_report *report);

#endif
