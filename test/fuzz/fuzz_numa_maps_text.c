/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as /proc/self/numa_maps. In pieces of any size the answer is the same; no node is
 * beyond what nodes can be, and none has more in one line than the range. The first byte
 * chooses the size of the pieces.
 */
#include "support/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>

#include "host/facts/numa_maps_text.h"

#define BEGIN UINT64_C(0x7f0000000000)
#define BYTES (UINT64_C(4) << 20)

struct sum {
    uint64_t bytes, mix;
};

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
take(void *to, int node, uint64_t bytes)
{
    struct sum *s = to;
    require(node >= 0 && node < 1024 && bytes <= BYTES && bytes % 1024 == 0);
    s->bytes += bytes;
    s->mix = s->mix * 31 + (uint64_t)node;
}

static bool
read_in(const uint8_t *data, size_t size, size_t step, struct sum *sum)
{
    struct dryi_numa_maps maps;
    dryi_numa_maps_init(&maps, BEGIN, BYTES, take, sum);
    for (size_t at = 0; at < size; at += step)
        dryi_numa_maps_feed(&maps, (const char *)data + at,
                            size - at < step ? size - at : step);
    return dryi_numa_maps_end(&maps);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sum whole = {0}, pieces = {0};
    bool knows = read_in(data, size, size + 1, &whole);
    require(read_in(data, size, size ? data[0] + 1u : 1, &pieces) == knows);
    require(whole.bytes == pieces.bytes && whole.mix == pieces.mix);
    return 0;
}
