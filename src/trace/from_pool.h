/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_FROM_POOL_H
#define DRYI_FROM_POOL_H

#include <stdbool.h>

#include <drystone/trace.h>

/* The settings name a placement that is not PyTorch's: its rules explain nothing here. */
bool dryi_trace_is_foreign(const struct dry_trace *trace);

#endif
