/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_INFO_DOUBTS_H
#define TOOL_INFO_DOUBTS_H

/* The reasons not to trust a trace, as `drystone info` lists them. */

#include <stddef.h>

#include <drystone/trace.h>

#include "record/info.h"

struct info_doubt {
    const char *code;
    const char *one;  /* text after a count of 1; NULL: no count */
    const char *text; /* text after other counts, and in JSON */
    size_t count;
};

#define INFO_DOUBTS_MAX 12

/* Find the reasons that `info` and `view` give, and their counts. Returns how many. */
size_t info_doubts_find(const struct info *info, const struct dry_trace_view *view,
                        struct info_doubt doubts[INFO_DOUBTS_MAX]);

#endif
