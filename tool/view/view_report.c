/* SPDX-License-Identifier: Apache-2.0 */
/* See view_report.h. */
#include "view/view_report.h"

#include "base/report.h"
#include "view/html.h"
#include "view/report_set.h"

static int
write_output(const struct report_set *set, const char *path)
{
    uint64_t written = 0;
    int code = html_write(&view_html, "view", path, &set->answers, &written);
    if (code == EXIT_FINE)
        html_say_written(path, written, set->sentence_list, set->sentence_count);
    return code;
}

int
view_report_write(struct view *view, const struct view_report *wanted)
{
    struct progress progress;
    struct report_set set = {.view = view,
                             .progress = &progress,
                             .is_what_if = !wanted->is_quick,
                             .budget = wanted->max_bytes > view_html.length
                                           ? wanted->max_bytes - view_html.length
                                           : 0};
    progress_begin(&progress, "making the report", set.budget);
    bool is_fine = report_set_fill(&set);
    progress_end(&progress);
    int code =
        is_fine ? write_output(&set, wanted->output)
                : report_failure("view", NULL, EXIT_MACHINE, "no memory for the report");
    report_set_finish(&set);
    return code;
}
