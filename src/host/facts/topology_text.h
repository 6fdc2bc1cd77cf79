/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_TOPOLOGY_TEXT_H
#define DRYI_HOST_TOPOLOGY_TEXT_H

/*
 * The forms in which Linux writes what a topology needs, beside those of host/facts/fact_text.h.
 *
 * Errors     false, and the output as it was: the text is not of this form.
 * Cost       Linear in the text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "10 21 31\n": exactly `count` distances, each of one byte and none 0. */
bool dryi_topology_distances(const char *text, size_t length, uint8_t *distances,
                             size_t count);

/* "0x030200\n", as PCI's class, vendor and device. */
bool dryi_topology_hex(const char *text, size_t length, uint32_t *number);

/* "-1\n" or "3\n", as numa_node. */
bool dryi_topology_node(const char *text, size_t length, int32_t *node);

/* "0000:17:00.0", as an ordering key: domain, bus, device and function. */
bool dryi_topology_pci(const char *name, size_t length, uint64_t *key);

/*
 * "250000 100000\n" of cpu.max: microseconds each period; in thousandths of a CPU, rounded
 * up, so that it is never 0. "max 100000\n" is 0: no limit.
 */
bool dryi_topology_cpu_max(const char *text, size_t length, uint64_t *limit);
/* The same of version 1's two files; a quota of "-1\n" is no limit. */
bool dryi_topology_cpu_quota(const char *quota, size_t quota_length, const char *period,
                             size_t period_length, uint64_t *limit);

#endif
