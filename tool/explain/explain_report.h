/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPLAIN_REPORT_H
#define TOOL_EXPLAIN_REPORT_H

/* The report of `drystone explain`, as text and as JSON. */

#include <stdbool.h>

#include <drystone/explanation.h>

struct explain_report {
    const char *file;
    const struct dry_trace *trace;
    const struct dry_explanation_view *view;
    const struct dry_timeline *timeline;
    const struct dry_replay *replay;
    size_t device_count; /* devices in the file */
    size_t row_max;      /* maximum owners to print */
    bool is_total_known; /* the device's total memory was given */
    bool is_simulated;   /* the trace holds requests only; addresses are simulated */
    uint64_t recorded_reserved_bytes; /* peak that a profiler recorded; 0: none did */
};

/* Print the report as text. Returns false if memory ran out. */
bool explain_report_print(const struct explain_report *report);

/* Print the report as drystone.explain/1, see drystone-explain(1). Returns an exit
   code. */
int explain_report_print_json(const char *command, const struct explain_report *report);

#endif
