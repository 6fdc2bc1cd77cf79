/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_CONF_H
#define DRYI_PLACE_PAGED_CONF_H

/* The options of paged, and their parser. */

#include "place/place.h"

struct dryi_paged_conf {
    uint64_t small_max; /* bytes; requests up to this size are small; default 64 KiB */
    /* Reserved bytes over peak live bytes above which pages are moved; default 1.05. */
    double budget;
    bool reuse_ordered; /* cudaMemPoolReuseFollowEventDependencies; default on */
    bool reuse_passed;  /* cudaMemPoolReuseAllowOpportunistic; default on */
    bool reuse_waiting; /* cudaMemPoolReuseAllowInternalDependencies; default on */
    bool remap;         /* default on; off: pages are moved only to prevent an OOM */
    bool plan; /* Default on: learn periods and pack layouts, if pages can be moved */
    /* Bytes of addresses per segment; default: the device's memory, within 1 GiB to 64 GiB. */
    uint64_t segment_bytes;
    uint64_t leave_bytes; /* bytes left free for NCCL, cuBLAS, contexts; default 0 */
    double per_process_memory_fraction; /* share of the device's memory; 1: no limit */
};

void dryi_paged_conf_init(struct dryi_paged_conf *conf);

/*
 * Parse options into *conf, such as "budget:1.05,small_kb:64,segment_mb:65536,remap:True,plan:True,
 * reuse_ordered:True,reuse_passed:True,reuse_waiting:False,leave_mb:512,
 * per_process_memory_fraction:0.9".
 *
 * Options of other placements, which `is_foreign` recognizes, are accepted and ignored. "backend"
 * is refused, because a caller would expect an effect. ARGUMENT: any other option; `err` has the
 * offset in the text, and *conf is unchanged.
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
