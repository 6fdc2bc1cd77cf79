/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_WATCH_H
#define TOOL_RUN_WATCH_H

/*
 * Runs the program as a child, looks at it now and then, and proves the plan when it has
 * ended. Looks are 5 ms after the start, then whenever the time since has doubled, later every 30 s
 * or so rarely that they take a fiftieth of one CPU.
 *
 * Signals    SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 that somebody sends to us go
 *            on to the program; what a terminal sends it has itself.
 */

#include "run/run_plan.h"

/*
 * Start the program and watch it. Returns its exit status, 128 and its signal if one ended
 * it, 126 or 127 as run_become(). If `is_strict`, a plan that did not take effect makes a
 * status of 0 a 1.
 */
int run_watch(const struct run_plan *plan, char *const *words, bool is_strict);

#endif
