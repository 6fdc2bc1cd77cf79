/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_TEXTS_H
#define DRYI_ARROW_TEXTS_H

/* The dictionaries of columns: fixed names, or strings of a trace as strict UTF-8. */

#include "trace/arrow/arrow_table.h"

/*
 * Make the dictionary of `array`, a column that dryi_arrow_fill() made. It holds only
 * strings that occur in the column, in the order of their first row. The values of the
 * column are renumbered to match. Returns false if memory ran out; releasing the column
 * frees a half-made dictionary.
 */
bool dryi_arrow_texts_add(struct ArrowArray *array, const struct dry_trace *trace,
                          enum dryi_arrow_texts texts, const struct dry_memory *memory);

#endif
