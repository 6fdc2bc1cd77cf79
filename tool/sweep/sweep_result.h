/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_RESULT_H
#define TOOL_SWEEP_RESULT_H

/*
 * The result of one run as a text, which a store keeps:
 *
 *     {"reserved_peak_bytes":N,...}     or     {"error":"..."}
 *
 * The members are those of dry_run_get_fields().
 *
 * A store is a file, so its texts are hostile input.
 */

#include "sweep/sweep.h"

#define SWEEP_ERROR_BYTES 256

/* Return the text of a run, the caller's to free; NULL: there was no memory. */
char *sweep_result_write(const struct dry_run *run);
/* Return the text of a run that failed. */
char *sweep_result_write_error(const char *error);
/* Tell whether a text is one of these. */
bool sweep_result_is_whole(const char *text);
/*
 * Read a text. False: the run failed, or the text is no result's, and `error` says so.
 */
bool sweep_result_read(const char *text, struct sweep_figures *figures,
                       char error[SWEEP_ERROR_BYTES]);

#endif
