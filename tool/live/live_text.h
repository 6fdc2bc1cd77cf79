/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_TEXT_H
#define TOOL_LIVE_TEXT_H

/*
 * A watch as text: tables that keep to the terminal's width, 80 columns where there is none.
 * The full screen shows the same text. False: there was no memory.
 *
 * `wanted` is a process's number or a part of its name, NULL for all.
 */

#include <stdbool.h>

#include "base/term.h"
#include "live/watch.h"

/* A line says why there are none. */
bool live_text_devices(const struct watch *watch, const struct term *term);
/* One line for the heads of columns, then one a process, in the watch's order. */
bool live_text_processes(const struct watch *watch, const char *wanted,
                         const struct term *term);
/* All that is known of one: its sources, their lanes, and the lines that hold it. */
bool live_text_process(const struct watch *watch, const struct watch_process *process,
                       const struct term *term);
/* Everything: the wanted ones in full, or the only one with a page. */
bool live_text_print(const struct watch *watch, const char *wanted,
                     const struct term *term);

#endif
