/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RECOMMEND_REPORT_H
#define TOOL_RECOMMEND_REPORT_H

/* A recommendation, shown to people and to machines. */

#include <stdbool.h>

#include <drystone/recommend.h>

struct recommend_report {
    const char *file;
    const struct dry_replay *replay;
    const struct dry_recommendation *recommendation;
};

/* The trust, the table, the recommendation. False: there was no memory. */
bool recommend_report_print(const struct recommend_report *report);

/* Prints drystone.recommend/1; returns an exit code. */
int recommend_report_print_json(const struct recommend_report *report);

/* EXIT_FOUND if the program fails under every setting. */
int recommend_report_exit_code(const struct recommend_report *report);

#endif
