/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_WATCH_H
#define TOOL_RUN_WATCH_H

/*
 * Run the program as a child, sample it, and check the plan when it has ended. Samples
 * are taken 5 ms after the start and whenever the time since has doubled. Later they are
 * taken every 30 s, or less often if they would take over 1/50 of a CPU.
 *
 * Signals    SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 sent by a process are passed
 *            on to the program; a terminal's signals reach the program directly.
 */

#include "run/run_plan.h"

/*
 * Start the program and sample it. Returns its exit status, 128 plus its signal, or 126
 * or 127 as run_become(). With `is_strict`, a plan that did not take effect turns status
 * 0 into 1.
 */
int run_watch(const struct run_plan *plan, char *const *arguments, bool is_strict);

#endif
