/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PLACE_STATE_H
#define TEST_PLACE_STATE_H

/*
 * A program under way: shared by the calls (place_ops.c), the making of places
 * (place_make.c) and what looks at everything (place_check.c).
 */

#include <drystone/sim.h>

#include "prop/place_device.h"
#include "prop/place_live.h"
#include "prop/place_ops.h"
#include "support/failing_memory.h"

#define OPS_POOLS 4
#define OPS_CAPTURES 3
#define OPS_WAITING 4096

struct ops_pool {
    struct dryi_pool_id id;
    uint32_t users, mask;  /* streams that go to it while begun, as bits */
    uint64_t mapped_bytes; /* at the last look */
    unsigned flags;
    bool is_begun;
};

/* Freed while other streams had used it: may be waiting, or given out long ago. */
struct ops_waiting {
    uint64_t addr, size, requested;
};

/* What the observer has been told. */
struct ops_told {
    uint64_t allocs, frees, completed, ooms; /* ever */
    uint64_t mapped_bytes;                   /* now */
    uint64_t last_alloc;                     /* address */
};

struct place_ops {
    struct place_ops_options options;
    struct place_ops_tally tally;

    struct dry_sim *sim;
    struct place_device device;
    struct failing_memory memory;
    struct dry_memory memory_of_place;
    struct dryi_place place;
    uint64_t page_bytes, capacity, capacity_first, limit;
    uint32_t stream_count, live_max, features;
    uint8_t mix;
    bool progress_is_told;

    struct live_list live;
    struct ops_waiting waiting[OPS_WAITING];
    size_t waiting_count;
    uint64_t owner_last;

    struct ops_pool pools[OPS_POOLS];
    uint32_t scopes[OPS_POOLS]; /* begun pools, innermost last */
    uint32_t scope_count, pool_total;
    uint32_t captures[OPS_CAPTURES], capture_count; /* masks */

    struct ops_told told;
    uint64_t refused_before, full_before, waits_before, used_before, completed_told;
    uint64_t active_peak;
    uint64_t step;
    const char *call;
    bool is_traced, is_full; /* is_full: the last request was refused */
};

/* Says what is wrong and where, and aborts. */
_Noreturn void ops_differ(const struct place_ops *ops, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The simulated device, the wrapper and the place of a header. */
void ops_make(struct place_ops *ops, const uint8_t header[PLACE_OPS_HEADER]);

/* O5, O6, O9: walk, statistics, counters, the place's own check. */
void ops_survey(struct place_ops *ops);
/* O4: there is no room for this request, as far as may be known from outside. */
void ops_require_full(struct place_ops *ops, uint64_t size);
void ops_print_layout(struct place_ops *ops);
/* O7: after a trim to `target`. */
void ops_require_trimmed(struct place_ops *ops, uint64_t target);

static inline bool
ops_same_pool(struct dryi_pool_id x, struct dryi_pool_id y)
{
    return x.a == y.a && x.b == y.b;
}

#endif
