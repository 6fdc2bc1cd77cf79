/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PAGES_INSIDE_H
#define DRYI_HOST_PAGES_INSIDE_H

/*
 * How a region comes to be.
 *
 * An order says what is wanted of one region: options, checked, with what the machine has. A
 * rung is one way to have it: these pages, and whether other nodes may help. The policy makes
 * a ladder of rungs; each is tried until one holds. A try maps, says where pages should go,
 * fills, and looks at what came; on any failure it undoes all of it and says why.
 *
 * Invariants of a region:
 *     P1 outer covers address .. address + bytes
 *     P2 the rest of outer, beside that, has no access, so that no mapping of others ever
 *        becomes one with ours
 *     P3 outer is unmapped whole and once, by whoever created it
 */

#include <stdbool.h>

#include <drystone/pages.h>

#include "host/facts/facts.h"
#include "os/kernel.h"

struct dry_pages {
    struct dry_memory memory;
    struct dryi_kernel kernel;
    struct dry_pages_info info;
    struct dry_pages_nodes nodes; /* where it should lie; none: anywhere */
    uint64_t outer_address, outer_bytes;
    int64_t owner; /* process */
};

struct dryi_pages_order {
    struct dryi_facts facts;
    struct dry_pages_options options;
    uint64_t base_bytes;
    enum dry_pages_where where;
    struct dry_pages_nodes nodes;
    bool is_everywhere; /* nothing to choose: this process has only this node's pages */
    /* The reason why nodes fall short already: some are not there, or not for us. */
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
    /* The region; outer_bytes 0: there is none. */
    uint64_t address, bytes, outer_address, outer_bytes;
    uint64_t left_bytes; /* not filled yet */
    bool is_bound;       /* the kernel was told where pages go */
    bool by_first_touch; /* it may not be told, threads on the node's CPUs fill */
    bool was_local;      /* they did run there */
    bool is_even;        /* interleaved without the weights that were asked for */
    uint64_t huge_bytes, elsewhere_bytes, populate_ns;
    uint32_t thread_count;
    enum dry_pages_reason reason, node_reason;
    int os_errno;
};

/* The public call with another kernel than this machine's. */
DRY_CHECK_RESULT enum dry_status dryi_pages_create(
    const struct dry_pages_options *options, const struct dryi_kernel *kernel,
    struct dry_pages **pages, struct dry_pages_report *report, struct dry_error *err);

/* Destroy the object, but leave the memory mapped for good: somebody may still use it. */
void dryi_pages_abandon(struct dry_pages *pages);

/* The ladder: at least one rung, at most DRY_PAGES_ATTEMPTS_MAX. */
size_t dryi_pages_ladder(const struct dryi_pages_order *order,
                         struct dryi_rung rungs[DRY_PAGES_ATTEMPTS_MAX]);

/* Options checked, and what the machine has. */
DRY_CHECK_RESULT enum dry_status dryi_pages_order_init(
    struct dryi_pages_order *order, const struct dry_pages_options *options,
    const struct dryi_kernel *kernel, struct dry_error *err);
/* Tell what the first rung of this order's ladder needs. */
void dryi_pages_need(const struct dryi_pages_order *order, struct dry_pages_need *need);

/* One rung; true: the region is there. false: nothing is, and the reason says why. */
bool dryi_pages_try_run(struct dryi_pages_try *t);
void dryi_pages_release(const struct dryi_kernel *kernel, uint64_t outer_address,
                        uint64_t outer_bytes);

/*
 * Move what lies in base pages into huge ones of `step` bytes, until the deadline (0: none).
 * 0, or a negative errno if the kernel has no such advice.
 */
int dryi_pages_collapse(const struct dryi_kernel *kernel, uint64_t address,
                        uint64_t bytes, uint64_t step, uint64_t deadline_ns);

/* Why mmap() refused, and why filling did; the region is still there in the latter case. */
enum dry_pages_reason dryi_pages_why_not_mapped(const struct dryi_pages_try *t);
enum dry_pages_reason dryi_pages_why_not_filled(const struct dryi_pages_try *t);
/* Why it should not even be tried; NONE: it may. */
enum dry_pages_reason dryi_pages_why_not_tried(const struct dryi_pages_try *t);

/* UNSUPPORTED in a child of the process that created them. */
DRY_CHECK_RESULT enum dry_status dryi_pages_check_owner(const struct dry_pages *pages,
                                                        struct dry_error *err);

enum dry_status dryi_pages_reason_status(enum dry_pages_reason reason);

/* A range of addresses whose nodes are asked for, `step` bytes a page. */
struct dryi_pages_places {
    const struct dryi_kernel *kernel;
    uint64_t address, bytes, step;
};
/*
 * How much lies on which node, those asked for and others: move_pages() asked about every
 * page, else /proc/self/numa_maps. false: neither tells.
 */
struct dryi_pages_survey {
    const struct dry_pages_nodes *nodes; /* asked for; NULL: any */
    uint64_t populated_bytes, elsewhere_bytes;
    size_t share_count;
    struct dry_pages_share shares[DRY_PAGES_SHARES_MAX];
};
bool dryi_pages_look(const struct dryi_pages_places *places,
                     const struct dry_pages_nodes *nodes,
                     struct dryi_pages_survey *survey);
bool dryi_pages_count_huge(const struct dryi_facts *facts, uint64_t address,
                           uint64_t bytes, uint64_t *huge_bytes);

#endif
