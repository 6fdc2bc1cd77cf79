/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_REPORT_H
#define TOOL_RUN_REPORT_H

/* The plan of `drystone run`, shown: a table for people, JSON for programs. */

#include <stdio.h>

#include "run/run_plan.h"

/* One aligned table; the program's output comes behind it. */
void run_report_plan(const struct run_plan *plan, FILE *out);
/* Schema drystone.run/1, on standard output. An exit_code. */
int run_report_json(const struct run_plan *plan, const char *const *words, size_t count);

/*
 * A row: a word, a name, a value that may be broken behind ',' or ':', and the reason behind it
 * or below. Used by run_prove.c too.
 */
struct run_row {
    const char *word, *name, *value, *reason;
};
void run_report_row(const struct run_row *row, FILE *out);

#endif
