/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PAGES_INSIDE_H
#define DRYI_HOST_PAGES_INSIDE_H

/*
 * How a region is made.
 *
 * An order is the request for one region: validated options and the machine's facts. A
 * rung is one way to serve it: a page size, and whether other nodes are allowed. The
 * policy defines a ladder of rungs, which are tried in order until one succeeds. A try
 * maps the region, sets its memory policy, populates it, and checks the result. On
 * failure it unmaps the region and has the reason.
 *
 * Invariants of a region:
 *     P1 outer covers address .. address + bytes
 *     P2 the rest of outer has no access, so that the kernel never merges another mapping
 *        with the region
 *     P3 outer is unmapped whole and once, by the process that created it
 */

#include <stdbool.h>

#include <drystone/pages.h>

#include "host/facts/facts.h"
#include "os/kernel.h"

struct dry_pages {
    struct dry_memory memory;
    struct dryi_kernel kernel;
    struct dry_pages_info info;
    struct dry_pages_nodes nodes; /* the requested nodes; empty: any */
    uint64_t outer_address, outer_bytes;
    int64_t owner; /* id of the creating process */
};

struct dryi_pages_order {
    struct dryi_facts facts;
    struct dry_pages_options options;
    uint64_t base_bytes;
    enum dry_pages_where where;
    struct dry_pages_nodes nodes;
    bool is_everywhere; /* this process may only use the requested node, so binding is not
                           needed */
    /* Why nodes are missing already: they do not exist, or are not allowed. */
    enum dry_pages_reason node_reason;
    struct dryi_thp_facts thp;
};

struct dryi_rung {
    enum dry_pages_kind kind;
    uint64_t page_bytes;
    bool may_spill;
};

struct dryi_pages_try {
    const struct dryi_pages_order *order;
    struct dryi_rung rung;
    /* The region; outer_bytes 0: not mapped. */
    uint64_t address, bytes, outer_address, outer_bytes;
    uint64_t left_bytes; /* bytes not yet populated */
    bool is_bound;       /* the kernel accepted a memory policy */
    bool by_first_touch; /* policies are forbidden: threads on the node's CPUs populate
                            instead */
    bool was_local;      /* all threads did run on those CPUs */
    bool is_even;        /* interleaved evenly although weights were requested */
    uint64_t huge_bytes, elsewhere_bytes, populate_ns;
    uint32_t thread_count;
    enum dry_pages_reason reason, node_reason;
    int os_errno;
};

/* Make a region by the calls of a given kernel; see dry_pages_create(). */
DRY_CHECK_RESULT enum dry_status dryi_pages_create(
    const struct dry_pages_options *options, const struct dryi_kernel *kernel,
    struct dry_pages **pages, struct dry_pages_report *report, struct dry_error *err);

/* Destroy the object, but leave the memory mapped forever, because it may still be in
   use. */
void dryi_pages_abandon(struct dry_pages *pages);

/* Fill in the ladder. Returns its number of rungs, 1 to DRY_PAGES_ATTEMPTS_MAX. */
size_t dryi_pages_ladder(const struct dryi_pages_order *order,
                         struct dryi_rung rungs[DRY_PAGES_ATTEMPTS_MAX]);

/* Validate the options and read the machine's facts. */
DRY_CHECK_RESULT enum dry_status dryi_pages_order_init(
    struct dryi_pages_order *order, const struct dry_pages_options *options,
    const struct dryi_kernel *kernel, struct dry_error *err);
/* Compute what the first rung of this order's ladder needs. */
void dryi_pages_need(const struct dryi_pages_order *order, struct dry_pages_need *need);

/* Try one rung. True: the region is ready. False: it is unmapped, and `reason` says
   why. */
bool dryi_pages_try_run(struct dryi_pages_try *t);
void dryi_pages_release(const struct dryi_kernel *kernel, uint64_t outer_address,
                        uint64_t outer_bytes);

/* Collapse base pages into huge pages of `step` bytes, until the deadline (0: none).
   Returns 0, or a negative errno if the kernel does not support it. */
int dryi_pages_collapse(const struct dryi_kernel *kernel, uint64_t address,
                        uint64_t bytes, uint64_t step, uint64_t deadline_ns);

/* Return why mmap() failed, or why populating failed; in the latter case the region must
   still be mapped. */
enum dry_pages_reason dryi_pages_why_not_mapped(const struct dryi_pages_try *t);
enum dry_pages_reason dryi_pages_why_not_filled(const struct dryi_pages_try *t);
/* Return why the try should not be started; NONE: it may be. */
enum dry_pages_reason dryi_pages_why_not_tried(const struct dryi_pages_try *t);

/* Return UNSUPPORTED in a child of the process that created the region. */
DRY_CHECK_RESULT enum dry_status dryi_pages_check_owner(const struct dry_pages *pages,
                                                        struct dry_error *err);

enum dry_status dryi_pages_reason_status(enum dry_pages_reason reason);

/* A range of addresses to query for nodes; pages have `step` bytes. */
struct dryi_pages_places {
    const struct dryi_kernel *kernel;
    uint64_t address, bytes, step;
};
/* Bytes by node, on requested and on other nodes, from move_pages() for every page, or
   else from /proc/self/numa_maps. False: neither is available. */
struct dryi_pages_survey {
    const struct dry_pages_nodes *nodes; /* requested nodes; NULL: any */
    uint64_t populated_bytes, elsewhere_bytes;
    size_t share_count;
    struct dry_pages_share shares[DRY_PAGES_SHARES_MAX];
};
bool dryi_pages_survey_nodes(const struct dryi_pages_places *places,
                             const struct dry_pages_nodes *nodes,
                             struct dryi_pages_survey *survey);
bool dryi_pages_count_huge(const struct dryi_facts *facts, uint64_t address,
                           uint64_t bytes, uint64_t *huge_bytes);

#endif
