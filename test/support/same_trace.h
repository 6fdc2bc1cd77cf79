/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_SAME_TRACE_H
#define TEST_SAME_TRACE_H

#include <drystone/trace.h>

/*
 * NULL if both say the same, whatever numbers they gave to strings, frames and stacks;
 * else the name of the first thing that differs. Left out: the file's size and protocol,
 * and how often unknown keys were met, because a frame that is written once is met once.
 */
const char *same_trace(const struct dry_trace *a, const struct dry_trace *b);

#endif
