/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GATE_FILE_H
#define TOOL_GATE_FILE_H

/* A baseline as a file: JSON, schema drystone.baseline/1, see drystone(1). */

#include <jansson.h>

#include "gate/gate.h"

struct gate_baseline {
    json_t *root; /* NULL if the file does not exist */
    bool is_new;
};

/* Read the gate's baseline. Returns an exit_code; the file's fault is printed. */
int gate_baseline_open(const struct gate *gate, struct gate_baseline *baseline);
void gate_baseline_close(struct gate_baseline *baseline);

/* Return a figure of the row named `of`; FIGURE_UNKNOWN if it is missing. */
uint64_t gate_baseline_get(const struct gate_baseline *baseline, const char *of,
                           const char *figure);

/* Write the rows as the gate's baseline. Returns an exit_code. */
int gate_baseline_write(const struct gate *gate, const struct gate_row *rows,
                        size_t row_count);

#endif
