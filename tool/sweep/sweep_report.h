/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_REPORT_H
#define TOOL_SWEEP_REPORT_H

/* A finished sweep, as text and as JSON. A difference is a row's figure minus that of the
   recorded settings; negative is better. */

#include "sweep/sweep.h"

/* Print the files, at most `limit` rows, and the best row. Returns an exit_code. */
int sweep_report_print(const struct sweep *sweep, size_t limit);

/* Print drystone.sweep/1. Returns an exit_code. */
int sweep_report_print_json(const struct sweep *sweep, const char *grid);

/* Return EXIT_FOUND if the programs fail under every setting, else EXIT_FINE. */
int sweep_report_exit_code(const struct sweep *sweep);

/* Return the row of the recorded settings. */
const struct sweep_row *sweep_find_recorded(const struct sweep *sweep);

#endif
