/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_TEXT_H
#define TOOL_LIVE_TEXT_H

/*
 * A watch as text: tables that keep to the terminal's width, or to 80 columns without a
 * terminal. The full screen shows the same text. Functions return false if memory ran
 * out.
 *
 * `wanted` is a process ID or a part of a name; NULL: all.
 */

#include <stdbool.h>

#include "base/term.h"
#include "live/watch.h"

/* Print the devices, or one line with the reason why there are none. */
bool live_text_devices(const struct watch *watch, const struct term *term);
/* Print a heading and one line per process, in the watch's order. */
bool live_text_processes(const struct watch *watch, const char *wanted,
                         const struct term *term);
/* Print a process in detail: sources, their lanes, and the source lines holding
   memory. */
bool live_text_process(const struct watch *watch, const struct watch_process *process,
                       const struct term *term);
/* Print everything. Wanted processes, or the only one with a page, appear in detail. */
bool live_text_print(const struct watch *watch, const char *wanted,
                     const struct term *term);

#endif
