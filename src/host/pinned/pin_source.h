/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_SOURCE_H
#define DRYI_HOST_PIN_SOURCE_H

/* The source from which both makers of a dryi_pin have their pages, and what it may give. */

#include "host/facts/facts.h"
#include "host/pinned/pin_make.h"

struct dryi_pin_source {
    struct dry_memory memory;
    struct dryi_kernel kernel;
    struct dry_pages_options pages; /* of each region, but its size and node */
    char *root;                     /* our copy */
    size_t root_length;
    int32_t gpu_node; /* where pages go if no node is asked for; -1: not known */
};

DRY_CHECK_RESULT enum dry_status dryi_pin_source_init(
    struct dryi_pin_source *source, const struct dryi_pin_pages *options,
    struct dry_error *err);
/* Also a zeroed one. */
void dryi_pin_source_finish(struct dryi_pin_source *source);

struct dryi_facts dryi_pin_source_facts(const struct dryi_pin_source *source);
/* Take pages of this GPU's node from now on, if it exists and this process may use it. */
void dryi_pin_source_settle(struct dryi_pin_source *source, int32_t node);

/* node -1: the GPU's, if it is known; -2: where the kernel likes. */
DRY_CHECK_RESULT enum dry_status dryi_pin_source_take(
    const struct dryi_pin_source *source, uint64_t bytes, int32_t node,
    struct dry_pages **pages, struct dry_error *err);
/*
 * The bytes that may be taken: the least that the control groups above this process leave, the
 * node has, and the machine has less a reserve for everybody. The reserve is a
 * tenth of the machine's memory or 4 GiB, whichever is more, but never more than a quarter. A
 * pool of huge pages gives what is free there; unless STRICT, the room above is added.
 */
uint64_t dryi_pin_source_room(const struct dryi_pin_source *source, int32_t node);

/*
 * The bytes that this process may still lock by mlock(): RLIMIT_MEMLOCK less what it has
 * locked. UINT64_MAX: it has CAP_IPC_LOCK, or nobody tells.
 */
uint64_t dryi_facts_lock_room(const struct dryi_facts *facts);

/* The node a PCI device hangs on, by its id as drivers write it: "0000:3B:00.0"; -1: not known. */
int32_t dryi_facts_pci_node(const struct dryi_facts *facts, const char *id);

#endif
