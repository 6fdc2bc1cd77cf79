/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ENDING_H
#define TOOL_ENDING_H

/*
 * Have ^C and SIGTERM set a number instead of ending the process, for commands that serve until
 * then. The number is the result, 0 until a signal comes, and stays where it is.
 */
const volatile int *ending_on_signals(void);

#endif
