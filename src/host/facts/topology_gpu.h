/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_TOPOLOGY_GPU_H
#define DRYI_HOST_TOPOLOGY_GPU_H

#include <drystone/topology.h>

#include "host/facts/facts.h"

struct dryi_topology_gpus {
    const struct dryi_facts *facts;
    size_t count, seen; /* `seen` counts PCI devices of all kinds */
    uint64_t keys[DRY_TOPOLOGY_GPUS_MAX];
    struct dry_topology_gpu gpus[DRY_TOPOLOGY_GPUS_MAX]; /* sorted by key */
};

/*
 * Find the GPUs in /sys/bus/pci/devices. The struct is large; the caller zeroes all but
 * `facts`.
 */
void dryi_topology_find_gpus(struct dryi_topology_gpus *gpus);

#endif
