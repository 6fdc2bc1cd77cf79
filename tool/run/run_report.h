/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_REPORT_H
#define TOOL_RUN_REPORT_H

/* The plan of `drystone run`, as a table or as JSON. */

#include <stdio.h>

#include "run/run_plan.h"

/* Print the plan as one aligned table, before the program's own output. */
void run_report_plan(const struct run_plan *plan, FILE *out);
/* Print the plan as drystone.run/1 on standard output. Returns an exit_code. */
int run_report_json(const struct run_plan *plan, const char *const *arguments,
                    size_t count);

/* A row of the table. `value` may be broken after ',' or ':'; `reason` follows, on the
   next line if necessary. run_prove.c uses rows too. */
struct run_row {
    const char *word, *name, *value, *reason;
};
void run_report_row(const struct run_row *row, FILE *out);

#endif
