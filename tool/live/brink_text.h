/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BRINK_TEXT_H
#define TOOL_BRINK_TEXT_H

/* An event as a line of text or of JSON; see drystone-live(1). */

#include <stdbool.h>
#include <stdio.h>

#include "live/brink.h"

#define BRINK_TEXT_BYTES 1600

/* Write "4711 train rank 3: 96.1 % of the limit is taken; ...", printable, without the
   time. With `is_short`, only the snapshot's file name is given, to fit the screen. */
void brink_text_write(const struct brink_event *event, bool is_short,
                      char text[BRINK_TEXT_BYTES]);
/* Print the time, the text and a line feed. */
void brink_text_print(const struct brink_event *event, FILE *out);
/* Print one JSON object, "drystone.live-event/1", and a line feed. False: it failed. */
bool brink_json_print(const struct brink_event *event, FILE *out);

#endif
