/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_FACTS_H
#define DRYI_HOST_FACTS_H

/*
 * Properties and limits of the machine, read from /sys and /proc on each call.
 *
 * Paths are prefixed by a root, so that tests can supply folders of other machines. No
 * state is kept and no memory is allocated: each call reads a few small files.
 *
 * Errors     "not known" is a valid result: false, or a limit of UINT64_MAX, as in many
 *            containers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/pages.h>

#include "os/kernel.h"

#define DRYI_FACTS_POOLS_MAX 8
#define DRYI_ALL_NODES (-1)

struct dryi_facts {
    const struct dryi_kernel *kernel;
    const char *root; /* "": this machine */
    int64_t process;  /* process whose folder replaces /proc/self; 0: this process */
};

/* Get the page sizes that have a pool, in descending order. Returns their number. */
size_t dryi_facts_pool_sizes(const struct dryi_facts *facts,
                             uint64_t sizes[DRYI_FACTS_POOLS_MAX]);
/* Return the default huge page size; 0: not known. */
uint64_t dryi_facts_default_pool(const struct dryi_facts *facts);

/* Return the base page size. For another machine it is derived from the huge page size;
   0: not known. */
uint64_t dryi_facts_base_bytes(const struct dryi_facts *facts);

/* Counts of pages. For a node only total and free are valid. */
struct dryi_pool_facts {
    uint64_t total, free, reserved, surplus, overcommit;
};
bool dryi_facts_pool(const struct dryi_facts *facts, uint64_t page_bytes, int32_t node,
                     struct dryi_pool_facts *pool);

/* Transparent huge pages; huge_bytes 0: unsupported or not known. */
struct dryi_thp_facts {
    uint64_t huge_bytes;
    bool is_off, is_off_for_shared;
};
void dryi_facts_thp(const struct dryi_facts *facts, struct dryi_thp_facts *thp);

/* Get the nodes with memory, and those of them that this process may use. */
bool dryi_facts_nodes(const struct dryi_facts *facts, struct dry_pages_nodes *existing,
                      struct dry_pages_nodes *allowed);
bool dryi_facts_node_cpus(const struct dryi_facts *facts, int32_t node,
                          struct dryi_cpus *cpus);
/* Parse a list in /proc/self/status, "Mems_allowed_list:\t0-1", by its key with the
   colon. */
bool dryi_facts_status_list(const struct dryi_facts *facts, const char *key,
                            uint64_t *words, size_t bit_max);

/* Return the node's weight for weighted interleaving; 1 if unknown. */
uint64_t dryi_facts_weight(const struct dryi_facts *facts, int32_t node);

/* Estimate the bytes that base pages can take without swapping. */
uint64_t dryi_facts_available_bytes(const struct dryi_facts *facts, int32_t node);
/* Return the least memory that a control group above this process leaves. */
uint64_t dryi_facts_cgroup_free_bytes(const struct dryi_facts *facts);
/* The same for a pool's pages, counted by use or, with `of_reserved`, by reservation. */
uint64_t dryi_facts_cgroup_free_pool_bytes(const struct dryi_facts *facts,
                                           uint64_t page_bytes, bool of_reserved);

/* Return the least number in a file of this group and its ancestors; UINT64_MAX: no limit
   is known. `names` are the file's names in version 1 and 2 (NULL: none). */
uint64_t dryi_facts_cgroup_least(const struct dryi_facts *facts, const char *controller,
                                 const char *const names[2]);

/* Return the least CPU time that these groups grant, in thousandths of a CPU; 0: no limit
   is known. */
uint64_t dryi_facts_cgroup_cpus(const struct dryi_facts *facts);

/* Count huge bytes by /proc/self/smaps, for kernels without PAGEMAP_SCAN. */
bool dryi_facts_huge_bytes(const struct dryi_facts *facts, uint64_t address,
                           uint64_t bytes, uint64_t *huge_bytes);

/* Read /proc/self/numa_maps: `take` is called with bytes by node, possibly several times
   per node. */
bool dryi_facts_node_bytes(const struct dryi_facts *facts, uint64_t address,
                           uint64_t bytes,
                           void (*take)(void *to, int node, uint64_t bytes), void *to);

/* Operations on a set of nodes. */
bool dryi_nodes_have(const struct dry_pages_nodes *nodes, int64_t node);
void dryi_nodes_add(struct dry_pages_nodes *nodes, int32_t node);
bool dryi_nodes_are_none(const struct dry_pages_nodes *nodes);

#endif
