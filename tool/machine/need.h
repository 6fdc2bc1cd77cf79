/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_NEED_H
#define TOOL_NEED_H

/* The argument of `drystone pages --need`: how many bytes a tensor takes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parse a tensor, "1024,1024,1024 float32" or "(8, 4096) torch.bfloat16", or a size,
   "4GiB", into bytes. Returns NULL, or what is wrong as a text without a full stop. */
const char *need_parse(const char *text, uint64_t *bytes);

#endif
