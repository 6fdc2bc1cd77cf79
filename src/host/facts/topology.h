/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_TOPOLOGY_H
#define DRYI_HOST_TOPOLOGY_H

#include <drystone/topology.h>

#include "host/facts/facts.h"

/* Read a topology by any kernel's facts. Tests use a kernel whose calls fail: fewer facts
   are then known. */
DRY_CHECK_RESULT enum dry_status dryi_topology_read(const struct dryi_facts *facts,
                                                    const struct dry_memory *memory,
                                                    struct dry_topology **topology,
                                                    struct dry_error *err);

#endif
