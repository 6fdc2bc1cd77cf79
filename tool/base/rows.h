/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ROWS_H
#define TOOL_ROWS_H

/* --rows of commands that show owners: people see the first, machines get all. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_NOT_GIVEN INT64_MIN /* the default of --rows */

/* The most rows to show; SIZE_MAX: all, which 0 asks for. */
size_t rows_limit(int64_t rows, bool is_json);

#endif
