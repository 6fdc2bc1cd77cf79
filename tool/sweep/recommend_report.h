/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RECOMMEND_REPORT_H
#define TOOL_RECOMMEND_REPORT_H

/* A recommendation, as text and as JSON. */

#include <stdbool.h>

#include <drystone/recommend.h>

struct recommend_report {
    const char *file;
    size_t row_max; /* candidates shown, the recorded settings among them */
    const struct dry_replay *replay;
    const struct dry_recommendation *recommendation;
};

/* Print the reliability, table and recommendation. Returns false if memory ran out. */
bool recommend_report_print(const struct recommend_report *report);

/* Prints drystone.sweep-search/1; returns an exit code. */
int recommend_report_print_json(const struct recommend_report *report);

/* Return EXIT_FOUND if the program fails under every setting, else EXIT_FINE. */
int recommend_report_exit_code(const struct recommend_report *report);

#endif
