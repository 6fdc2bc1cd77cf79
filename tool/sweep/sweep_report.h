/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_REPORT_H
#define TOOL_SWEEP_REPORT_H

/*
 * A sweep that ran, shown to people and to machines. A difference is a row's figure less
 * that of the recorded settings: below 0 is better.
 */

#include "sweep/sweep.h"

/* Print the files, the table of at most `limit` rows, the best. An exit_code. */
int sweep_report_print(const struct sweep *sweep, size_t limit);

/* Print drystone.sweep/1. An exit_code. */
int sweep_report_print_json(const struct sweep *sweep, const char *grid);

/* EXIT_FOUND if the programs fail under every setting. */
int sweep_report_exit_code(const struct sweep *sweep);

/* Return the row of the recorded settings. */
const struct sweep_row *sweep_find_recorded(const struct sweep *sweep);

#endif
