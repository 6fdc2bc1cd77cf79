/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_TEXTS_H
#define DRYI_ARROW_TEXTS_H

/* The dictionaries of columns: names of ours, or the strings of a trace as strict UTF-8. */

#include "trace/arrow/arrow_table.h"

/*
 * Make the dictionary of `array`, a column of codes that dryi_arrow_fill() made. Strings
 * that the column does not have are left out: codes count the others, by their first row.
 * Returns false if memory ran out; what was made goes with the column.
 */
bool dryi_arrow_texts_add(struct ArrowArray *array, const struct dry_trace *trace,
                          enum dryi_arrow_texts texts, const struct dry_memory *memory);

#endif
