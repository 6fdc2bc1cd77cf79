/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_RESULT_H
#define TOOL_SWEEP_RESULT_H

/*
 * The result of one run as a text, to be kept in a store:
 *
 *     {"reserved_peak_bytes":N,...}     or     {"error":"..."}
 *
 * The members are those of dry_run_get_fields().
 *
 * A store is a file, so its texts are untrusted.
 */

#include "sweep/sweep.h"

#define SWEEP_ERROR_BYTES 256

/* Return the text of a run, which the caller frees. NULL: memory ran out. */
char *sweep_result_write(const struct dry_run *run);
/* Return the text of a failed run, which the caller frees. */
char *sweep_result_write_error(const char *error);
/* Tell whether a text is a complete result or error. */
bool sweep_result_is_whole(const char *text);
/* Read a text. Returns false, with the reason in `error`, if the run failed or the text
   is not a result. */
bool sweep_result_read(const char *text, struct sweep_figures *figures,
                       char error[SWEEP_ERROR_BYTES]);

#endif
