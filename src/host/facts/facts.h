/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_FACTS_H
#define DRYI_HOST_FACTS_H

/*
 * Facts: the traits of the machine and its limits, read from /sys and /proc when asked for.
 *
 * Paths are put behind a root, so that tests bring folders of other machines. Nothing is kept
 * and no memory is taken: each answer is a few small files.
 *
 * Errors     "not known" is an answer: false, or a limit of UINT64_MAX. Containers hide much.
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
    const char *root; /* "" for this machine */
    int64_t process;  /* whose folder /proc/self stands for; 0: this one's */
};

/* The sizes of huge pages that have a pool, descending; how many. */
size_t dryi_facts_pool_sizes(const struct dryi_facts *facts,
                             uint64_t sizes[DRYI_FACTS_POOLS_MAX]);
/* The kernel's default of these; 0: not known. */
uint64_t dryi_facts_default_pool(const struct dryi_facts *facts);

/* The bytes of a base page. For another machine its huge pages tell them; 0: not known. */
uint64_t dryi_facts_base_bytes(const struct dryi_facts *facts);

/* In pages. A node has total and free alone. */
struct dryi_pool_facts {
    uint64_t total, free, reserved, surplus, overcommit;
};
bool dryi_facts_pool(const struct dryi_facts *facts, uint64_t page_bytes, int32_t node,
                     struct dryi_pool_facts *pool);

/* Transparent huge pages; huge_bytes 0: the kernel has none, or does not say. */
struct dryi_thp_facts {
    uint64_t huge_bytes;
    bool is_off, is_off_for_shared;
};
void dryi_facts_thp(const struct dryi_facts *facts, struct dryi_thp_facts *thp);

/* The nodes with memory, and the ones among them that this process may use. */
bool dryi_facts_nodes(const struct dryi_facts *facts, struct dry_pages_nodes *existing,
                      struct dry_pages_nodes *allowed);
bool dryi_facts_node_cpus(const struct dryi_facts *facts, int32_t node,
                          struct dryi_cpus *cpus);
/* "Mems_allowed_list:\t0-1" of /proc/self/status, by its key with the colon. */
bool dryi_facts_status_list(const struct dryi_facts *facts, const char *key,
                            uint64_t *words, size_t bit_max);

/* The node's weight in interleaving by weights; 1 if the kernel does not tell. */
uint64_t dryi_facts_weight(const struct dryi_facts *facts, int32_t node);

/* About the bytes that the kernel would find for base pages without swapping. */
uint64_t dryi_facts_available_bytes(const struct dryi_facts *facts, int32_t node);
/* The least that any control group above this process leaves of memory. */
uint64_t dryi_facts_cgroup_room(const struct dryi_facts *facts);
/* The same of a pool's pages: counted by use, or (of_reserved) by what mappings reserve. */
uint64_t dryi_facts_cgroup_pool_room(const struct dryi_facts *facts, uint64_t page_bytes,
                                     bool of_reserved);

/*
 * The least number in a file of this group and of those above it; UINT64_MAX: no limit is
 * known. The `names` are the file's in version 1 and 2 of groups (NULL: there is none).
 */
uint64_t dryi_facts_cgroup_least(const struct dryi_facts *facts, const char *controller,
                                 const char *const names[2]);

/* In thousandths of a CPU, the least that any of them grants; 0: no limit is known. */
uint64_t dryi_facts_cgroup_cpus(const struct dryi_facts *facts);

/* /proc/self/smaps, for what PAGEMAP_SCAN tells newer kernels' programs. */
bool dryi_facts_huge_bytes(const struct dryi_facts *facts, uint64_t address,
                           uint64_t bytes, uint64_t *huge_bytes);

/* /proc/self/numa_maps: `take` is called with bytes by node, more than once for one. */
bool dryi_facts_node_bytes(const struct dryi_facts *facts, uint64_t address,
                           uint64_t bytes,
                           void (*take)(void *to, int node, uint64_t bytes), void *to);

/* Questions to a set of nodes. */
bool dryi_nodes_have(const struct dry_pages_nodes *nodes, int64_t node);
void dryi_nodes_add(struct dry_pages_nodes *nodes, int32_t node);
bool dryi_nodes_are_none(const struct dry_pages_nodes *nodes);

#endif
