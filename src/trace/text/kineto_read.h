/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_KINETO_READ_H
#define DRYI_KINETO_READ_H

/*
 * Read the memory events of a PyTorch profiler's trace, a JSON that chrome://tracing draws.
 *
 * The profiler writes them under profile_memory=True: allocations and frees with address and
 * bytes, and the bytes allocated and reserved after each. There are no segments and stacks, and
 * requests are rounded already. Memory of the CPU is passed over.
 */

#include <drystone/trace.h>

#include "trace/model/input.h"

/* Set *is_it to whether the input is JSON with the key of such a trace in its first 32 KiB. The
   bytes stay unread. Requires an unread byte. */
enum dry_status dryi_kineto_peek(struct dryi_input *in, bool *is_it,
                                 struct dry_error *err);

/* Read the JSON to its end into a builder, and set its kind. The caller finishes the builder. */
enum dry_status dryi_kineto_read(struct dryi_input *in, struct dry_trace_builder *builder,
                                 struct dry_error *err);

#endif
