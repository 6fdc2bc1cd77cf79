/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_SOURCE_H
#define DRYI_HOST_PIN_SOURCE_H

/* Allocates the pages for both makers of a dryi_pin, and computes how many they may
   take. */

#include "host/facts/facts.h"
#include "host/pinned/pin_make.h"

struct dryi_pin_source {
    struct dry_memory memory;
    struct dryi_kernel kernel;
    struct dry_pages_options pages; /* options for each region, except its size and
                                       node */
    char *root;                     /* copy owned by the source */
    size_t root_length;
    int32_t gpu_node; /* the node for requests without one; -1: not known */
};

DRY_CHECK_RESULT enum dry_status dryi_pin_source_init(
    struct dryi_pin_source *source, const struct dryi_pin_pages *options,
    struct dry_error *err);
/* End a source; a zeroed one is accepted. */
void dryi_pin_source_finish(struct dryi_pin_source *source);

struct dryi_facts dryi_pin_source_facts(const struct dryi_pin_source *source);
/* Set the GPU's node for later takes, if it exists and this process may use it. */
void dryi_pin_source_settle(struct dryi_pin_source *source, int32_t node);

/* Populate a region. node -1: on the GPU's node, if known; -2: where the kernel
   chooses. */
DRY_CHECK_RESULT enum dry_status dryi_pin_source_take(
    const struct dryi_pin_source *source, uint64_t bytes, int32_t node,
    struct dry_pages **pages, struct dry_error *err);
/*
 * Return the bytes that may be taken: the least of what the control groups above this
 * process allow, what the node has free, and the machine's available memory minus a
 * reserve. The reserve leaves memory for other programs: 1/10 of the memory or 4 GiB,
 * whichever is more, but at most 1/4. For POOL it is the free pages of the pool; unless
 * STRICT, the above is added.
 */
uint64_t dryi_pin_source_available_bytes(const struct dryi_pin_source *source,
                                         int32_t node);

/* Return the bytes that this process may still lock by mlock(): RLIMIT_MEMLOCK minus the
   locked bytes. UINT64_MAX: it has CAP_IPC_LOCK, or the limit is unknown. */
uint64_t dryi_facts_lock_free_bytes(const struct dryi_facts *facts);

/* Return the NUMA node of a PCI device by its id in the driver's format, "0000:3B:00.0";
   -1: not known. */
int32_t dryi_facts_pci_node(const struct dryi_facts *facts, const char *id);

#endif
