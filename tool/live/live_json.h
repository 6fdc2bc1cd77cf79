/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_JSON_H
#define TOOL_LIVE_JSON_H

/* A watch as JSON; see drystone-live(1). */

#include <stdbool.h>
#include <stdio.h>

#include "live/watch.h"

/* Print one document, "drystone.live/1", and a line feed; processes not `wanted` are
   omitted. False: writing failed or memory ran out. */
bool live_json_print(const struct watch *watch, const char *wanted, FILE *out);

#endif
