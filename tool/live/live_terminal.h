/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_TERMINAL_H
#define TOOL_LIVE_TERMINAL_H

#include "live/brink.h"
#include "live/live_sampler.h"

/* Show the full screen, which is sampled until a key quits. Restores the terminal.
   Returns an exit code. */
int live_terminal_run(struct live_sampler *sampler, struct brink *brink);

#endif
