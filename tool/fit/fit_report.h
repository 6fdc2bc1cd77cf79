/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIT_REPORT_H
#define TOOL_FIT_REPORT_H

/* The answer of `drystone fit`, as text and as JSON; and the JSON, read again for --apply. */

#include "fit/fit_work.h"

/* Print the answer; `path` has its JSON. Returns false if memory ran out. */
bool fit_report_print(const struct fit_work *work, const char *path);
/* Return a document of drystone.fit/1; NULL: memory ran out. */
json_t *fit_report_make_json(const struct fit_work *work);
/* Read change `number` of the document at `path`: a row with "change" and "changes". Returns an
   exit_code; the caller releases *row. */
int fit_report_read(const char *command, const char *path, int64_t number, json_t **row);

#endif
