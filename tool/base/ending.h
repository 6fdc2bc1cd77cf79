/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ENDING_H
#define TOOL_ENDING_H

/*
 * Make SIGINT and SIGTERM set a flag instead of ending the process, for commands that
 * serve until interrupted. Returns the flag, valid until the process ends: 0 at first, 1
 * after a signal.
 */
const volatile int *ending_on_signals(void);

#endif
