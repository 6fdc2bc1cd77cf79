/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_STEPS_REPORT_H
#define TOOL_STEPS_REPORT_H

/* Steps and what grows between them, as text and as JSON. */

#include <stdbool.h>

#include <drystone/owners.h>
#include <drystone/steps.h>

struct steps_report {
    const char *file;
    const struct dry_timeline *timeline;
    const struct dry_steps *steps;
    const struct dry_owners *owners; /* owners at any moment: they name frames */
    uint64_t capacity;               /* device memory that PyTorch may use; 0: unknown */
    bool is_simulated; /* the trace holds requests only; addresses are simulated */
    size_t row_max;    /* maximum steps, and suspects, to print */
};

/* Figures of all steps. */
struct steps_totals {
    double confidence;
    uint64_t whole_steps, suspects, growth_bytes_per_step, capacity_bytes;
    uint64_t steps_until_full; /* until a whole step's peak no longer fits, if has_end */
    bool has_end;              /* memory grows, and the capacity is known */
};
struct steps_totals steps_report_sum(const struct steps_report *report);
/* The table of their members. */
struct dry_fields steps_totals_get_fields(void);

/* Print the report as text. Returns false if memory ran out. */
bool steps_report_print(const struct steps_report *report);

/* Print the report as drystone.steps/1, see drystone-steps(1). Returns an exit code. */
int steps_report_print_json(const char *command, const struct steps_report *report);

#endif
