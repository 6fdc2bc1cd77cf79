/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as /proc/self/smaps. In pieces of any size the answer is the same, and never more
 * than the range. The first byte chooses the size of the pieces.
 */
#include "support/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>

#include "host/facts/smaps_text.h"

#define BEGIN UINT64_C(0x7f0000000000)
#define BYTES (UINT64_C(4) << 20)

static void
require(int condition)
{
    if (!condition)
        abort();
}

static bool
read_in(const uint8_t *data, size_t size, size_t step, uint64_t *huge)
{
    struct dryi_smaps smaps;
    dryi_smaps_init(&smaps, BEGIN, BYTES);
    for (size_t at = 0; at < size; at += step)
        dryi_smaps_feed(&smaps, (const char *)data + at,
                        size - at < step ? size - at : step);
    return dryi_smaps_end(&smaps, huge);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t whole = 1, pieces = 1;
    bool knows = read_in(data, size, size + 1, &whole);
    require(read_in(data, size, size ? data[0] + 1u : 1, &pieces) == knows);
    require(whole == pieces && (knows ? whole <= BYTES : whole == 1));
    return 0;
}
