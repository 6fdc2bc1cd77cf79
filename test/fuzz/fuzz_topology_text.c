/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as what a topology reads. Refused, an output stays as it was; read, it is what the
 * text says: written again it must read the same.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/facts/topology_text.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_distances(const char *text, size_t size)
{
    uint8_t d[4] = {0x5a, 0x5a, 0x5a, 0x5a}, same[3];
    if (!dryi_topology_distances(text, size, d, 3)) {
        require(d[0] == 0x5a && d[1] == 0x5a && d[2] == 0x5a);
    } else {
        char again[32];
        int length = snprintf(again, sizeof again, "%d %d %d\n", d[0], d[1], d[2]);
        require(dryi_topology_distances(again, (size_t)length, same, 3));
        require(memcmp(d, same, sizeof same) == 0 && d[0] && d[1] && d[2]);
    }
    require(d[3] == 0x5a);
}

static void
check_numbers(const char *text, size_t size)
{
    uint32_t hex = 0x5a5a5a5a, same = 0;
    int32_t node = 0x5a5a5a5a;
    char again[32];
    if (dryi_topology_hex(text, size, &hex)) {
        int length = snprintf(again, sizeof again, "0x%x\n", hex);
        require(dryi_topology_hex(again, (size_t)length, &same) && same == hex);
    } else {
        require(hex == 0x5a5a5a5a);
    }
    require(dryi_topology_node(text, size, &node) ? node >= -1 : node == 0x5a5a5a5a);
}

static void
check_pci(const char *text, size_t size)
{
    uint64_t key = UNTOUCHED;
    if (dryi_topology_pci(text, size, &key))
        require(size >= 12 && size <= 16 && key >> 48 == 0);
    else
        require(key == UNTOUCHED);
}

static void
check_limits(const char *text, size_t size)
{
    static const char period[] = "100000\n";
    uint64_t limit = UNTOUCHED;
    if (!dryi_topology_cpu_max(text, size, &limit))
        require(limit == UNTOUCHED);
    else
        require(limit > 0 || memcmp(text, "max", 3) == 0);
    limit = UNTOUCHED;
    if (!dryi_topology_cpu_quota(text, size, period, sizeof period - 1, &limit))
        require(limit == UNTOUCHED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy, so that a byte too far is seen. */
    char *text = malloc(size ? size : 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    check_distances(text, size);
    check_numbers(text, size);
    check_pci(text, size);
    check_limits(text, size);
    free(text);
    return 0;
}
