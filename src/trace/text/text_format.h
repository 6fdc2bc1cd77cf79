/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TEXT_FORMAT_H
#define DRYI_TEXT_FORMAT_H

/* Read a text: plain, RMM's log or lifetimes, told apart by the first line. */

#include <drystone/trace.h>

#include "trace/model/input.h"

/*
 * Read a text to its end into a builder of kind SNAPSHOT, and set its kind. The caller
 * finishes the builder. Returns FORMAT if no known format matches.
 */
enum dry_status dryi_text_format_read(struct dryi_input *in,
                                      struct dry_trace_builder *builder,
                                      struct dry_error *err);

#endif
