/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_START_H
#define TOOL_RUN_START_H

/*
 * Does what a plan says, to this process, and becomes the program: what is bound at birth is
 * bound for every thread and every page.
 */

#include "run/run_plan.h"

/*
 * The exit codes of env(1): the program was found and cannot be started, or was not found.
 */
enum { RUN_CANNOT_START = 126, RUN_NOT_FOUND = 127 };

/*
 * Do what the plan says. A setting that the system refuses becomes RUN_LEFT in the plan,
 * with the reason, and the rest is done all the same. Variables are not set yet: they are
 * the program's alone.
 */
void run_apply(struct run_plan *plan);
void run_set_variables(const struct run_plan *plan);
/* Returns only if the program cannot be started: 126 or 127, and errno. */
int run_become(char *const *words);

#endif
