/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_NEED_H
#define TOOL_NEED_H

/* The words of `drystone pages --need`: the bytes that a tensor takes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The bytes of a tensor, "1024,1024,1024 float32" or "(8, 4096) torch.bfloat16", or a size,
 * "4GiB". NULL: fine; else what is wrong, a text without a full stop.
 */
const char *need_parse(const char *text, uint64_t *bytes);

#endif
