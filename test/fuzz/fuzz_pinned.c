/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes are a program on the pinned cache: see pinned_ops.h. */
#include "prop/pinned_ops.h"
#include "support/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pinned_ops_run_bytes(data, size);
    return 0;
}
