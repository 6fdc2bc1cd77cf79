/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPLAIN_PRINT_H
#define TOOL_EXPLAIN_PRINT_H

/* An explanation as text: explain_report.c prints it, explain_changes.c what to change. */

#include "base/term.h"
#include "explain/explain_report.h"

#define EXPLAIN_INDENT 4

struct explain_printer {
    const struct explain_report *report;
    const struct dry_explanation_view *view;
    struct term term;
    bool failed;
};

/* Print a wrapped sentence with `mark` hanging to its left. */
__attribute__((format(printf, 3, 4))) void explain_print_item(
    const struct explain_printer *p, const char *mark, const char *format, ...);
void explain_print_heading(const struct explain_printer *p, const char *text);

/* Return why the recording cannot tell settings apart. Requires a change of kind NO_EVIDENCE. */
const char *explain_get_evidence_gap(const struct dry_explanation_view *view);

/* Print the suggested changes, if there are any. */
void explain_print_changes(const struct explain_printer *p);

#endif
