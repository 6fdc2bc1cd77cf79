/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_TERMINAL_H
#define TOOL_LIVE_TERMINAL_H

#include "live/brink.h"
#include "live/live_look.h"

/*
 * Show the full screen until a key ends it, and look again every so often. An exit code; the
 * terminal is as it was before.
 */
int live_terminal_run(struct live_look *look, struct brink *brink);

#endif
