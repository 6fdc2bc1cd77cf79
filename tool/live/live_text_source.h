/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_TEXT_SOURCE_H
#define TOOL_LIVE_TEXT_SOURCE_H

#include <stdbool.h>

#include "base/term.h"
#include "live/watch.h"

/* Print a source: figures explained, lanes, source lines. False: memory ran out. */
bool live_text_source(const struct watch *watch, const struct watch_source *source,
                      const struct term *term);

#endif
