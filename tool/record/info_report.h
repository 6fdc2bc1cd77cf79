/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_INFO_REPORT_H
#define TOOL_INFO_REPORT_H

/* The report of `drystone info`, as text and as JSON. */

#include "record/info.h"
#include "record/input.h"

struct info_report {
    const char *path;
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    struct input_description input;
    struct info info;
};

/* Print the report. Returns an exit_code, after printing a failure to standard error. */
int info_report_print(const struct info_report *report);
int info_report_print_json(const struct info_report *report);

/* Name a block state ("active_allocated"), or where an unknown key is ("frame_key"). */
const char *info_report_name_state(size_t state);
const char *info_report_name_unknown(uint32_t where);

#endif
