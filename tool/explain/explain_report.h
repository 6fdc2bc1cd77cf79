/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPLAIN_REPORT_H
#define TOOL_EXPLAIN_REPORT_H

/* An explanation, shown to people and to machines; for `explain`. */

#include <stdbool.h>

#include <drystone/explanation.h>

struct explain_report {
    const char *file;
    const struct dry_trace *trace;
    const struct dry_explanation_view *view;
    const struct dry_timeline *timeline;
    const struct dry_replay *replay;
    size_t device_count; /* of the file */
    size_t row_max;      /* owners shown */
    bool is_total_known; /* how large the device is was stated */
    bool is_simulated; /* the file holds requests; addresses are those of a simulation */
};

/* False: there was no memory. */
bool explain_report_print(const struct explain_report *report);

/* Prints drystone.explain/1, drystone-explain(1); returns an exit code. */
int explain_report_print_json(const char *command, const struct explain_report *report);

#endif
