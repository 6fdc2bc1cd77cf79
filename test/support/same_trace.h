/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_SAME_TRACE_H
#define TEST_SAME_TRACE_H

#include <drystone/trace.h>

/*
 * Compare two traces; whatever numbers they gave to strings, frames and stacks does not
 * count. Returns NULL if both say the same, otherwise the name of the first thing that
 * differs. Left out are the file's size and protocol, and how often unknown keys were
 * met: a frame that is written once is met once.
 */
const char *same_trace(const struct dry_trace *a, const struct dry_trace *b);

#endif
