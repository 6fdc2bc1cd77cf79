/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_CONF_H
#define DRYI_PLACE_PAGED_CONF_H

/* The options of paged, and how they are read. */

#include "place/place.h"

struct dryi_paged_conf {
    uint64_t small_max; /* bytes; default 64 KiB */
    double budget;      /* reserved / peak live before pages move; default 1.05 */
    bool reuse_ordered; /* cudaMemPoolReuseFollowEventDependencies; default on */
    bool reuse_passed;  /* cudaMemPoolReuseAllowOpportunistic; default on */
    bool reuse_waiting; /* cudaMemPoolReuseAllowInternalDependencies; default on */
    bool remap;         /* default on; off: pages move only to prevent an OOM */
    bool plan;          /* default on: periods are learnt and packed, if pages move */
    /* Addresses that are reserved at once; default: the device's total, 1 GiB to 64 GiB. */
    uint64_t segment_bytes;
    uint64_t leave_bytes; /* kept free for NCCL, cuBLAS, contexts; default 0 */
    double per_process_memory_fraction; /* 1: no limit */
};

void dryi_paged_conf_init(struct dryi_paged_conf *conf);

/*
 * Read options into *conf, such as "budget:1.05,small_kb:64,segment_mb:65536,remap:True,plan:True,
 * reuse_ordered:True,reuse_passed:True,reuse_waiting:False,leave_mb:512,
 * per_process_memory_fraction:0.9".
 *
 * An option of another placement, which `is_foreign` tells, is accepted and means nothing here.
 * "backend" is not accepted, because it would promise something. Anything else is ARGUMENT with the
 * offset; *conf is unchanged then.
 */
typedef bool dryi_option_name(const char *name, size_t length);
DRY_CHECK_RESULT enum dry_status dryi_paged_conf_parse(const char *text, size_t length,
                                                       dryi_option_name *is_foreign,
                                                       struct dryi_paged_conf *conf,
                                                       struct dry_error *err);

struct dryi_paged_call {
    void (*call)(void *self);
    void *self;
};

#endif
