/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_STEPS_REPORT_H
#define TOOL_STEPS_REPORT_H

/* Steps and what grows from one to the next, shown to people and to machines. */

#include <stdbool.h>

#include <drystone/owners.h>
#include <drystone/steps.h>

struct steps_report {
    const char *file;
    const struct dry_timeline *timeline;
    const struct dry_steps *steps;
    const struct dry_owners *owners; /* of any moment: who a stack is called by */
    uint64_t capacity;               /* of the device, for PyTorch; 0: not known */
    bool is_simulated; /* the file holds requests; addresses are those of a simulation */
    size_t row_max;    /* steps, and suspects, shown */
};

/* False: there was no memory. */
bool steps_report_print(const struct steps_report *report);

/* Prints drystone.steps/1, drystone-steps(1); returns an exit code. */
int steps_report_print_json(const char *command, const struct steps_report *report);

/* EXIT_FOUND: memory grows from step to step, and a line of code that is regular in it. */
int steps_report_exit_code(const struct steps_report *report);

#endif
