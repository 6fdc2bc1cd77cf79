/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_FROM_POOL_H
#define DRYI_FROM_POOL_H

#include <stdbool.h>

#include <drystone/trace.h>

/*
 * Return true if the settings name a placement other than PyTorch's. PyTorch's allocator
 * rules cannot explain such a trace.
 */
bool dryi_trace_is_foreign(const struct dry_trace *trace);

#endif
