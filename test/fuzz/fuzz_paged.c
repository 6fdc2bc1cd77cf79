/* SPDX-License-Identifier: Apache-2.0 */
/* place/paged held against its contract, see prop/place_ops.h. */
#include "prop/place_ops.h"
#include "support/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct place_ops_options options = {.kind = PLACE_PAGED,
                                                     .survey_every = 1};
    place_ops_run(&options, data, size);
    return 0;
}
