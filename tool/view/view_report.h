/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_VIEW_REPORT_H
#define TOOL_VIEW_REPORT_H

/* `drystone view -o`: everything about the files in one page that opens anywhere. */

#include "view/view.h"

struct view_report {
    const char *output; /* "-": standard output */
    uint64_t max_bytes;
    bool is_quick; /* without what other settings would do */
};

/* Write the page of an open view. Returns an exit code. */
int view_report_write(struct view *view, const struct view_report *wanted);

#endif
