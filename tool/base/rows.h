/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ROWS_H
#define TOOL_ROWS_H

/* --rows of commands that list owners: text shows the first 20 rows by default, JSON
   shows all. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_NOT_GIVEN INT64_MIN /* the default of --rows */

/* Return the maximum number of rows to show. SIZE_MAX: all rows, also for --rows 0. */
size_t rows_limit(int64_t rows, bool is_json);

#endif
