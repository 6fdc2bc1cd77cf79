/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_VIEW_REPORT_H
#define TOOL_VIEW_REPORT_H

/* `drystone view -o`: everything about the files in one self-contained page. */

#include "view/view.h"

struct view_report {
    const char *output; /* path of the page; "-": standard output */
    uint64_t max_bytes;
    bool is_quick; /* skip the replays under other settings */
};

/* Write the page of an open view. Returns an exit code. */
int view_report_write(struct view *view, const struct view_report *wanted);

#endif
