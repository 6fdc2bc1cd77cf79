/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FIGURES_H
#define DRYI_PLACE_FIGURES_H

/*
 * The reserved bytes of each pool of a place, as PyTorch's reserved_bytes_by_private_pools.
 *
 * A pool has one figure from its making on. The figure outlives the pool, as PyTorch's does: what
 * was taken and given back stays to be told. PyTorch keeps all; here those of the last
 * DRYI_PLACE_FIGURES_GONE pools that are gone are kept, so that pools leave nothing in the end.
 *
 * Cost  O(1) a change; 144 bytes a pool.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/stats.h>

#include "place/place_info.h"

#define DRYI_PLACE_FIGURES_GONE 64u

struct dryi_place_figure {
    struct dryi_pool_id id;
    bool is_touched;    /* the pool has had memory */
    uint32_t next_gone; /* of the pools that are gone, the next to go */
    struct dry_stat_array reserved;
};

struct dryi_place_figures {
    struct dryi_place_figure *list; /* the first is the default pool's */
    size_t capacity, count;
    uint32_t first_gone, last_gone, gone_count;
};

typedef void dryi_figure_visit(void *self, struct dryi_pool_id id,
                               const struct dry_stat_array *reserved);

/* Make room for one more; false: no memory. */
bool dryi_place_figures_reserve(struct dryi_place_figures *figures,
                                const struct dry_memory *memory);
/* Add the figure of a pool, and return its index. Requires room. */
uint32_t dryi_place_figures_add(struct dryi_place_figures *figures,
                                struct dryi_pool_id id);
/* The pool is gone. Until the next is added, changes may still come. */
void dryi_place_figures_end(struct dryi_place_figures *figures, uint32_t index);
/* Count bytes that the pool has taken, or given back: less than 0. */
void dryi_place_figures_change(struct dryi_place_figures *figures, uint32_t index,
                               bool is_small, int64_t bytes);
/* All that the pools have now, of small or of large memory: for a check of invariants. */
int64_t dryi_place_figures_sum(const struct dryi_place_figures *figures, bool is_small);
/* `reset_stats` of place.h. */
void dryi_place_figures_reset(struct dryi_place_figures *figures, bool peaks,
                              bool accumulated);
/* Visit the private pools that have had memory, in no order. */
void dryi_place_figures_visit(const struct dryi_place_figures *figures,
                              dryi_figure_visit *visit, void *self);
void dryi_place_figures_finish(struct dryi_place_figures *figures,
                               const struct dry_memory *memory);

#endif
