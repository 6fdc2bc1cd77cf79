/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ARROW_FILL_H
#define DRYI_ARROW_FILL_H

/* Fill Arrow columns with values copied from a trace. */

#include "trace/arrow/arrow_table.h"

/*
 * Make the array of a column of `table`, without its dictionary. Returns false if memory
 * ran out. In either case the caller must release *array if its release is set.
 */
bool dryi_arrow_fill(struct ArrowArray *array, const struct dry_trace *trace,
                     enum dry_arrow_table table, const struct dryi_arrow_column *column,
                     const struct dry_memory *memory);

#endif
