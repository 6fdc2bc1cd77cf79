/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_START_H
#define TOOL_RUN_START_H

/* Apply a plan to this process and exec the program. Settings made before exec hold for
   every thread and every page of the program. */

#include "run/run_plan.h"

/* Exit codes as in env(1): the program was found but cannot start, or was not found. */
enum { RUN_CANNOT_START = 126, RUN_NOT_FOUND = 127 };

/*
 * Apply the plan. A setting that the system refuses becomes RUN_LEFT with the reason, and
 * the others are still applied. Variables are not set here: run_set_variables() sets them
 * in the program's process only.
 */
void run_apply(struct run_plan *plan);
void run_set_variables(const struct run_plan *plan);
/* Exec the program. Returns only on failure: 126 or 127, with errno set. */
int run_become(char *const *words);

#endif
