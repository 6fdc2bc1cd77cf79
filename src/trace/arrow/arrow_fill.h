/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_FILL_H
#define DRYI_ARROW_FILL_H

/* The values of columns, copied out of a trace. */

#include "trace/arrow/arrow_table.h"

/*
 * Make the array of a column of `table`, without its texts. Returns false if memory ran
 * out. In either case *array is the caller's to release, if it has a release.
 */
bool dryi_arrow_fill(struct ArrowArray *array, const struct dry_trace *trace,
                     enum dry_arrow_table table, const struct dryi_arrow_column *column,
                     const struct dry_memory *memory);

#endif
