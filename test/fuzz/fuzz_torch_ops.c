/* SPDX-License-Identifier: Apache-2.0 */
/* place/torch against the naive model, see prop/torch_ops.h. */
#include "prop/torch_ops.h"
#include "support/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    torch_ops_run(data, size);
    return 0;
}
