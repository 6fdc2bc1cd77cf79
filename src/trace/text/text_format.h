/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TEXT_FORMAT_H
#define DRYI_TEXT_FORMAT_H

/*
 * Reading a trace that is a text: plain, RMM's log or lifetimes, told by its first line.
 */

#include <drystone/trace.h>

#include "trace/model/input.h"

/*
 * Read a text to its end into the builder of kind SNAPSHOT, and set its kind. `finish` is
 * left to the caller. A text of no known format is refused with FORMAT.
 */
enum dry_status dryi_text_format_read(struct dryi_input *in,
                                      struct dry_trace_builder *builder,
                                      struct dry_error *err);

#endif
