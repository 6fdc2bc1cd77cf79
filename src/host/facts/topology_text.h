/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_TOPOLOGY_TEXT_H
#define DRYI_HOST_TOPOLOGY_TEXT_H

/*
 * Parsers for files with topology data, in addition to those of host/facts/fact_text.h.
 *
 * Errors     false, and the output is unchanged: malformed text.
 * Cost       Linear in the text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parse "10 21 31\n": exactly `count` distances, each 1 to 255. */
bool dryi_topology_distances(const char *text, size_t length, uint8_t *distances,
                             size_t count);

/* Parse "0x030200\n": PCI's class, vendor or device. */
bool dryi_topology_hex(const char *text, size_t length, uint32_t *number);

/* Parse "-1\n" or "3\n", as in numa_node. */
bool dryi_topology_node(const char *text, size_t length, int32_t *node);

/* Convert "0000:17:00.0" to a sort key: domain, bus, device and function. */
bool dryi_topology_pci(const char *name, size_t length, uint64_t *key);

/* Parse "250000 100000\n", cpu.max: microseconds per period. The limit is in thousandths
   of a CPU, rounded up so that it is never 0. "max 100000\n" gives 0: no limit. */
bool dryi_topology_cpu_max(const char *text, size_t length, uint64_t *limit);
/* Parse version 1's two files to the same limit; a quota of "-1\n" means no limit. */
bool dryi_topology_cpu_quota(const char *quota, size_t quota_length, const char *period,
                             size_t period_length, uint64_t *limit);

#endif
